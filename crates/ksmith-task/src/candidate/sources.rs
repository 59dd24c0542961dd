//! The sources of a candidate.

//! The experience library.

//! The workspace shapes that users of KDA know: written from a run, and read from elsewhere for comparison.
//!
//! What is written follows from the record. What is read is somebody's word: it is marked unproved, checked for the
//! defects that hand-kept records show, and never becomes part of a record of ours.

mod import;
mod views;

pub use import::{ImportError, Imported, ImportedCandidate, PROOF, import};
pub use views::{DRAFT_VIEW, PLAN_VIEW, PROFILE_FOLDER, write};

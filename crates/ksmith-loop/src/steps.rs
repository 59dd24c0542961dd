//! What each step does. Each ends with a record, and no step begins before the record of the one before is synced.

mod ask;
mod close;
mod critic;
mod documents;
mod flag_control;
mod judge;
mod process;
mod propose;
mod review;
mod shortlist;

pub use ask::answer;
pub(crate) use close::write_files;
pub(crate) use review::{is_reviewed, visible};

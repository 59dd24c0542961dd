//! What each step does. Each ends with a record, and no step begins before the record of the one before is synced.

mod close;
mod documents;
mod flag_control;
mod judge;
mod propose;

pub(crate) use close::write_files;

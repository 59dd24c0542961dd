//! The experience library: what was tried, under which conditions, and which record shows it.
//!
//! Entries are files; an index is made when somebody asks and never kept. What an entry says counts by its evidence:
//! where a run that it names is at hand and does not show it any more, the entry is struck. Nothing here is an
//! instruction, and no model has a part in finding or ranking.

mod distil;
mod entry;
mod recall;
mod store;

pub use distil::distil;
pub use entry::{Effect, Entry, Evidence, EvidenceState, Kind, Scope, Source, Status};
pub use recall::{Answer, AnswerKind, Hit, Query, recall};
pub use store::{Lore, LoreError, Merged};

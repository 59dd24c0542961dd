//! Reports for a terminal and for a browser, rendered from the ledger alone.
//!
//! Everything that is not ours (compiler output, names, hypotheses, source text) is escaped here: control characters
//! never reach a terminal, markup never reaches a page.

mod chart;
mod clean;
pub mod html;
mod page;
pub mod table;
mod view;

pub use clean::{clean, clean_line};
pub use view::{RunView, RunViewError};

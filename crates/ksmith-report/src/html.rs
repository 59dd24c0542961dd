//! The report as one file for a browser.

use crate::RunView;

pub use crate::page::Links;

/// Renders a run as a self-contained page: no scripts, nothing loaded, every link within itself or to files beside it.
pub fn report(view: &RunView, links: Links) -> String {
    crate::page::page(view, links).into_string()
}

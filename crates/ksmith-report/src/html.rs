//! The report as one file for a browser.

use crate::RunView;

/// Renders a run as a self-contained page: no scripts, no outside files.
pub fn report(view: &RunView) -> String {
    crate::page::page(view).into_string()
}

//! Reports for a terminal and for a browser.

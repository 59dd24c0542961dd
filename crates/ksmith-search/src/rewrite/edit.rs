//! Insertions and replacements in a text, applied from the end to the start.

use std::ops::Range;

#[derive(Debug, Default)]
pub(super) struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    pub(super) fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.0.push((at..at, text.into()));
    }

    pub(super) fn replace(&mut self, range: Range<usize>, text: impl Into<String>) {
        self.0.push((range, text.into()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Applies the edits, which do not overlap.
    pub(super) fn apply(mut self, text: &str) -> String {
        self.0.sort_by_key(|(range, _)| range.start);
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for (range, new) in self.0 {
            if range.start < done {
                continue;
            }
            out.push_str(text.get(done..range.start).unwrap_or_default());
            out.push_str(&new);
            done = range.end;
        }
        out.push_str(text.get(done..).unwrap_or_default());
        out
    }
}

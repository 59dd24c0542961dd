//! What is wrong with a contract or manifest: where, what was expected, what to do.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::snippet;

/// A contract that cannot be used. Displays as `file:line:column: message`; [`ContractError::render`] shows the place.
#[derive(Debug, Clone)]
pub struct ContractError(Box<Inner>);

/// A candidate's manifest or files that cannot be used; same shape as a contract's error.
pub type CandidateError = ContractError;

#[derive(Debug, Clone)]
struct Inner {
    path: PathBuf,
    /// The file's name, without its folder.
    name: String,
    /// The file's content; empty for an error without a place.
    text: String,
    span: Option<Range<usize>>,
    message: String,
    label: String,
    help: Option<String>,
}

impl ContractError {
    /// An error at `span` of `text`, the content of the file at `path`.
    pub(crate) fn new(
        path: &Path,
        text: &str,
        span: Option<Range<usize>>,
        message: impl Into<String>,
    ) -> Self {
        let name = path
            .file_name()
            .map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into());
        Self(Box::new(Inner {
            path: path.to_owned(),
            name,
            text: text.to_owned(),
            span: span.map(|span| span.start.min(text.len())..span.end.min(text.len())),
            message: message.into(),
            label: "here".to_owned(),
            help: None,
        }))
    }

    /// An error without a place in a file.
    pub(crate) fn file(path: &Path, message: impl Into<String>) -> Self {
        Self::new(path, "", None, message)
    }

    /// Says at the place what was expected.
    pub(crate) fn expected(mut self, label: impl Into<String>) -> Self {
        self.0.label = label.into();
        self
    }

    /// Says what to do.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// The same with `help` if there is one.
    pub(crate) fn maybe_help(mut self, help: Option<String>) -> Self {
        self.0.help = help.or(self.0.help);
        self
    }

    /// What is wrong, a lower-case fragment.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Line and column, both from 1, if the error has a place.
    pub fn line_column(&self) -> Option<(usize, usize)> {
        let start = self.0.span.as_ref()?.start;
        let before = self.0.text.get(..start)?;
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |text| text.chars().count()) + 1;
        Some((line, column))
    }

    /// The whole diagnostic as plain text: message, source line with a marker, help. No colours.
    pub fn render(&self) -> String {
        let mut text = String::new();
        snippet::sentence(&mut text, "  × ", "  │ ", &self.to_string());
        if let (Some(span), Some((line, column))) = (&self.0.span, self.line_column()) {
            let place = format!("{}:{line}:{column}", self.0.name);
            snippet::draw(&mut text, &place, &self.0.text, span, &self.0.label);
        }
        if let Some(help) = &self.0.help {
            snippet::sentence(&mut text, "  help: ", "        ", help);
        }
        text
    }
}

impl fmt::Display for ContractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line_column() {
            Some((line, column)) => {
                write!(f, "{}:{line}:{column}: {}", self.0.name, self.0.message)
            }
            None => write!(f, "`{}`: {}", self.0.name, self.0.message),
        }
    }
}

impl std::error::Error for ContractError {}

//! What is wrong with a contract or manifest: where, what was expected, what to do.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};

/// A contract that cannot be used. Displays as `file:line:column: message`; [`ContractError::render`] shows the place.
#[derive(Debug, Clone)]
pub struct ContractError(Box<Inner>);

/// A candidate's manifest or files that cannot be used; same shape as a contract's error.
pub type CandidateError = ContractError;

#[derive(Debug, Clone)]
struct Inner {
    path: PathBuf,
    source: NamedSource<String>,
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
            source: NamedSource::new(name, text.to_owned()),
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
        let before = self.0.source.inner().get(..start)?;
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |text| text.chars().count()) + 1;
        Some((line, column))
    }

    /// The whole diagnostic as plain text: message, source line with a marker, help. No colours.
    pub fn render(&self) -> String {
        let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(100);
        let mut text = String::new();
        match handler.render_report(&mut text, self) {
            Ok(()) => text,
            Err(fmt::Error) => self.to_string(),
        }
    }
}

impl fmt::Display for ContractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line_column() {
            Some((line, column)) => {
                write!(f, "{}:{line}:{column}: {}", self.0.source.name(), self.0.message)
            }
            None => write!(f, "`{}`: {}", self.0.source.name(), self.0.message),
        }
    }
}

impl std::error::Error for ContractError {}

impl Diagnostic for ContractError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.0
            .help
            .as_ref()
            .map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.0.span.as_ref().map(|_| &self.0.source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.0.span.clone()?;
        let label = LabeledSpan::new(Some(self.0.label.clone()), span.start, span.len().max(1));
        Some(Box::new(std::iter::once(label)))
    }
}

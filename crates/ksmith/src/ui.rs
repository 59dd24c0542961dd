//! The only place that prints: results on standard output, everything else on standard error.

use std::io::{IsTerminal as _, Write as _};

use ksmith_task::ExitCode;
use serde::Serialize;

use crate::failure::Failure;

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verbosity {
    Normal,
    Quiet,
}

/// What results look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
}

/// Where everything that a person or program sees goes through.
#[derive(Debug)]
pub(crate) struct Ui {
    format: Format,
    verbosity: Verbosity,
}

impl Ui {
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        Self {
            format: if json { Format::Json } else { Format::Text },
            verbosity: if quiet {
                Verbosity::Quiet
            } else {
                Verbosity::Normal
            },
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.verbosity == Verbosity::Quiet
    }

    /// Columns for tables: those of `COLUMNS`, else 100.
    pub(crate) fn width(&self) -> u16 {
        std::env::var("COLUMNS")
            .ok()
            .and_then(|columns| columns.parse().ok())
            .unwrap_or(100)
    }

    /// Whether standard error is a terminal that may be redrawn.
    pub(crate) fn is_live(&self) -> bool {
        !self.is_quiet() && std::io::stderr().is_terminal()
    }

    /// Whether a person can be asked: both ends are terminals.
    pub(crate) fn can_ask(&self) -> bool {
        self.format == Format::Text && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }

    /// Prints a result: as JSON if that was asked for, else as text.
    pub(crate) fn result(
        &mut self,
        value: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        match self.format {
            Format::Text => {
                self.text(&text());
                Ok(())
            }
            Format::Json => self.json(value),
        }
    }

    /// Prints one JSON object.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(Failure::internal)?;
        self.text(&text);
        Ok(())
    }

    /// Prints text on standard output. A reader that has left is no fault of ours.
    pub(crate) fn text(&mut self, text: &str) {
        let mut out = std::io::stdout().lock();
        let ended = text.ends_with('\n') || text.is_empty();
        let _ = out.write_all(text.as_bytes());
        let _ = out.write_all(if ended { b"" } else { b"\n" });
        let _ = out.flush();
    }

    /// Prints a remark on standard error, unless it is quiet.
    pub(crate) fn note(&mut self, text: &str) {
        if !self.is_quiet() {
            self.error_line(text);
        }
    }

    /// Prints an error and says with which code to leave.
    pub(crate) fn failure(&mut self, failure: &Failure) -> ExitCode {
        if self.format == Format::Json {
            let _ = self.json(&failure.to_json());
        }
        self.error_line(&failure.render());
        failure.code()
    }

    fn error_line(&mut self, text: &str) {
        let mut err = std::io::stderr().lock();
        let _ = writeln!(err, "{}", text.trim_end());
    }
}

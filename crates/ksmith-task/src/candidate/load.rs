//! Reads a candidate folder and checks everything that needs no task.

use std::fs;
use std::ops::Range;
use std::path::Path;

use super::flags::{check_cpu_flag, check_cuda_flag};
use super::manifest::CandidateDocument;
use super::{Candidate, CpuProgram, Program};
use crate::CandidateError;
use crate::contract::Backend;
use crate::document::{At, Formula, Literal, translate};
use crate::expr::Expr;

const MAX_MANIFEST: u64 = 256 << 10;

/// Where errors point.
pub(super) struct Place<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Place<'_> {
    pub(super) fn error(&self, span: &Range<usize>, message: impl Into<String>) -> CandidateError {
        CandidateError::new(self.path, self.text, Some(span.clone()), message)
    }

    /// An expression; its names are checked against the task later.
    pub(super) fn expr(&self, formula: &Formula) -> Result<Expr, CandidateError> {
        match &formula.value {
            Literal::Int(value) => Ok(Expr::int(*value)),
            Literal::Float(value) => Ok(Expr::float(*value)),
            Literal::Text(text) => Expr::parse(text).map_err(|error| {
                let plain = self
                    .text
                    .get(formula.span.clone())
                    .is_some_and(|s| s.len() == text.len() + 2);
                let start = formula.span.start + 1 + error.span.start;
                let span = if plain {
                    start..start + error.span.len()
                } else {
                    formula.span.clone()
                };
                self.error(&span, error.message.clone()).maybe_help(error.help)
            }),
        }
    }

    pub(super) fn exprs(&self, formulas: &[Formula]) -> Result<Vec<Expr>, CandidateError> {
        formulas.iter().map(|formula| self.expr(formula)).collect()
    }
}

impl Candidate {
    /// Reads and checks the candidate in `dir`.
    pub fn load(dir: impl AsRef<Path>) -> Result<Self, CandidateError> {
        let dir = dir.as_ref();
        let path = dir.join("candidate.toml");
        let read = |error: std::io::Error| {
            CandidateError::file(&path, format!("cannot read `{}`: {error}", path.display()))
                .help("a candidate is a folder with a `candidate.toml` and its sources")
        };
        let metadata = fs::symlink_metadata(&path).map_err(read)?;
        if !metadata.is_file() || metadata.len() > MAX_MANIFEST {
            return Err(CandidateError::file(
                &path,
                "the manifest is not a plain file of at most 256 KiB",
            ));
        }
        let text = fs::read_to_string(&path).map_err(read)?;
        let document: CandidateDocument =
            toml::from_str(&text).map_err(|error| translate(&path, &text, &error, 0))?;
        let place = Place {
            path: &path,
            text: &text,
        };
        if document.schema.value != 1 {
            return Err(place
                .error(
                    &document.schema.span,
                    format!("schema {} is not known", document.schema.value),
                )
                .expected("expected 1"));
        }
        let backend = document.backend.value;
        let sources = place.sources(dir, &document.sources, backend)?;
        for flag in &document.flags {
            let checked = match backend {
                Backend::Cpu => check_cpu_flag(flag),
                Backend::Cuda => check_cuda_flag(flag),
            };
            checked.map_err(|error| {
                place
                    .error(&flag.span, error.to_string())
                    .expected("not on the allow-list")
            })?;
        }
        let program = match backend {
            Backend::Cpu => Program::Cpu(place.cpu(&document)?),
            Backend::Cuda => Program::Cuda(place.cuda(&document)?),
        };
        Ok(Self {
            dir: dir.to_owned(),
            sources,
            program,
            manifest: text,
        })
    }
}

impl Place<'_> {
    fn cpu(&self, document: &CandidateDocument) -> Result<CpuProgram, CandidateError> {
        let foreign = [
            document.compiler.as_ref().map(|value| ("compiler", &value.span)),
            document.arch.as_ref().map(|value| ("arch", &value.span)),
            document.headers.first().map(|value| ("headers", &value.span)),
            document.workspace.first().map(|value| ("workspace", &value.span)),
            document.tensormap.first().map(|value| ("tensormap", &value.span)),
            document.setup.first().map(|value| ("setup", &value.span)),
            document.variant.first().map(|value| ("variant", &value.span)),
        ];
        if let Some((key, span)) = foreign.into_iter().flatten().next() {
            return Err(self
                .error(span, format!("`{key}` is a key of CUDA candidates"))
                .expected("not for backend `cpu`"));
        }
        let Some(entry) = &document.entry else {
            return Err(self
                .error(
                    &document.backend.span,
                    "a CPU candidate needs its exported symbol",
                )
                .expected("expected the key `entry` beside this one"));
        };
        let symbol = entry.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && entry.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && entry.len() <= 128;
        if !symbol {
            return Err(self
                .error(
                    &entry.span,
                    format!("`{}` cannot be a symbol", entry.value.escape_debug()),
                )
                .expected("expected a C identifier"));
        }
        Ok(CpuProgram {
            entry: entry.value.clone(),
            flags: document.flags.iter().map(|flag| flag.value.clone()).collect(),
            libraries: self.libraries(&document.libraries)?,
        })
    }

    pub(super) fn libraries(&self, names: &[At<String>]) -> Result<Vec<String>, CandidateError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+');
        names
            .iter()
            .map(|name| {
                let starts = name.starts_with(|c: char| c.is_ascii_alphanumeric());
                if starts && name.chars().all(plain) && !name.contains("..") {
                    return Ok(name.value.clone());
                }
                Err(self
                    .error(
                        &name.span,
                        format!("`{}` is not a library", name.value.escape_debug()),
                    )
                    .expected("expected a name without path or flag"))
            })
            .collect()
    }
}

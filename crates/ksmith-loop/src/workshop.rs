//! Where judges and writers come from: the real ones, or scripted ones in tests.

use std::path::Path;

use ksmith_task::Instance;

use crate::arena::{Arena, ArenaError, JudgeArena};
use crate::writer::{FolderWriter, SearchWriter, Writer, WriterError};
use crate::{Sandbox, WriterChoice};

/// Where judges and writers come from.
pub trait Workshop {
    /// Opens a judge for one instance, with its state in the run's folder.
    ///
    /// # Errors
    /// When the task cannot be judged here.
    fn arena(&self, instance: &Instance, run: &Path, sandbox: Sandbox) -> Result<Box<dyn Arena>, ArenaError>;

    /// Makes the writer that was asked for. `cache` is the tuner cache, if it is switched on.
    ///
    /// # Errors
    /// When it cannot be had.
    fn writer(
        &self,
        choice: &WriterChoice,
        instance: &Instance,
        cache: Option<&Path>,
    ) -> Result<Box<dyn Writer>, WriterError>;
}

/// The real judge and the built-in writers.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuiltIn;

impl Workshop for BuiltIn {
    fn arena(&self, instance: &Instance, run: &Path, sandbox: Sandbox) -> Result<Box<dyn Arena>, ArenaError> {
        Ok(Box::new(JudgeArena::open(instance, run, sandbox)?))
    }

    fn writer(
        &self,
        choice: &WriterChoice,
        instance: &Instance,
        cache: Option<&Path>,
    ) -> Result<Box<dyn Writer>, WriterError> {
        Ok(match choice {
            WriterChoice::Search => Box::new(SearchWriter::new(instance, cache)?),
            WriterChoice::Folder(folder) => Box::new(FolderWriter::new(folder)?),
        })
    }
}

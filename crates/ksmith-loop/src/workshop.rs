//! Where judges and writers come from: the real ones, or scripted ones in tests.

use std::path::Path;

use ksmith_agents::review::Reviewer;
use ksmith_task::{Backend, Instance};

use crate::arena::{Arena, ArenaError, JudgeArena};
use crate::writer::{ApiWriter, CliWriter, FolderWriter, ReplayWriter, SearchWriter, Writer, WriterError};
use crate::{
    Account, AgentHost, AgentOptions, Interrupt, Recorder, ReviewOptions, ReviewerError, Sandbox,
    WriterChoice,
};

/// What a writer or a reviewer is made with.
#[derive(Debug, Clone)]
pub struct Setting<'a> {
    /// The instance.
    pub instance: &'a Instance,
    /// The target.
    pub backend: Backend,
    /// The run's folder.
    pub run: &'a Path,
    /// The tuner cache, if it is switched on.
    pub cache: Option<&'a Path>,
    /// Whether the user allowed to run without a sandbox.
    pub sandbox: Sandbox,
    /// What the user asked of agents.
    pub agents: &'a AgentOptions,
    /// What of the machine agents may use.
    pub host: &'a AgentHost,
    /// The account of the run's models.
    pub account: Account,
    /// Appends records from the writer's threads.
    pub recorder: Recorder,
    /// The wish to stop.
    pub interrupt: Interrupt,
}

/// Where judges and writers come from.
pub trait Workshop {
    /// Opens a judge for one instance, with its state in the run's folder.
    ///
    /// # Errors
    /// When the task cannot be judged here.
    fn arena(
        &self,
        instance: &Instance,
        backend: Backend,
        run: &Path,
        sandbox: Sandbox,
    ) -> Result<Box<dyn Arena>, ArenaError>;

    /// Makes the writer that was asked for.
    ///
    /// # Errors
    /// When it cannot be had.
    fn writer(&self, choice: &WriterChoice, setting: &Setting<'_>) -> Result<Box<dyn Writer>, WriterError>;

    /// Makes the reviewer that was asked for; none where nobody is to review.
    ///
    /// # Errors
    /// When it cannot be had.
    fn reviewer(
        &self,
        options: &ReviewOptions,
        setting: &Setting<'_>,
    ) -> Result<Option<Box<dyn Reviewer>>, ReviewerError> {
        crate::judgement::of_run(options, setting)
    }
}

/// The real judge and the built-in writers.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuiltIn;

impl Workshop for BuiltIn {
    fn arena(
        &self,
        instance: &Instance,
        backend: Backend,
        run: &Path,
        sandbox: Sandbox,
    ) -> Result<Box<dyn Arena>, ArenaError> {
        Ok(Box::new(JudgeArena::open(instance, backend, run, sandbox)?))
    }

    fn writer(&self, choice: &WriterChoice, setting: &Setting<'_>) -> Result<Box<dyn Writer>, WriterError> {
        Ok(match choice {
            WriterChoice::Search => Box::new(SearchWriter::new(setting.instance, setting.cache)?),
            WriterChoice::Folder(folder) => Box::new(FolderWriter::new(folder)?),
            WriterChoice::Cli(profile) => Box::new(CliWriter::new(profile, setting)?),
            WriterChoice::Api(model) => Box::new(ApiWriter::new(model, setting)?),
            WriterChoice::Replay(run) => Box::new(ReplayWriter::new(run, setting)?),
        })
    }
}

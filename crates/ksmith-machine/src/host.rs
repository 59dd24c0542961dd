//! What probes may ask of a machine, as a trait, so that tests can script machines that are not at hand.
//!
//! Every external command has a time limit and a byte cap; a command that hangs is an answer ([`Ended::TimedOut`]),
//! never a wait without end.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Gpu;

/// A command to run: program, arguments, time limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Name or path of the program.
    pub program: String,
    /// Arguments, without the program.
    pub args: Vec<String>,
    /// After this long the command's process group is killed.
    pub limit: Duration,
    /// Names of environment variables that the command may see; all others are cleared but the search path, the home
    /// folder and the locale.
    pub inherit: Vec<String>,
}

impl Command {
    /// A command with the default limit of five seconds.
    pub fn new<S: Into<String>>(program: impl Into<String>, args: impl IntoIterator<Item = S>) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            limit: Duration::from_secs(5),
            inherit: Vec::new(),
        }
    }

    /// The same command with another time limit.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The same command with some environment variables passed on.
    #[must_use]
    pub fn inherit(mut self, names: &[&str]) -> Self {
        self.inherit = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// The line a person would type, for findings.
    pub fn line(&self) -> String {
        let mut line = self.program.clone();
        for arg in &self.args {
            line.push(' ');
            line.push_str(arg);
        }
        line
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this status; a signal counts as 128 plus its number, as in a shell.
    Exited(i32),
    /// It was killed at its time limit.
    TimedOut,
    /// No such program.
    NotFound,
    /// It could not be started for another reason.
    NotStarted,
}

/// End and output of a command. Output is cut at 1 MiB per stream and read as UTF-8 with replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// How it ended.
    pub ended: Ended,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Output {
    /// An output for a command that never ran.
    pub fn absent(ended: Ended) -> Self {
        Self {
            ended,
            stdout: String::new(),
            stderr: String::new(),
        }
    }

    /// Standard output, if the command exited with status 0.
    pub fn success(&self) -> Option<&str> {
        (self.ended == Ended::Exited(0)).then_some(self.stdout.as_str())
    }

    /// Standard output followed by standard error.
    pub fn both(&self) -> String {
        format!("{}\n{}", self.stdout, self.stderr)
    }
}

/// A machine that can be asked.
pub trait Host {
    /// Runs a command within its limit.
    fn run(&self, command: &Command) -> Output;
    /// The text of a small file (at most 1 MiB), if it can be read.
    fn read(&self, path: &Path) -> Option<String>;
    /// The names in a folder, sorted; empty if it cannot be listed.
    fn list(&self, path: &Path) -> Vec<String>;
    /// Whether a path exists.
    fn exists(&self, path: &Path) -> bool;
    /// Where a program lies on the search path.
    fn find(&self, program: &str) -> Option<PathBuf>;
    /// The home folder of the user.
    fn home(&self) -> Option<PathBuf>;
    /// Whether an environment variable has a value that is not empty. Values are never read: they may be keys.
    fn has_env(&self, name: &str) -> bool;
    /// GPUs as the NVIDIA management library reports them; `None` if it could not be loaded or did not answer.
    fn nvml_gpus(&self) -> Option<Vec<Gpu>>;
}

//! A command as a reviewer: request on standard input and as files, verdict on standard output, nothing writable.
//!
//! It runs in a box without network and sees a copy of what is under review, read-only; the copy is hashed before and
//! after. Its answer comes through a pipe that only this program holds, so that no file, planted or left over, is ever
//! read as a verdict.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ksmith_box::{BoxSpec, Ended, Level, Limits, Profile};
use ksmith_task::chain;

use super::attempt::{Silence, Spoken, Voice};
use super::prompt::Prompt;
use super::vendor::{Identity, Vendor};
use crate::process::Cause;
use crate::writers::{Bounds, Snapshot};

/// Bytes of an answer.
const ANSWER_BYTES: usize = 256 << 10;
/// Where a program without a path is looked for.
const PROGRAM_FOLDERS: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// Why a command cannot be a reviewer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// There is no command.
    #[error("the reviewer's command is empty")]
    Empty,
    /// The program is not there.
    #[error("the reviewer's program `{0}` is not there")]
    NoProgram(String),
}

/// A command as a reviewer.
#[derive(Debug, Clone)]
pub struct CommandReviewer {
    identity: Identity,
    program: PathBuf,
    args: Vec<String>,
    shown: Vec<PathBuf>,
    limit: Duration,
    least: Level,
}

impl CommandReviewer {
    /// Reads a command: words separated by white space, of which the first is a program. Words that name files are
    /// shown to it read-only.
    ///
    /// `vendor` is what the user says of it; else it is told from the words. `limit` bounds one attempt.
    ///
    /// # Errors
    /// When there is no such program.
    pub fn new(command: &str, vendor: Option<Vendor>, limit: Duration) -> Result<Self, CommandError> {
        let mut words = command.split_whitespace();
        let first = words.next().ok_or(CommandError::Empty)?;
        let program = find(first).ok_or_else(|| CommandError::NoProgram(first.to_owned()))?;
        let mut shown = vec![program.clone()];
        let args = words
            .map(|word| match Path::new(word).canonicalize() {
                Ok(path) if path.is_file() => {
                    shown.push(path.clone());
                    path.display().to_string()
                }
                Ok(_) | Err(_) => word.to_owned(),
            })
            .collect();
        Ok(Self {
            identity: Identity {
                name: format!("command:{command}"),
                vendor: vendor.unwrap_or_else(|| Vendor::of_model(command)),
            },
            program,
            args,
            shown,
            limit,
            least: Level::Kernel,
        })
    }

    /// Sets the least isolation; below it the reviewer is not asked.
    #[must_use]
    pub fn least(mut self, least: Level) -> Self {
        self.least = least;
        self
    }

    fn spec(&self, prompt: &Prompt, folder: &Path, home: &Path) -> BoxSpec {
        let spec = BoxSpec::program(&self.program, Profile::Agent)
            .args(self.args.iter().cloned())
            .env("PATH", &PROGRAM_FOLDERS.join(":"))
            .env("HOME", &home.display().to_string())
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb")
            .system()
            .read_only(folder)
            .read_write(home)
            .cwd(folder)
            .stdin(prompt.text.clone())
            .limits(Limits {
                wall: Some(self.limit),
                cpu: None,
                output_bytes: ANSWER_BYTES,
                ..Limits::default()
            })
            .least(self.least);
        let system = ["/usr/", "/bin/", "/lib/", "/lib64/"];
        self.shown
            .iter()
            .filter(|path| !system.iter().any(|folder| path.starts_with(folder)))
            .fold(spec, |spec, path| spec.read_only(path))
    }
}

fn find(word: &str) -> Option<PathBuf> {
    if word.contains('/') {
        return Path::new(word).canonicalize().ok().filter(|path| path.is_file());
    }
    PROGRAM_FOLDERS
        .iter()
        .filter_map(|folder| Path::new(folder).join(word).canonicalize().ok())
        .find(|path| path.is_file())
}

impl Voice for CommandReviewer {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn ask(&mut self, prompt: &Prompt) -> Result<Spoken, Silence> {
        let silent = |cause: Cause, detail: String| Silence {
            cause,
            detail,
            said: Vec::new(),
        };
        let failed = |error: io::Error| {
            silent(
                Cause::ReviewCouldNotRun,
                format!("its folder cannot be made: {error}"),
            )
        };
        let stage = tempfile::tempdir().map_err(failed)?;
        // The box runs as another user, who must be able to pass and to read.
        open(stage.path()).map_err(failed)?;
        let (folder, home) = (stage.path().join("review"), stage.path().join("home"));
        fs::create_dir(&home).map_err(failed)?;
        lay_out(prompt, &folder).map_err(failed)?;
        let look = || Snapshot::read(&folder, &[], Bounds::GIVEN);
        let before = look();
        let finished = ksmith_box::run(&self.spec(prompt, &folder, &home))
            .map_err(|error| silent(Cause::ReviewCouldNotRun, chain(&error)))?;
        let said = finished.stdout;
        if let Some(detail) = before.first_difference(&look()) {
            return Err(Silence {
                cause: Cause::ReviewWroteFiles,
                detail,
                said,
            });
        }
        match finished.ended {
            Ended::Exited(0) => Ok(Spoken {
                bytes: said,
                is_cut: finished.truncated,
            }),
            Ended::TimedOut => Err(Silence {
                cause: Cause::ReviewTimedOut,
                detail: format!("no answer within {:.0} s", self.limit.as_secs_f64()),
                said,
            }),
            ended @ (Ended::Exited(_)
            | Ended::Signal(_)
            | Ended::OutOfMemory
            | Ended::ForbiddenCall(_)
            | Ended::Killed) => Err(Silence {
                cause: Cause::ReviewEnded,
                detail: format!("it {ended}; {}", tail(&finished.stderr)),
                said,
            }),
        }
    }
}

/// Writes the request's parts, readable for everybody.
fn lay_out(prompt: &Prompt, folder: &Path) -> io::Result<()> {
    fs::create_dir(folder)?;
    open(folder)?;
    let request = ("request.txt".to_owned(), prompt.text.clone().into_bytes());
    let schema = ("schema.json".to_owned(), prompt.schema.to_string().into_bytes());
    for (name, bytes) in prompt.files.iter().chain([&request, &schema]) {
        let path = folder.join(name);
        fs::write(&path, bytes)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444))?;
    }
    Ok(())
}

fn open(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))
}

/// The last words on standard error, on one line.
fn tail(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    last.map_or_else(
        || "it said nothing on standard error".to_owned(),
        |line| line.chars().filter(|c| !c.is_control()).take(200).collect(),
    )
}

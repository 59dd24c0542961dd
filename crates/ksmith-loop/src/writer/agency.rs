//! What all agents as writers share: the desk of a session, its tools, what is read and recorded afterwards, and when an
//! agent is given up.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ksmith_agents::process::{Statement, unproved};
use ksmith_agents::tools::{Called, Log, Server};
use ksmith_agents::writers::{
    Answer, Approver, Deny, Desk, Ending, Facts, Laid, Outcome, Request, Snapshot, decide, unified,
};
use ksmith_ledger::{AgentCall, ToolCall};
use ksmith_task::{Brief, Instance, Proposal, chain};
use serde_json::{Value, json};

use super::desk::GRANTED;
use super::verbs::{Handed, LoopVerbs};
use super::{Direction, WriterError};
use crate::workshop::Setting;
use crate::{AgentHost, AgentOptions, Approve, Interrupt, Recorder, Sandbox};

/// Sessions in a row that leave nothing before the agent is given up.
const GIVE_UP: u32 = 3;
/// Part of the wall time left that one session may take: what it leaves must still be judged.
const PART_OF_WALL: f64 = 0.6;
/// The folder of the sockets, inside one that keeps everybody else out.
const SOCKETS: &str = "s";
/// What every agent is told; the rest stands in the brief.
pub(super) const PROMPT: &str = "Read BRIEF.md in this folder and do what it asks. Change the files in candidate/ so \
                                 that the kernel is faster and still right, state your one idea in proposal.toml, \
                                 then stop.";

/// What all agents as writers share.
pub(super) struct Agency {
    pub(super) instance: Instance,
    pub(super) run: PathBuf,
    pub(super) sandbox: Sandbox,
    pub(super) options: AgentOptions,
    pub(super) host: AgentHost,
    pub(super) recorder: Recorder,
    pub(super) interrupt: Interrupt,
    pub(super) verbs: Arc<LoopVerbs>,
    sockets: tempfile::TempDir,
}

/// What one session left.
pub(super) struct Left {
    pub(super) ending: Ending,
    pub(super) proposals: Vec<Proposal>,
    /// What it said beside them.
    pub(super) statement: Statement,
}

/// What a session said, for the record.
pub(super) struct Heard<'a> {
    pub(super) agent: String,
    pub(super) output: &'a [u8],
    pub(super) errors: &'a [u8],
    pub(super) wall: Duration,
    pub(super) detail: Value,
}

/// The tools of one session; they end with it.
pub(super) struct Served {
    pub(super) socket: PathBuf,
    _server: Server,
}

/// Writes tool calls into the ledger before their answers go out.
pub(super) struct Book(pub(super) Recorder);

impl Log for Book {
    fn write(&self, called: &Called) -> std::io::Result<()> {
        let arguments = self.0.put(called.arguments.to_string().as_bytes())?;
        let answer = serde_json::to_vec(&called.answer).map_err(std::io::Error::other)?;
        self.0.append(ToolCall {
            tool: called.tool.clone(),
            arguments,
            answer: Some(self.0.put(&answer)?),
            allowed: called.allowed(),
            ms: called.answer.cost.ms,
        })
    }
}

pub(super) fn failed(error: &dyn std::error::Error) -> WriterError {
    WriterError::Failed(chain(error))
}

/// The one direction that can be named before an agent has looked.
pub(super) fn direction(agent: &str) -> Direction {
    Direction {
        name: "agent".into(),
        idea: format!("what `{agent}` finds in the baseline's source and machine code"),
        value: 1.5,
        risk: "nothing is known of it before it is judged".into(),
    }
}

fn io<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> WriterError + 'a {
    move |source| WriterError::Io {
        what,
        path: path.to_owned(),
        source,
    }
}

impl Agency {
    /// # Errors
    /// When the folder for sockets cannot be made.
    pub(super) fn new(setting: &Setting<'_>) -> Result<Self, WriterError> {
        let temporary = std::env::temp_dir();
        // Paths of sockets are short, and those of runs are not.
        let sockets = tempfile::Builder::new()
            .prefix("ksmith-")
            .tempdir()
            .map_err(io("make a folder in", &temporary))?;
        let inner = sockets.path().join(SOCKETS);
        std::fs::create_dir(&inner).map_err(io("create", &inner))?;
        let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
        std::fs::set_permissions(&inner, mode).map_err(io("open", &inner))?;
        Ok(Self {
            sockets,
            verbs: Arc::new(LoopVerbs::new(
                setting.instance.clone(),
                setting.run,
                setting.sandbox,
            )),
            instance: setting.instance.clone(),
            run: setting.run.to_owned(),
            sandbox: setting.sandbox,
            options: setting.agents.clone(),
            host: setting.host.clone(),
            recorder: setting.recorder.clone(),
            interrupt: setting.interrupt.clone(),
        })
    }

    /// The folder that holds nothing but sockets; its parent lets nobody else through.
    pub(super) fn sockets(&self) -> PathBuf {
        self.sockets.path().join(SOCKETS)
    }

    /// Where the desk of a session stands.
    pub(super) fn root(brief: &Brief, number: u32) -> PathBuf {
        brief.out.join(format!("session-{number}"))
    }

    pub(super) fn lay(&self, root: &Path, laid: &Laid) -> Result<Arc<Desk>, WriterError> {
        Desk::lay(root, laid)
            .map(Arc::new)
            .map_err(|error| failed(&error))
    }

    /// Offers the tools of a session on a socket.
    pub(super) fn serve(&self, desk: &Arc<Desk>, brief: &Brief) -> Result<Served, WriterError> {
        let socket = self.sockets().join("tools.sock");
        self.verbs.begin(Arc::clone(desk), brief);
        let log = Arc::new(Book(self.recorder.clone()));
        let server =
            Server::start(&socket, Arc::clone(&self.verbs) as _, log).map_err(io("listen on", &socket))?;
        Ok(Served {
            socket,
            _server: server,
        })
    }

    /// Reads the desk, on which nobody works any more. `facts` says what was seen of the session otherwise.
    pub(super) fn read(
        &self,
        desk: &Desk,
        facts: Facts,
        handed: Vec<Handed>,
        wanted: usize,
    ) -> Result<Left, WriterError> {
        let interrupted = facts.interrupted;
        let prose = facts.said.last.clone();
        let candidate = desk.candidate();
        let changed = candidate.files != desk.began_with().files && !candidate.files.is_empty();
        let ending = decide(&Facts {
            protected: desk.changed_given(),
            oddities: candidate.oddities.iter().map(ToString::to_string).collect(),
            changed: changed || !handed.is_empty(),
            ..facts
        });
        let mut proposals = Vec::new();
        let note = desk.note();
        let statement = Statement {
            claims: note.claims.clone(),
            prose,
        };
        // A session that the user cut short is begun anew.
        if ending.outcome.may_leave_files() && !interrupted {
            let last = handed.last().map(|last| last.digest);
            proposals.extend(handed.into_iter().map(|handed| handed.proposal));
            if changed && last != Some(candidate.digest()) {
                let folder = desk
                    .take(&candidate)
                    .map_err(io("copy the candidate from", &desk.path()))?;
                proposals.push(super::verbs::proposal(note, folder));
            }
            // What was handed in first was meant first.
            proposals.truncate(wanted);
        }
        Ok(Left {
            ending,
            proposals,
            statement,
        })
    }

    /// Writes the session down: what it was told, what it said, how it ended, what it left beside its candidate.
    pub(super) fn record(&self, left: &Left, heard: Heard<'_>, desk: &Desk) -> Result<(), WriterError> {
        let outside = desk.outside();
        let granted: Vec<_> = outside
            .iter()
            .filter(|file| self.grants(&heard.agent, &file.path, &file.bytes))
            .collect();
        let mut detail = heard.detail;
        detail["outcome"] = json!(left.ending.outcome);
        detail["code"] = json!(left.ending.code);
        detail["outside"] = outside.iter().map(|file| file.path.clone()).collect();
        detail["granted"] = granted.iter().map(|file| file.path.clone()).collect();
        detail["proposals"] = json!(left.proposals.len());
        detail["claims"] = json!(left.statement.claims);
        detail["unproved"] = json!(unproved(&left.statement.prose));
        let put = |bytes: &[u8]| self.recorder.put(bytes).map_err(|error| failed(&error));
        let call = AgentCall {
            agent: heard.agent,
            purpose: "propose".into(),
            prompt: put(PROMPT.as_bytes())?,
            answer: Some(put(heard.output)?),
            errors: (!heard.errors.is_empty())
                .then(|| put(heard.errors))
                .transpose()?,
            ended: format!("{}: {}", left.ending.code, left.ending.reason),
            detail,
            ms: heard.wall.as_secs_f64() * 1e3,
        };
        self.recorder.append(call).map_err(|error| failed(&error))?;
        let files = granted.iter().map(|file| (file.path.clone(), file.bytes.clone()));
        let granted = Snapshot {
            files: files.collect(),
            oddities: Vec::new(),
        };
        if granted.files.is_empty() {
            return Ok(());
        }
        let folder = GRANTED
            .iter()
            .fold(self.run.clone(), |path, part| path.join(part));
        granted.write(&folder).map_err(io("keep files in", &folder))
    }

    /// Whether a file beside the candidate is to be kept for the next session: no, unless a person says yes.
    fn grants(&self, agent: &str, path: &str, bytes: &[u8]) -> bool {
        let request = Request {
            what: format!("agent `{agent}` left `{path}` outside its candidate and would find it again"),
            diff: unified(path, b"", bytes),
        };
        self.approver().answer(&request) == Answer::Granted
    }

    /// Whoever answers requests that leave the policy: nobody, unless the user asked to be asked.
    pub(super) fn approver(&self) -> &dyn Approver {
        match self.options.approve {
            Approve::Deny => &Deny,
            Approve::Ask => &*self.host.approver,
        }
    }

    /// Holds sessions until one leaves proposals, the user wants to stop, or the agent is given up; gives what the last
    /// one left and said. `session` gets its number and its wall time.
    pub(super) fn sessions(
        &self,
        brief: &Brief,
        mut session: impl FnMut(u32, Duration) -> Result<Left, WriterError>,
    ) -> Result<(Vec<Proposal>, Statement), WriterError> {
        let began = Instant::now();
        for number in 1..=GIVE_UP {
            let left = brief.left.wall_s - began.elapsed().as_secs_f64();
            let wall = (left * PART_OF_WALL).min(self.options.session_s).max(1.0);
            let left = session(number, Duration::from_secs_f64(wall))?;
            if !left.proposals.is_empty() || self.interrupt.is_requested() {
                return Ok((left.proposals, left.statement));
            }
            let gives_up = match left.ending.outcome {
                // Nothing more can be asked of it.
                Outcome::BudgetSpent => true,
                Outcome::Finished
                | Outcome::NoChange
                | Outcome::TurnLimit
                | Outcome::ApiError
                | Outcome::Denied
                | Outcome::Crashed
                | Outcome::TimedOut => number == GIVE_UP,
            };
            if gives_up {
                return Err(WriterError::Failed(format!(
                    "{} ({}) in the last of {number} sessions that left nothing",
                    left.ending.code, left.ending.reason
                )));
            }
        }
        Ok((Vec::new(), Statement::default()))
    }
}

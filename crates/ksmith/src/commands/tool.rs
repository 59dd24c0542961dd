//! `ksmith tool`

use std::path::PathBuf;
use std::time::Duration;

use ksmith_agents::tools::{Envelope, SOCKET_VARIABLE, ToolVerdict, Verb, ask};
use ksmith_task::ExitCode;
use serde_json::{Map, Value};

use super::Outcome;
use crate::failure::Failure;
use crate::ui::Ui;

/// Ask one of the probes that a run offers to its agent
///
/// Works inside an agent's box, where KSMITH_TOOLS names the socket. The verbs are probes on visible cases: what
/// counts is the judge's own run after the session. Prints one JSON object. Exit 0 unless the probe failed (1), the
/// request was refused (2) or the tools cannot be reached (3).
///
/// Example: ksmith tool check
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// task, know, check, test, bench, profile, diff or submit
    verb: Verb,
    /// Words to search for, with `know`
    query: Vec<String>,
    /// Ask for the answer of earlier work by its ticket
    #[arg(long, value_name = "TICKET")]
    ticket: Option<String>,
    /// Seconds to wait for long work before a ticket is given instead
    #[arg(long, default_value_t = 90, value_name = "SECONDS")]
    wait: u64,
    /// The socket of the tools [default: KSMITH_TOOLS]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// The socket that was named, or the one of the box.
pub(crate) fn socket(named: Option<&PathBuf>) -> Result<PathBuf, Failure> {
    named
        .cloned()
        .or_else(|| std::env::var_os(SOCKET_VARIABLE).map(PathBuf::from))
        .ok_or_else(|| {
            Failure::new(ExitCode::Environment, format!("{SOCKET_VARIABLE} names no socket of tools")).hint(
                "The tools live inside a run: `ksmith run TASK --writer cli:PROFILE`. Outside one, use `ksmith check`, \
                 `test` and `bench`.",
            )
        })
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let socket = socket(args.socket.as_ref())?;
    let mut arguments = Map::new();
    if let Some(ticket) = &args.ticket {
        arguments.insert("ticket".into(), Value::String(ticket.clone()));
    }
    if !args.query.is_empty() {
        arguments.insert("query".into(), Value::String(args.query.join(" ")));
    }
    let wait = Duration::from_secs(args.wait);
    let envelope = ask(&socket, args.verb.name(), &Value::Object(arguments), wait)
        .map_err(|error| Failure::of(ExitCode::Environment, &error))?;
    ui.json(&envelope)?;
    Ok(code(&envelope))
}

fn code(envelope: &Envelope) -> ExitCode {
    match envelope.verdict {
        ToolVerdict::Passed | ToolVerdict::Info | ToolVerdict::Pending => ExitCode::Done,
        ToolVerdict::Failed => ExitCode::NotAccepted,
        ToolVerdict::Refused => ExitCode::Usage,
        ToolVerdict::Unavailable => ExitCode::Environment,
    }
}

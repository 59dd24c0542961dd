//! `ksmith export`

use std::path::{Path, PathBuf};

use ksmith_ledger::{CERTIFICATE_FILE, History, ObjectStore};
use ksmith_task::ExitCode;
use serde_json::json;

use super::{Outcome, place};
use crate::failure::Failure;
use crate::ui::Ui;

/// Write the champion's sources, its C header and the certificate into a folder
///
/// Everything comes from the record, not from working copies. The folder must not exist.
///
/// Example: ksmith export 3f07 --out softmax-fast
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A run id, a unique prefix of one, or the path of a run folder
    run: String,
    /// The folder to make
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Another candidate than the champion
    #[arg(long, value_name = "ID")]
    candidate: Option<String>,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let found = place::find(&args.run)?;
    let history = History::load(&found.dir).map_err(|error| Failure::of(ExitCode::Changed, &error))?;
    let candidate = match &args.candidate {
        Some(id) => history
            .candidate(id)
            .ok_or_else(|| Failure::usage(format!("the run has no candidate `{id}`")))?,
        None => history.champion().ok_or_else(|| {
            Failure::new(
                ExitCode::NotAccepted,
                format!("the run has no champion: {}", history.without_champion()),
            )
        })?,
    };
    if args.out.exists() {
        return Err(Failure::usage(format!("`{}` exists already", args.out.display()))
            .hint("Name a folder that does not exist; nothing is overwritten."));
    }
    let store = ObjectStore::new(&found.dir);
    store
        .extract(candidate.proposed.tree, &args.out)
        .map_err(|error| Failure::of(ExitCode::Changed, &error))?;
    let header = args.out.join(format!("{}.h", history.opened.task));
    // A candidate may have a file of that name itself.
    if !header.exists()
        && let Some(text) = ksmith_loop::header_of(&found.dir)?
    {
        write(&header, text.as_bytes())?;
    }
    let certificate = found.dir.join(CERTIFICATE_FILE);
    let certified = certificate.is_file() && args.candidate.is_none();
    if certified {
        let bytes = std::fs::read(&certificate).map_err(|error| {
            Failure::new(
                ExitCode::Environment,
                format!("cannot read `{}`: {error}", certificate.display()),
            )
        })?;
        write(&args.out.join(CERTIFICATE_FILE), &bytes)?;
    }
    let value = json!({ "run": history.opened.run, "candidate": candidate.id(), "folder": args.out, "certificate": certified });
    ui.result(&value, || {
        let note = if certified {
            "with its certificate (`ksmith verify` checks the folder)"
        } else {
            "without a certificate"
        };
        format!(
            "{} of run {} lies in {}, {note}",
            candidate.id(),
            history.opened.run,
            args.out.display()
        )
    })?;
    Ok(ExitCode::Done)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes).map_err(|error| {
        Failure::new(
            ExitCode::Environment,
            format!("cannot write `{}`: {error}", path.display()),
        )
    })
}

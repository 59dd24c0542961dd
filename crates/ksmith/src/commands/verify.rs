//! `ksmith verify`

use std::path::{Path, PathBuf};

use ksmith_ledger::verify::{Head, VerifyOptions, verify, verify_certificate, verify_export};
use ksmith_ledger::{CERTIFICATE_FILE, Cause, Damage, LEDGER_FILE, PAGE_FILE, Place, Report, RunState};
use ksmith_report::html::Links;
use ksmith_report::{RunView, html, table};
use ksmith_task::ExitCode;
use serde_json::json;

use super::{Outcome, judge, place};
use crate::failure::Failure;
use crate::live::Live;
use crate::signals;
use crate::ui::Ui;

/// The manifest of a folder of sources.
const MANIFEST_FILE: &str = "candidate.toml";

/// Check a run's record, or rebuild and re-judge its champion
///
/// Checks chain, objects, seeds and certificate, and names the first damage with its place (exit 4). Without an
/// anchor only accidents are found: give the head hash that the run printed, or the public key you know.
/// Views and page are made anew and compared; the last line names what is missing and what nothing vouches for.
/// `--replay` takes task and champion from the record alone, compiles them again and judges the champion anew. An
/// exported folder, or a certificate by itself, is checked for what it holds: signature, claim, sources, header.
///
/// Example: ksmith verify 3f07 --head 5e8810c2a4f7
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A run id, a unique prefix of one, the path of a run folder, of an exported folder, or of a certificate
    run: String,
    /// The hash of the last record, as the run printed it, or its first 12 digits or more
    #[arg(long, value_name = "HASH")]
    head: Option<Head>,
    /// The public key that must have signed the certificate, 64 hex digits
    #[arg(long, value_name = "KEY", value_parser = parse_key)]
    key: Option<ksmith_ledger::PublicKey>,
    /// Rebuild and re-judge the champion from the record alone
    #[arg(long)]
    replay: bool,
    /// With --replay: run without a sandbox where the kernel gives none
    #[arg(long, requires = "replay")]
    unsandboxed: bool,
}

fn parse_key(text: &str) -> Result<ksmith_ledger::PublicKey, String> {
    text.parse().map_err(|_| "expected 64 hex digits".to_owned())
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    if let Some(path) = lone_certificate(&args.run) {
        return lone(args, &path, ui);
    }
    if is_bare_export(&args.run) {
        let damage = Damage {
            cause: Cause::CertificateUnreadable,
            place: Place {
                file: CERTIFICATE_FILE.into(),
                ..Place::default()
            },
            detail: "it is missing, so nothing says what the files of this folder should be".into(),
        };
        return damaged(&damage, ui);
    }
    let found = place::find(&args.run)?;
    let width = ui.width();
    let options = VerifyOptions {
        head: args.head.clone(),
        public_key: args.key,
        run: found.id.clone(),
    };
    let mut report = verify(&found.dir, &options);
    if report.is_intact() {
        page(&found.dir, &mut report);
    }
    if !report.is_intact() {
        ui.result(&report, || table::verification(&report, width))?;
        return Ok(ExitCode::Changed);
    }
    if !args.replay {
        ui.result(&report, || table::verification(&report, width))?;
        return Ok(ExitCode::Done);
    }
    let mut live = Live::new(ui);
    let sandbox = super::run::sandbox(args.unsandboxed);
    let replayed = ksmith_loop::replay(&found.dir, sandbox, &signals::interrupt()?, &mut live);
    live.finish();
    let replayed = replayed?;
    let Some(replayed) = replayed else {
        return Err(Failure::new(
            ExitCode::NotAccepted,
            format!("run `{}` has no champion to replay", args.run),
        ));
    };
    let value = json!({ "record": report, "replay": replayed });
    ui.result(&value, || {
        format!(
            "{}\nreplay of {}: rebuilt {}, judged anew:\n{}",
            table::verification(&report, width),
            replayed.candidate,
            if replayed.same_digest {
                "with the same digest"
            } else {
                "WITH ANOTHER DIGEST"
            },
            judge::text(&replayed.verdict, width)
        )
    })?;
    if !replayed.same_digest {
        return Ok(ExitCode::Changed);
    }
    Ok(judge::exit_code(Some(&replayed.verdict)))
}

/// The certificate that a path names, where no record lies beside it.
fn lone_certificate(wanted: &str) -> Option<PathBuf> {
    let path = Path::new(wanted);
    let file = if path.is_dir() {
        path.join(CERTIFICATE_FILE)
    } else {
        path.to_owned()
    };
    let beside = file.with_file_name(LEDGER_FILE);
    let is_certificate = file.extension().is_some_and(|extension| extension == "json");
    (is_certificate && file.is_file() && !beside.is_file()).then_some(file)
}

/// A certificate away from its record: what it holds by itself, and the sources that lie beside it.
fn lone(args: &Args, path: &Path, ui: &mut Ui) -> Outcome {
    if args.replay {
        return Err(
            Failure::usage("`--replay` needs the run's own folder: the record holds the task")
                .hint("Ask for the folder below `.ksmith/runs`."),
        );
    }
    let options = VerifyOptions {
        head: args.head.clone(),
        public_key: args.key,
        run: None,
    };
    let found = match verify_certificate(path, &options) {
        Ok(found) => found,
        Err(damage) => return damaged(&damage, ui),
    };
    // A certificate that is named by itself speaks for no folder.
    let exported = Path::new(&args.run)
        .is_dir()
        .then(|| verify_export(path, &found.certificate));
    let exported = match exported.transpose() {
        Ok(exported) => exported.unwrap_or_default(),
        Err(damage) => return damaged(&damage, ui),
    };
    let value = json!({
        "certificate": found.certificate,
        "key": found.key,
        "anchors": found.anchors,
        "sources_match": (!exported.checked.is_empty()).then_some(true),
        "files": exported,
    });
    let width = ui.width();
    ui.result(&value, || table::lone_certificate(&found, &exported, width))?;
    Ok(ExitCode::Done)
}

fn damaged(damage: &Damage, ui: &mut Ui) -> Outcome {
    ui.result(&json!({ "damage": damage }), || {
        format!("Damaged: {}.", ksmith_report::clean_line(&damage.to_string()))
    })?;
    Ok(ExitCode::Changed)
}

/// Whether a path names a folder of sources without record and certificate: an export that has lost its own.
fn is_bare_export(wanted: &str) -> bool {
    let folder = Path::new(wanted);
    let has = |name: &str| folder.join(name).exists();
    has(MANIFEST_FILE) && !has(CERTIFICATE_FILE) && !has(LEDGER_FILE)
}

/// Holds the page in a run's folder against the one that its record gives.
fn page(dir: &Path, report: &mut Report) {
    let path = dir.join(PAGE_FILE);
    let Ok(found) = std::fs::read(&path) else {
        if report.state == RunState::Closed {
            report
                .gaps
                .push(format!("`{PAGE_FILE}` is missing (`ksmith report` writes it)"));
        }
        return;
    };
    let Ok(view) = RunView::load(dir) else { return };
    if html::report(&view, Links::RunFolder).as_bytes() == found {
        return;
    }
    let written_here = view.history.opened.locks.get("judge").copied() == ksmith_loop::judge_digest().ok();
    // The page names the files beside it, and of an open run it may be older than the last records.
    if written_here && report.state == RunState::Closed && report.gaps.is_empty() {
        report.damage = Some(Damage {
            cause: Cause::ViewMismatch,
            place: Place {
                file: PAGE_FILE.into(),
                ..Place::default()
            },
            detail: "it is not what the ledger gives; `ksmith report` writes it anew".into(),
        });
    } else {
        report.gaps.push(format!(
            "`{PAGE_FILE}` is not the page that this program makes of the record (`ksmith report` writes it anew)"
        ));
    }
}

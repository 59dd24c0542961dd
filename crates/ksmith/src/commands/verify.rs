//! `ksmith verify`

use std::path::{Path, PathBuf};

use ksmith_ledger::verify::{VerifyOptions, verify, verify_certificate};
use ksmith_ledger::{CERTIFICATE_FILE, LEDGER_FILE};
use ksmith_report::table;
use ksmith_task::{Candidate, Digest, ExitCode};
use serde_json::json;

use super::{Outcome, judge, place};
use crate::failure::Failure;
use crate::live::Live;
use crate::signals;
use crate::ui::Ui;

/// Check a run's record, or rebuild and re-judge its champion
///
/// Checks chain, objects, seeds and certificate, and names the first damage with its place (exit 4). Without an
/// anchor only accidents are found: give the head hash that the run printed, or the public key you know.
/// `--replay` takes task and champion from the record alone, compiles them again and judges the champion anew. An
/// exported folder, or a certificate by itself, is checked for what it holds: signature, claim, sources.
///
/// Example: ksmith verify 3f07 --head 5e88…
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A run id, a unique prefix of one, the path of a run folder, of an exported folder, or of a certificate
    run: String,
    /// The hash of the last record, as the run printed it
    #[arg(long, value_name = "HASH")]
    head: Option<Digest>,
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
    let found = place::find(&args.run)?;
    let width = ui.width();
    let options = VerifyOptions {
        head: args.head,
        public_key: args.key,
        run: found.id.clone(),
    };
    let report = verify(&found.dir, &options);
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
            "the run has no champion to replay",
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
        head: args.head,
        public_key: args.key,
        run: None,
    };
    let found = match verify_certificate(path, &options) {
        Ok(found) => found,
        Err(damage) => {
            ui.result(&json!({ "damage": damage }), || format!("Damaged: {damage}."))?;
            return Ok(ExitCode::Changed);
        }
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    let sources = match (
        &found.certificate.champion,
        folder.join("candidate.toml").is_file(),
    ) {
        (Some(champion), true) => Candidate::load(folder)
            .map(|candidate| candidate.digest() == champion.digest)
            .ok()
            .or(Some(false)),
        (_, false) | (None, true) => None,
    };
    let value = json!({
        "certificate": found.certificate,
        "key": found.key,
        "anchors": found.anchors,
        "sources_match": sources,
    });
    let width = ui.width();
    ui.result(&value, || table::lone_certificate(&found, sources, width))?;
    Ok(match sources {
        Some(false) => ExitCode::Changed,
        Some(true) | None => ExitCode::Done,
    })
}

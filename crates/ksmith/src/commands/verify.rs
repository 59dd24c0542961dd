//! `ksmith verify`

use ksmith_ledger::verify::{VerifyOptions, verify};
use ksmith_report::table;
use ksmith_task::{Digest, ExitCode};
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
/// `--replay` takes task and champion from the record alone, compiles them again and judges the champion anew.
///
/// Example: ksmith verify 3f07 --head 5e88…
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A run id, a unique prefix of one, or the path of a run folder
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
            "the run has no champion to replay: the baseline stands",
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

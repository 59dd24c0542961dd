//! `ksmith kda`

use std::fmt::Write as _;
use std::path::PathBuf;

use ksmith_ledger::History;
use ksmith_ledger::kda::{Imported, import};
use ksmith_report::clean_line;
use ksmith_task::ExitCode;
use serde_json::{Value, json};

use super::{Outcome, place};
use crate::failure::Failure;
use crate::ui::Ui;

/// Read a KDA workspace for comparison; its claims stay unproved
///
/// Reads `candidates.jsonl` or `solutions.jsonl` and `benchmark.csv` in the variants that are in use, names
/// contradictions and gaps of the record, and changes nothing. Figures of another machine or baseline are no
/// comparison: to prove a kernel, write it as a candidate and have it judged.
///
/// Example: ksmith kda ../their-workspace --against 3f07
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The workspace's folder
    workspace: PathBuf,
    /// A run of ours to show beside it: an id, a unique prefix of one, or a path
    #[arg(long, value_name = "RUN")]
    against: Option<String>,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let imported = import(&args.workspace).map_err(|error| Failure::of(ExitCode::Usage, &error))?;
    let ours = args.against.as_deref().map(ours).transpose()?;
    let best = imported.best().map(|best| best.id.clone());
    let value = json!({ "workspace": imported, "best": best, "against": ours });
    ui.result(&value, || text(&imported, ours.as_ref()))?;
    Ok(ExitCode::Done)
}

/// The champion of a run of ours, with what was shown of it.
fn ours(run: &str) -> Result<Value, Failure> {
    let found = place::find(run)?;
    let history = History::load(&found.dir).map_err(|error| Failure::of(ExitCode::Changed, &error))?;
    Ok(json!({
        "run": history.opened.run,
        "champion": history.champion,
        "over_baseline": history.champion().and_then(|champion| champion.over_baseline()),
        "proof": "judged",
        "scope_note": history.opened.scope.sentence(),
    }))
}

fn text(imported: &Imported, ours: Option<&Value>) -> String {
    let mut text = String::new();
    for candidate in &imported.candidates {
        let claim = candidate
            .claimed
            .map_or_else(|| "no figure".to_owned(), |claim| format!("{claim:.3}x claimed"));
        let _ = writeln!(
            text,
            "{:<20} {:<10} {claim} over {} rows ({}); {}",
            clean_line(&candidate.id),
            clean_line(&candidate.status),
            candidate.rows,
            candidate.proof,
            clean_line(&candidate.description)
        );
    }
    for defect in &imported.defects {
        let _ = writeln!(text, "defect: {}", clean_line(defect));
    }
    if let Some(ours) = ours {
        let lower = ours["over_baseline"]["lower"].as_f64();
        let _ = writeln!(
            text,
            "run {}: {} (judged); another machine or baseline is no comparison",
            ours["run"].as_str().unwrap_or_default(),
            lower.map_or_else(
                || "no champion".to_owned(),
                |lower| format!("at least {lower:.3}x")
            )
        );
    }
    let _ = write!(text, "Claims of this workspace are {}.", imported.proof);
    text
}

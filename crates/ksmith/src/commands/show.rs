//! `ksmith show`

use std::fmt::Write as _;

use ksmith_ledger::{History, ObjectStore};
use ksmith_task::ExitCode;
use serde_json::json;

use super::{Outcome, place};
use crate::failure::Failure;
use crate::live::{plain, show_gain};
use crate::ui::Ui;

/// Show one candidate of a run: idea, verdict, gates, times, sources
///
/// Without a candidate the champion is shown.
///
/// Example: ksmith show 3f07 c0004
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A run id, a unique prefix of one, or the path of a run folder
    run: String,
    /// The candidate's id
    candidate: Option<String>,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let found = place::find(&args.run)?;
    let history = History::load(&found.dir).map_err(|error| Failure::of(ExitCode::Changed, &error))?;
    let candidate = match &args.candidate {
        Some(id) => history.candidate(id).ok_or_else(|| {
            let ids: Vec<&str> = history
                .candidates
                .iter()
                .map(|candidate| candidate.id())
                .collect();
            Failure::usage(format!("the run has no candidate `{id}`"))
                .hint(format!("Its candidates: {}.", ids.join(", ")))
        })?,
        None => history.champion().ok_or_else(|| {
            Failure::usage("the run has no champion: the baseline stands")
                .hint("Name a candidate, for example c0001.")
        })?,
    };
    let store = ObjectStore::new(&found.dir);
    let files = store
        .files(candidate.proposed.tree)
        .map_err(|error| Failure::of(ExitCode::Changed, &error))?;
    let sources: Vec<(String, String)> = files
        .into_iter()
        .map(|(path, bytes)| (path, String::from_utf8_lossy(&bytes).into_owned()))
        .collect();
    let value = json!({
        "run": history.opened.run,
        "proposed": candidate.proposed,
        "status": candidate.status(),
        "verdict": candidate.verdict(),
        "bench": candidate.bench(),
        "reason": candidate.reason(),
        "sources": sources.iter().map(|(path, text)| json!({ "path": path, "text": text })).collect::<Vec<_>>(),
        "scope": history.opened.scope,
        "scope_note": history.opened.scope_note,
    });
    ui.result(&value, || {
        let proposed = &candidate.proposed;
        let mut text = String::new();
        let _ = writeln!(text, "{}  {}", candidate.id(), candidate.status().name());
        let _ = writeln!(text, "direction   {}", plain(&proposed.direction));
        let _ = writeln!(text, "hypothesis  {}", plain(&proposed.hypothesis));
        if let Some(reason) = candidate.reason() {
            let _ = writeln!(text, "outcome     {}", plain(reason));
        }
        for (name, gain) in [
            ("champion", candidate.over_champion()),
            ("baseline", candidate.over_baseline()),
            ("flag control", candidate.over_flag_control()),
        ] {
            if let Some(gain) = gain {
                let _ = writeln!(text, "gain over the {name}: {}", show_gain(gain));
            }
        }
        if let Some(verdict) = candidate.verdict() {
            let _ = write!(text, "\n{}", super::judge::text(verdict, &history.opened.run));
        }
        for (path, source) in &sources {
            let _ = write!(text, "\n--- {}\n{}", plain(path), plain(source));
        }
        text
    })?;
    Ok(ExitCode::Done)
}

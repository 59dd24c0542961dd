//! `ksmith lore`

use std::fmt::Write as _;

use ksmith_ledger::History;
use ksmith_lore::{Lore, distil};
use ksmith_report::clean_line;
use ksmith_task::ExitCode;
use serde_json::json;

use super::{Outcome, place};
use crate::failure::Failure;
use crate::ui::Ui;

/// Add what a run taught to the experience library, or list it
///
/// From a closed run each champion becomes an observation with its measured effect, and each direction that had five
/// correct tries without a gain becomes one of that. Entries are files under `.ksmith/lore`; a person who knows why adds
/// the mechanism and makes a technique or a dead end of it.
///
/// Example: ksmith lore add 3f07
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Add what a closed run taught
    Add {
        /// A run id, a unique prefix of one, or the path of a run folder
        run: String,
    },
    /// List every entry
    List,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let mut lore = Lore::open(&place::home()).map_err(|error| Failure::of(ExitCode::Usage, &error))?;
    match &args.action {
        Action::Add { run } => {
            let found = place::find(run)?;
            let history =
                History::load(&found.dir).map_err(|error| Failure::of(ExitCode::Changed, &error))?;
            let mut added = Vec::new();
            for entry in distil(&history) {
                let id = entry.id.clone();
                let merged = lore
                    .add(entry)
                    .map_err(|error| Failure::of(ExitCode::Environment, &error))?;
                added.push(json!({ "id": id, "merged": merged }));
            }
            ui.result(&json!({ "entries": added }), || {
                if added.is_empty() {
                    return match history.closed {
                        Some(_) => "The run taught nothing that is worth an entry: it has no champion, and no direction \
                                    with five correct tries."
                            .to_owned(),
                        None => format!(
                            "The run is not closed ({}): only a closed run teaches.",
                            history.ending()
                        ),
                    };
                }
                let mut text = String::new();
                for entry in &added {
                    let word = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
                    let _ = writeln!(text, "{:<10} {}", word("merged"), word("id"));
                }
                text
            })?;
        }
        Action::List => {
            let rows: Vec<_> = lore
                .entries()
                .iter()
                .map(|entry| {
                    json!({ "id": entry.id, "kind": entry.kind, "title": entry.title, "served": lore.is_served(entry), "runs": entry.runs() })
                })
                .collect();
            ui.result(&json!({ "entries": rows }), || {
                let mut text = String::new();
                for entry in lore.entries() {
                    let state = if lore.is_served(entry) {
                        ""
                    } else {
                        " (not served)"
                    };
                    let _ = writeln!(
                        text,
                        "{:<12} {}{state}: {}",
                        entry.kind.name(),
                        entry.id,
                        clean_line(&entry.title)
                    );
                }
                let _ = write!(text, "{} entries.", lore.entries().len());
                text
            })?;
        }
    }
    Ok(ExitCode::Done)
}

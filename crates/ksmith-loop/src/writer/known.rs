//! What the experience library of this place knows of a task, a line each: shown to agents, decides nothing.

use std::path::Path;

use ksmith_lore::{Lore, LoreError, Query, Scope, recall};
use ksmith_task::{Backend, Instance};

/// Most entries.
const ENTRIES: usize = 5;
/// Most bytes of their texts.
const BYTES: usize = 3 << 10;

/// Entries that fit `words`, or the task itself where there are none. `run` is a run's folder; the library lies beside
/// the folder of runs.
///
/// # Errors
/// When the library cannot be read.
pub(super) fn known(
    instance: &Instance,
    backend: Backend,
    run: &Path,
    words: &str,
) -> Result<Vec<String>, LoreError> {
    // `HOME/.ksmith/runs/ID`
    let Some(home) = run.ancestors().nth(3) else {
        return Ok(Vec::new());
    };
    let contract = instance.task().contract();
    let text = if words.trim().is_empty() {
        format!("{} {}", contract.name, contract.family)
    } else {
        words.to_owned()
    };
    let query = Query {
        text,
        scope: Scope {
            backends: vec![backend.name().to_owned()],
            families: vec![contract.family.clone()],
            operators: vec![contract.name.clone()],
            dtypes: Vec::new(),
        },
        limit: ENTRIES,
        bytes: BYTES,
    };
    let found = recall(&Lore::open(home)?, &query);
    Ok(found
        .hits
        .iter()
        .map(|hit| {
            let effect = hit
                .effect
                .map_or_else(String::new, |effect| format!(", {:.2}x", effect.point));
            let mut line = format!("`{}` ({}{effect}): {}", hit.id, hit.kind.name(), hit.title);
            for (name, words) in [
                ("do", &hit.action),
                ("why", &hit.mechanism),
                ("retry if", &hit.would_retry_if),
            ] {
                if !words.is_empty() {
                    line.push_str(&format!("; {name}: {words}"));
                }
            }
            line
        })
        .collect())
}

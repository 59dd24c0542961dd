//! Redoes a run's end from its record alone: task and champion out of the object store, compiled and judged anew.

use std::path::Path;

use ksmith_ledger::{History, ObjectStore, Verdict};
use ksmith_task::{Candidate, ContractError, Task};
use serde::{Deserialize as _, Serialize};

use crate::opening::Kept;
use crate::{Interrupt, JudgeRequest, Progress, RunError, Sandbox, TypePick, judge};

/// What a replay found.
#[derive(Debug, Clone, Serialize)]
pub struct Replayed {
    /// The champion.
    pub candidate: String,
    /// Whether the rebuilt candidate has the digest of the record.
    pub same_digest: bool,
    /// What the judge says of it now.
    pub verdict: Verdict,
    /// The run that holds the replay's record.
    pub run: String,
}

/// Rebuilds and re-judges the champion of a run; `None` where the baseline stands.
///
/// # Errors
/// When the record lacks something, or nothing can be judged here.
pub fn replay(
    run: &Path,
    sandbox: Sandbox,
    interrupt: &Interrupt,
    progress: &mut dyn Progress,
) -> Result<Option<Replayed>, RunError> {
    let history = History::load(run)?;
    let Some(champion) = history.champion() else {
        return Ok(None);
    };
    let folder = tempfile::Builder::new()
        .prefix("ksmith-replay-")
        .tempdir()
        .map_err(RunError::io("create", &std::env::temp_dir()))?;
    let task = folder.path().join("task");
    let candidate = folder.path().join("candidate");
    let store = ObjectStore::new(run);
    store.extract(kept(&history)?.task_tree, &task)?;
    store.extract(champion.proposed.tree, &candidate)?;
    let rebuilt = Candidate::load(&candidate).map_err(RunError::Candidate)?;
    let request = JudgeRequest {
        candidate,
        types: types_of(&task, &history.opened.instance)?,
        task,
        home: folder.path().to_owned(),
        sandbox,
        interrupt: interrupt.clone(),
        command: vec!["verify".into(), "--replay".into(), history.opened.run.clone()],
        signing_key: None,
    };
    let judged = judge(&request, progress)?;
    let verdict = judged.verdict.ok_or_else(|| RunError::Usage {
        what: "the replay was stopped before it came to a verdict".into(),
        fix: "Start it again.".into(),
    })?;
    Ok(Some(Replayed {
        candidate: champion.id().to_owned(),
        same_digest: rebuilt.digest() == champion.proposed.digest,
        verdict,
        run: judged.run,
    }))
}

/// The C header of a run's entry symbol, from the record alone.
///
/// # Errors
/// When the record lacks the task.
pub fn header_of(run: &Path) -> Result<Option<String>, RunError> {
    let history = History::load(run)?;
    if let Some(header) = kept(&history)?.header {
        return Ok(Some(ObjectStore::new(run).get_text(header.blob)?));
    }
    // Runs of earlier versions do not hold it.
    let folder = tempfile::Builder::new()
        .prefix("ksmith-header-")
        .tempdir()
        .map_err(RunError::io("create", &std::env::temp_dir()))?;
    ObjectStore::new(run).extract(kept(&history)?.task_tree, folder.path().join("task").as_path())?;
    let task = Task::load(folder.path().join("task"))?;
    let instance = task
        .instances()
        .into_iter()
        .find(|instance| instance.id() == history.opened.instance);
    Ok(instance.map(|instance| ksmith_task::abi::header(&instance)))
}

fn kept(history: &History) -> Result<Kept, RunError> {
    Kept::deserialize(&history.opened.options)
        .map_err(|error| RunError::Internal(format!("the first record's options cannot be read: {error}")))
}

fn types_of(task: &Path, instance: &str) -> Result<Vec<TypePick>, RunError> {
    let task = Task::load(task).map_err(|error: ContractError| RunError::Contract(error))?;
    let found = task
        .instances()
        .into_iter()
        .find(|found| found.id() == instance)
        .ok_or_else(|| RunError::Internal(format!("the recorded task has no instance `{instance}`")))?;
    Ok(found
        .types()
        .iter()
        .map(|(variable, dtype)| TypePick {
            variable: variable.clone(),
            dtype: *dtype,
        })
        .collect())
}

//! `docs/draft.md`, `docs/plan.md` and `profile/` of a run; `candidates.jsonl` and `benchmark.csv` are in `views`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::views::{ViewError, replace};
use crate::{CandidateHistory, History, ObjectStore};

/// The draft's place in a KDA workspace.
pub const DRAFT_VIEW: &str = "docs/draft.md";
/// The plan's place in a KDA workspace.
pub const PLAN_VIEW: &str = "docs/plan.md";
/// The folder of profiles in a KDA workspace: one folder per candidate that was analysed.
pub const PROFILE_FOLDER: &str = "profile";

/// Writes the views of the run in `run_dir` anew.
///
/// # Errors
/// When the record cannot be read or a file not be written.
pub fn write(run_dir: &Path) -> Result<(), ViewError> {
    let history = History::load(run_dir)?;
    let objects = ObjectStore::new(run_dir);
    let texts = [
        (DRAFT_VIEW, history.draft().map(|draft| draft.text)),
        (PLAN_VIEW, history.plan().map(|plan| plan.text)),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            put(run_dir, name, &objects.get(text.blob)?)?;
        }
    }
    let analysed: Vec<&CandidateHistory> = history
        .candidates
        .iter()
        .filter(|candidate| !candidate.profiled.is_empty() || has_findings(candidate))
        .collect();
    for candidate in &analysed {
        let folder = format!("{PROFILE_FOLDER}/{}", candidate.id());
        put(
            run_dir,
            &format!("{folder}/REPORT.md"),
            report(candidate, &history).as_bytes(),
        )?;
        for profiled in &candidate.profiled {
            let tool = file_name(&profiled.tool);
            if let Some(report) = profiled.report {
                put(
                    run_dir,
                    &format!("{folder}/reports/{tool}.txt"),
                    &objects.get(report.blob)?,
                )?;
            }
            if !profiled.figures.is_null() {
                let figures = serde_json::to_string_pretty(&profiled.figures).unwrap_or_default();
                put(
                    run_dir,
                    &format!("{folder}/analysis/metrics_{tool}.json"),
                    figures.as_bytes(),
                )?;
            }
        }
    }
    if analysed.is_empty() {
        let text = "unavailable: no candidate of this run was profiled or analysed\n";
        put(
            run_dir,
            &format!("{PROFILE_FOLDER}/unavailable.txt"),
            text.as_bytes(),
        )?;
    }
    Ok(())
}

fn has_findings(candidate: &CandidateHistory) -> bool {
    candidate
        .checked
        .as_ref()
        .is_some_and(|checked| !checked.findings.is_empty())
}

/// One analysed candidate: question, what was seen, what was not available.
fn report(candidate: &CandidateHistory, history: &History) -> String {
    let mut text = format!(
        "# {}: {}\n\n",
        candidate.id(),
        line(&candidate.proposed.hypothesis)
    );
    let _ = writeln!(text, "- Device: {}", line(&history.opened.device_name));
    let _ = writeln!(text, "- Compiler: {}", line(&history.opened.compiler));
    if let Some(gain) = candidate.over_baseline() {
        let _ = writeln!(
            text,
            "- Gain over the baseline: {:.3} ({:.3} to {:.3})",
            gain.point, gain.lower, gain.upper
        );
    }
    if let Some(checked) = candidate.checked.as_ref().filter(|_| has_findings(candidate)) {
        text.push_str("\n## Compiler and machine code\n\n");
        for finding in &checked.findings {
            let _ = writeln!(text, "- {}", line(finding));
        }
    }
    for profiled in &candidate.profiled {
        let _ = write!(text, "\n## {}\n\n", line(&profiled.tool));
        if let Some(cause) = &profiled.unavailable {
            let _ = writeln!(text, "- unavailable: {}", line(cause));
        }
        for finding in &profiled.findings {
            let _ = writeln!(text, "- {}", line(finding));
        }
    }
    let scope = history.opened.scope.sentence();
    if !scope.is_empty() {
        let _ = write!(text, "\n{scope}\n");
    }
    text
}

/// Foreign text as one line of a document.
fn line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// A tool's name as a file name.
fn file_name(tool: &str) -> String {
    let name: String = tool
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        })
        .take(40)
        .collect();
    if name.is_empty() { "tool".into() } else { name }
}

fn put(run_dir: &Path, name: &str, bytes: &[u8]) -> Result<(), ViewError> {
    let path = run_dir.join(name);
    let folder = path.parent().unwrap_or(run_dir);
    let failed = |source| ViewError::Io {
        path: path.clone(),
        source,
    };
    fs::create_dir_all(folder).map_err(failed)?;
    replace(&path, bytes).map_err(failed)
}

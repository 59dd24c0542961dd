//! Files beside the ledger that must follow from it: the lock, the texts of draft and plan, the views.

use std::path::Path;

use super::chain::{Chain, read};
use super::damage::{Cause, Checked, Place, at_file, damage};
use super::report::Report;
use crate::{BlobRef, CERTIFICATE_FILE, History, LEDGER_FILE, ObjectStore, PAGE_FILE, kda, views};

/// How many records a view may lag behind: the process can die between a record and its views.
const LAG: usize = 16;

pub(super) fn check(run_dir: &Path, chain: &Chain, report: &mut Report) -> Checked {
    if let Some(lock) = chain.opened.lock_file {
        match read(run_dir, "task.lock.json", Cause::Unreadable)? {
            Some(bytes) if ksmith_task::Digest::of(&bytes) == lock.blob => {}
            Some(_) => {
                let detail = "it is not the file that the first record names";
                return Err(damage(
                    Cause::LockedFileChanged,
                    at_file("task.lock.json"),
                    detail,
                ));
            }
            None => report
                .gaps
                .push("`task.lock.json` is missing (its text is in the object store)".into()),
        }
    }
    let Ok(Some(history)) = History::fold(chain.records()) else {
        return Ok(());
    };
    let texts = [
        ("draft.md", history.draft().map(|draft| draft.text)),
        ("plan.md", history.plan().map(|plan| plan.text)),
        (kda::DRAFT_VIEW, history.draft().map(|draft| draft.text)),
        (kda::PLAN_VIEW, history.plan().map(|plan| plan.text)),
    ];
    for (name, text) in texts {
        copy(run_dir, name, text, report)?;
    }
    views_follow(run_dir, chain, &history, report)?;
    report.uncovered = uncovered(run_dir);
    Ok(())
}

/// What lies in the run's folder beside everything that this check holds against the record, and beside the page, which
/// is rendered elsewhere.
fn uncovered(run_dir: &Path) -> Vec<String> {
    let covered = [
        LEDGER_FILE,
        "objects",
        "task.lock.json",
        CERTIFICATE_FILE,
        views::CANDIDATES_FILE,
        views::BENCHMARK_FILE,
        "draft.md",
        "plan.md",
        PAGE_FILE,
    ];
    let folders = [kda::DRAFT_VIEW, kda::PLAN_VIEW].map(|view| view.split('/').next().unwrap_or(view));
    let entries = std::fs::read_dir(run_dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_covered = covered.contains(&name.as_str()) || folders.contains(&name.as_str());
            let end = if entry.path().is_dir() { "/" } else { "" };
            (!is_covered).then(|| format!("`{name}{end}`"))
        })
        .collect();
    names.sort();
    names
}

/// A working copy may be edited by its reader; the record holds the text that counted.
fn copy(run_dir: &Path, name: &str, text: Option<BlobRef>, report: &mut Report) -> Checked {
    let Some(text) = text else {
        return Ok(());
    };
    if let Some(bytes) = read(run_dir, name, Cause::Unreadable)?
        && ksmith_task::Digest::of(&bytes) != text.blob
    {
        report.warnings.push(format!(
            "`{name}` is not the text that was accepted; that one is object {}.",
            text.blob
        ));
    }
    Ok(())
}

fn views_follow(run_dir: &Path, chain: &Chain, history: &History, report: &mut Report) -> Checked {
    let objects = ObjectStore::new(run_dir);
    let unmakable = |error: views::ViewError| {
        damage(
            Cause::ViewMismatch,
            at_file(views::CANDIDATES_FILE),
            error.to_string(),
        )
    };
    let wanted = views::views(history, &objects).map_err(unmakable)?;
    let files = [
        (views::CANDIDATES_FILE, &wanted.candidates),
        (views::BENCHMARK_FILE, &wanted.benchmark),
    ];
    for (name, wanted) in files {
        let Some(found) = read(run_dir, name, Cause::Unreadable)? else {
            if history.closed.is_some() {
                report
                    .gaps
                    .push(format!("`{name}` is missing (`ksmith resume` writes it anew)"));
            }
            continue;
        };
        if found == wanted.as_bytes() {
            continue;
        }
        if lags(chain, &objects, name, &found) {
            report.warnings.push(format!(
                "`{name}` lags behind the ledger; `resume` or `report` writes it anew."
            ));
            continue;
        }
        let offset = wanted.bytes().zip(&found).take_while(|(a, b)| a == *b).count();
        let line = found[..offset].iter().filter(|byte| **byte == b'\n').count() + 1;
        let place = Place {
            line: Some(line as u64),
            offset: Some(offset as u64),
            ..at_file(name)
        };
        return Err(damage(
            Cause::ViewMismatch,
            place,
            "it is not what the ledger gives",
        ));
    }
    Ok(())
}

fn lags(chain: &Chain, objects: &ObjectStore, name: &str, found: &[u8]) -> bool {
    let records = chain.records();
    (1..records.len()).rev().take(LAG).any(|length| {
        let Ok(Some(history)) = History::fold(&records[..length]) else {
            return false;
        };
        views::views(&history, objects).is_ok_and(|both| {
            let text = if name == views::CANDIDATES_FILE {
                both.candidates
            } else {
                both.benchmark
            };
            text.as_bytes() == found
        })
    })
}

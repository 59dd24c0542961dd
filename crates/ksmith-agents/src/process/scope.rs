//! Where a writer may leave its mark: below one folder of its workspace, in plain files.

use super::{Cause, Change, Refusal, Snapshot};

/// What of a workspace may be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The candidate's folder, relative to the workspace; empty means all of it.
    pub candidate: String,
    /// Files and folders that may not be changed at all, relative to the workspace.
    pub protected: Vec<String>,
}

/// Checks what became of a workspace. Protected files are named before others, since that is the graver attempt.
pub fn check_scope(before: &Snapshot, after: &Snapshot, scope: &Scope) -> Vec<Refusal> {
    let changes = before.changes(after);
    let mut refusals = Vec::new();
    let mut refuse = |cause: Cause, found: Vec<String>| {
        if !found.is_empty() {
            refusals.push(Refusal::new(cause, shown(&found)));
        }
    };
    let (protected, rest): (Vec<&Change>, Vec<&Change>) = changes.iter().partition(|change| {
        scope
            .protected
            .iter()
            .any(|place| is_below(change.path(), place) || is_below(place, change.path()) && is_loss(change))
    });
    refuse(
        Cause::ProtectedFile,
        protected.iter().map(ToString::to_string).collect(),
    );
    let outside = rest
        .iter()
        .filter(|change| !is_below(change.path(), &scope.candidate))
        .filter(|change| !is_way_to(change, &scope.candidate));
    refuse(
        Cause::OutsideWorkspace,
        outside.map(ToString::to_string).collect(),
    );
    let links = after.not_plain().filter(|path| {
        // A link that was there before is the user's own.
        changes.iter().any(|change| change.path() == *path)
    });
    refuse(Cause::Link, links.map(|path| format!("`{path}`")).collect());
    refusals
}

/// Whether `path` is `folder` or lies below it.
fn is_below(path: &str, folder: &str) -> bool {
    folder.is_empty()
        || path
            .strip_prefix(folder)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether something above a protected file went away or became something else.
fn is_loss(change: &Change) -> bool {
    match change {
        Change::Removed(_) | Change::Changed(_) => true,
        Change::Added(_) => false,
    }
}

/// The folders on the way to the candidate's own may be made.
fn is_way_to(change: &Change, candidate: &str) -> bool {
    match change {
        Change::Added(path) => is_below(candidate, path),
        Change::Removed(_) | Change::Changed(_) => false,
    }
}

fn shown(found: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut text = found.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if found.len() > SHOWN {
        text.push_str(&format!(" and {} more", found.len() - SHOWN));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    fn scope() -> Scope {
        Scope {
            candidate: "candidate".into(),
            protected: vec!["task".into(), "tests/bench.py".into()],
        }
    }

    fn after(act: impl Fn(&std::path::Path)) -> Vec<Refusal> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("task/task.toml", "goal = 0.9"),
            ("tests/bench.py", "print(1)"),
            ("notes.md", "x"),
        ] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let before = Snapshot::of(folder.path()).unwrap();
        act(folder.path());
        check_scope(&before, &Snapshot::of(folder.path()).unwrap(), &scope())
    }

    fn causes(refusals: &[Refusal]) -> Vec<Cause> {
        refusals.iter().map(|refusal| refusal.cause).collect()
    }

    #[test]
    fn a_candidate_in_its_folder_passes() {
        let refusals = after(|at| {
            fs::create_dir_all(at.join("candidate/src")).unwrap();
            fs::write(at.join("candidate/src/kernel.c"), "void f(void) {}").unwrap();
        });
        assert_eq!(refusals, []);
    }

    #[test]
    fn an_edit_through_an_interpreter_is_seen_by_its_effect() {
        let refusals = after(|at| {
            // What a guard that reads command lines misses: no redirection, no editor, only an interpreter.
            let script = "open('task/task.toml','w').write('goal = 9')";
            let ran = Command::new("python3")
                .args(["-c", script])
                .current_dir(at)
                .status();
            if !ran.is_ok_and(|status| status.success()) {
                // Without Python the same write by other means.
                fs::write(at.join("task/task.toml"), "goal = 9").unwrap();
            }
        });
        assert_eq!(causes(&refusals), [Cause::ProtectedFile]);
        assert!(refusals[0].detail.contains("`task/task.toml` differs"));
    }

    #[test]
    fn a_renamed_folder_and_a_link_in_its_place_are_refused() {
        let renamed = after(|at| fs::rename(at.join("tests"), at.join("old")).unwrap());
        assert_eq!(causes(&renamed), [Cause::ProtectedFile, Cause::OutsideWorkspace]);
        let linked = after(|at| {
            fs::rename(at.join("task"), at.join("candidate")).unwrap();
            std::os::unix::fs::symlink("candidate", at.join("task")).unwrap();
        });
        assert_eq!(causes(&linked), [Cause::ProtectedFile, Cause::Link]);
    }

    #[test]
    fn files_beside_the_candidate_and_links_in_it_are_refused() {
        let beside = after(|at| fs::write(at.join("review-result.md"), "COMPLETE").unwrap());
        assert_eq!(causes(&beside), [Cause::OutsideWorkspace]);
        let linked = after(|at| {
            fs::create_dir(at.join("candidate")).unwrap();
            std::os::unix::fs::symlink("/etc/passwd", at.join("candidate/kernel.c")).unwrap();
        });
        assert_eq!(causes(&linked), [Cause::Link]);
    }

    #[test]
    fn pushing_the_repository_leaves_a_trace_or_changes_nothing() {
        // Whatever `git push` does to a remote, the workspace's own `.git` is outside the candidate's folder.
        let pushed = after(|at| {
            fs::create_dir_all(at.join(".git/refs/remotes/origin")).unwrap();
            fs::write(at.join(".git/refs/remotes/origin/main"), "0").unwrap();
        });
        assert_eq!(causes(&pushed), [Cause::OutsideWorkspace]);
    }
}

//! Review of a contract before it is locked: who reviewed, what is open, and how a person resolved it.
//!
//! Kept beside the runs, under the contract's hash, outside every box: an edited contract has no review. A run of a
//! reviewed contract begins only when every ambiguity has a resolution, and locks the review with the rest.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ksmith_agents::gateway::{Call, Limits, Meter, Sink, Spent};
use ksmith_agents::process::Cause;
use ksmith_agents::review::{ContractAnswer, ContractRequest, FoundAmbiguity, Held, Reviewer, Subject};
use ksmith_agents::writers::{Bounds, Snapshot};
use ksmith_ledger::ObjectStore;
use ksmith_task::{Digest, Lock, Severity, Task, ambiguity};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::guard::judge_digest;
use crate::models::{record_answered, record_sent};
use crate::{AgentHost, ReviewOptions, RunError};

/// Folder of contract reviews, beside that of the runs.
const FOLDER: &str = ".ksmith/reviews";

/// One ambiguity with its resolution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolved {
    /// What is open.
    pub ambiguity: FoundAmbiguity,
    /// How a person resolved it; absent while nobody has.
    pub resolution: Option<String>,
}

/// A review of one contract.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContractReview {
    /// Version of the format: 1.
    pub schema: u32,
    /// Name of the task.
    pub task: String,
    /// Hash of the expanded contract.
    pub contract: Digest,
    /// Who reviewed.
    pub reviewer: String,
    /// Whose model it is.
    pub vendor: String,
    /// What is open, with resolutions.
    pub ambiguities: Vec<Resolved>,
    /// Classes that the reviewer looked at.
    pub checked: Vec<String>,
    /// Classes that it said nothing about.
    pub unchecked: Vec<String>,
    /// Mechanical findings, one line each.
    pub lint: Vec<String>,
    /// Attempts that did not count, by code.
    pub failed_attempts: Vec<String>,
    /// What the reviewer's model used.
    #[serde(default)]
    pub spent: Spent,
}

/// What a contract is reviewed with.
#[derive(Debug, Clone, Copy)]
pub struct ContractSetting<'a> {
    /// Where `.ksmith/` lies.
    pub home: &'a Path,
    /// What of the machine a reviewer may use.
    pub host: &'a AgentHost,
    /// A price table of the user's own.
    pub prices: Option<&'a Path>,
}

impl ContractReview {
    /// Keys without a resolution.
    pub fn open(&self) -> Vec<&str> {
        self.ambiguities
            .iter()
            .filter(|resolved| resolved.resolution.is_none())
            .map(|resolved| resolved.ambiguity.key.as_str())
            .collect()
    }

    /// Where the review of a contract lies.
    fn path(home: &Path, contract: Digest) -> PathBuf {
        home.join(FOLDER).join(format!("{contract}.json"))
    }

    /// The review of this very contract, if there is one.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn find(home: &Path, contract: Digest) -> Result<Option<Self>, RunError> {
        let path = Self::path(home, contract);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(RunError::io("read", &path)(error)),
        };
        let review: Self = serde_json::from_str(&text).map_err(|error| RunError::Usage {
            what: format!("`{}` is no review of a contract: {error}", path.display()),
            fix: "Remove it and review again.".to_owned(),
        })?;
        Ok(Some(review).filter(|review| review.contract == contract))
    }

    /// Keeps the review.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self, home: &Path) -> Result<PathBuf, RunError> {
        let path = Self::path(home, self.contract);
        let folder = home.join(FOLDER);
        fs::create_dir_all(&folder).map_err(RunError::io("create", &folder))?;
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| RunError::Internal(format!("the review cannot be written: {error}")))?;
        fs::write(&path, text).map_err(RunError::io("write", &path))?;
        Ok(path)
    }

    /// Resolves an ambiguity.
    ///
    /// # Errors
    /// When there is none of this key, or the text is empty.
    pub fn resolve(&mut self, key: &str, text: &str) -> Result<(), RunError> {
        let usage = |what: String| RunError::Usage {
            what,
            fix: "`ksmith review TASK --resolve KEY=TEXT`; the review lists the keys.".to_owned(),
        };
        if text.trim().is_empty() {
            return Err(usage(format!("the resolution of `{key}` is empty")));
        }
        let found = self
            .ambiguities
            .iter_mut()
            .find(|resolved| resolved.ambiguity.key == key)
            .ok_or_else(|| usage(format!("the review has no ambiguity `{key}`")))?;
        found.resolution = Some(text.trim().to_owned());
        Ok(())
    }
}

/// Hash of a task's expanded contract, by which its review is found.
pub fn contract_digest(task: &Task) -> Digest {
    Digest::of(task.full().as_bytes())
}

/// Has a contract reviewed. The task's folder is read before and after; the reviewer sees a copy.
///
/// # Errors
/// When nobody reviews, no answer counts, or something of the task changed meanwhile.
pub fn review_contract(
    task: &Task,
    options: &ReviewOptions,
    setting: &ContractSetting<'_>,
) -> Result<ContractReview, RunError> {
    let budget = &task.contract().budget;
    let meter = Meter::new(Limits {
        dollars: Some(budget.cost_usd),
        tokens: budget.tokens,
        calls: None,
    });
    let reviewer = crate::judgement::reviewer(options, setting.prices, |wanted| {
        let calls = Calls::beside(setting.home, contract_digest(task));
        let reached = wanted.options(setting.host, Arc::clone(&meter), Box::new(calls))?;
        Ok((reached, Vec::new()))
    })?;
    let Some(mut reviewer) = reviewer else {
        return Err(RunError::Usage {
            what: "`none` reviews nothing".to_owned(),
            fix: "Name a reviewer: `lint`, `api:MODEL`, or a command.".to_owned(),
        });
    };
    let review = review_with(task, reviewer.as_mut())?;
    Ok(ContractReview {
        spent: meter.spent(),
        ..review
    })
}

/// The calls of a model that reviews a contract: no run has begun, so they are kept beside the review, each on disk
/// before it is sent and again before its answer is read.
struct Calls {
    file: PathBuf,
    objects: ObjectStore,
}

impl Calls {
    fn beside(home: &Path, contract: Digest) -> Self {
        let folder = home.join(FOLDER);
        Self {
            file: folder.join(format!("{contract}.calls.jsonl")),
            objects: ObjectStore::new(&folder),
        }
    }
}

impl Sink for Calls {
    fn call(&mut self, call: Call) -> io::Result<()> {
        let put = |bytes: &[u8]| self.objects.put(bytes).map_err(io::Error::other);
        let line = match call {
            Call::Sent(sent) => json!({ "model-sent": record_sent(*sent, put)? }),
            Call::Answered(answered) => json!({ "model-call": record_answered(*answered, put)? }),
        };
        let mut file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.file)?;
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_all()
    }
}

fn review_with(task: &Task, reviewer: &mut dyn Reviewer) -> Result<ContractReview, RunError> {
    let folder = task
        .dir()
        .canonicalize()
        .map_err(RunError::io("read folder", task.dir()))?;
    let look = || Snapshot::read(&folder, &[], Bounds::GIVEN);
    let before = look();
    let lint = lint_lines(task);
    let source = contract_digest(task);
    let judge = judge_digest()?;
    let reference = task.dir().join(&task.contract().reference.source);
    let request = ContractRequest {
        subject: Subject {
            task: Lock::of(task, judge)?.digest(),
            source,
            judge,
        },
        contract: crate::steps::visible(&task.full()),
        reference: fs::read_to_string(&reference).map_err(RunError::io("read", &reference))?,
        lint: lint.join("\n"),
        classes: ambiguity(task),
    };
    let held: Held<ContractAnswer> = reviewer.contract(&request);
    if let Some(change) = before.first_difference(&look()) {
        return Err(RunError::NoOpinion {
            document: "contract",
            cause: format!("{}: {change}", Cause::ReviewWroteFiles.code()),
        });
    }
    let failed_attempts: Vec<String> = held
        .attempts
        .iter()
        .filter_map(|attempt| Some(format!("{}: {}", attempt.cause?.code(), attempt.detail)))
        .collect();
    let Some(answer) = held.answer else {
        return Err(RunError::NoOpinion {
            document: "contract",
            cause: failed_attempts.last().cloned().unwrap_or_default(),
        });
    };
    let identity = reviewer.identity();
    Ok(ContractReview {
        schema: 1,
        task: task.contract().name.clone(),
        contract: source,
        reviewer: identity.name.clone(),
        vendor: identity.vendor.name().to_owned(),
        unchecked: answer.unchecked(),
        checked: answer.checked,
        ambiguities: answer
            .ambiguities
            .into_iter()
            .map(|ambiguity| Resolved {
                ambiguity,
                resolution: None,
            })
            .collect(),
        lint,
        failed_attempts,
        spent: Spent::default(),
    })
}

fn lint_lines(task: &Task) -> Vec<String> {
    ksmith_task::lint::lint(task)
        .findings
        .into_iter()
        .map(|finding| {
            let severity = match finding.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            format!("{severity}: {}: {}", finding.key, finding.message)
        })
        .collect()
}

/// The review that a run locks: none, or one whose every ambiguity is resolved.
///
/// # Errors
/// When an ambiguity is open.
pub(crate) fn to_lock(home: &Path, task: &Task) -> Result<Option<ContractReview>, RunError> {
    let review = ContractReview::find(home, contract_digest(task))?;
    let Some(review) = review else { return Ok(None) };
    let open = review.open();
    if open.is_empty() {
        return Ok(Some(review));
    }
    Err(RunError::Usage {
        what: format!(
            "{}: the review of this contract left {} open: {}",
            Cause::OpenAmbiguity.code(),
            open.len(),
            open.join(", ")
        ),
        fix: "`ksmith review TASK --resolve KEY=TEXT`, or edit the contract and review it again.".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(home: &Path) -> Task {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tasks/softmax");
        let folder = home.join("softmax");
        for name in ["", "baseline/cpu"] {
            fs::create_dir_all(folder.join(name)).unwrap();
            for entry in fs::read_dir(shipped.join(name)).unwrap() {
                let entry = entry.unwrap();
                if entry.path().is_file() {
                    fs::copy(entry.path(), folder.join(name).join(entry.file_name())).unwrap();
                }
            }
        }
        Task::load(folder).unwrap()
    }

    #[test]
    fn a_run_waits_for_every_resolution_and_an_edited_contract_has_no_review() {
        let home = tempfile::tempdir().unwrap();
        let task = task(home.path());
        assert_eq!(to_lock(home.path(), &task).unwrap(), None);
        let host = AgentHost::default();
        let setting = ContractSetting {
            home: home.path(),
            host: &host,
            prices: None,
        };
        let mut review = review_contract(&task, &ReviewOptions::default(), &setting).unwrap();
        assert!(review.unchecked.is_empty());
        let keys: Vec<String> = review.open().into_iter().map(str::to_owned).collect();
        assert!(!keys.is_empty());
        review.keep(home.path()).unwrap();
        let error = to_lock(home.path(), &task).unwrap_err();
        assert!(error.to_string().starts_with("process/open-ambiguity"), "{error}");
        for key in &keys {
            review.resolve(key, "left as it stands").unwrap();
        }
        assert!(review.resolve("unknown", "x").is_err());
        assert!(review.resolve(&keys[0], " ").is_err());
        review.keep(home.path()).unwrap();
        assert_eq!(to_lock(home.path(), &task).unwrap(), Some(review));
        let file = task.file().to_owned();
        let text = fs::read_to_string(&file).unwrap();
        fs::write(
            &file,
            format!("{text}\ncorrectness = {{ repeat = \"tolerance\" }}\n"),
        )
        .unwrap();
        if let Ok(edited) = Task::load(task.dir()) {
            assert_eq!(to_lock(home.path(), &edited).unwrap(), None);
        }
    }

    #[derive(Debug)]
    struct Meddler(std::path::PathBuf, ksmith_agents::review::RulesReviewer);

    impl Reviewer for Meddler {
        fn identity(&self) -> &ksmith_agents::review::Identity {
            self.1.identity()
        }

        fn review(&mut self, request: &ksmith_agents::review::Request) -> ksmith_agents::review::Review {
            self.1.review(request)
        }

        fn contract(&mut self, request: &ContractRequest) -> Held<ContractAnswer> {
            fs::write(self.0.join("reference.c"), "/* easier */").unwrap();
            self.1.contract(request)
        }

        fn plan(
            &mut self,
            request: &ksmith_agents::review::PlanRequest,
        ) -> Held<ksmith_agents::review::Critique> {
            self.1.plan(request)
        }
    }

    #[test]
    fn a_reviewer_that_changes_the_task_is_not_heard() {
        let home = tempfile::tempdir().unwrap();
        let task = task(home.path());
        let mut meddler = Meddler(task.dir().to_owned(), Default::default());
        let error = review_with(&task, &mut meddler).unwrap_err();
        assert!(error.to_string().contains("review/wrote-files"), "{error}");
    }
}

//! Runs the corpora through the real judge.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use ksmith_judge::{Effort, Judge, JudgeOptions};
use ksmith_ledger::{Decision, Gate, Verdict};
use ksmith_task::{Candidate, Task};

use super::corpus::{Cheat, Honest, Naive, Target};
use super::{left, naive};
use crate::Failure;

/// How much of the judge runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// All gates at small shapes, one process set.
    Corpus,
    /// Everything, confirmation too.
    Full,
}

/// How the corpora are run.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) mode: Mode,
    /// Gates left out.
    pub(crate) without: Vec<Gate>,
    /// Whether the naive evaluator judges too.
    pub(crate) naive: bool,
    /// Candidates judged at the same time; what is timed still runs alone.
    pub(crate) jobs: usize,
    /// Nothing is begun after this time.
    pub(crate) limit: Option<Duration>,
    pub(crate) turns: Option<Arc<RwLock<()>>>,
}

impl Options {
    pub(crate) fn new(mode: Mode) -> Self {
        Self {
            mode,
            without: Vec::new(),
            naive: false,
            jobs: 1,
            limit: None,
            turns: None,
        }
    }
}

/// Candidates that one worker judges with one open judge.
struct Batch {
    target: Target,
    cheats: Vec<Cheat>,
    honest: Vec<Honest>,
}

/// How a cheat ended.
#[derive(Debug)]
pub(crate) struct CheatEnd {
    pub(crate) cheat: Cheat,
    /// The verdict's code.
    pub(crate) code: String,
    pub(crate) gate: Option<Gate>,
    pub(crate) caught: bool,
    pub(crate) naive: Option<Naive>,
}

/// How an honest candidate ended.
#[derive(Debug)]
pub(crate) struct HonestEnd {
    pub(crate) honest: Honest,
    pub(crate) code: String,
    pub(crate) passed: bool,
    pub(crate) evidence: String,
}

#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) cheats: Vec<CheatEnd>,
    pub(crate) honest: Vec<HonestEnd>,
    pub(crate) naive_differs: usize,
    /// Candidates that the time limit left out.
    pub(crate) not_run: usize,
    /// Processes that were still there at the end.
    pub(crate) left_behind: usize,
    pub(crate) seconds: f64,
}

impl Outcome {
    pub(crate) fn caught(&self) -> usize {
        self.cheats.iter().filter(|end| end.caught).count()
    }

    pub(crate) fn passed(&self) -> usize {
        self.honest.iter().filter(|end| end.passed).count()
    }

    /// Adds a further run of the same corpora.
    pub(crate) fn add(&mut self, other: Self) {
        self.cheats.extend(other.cheats);
        self.honest.extend(other.honest);
        self.naive_differs += other.naive_differs;
        self.not_run += other.not_run;
        self.left_behind += other.left_behind;
        self.seconds += other.seconds;
    }

    pub(crate) fn good(&self) -> bool {
        self.caught() == self.cheats.len()
            && self.passed() == self.honest.len()
            && self.naive_differs == 0
            && self.left_behind == 0
    }

    pub(crate) fn last_line(&self) -> String {
        format!(
            "{} caught, {} missed, {} honest passed, {} wronged",
            self.caught(),
            self.cheats.len() - self.caught(),
            self.passed(),
            self.honest.len() - self.passed()
        )
    }
}

/// Opens the judge of one task instance with its state under `state`.
pub(crate) fn open(target: &Target, state: &Path, options: &Options) -> Result<Judge, Failure> {
    let task = Task::load(fs::canonicalize(target.folder())?)?;
    let instance = task
        .instances()
        .into_iter()
        .find(|instance| instance.id().contains(&target.types) || target.types.is_empty())
        .ok_or_else(|| format!("task `{}` has no instance `{}`", target.task, target.types))?;
    let mut chosen = JudgeOptions::new(&state.join(&target.task));
    chosen.effort = match options.mode {
        Mode::Corpus => Effort::Corpus,
        Mode::Full => Effort::Full,
    };
    chosen.without.clone_from(&options.without);
    chosen.turns.clone_from(&options.turns);
    Ok(Judge::open(&instance, chosen)?)
}

/// A folder that boxes can see.
pub(crate) fn state() -> Result<tempfile::TempDir, Failure> {
    let state = tempfile::tempdir()?;
    fs::set_permissions(state.path(), fs::Permissions::from_mode(0o755))?;
    Ok(state)
}

/// The verdict on one folder; a manifest that is refused counts as gate `policy`.
pub(crate) fn judge(judge: &mut Judge, folder: &Path) -> (Decision, String, Option<Gate>, Option<Verdict>) {
    match Candidate::load(folder) {
        Err(_) => (
            Decision::Reject,
            "policy/manifest".to_owned(),
            Some(Gate::Policy),
            None,
        ),
        Ok(candidate) => {
            let verdict = judge.score(&candidate);
            (verdict.verdict, verdict.code.clone(), verdict.gate, Some(verdict))
        }
    }
}

fn evidence(verdict: Option<&Verdict>) -> String {
    verdict
        .and_then(|verdict| verdict.gates.last())
        .map(|gate| gate.evidence.to_string().chars().take(300).collect())
        .unwrap_or_default()
}

/// What the gate that should have caught it said.
fn named(verdict: Option<&Verdict>, gate: Gate) -> String {
    verdict
        .and_then(|verdict| verdict.gates.iter().find(|result| result.name == gate))
        .map(|result| format!(" {gate}: {}", result.evidence))
        .unwrap_or_default()
}

/// An honest kernel may be slow, somewhere or everywhere, or not faster by enough: that is a statement about speed, not a
/// wrong.
fn wronged(decision: Decision, gate: Option<Gate>, code: &str) -> bool {
    match decision {
        Decision::Accept | Decision::Revise | Decision::Ambiguous => false,
        Decision::Reject if code == "distributions/slower" => false,
        Decision::Reject => !matches!(gate, Some(Gate::Gain | Gate::Regression | Gate::Slow)),
        Decision::Error => !matches!(gate, Some(Gate::Bench)),
    }
}

/// Candidates of one batch where several batches run at the same time.
const BATCH: usize = 10;

/// Batches, those of large groups first; one per target where nothing runs at the same time.
fn batches(cheats: &[Cheat], honest: &[Honest], jobs: usize) -> VecDeque<Batch> {
    let mut targets: BTreeMap<Target, (Vec<Cheat>, Vec<Honest>)> = BTreeMap::new();
    for cheat in cheats {
        targets
            .entry(cheat.target.clone())
            .or_default()
            .0
            .push(cheat.clone());
    }
    for candidate in honest {
        targets
            .entry(candidate.target.clone())
            .or_default()
            .1
            .push(candidate.clone());
    }
    let mut found: Vec<(usize, Batch)> = Vec::new();
    for (target, (cheats, honest)) in targets {
        let count = cheats.len() + honest.len();
        let batch = |cheats: &[Cheat], honest: &[Honest]| Batch {
            target: target.clone(),
            cheats: cheats.to_vec(),
            honest: honest.to_vec(),
        };
        if jobs == 1 || count <= 2 * BATCH {
            found.push((count, batch(&cheats, &honest)));
            continue;
        }
        found.extend(cheats.chunks(BATCH).map(|part| (count, batch(part, &[]))));
        found.extend(honest.chunks(BATCH).map(|part| (count, batch(&[], part))));
    }
    found.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    found.into_iter().map(|(_, batch)| batch).collect()
}

pub(crate) fn all(cheats: &[Cheat], honest: &[Honest], options: &Options) -> Result<Outcome, Failure> {
    let started = Instant::now();
    let state = state()?;
    let before = left::ours();
    let queue = Mutex::new(batches(cheats, honest, options.jobs));
    let together = Mutex::new(Outcome::default());
    let mut options = options.clone();
    if options.jobs > 1 {
        options.turns = Some(Arc::default());
    }
    let work = |job: usize| -> Result<(), String> {
        let folder = state.path().join(format!("job-{job}"));
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let mut open_now: Option<(Target, Judge)> = None;
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(batch) = next else { return Ok(()) };
            let count = batch.cheats.len() + batch.honest.len();
            if options.limit.is_some_and(|limit| started.elapsed() > limit) {
                together.lock().unwrap_or_else(PoisonError::into_inner).not_run += count;
                continue;
            }
            let mut judge = match open_now.take() {
                Some((target, judge)) if target == batch.target => judge,
                _ => open(&batch.target, &folder, &options).map_err(|error| error.to_string())?,
            };
            let outcome =
                run_batch(&mut judge, &batch, &folder, &options).map_err(|error| error.to_string())?;
            together
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .add(outcome);
            open_now = Some((batch.target, judge));
        }
    };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..options.jobs.max(1))
            .map(|job| {
                let work = &work;
                scope.spawn(move || work(job))
            })
            .collect();
        jobs.into_iter()
            .filter_map(|job| match job.join() {
                Ok(Ok(())) => None,
                Ok(Err(failure)) => Some(failure),
                Err(_) => Some("a worker panicked".to_owned()),
            })
            .collect()
    });
    if let Some(failure) = failures.into_iter().next() {
        return Err(failure.into());
    }
    let mut outcome = together.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcome.left_behind += left::behind(&before, Duration::from_secs(3)).len();
    outcome.cheats.sort_by(|one, other| {
        (&one.cheat.family, &one.cheat.name).cmp(&(&other.cheat.family, &other.cheat.name))
    });
    outcome
        .honest
        .sort_by(|one, other| one.honest.name.cmp(&other.honest.name));
    outcome.seconds = started.elapsed().as_secs_f64();
    Ok(outcome)
}

fn run_batch(judge: &mut Judge, batch: &Batch, state: &Path, options: &Options) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let mut naive = if options.naive && !batch.cheats.is_empty() {
        Some(naive::Evaluator::open(&batch.target, state)?)
    } else {
        None
    };
    // Beside other jobs a process cannot be told to be a leftover before the end.
    let before = (options.jobs <= 1).then(left::ours);
    let behind = || {
        before
            .as_ref()
            .map_or_else(Vec::new, |before| left::behind(before, Duration::from_secs(3)))
    };
    for cheat in &batch.cheats {
        let end = run_cheat(judge, cheat, &behind, naive.as_mut())?;
        outcome.naive_differs += usize::from(
            end.naive
                .is_some_and(|said| said.accepted() != cheat.naive.accepted()),
        );
        outcome.cheats.push(end);
    }
    for candidate in &batch.honest {
        let from = Instant::now();
        let (decision, code, gate, verdict) = self::judge(judge, &candidate.folder);
        let passed = !wronged(decision, gate, &code) && behind().is_empty();
        let evidence = evidence(verdict.as_ref());
        eprintln!(
            "{} {:24} {code} {:.1} s {}",
            if passed { "ok  " } else { "WRNG" },
            candidate.name,
            from.elapsed().as_secs_f64(),
            if passed { "" } else { &evidence },
        );
        outcome.honest.push(HonestEnd {
            honest: candidate.clone(),
            code,
            passed,
            evidence,
        });
    }
    Ok(outcome)
}

fn run_cheat(
    judge: &mut Judge,
    cheat: &Cheat,
    behind: &dyn Fn() -> Vec<u32>,
    naive: Option<&mut naive::Evaluator>,
) -> Result<CheatEnd, Failure> {
    let from = Instant::now();
    let (decision, code, gate, verdict) = self::judge(judge, &cheat.folder);
    let behind = behind();
    let caught = decision == Decision::Reject
        && gate.is_some_and(|gate| gate == cheat.gate || cheat.also.contains(&gate))
        && behind.is_empty();
    let said = match naive {
        Some(naive) => Some(naive.judge(&cheat.folder)?),
        None => None,
    };
    eprintln!(
        "{} {:24} {code} (names {}) {:.1} s {}",
        if caught { "ok  " } else { "MISS" },
        cheat.name,
        cheat.gate,
        from.elapsed().as_secs_f64(),
        if caught {
            String::new()
        } else {
            evidence(verdict.as_ref()) + &named(verdict.as_ref(), cheat.gate)
        },
    );
    if !behind.is_empty() {
        eprintln!("     left processes {behind:?}");
    }
    if let Some(said) = said {
        let differs = said.accepted() != cheat.naive.accepted();
        eprintln!(
            "     naive evaluator: {}{}",
            said.name(),
            if differs {
                format!(", the file says {}", cheat.naive.name())
            } else {
                String::new()
            }
        );
    }
    Ok(CheatEnd {
        cheat: cheat.clone(),
        code,
        gate,
        caught,
        naive: said,
    })
}

//! The probes behind an agent's tools. They see visible cases only: this judge of their own has secrets of its own,
//! which no verdict uses, and leaves out every gate that draws hidden cases.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ksmith_agents::tools::{Envelope, ToolVerdict, Verb, Verbs};
use ksmith_agents::writers::{Desk, ProposalNote, Snapshot, unified};
use ksmith_judge::{Effort, Judge, JudgeOptions};
use ksmith_ledger::{Gate, ObjectStore, ToolCall, Verdict};
use ksmith_task::{Brief, Candidate, Digest, Instance, Proposal, chain};
use serde_json::{Value, json};

use super::known::known;
use crate::Sandbox;
use crate::arena::evidence::lesson;
use crate::probe;

/// Below it lie no private toolchains: an agent's probe compiles device code with the system's.
const SYSTEM_TOOLCHAINS: &str = "/";

/// Gates beyond the visible cases: none of them is a tool's business.
const BEYOND_DEV: [Gate; 10] = [
    Gate::Hidden,
    Gate::Probes,
    Gate::Traces,
    Gate::State,
    Gate::Repeat,
    Gate::Bounds,
    Gate::Poison,
    Gate::Depends,
    Gate::Precision,
    Gate::Sanitize,
];

/// A candidate that was handed in during a session.
#[derive(Debug, Clone)]
pub(super) struct Handed {
    /// Hash of its files as they were.
    pub(super) digest: Digest,
    /// The proposal, in a folder out of the agent's reach.
    pub(super) proposal: Proposal,
}

/// One session's desk.
struct Seat {
    desk: Arc<Desk>,
    brief: Brief,
    handed: Vec<Handed>,
}

/// The judge of the probes, opened at first use, and whose files it holds as champion.
struct Prober {
    judge: Judge,
    champion: Option<Digest>,
    _state: tempfile::TempDir,
}

/// The probes behind an agent's tools.
pub(super) struct LoopVerbs {
    instance: Instance,
    /// The run's folder.
    run: PathBuf,
    sandbox: Sandbox,
    seat: Mutex<Option<Seat>>,
    prober: Mutex<Option<Prober>>,
    reports: AtomicU32,
}

/// An answer that ends a verb early.
type Early<T> = Result<T, Box<Envelope>>;

/// What a writer says of its files, as a proposal.
pub(super) fn proposal(note: ProposalNote, folder: PathBuf) -> Proposal {
    Proposal {
        folder,
        hypothesis: note.hypothesis,
        predicted_gain: note.predicted_gain,
        direction: note.direction,
        parent: note.parent,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each value is replaced whole, so one that a panic left behind is whole as well.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LoopVerbs {
    pub(super) fn new(instance: Instance, run: &Path, sandbox: Sandbox) -> Self {
        Self {
            instance,
            run: run.to_owned(),
            sandbox,
            seat: Mutex::new(None),
            prober: Mutex::new(None),
            reports: AtomicU32::new(0),
        }
    }

    /// Begins a session.
    pub(super) fn begin(&self, desk: Arc<Desk>, brief: &Brief) {
        self.reports.store(0, Ordering::Relaxed);
        *lock(&self.seat) = Some(Seat {
            desk,
            brief: brief.clone(),
            handed: Vec::new(),
        });
    }

    /// Ends a session; later calls find no desk.
    pub(super) fn end(&self) -> Vec<Handed> {
        lock(&self.seat)
            .take()
            .map(|seat| seat.handed)
            .unwrap_or_default()
    }

    fn desk(&self, verb: Verb) -> Early<(Arc<Desk>, Brief)> {
        match &*lock(&self.seat) {
            Some(seat) => Ok((Arc::clone(&seat.desk), seat.brief.clone())),
            None => Err(Box::new(Envelope::refused(
                verb,
                "tool/no-session",
                "the session is over",
            ))),
        }
    }

    /// The candidate as it is now, copied out of the agent's reach.
    fn candidate(&self, verb: Verb, desk: &Desk) -> Early<(Snapshot, PathBuf)> {
        let snapshot = desk.candidate();
        if let Some(oddity) = snapshot.oddities.first() {
            let why = format!("candidate/: {oddity}");
            return Err(Box::new(Envelope::refused(verb, "writer/odd-files", why)));
        }
        match desk.take(&snapshot) {
            Ok(folder) => Ok((snapshot, folder)),
            Err(error) => Err(Box::new(unavailable(verb, &error))),
        }
    }

    fn loaded(&self, verb: Verb, desk: &Desk) -> Early<Candidate> {
        let (_, folder) = self.candidate(verb, desk)?;
        Candidate::load(&folder).map_err(|error| {
            Box::new(
                Envelope::new(verb, ToolVerdict::Failed, chain(&error))
                    .code("policy/manifest")
                    .next("correct candidate/candidate.toml"),
            )
        })
    }

    /// Writes the whole of an answer where the agent can read and not write it.
    fn report(&self, desk: &Desk, verb: Verb, value: &Value) -> Option<PathBuf> {
        let number = self.reports.fetch_add(1, Ordering::Relaxed) + 1;
        let path = desk.reports().join(format!("{number:04}-{verb}.json"));
        let text = serde_json::to_vec_pretty(value).ok()?;
        std::fs::write(&path, text).ok()?;
        Some(path)
    }

    /// Uses the judge of the probes with the session's champion as its reference.
    fn probing<T>(&self, verb: Verb, champion: &Path, with: impl FnOnce(&mut Judge) -> T) -> Early<T> {
        let failed = |error: &dyn std::error::Error| Box::new(unavailable(verb, error));
        let mut slot = lock(&self.prober);
        // A judge that failed half-way is opened anew.
        let mut prober = match slot.take() {
            Some(prober) => prober,
            None => self.open().map_err(|error| failed(&error))?,
        };
        let files = Snapshot::read(champion, &[], ksmith_agents::writers::Bounds::CANDIDATE);
        if prober.champion != Some(files.digest()) {
            let candidate = Candidate::load(champion).map_err(|error| failed(&error))?;
            prober
                .judge
                .set_champion(&candidate)
                .map_err(|error| failed(&error))?;
            prober.champion = Some(files.digest());
        }
        let answer = with(&mut prober.judge);
        *slot = Some(prober);
        Ok(answer)
    }

    fn open(&self) -> Result<Prober, crate::RunError> {
        let state = probe::scratch("tools")?;
        let mut options = JudgeOptions::new(state.path());
        options.effort = Effort::Correctness;
        options.unsandboxed = self.sandbox == Sandbox::Unsandboxed;
        options.without = BEYOND_DEV.to_vec();
        Ok(Prober {
            judge: Judge::open(&self.instance, options).map_err(crate::arena::from_judge)?,
            champion: None,
            _state: state,
        })
    }

    fn task(&self, brief: &Brief) -> Envelope {
        let workloads: Vec<String> = brief
            .workloads
            .iter()
            .map(|workload| {
                let axes: Vec<String> = workload
                    .axes
                    .iter()
                    .map(|(axis, size)| format!("{axis}={size}"))
                    .collect();
                format!("{} ({})", workload.name, axes.join(" "))
            })
            .collect();
        let summary = format!(
            "{}: reach {:.3} of the baseline's time or less, with {} threads at most. Visible workloads: {}. Left at \
             the start of this session: {:.0} s, {} full scorings, {:.2} USD. Header: task/kernel.h; contract: \
             task/task.toml; reference and baseline lie in task/ as well.",
            brief.instance,
            brief.goal,
            brief.threads,
            workloads.join(", "),
            brief.left.wall_s,
            brief.left.candidates,
            brief.left.cost_usd,
        );
        Envelope::new(Verb::Task, ToolVerdict::Info, summary).next("read BRIEF.md, then change candidate/")
    }

    /// What the search knows of structures, and what the experience library knows of the task.
    fn know(&self, brief: &Brief, arguments: &Value) -> Envelope {
        let query = arguments
            .get("query")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_lowercase();
        let words: Vec<&str> = query.split_whitespace().collect();
        let directions = crate::writer::SearchWriter::new(&self.instance, None)
            .and_then(|mut agent| crate::writer::Writer::directions(&mut agent, brief));
        let directions = match directions {
            Ok(directions) => directions,
            Err(error) => return unavailable(Verb::Know, &error),
        };
        let structures = directions
            .iter()
            .map(|direction| {
                format!(
                    "{}: {}; expected {:.2}x, risk: {}",
                    direction.name, direction.idea, direction.value, direction.risk
                )
            })
            .filter(|line| words.is_empty() || words.iter().any(|word| line.to_lowercase().contains(word)));
        let lore = match known(&self.instance, brief.backend, &self.run, &query) {
            Ok(lore) => lore,
            Err(error) => return unavailable(Verb::Know, &error),
        };
        let lines: Vec<String> = structures.chain(lore).collect();
        if lines.is_empty() {
            return Envelope::new(Verb::Know, ToolVerdict::Info, "nothing is known that fits")
                .next("ask without a query for all structures of this family");
        }
        Envelope::new(Verb::Know, ToolVerdict::Info, lines.join("\n"))
    }

    fn check(&self, desk: &Desk) -> Early<Envelope> {
        let verb = Verb::Check;
        let candidate = self.loaded(verb, desk)?;
        let checked = probe::check_loaded(
            &self.instance,
            &candidate,
            Path::new(SYSTEM_TOOLCHAINS),
            self.sandbox,
        )
        .map_err(|error| Box::new(unavailable(verb, &error)))?;
        let (verdict, next) = match &checked.code {
            None => (ToolVerdict::Passed, "ksmith tool test"),
            Some(_) => (ToolVerdict::Failed, "correct the sources and check again"),
        };
        let mut envelope = Envelope::new(verb, verdict, format!("{:.0} ms\n{}", checked.ms, checked.log))
            .artifact("candidate", checked.digest)
            .next(next);
        envelope.report = self.report(desk, verb, &json!({ "code": checked.code, "log": checked.log }));
        envelope.code = checked.code;
        Ok(envelope)
    }

    fn test(&self, desk: &Desk, brief: &Brief) -> Early<Envelope> {
        let verb = Verb::Test;
        let candidate = self.loaded(verb, desk)?;
        let verdict = self.probing(verb, &brief.champion, |judge| judge.score(&candidate))?;
        let failed = probe::first_failure(&verdict);
        let mut envelope = match &failed {
            None => Envelope::new(verb, ToolVerdict::Passed, passed(&verdict)).next("ksmith tool bench"),
            Some(code) => Envelope::new(verb, ToolVerdict::Failed, lesson_of(&verdict, code))
                .code(code.clone())
                .next("correct the sources and test again"),
        };
        envelope = envelope.artifact("candidate", candidate.digest());
        envelope.report = self.report(desk, verb, &json!(verdict.gates));
        Ok(envelope)
    }

    fn bench(&self, desk: &Desk, brief: &Brief) -> Early<Envelope> {
        let verb = Verb::Bench;
        let candidate = self.loaded(verb, desk)?;
        let times = self
            .probing(verb, &brief.champion, |judge| judge.time_dev(&candidate))?
            .map_err(|error| Box::new(unavailable(verb, &error)))?;
        let times = match times {
            Ok(times) => times,
            Err(failure) => {
                return Ok(Envelope::new(verb, ToolVerdict::Failed, failure.evidence)
                    .code(failure.code)
                    .next("correct the sources and test again"));
            }
        };
        let ratio = |other: u64, own: u64| other as f64 / own.max(1) as f64;
        let lines: Vec<String> = times
            .iter()
            .map(|time| {
                format!(
                    "{}: {:.1} us; {:.2}x the champion, {:.2}x the baseline",
                    time.workload,
                    time.candidate_ns as f64 / 1e3,
                    ratio(time.champion_ns, time.candidate_ns),
                    ratio(time.baseline_ns, time.candidate_ns),
                )
            })
            .collect();
        let rows: Vec<Value> = times
            .iter()
            .map(|time| {
                json!({
                    "workload": time.workload,
                    "candidate_ns": time.candidate_ns,
                    "champion_ns": time.champion_ns,
                    "baseline_ns": time.baseline_ns,
                })
            })
            .collect();
        let summary = format!(
            "least times of a few calls; rough, no claim\n{}",
            lines.join("\n")
        );
        let mut envelope = Envelope::new(verb, ToolVerdict::Info, summary)
            .artifact("candidate", candidate.digest())
            .next("ksmith tool profile, or ksmith tool submit");
        envelope.report = self.report(desk, verb, &Value::Array(rows));
        Ok(envelope)
    }

    fn profile(&self, desk: &Desk) -> Early<Envelope> {
        let verb = Verb::Profile;
        let candidate = self.loaded(verb, desk)?;
        let profiled = probe::profile_loaded(&candidate, self.sandbox)
            .map_err(|error| Box::new(unavailable(verb, &error)))?;
        let profiled = match profiled {
            Ok(profiled) => profiled,
            Err(refusal) => {
                return Ok(Envelope::new(verb, ToolVerdict::Failed, refusal)
                    .code("compile/error")
                    .next("ksmith tool check"));
            }
        };
        let value = json!(profiled);
        let mut lines: Vec<String> = profiled
            .findings
            .iter()
            .map(|finding| match &finding.advice {
                Some(advice) => format!("{}: {}; {advice}", finding.subject, finding.evidence),
                None => format!("{}: {}", finding.subject, finding.evidence),
            })
            .collect();
        if lines.is_empty() {
            lines.push("nothing stands out in the machine code".into());
        }
        let mut envelope = Envelope::new(verb, ToolVerdict::Info, lines.join("\n"))
            .artifact("candidate", candidate.digest())
            .next("read the report for the model of the loops");
        envelope.report = self.report(desk, verb, &value);
        Ok(envelope)
    }

    fn diff(&self, desk: &Desk) -> Early<Envelope> {
        let (now, _) = self.candidate(Verb::Diff, desk)?;
        let before = desk.began_with();
        let none = Vec::new();
        let text: String = now
            .differences(before)
            .iter()
            .map(|name| {
                let side = |files: &'_ Snapshot| files.files.get(name).unwrap_or(&none).clone();
                unified(name, &side(before), &side(&now))
            })
            .collect();
        let changed = changes(&text);
        let mut envelope = Envelope::new(
            Verb::Diff,
            ToolVerdict::Info,
            if text.is_empty() {
                "nothing differs from the champion".to_owned()
            } else {
                text.clone()
            },
        )
        .artifact("candidate", now.digest())
        .artifact("champion", before.digest());
        if changed > 0 {
            envelope.report = self.report(desk, Verb::Diff, &Value::String(text));
        }
        Ok(envelope)
    }

    fn submit(&self, desk: &Desk) -> Early<Envelope> {
        let verb = Verb::Submit;
        let note = desk.note();
        if !note.findings.is_empty() {
            let why = note.findings.join("; ");
            return Err(Box::new(Envelope::refused(verb, "tool/no-hypothesis", why).next(
                "state hypothesis and direction in proposal.toml, then submit again",
            )));
        }
        let (snapshot, folder) = self.candidate(verb, desk)?;
        let digest = snapshot.digest();
        if snapshot.files == desk.began_with().files {
            let why = "the candidate is what you were given";
            return Err(Box::new(Envelope::refused(verb, "tool/unchanged", why)));
        }
        let mut seat = lock(&self.seat);
        let Some(seat) = seat.as_mut() else {
            return Err(Box::new(Envelope::refused(
                verb,
                "tool/no-session",
                "the session is over",
            )));
        };
        if seat.handed.iter().any(|handed| handed.digest == digest) {
            let why = "these very files are handed in already";
            return Err(Box::new(Envelope::refused(verb, "tool/duplicate", why)));
        }
        seat.handed.push(Handed {
            digest,
            proposal: proposal(note, folder),
        });
        let summary = format!(
            "handed in as number {}; it is judged after this session, and what the judge says stands in the next brief",
            seat.handed.len()
        );
        Ok(Envelope::new(verb, ToolVerdict::Info, summary)
            .artifact("candidate", digest)
            .next("stop, or try one further idea"))
    }
}

/// Lines that differ in a unified difference.
fn changes(diff: &str) -> usize {
    diff.lines()
        .filter(|line| line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---"))
        .count()
}

fn unavailable(verb: Verb, error: &dyn std::error::Error) -> Envelope {
    Envelope::new(verb, ToolVerdict::Unavailable, chain(error)).code("tool/unavailable")
}

fn passed(verdict: &Verdict) -> String {
    let gates: Vec<String> = verdict.gates.iter().map(|gate| gate.name.to_string()).collect();
    format!(
        "the visible cases pass ({}); hidden cases and their gates are the judge's own",
        gates.join(", ")
    )
}

fn lesson_of(verdict: &Verdict, code: &str) -> String {
    let text = lesson(verdict);
    if text.is_empty() { code.to_owned() } else { text }
}

/// The probes of a step that was cut short: long work that it asked for already is answered from the record, so that a
/// conversation that is begun anew goes on word for word. Short verbs are done again; they have no figures.
pub(super) struct Remembering {
    inner: Arc<LoopVerbs>,
    recorded: Mutex<VecDeque<(String, Value, Envelope)>>,
}

impl Remembering {
    /// Answers from these calls of the record first, each at most once.
    pub(super) fn new(inner: Arc<LoopVerbs>, calls: &[ToolCall], objects: &ObjectStore) -> Self {
        let recorded = calls
            .iter()
            .filter_map(|call| {
                let arguments = serde_json::from_slice(&objects.get(call.arguments.blob).ok()?).ok()?;
                let answer = serde_json::from_slice(&objects.get(call.answer?.blob).ok()?).ok()?;
                Some((call.tool.clone(), arguments, answer))
            })
            .collect();
        Self {
            inner,
            recorded: Mutex::new(recorded),
        }
    }
}

impl Verbs for Remembering {
    fn call(&self, verb: Verb, arguments: &Value) -> Envelope {
        if verb.is_long() {
            let mut recorded = lock(&self.recorded);
            let place = recorded
                .iter()
                .position(|(tool, asked, _)| tool == verb.name() && asked == arguments);
            if let Some((_, _, answer)) = place.and_then(|place| recorded.remove(place)) {
                return answer;
            }
        }
        self.inner.call(verb, arguments)
    }
}

impl Verbs for LoopVerbs {
    fn call(&self, verb: Verb, arguments: &Value) -> Envelope {
        let answer = self.desk(verb).and_then(|(desk, brief)| match verb {
            Verb::Task => Ok(self.task(&brief)),
            Verb::Know => Ok(self.know(&brief, arguments)),
            Verb::Check => self.check(&desk),
            Verb::Test => self.test(&desk, &brief),
            Verb::Bench => self.bench(&desk, &brief),
            Verb::Profile => self.profile(&desk),
            Verb::Diff => self.diff(&desk),
            Verb::Submit => self.submit(&desk),
        });
        answer.unwrap_or_else(|early| *early)
    }
}

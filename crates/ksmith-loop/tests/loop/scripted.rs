//! A judge and a writer that follow a script: what a candidate is worth stands in its own source.
//!
//! A source says `speed 2.0` (over the baseline) and may say `looks 2.2` (what the quick pass takes it for), `fails GATE/CAUSE` (full pass) or `leaves GATE/CAUSE`
//! (quick pass), `unstated` (the machine allows no statement), `final-noisy` and `final-fails GATE/CAUSE` (last
//! confirmation). That tests the loop's decisions without compilers and clocks.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ksmith_judge::{Halt, Ranking};
use ksmith_ledger::{
    Audited, Decision, Entry, Gate, GateOutcome, GateResult, RevealedSeed, Scope, SeedCommitment, Speedup,
    Verdict, read_records,
};
use ksmith_loop::arena::{Arena, ArenaError, Entrant, Evidence, Field, Promise, Screening};
use ksmith_loop::writer::{Direction, SearchWriter, Writer, WriterError};
use ksmith_loop::{
    AgentHost, AgentOptions, BuiltIn, InstanceOutcome, Interrupt, Mechanisms, ResumeOptions, RunOptions,
    Sandbox, Setting, Silent, Workshop, WriterChoice, run_with,
};
use ksmith_task::{Backend, Brief, Digest, Instance, Proposal};

/// One round of the scripted writer: a direction and its candidates, each the text of its comment.
pub(crate) type Round = (&'static str, &'static [&'static str]);

/// Two rounds, each with a new champion.
pub(crate) const TWO: &[Round] = &[("vector", &["a speed 2.0"]), ("threads", &["b speed 5.0"])];

/// What happens on the way.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    /// Called before each judgement with its number, from 1.
    pub(crate) before: Option<Arc<dyn Fn(u32) + Send + Sync>>,
    /// How long each judgement takes.
    pub(crate) pause: Duration,
    /// Whether the judge leaves off when it is asked to, as the real one does.
    pub(crate) halts: bool,
    /// What the audit of the task finds.
    pub(crate) audit: Vec<String>,
}

/// What the source of a candidate is worth over the baseline; `None` where it fails the quick pass.
pub(crate) type Speeds = Arc<dyn Fn(&str) -> Option<f64> + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Script {
    pub(crate) rounds: &'static [Round],
    pub(crate) hooks: Hooks,
    /// Recorded speeds; then the built-in offline agent proposes instead of the script.
    pub(crate) recorded: Option<Speeds>,
    /// What the judge was asked, in order.
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
}

impl Script {
    pub(crate) fn new(rounds: &'static [Round]) -> Self {
        Self {
            rounds,
            hooks: Hooks::default(),
            recorded: None,
            asked: Arc::default(),
        }
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Workshop for Script {
    fn arena(&self, _: &Instance, _: Backend, run: &Path, _: Sandbox) -> Result<Box<dyn Arena>, ArenaError> {
        Ok(Box::new(ScriptedArena {
            secrets: run.join("secrets"),
            hooks: self.hooks.clone(),
            recorded: self.recorded.clone(),
            asked: Arc::clone(&self.asked),
            halt: Halt::default(),
        }))
    }

    fn writer(&self, _: &WriterChoice, setting: &Setting<'_>) -> Result<Box<dyn Writer>, WriterError> {
        if self.recorded.is_some() {
            return Ok(Box::new(SearchWriter::new(setting.instance, setting.cache)?));
        }
        Ok(Box::new(ScriptedWriter { rounds: self.rounds }))
    }
}

struct ScriptedArena {
    secrets: PathBuf,
    hooks: Hooks,
    recorded: Option<Speeds>,
    asked: Arc<Mutex<Vec<String>>>,
    halt: Halt,
}

fn text_of(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("kernel.c")).unwrap_or_default()
}

fn after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.split(word).nth(1)?.split_whitespace().next()
}

fn gain(point: f64) -> Speedup {
    Speedup {
        point,
        lower: point * 0.99,
        upper: point * 1.01,
    }
}

impl ScriptedArena {
    fn recorded_speed(&self, text: &str) -> Option<f64> {
        self.recorded.as_ref().map_or(Some(1.0), |speeds| speeds(text))
    }

    fn speed(&self, entrant: Option<&Entrant>) -> f64 {
        entrant
            .map(|entrant| text_of(&entrant.folder))
            .and_then(|text| match after(&text, "speed ") {
                Some(speed) => speed.parse().ok(),
                None => self.recorded_speed(&text),
            })
            .unwrap_or(1.0)
    }

    fn ask(&self, what: &str, entrant: &Entrant) {
        let number = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(format!("{what} {}", entrant.id));
            u32::try_from(asked.len()).unwrap()
        };
        if let Some(before) = &self.hooks.before {
            before(number);
        }
        std::thread::sleep(self.hooks.pause);
    }

    fn is_halted(&self) -> Result<(), ArenaError> {
        if self.hooks.halts && self.halt.is_wanted() {
            return Err(ArenaError::Halted);
        }
        Ok(())
    }

    fn draw(&self, purpose: &str) {
        use std::io::Write as _;
        let drawn = std::fs::read_to_string(&self.secrets)
            .unwrap_or_default()
            .lines()
            .count();
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.secrets)
            .unwrap();
        file.write_all(format!("{purpose}-{drawn}\n").as_bytes()).unwrap();
    }

    fn verdict(&self, entrant: &Entrant, field: &Field) -> Verdict {
        let text = text_of(&entrant.folder);
        self.verdict_of(entrant, field, after(&text, " fails "), text.contains("unstated"))
    }

    fn verdict_of(&self, entrant: &Entrant, field: &Field, failed: Option<&str>, unstated: bool) -> Verdict {
        let text = text_of(&entrant.folder);
        let over = |other: Option<&Entrant>| gain(self.speed(Some(entrant)) / self.speed(other));
        let over_champion = over(field.champion.as_ref());
        let gate = |name: Gate, code: Option<&str>| GateResult {
            name,
            result: if code.is_some() {
                GateOutcome::Fail
            } else {
                GateOutcome::Pass
            },
            code: code.map(str::to_owned),
            ms: 1.0,
            evidence: serde_json::Value::Null,
        };
        let (decision, code) = match failed {
            _ if unstated => (Decision::Error, "bench/noisy"),
            Some(code) => (Decision::Reject, code),
            None if over_champion.lower > 1.01 => (Decision::Accept, "accept/confirmed"),
            None if over_champion.point > 1.0 => (Decision::Revise, "gain/undecided"),
            None => (Decision::Reject, "gain/below-floor"),
        };
        let measured = failed.is_none() && !unstated;
        Verdict {
            verdict: decision,
            code: code.to_owned(),
            gate: if unstated {
                Some(Gate::Bench)
            } else {
                failed.map(|_| Gate::Hidden)
            },
            tier: "native".into(),
            isolation: "scripted".into(),
            scope: Scope::Cpu,
            scope_note: Scope::Cpu.sentence().into(),
            speedup: measured.then_some(over_champion),
            over_baseline: measured.then(|| over(None)),
            over_flag_control: field
                .flag_control
                .as_ref()
                .filter(|_| measured)
                .map(|control| over(Some(control))),
            gates: vec![gate(Gate::Compile, None), gate(Gate::Hidden, failed)],
            task: Digest::of(b"task"),
            candidate: ksmith_task::Candidate::load(&entrant.folder)
                .map_or(Digest::of(text.as_bytes()), |candidate| candidate.digest()),
            judge: Digest::of(b"judge"),
            device: Digest::of(b"device"),
        }
    }
}

impl Arena for ScriptedArena {
    fn promise(&mut self, step: Promise) -> Result<(), ArenaError> {
        if step == Promise::Score {
            self.draw("score");
        }
        Ok(())
    }

    fn commitments(&self) -> Vec<SeedCommitment> {
        let text = std::fs::read_to_string(&self.secrets).unwrap_or_default();
        text.lines()
            .map(|line| SeedCommitment::new(line, line.as_bytes()))
            .collect()
    }

    fn halt_when(&mut self, halt: Halt) {
        self.halt = halt;
    }

    fn reveal(&self) -> Vec<RevealedSeed> {
        let text = std::fs::read_to_string(&self.secrets).unwrap_or_default();
        text.lines()
            .map(|line| RevealedSeed::new(line, line.as_bytes()))
            .collect()
    }

    fn audit(&mut self) -> Result<Audited, ArenaError> {
        Ok(Audited {
            passed: self.hooks.audit.is_empty(),
            findings: self.hooks.audit.clone(),
            detail: serde_json::Value::Null,
            ms: 0.0,
        })
    }

    fn baseline(&mut self, baseline: &Entrant) -> Result<Evidence, ArenaError> {
        self.ask("baseline", baseline);
        Ok(Evidence {
            verdict: self.verdict(baseline, &Field::default()),
            records: Vec::new(),
            alpha: 0.0,
        })
    }

    fn screen(&mut self, candidate: &Entrant, field: &Field) -> Result<Screening, ArenaError> {
        self.ask("screen", candidate);
        let text = text_of(&candidate.folder);
        let code = match self.recorded_speed(&text) {
            Some(_) => after(&text, "leaves ").map(str::to_owned),
            None => Some("compile/error".to_owned()),
        };
        Ok(Screening {
            kept: code.is_none(),
            ratio: code.is_none().then(|| {
                let looks = after(&text, "looks ").and_then(|speed| speed.parse().ok());
                looks.unwrap_or_else(|| self.speed(Some(candidate))) / self.speed(field.champion.as_ref())
            }),
            digest: code.clone().unwrap_or_default(),
            code,
            ms: 1.0,
        })
    }

    fn beside(&mut self, candidates: &[Entrant], field: &Field) -> Result<Ranking, ArenaError> {
        self.ask("beside", &candidates[0]);
        self.is_halted()?;
        let champion = self.speed(field.champion.as_ref());
        Ok(Ranking {
            rounds: 5,
            ratios: candidates
                .iter()
                .map(|candidate| Ok(self.speed(Some(candidate)) / champion))
                .collect(),
        })
    }

    fn score(&mut self, candidate: &Entrant, field: &Field) -> Result<Evidence, ArenaError> {
        self.ask("score", candidate);
        self.is_halted()?;
        Ok(Evidence {
            verdict: self.verdict(candidate, field),
            records: Vec::new(),
            alpha: 0.01,
        })
    }

    fn confirm(&mut self, champion: &Entrant, field: &Field) -> Result<Evidence, ArenaError> {
        self.ask("confirm", champion);
        let field = Field {
            champion: None,
            ..field.clone()
        };
        Ok(Evidence {
            verdict: {
                let text = text_of(&champion.folder);
                let noisy = text.contains("final-noisy");
                self.verdict_of(champion, &field, after(&text, "final-fails "), noisy)
            },
            records: Vec::new(),
            alpha: 0.005,
        })
    }
}

struct ScriptedWriter {
    rounds: &'static [Round],
}

impl Writer for ScriptedWriter {
    fn name(&self) -> String {
        "script".into()
    }

    fn directions(&mut self, _: &Brief) -> Result<Vec<Direction>, WriterError> {
        let mut directions: Vec<Direction> = Vec::new();
        for (name, _) in self.rounds {
            if !directions.iter().any(|direction| direction.name == *name) {
                directions.push(Direction {
                    name: (*name).into(),
                    idea: "as the script says".into(),
                    value: 2.0,
                    risk: "none".into(),
                });
            }
        }
        Ok(directions)
    }

    /// The next round follows from the history alone: that of a writer that was just started again too.
    fn propose(&mut self, brief: &Brief, wanted: usize) -> Result<Vec<Proposal>, WriterError> {
        let tried = |direction: &str, text: &str| {
            brief
                .history
                .iter()
                .any(|past| past.direction == direction && past.hypothesis == text)
        };
        let closed = |direction: &str| {
            brief
                .notes
                .iter()
                .any(|note| note.contains(&format!("`{direction}` is closed")))
        };
        let Some((direction, texts)) = self.rounds.iter().find(|(direction, texts)| {
            !closed(direction) && texts.iter().any(|text| !tried(direction, text))
        }) else {
            return Ok(Vec::new());
        };
        let fresh = texts.iter().filter(|text| !tried(direction, text)).take(wanted);
        Ok(fresh
            .enumerate()
            .map(|(index, text)| {
                let folder = brief.out.join(format!("candidate-{index}"));
                std::fs::create_dir_all(&folder).unwrap();
                let name = text.split_whitespace().next().unwrap_or_default();
                let body = if name == "broken" {
                    "this is no manifest".to_owned()
                } else {
                    "schema = 1\nbackend = \"cpu\"\nsources = [\"kernel.c\"]\nentry = \"softmax\"\n"
                        .to_owned()
                };
                std::fs::write(folder.join("candidate.toml"), body).unwrap();
                let id = text.replace("again ", "");
                std::fs::write(
                    folder.join("kernel.c"),
                    // No comment: a source that differs in comments only is the same candidate.
                    format!("#pragma script {id}\nvoid softmax(void) {{}}\n"),
                )
                .unwrap();
                Proposal {
                    folder,
                    hypothesis: (*text).to_owned(),
                    predicted_gain: Some(2.0),
                    direction: (*direction).to_owned(),
                    parent: None,
                }
            })
            .collect())
    }
}

/// Runs one instance to its end.
pub(crate) fn run(workshop: &dyn Workshop, options: &RunOptions) -> InstanceOutcome {
    let outcome = run_with(options, workshop, &mut Silent).unwrap();
    assert_eq!(outcome.instances.len(), 1);
    outcome.instances[0].clone()
}

/// How to go on with a run.
pub(crate) fn resume_options(home: &Path, run: &Path) -> ResumeOptions {
    ResumeOptions {
        run: run.to_owned(),
        home: home.to_owned(),
        agent_host: AgentHost::default(),
        interrupt: Interrupt::default(),
        command: vec!["test".into()],
        signing_key: Some(home.join("signing.key")),
    }
}

/// What `pick` takes of a run's records, in order.
pub(crate) fn picked<T>(run: &Path, pick: fn(Entry) -> Option<T>) -> Vec<T> {
    read_records(run)
        .unwrap()
        .iter()
        .filter_map(|record| pick(record.entry().unwrap()))
        .collect()
}

/// The records of a run.
pub(crate) fn entries(outcome: &InstanceOutcome) -> Vec<Entry> {
    picked(&outcome.dir, Some)
}

/// Codes of the process gates that fired, in order.
pub(crate) fn gate_codes(outcome: &InstanceOutcome) -> Vec<String> {
    picked(&outcome.dir, |entry| match entry {
        Entry::ProcessGate(gate) => Some(gate.code),
        _ => None,
    })
}

/// The scripted judge. The script writes where the offline agent is asked for; every other writer is the real one.
pub(crate) struct Mixed(pub(crate) Script);

impl Workshop for Mixed {
    fn arena(
        &self,
        instance: &Instance,
        backend: Backend,
        run: &Path,
        sandbox: Sandbox,
    ) -> Result<Box<dyn Arena>, ArenaError> {
        self.0.arena(instance, backend, run, sandbox)
    }

    fn writer(&self, choice: &WriterChoice, setting: &Setting<'_>) -> Result<Box<dyn Writer>, WriterError> {
        match choice {
            WriterChoice::Search => self.0.writer(choice, setting),
            _ => BuiltIn.writer(choice, setting),
        }
    }
}

/// A home with a copy of one shipped task.
pub(crate) struct Home {
    pub(crate) folder: tempfile::TempDir,
    name: &'static str,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self::of("softmax")
    }

    pub(crate) fn of(name: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let task = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../tasks")
            .join(name);
        copy(&task, &folder.path().join(name));
        Self { folder, name }
    }

    pub(crate) fn task(&self) -> PathBuf {
        self.folder.path().join(self.name)
    }

    pub(crate) fn options(&self) -> RunOptions {
        RunOptions {
            task: self.task(),
            home: self.folder.path().to_owned(),
            backend: Backend::Cpu,
            types: Vec::new(),
            wall_s: Some(3600.0),
            candidates: Some(60),
            cost_usd: None,
            tokens: None,
            device_s: None,
            seed: 0,
            writer: WriterChoice::Search,
            mechanisms: Mechanisms::all(),
            review: ksmith_loop::ReviewOptions::default(),
            sandbox: Sandbox::Required,
            agents: AgentOptions::default(),
            agent_host: AgentHost::default(),
            interrupt: Interrupt::default(),
            command: vec!["test".into()],
            signing_key: Some(self.folder.path().join("signing.key")),
        }
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

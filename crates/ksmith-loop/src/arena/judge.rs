//! The real judge behind [`Arena`].

use std::path::Path;
use std::time::Instant;

use ksmith_judge::{Halt, Judge, JudgeError, JudgeOptions, Ranking};
use ksmith_ledger::{Audited, BenchStage, Decision, ObjectStore, RevealedSeed, SeedCommitment, Verdict};
use ksmith_task::{Backend, Candidate, Instance, chain};

use super::evidence;
use super::{Arena, ArenaError, Entrant, Evidence, Field, Promise, Screening};
use crate::Sandbox;

/// One open judge for one instance.
pub struct JudgeArena {
    judge: Judge,
    options: JudgeOptions,
    instance: Instance,
    baseline: Candidate,
    /// Where raw samples are kept.
    objects: ObjectStore,
    /// Id of the candidate that is the judge's performance reference; none means the baseline.
    champion: Option<String>,
    flag_control: Option<String>,
}

impl JudgeArena {
    /// Opens a judge whose state lies in the run's folder, outside every box.
    ///
    /// # Errors
    /// When the judge cannot judge this task here.
    pub fn open(
        instance: &Instance,
        backend: Backend,
        run: &Path,
        sandbox: Sandbox,
    ) -> Result<Self, ArenaError> {
        let task = instance.task();
        let baseline = task.contract().baseline.get(&backend).ok_or_else(|| {
            let name = backend.name();
            ArenaError::Contract(format!(
                "the task names no baseline for {name}: add `baseline = {{ {name} = \"..\" }}`"
            ))
        })?;
        let baseline = Candidate::load(task.dir().join(baseline))
            .map_err(|error| ArenaError::Contract(format!("the baseline: {error}")))?;
        let mut options = JudgeOptions::new(&run.join("judge")).on(backend);
        options.unsandboxed = match sandbox {
            Sandbox::Required => false,
            Sandbox::Unsandboxed => true,
        };
        let judge = Judge::open(instance, options.clone()).map_err(from_judge)?;
        Ok(Self {
            judge,
            options,
            instance: instance.clone(),
            baseline,
            objects: ObjectStore::new(run),
            champion: None,
            flag_control: None,
        })
    }

    /// Makes the judge's references those of `field`; each is built once.
    fn set(&mut self, field: &Field) -> Result<(), ArenaError> {
        let champion = field.champion.as_ref().map(|champion| champion.id.clone());
        if self.champion != champion {
            let candidate = match &field.champion {
                Some(entrant) => load(entrant)?,
                None => self.baseline.clone(),
            };
            self.judge.set_champion(&candidate).map_err(from_judge)?;
            self.champion = champion;
        }
        if let Some(control) = &field.flag_control
            && self.flag_control.as_ref() != Some(&control.id)
        {
            self.judge.set_flag_control(&load(control)?).map_err(from_judge)?;
            self.flag_control = Some(control.id.clone());
        }
        Ok(())
    }

    fn evidence(&self, id: &str, champion: Option<&str>, verdict: Verdict) -> Result<Evidence, ArenaError> {
        if self.judge.was_halted() {
            return Err(ArenaError::Halted);
        }
        let workloads: Vec<(String, f64)> = self
            .instance
            .workloads(self.options.backend)
            .map(|workload| (workload.name.clone(), workload.weight))
            .collect();
        let mut evidence = evidence::of(id, champion, verdict, self.judge.report(), &workloads);
        evidence::keep_samples(&mut evidence.records, self.judge.report(), &self.objects)
            .map_err(|error| ArenaError::Internal(format!("the raw samples: {}", chain(&error))))?;
        Ok(evidence)
    }
}

impl Arena for JudgeArena {
    fn promise(&mut self, step: Promise) -> Result<(), ArenaError> {
        match step {
            Promise::Screen => self.judge.promise_screen(),
            Promise::Score => self.judge.promise_score(),
        }
        .map_err(from_judge)
    }

    fn commitments(&self) -> Vec<SeedCommitment> {
        self.judge.commitments()
    }

    fn reveal(&self) -> Vec<RevealedSeed> {
        self.judge.reveal()
    }

    fn halt_when(&mut self, halt: Halt) {
        self.judge.halt_when(halt);
    }

    fn build_ahead(&mut self, folders: &[&Path]) {
        // A folder that is no candidate is turned away by name when its turn comes.
        let candidates: Vec<Candidate> = folders
            .iter()
            .filter_map(|folder| Candidate::load(folder).ok())
            .collect();
        self.judge.build_ahead(&candidates);
    }

    fn audit(&mut self) -> Result<Audited, ArenaError> {
        let began = Instant::now();
        // The audit draws secrets of its own: those of the run are not spent on it.
        let mut options = self.options.clone();
        options.secrets.set_extension("audit");
        let audit = ksmith_judge::audit(&self.instance, options).map_err(from_judge)?;
        Ok(Audited {
            passed: audit.passed(),
            findings: audit
                .findings
                .iter()
                .map(|finding| format!("{}: {}", finding.check, finding.text))
                .collect(),
            detail: serde_json::to_value(&audit)
                .map_err(|error| ArenaError::Internal(format!("the audit cannot be written: {error}")))?,
            ms: began.elapsed().as_secs_f64() * 1e3,
        })
    }

    fn baseline(&mut self, baseline: &Entrant) -> Result<Evidence, ArenaError> {
        self.set(&Field::default())?;
        let verdict = self.judge.screen(&self.baseline);
        if self.judge.was_halted() {
            return Err(ArenaError::Halted);
        }
        let mut evidence = evidence::of(&baseline.id, None, verdict, None, &[]);
        let mut bench = evidence::bench_of_gates(&baseline.id, BenchStage::Screen, &evidence.verdict);
        bench.conditions = serde_json::json!({ "rough_ns": self.judge.call_ns() });
        evidence.records = vec![bench.into()];
        Ok(evidence)
    }

    fn screen(&mut self, candidate: &Entrant, field: &Field) -> Result<Screening, ArenaError> {
        self.set(field)?;
        let began = Instant::now();
        let verdict = self.judge.screen(&load(candidate)?);
        if self.judge.was_halted() {
            return Err(ArenaError::Halted);
        }
        let kept = match verdict.verdict {
            Decision::Accept | Decision::Revise | Decision::Ambiguous => true,
            Decision::Reject | Decision::Error => false,
        };
        Ok(Screening {
            kept,
            code: (!kept).then(|| verdict.code.clone()),
            ratio: evidence::quick_ratio(&verdict),
            ms: began.elapsed().as_secs_f64() * 1e3,
            digest: if kept {
                String::new()
            } else {
                evidence::lesson(&verdict)
            },
        })
    }

    fn beside(&mut self, candidates: &[Entrant], field: &Field) -> Result<Ranking, ArenaError> {
        self.set(field)?;
        let candidates = candidates.iter().map(load).collect::<Result<Vec<_>, _>>()?;
        self.judge.beside(&candidates).map_err(from_judge)
    }

    fn score(&mut self, candidate: &Entrant, field: &Field) -> Result<Evidence, ArenaError> {
        self.set(field)?;
        let verdict = self.judge.score(&load(candidate)?);
        self.evidence(&candidate.id, self.champion.as_deref(), verdict)
    }

    /// The baseline is made the reference, so that the confirmed gain is the one over the baseline.
    fn confirm(&mut self, champion: &Entrant, field: &Field) -> Result<Evidence, ArenaError> {
        let field = Field {
            champion: None,
            ..field.clone()
        };
        self.set(&field)?;
        let verdict = self.judge.score(&load(champion)?);
        self.evidence(&champion.id, None, verdict)
    }
}

fn load(entrant: &Entrant) -> Result<Candidate, ArenaError> {
    Candidate::load(&entrant.folder)
        .map_err(|error| ArenaError::Internal(format!("candidate `{}`: {error}", entrant.id)))
}

/// Whose fault it is that nothing can be judged.
pub(crate) fn from_judge(error: JudgeError) -> ArenaError {
    let what = chain(&error);
    match error {
        JudgeError::Box(_) => ArenaError::Environment {
            what,
            fix: "`ksmith doctor` shows what the kernel gives; `--unsandboxed` runs without, and every record shows it."
                .into(),
        },
        JudgeError::Halted => ArenaError::Halted,
        JudgeError::Build(_) => {
            ArenaError::Environment { what, fix: "Install gcc and g++; `ksmith doctor` shows what is found.".into() }
        }
        JudgeError::Reference(_)
        | JudgeError::Baseline { .. }
        | JudgeError::NoBaseline(_)
        | JudgeError::BaselineFails { .. }
        | JudgeError::Workload { .. }
        | JudgeError::Shapes(_)
        | JudgeError::Trace { .. } => ArenaError::Contract(what),
        JudgeError::Unsupported(_) => {
            ArenaError::Environment { what, fix: "`ksmith doctor` shows the route for this machine.".into() }
        }
        _ => ArenaError::Internal(what),
    }
}

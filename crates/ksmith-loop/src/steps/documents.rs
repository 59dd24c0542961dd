//! Draft and plan: written from facts, gated, recorded, and only then is any code written.

use ksmith_ledger::{Draft, Plan};

use crate::planner::{self, DraftFacts, WorkloadFact};
use crate::session::Session;
use crate::step::closed_directions;
use crate::{RunError, Stage};

impl Session<'_> {
    pub(crate) fn draft(&mut self) -> Result<(), RunError> {
        self.stage(Stage::Draft, None);
        let facts = self.facts()?;
        let text = planner::draft(&facts);
        let findings = planner::check_draft(&text);
        let blob = self.ledger.objects().put(text.as_bytes())?;
        self.write("draft.md", &text)?;
        let accepted = findings.is_empty();
        self.append(Draft {
            text: blob,
            accepted,
            findings: findings.clone(),
        })?;
        if accepted {
            Ok(())
        } else {
            Err(RunError::Gate {
                document: "draft",
                findings,
            })
        }
    }

    /// Plans, with a critic where there is a reviewer. Where it leaves decisions to a person, nothing is planned yet:
    /// the run waits, and comes back here.
    pub(crate) fn plan(&mut self) -> Result<(), RunError> {
        self.stage(Stage::Plan, None);
        let mut facts = self.facts()?;
        let draft = self.draft_text()?;
        if self.criticise(&mut facts, &draft)? {
            self.write_plan(&facts, &draft)?;
        }
        Ok(())
    }

    /// Plans again without the directions that are closed.
    pub(crate) fn replan(&mut self) -> Result<(), RunError> {
        self.stage(Stage::Plan, None);
        let mut facts = self.facts()?;
        let closed = closed_directions(&self.memory);
        facts.directions.retain(|direction| {
            let is_closed = closed.contains(&direction.name);
            if is_closed {
                let why = "it is closed: it had its tries without a gain".to_owned();
                facts.left_out.push((direction.name.clone(), why));
            }
            !is_closed
        });
        let draft = self.draft_text()?;
        self.write_plan(&facts, &draft)
    }

    pub(crate) fn draft_text(&self) -> Result<String, RunError> {
        Ok(match &self.memory.draft {
            Some(draft) => self.ledger.objects().get_text(draft.text.blob)?,
            None => String::new(),
        })
    }

    fn write_plan(&mut self, facts: &DraftFacts, draft: &str) -> Result<(), RunError> {
        let steps = planner::plan_steps(facts);
        let text = planner::plan(facts, &steps);
        let findings = planner::check_plan(&text, draft);
        let blob = self.ledger.objects().put(text.as_bytes())?;
        self.write("plan.md", &text)?;
        let accepted = findings.is_empty();
        self.append(Plan {
            text: blob,
            accepted,
            findings: findings.clone(),
            steps,
        })?;
        if accepted {
            Ok(())
        } else {
            Err(RunError::Gate {
                document: "plan",
                findings,
            })
        }
    }

    /// Only what was measured, parsed or declared.
    fn facts(&mut self) -> Result<DraftFacts, RunError> {
        let workspace = self.workspace(0)?;
        let brief = self.brief(&[], workspace)?;
        let directions = self.writer.directions(&brief)?;
        let contract = self.instance.task().contract();
        let baseline = self.memory.baseline.as_ref();
        let rough = baseline.and_then(|benched| benched.conditions.get("rough_ns"));
        let median = |workload: &str| Some(rough?.get(workload)?.as_f64()? / 1e3);
        let workloads = self
            .instance
            .workloads(self.backend)
            .map(|workload| {
                let bound = self.instance.bind(&workload.axes);
                let (bytes, flops) = bound.map_or((0.0, 0.0), |bound| (bound.cost_bytes, bound.cost_flops));
                let sizes: Vec<String> = workload
                    .axes
                    .iter()
                    .map(|(axis, size)| format!("{axis} {size}"))
                    .collect();
                WorkloadFact {
                    name: workload.name.clone(),
                    sizes: sizes.join(", "),
                    median_us: median(&workload.name),
                    bytes,
                    flops,
                }
            })
            .collect();
        let opened = self.memory.opened.as_ref();
        let budget = self.memory.budget();
        Ok(DraftFacts {
            instance: self.instance.id(),
            task: self.task_argument.clone(),
            goal: contract.performance.goal.on(self.backend),
            machine: opened
                .map(|opened| {
                    vec![
                        opened.device_name.clone(),
                        format!("compiler {}", opened.compiler),
                        format!("isolation `{}`", opened.isolation),
                    ]
                })
                .unwrap_or_default(),
            gates: baseline
                .into_iter()
                .flat_map(|benched| &benched.gates)
                .filter(|gate| gate.result == ksmith_ledger::GateOutcome::Pass)
                .map(|gate| gate.name.to_string())
                .collect(),
            workloads,
            warnings: self
                .memory
                .audit
                .as_ref()
                .map(|audit| audit.findings.clone())
                .unwrap_or_default(),
            directions,
            left_out: Vec::new(),
            budget: format!(
                "{}, {} full scorings, {} USD",
                if budget.wall_s.is_finite() {
                    format!("{:.0} s of wall time", budget.wall_s)
                } else {
                    "no limit of wall time".to_owned()
                },
                budget.candidates,
                budget.cost_usd
            ),
        })
    }

    fn write(&self, name: &str, text: &str) -> Result<(), RunError> {
        let path = self.dir().join(name);
        std::fs::write(&path, text).map_err(RunError::io("write", &path))
    }
}

//! Rates of the rule: how often it accepts, over many simulated judgements.

use super::random::Random;
use super::{Machine, Model, ModelHost, Recording, ReplayHost};
use crate::bench::{
    BaselineArm, Distribution, Finding, FlagControlArm, OrderSeed, Plan, Report, Settings, Workload, measure,
};

/// How many simulated judgements ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tally {
    /// Judgements.
    pub judged: u32,
    /// Decisions for the candidate, whatever the confirmation said.
    pub decided: u32,
    /// Confirmed.
    pub accepted: u32,
    /// Bounded below the floor, contradicted, or not confirmed.
    pub rejected: u32,
    /// Of these, bounded below the floor in the decision stage.
    pub below_floor: u32,
    /// Neither.
    pub undecided: u32,
    /// Off or wide controls and busy machines: no statement.
    pub unjudged: u32,
    /// Pairs in the decision stage, summed.
    pub pairs: u64,
    /// Seconds of both stages on the simulated clock, summed.
    pub seconds: f64,
}

impl Tally {
    /// Counts one report.
    pub fn add(&mut self, report: &Report) {
        self.judged += 1;
        self.below_floor += u32::from(report.finding == Finding::BelowFloor);
        self.decided += u32::from(report.confirmation.is_some());
        match report.finding {
            Finding::Confirmed => self.accepted += 1,
            Finding::NotConfirmed | Finding::BelowFloor | Finding::Contradiction { .. } => self.rejected += 1,
            Finding::Undecided { .. } => self.undecided += 1,
            Finding::MachineBusy { .. } | Finding::Noisy { .. } => self.unjudged += 1,
            Finding::Fault { .. } | Finding::Broken { .. } => self.unjudged += 1,
        }
        self.pairs += report
            .decision
            .looks
            .last()
            .map_or(0, |look| u64::from(look.pairs));
        self.seconds += report.decision.record.seconds;
        self.seconds += report
            .confirmation
            .as_ref()
            .map_or(0.0, |stage| stage.record.seconds);
    }
}

/// A tally as shares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Share accepted.
    pub accepted: f64,
    /// Share that passed the decision stage.
    pub decided: f64,
    /// Share without a statement.
    pub unjudged: f64,
    /// Mean pairs of the decision stage.
    pub pairs: f64,
    /// Mean seconds of a judgement.
    pub seconds: f64,
}

impl From<Tally> for Rates {
    fn from(tally: Tally) -> Self {
        let judged = f64::from(tally.judged.max(1));
        Self {
            accepted: f64::from(tally.accepted) / judged,
            decided: f64::from(tally.decided) / judged,
            unjudged: f64::from(tally.unjudged) / judged,
            pairs: tally.pairs as f64 / judged,
            seconds: tally.seconds / judged,
        }
    }
}

/// What a simulation draws its times from.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// A model.
    Model(Machine, Model),
    /// Recorded A/A timings and the share of time that the candidate saves.
    Recording(&'a Recording, f64),
}

/// A plan with one workload, a fresh case for each call, and these settings.
pub fn plain_plan(settings: Settings) -> Plan {
    let distribution = Distribution {
        name: "any".to_owned(),
        cases: 100_000,
    };
    Plan {
        workloads: vec![Workload {
            name: "only".to_owned(),
            weight: 1.0,
            distributions: vec![distribution],
        }],
        baseline: BaselineArm::IsChampion,
        flag_control: FlagControlArm::Absent,
        settings,
    }
}

/// Judges `count` times with the real scheduler and rule, both stages.
pub fn simulate(source: Source<'_>, plan: &Plan, count: u32, seed: u64) -> Tally {
    let mut random = Random::new(seed, 13);
    let mut tally = Tally::default();
    for judgement in 0..u64::from(count) {
        let order = OrderSeed(random.seed());
        let world = seed.wrapping_mul(1_000_003).wrapping_add(judgement);
        let report = match source {
            Source::Model(machine, model) => measure(&mut ModelHost::new(machine, model, world), plan, order),
            Source::Recording(recording, saved) => {
                // Lanes keep the length that was recorded, however short the candidate's calls become.
                let settings = Settings {
                    lane_calls: recording.lane_calls,
                    lane_ns: u64::MAX,
                    ..plan.settings
                };
                let plan = Plan {
                    settings,
                    ..plan.clone()
                };
                measure(&mut ReplayHost::new(recording, saved, world), &plan, order)
            }
        };
        tally.add(&report);
    }
    tally
}

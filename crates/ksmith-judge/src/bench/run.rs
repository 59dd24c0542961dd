//! Decision, then confirmation.

use super::{Finding, Host, Load, Plan, Report, Stage, StageRecord, StageReport};

/// Seed of the order of everything; drawn and committed by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderSeed(pub [u8; 32]);

/// Measures the candidate against the plan's arms: a decision stage, and a confirmation if it was for the candidate.
///
/// Faults and limits are findings, never errors: the record so far is always kept.
pub fn measure<H: Host>(host: &mut H, plan: &Plan, seed: OrderSeed) -> Report {
    let _ = (host, seed);
    Report {
        finding: Finding::Broken {
            what: "the scheduler is not built yet".to_owned(),
        },
        decision: StageReport {
            stage: Stage::Decision,
            alpha: plan.settings.alpha,
            planned_pairs: 0,
            looks: Vec::new(),
            unpreempted: 0.0,
            control: None,
            floor: plan.settings.floor,
            over_champion: None,
            over_baseline: None,
            over_flag_control: None,
            record: StageRecord {
                stage: Stage::Decision,
                load: Load {
                    other_cpus: None,
                    waited_s: 0.0,
                    quiet: false,
                },
                seconds: 0.0,
                lane_calls: Vec::new(),
                sets: Vec::new(),
            },
        },
        confirmation: None,
    }
}

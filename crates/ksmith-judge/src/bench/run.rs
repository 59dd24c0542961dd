//! Decision, then confirmation.

use super::stage::{StageEnd, confirmation_pairs, run_stage};
use super::{Finding, Host, Plan, Report, Stage};

/// Seed of the order of everything; drawn and committed by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderSeed(pub [u8; 32]);

/// Measures the candidate against the plan's arms: a decision stage, and a confirmation if it was for the candidate.
///
/// Faults and limits are findings, never errors: the record so far is always kept.
pub fn measure<H: Host>(host: &mut H, plan: &Plan, seed: OrderSeed) -> Report {
    let (decision, end) = run_stage(host, plan, Stage::Decision, seed, 0.0);
    match end {
        StageEnd::Above => {}
        StageEnd::Undecided(limit) => {
            return Report {
                finding: Finding::Undecided { limit },
                decision,
                confirmation: None,
            };
        }
        StageEnd::Found(finding) => {
            return Report {
                finding,
                decision,
                confirmation: None,
            };
        }
    }
    let planned = confirmation_pairs(plan, &decision);
    let (confirmation, end) = run_stage(host, plan, Stage::Confirmation, seed, planned);
    let finding = match end {
        StageEnd::Above => Finding::Confirmed,
        StageEnd::Undecided(_) | StageEnd::Found(Finding::BelowFloor) => Finding::NotConfirmed,
        StageEnd::Found(finding) => finding,
    };
    Report {
        finding,
        decision,
        confirmation: Some(confirmation),
    }
}

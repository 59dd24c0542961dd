//! The template planner: draft and plan from facts, and the mechanical gates that any planner's texts must pass.
//!
//! The planner states only what was measured, parsed or declared. Its gates read the text, not the planner's
//! structures, so that a text written by an agent meets the same checks. A critic ([`apply`]) may reorder, drop and add
//! directions; it writes no text.

mod check;
mod critic;
mod draft;
mod gate;
mod plan;

pub use check::{Check, CheckError, StepState, states};
pub use critic::apply;
pub use draft::{DraftFacts, WorkloadFact, draft};
pub use gate::{DRAFT_TOPICS, check_draft, check_plan};
pub use plan::{plan, plan_steps, steps_of};

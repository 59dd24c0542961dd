//! Reviewers: a second opinion that may veto or direct, and never promotes.
//!
//! The judge's evidence keeps or drops a candidate. A reviewer is asked only at a few moments ([`due`]), always in a
//! fresh context, of another vendor than the writer ([`Vendor`]), and sees contract, change, evidence and profile
//! before any prose of the writer. It answers with one JSON object over a pipe, bound to task, source and judge and to
//! a number of ours that is new in every attempt. Whatever is not such an answer is asked for once more and then counts
//! as *not passed*: a refusal, silence, a planted file, a verdict quoted later, an approval of earlier files.
//!
//! A reviewer reads; the folder that it is shown is hashed before and after.

mod answer;
mod attempt;
mod command;
mod contract;
mod docket;
mod model;
mod occasion;
mod plan;
mod prompt;
mod request;
mod reviewer;
mod rules;
mod vendor;

pub use answer::{Answer, Finding, Next, Weight, Word};
pub use attempt::{Attempt, Bound, Held, Silence, Spoken, Subject, Voice, hold};
pub use command::{CommandError, CommandReviewer};
pub use contract::{ContractAnswer, ContractRequest, FoundAmbiguity, LEAST_AMBIGUITIES};
pub use docket::{Batch, Docket, ROUNDS};
pub use model::ModelReviewer;
pub use occasion::{Facts, HeldReview, Occasion, due};
pub use plan::{Critique, Decision, PLAN_ROUNDS, PlanChange, PlanRequest};
pub use prompt::{Binding, Prompt, Section};
pub use request::Request;
pub use reviewer::{Foreign, Review, Reviewer, Verdict};
pub use rules::RulesReviewer;
pub use vendor::{Identity, Independence, SameVendor, Vendor, independent};

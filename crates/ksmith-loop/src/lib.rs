//! The state machine of a run: lock, draft, plan, rounds, confirmation, certificate.
//!
//! Every step appends to the ledger before the next begins, and the state of a run is a pure fold over its records
//! ([`Memory`]). Going on after a crash is therefore the same code as going on after a step: read the records, ask
//! what comes next, do it. This crate decides *when* something is judged and *what* is kept; what a candidate is
//! worth is said by the judge alone.

mod agents;
pub mod arena;
mod budget;
mod contract_review;
mod course;
mod error;
mod guard;
mod interrupt;
mod judge_one;
mod judgement;
mod lessons;
mod mechanisms;
pub mod memory;
mod models;
mod opening;
mod options;
mod outcome;
pub mod planner;
mod postmortem;
mod probe;
mod profile_import;
mod progress;
mod recorder;
mod relative;
mod replay;
mod resume;
mod run;
mod session;
mod shortlist;
pub mod step;
mod steps;
mod tuner;
mod workshop;
pub mod writer;

pub use agents::{AgentHost, AgentOptions, Approve, Variable};
pub use budget::{Budget, Spent, Stop};
pub use contract_review::{ContractReview, ContractSetting, Resolved, contract_digest, review_contract};
pub use error::RunError;
pub use guard::judge_digest;
pub use interrupt::Interrupt;
pub use judge_one::{JudgeRequest, Judged, judge};
pub use judgement::ReviewerError;
pub use ksmith_insight::Finding;
pub use mechanisms::{Mechanism, Mechanisms, UnknownMechanism};
pub use memory::Memory;
pub use models::{Account, ModelError, recorded_calls};
pub use options::{
    ReviewOptions, ReviewerChoice, RunOptions, Sandbox, TypePick, TypePickError, WriterChoice,
};
pub use outcome::{ChampionOutcome, InstanceOutcome, ModelsOutcome, RunOutcome};
pub use postmortem::{Claims, Gain, PlannedStep, Postmortem, Prediction, Reviews, Waste};
pub use probe::{CheckOutcome, ProfileOutcome, audit, check, first_failure, first_instance, profile, test};
pub use profile_import::{ImportedProfile, import_profile};
pub use progress::{Event, Progress, Silent, Stage};
pub use recorder::{Recorder, Wishes, recorder};
pub use relative::relative_to;
pub use replay::{Replayed, header_of, replay};
pub use resume::{ResumeOptions, resume, resume_with};
pub use run::{load, run, run_with};
pub use steps::answer;
pub use workshop::{BuiltIn, Setting, Workshop};

/// First line of every `main` that runs tasks: a helper of ours that was started again does its work here.
pub fn intercept() {
    ksmith_box::intercept_with(&[
        ksmith_worker::cpu::ROLE,
        ksmith_worker::cuda::ROLE,
        ksmith_worker::cuda::COMPILE_ROLE,
        ksmith_agents::writers::ROLE,
    ]);
}

//! The record of a run: hash chain, object store, verify, views.
//!
//! Shapes that are written to disk and shown by several parts (verdicts, gates, certificates) are defined here. The
//! format is described in `docs/ledger.md`.
//!
//! A hash chain finds accidents. Whoever can write the run folder can rewrite the whole chain, so a statement about
//! *people* needs an anchor that they cannot write: the head hash noted elsewhere, or a public key.

mod body;
mod canonical;
mod certificate;
mod chain;
mod entry;
mod gate;
mod history;
pub mod kda;
pub mod lookup;
mod models;
mod object;
mod record;
pub mod runs;
mod seed;
mod sign;
mod verdict;
pub mod verify;
pub mod views;

pub use body::{
    AgentCall, Answered, Arm, ArmTime, Asked, Audited, BenchStage, Benched, BudgetLimits, BudgetSpent,
    Checked, Closed, Committed, Confirmed, Decided, Demoted, Draft, FloorLine, Interrupted, ModelCall,
    ModelSent, NextEdit, Note, Outcome, Plan, PlanStep, ProcessGate, Profiled, Promoted, Proposed,
    RaisedFinding, Resumed, ReviewAttempt, ReviewDetail, Reviewed, Role, RunOpened, Screened, ShortlistEntry,
    Shortlisted, Tested, ToolCall, Torn, Waited, WorkloadGain,
};
pub use canonical::canonical;
pub use certificate::{
    CERTIFICATE_FILE, Certificate, CertificateError, CertifiedChampion, HEADER_LOCK, SIGNING_PREFIX,
    SignedCertificate,
};
pub use chain::{Clock, Ledger, LedgerError, SystemClock};
pub use entry::{Entry, Kind};
pub use gate::Gate;
pub use history::{CandidateHistory, History, ReadError, Status, read_records};
pub use models::{ModelAccount, ModelTotals};
pub use object::{BlobRef, ObjectError, ObjectStore, TreeFile, TreeManifest, TreeRef};
pub use record::{FORMAT_VERSION, GENESIS, LEDGER_FILE, Record};
pub use seed::{RevealedSeed, SeedCommitment, commit_seed};
pub use sign::{KeyError, KeyPair, PublicKey};
pub use verdict::{Decision, GateOutcome, GateResult, Scope, Speedup, Verdict};
pub use verify::{Anchors, Cause, CertificateCheck, Damage, Place, Report, RunState, VerifyOptions, verify};
pub use views::PAGE_FILE;

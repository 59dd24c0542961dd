//! Writers that are agents: any command line, a model with our own tool loop, or the record of an earlier run.
//!
//! What an agent *says* counts for nothing here: a proposal is the files that it leaves in one folder, read by us after
//! everything in its box is dead. Exit codes, streams and reports of success are kept as evidence of what happened and
//! believed only where they admit a failure.
//!
//! This module runs agents and reads what they leave. It judges nothing, promotes nothing and writes no record: its
//! caller does.

mod agent_box;
mod api;
mod approval;
mod desk;
mod diff;
mod driver;
mod note;
mod outcome;
mod probe;
mod profile;
mod relay;
mod said;
mod tree;

pub use agent_box::{AgentBox, Sockets};
pub use api::{Conversation, Talk};
pub use approval::{Answer, Approver, Deny, Request};
pub use desk::{Desk, DeskError, Laid, Outside};
pub use diff::unified;
pub use driver::{DriverError, Found, Ran, Session, find, placed, run, version};
pub use note::ProposalNote;
pub use outcome::{Ending, Facts, ModelFacts, Outcome, decide};
pub use probe::{Seen, facts};
pub use profile::{Profile, ProfileError, PromptBy, Values};
pub use relay::ROLE;
pub use said::Said;
pub use tree::{Bounds, Oddity, Snapshot};

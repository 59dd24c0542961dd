//! The kinds of record and the typed body of each.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::body;

macro_rules! entries {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// What a record says. New kinds are only ever added.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
        )]
        pub enum Kind {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name that stands in the record.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        #[expect(clippy::large_enum_variant, reason = "entries live for one append or one fold")]
        /// A kind with its body: what is appended to a ledger and read back from it.
        #[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
        #[serde(tag = "kind", content = "body")]
        pub enum Entry {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant(body::$variant),)+
        }

        impl Entry {
            /// The kind of this entry.
            pub fn kind(&self) -> Kind {
                match self { $(Self::$variant(_) => Kind::$variant),+ }
            }

            /// The body as JSON.
            pub fn body(&self) -> Result<Value, serde_json::Error> {
                match self { $(Self::$variant(body) => serde_json::to_value(body)),+ }
            }

            /// Reads a body of the given kind.
            pub fn parse(kind: Kind, body: &Value) -> Result<Self, serde_json::Error> {
                match kind { $(Kind::$variant => body::$variant::deserialize(body).map(Self::$variant)),+ }
            }
        }

        $(impl From<body::$variant> for Entry {
            fn from(body: body::$variant) -> Self {
                Self::$variant(body)
            }
        })+
    };
}

entries! {
    /// The first record of a run: machine, contract, switches, commitments.
    RunOpened = "run-opened",
    /// The task audit ran.
    Audited = "audited",
    /// A draft was written and gated.
    Draft = "draft",
    /// A plan was written and gated.
    Plan = "plan",
    /// A further secret seed was committed to, before its use.
    Committed = "committed",
    /// A candidate was proposed.
    Proposed = "proposed",
    /// A configuration left in screening, or went on to a full scoring.
    Screened = "screened",
    /// The best of the quick pass were measured beside each other once more.
    Shortlisted = "shortlisted",
    /// A candidate was compiled and analysed.
    Checked = "checked",
    /// A candidate was tested for correctness.
    Tested = "tested",
    /// A candidate was measured.
    Benched = "benched",
    /// A candidate was profiled, or a profile was unavailable.
    Profiled = "profiled",
    /// A reviewer spoke.
    Reviewed = "reviewed",
    /// The judge decided on a candidate.
    Decided = "decided",
    /// The judge repeated a decision with new secrets, processes and order.
    Confirmed = "confirmed",
    /// A candidate became champion.
    Promoted = "promoted",
    /// A champion fell in its last confirmation.
    Demoted = "demoted",
    /// An interrupted run goes on.
    Resumed = "resumed",
    /// A run stopped before its end.
    Interrupted = "interrupted",
    /// Budget spent so far.
    BudgetSpent = "budget",
    /// A remark of the tool.
    Note = "note",
    /// A gate on the process refused a candidate, or changed the course of the run.
    ProcessGate = "process",
    /// Time was spent waiting.
    Waited = "waited",
    /// A question was put to a person.
    Asked = "asked",
    /// A question was answered, or its deadline passed.
    Answered = "answered",
    /// An agent program was called.
    AgentCall = "agent-call",
    /// A call is about to be sent to a model.
    ModelSent = "model-sent",
    /// A model was called.
    ModelCall = "model-call",
    /// An agent called a tool of ours.
    ToolCall = "tool-call",
    /// The last record: outcome and revealed seeds.
    Closed = "closed",
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

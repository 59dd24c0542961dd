//! What a run tells whoever watches it. Nothing here decides anything.

use std::time::Duration;

use ksmith_ledger::{Speedup, Verdict};

use crate::{Budget, Spent, Stop};

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Hashing and recording what may not change.
    Lock,
    /// Trying the task itself with candidates that must fail.
    Audit,
    /// Measuring what the user runs today.
    Baseline,
    /// Writing the draft.
    Draft,
    /// Writing the plan.
    Plan,
    /// The writer thinks.
    Propose,
    /// Compiling.
    Check,
    /// The quick pass.
    Screen,
    /// The best of the quick pass beside each other.
    Shortlist,
    /// Every gate, then the decision.
    Score,
    /// A reviewer reads.
    Review,
    /// A person is asked.
    Ask,
    /// New processes, secrets and order.
    Confirm,
    /// Views, report and closing record.
    Close,
}

impl Stage {
    /// The word shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Audit => "audit",
            Self::Baseline => "baseline",
            Self::Draft => "draft",
            Self::Plan => "plan",
            Self::Propose => "propose",
            Self::Check => "check",
            Self::Screen => "screen",
            Self::Shortlist => "shortlist",
            Self::Score => "score",
            Self::Review => "review",
            Self::Ask => "ask",
            Self::Confirm => "confirm",
            Self::Close => "close",
        }
    }
}

/// Something that happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The run has an id and a folder.
    Started {
        /// The run's id.
        run: &'a str,
        /// The instance of the task.
        instance: &'a str,
        /// What the run may spend.
        budget: Budget,
    },
    /// A step begins.
    Stage {
        /// Which.
        stage: Stage,
        /// The candidate concerned, if any.
        candidate: Option<&'a str>,
    },
    /// A candidate was judged.
    Judged {
        /// The candidate.
        candidate: &'a str,
        /// What it tried.
        hypothesis: &'a str,
        /// What the judge said.
        verdict: &'a Verdict,
    },
    /// A candidate went through the quick pass.
    Screened {
        /// The candidate.
        candidate: &'a str,
        /// What it tried.
        hypothesis: &'a str,
        /// Whether it may go on.
        kept: bool,
        /// Where it left.
        code: Option<&'a str>,
        /// Rough ratio over the champion.
        ratio: Option<f64>,
    },
    /// There is a new champion.
    Champion {
        /// The candidate.
        candidate: &'a str,
        /// Confirmed gain over the task's baseline.
        over_baseline: Option<Speedup>,
    },
    /// Time and budget after a step.
    Spent(Spent),
    /// No further candidate is begun.
    Stopped(Stop),
    /// The machine was busy and the run waited.
    Waited(Duration),
    /// A remark for people.
    Note(&'a str),
}

/// Whoever watches a run.
pub trait Progress {
    /// Takes note of an event.
    fn event(&mut self, event: &Event<'_>);
}

/// Watches nothing.
#[derive(Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn event(&mut self, _: &Event<'_>) {}
}

//! The interface: whoever reviews, and what a review comes to.

use std::fmt;

use super::answer::{Answer, Word};
use super::attempt::{Attempt, Held, Voice, hold};
use super::contract::{ContractAnswer, ContractRequest};
use super::plan::{Critique, PlanRequest};
use super::request::Request;
use super::vendor::Identity;
use crate::process::Cause;

/// What a review comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// A valid answer.
    Given(Answer),
    /// No valid answer; never a pass.
    NotPassed(Cause),
}

impl Verdict {
    /// Whether the subject may go on to be crowned. Absence of a verdict is no leave.
    pub fn lets_pass(&self) -> bool {
        match self {
            Self::Given(answer) => match answer.word {
                Word::Pass | Word::Direct => true,
                Word::Veto => false,
            },
            Self::NotPassed(_) => false,
        }
    }

    /// The word that stands in records.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Given(answer) => match answer.word {
                Word::Pass => "pass",
                Word::Direct => "direct",
                Word::Veto => "veto",
            },
            Self::NotPassed(_) => "not-passed",
        }
    }

    /// The stable code of anything but a pass.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Given(answer) => match answer.word {
                Word::Pass | Word::Direct => None,
                Word::Veto => Some(Cause::ReviewVeto.code()),
            },
            Self::NotPassed(cause) => Some(cause.code()),
        }
    }
}

/// A review with everything that was said.
#[derive(Debug, Clone, PartialEq)]
pub struct Review {
    /// What it comes to.
    pub verdict: Verdict,
    /// Every attempt; empty for rules of ours.
    pub attempts: Vec<Attempt>,
}

/// Whoever reviews. Every call is a fresh context; it may come on another thread than the one that made it.
pub trait Reviewer: fmt::Debug + Send {
    /// Who it is.
    fn identity(&self) -> &Identity;

    /// Reviews a candidate or the course of a run.
    fn review(&mut self, request: &Request) -> Review;

    /// Lists what a contract leaves open.
    fn contract(&mut self, request: &ContractRequest) -> Held<ContractAnswer>;

    /// Criticises a draft or plan.
    fn plan(&mut self, request: &PlanRequest) -> Held<Critique>;
}

/// A command or a model as a reviewer.
#[derive(Debug)]
pub struct Foreign<V>(pub V);

impl<V: Voice> Reviewer for Foreign<V> {
    fn identity(&self) -> &Identity {
        self.0.identity()
    }

    fn review(&mut self, request: &Request) -> Review {
        let held: Held<Answer> = hold(&mut self.0, &request.ask(), request.subject, &request.sections());
        let cause = held.cause().unwrap_or(Cause::ReviewEmpty);
        Review {
            verdict: held.answer.map_or(Verdict::NotPassed(cause), Verdict::Given),
            attempts: held.attempts,
        }
    }

    fn contract(&mut self, request: &ContractRequest) -> Held<ContractAnswer> {
        hold(&mut self.0, &request.ask(), request.subject, &request.sections())
    }

    fn plan(&mut self, request: &PlanRequest) -> Held<Critique> {
        hold(&mut self.0, &request.ask(), request.subject, &request.sections())
    }
}

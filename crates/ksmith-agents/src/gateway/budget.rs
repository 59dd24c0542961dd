//! The budget of a run's models: what may be spent, what is spent, and who is calling just now.
//!
//! One meter serves every gateway of a run, so writer and reviewer share one budget. A role has at most one call in
//! flight; that is why the budget can be overshot by at most one call per role.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::Usage;

/// What may be spent; absent means unlimited, zero means none allowed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Dollars.
    pub dollars: Option<f64>,
    /// Tokens, input and output together, cached ones included.
    pub tokens: Option<u64>,
    /// Calls.
    pub calls: Option<u64>,
}

/// What is spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Calls sent to the provider.
    pub calls: u64,
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Dollars, those estimated included.
    pub dollars: f64,
    /// The part of the dollars that is an upper bound: calls that were sent and whose usage nobody told us.
    pub estimated_dollars: f64,
}

impl Spent {
    /// Tokens, input and output together.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Adds one call.
    pub fn add(&mut self, usage: &Usage, dollars: f64, is_estimated: bool) {
        self.calls += 1;
        self.input_tokens = self.input_tokens.saturating_add(usage.all_input());
        self.output_tokens = self.output_tokens.saturating_add(usage.output);
        self.dollars += dollars;
        if is_estimated {
            self.estimated_dollars += dollars;
        }
    }
}

/// A limit that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exhausted {
    /// The dollars.
    Dollars {
        /// The limit.
        limit: f64,
        /// What is spent.
        spent: f64,
    },
    /// The tokens.
    Tokens {
        /// The limit.
        limit: u64,
        /// What is spent.
        spent: u64,
    },
    /// The calls.
    Calls {
        /// The limit.
        limit: u64,
    },
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dollars { limit, spent } => {
                write!(f, "the model budget of {limit:.2} USD is spent ({spent:.4} USD)")
            }
            Self::Tokens { limit, spent } => {
                write!(f, "the model budget of {limit} tokens is spent ({spent})")
            }
            Self::Calls { limit } => write!(f, "the model budget of {limit} calls is spent"),
        }
    }
}

impl Limits {
    /// The first limit that is reached.
    pub fn reached(&self, spent: &Spent) -> Option<Exhausted> {
        if let Some(limit) = self.dollars.filter(|limit| spent.dollars >= *limit) {
            return Some(Exhausted::Dollars {
                limit,
                spent: spent.dollars,
            });
        }
        if let Some(limit) = self.tokens.filter(|limit| spent.tokens() >= *limit) {
            return Some(Exhausted::Tokens {
                limit,
                spent: spent.tokens(),
            });
        }
        self.calls
            .filter(|limit| spent.calls >= *limit)
            .map(|limit| Exhausted::Calls { limit })
    }

    /// Dollars spent beyond the limit; zero within it.
    pub fn overshoot(&self, spent: &Spent) -> f64 {
        self.dollars.map_or(0.0, |limit| (spent.dollars - limit).max(0.0))
    }
}

/// The shared account of a run's model calls.
#[derive(Debug)]
pub struct Meter {
    limits: Limits,
    state: Mutex<State>,
    next: AtomicU64,
    turns: Mutex<HashMap<String, Arc<Mutex<()>>>>,
}

#[derive(Debug, Default)]
struct State {
    spent: Spent,
    /// Calls in flight, each with its upper bound.
    open: BTreeMap<String, (Usage, f64)>,
    tallies: HashMap<String, Tally>,
}

/// How a role's calls ended since the account was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Whole answers of success, those from the record included.
    pub answered: u64,
    /// Errors, answers that broke off, and calls that never left.
    pub failed: u64,
    /// Calls that were not let through because a limit is reached.
    pub refused: u64,
}

impl Meter {
    /// A new account.
    pub fn new(limits: Limits) -> Arc<Self> {
        Self::going_on(limits, Spent::default(), 1)
    }

    /// An account with what was spent before, whose next call has this number.
    pub fn going_on(limits: Limits, spent: Spent, next: u64) -> Arc<Self> {
        Arc::new(Self {
            limits,
            state: Mutex::new(State {
                spent,
                ..State::default()
            }),
            next: AtomicU64::new(next),
            turns: Mutex::default(),
        })
    }

    /// An id that no other call of the run has.
    pub(crate) fn next_id(&self) -> String {
        format!("m{:04}", self.next.fetch_add(1, Ordering::SeqCst))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one whole step, so a panic elsewhere leaves the account right.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What may be spent.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// What is spent; calls in flight count at their upper bound.
    pub fn spent(&self) -> Spent {
        let state = self.state();
        let mut spent = state.spent;
        for (usage, dollars) in state.open.values() {
            spent.add(usage, *dollars, true);
        }
        spent
    }

    /// How a role's calls ended since the account was opened.
    pub fn tally(&self, role: &str) -> Tally {
        self.state().tallies.get(role).copied().unwrap_or_default()
    }

    /// Counts how a call ended.
    pub(crate) fn ended(&self, role: &str, is_success: bool) {
        let mut state = self.state();
        let tally = state.tallies.entry(role.to_owned()).or_default();
        if is_success {
            tally.answered += 1;
        } else {
            tally.failed += 1;
        }
    }

    /// The mutex that a role holds while it calls.
    pub(crate) fn turn(&self, role: &str) -> Arc<Mutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(turns.entry(role.to_owned()).or_default())
    }

    /// Lets a call begin, or says which limit is reached. What other roles have in flight is not known yet and does
    /// not count against it.
    pub(crate) fn begin(&self, role: &str, call: &str, bound: Usage, dollars: f64) -> Result<(), Exhausted> {
        let mut state = self.state();
        if let Some(exhausted) = self.limits.reached(&state.spent) {
            state.tallies.entry(role.to_owned()).or_default().refused += 1;
            return Err(exhausted);
        }
        state.open.insert(call.to_owned(), (bound, dollars));
        Ok(())
    }

    /// Ends a call with what it used.
    pub(crate) fn settle(&self, call: &str, usage: &Usage, dollars: f64, is_estimated: bool) {
        let mut state = self.state();
        state.open.remove(call);
        state.spent.add(usage, dollars, is_estimated);
    }

    /// Ends a call that never left this machine.
    pub(crate) fn withdraw(&self, call: &str) {
        self.state().open.remove(call);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMALL: Usage = Usage {
        input: 8,
        cached: 0,
        cache_write: 0,
        cache_write_long: 0,
        output: 2,
        reasoning: 0,
    };

    #[test]
    fn each_limit_stops_the_next_call_and_zero_allows_none() {
        let limits = |dollars, tokens, calls| Limits {
            dollars,
            tokens,
            calls,
        };
        for (limits, lets) in [
            (limits(Some(0.0), None, None), 0),
            (limits(Some(0.25), None, None), 3),
            (limits(None, Some(20), None), 2),
            (limits(None, Some(0), None), 0),
            (limits(None, None, Some(4)), 4),
            (limits(None, None, Some(0)), 0),
        ] {
            let meter = Meter::new(limits);
            let mut let_through = 0;
            for number in 0..10 {
                let id = format!("m{number}");
                if meter.begin("writer", &id, SMALL, 0.5).is_ok() {
                    meter.settle(&id, &SMALL, 0.1, false);
                    let_through += 1;
                }
            }
            assert_eq!(let_through, lets, "{limits:?}");
            assert_eq!(meter.tally("writer").refused, 10 - lets);
        }
    }

    #[test]
    fn a_call_in_flight_counts_at_its_bound_until_it_is_settled() {
        let meter = Meter::new(Limits::default());
        meter.begin("writer", "m1", SMALL, 0.5).unwrap();
        assert_eq!(
            (meter.spent().dollars, meter.spent().estimated_dollars),
            (0.5, 0.5)
        );
        meter.settle("m1", &SMALL, 0.1, false);
        assert_eq!(
            (meter.spent().dollars, meter.spent().estimated_dollars),
            (0.1, 0.0)
        );
        meter.begin("writer", "m2", SMALL, 0.5).unwrap();
        meter.withdraw("m2");
        assert_eq!(meter.spent().calls, 1);
    }

    proptest! {
        #[test]
        fn overshoot_is_never_more_than_the_last_call(
            costs in proptest::collection::vec(0.0f64..0.7, 1..40), limit in 0.0f64..3.0,
        ) {
            let limits = Limits { dollars: Some(limit), ..Limits::default() };
            let meter = Meter::new(limits);
            let mut last = 0.0;
            for (number, cost) in costs.iter().enumerate() {
                let id = number.to_string();
                if meter.begin("writer", &id, SMALL, 1.0).is_ok() {
                    meter.settle(&id, &SMALL, *cost, false);
                    last = *cost;
                }
            }
            prop_assert!(limits.overshoot(&meter.spent()) <= last + 1e-12);
        }
    }
}

//! The gates: in the order in which a scoring runs them.

mod bounds;
mod clocks;
mod compile;
mod context;
mod depends;
mod floor;
mod hidden;
mod judgement;
mod library;
mod measure;
mod policy;
mod precision;
mod repeat;
mod runner;
mod sanitize;
mod screen;
mod smoke;
mod state;

pub(crate) use bounds::{bounds, poison};
pub(crate) use clocks::clocks;
pub(crate) use compile::{build, compile};
pub(crate) use context::{Built, End, GateEnd, Scoring, chain, number};
pub(crate) use depends::depends;
pub(crate) use floor::floor;
pub(crate) use hidden::{hidden, probes, traces};
pub(crate) use judgement::judge as judge_outputs;
pub(crate) use library::library;
pub(crate) use measure::{BenchHost, Pool, Timed, bench_plan, timed_workloads};
pub(crate) use policy::policy;
pub(crate) use precision::precision;
pub(crate) use repeat::repeat;
pub(crate) use runner::WorkerOptions;
pub(crate) use sanitize::sanitize;
pub(crate) use screen::{ScreenPool, check_arm, screen_pool, slow};
pub(crate) use smoke::{dev, smoke};
pub(crate) use state::state;

//! The offline agent: structures, spaces, strategies.
//!
//! A *structure* is a kernel template with a manifest; a *space* is what its knobs span; a *strategy* says which
//! configuration comes next. The agent turns a [`ksmith_task::Brief`] into candidate folders and knows nothing of
//! clocks or verdicts but what the brief's history says: the same seed and the same history give the same bytes.
//!
//! It does not compile, run or measure anything.

mod agent;
mod cache;
mod error;
mod facts;
mod folder;
mod history;
mod library;
mod manifest;
mod prior;
mod render;
mod replay;
mod rewrite;
mod signature;
mod space;
mod strategy;
mod transfer;
mod validate;

pub use agent::{Direction, SearchAgent};
pub use cache::{Cache, CacheEntry, mean_axes};
pub use error::SearchError;
pub use facts::Facts;
pub use library::{Library, Structure};
pub use manifest::Manifest;
pub use replay::{Replay, ReplaySpace, StrategyScore};
pub use signature::{Binding, bind};
pub use space::{Config, Space};
pub use validate::{HeldOut, Validation};

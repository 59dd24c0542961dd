//! Processes and their sandbox: spawn, limits, isolation levels.
//!
//! Every process that runs foreign code or foreign tools is started here: in its own session, with a cleared
//! environment, closed descriptors, limits, a file view of its own, a system-call filter and, where the kernel gives
//! them, namespaces. A helper of ours (this very executable, started again) sets that up and then becomes the program
//! or runs a built-in role. The first line of every `main` is therefore [`intercept`]; test binaries say
//! [`intercept_tests!`].
//!
//! This crate does not know what a candidate is, and it judges nothing.

mod calls;
mod cgroup;
mod ended;
mod error;
mod helper;
mod intercept;
mod landlock;
mod level;
mod mounts;
mod probe;
mod seccomp;
mod spawn;
mod spec;
mod sys;
mod wire;

pub use calls::allow_list_markdown;
pub use ended::{Ended, Finished};
pub use error::BoxError;
pub use intercept::{Role, RoleContext, intercept, intercept_with};
pub use level::{Isolation, Layer, LayerState, Level, probe};
pub use spawn::{Child, run, run_while, spawn};
pub use spec::{BoxSpec, Limits, Profile};

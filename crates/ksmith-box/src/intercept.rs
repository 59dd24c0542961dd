//! The door for helpers: an executable started again by us never reaches its own `main`.

use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{helper, probe, wire};

static CALLED: AtomicBool = AtomicBool::new(false);

/// A built-in role: a function that a helper runs inside its box instead of a program.
#[derive(Clone, Copy)]
pub struct Role {
    /// The name by which [`crate::BoxSpec::role`] asks for it.
    pub name: &'static str,
    /// What it does before the call filter stands, such as installing a fault handler that nobody may replace.
    pub before: Option<fn()>,
    /// What it does; the result is its exit code.
    pub run: fn(&RoleContext) -> i32,
}

/// What a role is given.
#[derive(Debug)]
pub struct RoleContext {
    /// The arguments of the specification.
    pub args: Vec<String>,
    /// The descriptors that were passed, in order.
    pub fds: Vec<RawFd>,
}

/// First line of every `main` that knows no roles of its own.
pub fn intercept() {
    intercept_with(&[]);
}

/// First line of every `main`: if this process is a helper, does its work with these roles and never returns.
pub fn intercept_with(roles: &[Role]) {
    match std::env::args_os().nth(1) {
        Some(word) if word == wire::HELPER => helper::main(roles),
        Some(word) if word == wire::PROBE => probe::main(),
        Some(_) | None => CALLED.store(true, Ordering::Relaxed),
    }
}

/// Whether this process passed [`intercept`]: otherwise a helper of it would run its `main` again.
pub(crate) fn was_called() -> bool {
    CALLED.load(Ordering::Relaxed)
}

/// This very executable, even if its file was replaced meanwhile.
pub(crate) fn own_executable() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

/// Makes a test binary able to start boxed helpers of itself: put it once at the top of the test crate.
///
/// `ksmith_box::intercept_tests!(ksmith_box::intercept);` or `ksmith_box::intercept_tests!(ksmith_worker::intercept);`
#[macro_export]
macro_rules! intercept_tests {
    ($intercept:path) => {
        const _: () = {
            extern "C" fn hook() {
                $intercept();
            }
            #[allow(
                unsafe_code,
                reason = "a constructor is the only place before the test harness's own `main`"
            )]
            #[used]
            #[unsafe(link_section = ".init_array")]
            static HOOK: extern "C" fn() = hook;
        };
    };
}

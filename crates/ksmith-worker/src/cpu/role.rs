//! The worker's half: loads the library, maps buffers, answers calls.

use ksmith_box::{Role, RoleContext};

/// The role that a worker's helper runs.
pub const ROLE: Role = Role {
    name: "cpu-worker",
    run,
};

fn run(_context: &RoleContext) -> i32 {
    1
}

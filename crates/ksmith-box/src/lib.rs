//! Processes and their sandbox: spawn, limits, isolation levels.

//! The command line: arguments in, tables out; no logic.
fn main() {}

//! Comparison of a candidate's outputs with float64 expectations: every element, no match ratios.

mod elementwise;
mod index;
mod rule;

pub use elementwise::{compare, compare_whole};
pub use index::{IndexRule, along, choices};
pub use rule::{Cause, Outcome, Overflow, Rule, Worst};

//! The naive evaluator.

use std::path::Path;

use ksmith_box::{Role, RoleContext};

use super::corpus::{Naive, Target};
use crate::Failure;

pub(crate) const ROLE: Role = Role {
    name: "naive-evaluator",
    run,
};

fn run(_context: &RoleContext) -> i32 {
    1
}

pub(crate) struct Evaluator;

impl Evaluator {
    pub(crate) fn open(_target: &Target, _state: &Path) -> Result<Self, Failure> {
        Ok(Self)
    }

    pub(crate) fn judge(&mut self, _folder: &Path) -> Result<Naive, Failure> {
        Ok(Naive::Fails)
    }
}

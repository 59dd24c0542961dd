//! A loaded task: the contract and its folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::contract::Contract;
use crate::{ContractError, Instance};

/// A loaded task.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub(crate) dir: PathBuf,
    pub(crate) text: String,
    pub(crate) contract: Contract,
}

impl Task {
    /// Reads `task.toml` (given itself or its folder), expands the family's defaults and validates everything.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ContractError> {
        Err(ContractError::file(path.as_ref(), "not readable yet"))
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The text of `task.toml`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The expanded contract.
    pub fn contract(&self) -> &Contract {
        &self.contract
    }

    /// One instance per assignment of the dtype variables, in the task's order.
    pub fn instances(&self) -> Vec<Instance> {
        let task = Arc::new(self.clone());
        let mut assignments = vec![Vec::new()];
        for variable in &self.contract.types {
            assignments = assignments
                .into_iter()
                .flat_map(|assignment| {
                    variable.dtypes.iter().map(move |dtype| {
                        let mut longer = assignment.clone();
                        longer.push((variable.name.clone(), *dtype));
                        longer
                    })
                })
                .collect();
        }
        assignments
            .into_iter()
            .map(|types| Instance {
                task: Arc::clone(&task),
                types,
            })
            .collect()
    }
}

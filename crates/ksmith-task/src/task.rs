//! A loaded task: the contract and its folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::contract::{Backend, Contract};
use crate::document::parse_task;
use crate::nearest::nearest;
use crate::resolve::resolve;
use crate::{ContractError, DType, Instance};

/// Contracts are short; anything larger is a mistake or an attack.
const MAX_BYTES: u64 = 1 << 20;

/// A loaded task.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub(crate) dir: PathBuf,
    pub(crate) file: PathBuf,
    pub(crate) text: String,
    pub(crate) contract: Contract,
}

impl Task {
    /// Reads `task.toml` (given itself or its folder), expands the family's defaults and validates everything.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ContractError> {
        let path = path.as_ref();
        let file = if path.is_dir() {
            path.join("task.toml")
        } else {
            path.to_owned()
        };
        let metadata = fs::metadata(&file).map_err(|error| {
            ContractError::file(&file, format!("cannot read `{}`: {error}", file.display()))
                .help("name a folder with a `task.toml`, or make one with `ksmith new`")
        })?;
        if metadata.len() > MAX_BYTES {
            return Err(ContractError::file(
                &file,
                format!("longer than {MAX_BYTES} bytes"),
            ));
        }
        let text = fs::read_to_string(&file).map_err(|error| {
            ContractError::file(&file, format!("cannot read `{}`: {error}", file.display()))
        })?;
        Self::parse(&file, text)
    }

    /// Validates `text` as the content of `file`, whose folder is the task's.
    pub fn parse(file: &Path, text: String) -> Result<Self, ContractError> {
        let dir = file
            .parent()
            .map_or_else(|| PathBuf::from("."), Path::to_path_buf);
        let parsed = parse_task(file, &text)?;
        let contract = resolve(file, &text, &parsed)?;
        let dir = if dir.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            dir
        };
        Ok(Self {
            dir,
            file: file.to_owned(),
            text,
            contract,
        })
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The path of `task.toml`.
    pub fn file(&self) -> &Path {
        &self.file
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

    /// The instances that agree with `pins`, such as `T=bf16` (the value of `--type`).
    pub fn instances_with(&self, pins: &[(String, DType)]) -> Result<Vec<Instance>, TypePinError> {
        for (name, dtype) in pins {
            let known = self.contract.types.iter().map(|variable| variable.name.as_str());
            let Some(variable) = self.contract.types.iter().find(|variable| variable.name == *name) else {
                let near = nearest(name, known.clone()).map(str::to_owned);
                let known = known.map(str::to_owned).collect();
                return Err(TypePinError::Variable {
                    name: name.clone(),
                    known,
                    near,
                });
            };
            if !variable.dtypes.contains(dtype) {
                return Err(TypePinError::DType {
                    name: name.clone(),
                    dtype: *dtype,
                    known: variable.dtypes.clone(),
                });
            }
        }
        let agrees = |instance: &Instance| pins.iter().all(|pin| instance.types().contains(pin));
        Ok(self.instances().into_iter().filter(agrees).collect())
    }

    /// The instances of `backend` that agree with `pins`.
    pub fn instances_on(
        &self,
        backend: Backend,
        pins: &[(String, DType)],
    ) -> Result<Vec<Instance>, TypePinError> {
        let mut instances = self.instances_with(pins)?;
        instances.retain(|instance| instance.applies_to(backend));
        if instances.is_empty()
            && let Some((name, dtype)) = pins.first()
        {
            let variable = self.contract.types.iter().find(|variable| variable.name == *name);
            return Err(TypePinError::Backend {
                name: name.clone(),
                dtype: *dtype,
                backend,
                known: variable.map_or(Vec::new(), |variable| variable.on(backend).to_vec()),
            });
        }
        Ok(instances)
    }
}

/// A pin of a dtype variable that the task does not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TypePinError {
    /// No such variable.
    #[error("the task has no dtype variable `{name}`; it has: {}", .known.join(", "))]
    Variable {
        /// The name given.
        name: String,
        /// The task's variables.
        known: Vec<String>,
        /// The nearest of them.
        near: Option<String>,
    },
    /// Not one of its dtypes.
    #[error("`{name}` is never `{dtype}` in this task; it is one of {}", list(.known))]
    DType {
        /// The variable.
        name: String,
        /// The dtype given.
        dtype: DType,
        /// Its dtypes.
        known: Vec<DType>,
    },
    /// Not on this backend.
    #[error("`{name}` is never `{dtype}` on backend `{}` in this task; it is one of {}", .backend.name(), list(.known))]
    Backend {
        /// The variable.
        name: String,
        /// The dtype given.
        dtype: DType,
        /// The backend.
        backend: Backend,
        /// Its dtypes there.
        known: Vec<DType>,
    },
}

fn list(dtypes: &[DType]) -> String {
    dtypes
        .iter()
        .map(|dtype| dtype.name())
        .collect::<Vec<_>>()
        .join(", ")
}

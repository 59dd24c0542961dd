//! The structures that the agent knows.

use std::collections::BTreeMap;

use ksmith_task::Backend;

use crate::{Manifest, SearchError};

/// Files below `structures/`, by path with `/`.
const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/structures.rs"));

/// A template with its manifest.
#[derive(Debug, Clone)]
pub struct Structure {
    /// Folder below `structures/`, such as `row-reduction/softmax`.
    pub folder: String,
    /// The manifest.
    pub manifest: Manifest,
    /// The template of the source.
    pub template: String,
    /// The template of the launch plan, for CUDA.
    pub plan: Option<String>,
}

/// All structures, in the order of their folders.
#[derive(Debug, Clone)]
pub struct Library {
    structures: Vec<Structure>,
    preludes: BTreeMap<String, String>,
}

impl Library {
    /// The built-in structures.
    pub fn built_in() -> Result<Self, SearchError> {
        let files: BTreeMap<String, String> = BUILT_IN
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect();
        let mut structures = Vec::new();
        for (path, text) in &files {
            let Some(folder) = path.strip_suffix("/structure.toml") else {
                continue;
            };
            let manifest = Manifest::parse(folder, text)?;
            let beside = |file: &str| {
                files
                    .get(&format!("{folder}/{file}"))
                    .cloned()
                    .ok_or_else(|| SearchError::Manifest {
                        structure: folder.to_owned(),
                        message: format!("there is no `{file}` beside the manifest"),
                    })
            };
            let (template, plan) = match manifest.backend {
                Backend::Cpu => (beside("kernel.c.j2")?, None),
                Backend::Cuda => (beside("kernel.cu.j2")?, Some(beside("plan.toml.j2")?)),
            };
            structures.push(Structure {
                folder: folder.to_owned(),
                manifest,
                template,
                plan,
            });
        }
        let preludes = files
            .into_iter()
            .filter(|(path, _)| path.starts_with("prelude/"))
            .collect();
        Ok(Self { structures, preludes })
    }

    /// All structures.
    pub fn structures(&self) -> &[Structure] {
        &self.structures
    }

    /// The structure called `name`.
    pub fn get(&self, name: &str) -> Option<&Structure> {
        self.structures
            .iter()
            .find(|structure| structure.manifest.name == name)
    }

    /// Template parts that structures include.
    pub(crate) fn preludes(&self) -> &BTreeMap<String, String> {
        &self.preludes
    }
}

//! The structures that the agent knows: those built in, and folders that a user adds.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

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
        Self::of(
            BUILT_IN
                .iter()
                .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
                .collect(),
        )
    }

    /// The built-in structures and those of a folder with the same layout; a folder of the same name replaces.
    pub fn with_folder(root: &Path) -> Result<Self, SearchError> {
        let mut files: BTreeMap<String, String> = BUILT_IN
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect();
        for family in subfolders(root)? {
            for name in subfolders(&root.join(&family))? {
                // A replaced folder is replaced whole.
                files.retain(|path, _| !path.starts_with(&format!("{family}/{name}/")));
                for file in ["structure.toml", "kernel.c.j2", "kernel.cu.j2", "plan.toml.j2"] {
                    let path = root.join(&family).join(&name).join(file);
                    if path.exists() || file == "structure.toml" {
                        let text = fs::read_to_string(&path).map_err(SearchError::io("read", &path))?;
                        files.insert(format!("{family}/{name}/{file}"), text);
                    }
                }
            }
        }
        Self::of(files)
    }

    fn of(files: BTreeMap<String, String>) -> Result<Self, SearchError> {
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

fn subfolders(root: &Path) -> Result<Vec<String>, SearchError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root).map_err(SearchError::io("list", root))? {
        let entry = entry.map_err(SearchError::io("list", root))?;
        if entry.path().is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

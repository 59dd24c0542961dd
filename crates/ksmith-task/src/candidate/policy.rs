//! Whether a candidate keeps to the task's policy.

use std::path::Path;

use super::plan_names::check_plan;
use super::{Candidate, Program};
use crate::Instance;
use crate::contract::Backend;

/// A breach of the task's policy; data about the candidate (gate `policy`), no fault of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A language the task does not allow.
    #[error("`{file}` is {language}; the task allows {allowed}")]
    Language {
        /// The file.
        file: String,
        /// Its language.
        language: String,
        /// What the policy lists.
        allowed: String,
    },
    /// A library the task does not allow.
    #[error("library `{library}` is not in the task's policy")]
    Library {
        /// The library.
        library: String,
    },
    /// A source that includes or embeds what it may not.
    #[error("`{file}` line {line}: {what}")]
    Include {
        /// The file.
        file: String,
        /// Line from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// A wrong name in a launch plan, or anything else that does not fit the task.
    #[error("`{key}`: {message}")]
    Plan {
        /// Key path in the manifest.
        key: String,
        /// What is wrong.
        message: String,
    },
}

impl PolicyError {
    /// Stable `policy/cause` code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Language { .. } => "policy/language",
            Self::Library { .. } => "policy/library",
            Self::Include { .. } => "policy/include",
            Self::Plan { .. } => "policy/plan",
        }
    }
}

impl Candidate {
    /// Checks languages, libraries, includes and the launch plan against the task's policy.
    pub fn check_policy(&self, instance: &Instance) -> Result<(), PolicyError> {
        let contract = instance.task().contract();
        for source in &self.sources {
            let language = language(&source.path, self.backend());
            let allowed = &contract.policy.languages;
            if !allowed.is_empty() && !allowed.iter().any(|known| known == language) {
                return Err(PolicyError::Language {
                    file: source.path.display().to_string(),
                    language: language.to_owned(),
                    allowed: allowed.join(", "),
                });
            }
            check_includes(self, &source.path.display().to_string(), &source.text)?;
        }
        let libraries = match &self.program {
            Program::Cpu(program) => &program.libraries,
            Program::Cuda(plan) => &plan.headers,
        };
        for library in libraries {
            let always = self.backend() == Backend::Cpu && library == "m";
            if !always && !contract.policy.libraries.contains(library) {
                return Err(PolicyError::Library {
                    library: library.clone(),
                });
            }
        }
        match &self.program {
            Program::Cpu(_) => Ok(()),
            Program::Cuda(plan) => check_plan(plan, instance),
        }
    }
}

fn language(path: &Path, backend: Backend) -> &'static str {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("ptx") => "ptx",
        Some("cu" | "cuh") => "cuda",
        Some("cc" | "cpp" | "hpp") if backend == Backend::Cpu => "c++",
        _ if backend == Backend::Cuda => "cuda",
        _ => "c",
    }
}

/// Quoted includes name listed sources; nothing is embedded; no absolute path, no way up. The compiler's box is the
/// wall behind this check, which only gives an early and exact message.
fn check_includes(candidate: &Candidate, file: &str, text: &str) -> Result<(), PolicyError> {
    let joined = text.replace("\\\r\n", "").replace("\\\n", "");
    for (index, line) in joined.lines().enumerate() {
        let refuse = |what: String| {
            Err(PolicyError::Include {
                file: file.to_owned(),
                line: index + 1,
                what,
            })
        };
        let compact: String = line.chars().filter(|c| !c.is_whitespace()).collect();
        let compact = compact.replace("%:", "#").replace("??=", "#");
        if compact.contains(".incbin") || compact.contains(".include") && compact.contains("asm") {
            return refuse("files may not be embedded".to_owned());
        }
        if compact.contains("__has_include") || compact.contains("__has_embed") {
            return refuse("a source may not ask which files the compiler sees".to_owned());
        }
        let Some(directive) = compact.strip_prefix('#') else {
            continue;
        };
        if directive.starts_with("embed") {
            return refuse("files may not be embedded".to_owned());
        }
        let Some(target) = directive
            .strip_prefix("include_next")
            .or_else(|| directive.strip_prefix("include"))
        else {
            continue;
        };
        let name: String = target
            .chars()
            .skip(1)
            .take_while(|c| !matches!(c, '"' | '>'))
            .collect();
        match target.chars().next() {
            Some('"' | '<') if name.starts_with('/') || name.contains("..") => {
                return refuse(format!("`{name}` lies outside the candidate's folder"));
            }
            Some('"') => {
                let beside = Path::new(file)
                    .parent()
                    .map_or_else(|| name.clone().into(), |dir| dir.join(&name));
                let listed = candidate
                    .sources
                    .iter()
                    .any(|source| source.path == Path::new(&name) || source.path == beside);
                if !listed {
                    return refuse(format!("`{name}` is not listed in `sources`"));
                }
            }
            Some('<') => {}
            _ => return refuse("an include by macro hides what it reads".to_owned()),
        }
    }
    Ok(())
}

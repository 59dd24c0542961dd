//! Whether a candidate keeps to the task's policy.

use std::collections::BTreeSet;
use std::path::Path;

use super::cuda::{Argument, CudaPlan, Step};
use super::{Candidate, Program};
use crate::Instance;
use crate::contract::Backend;
use crate::expr::Expr;
use crate::nearest::nearest;

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

/// Variables that every expression of a launch plan may use, beside axes and dtype variables.
pub const DEVICE_NAMES: [&str; 3] = ["sm_count", "blocks_per_sm", "max_shared"];

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

fn check_plan(plan: &CudaPlan, instance: &Instance) -> Result<(), PolicyError> {
    let contract = instance.task().contract();
    let error = |key: &str, message: String| {
        Err(PolicyError::Plan {
            key: key.to_owned(),
            message,
        })
    };
    let tensors: BTreeSet<&str> = contract
        .inputs
        .iter()
        .map(|input| input.name.as_str())
        .chain(
            contract
                .outputs
                .iter()
                .filter(|output| output.inplace.is_none())
                .map(|output| output.name.as_str()),
        )
        .collect();
    let outputs: BTreeSet<&str> = contract
        .outputs
        .iter()
        .map(|output| output.inplace.as_deref().unwrap_or(&output.name))
        .collect();
    let workspaces: BTreeSet<&str> = plan
        .workspaces
        .iter()
        .map(|workspace| workspace.name.as_str())
        .collect();
    let maps: BTreeSet<&str> = plan.tensormaps.iter().map(|map| map.name.as_str()).collect();
    let numbers: BTreeSet<&str> = contract
        .axes
        .iter()
        .map(|axis| axis.name.as_str())
        .chain(contract.scalars.iter().map(|scalar| scalar.name.as_str()))
        .collect();
    let in_expressions: BTreeSet<&str> = contract
        .axes
        .iter()
        .map(|axis| axis.name.as_str())
        .chain(contract.types.iter().map(|variable| variable.name.as_str()))
        .chain(DEVICE_NAMES)
        .collect();
    if let Some(taken) = workspaces
        .iter()
        .chain(&maps)
        .find(|name| tensors.contains(**name) || numbers.contains(**name))
    {
        return error("workspace", format!("the name `{taken}` is one of the task's"));
    }
    let unknown = |name: &str, known: &[&BTreeSet<&str>]| {
        let near = nearest(name, known.iter().flat_map(|set| set.iter().copied()));
        match near {
            Some(near) => format!("there is no `{name}`; did you mean `{near}`?"),
            None => format!("there is no `{name}`"),
        }
    };
    let check_expr = |key: &str, expr: &Expr| match expr
        .names()
        .into_iter()
        .find(|name| !in_expressions.contains(name))
    {
        Some(name) => error(key, unknown(name, &[&in_expressions])),
        None => Ok(()),
    };
    for workspace in &plan.workspaces {
        check_expr("workspace.bytes", &workspace.bytes)?;
    }
    for map in &plan.tensormaps {
        if !tensors.contains(map.tensor.as_str()) && !workspaces.contains(map.tensor.as_str()) {
            return error("tensormap.tensor", unknown(&map.tensor, &[&tensors, &workspaces]));
        }
        if workspaces.contains(map.tensor.as_str()) && map.dtype.is_none() {
            return error(
                "tensormap.dtype",
                format!("a map of the workspace `{}` needs a dtype", map.tensor),
            );
        }
        let parts = [&map.dims, &map.strides, &map.box_dims, &map.element_strides];
        for expr in parts.into_iter().flatten() {
            check_expr("tensormap", expr)?;
        }
    }
    let has_static = contract.inputs.iter().any(|input| input.is_static);
    if !plan.setup.is_empty() && !has_static {
        return error("setup", "the task has no static input".to_owned());
    }
    for variant in &plan.variants {
        if let Some(when) = &variant.when {
            check_expr("variant.when", when)?;
        }
    }
    for step in plan
        .setup
        .iter()
        .chain(plan.variants.iter().flat_map(|variant| &variant.steps))
    {
        match step {
            Step::Memset(memset) => {
                let target = memset.target.as_str();
                if !workspaces.contains(target) && !outputs.contains(target) {
                    return error("step.memset", unknown(target, &[&workspaces, &outputs]));
                }
                if let Some(bytes) = &memset.bytes {
                    check_expr("step.bytes", bytes)?;
                }
            }
            Step::Kernel(kernel) => {
                let sizes = kernel
                    .grid
                    .iter()
                    .chain(&kernel.block)
                    .chain(&kernel.cluster)
                    .chain(&kernel.shared);
                for expr in sizes {
                    check_expr("step", expr)?;
                }
                for argument in &kernel.args {
                    match argument {
                        Argument::Value(_, expr) => check_expr("step.args", expr)?,
                        Argument::Name(name) => {
                            let sets = [&tensors, &workspaces, &maps, &numbers];
                            if !sets.iter().any(|set| set.contains(name.as_str())) {
                                return error("step.args", unknown(name, &sets));
                            }
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

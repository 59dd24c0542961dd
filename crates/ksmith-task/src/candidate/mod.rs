//! Candidates: a manifest and its sources, checked before anything is compiled.

mod cuda;
mod flags;
mod load;
mod manifest;
mod plan;
mod plan_names;
mod policy;
mod sources;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::Digest;
use crate::contract::Backend;

pub use cuda::{
    Argument, CudaPlan, DataType, FillMode, Kernel, Memset, Step, Swizzle, TensorMap, Variant, Workspace,
};
pub use flags::{FlagError, check_cpu_flag, check_cuda_flag};
pub(crate) use manifest::CandidateDocument;
pub use plan_names::DEVICE_NAMES;
pub use policy::PolicyError;

/// A candidate folder: manifest, sources, digest of both.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Candidate {
    /// The folder.
    pub dir: PathBuf,
    /// The sources in the order of the manifest; headers among them are not compiled by themselves.
    pub sources: Vec<SourceFile>,
    /// What differs between backends.
    pub program: Program,
    pub(crate) manifest: String,
}

/// A source file, held in memory so that what was hashed is what is compiled.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceFile {
    /// Path relative to the folder.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

/// What differs between backends.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Program {
    /// A shared library with one C symbol.
    Cpu(CpuProgram),
    /// Device code and a launch plan.
    Cuda(CudaPlan),
}

/// A CPU candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CpuProgram {
    /// The exported symbol.
    pub entry: String,
    /// Compiler flags, all on the allow-list.
    pub flags: Vec<String>,
    /// Libraries to link, such as `m`; each must stand in the policy, `m` always may.
    pub libraries: Vec<String>,
}

impl Candidate {
    /// The backend it is written for.
    pub fn backend(&self) -> Backend {
        match self.program {
            Program::Cpu(_) => Backend::Cpu,
            Program::Cuda(_) => Backend::Cuda,
        }
    }

    /// The CPU part, if it is a CPU candidate.
    pub fn cpu(&self) -> Option<&CpuProgram> {
        match &self.program {
            Program::Cpu(program) => Some(program),
            Program::Cuda(_) => None,
        }
    }

    /// The launch plan, if it is a CUDA candidate.
    pub fn cuda(&self) -> Option<&CudaPlan> {
        match &self.program {
            Program::Cuda(plan) => Some(plan),
            Program::Cpu(_) => None,
        }
    }

    /// The manifest's text.
    pub fn manifest(&self) -> &str {
        &self.manifest
    }

    /// Hash of manifest and sources with their names; independent of where the folder lies.
    pub fn digest(&self) -> Digest {
        let named: Vec<(String, &str)> = self
            .sources
            .iter()
            .map(|source| (portable(&source.path), source.text.as_str()))
            .collect();
        let manifest = std::iter::once(("candidate.toml", self.manifest.as_bytes()));
        Digest::of_parts(manifest.chain(named.iter().map(|(name, text)| (name.as_str(), text.as_bytes()))))
    }
}

/// A relative path with `/` on every platform.
fn portable(path: &Path) -> String {
    path.components()
        .map(|part| part.as_os_str().to_string_lossy())
        .collect::<Vec<_>>()
        .join("/")
}

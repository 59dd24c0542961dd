//! The CUDA compilers: found on the system, or NVIDIA's own Python wheels in a private environment.
//!
//! The private one needs no root and touches nothing outside the data folder. It compiles and disassembles on machines
//! without a GPU, which is how continuous integration checks device code.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::compiler::version_in;
use crate::host::{Command, Ended, Host, Output};

/// Where a toolchain comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A CUDA toolkit of the system.
    System,
    /// Wheels that `ksmith toolchain cuda --install` fetched.
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

/// Why no toolchain could be made.
#[derive(Debug, thiserror::Error)]
pub enum ToolchainError {
    /// No Python to install with.
    #[error("no `python3` with pip was found")]
    NoPython,
    /// A folder or file could not be written.
    #[error("`{path}`: {source}")]
    Io {
        /// The path.
        path: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
    /// A step failed.
    #[error("{step} failed ({ended:?}): {message}")]
    Step {
        /// What was tried.
        step: &'static str,
        /// How it ended.
        ended: Ended,
        /// The last lines it wrote.
        message: String,
    },
    /// The wheels were installed, and no compiler lies where it should.
    #[error("the wheels hold no `nvcc` under `{0}`")]
    NoCompiler(PathBuf),
}

impl ToolchainError {
    /// What a person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoPython => Some("apt-get install python3 python3-venv python3-pip"),
            Self::Step {
                step: "downloading the wheels",
                ..
            } => Some("check the network and `python3 -m pip config list`; about 300 MB are fetched"),
            Self::Step {
                step: "compiling a test kernel",
                ..
            } => Some("apt-get install g++"),
            Self::Io { .. } | Self::Step { .. } | Self::NoCompiler(_) => None,
        }
    }
}

/// What an installation recorded of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    /// The toolchain.
    pub toolchain: Toolchain,
    /// Name and version of each wheel.
    pub wheels: Vec<(String, String)>,
    /// The architecture that the test kernel was compiled for.
    pub checked_for: String,
    /// Instructions in its disassembly.
    pub instructions: usize,
}

/// The release line of the compilers. All six must be of one line: nvcc refuses another line's headers and libdevice.
pub const LINE: &str = "13.0";

/// Wheels of the line.
const WHEELS: [&str; 6] = [
    "nvidia-cuda-nvcc",
    "nvidia-cuda-nvrtc",
    "nvidia-cuda-crt",
    "nvidia-cuda-cccl",
    "nvidia-cuda-runtime",
    "nvidia-nvvm",
];

/// Disassemblers: they exist as wheels since 13.2 only and read cubins of older lines.
const DISASSEMBLERS: [&str; 2] = [
    "nvidia-cuda-cuobjdump>=13.2,<14",
    "nvidia-cuda-nvdisasm>=13.2,<14",
];

/// Settings of pip and of networks that a download may need.
const NETWORK: &[&str] = &[
    "PIP_CERT",
    "PIP_CONFIG_FILE",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_INDEX_URL",
    "PIP_NO_INDEX",
    "PIP_PROXY",
    "PIP_TRUSTED_HOST",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "https_proxy",
    "http_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
];

/// A kernel that touches what a toolchain must offer: headers of bf16, sm_90a, a reduction.
const TEST_KERNEL: &str = "\
#include <cuda_bf16.h>
extern \"C\" __global__ void probe(const __nv_bfloat16 *x, float *y, int n) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += 32) sum += __bfloat162float(x[i]);
    for (int lane = 16; lane; lane /= 2) sum += __shfl_xor_sync(~0u, sum, lane);
    if (threadIdx.x == 0) *y = sum;
}
";

impl Toolchain {
    /// Finds a toolchain: the system's, else the private one under `data_dir`.
    pub fn find(host: &dyn Host, data_dir: &Path) -> Option<Self> {
        let mut places = Vec::new();
        if let Some(path) = host.find("nvcc") {
            // A link such as /usr/bin/nvcc points into the toolkit.
            places.push(std::fs::canonicalize(&path).unwrap_or(path));
        }
        places.push("/usr/local/cuda/bin/nvcc".into());
        places.push("/opt/cuda/bin/nvcc".into());
        for name in host
            .list(Path::new("/usr/local"))
            .iter()
            .rev()
            .filter(|name| name.starts_with("cuda-"))
        {
            places.push(Path::new("/usr/local").join(name).join("bin/nvcc"));
        }
        places
            .into_iter()
            .filter(|nvcc| host.exists(nvcc))
            .find_map(|nvcc| Self::at(host, Origin::System, nvcc))
            .or_else(|| Self::find_private(host, data_dir))
    }

    /// Finds the private toolchain alone.
    pub fn find_private(host: &dyn Host, data_dir: &Path) -> Option<Self> {
        Self::in_environment(host, &private_dir(data_dir))
    }

    /// Finds `nvcc` in a virtual environment, or in a folder that pip installed into.
    fn in_environment(host: &dyn Host, folder: &Path) -> Option<Self> {
        let lib = folder.join("lib");
        let pythons = host
            .list(&lib)
            .into_iter()
            .filter(|name| name.starts_with("python"));
        let mut sites: Vec<PathBuf> = pythons.map(|name| lib.join(name).join("site-packages")).collect();
        sites.push(folder.join("site"));
        sites
            .into_iter()
            .map(|site| site.join("nvidia/cu13/bin/nvcc"))
            .filter(|nvcc| host.exists(nvcc))
            .find_map(|nvcc| Self::at(host, Origin::Private, nvcc))
    }

    fn at(host: &dyn Host, origin: Origin, nvcc: PathBuf) -> Option<Self> {
        let bin = nvcc.parent()?.to_path_buf();
        let root = bin.parent()?.to_path_buf();
        let command = Command::new(nvcc.to_string_lossy(), ["--version"]).limit(Duration::from_secs(20));
        let output = host.run(&command);
        let line = output.success()?.lines().find(|line| line.contains("release"))?;
        let version = version_in(line)?;
        let present = |path: PathBuf| host.exists(&path).then_some(path);
        let nvrtc = [
            "lib64",
            "lib",
            "targets/x86_64-linux/lib",
            "targets/sbsa-linux/lib",
        ]
        .iter()
        .map(|folder| root.join(folder))
        .find_map(|folder| {
            let name = host.list(&folder).into_iter().find(|name| {
                name.strip_prefix("libnvrtc.so.")
                    .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
            })?;
            Some(folder.join(name))
        });
        Some(Self {
            origin,
            ptxas: present(bin.join("ptxas")),
            cuobjdump: present(bin.join("cuobjdump")),
            nvdisasm: present(bin.join("nvdisasm")),
            include: present(root.join("include")),
            nvrtc,
            version,
            nvcc,
            root,
        })
    }
}

/// Where the private toolchain lies.
pub fn private_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("toolchains").join(format!("cuda-{LINE}"))
}

/// Installs the private toolchain under `data_dir`, checks that it compiles and disassembles, and records versions in
/// `toolchain.json`. Fetches about 300 MB; `progress` is told each step. A half-done installation is never found.
///
/// # Errors
/// If Python, the network, the disk or the host compiler is missing; the error names the step.
pub fn install(
    host: &dyn Host,
    data_dir: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Installed, ToolchainError> {
    let final_dir = private_dir(data_dir);
    let work = final_dir.with_extension("partial");
    let io = |path: &Path| {
        let path = path.to_path_buf();
        move |source| ToolchainError::Io { path, source }
    };
    if work.exists() {
        std::fs::remove_dir_all(&work).map_err(io(&work))?;
    }
    std::fs::create_dir_all(&work).map_err(io(&work))?;
    progress("making a private Python environment");
    let (python, target) = environment(host, &work)?;
    progress("fetching NVIDIA's compiler wheels (about 300 MB)");
    let mut args = vec![
        "-m",
        "pip",
        "install",
        "--no-input",
        "--disable-pip-version-check",
        "--only-binary=:all:",
    ];
    args.extend(target.iter().map(String::as_str));
    let pins: Vec<String> = WHEELS.iter().map(|wheel| format!("{wheel}=={LINE}.*")).collect();
    args.extend(pins.iter().map(String::as_str));
    args.extend(DISASSEMBLERS);
    let output = host.run(
        &Command::new(python.to_string_lossy(), args)
            .limit(Duration::from_secs(1800))
            .inherit(NETWORK),
    );
    step("downloading the wheels", &output)?;
    let toolchain =
        Toolchain::in_environment(host, &work).ok_or_else(|| ToolchainError::NoCompiler(work.clone()))?;
    progress("compiling and disassembling a test kernel for sm_90a");
    let instructions = check(host, &toolchain, &work)?;
    let wheels = wheels(host, &work);
    if final_dir.exists() {
        std::fs::remove_dir_all(&final_dir).map_err(io(&final_dir))?;
    }
    std::fs::rename(&work, &final_dir).map_err(io(&final_dir))?;
    let toolchain = Toolchain::in_environment(host, &final_dir)
        .ok_or_else(|| ToolchainError::NoCompiler(final_dir.clone()))?;
    let installed = Installed {
        toolchain,
        wheels,
        checked_for: "sm_90a".to_owned(),
        instructions,
    };
    let record = final_dir.join("toolchain.json");
    let text = serde_json::to_string_pretty(&installed).unwrap_or_default();
    std::fs::write(&record, text).map_err(io(&record))?;
    Ok(installed)
}

/// A virtual environment, else (Debian ships Python without `venv`) the system's pip with a target folder.
fn environment(host: &dyn Host, work: &Path) -> Result<(PathBuf, Vec<String>), ToolchainError> {
    let Some(python) = host.find("python3") else {
        return Err(ToolchainError::NoPython);
    };
    let name = python.to_string_lossy().into_owned();
    let folder = work.to_string_lossy().into_owned();
    let made = host.run(
        &Command::new(&name, ["-m", "venv", folder.as_str()])
            .limit(Duration::from_secs(120))
            .inherit(NETWORK),
    );
    let private = work.join("bin/python3");
    if made.success().is_some() && host.exists(&private) {
        return Ok((private, Vec::new()));
    }
    let pip = host.run(&Command::new(&name, ["-m", "pip", "--version"]).limit(Duration::from_secs(30)));
    if pip.success().is_none() {
        return Err(ToolchainError::NoPython);
    }
    let site = work.join("site").to_string_lossy().into_owned();
    Ok((python, vec!["--target".to_owned(), site]))
}

/// Compiles the test kernel and counts the instructions that both disassemblers see.
fn check(host: &dyn Host, toolchain: &Toolchain, work: &Path) -> Result<usize, ToolchainError> {
    let source = work.join("probe.cu");
    std::fs::write(&source, TEST_KERNEL).map_err(|error| ToolchainError::Io {
        path: source.clone(),
        source: error,
    })?;
    let cubin = work.join("probe.cubin");
    let (source, cubin) = (
        source.to_string_lossy().into_owned(),
        cubin.to_string_lossy().into_owned(),
    );
    let minute = Duration::from_secs(60);
    let nvcc = toolchain.nvcc.to_string_lossy();
    let args = ["-cubin", "-arch=sm_90a", "-o", cubin.as_str(), source.as_str()];
    step(
        "compiling a test kernel",
        &host.run(&Command::new(nvcc, args).limit(minute)),
    )?;
    let mut counts = Vec::new();
    for (tool, flag) in [(&toolchain.nvdisasm, "-c"), (&toolchain.cuobjdump, "-sass")] {
        let Some(tool) = tool else { continue };
        let output = host.run(&Command::new(tool.to_string_lossy(), [flag, cubin.as_str()]).limit(minute));
        let text = step("disassembling the test kernel", &output)?;
        let count = text
            .lines()
            .filter(|line| line.trim_start().starts_with("/*0"))
            .count();
        if !text.contains("SHFL") || count == 0 {
            let message = format!("`{}` shows no `SHFL`", tool.display());
            return Err(ToolchainError::Step {
                step: "disassembling the test kernel",
                ended: output.ended,
                message,
            });
        }
        counts.push(count);
    }
    Ok(counts.into_iter().min().unwrap_or(0))
}

/// Name and version of each wheel, from the metadata folders beside them.
fn wheels(host: &dyn Host, work: &Path) -> Vec<(String, String)> {
    let lib = work.join("lib");
    let mut sites: Vec<PathBuf> = host
        .list(&lib)
        .into_iter()
        .map(|name| lib.join(name).join("site-packages"))
        .collect();
    sites.push(work.join("site"));
    let names = sites.iter().flat_map(|site| host.list(site));
    names
        .filter_map(|name| {
            let (wheel, version) = name.strip_suffix(".dist-info")?.rsplit_once('-')?;
            wheel
                .starts_with("nvidia")
                .then(|| (wheel.replace('_', "-"), version.to_owned()))
        })
        .collect()
}

fn step<'a>(step: &'static str, output: &'a Output) -> Result<&'a str, ToolchainError> {
    output.success().ok_or_else(|| {
        let text = output.both();
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        let message = lines[lines.len().saturating_sub(3)..].join("; ");
        ToolchainError::Step {
            step,
            ended: output.ended,
            message,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LocalHost;
    use crate::scripted::ScriptedHost;

    #[test]
    fn the_system_toolkit_is_preferred_and_its_parts_are_named() {
        let host = ScriptedHost::load("h200");
        let toolchain = Toolchain::find(&host, Path::new("/data")).unwrap();
        assert_eq!(
            (toolchain.origin, toolchain.version.as_str()),
            (Origin::System, "13.0.88")
        );
        assert_eq!(toolchain.root, Path::new("/usr/local/cuda"));
        assert_eq!(
            toolchain.nvrtc,
            Some("/usr/local/cuda/lib64/libnvrtc.so.13".into())
        );
        assert!(toolchain.nvdisasm.is_some() && toolchain.ptxas.is_some());
    }

    #[test]
    fn without_python_the_error_names_it_and_the_hint_installs_it() {
        let folder = tempfile::tempdir().unwrap();
        let error = install(&ScriptedHost::default(), folder.path(), &mut |_| ()).unwrap_err();
        assert!(matches!(error, ToolchainError::NoPython));
        assert!(error.hint().unwrap().contains("python3"));
        assert!(Toolchain::find_private(&LocalHost::new(), folder.path()).is_none());
    }

    #[test]
    fn a_failed_download_leaves_no_toolchain_behind() {
        let folder = tempfile::tempdir().unwrap();
        let host = ScriptedHost::load("pip-fails");
        let error = install(&host, folder.path(), &mut |_| ()).unwrap_err();
        assert!(error.to_string().contains("downloading the wheels"), "{error}");
        assert!(error.to_string().contains("No matching distribution"), "{error}");
        assert!(!private_dir(folder.path()).exists());
    }
}

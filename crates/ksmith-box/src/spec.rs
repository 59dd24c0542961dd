//! What to run in a box, and what the box is like.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Level;

/// Which system calls a boxed process may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// Compilers and linkers: files, processes of their own, no network.
    Compiler,
    /// Reference programs and interpreters: as compilers, and threads.
    Reference,
    /// A worker with one thread: the smallest list.
    Worker,
    /// A worker that may start threads.
    WorkerThreads,
    /// A worker with a GPU: threads, and what the driver needs. The candidate brings no host code to it.
    Device,
    /// An agent's command line: everything but the calls that break out, which fail.
    Agent,
}

/// Resource limits of a box; `None` leaves the system's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Wall time from the start; afterwards everything in the box is killed.
    pub wall: Option<Duration>,
    /// CPU time of one process, in whole seconds.
    pub cpu: Option<Duration>,
    /// Memory of the box (control group, where there is one) and address space of one process.
    pub memory_bytes: Option<u64>,
    /// Address space of one process, if it is to differ from `memory_bytes`.
    pub address_space_bytes: Option<u64>,
    /// Largest file that a process may write.
    pub file_bytes: Option<u64>,
    /// Open descriptors.
    pub files: Option<u64>,
    /// Processes and threads in the box.
    pub processes: Option<u64>,
    /// Stack of the first thread.
    pub stack_bytes: Option<u64>,
    /// Bytes kept of standard output and of standard error each.
    pub output_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Some(Duration::from_secs(30)),
            cpu: Some(Duration::from_secs(30)),
            memory_bytes: Some(2 << 30),
            address_space_bytes: None,
            file_bytes: Some(256 << 20),
            files: Some(256),
            processes: Some(32),
            stack_bytes: Some(8 << 20),
            output_bytes: 256 << 10,
        }
    }
}

/// What a box runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Target {
    Program(PathBuf),
    Role(String),
}

/// A boxed process, described.
#[derive(Debug, Clone)]
pub struct BoxSpec {
    pub(crate) target: Target,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) read_only: Vec<PathBuf>,
    pub(crate) read_write: Vec<PathBuf>,
    pub(crate) devices: Vec<PathBuf>,
    pub(crate) fds: Vec<Arc<OwnedFd>>,
    pub(crate) stdin: Vec<u8>,
    pub(crate) limits: Limits,
    pub(crate) profile: Profile,
    pub(crate) least: Level,
    pub(crate) unsandboxed: bool,
    pub(crate) cpus: Vec<usize>,
    pub(crate) nice: i32,
    pub(crate) proc_view: bool,
    pub(crate) loopback: Option<u16>,
    pub(crate) home: Option<PathBuf>,
    pub(crate) flood_bytes: Option<u64>,
}

impl BoxSpec {
    fn new(target: Target, profile: Profile) -> Self {
        Self {
            target,
            args: Vec::new(),
            env: Vec::new(),
            cwd: None,
            read_only: Vec::new(),
            read_write: Vec::new(),
            devices: Vec::new(),
            fds: Vec::new(),
            stdin: Vec::new(),
            limits: Limits::default(),
            profile,
            least: Level::Kernel,
            unsandboxed: false,
            cpus: Vec::new(),
            nice: 0,
            proc_view: false,
            loopback: None,
            home: None,
            flood_bytes: None,
        }
    }

    /// Runs the program at an absolute path.
    pub fn program(path: impl Into<PathBuf>, profile: Profile) -> Self {
        Self::new(Target::Program(path.into()), profile)
    }

    /// Runs a role that was given to [`crate::intercept_with`].
    pub fn role(name: &str, profile: Profile) -> Self {
        Self::new(Target::Role(name.to_owned()), profile)
    }

    /// Adds one argument.
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    pub fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets one environment variable; the box starts with none.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the working directory (default `/`); it must be visible in the box.
    pub fn cwd(mut self, path: &Path) -> Self {
        self.cwd = Some(path.to_owned());
        self
    }

    /// Shows a file or folder, read-only, at its own path. A missing path is left out if it is a system folder.
    pub fn read_only(mut self, path: impl Into<PathBuf>) -> Self {
        self.read_only.push(path.into());
        self
    }

    /// Shows a file or folder, writable, at its own path.
    pub fn read_write(mut self, path: impl Into<PathBuf>) -> Self {
        self.read_write.push(path.into());
        self
    }

    /// Shows a device node, with its control calls; only GPU workers need one.
    pub fn device(mut self, path: impl Into<PathBuf>) -> Self {
        self.devices.push(path.into());
        self
    }

    /// Shows the system's programs, libraries and headers, read-only.
    pub fn system(self) -> Self {
        [
            "/usr",
            "/bin",
            "/lib",
            "/lib64",
            "/etc/ld.so.cache",
            "/etc/alternatives",
        ]
        .into_iter()
        .fold(self, |spec, path| spec.read_only(path))
    }

    /// Passes a descriptor; the first one arrives as 3, the next as 4, and so on.
    pub fn fd(mut self, fd: OwnedFd) -> Self {
        self.fds.push(Arc::new(fd));
        self
    }

    /// Gives these bytes as standard input (default: empty).
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the wall limit only.
    pub fn wall(mut self, wall: Duration) -> Self {
        self.limits.wall = Some(wall);
        self
    }

    /// Sets the least level of isolation; below it the start is refused by name. Default: `kernel`.
    pub fn least(mut self, level: Level) -> Self {
        self.least = level;
        self
    }

    /// Allows the start below the least level: the user asked for it by name.
    pub fn unsandboxed(mut self) -> Self {
        self.unsandboxed = true;
        self
    }

    /// Pins the process to these CPUs.
    pub fn cpus(mut self, cpus: impl IntoIterator<Item = usize>) -> Self {
        self.cpus = cpus.into_iter().collect();
        self
    }

    /// Gives way to other processes (1 to 19); 0, the default, leaves the priority as it is.
    pub fn nice(mut self, nice: i32) -> Self {
        self.nice = nice.clamp(0, 19);
        self
    }

    /// Shows a `/proc` of the box's own processes; sanitizers and interpreters need it.
    pub fn proc_view(mut self) -> Self {
        self.proc_view = true;
        self
    }

    /// Gives the box a loopback device of its own. Where the kernel has no network namespaces there is no such device:
    /// then TCP is allowed on this one port, and the level says that the network is shared.
    pub fn loopback(mut self, port: u16) -> Self {
        self.loopback = Some(port);
        self
    }

    /// Gives the box's user a name and this home folder, by files of its own under `/etc`; programs that ask who they
    /// are need that. It must be shown as well.
    pub fn home(mut self, path: impl Into<PathBuf>) -> Self {
        self.home = Some(path.into());
        self
    }

    /// Ends the box once its standard output and error together are longer than this.
    pub fn flood(mut self, bytes: u64) -> Self {
        self.flood_bytes = Some(bytes);
        self
    }
}

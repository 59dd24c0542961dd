//! The box in which a whole agent runs: no network but the gateway's socket, a clean home, its own desk, and nothing of
//! the user, the judge or other runs.
//!
//! The level is the kernel's best and never lowered silently: below `box` the start is refused by name, unless the user
//! asked for that by name; then the record says what the level was.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ksmith_box::{BoxSpec, Level, Limits, Profile};

use super::Desk;
use super::relay::{Errand, NAME};

/// Bytes of standard output and of standard error each that are kept.
const KEPT: usize = 8 << 20;
/// Beyond this much output a session is ended.
const FLOOD: u64 = 64 << 20;

/// Unix sockets that the box shows: one to the model gateway, one to our tools.
#[derive(Debug, Clone, Default)]
pub struct Sockets {
    /// A folder that holds nothing but the sockets.
    pub folder: Option<PathBuf>,
    /// The gateway's, in that folder.
    pub gateway: Option<PathBuf>,
    /// That of our tools, in that folder.
    pub tools: Option<PathBuf>,
}

/// The box of one session.
#[derive(Debug, Clone)]
pub struct AgentBox {
    desk: PathBuf,
    home: PathBuf,
    reports: PathBuf,
    show: Vec<PathBuf>,
    least: Level,
    unsandboxed: bool,
    wall: Duration,
    flood: u64,
}

impl AgentBox {
    /// A box around a desk.
    pub fn new(desk: &Desk) -> Self {
        Self {
            desk: desk.path().to_owned(),
            home: desk.home(),
            reports: desk.reports(),
            show: Vec::new(),
            least: Level::Box,
            unsandboxed: false,
            wall: Duration::from_secs(600),
            flood: FLOOD,
        }
    }

    /// Shows more of the machine, read-only: the agent's own program, sockets.
    pub fn show(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.show.extend(paths);
        self
    }

    /// Sets the least level.
    pub fn least(mut self, least: Level) -> Self {
        self.least = least;
        self
    }

    /// Takes what the kernel gives, because the user asked for it by name.
    pub fn unsandboxed(mut self) -> Self {
        self.unsandboxed = true;
        self
    }

    /// Sets the session's wall limit.
    pub fn wall(mut self, wall: Duration) -> Self {
        self.wall = wall;
        self
    }

    /// Sets how much output a session may make.
    pub fn flood(mut self, bytes: u64) -> Self {
        self.flood = bytes;
        self
    }

    /// What the box is to run.
    pub(crate) fn spec(&self, errand: &Errand) -> BoxSpec {
        let text = serde_json::to_string(errand).unwrap_or_default();
        let limits = Limits {
            wall: Some(self.wall),
            cpu: None,
            memory_bytes: Some(4 << 30),
            // JavaScript engines reserve far more than they use.
            address_space_bytes: Some(1 << 46),
            file_bytes: Some(256 << 20),
            files: Some(1024),
            processes: Some(256),
            stack_bytes: Some(8 << 20),
            output_bytes: KEPT,
        };
        let mut spec = BoxSpec::role(NAME, Profile::Agent)
            .arg(text)
            .system()
            .proc_view()
            .cwd(&self.desk)
            .read_write(&self.desk)
            .read_write(&self.home)
            .read_only(&self.reports)
            .home(&self.home)
            .loopback(errand.relay.as_ref().map_or(PORT, |(port, _)| *port))
            .limits(limits)
            .flood(self.flood)
            .least(self.least);
        for path in &self.show {
            spec = spec.read_only(path);
        }
        if self.unsandboxed {
            spec = spec.unsandboxed();
        }
        spec
    }
}

/// The port inside the box at which agents find their model. Nothing else is there to share it with.
pub(crate) const PORT: u16 = 8790;

/// The port for a relay: the fixed one in a network of the box's own, else one that is free now.
pub(crate) fn port() -> u16 {
    if ksmith_box::probe().level >= Level::Box {
        return PORT;
    }
    std::net::TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map_or(PORT, |address| address.port())
}

/// Whether a path is part of what every box shows of the system.
pub(crate) fn is_system(path: &Path) -> bool {
    ["/usr", "/bin", "/lib", "/lib64"]
        .iter()
        .any(|folder| path.starts_with(folder))
}

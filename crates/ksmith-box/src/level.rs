//! Isolation layers and levels: what this kernel gives, tried once per process.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How strong the isolation of a box is; recorded in every verdict, never lowered silently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// No isolation worth the name.
    None,
    /// Resource limits and a process group of its own.
    Limits,
    /// Landlock and a system-call filter as well.
    Kernel,
    /// Process, mount and network namespaces as well: nothing outlives the box or sees beyond it.
    Box,
}

impl Level {
    /// The stable name: `box`, `kernel`, `limits` or `none`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Limits => "limits",
            Self::Kernel => "kernel",
            Self::Box => "box",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::None, Self::Limits, Self::Kernel, Self::Box]
            .into_iter()
            .find(|level| level.name() == text)
            .ok_or_else(|| format!("`{text}` is no isolation level: box, kernel, limits or none"))
    }
}

/// One mechanism of the kernel that a box uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Layer {
    Rlimits,
    NoNewPrivileges,
    UidDrop,
    UserNamespace,
    PidNamespace,
    MountNamespace,
    NetworkNamespace,
    IpcNamespace,
    HostNameNamespace,
    Landlock,
    Seccomp,
    SeccompListener,
    CgroupMemory,
    CgroupPids,
}

/// Whether one layer is there, and if not why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerState {
    /// The layer.
    pub layer: Layer,
    /// Whether it works here.
    pub available: bool,
    /// Why not; a remark if it does.
    pub reason: String,
}

/// What this kernel and this user get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// The level that follows from the layers.
    pub level: Level,
    /// Every layer, in a fixed order.
    pub layers: Vec<LayerState>,
}

impl Isolation {
    /// The level's stable name.
    pub fn name(&self) -> &'static str {
        self.level.name()
    }
}

impl Isolation {
    /// Which layers are missing, in words, for a refusal.
    pub fn missing(&self) -> String {
        let missing: Vec<String> = self
            .layers
            .iter()
            .filter(|state| !state.available)
            .map(|state| format!("{:?} ({})", state.layer, state.reason))
            .collect();
        if missing.is_empty() {
            "nothing is known about this kernel".to_owned()
        } else {
            missing.join(", ")
        }
    }
}

/// What this kernel gives, tried once per process.
///
/// In an executable that does not call [`crate::intercept`] the answer is `none`: nothing can be boxed from it.
pub fn probe() -> &'static Isolation {
    static ISOLATION: std::sync::OnceLock<Isolation> = std::sync::OnceLock::new();
    ISOLATION.get_or_init(|| {
        if crate::intercept::was_called() {
            crate::probe::ask()
        } else {
            Isolation {
                level: Level::None,
                layers: Vec::new(),
            }
        }
    })
}

//! What the starter tells the helper, and what the helper tells the starter.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::spec::Target;
use crate::{BoxSpec, Ended, Isolation, Layer, Limits, Profile};

/// The hidden first argument of a helper.
pub(crate) const HELPER: &str = "--ksmith-boxed-helper";
/// The hidden first argument of the process that tries the layers.
pub(crate) const PROBE: &str = "--ksmith-boxed-probe";

/// A specification as the helper reads it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Wire {
    pub(crate) target: Target,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) read_only: Vec<PathBuf>,
    pub(crate) read_write: Vec<PathBuf>,
    pub(crate) devices: Vec<PathBuf>,
    pub(crate) limits: Limits,
    pub(crate) profile: Profile,
    pub(crate) cpus: Vec<usize>,
    pub(crate) nice: i32,
    pub(crate) proc_view: bool,
    pub(crate) loopback: Option<u16>,
    pub(crate) home: Option<PathBuf>,
    pub(crate) layers: Vec<Layer>,
    pub(crate) fds: usize,
    /// Files to which the helper writes itself to enter its control groups.
    pub(crate) groups: Vec<PathBuf>,
}

impl Wire {
    pub(crate) fn new(spec: &BoxSpec, isolation: &Isolation, groups: Vec<PathBuf>) -> Self {
        Self {
            target: spec.target.clone(),
            args: spec.args.clone(),
            env: spec.env.clone(),
            cwd: spec.cwd.clone(),
            read_only: spec.read_only.clone(),
            read_write: spec.read_write.clone(),
            devices: spec.devices.clone(),
            limits: spec.limits.clone(),
            profile: spec.profile,
            cpus: spec.cpus.clone(),
            nice: spec.nice,
            proc_view: spec.proc_view,
            loopback: spec.loopback,
            home: spec.home.clone(),
            layers: isolation
                .layers
                .iter()
                .filter(|l| l.available)
                .map(|l| l.layer)
                .collect(),
            fds: spec.fds.len(),
            groups,
        }
    }

    pub(crate) fn has(&self, layer: Layer) -> bool {
        self.layers.contains(&layer)
    }

    pub(crate) fn is_worker(&self) -> bool {
        matches!(self.profile, Profile::Worker | Profile::WorkerThreads)
    }
}

/// A message of the helper.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// Sent by the process that will become the program, so that the kernel translates its id.
    Started,
    /// Everything is given up; foreign code may run from now on.
    Ready,
    /// The box could not be set up.
    Failed { step: String, reason: String },
    /// The program or role ended.
    Ended(Ended),
}

impl Message {
    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

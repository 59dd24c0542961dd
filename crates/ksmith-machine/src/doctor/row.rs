//! The table: rows, their states, and the whole diagnosis.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::{Load, Machine, Noise};

use super::{Route, agents, cuda, here, profiler, python, route};

/// What a probe found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It is there and works.
    Ok,
    /// It is not there.
    Missing,
    /// It is there, and something about it limits what can be done or said.
    Limited,
    /// It cannot be here, or nothing on this machine needs it.
    NotApplicable,
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// What was looked for, a stable name.
    pub name: String,
    /// The state.
    pub state: State,
    /// What was found, with versions and numbers.
    pub finding: String,
    /// What to do, where something can be done: one exact command where possible.
    pub fix: Option<String>,
}

impl Row {
    pub(crate) fn new(name: &str, state: State, finding: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            state,
            finding: finding.into(),
            fix: None,
        }
    }

    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// What the sandbox said of itself; filled in by whoever holds `ksmith-box`'s probe.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsolationFacts {
    /// `box`, `kernel`, `limits` or `none`; empty if it was not probed.
    pub level: String,
    /// Its layers.
    pub layers: Vec<IsolationLayer>,
}

/// One layer of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsolationLayer {
    /// `landlock`, `seccomp`, `namespaces`, …
    pub name: String,
    /// Whether it works here.
    pub works: bool,
    /// Version, or why it does not work.
    pub detail: String,
}

/// What renting a GPU by the hour may cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rental {
    /// Price of one hour in USD.
    pub usd_per_hour: f64,
    /// Wall time that the budget allows on the device, in seconds.
    pub wall_seconds: f64,
}

/// What the probes may use.
#[derive(Clone)]
pub struct Probes<'a> {
    /// The machine to ask.
    pub host: &'a dyn Host,
    /// Its record, already read.
    pub machine: &'a Machine,
    /// What the sandbox said of itself.
    pub isolation: IsolationFacts,
    /// Measured noise, if it was measured.
    pub noise: Option<Noise>,
    /// Sampled load, if it was sampled.
    pub load: Option<Load>,
    /// Where private toolchains are kept.
    pub data_dir: PathBuf,
    /// A program (with arguments) that launches one kernel, for the counter probe; without it the driver's setting is
    /// read instead.
    pub kernel_program: Option<Vec<String>>,
    /// Price and time for the estimate of a rented device, if known.
    pub rental: Option<Rental>,
}

/// The table and the route.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// One line about the machine.
    pub machine: String,
    /// All rows, in a fixed order.
    pub rows: Vec<Row>,
    /// The recommended route.
    pub route: Route,
}

impl Diagnosis {
    /// The row with this name.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// Whether a row is [`State::Ok`].
    pub fn is_ok(&self, name: &str) -> bool {
        self.row(name).is_some_and(|row| row.state == State::Ok)
    }
}

/// Runs all probes. Takes a few seconds where NVIDIA tools or PyTorch are installed, tenths of a second elsewhere.
pub fn doctor(probes: &Probes<'_>) -> Diagnosis {
    let mut rows = Vec::new();
    rows.extend(cuda::rows(probes));
    rows.extend(profiler::rows(probes));
    rows.extend(python::rows(probes));
    rows.extend(agents::rows(probes));
    rows.extend(here::rows(probes));
    let route = route::recommend(&rows, probes);
    Diagnosis {
        machine: probes.machine.summary(),
        rows,
        route,
    }
}

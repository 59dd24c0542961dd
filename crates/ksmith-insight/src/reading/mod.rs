//! The reading of a profile in six dimensions, by rules kept as data (`rules/reading.toml`).
//!
//! A threshold of 4 to 5 sectors per request, often quoted, is not used: a warp that loads 16 bytes per lane moves 16
//! sectors a request by design. Bytes used per sector tell the same without that mistake.

mod rules;

use serde::{Deserialize, Serialize};

use crate::ncu::KernelProfile;

pub use rules::{Direction, Edit, Rule, rules};

/// The six dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dimension {
    /// Occupancy and launch.
    Launch,
    /// Balance of blocks.
    Balance,
    /// Stalls and hot lines.
    Stalls,
    /// Tensor core.
    Tensor,
    /// Behaviour over time.
    Timeline,
    /// Memory path.
    Memory,
}

impl Dimension {
    /// All six, in the order of a report.
    pub const ALL: [Self; 6] = [
        Self::Launch,
        Self::Balance,
        Self::Stalls,
        Self::Tensor,
        Self::Timeline,
        Self::Memory,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Launch => "occupancy and launch",
            Self::Balance => "block balance",
            Self::Stalls => "stalls",
            Self::Tensor => "tensor core",
            Self::Timeline => "timeline",
            Self::Memory => "memory path",
        }
    }
}

/// What the contract says of the work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// The work is a matrix product in a type that tensor cores take.
    pub expects_tensor_cores: bool,
    /// The contract computes in double precision.
    pub expects_double: bool,
}

/// A rule that holds, with its numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The rule.
    pub id: String,
    /// Its dimension.
    pub dimension: Dimension,
    /// Its text with numbers.
    pub says: String,
    /// Its edit, if it has one.
    pub edit: Option<Edit>,
    /// Names that the search understands.
    pub strategies: Vec<String>,
}

/// What is said of one dimension.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DimensionReading {
    /// The dimension.
    pub dimension: Dimension,
    /// What holds; empty if nothing could be read.
    pub says: Vec<String>,
    /// Metrics that are missing and would have been read here.
    pub unavailable: Vec<String>,
}

/// The whole reading of one kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileReading {
    /// Kernel name.
    pub kernel: String,
    /// The six dimensions.
    pub dimensions: Vec<DimensionReading>,
    /// The main reading: the first rule with an edit that holds.
    pub main: Option<Reading>,
    /// All rules that hold, in the order of the file.
    pub all: Vec<Reading>,
}

/// Reads a profile by the embedded rules.
pub fn read(profile: &KernelProfile, context: Context) -> ProfileReading {
    let metric = |name: &str| match name {
        "expects_tensor_cores" => Some(f64::from(u8::from(context.expects_tensor_cores))),
        "expects_double" => Some(f64::from(u8::from(context.expects_double))),
        _ => profile.metrics.get(name),
    };
    let mut all: Vec<Reading> = Vec::new();
    let mut dimensions: Vec<DimensionReading> = Dimension::ALL
        .into_iter()
        .map(|dimension| DimensionReading {
            dimension,
            says: Vec::new(),
            unavailable: Vec::new(),
        })
        .collect();
    for rule in rules() {
        if rule.fallback && all.iter().any(|reading| reading.edit.is_some()) {
            continue;
        }
        let holds = rule.holds(&metric);
        for entry in dimensions
            .iter_mut()
            .filter(|entry| entry.dimension == rule.dimension)
        {
            match &holds {
                Ok(true) => entry.says.push(rule.text(&metric)),
                Ok(false) => {}
                Err(missing) => {
                    for name in missing {
                        if !entry.unavailable.contains(name) {
                            entry.unavailable.push(name.clone());
                        }
                    }
                }
            }
        }
        if holds == Ok(true) {
            all.push(Reading {
                id: rule.id.clone(),
                dimension: rule.dimension,
                says: rule.text(&metric),
                edit: rule.edit.clone(),
                strategies: rule.strategies.clone(),
            });
        }
    }
    let main = all.iter().find(|reading| reading.edit.is_some()).cloned();
    ProfileReading {
        kernel: profile.name.clone(),
        dimensions,
        main,
        all,
    }
}

#[cfg(test)]
mod tests;

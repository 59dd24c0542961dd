//! The gates, in the order in which the judge runs them (JUDGE, "Gates, in order").

use std::fmt;

use serde::{Deserialize, Serialize};

/// One mechanical check. The derived order is the order of execution.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each gate is described in docs/verdicts.md")]
pub enum Gate {
    Policy,
    Compile,
    Static,
    Smoke,
    Dev,
    Slow,
    Hidden,
    Probes,
    Traces,
    State,
    Repeat,
    Bounds,
    Poison,
    Depends,
    Precision,
    Sanitize,
    Bench,
    PostBench,
    Floor,
    Clocks,
    Distributions,
    Gain,
    Regression,
}

impl Gate {
    /// Every gate in order.
    pub const ALL: [Self; 23] = [
        Self::Policy,
        Self::Compile,
        Self::Static,
        Self::Smoke,
        Self::Dev,
        Self::Slow,
        Self::Hidden,
        Self::Probes,
        Self::Traces,
        Self::State,
        Self::Repeat,
        Self::Bounds,
        Self::Poison,
        Self::Depends,
        Self::Precision,
        Self::Sanitize,
        Self::Bench,
        Self::PostBench,
        Self::Floor,
        Self::Clocks,
        Self::Distributions,
        Self::Gain,
        Self::Regression,
    ];

    /// The name used in codes (`gate/cause`) and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Compile => "compile",
            Self::Static => "static",
            Self::Smoke => "smoke",
            Self::Dev => "dev",
            Self::Slow => "slow",
            Self::Hidden => "hidden",
            Self::Probes => "probes",
            Self::Traces => "traces",
            Self::State => "state",
            Self::Repeat => "repeat",
            Self::Bounds => "bounds",
            Self::Poison => "poison",
            Self::Depends => "depends",
            Self::Precision => "precision",
            Self::Sanitize => "sanitize",
            Self::Bench => "bench",
            Self::PostBench => "post-bench",
            Self::Floor => "floor",
            Self::Clocks => "clocks",
            Self::Distributions => "distributions",
            Self::Gain => "gain",
            Self::Regression => "regression",
        }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_complete_ordered_and_named_as_serialised() {
        assert!(Gate::ALL.windows(2).all(|pair| pair[0] < pair[1]));
        for gate in Gate::ALL {
            assert_eq!(serde_json::to_value(gate).unwrap(), gate.name());
        }
    }
}

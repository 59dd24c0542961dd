//! The slope test: k inputs revealed together must take about k times as long as one.
//!
//! Finds super-batching and work moved between calls, never small cheating. Measured for spinning waits: the slope of
//! honest kernels lies between 0.74 and 1.32 of a single call (p1 to p99); with sleeping waits it means nothing.

use serde::{Deserialize, Serialize};

use super::{Arm, CaseId, Fault};
use crate::statistics::median;

/// Numbers of inputs that are revealed together.
pub const TOGETHER: [u32; 4] = [1, 2, 4, 8];

/// A batch longer than this meets scheduler slices, and its slope says nothing.
const LONGEST_NS: f64 = 2_000_000.0;

/// Repeats of each count in one process.
pub const REPEATS: u32 = 20;

/// Slopes in units of a single call: below the first a process speaks against the kernel, below the second it is shown.
const REJECTED: f64 = 0.5;
const FLAGGED: f64 = 0.7;

/// Processes that must speak against a kernel.
const PROCESSES: usize = 3;

/// Medians of one process, in nanoseconds, for each entry of [`TOGETHER`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SlopeSample {
    /// Median time of a whole batch.
    pub ns: [f64; TOGETHER.len()],
}

/// What the slope says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Slope {
    /// Time grows with the number of inputs.
    Proportional {
        /// Median slope in units of a single call.
        slope: f64,
    },
    /// Between the limits: shown, never a reason by itself.
    Flagged {
        /// Median slope.
        slope: f64,
    },
    /// In three processes a further input took less than half of a single call.
    Batched {
        /// Median slope.
        slope: f64,
    },
    /// Calls are too long, or processes too few.
    Unavailable {
        /// Which of the two.
        why: String,
    },
}

/// Cases that [`sample`] uses up.
pub fn cases_needed() -> u32 {
    REPEATS * TOGETHER.iter().sum::<u32>()
}

/// Measures one process on fresh cases; `None` where the worker cannot take several inputs at once.
pub fn sample(arm: &mut impl Arm, cases: &[CaseId]) -> Result<Option<SlopeSample>, Fault> {
    let mut fresh = cases.iter();
    let mut times: [Vec<f64>; TOGETHER.len()] = Default::default();
    for _ in 0..REPEATS {
        for (together, times) in TOGETHER.iter().zip(&mut times) {
            let batch: Vec<CaseId> = fresh.by_ref().take(*together as usize).copied().collect();
            if batch.len() < *together as usize {
                return Err(Fault::Judge(format!(
                    "the slope test needs {} cases",
                    cases_needed()
                )));
            }
            match arm.batch(&batch)? {
                Some(call) if call.preempted() => {}
                Some(call) => times.push(call.ns as f64),
                None => return Ok(None),
            }
        }
    }
    let mut ns = [0.0; TOGETHER.len()];
    for (ns, times) in ns.iter_mut().zip(&times) {
        match median(times) {
            Some(middle) if times.len() * 2 >= REPEATS as usize => *ns = middle,
            Some(_) | None => return Ok(None),
        }
    }
    Ok(Some(SlopeSample { ns }))
}

/// Judges the samples of several processes.
pub fn slope(samples: &[SlopeSample]) -> Slope {
    let last = TOGETHER.len() - 1;
    let further = f64::from(TOGETHER[last] - TOGETHER[0]);
    let usable = samples
        .iter()
        .filter(|sample| sample.ns[last] <= LONGEST_NS && sample.ns[0] > 0.0);
    let slopes: Vec<f64> = usable
        .map(|sample| (sample.ns[last] - sample.ns[0]) / (further * sample.ns[0]))
        .collect();
    if slopes.len() < PROCESSES {
        let why = format!(
            "{} processes with batches under 2 ms, {PROCESSES} needed",
            slopes.len()
        );
        return Slope::Unavailable { why };
    }
    let slope = median(&slopes).unwrap_or(1.0);
    let against = slopes.iter().filter(|slope| **slope < REJECTED).count();
    if against >= PROCESSES && against * 2 > slopes.len() {
        Slope::Batched { slope }
    } else if slope < FLAGGED {
        Slope::Flagged { slope }
    } else {
        Slope::Proportional { slope }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::TimedCall;

    fn line(first: f64, further: f64) -> SlopeSample {
        SlopeSample {
            ns: TOGETHER.map(|k| first + further * f64::from(k - 1)),
        }
    }

    #[test]
    fn honest_slopes_pass_and_batched_ones_do_not() {
        assert!(matches!(slope(&[line(2e4, 2e4); 3]), Slope::Proportional { .. }));
        assert!(matches!(
            slope(&[line(2e4, 1.5e4); 3]),
            Slope::Proportional { .. }
        ));
        assert!(matches!(slope(&[line(2e4, 1.2e4); 3]), Slope::Flagged { .. }));
        assert!(matches!(slope(&[line(2e4, 2e3); 3]), Slope::Batched { .. }));
    }

    #[test]
    fn two_processes_or_long_calls_say_nothing() {
        assert!(matches!(slope(&[line(2e4, 2e3); 2]), Slope::Unavailable { .. }));
        assert!(matches!(slope(&[line(1e6, 1e6); 3]), Slope::Unavailable { .. }));
    }

    struct Batches {
        seen: Vec<CaseId>,
    }

    impl Arm for Batches {
        fn call(&mut self, _case: CaseId) -> Result<TimedCall, Fault> {
            Err(Fault::Judge("not used".to_owned()))
        }

        fn batch(&mut self, cases: &[CaseId]) -> Result<Option<TimedCall>, Fault> {
            self.seen.extend(cases);
            let ns = 20_000 * cases.len() as u64;
            Ok(Some(TimedCall {
                ns,
                judge_preempted: false,
                worker_preempted: false,
            }))
        }
    }

    #[test]
    fn every_input_of_the_slope_test_is_fresh() {
        let case = |index| CaseId {
            workload: 0,
            distribution: 0,
            index,
        };
        let cases: Vec<CaseId> = (0..cases_needed()).map(case).collect();
        let mut arm = Batches { seen: Vec::new() };
        let found = sample(&mut arm, &cases).unwrap().unwrap();
        assert_eq!(arm.seen, cases);
        assert!(matches!(slope(&[found; 3]), Slope::Proportional { slope } if (slope - 1.0).abs() < 1e-9));
        assert!(sample(&mut arm, &cases[1..]).is_err());
    }
}

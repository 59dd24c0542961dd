//! What acceptance means for a task, as conditions with commands, and what one scoring costs.

use serde::Serialize;

use crate::contract::{Backend, Compare};
use crate::shapes::ShapeLimits;
use crate::{Instance, Task};

/// One condition and the command that checks it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Acceptance {
    /// The condition in words and numbers.
    pub condition: String,
    /// The exact command.
    pub command: String,
}

/// Predicted cost of one full scoring.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScoringCost {
    /// The instance.
    pub instance: String,
    /// Cases: dev, neighbours, hidden, probes, traces.
    pub cases: u32,
    /// Bytes of their tensors.
    pub bytes: f64,
    /// Seconds to draw, refer and compare them, by rates of a slow core; the audit measures.
    pub seconds: f64,
}

/// Bytes per second to draw and compare on one slow core.
const BYTES_PER_SECOND: f64 = 150e6;
/// Floating-point operations per second of a plain float64 reference.
const FLOPS_PER_SECOND: f64 = 0.5e9;

pub(super) fn conditions(task: &Task) -> Vec<Acceptance> {
    let contract = task.contract();
    let folder = task.dir().display();
    let command = |verb: &str| format!("ksmith {verb} CANDIDATE --task {folder}");
    let mut all = Vec::new();
    for output in &contract.outputs {
        let rule = match &output.compare {
            Compare::Exact => "bit-equal to the reference".to_owned(),
            Compare::Rounded { tie } => format!("off by at most 0.5 + {tie} from the real reference"),
            Compare::Index { of, k, tie, .. } => {
                format!("{k} distinct indices, scores of `{of}` up to {tie}")
            }
            Compare::Checker { source } => format!("error ratio of `{}` at most 1", source.display()),
            Compare::Elementwise
                if output.atol.is_empty() && output.rtol.is_empty() && output.ctol.is_empty() =>
            {
                "equal to the reference".to_owned()
            }
            Compare::Elementwise => {
                let part = |name: &str, map: &std::collections::BTreeMap<crate::DType, crate::expr::Expr>| {
                    let values: Vec<_> = map
                        .iter()
                        .map(|(dtype, value)| format!("{dtype} {value}"))
                        .collect();
                    (!values.is_empty()).then(|| format!("{name} {{{}}}", values.join(", ")))
                };
                let parts = [
                    part("atol", &output.atol),
                    part("rtol", &output.rtol),
                    part("ctol", &output.ctol),
                ];
                format!(
                    "within {}",
                    parts.into_iter().flatten().collect::<Vec<_>>().join(" + ")
                )
            }
        };
        all.push(Acceptance {
            condition: format!(
                "every element of `{}` is {rule}, on dev, hidden and probe cases",
                output.name
            ),
            command: command("test"),
        });
    }
    let performance = &contract.performance;
    all.push(Acceptance {
        condition: format!(
            "confirmed time ratio to the baseline at most {} (protocol {}: {} warm-up, {} calls, {} round(s))",
            performance.goal,
            performance.protocol.name,
            performance.protocol.warmup,
            performance.protocol.repeats,
            performance.protocol.rounds
        ),
        command: command("bench"),
    });
    all.push(Acceptance {
        condition: format!(
            "no workload slower than the baseline by more than {:.1} %",
            100.0 * performance.max_regression
        ),
        command: command("judge"),
    });
    all
}

pub(super) fn scoring(task: &Task) -> Vec<ScoringCost> {
    task.instances().iter().map(one).collect()
}

fn one(instance: &Instance) -> ScoringCost {
    let hidden = &instance.task().contract().hidden;
    let (mut cases, mut bytes, mut flops) = (0u32, 0.0, 0.0);
    // A full scoring runs at the CPU's workloads; a task without any is scored on the device.
    let backend = if instance.workloads(Backend::Cpu).next().is_some() {
        Backend::Cpu
    } else {
        Backend::Cuda
    };
    for workload in instance.workloads(backend) {
        let neighbours = instance.neighbour_shapes(&workload.axes);
        for shape in std::iter::once(&workload.axes).chain(neighbours.iter().take(2)) {
            if let Ok(bound) = instance.bind(shape) {
                cases += 1;
                bytes += bound.storage_bytes() as f64;
                flops += bound.cost_flops;
            }
        }
    }
    let limits = ShapeLimits {
        max_bytes: hidden.max_bytes,
        max_flops: hidden.max_flops,
    };
    let random = hidden.cases.max(hidden.shapes);
    cases += random + hidden.probes.len() as u32 + hidden.traces.len() as u32;
    // The limits are sums over a scoring's random shapes; probes are small.
    bytes += limits.max_bytes as f64;
    flops += if flops > 0.0 { limits.max_flops } else { 0.0 };
    let seconds = bytes / BYTES_PER_SECOND + flops / FLOPS_PER_SECOND;
    ScoringCost {
        instance: instance.id(),
        cases,
        bytes,
        seconds,
    }
}

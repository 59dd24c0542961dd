//! Gates `hidden`, `probes` and `traces`: secret or recorded cases, evidence by class only.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use ksmith_ledger::Gate;
use ksmith_task::{Backend, DType, Tensor};
use ksmith_worker::cpu::Edge;
use safetensors::{Dtype, SafeTensors};
use serde_json::json;

use super::context::{End, GateEnd, Scoring, step};
use super::pressure::pressures;
use super::runner::Setup;
use crate::cases::{CaseSpec, InputFill, bind, dev_fills, residues};
use crate::judge::JudgeError;
use crate::number::{self, Values};

/// Cases lie at the end of a page, at its start and at neither, in turn.
const EDGES: [Edge; 3] = [Edge::End, Edge::Start, Edge::Neither];

pub(crate) fn hidden(scoring: &mut Scoring<'_>) -> GateEnd {
    let scale = if scoring.small { 1.0 / 64.0 } else { 1.0 };
    let specs = scoring.plan().hidden_cases(scale)?;
    let mut runner = step!(scoring.start(Gate::Hidden));
    let count = specs.len();
    for (number, spec) in specs.iter().enumerate() {
        let case = Arc::new(scoring.oracle.large_case(spec)?);
        let edge = EDGES[number % EDGES.len()];
        let setup = Setup::new(&spec.bound).edge(edge).judged_only();
        let (_, judgement) = step!(scoring.try_case(Gate::Hidden, &mut runner, &case, setup));
        scoring.ratios.push(judgement.ratio);
        scoring.hidden.push(case);
    }
    // On a device a new layout costs more than the case; the neighbours of the workloads stand for its tails there.
    let shapes = if scoring.backend == Backend::Cpu {
        residues(scoring.instance, &mut scoring.plan().decisions("residues"))
    } else {
        Vec::new()
    };
    let specs: Vec<CaseSpec> = shapes
        .iter()
        .enumerate()
        .map(|(number, bound)| {
            scoring
                .plan()
                .case(bound, dev_fills(bound), "residue", number as u64)
        })
        .collect();
    for (number, spec) in specs.iter().enumerate() {
        let case = scoring.oracle.case(spec)?;
        let edge = EDGES[number % EDGES.len()];
        let setup = Setup::new(&spec.bound).edge(edge);
        step!(scoring.try_case(Gate::Hidden, &mut runner, &case, setup));
    }
    let expectations = scoring.oracle.device_trust().evidence();
    Ok(End::Pass(
        json!({ "cases": count, "residues": specs.len(), "expectations": expectations }),
    ))
}

pub(crate) fn probes(scoring: &mut Scoring<'_>) -> GateEnd {
    let mut specs = scoring.plan().probes()?;
    if scoring.small {
        specs.retain(|spec| spec.bound.storage_bytes() <= 1 << 20);
    }
    let mut cases = Vec::with_capacity(specs.len());
    scoring.oracle.cases(&specs, &mut |case| {
        cases.push(case);
        Ok(())
    })?;
    let mut runner = step!(scoring.start(Gate::Probes));
    for case in &cases {
        let setup = Setup::new(&case.spec.bound).judged_only();
        step!(scoring.try_case(Gate::Probes, &mut runner, case, setup));
    }
    let own = step!(pressures(scoring, &mut runner));
    Ok(End::Pass(
        json!({ "cases": cases.len(), "pressures": own.held, "set_aside": own.set_aside }),
    ))
}

pub(crate) fn traces(scoring: &mut Scoring<'_>) -> GateEnd {
    let traces = scoring.instance.task().contract().hidden.traces.clone();
    if traces.is_empty() {
        return Ok(End::Skipped("the task has no recorded tensors"));
    }
    let mut runner = step!(scoring.start(Gate::Traces));
    for (number, trace) in traces.iter().enumerate() {
        let path = scoring.instance.task().dir().join(&trace.file);
        let bound = bind(scoring.instance, "trace", &trace.axes)?;
        let broken = |message: String| JudgeError::Trace {
            path: path.clone(),
            message,
        };
        let bytes = fs::read(&path).map_err(|error| broken(error.to_string()))?;
        let file = SafeTensors::deserialize(&bytes).map_err(|error| broken(error.to_string()))?;
        let mut fills = dev_fills(&bound);
        for (tensor, fill) in bound.inputs().zip(&mut fills) {
            *fill = InputFill::Given(Arc::new(recorded(&file, tensor, &trace.map).map_err(broken)?));
        }
        let spec: CaseSpec = scoring.plan().case(&bound, fills, "trace", number as u64);
        let case = scoring.oracle.case(&spec)?;
        step!(scoring.try_case(Gate::Traces, &mut runner, &case, Setup::new(&bound)));
    }
    Ok(End::Pass(json!({ "cases": traces.len() })))
}

/// One recorded tensor, rounded to the input's dtype.
fn recorded(
    file: &SafeTensors<'_>,
    tensor: &Tensor,
    map: &BTreeMap<String, String>,
) -> Result<Values, String> {
    let name = map.get(&tensor.name).unwrap_or(&tensor.name);
    let view = file
        .tensor(name)
        .map_err(|error| format!("tensor `{name}`: {error}"))?;
    if view.shape() != tensor.shape {
        return Err(format!(
            "tensor `{name}` has sizes {:?}, expected {:?}",
            view.shape(),
            tensor.shape
        ));
    }
    let dtype = match view.dtype() {
        Dtype::F64 => DType::F64,
        Dtype::F32 => DType::F32,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::Bf16,
        Dtype::F8_E4M3 => DType::F8e4m3,
        Dtype::F8_E5M2 => DType::F8e5m2,
        Dtype::I64 => DType::I64,
        Dtype::I32 => DType::I32,
        Dtype::I16 => DType::I16,
        Dtype::I8 => DType::I8,
        Dtype::U8 => DType::U8,
        Dtype::BOOL => DType::Bool,
        other => {
            return Err(format!(
                "tensor `{name}` has elements of type {other:?}, which contracts do not know"
            ));
        }
    };
    let values = number::decode(dtype, view.data());
    let mut bytes = vec![0; values.len() * tensor.dtype.bytes()];
    number::encode(tensor.dtype, &values, &mut bytes);
    Ok(number::decode(tensor.dtype, &bytes))
}

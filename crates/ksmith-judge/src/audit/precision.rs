//! The tolerance must tell the named precision from one level lower.

use ksmith_task::DType;

use super::report::Finding;
use crate::cases::Case;
use crate::gates::judge_outputs;
use crate::judge::{Judge, JudgeError};
use crate::number::{self, Values};

/// One level lower than a float dtype, if there is one.
fn lower(dtype: DType) -> Option<DType> {
    match dtype {
        DType::F64 => Some(DType::F32),
        DType::F32 => Some(DType::Bf16),
        DType::F16 | DType::Bf16 => Some(DType::F8e4m3),
        DType::F8e4m3
        | DType::F8e5m2
        | DType::I64
        | DType::I32
        | DType::I16
        | DType::I8
        | DType::U8
        | DType::Bool => None,
    }
}

/// Runs the reference on inputs rounded one level lower: its results must fail somewhere.
pub(crate) fn separation(cases: &[Case], judge: &mut Judge) -> Result<Vec<Finding>, JudgeError> {
    let mut tried = false;
    for case in cases {
        let bound = &case.spec.bound;
        let mut inputs = case.inputs.clone();
        let mut changed = false;
        for (tensor, values) in bound.inputs().zip(&mut inputs.values) {
            if let (Some(dtype), Values::Real(values)) = (lower(tensor.dtype), values) {
                for value in values.iter_mut() {
                    let rounded = number::round(dtype, *value);
                    if rounded.is_finite() && rounded != *value {
                        *value = rounded;
                        changed = true;
                    }
                }
            }
        }
        if !changed {
            continue;
        }
        tried = true;
        let expected = judge.oracle_expect(bound, &inputs)?;
        let outputs: Vec<Vec<u8>> = bound
            .outputs()
            .zip(&expected)
            .map(|(tensor, expected)| {
                let mut bytes = vec![0; expected.want.len() * tensor.dtype.bytes()];
                number::encode(tensor.dtype, &expected.want, &mut bytes);
                bytes
            })
            .collect();
        if judge_outputs(case, &outputs, judge.checkers())?.failed.is_some() {
            return Ok(Vec::new());
        }
    }
    let text = if tried {
        "the reference on inputs rounded one precision lower still passes: atol, rtol or ctol is too wide to tell them apart"
    } else {
        "no dev input changes when it is rounded one precision lower: the fills cannot tell precisions apart"
    };
    Ok(vec![Finding::warning("precision-not-separated", text.to_owned())])
}

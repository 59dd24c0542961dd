//! Scalar arguments as the bytes of their own type.

use ksmith_task::DType;
use ksmith_task::candidate::DataType;
use ksmith_task::expr::{Env, Expr};

use super::resolve::integer;
use super::{PlanError, fail};

pub(super) fn scalar(place: &str, data: DataType, expr: &Expr, env: &Env) -> Result<Vec<u8>, PlanError> {
    let range = |what: &str, value: i64| PlanError {
        place: place.to_owned(),
        message: format!("`{}` is {value}, which no {what} holds", expr.text()),
    };
    let float = || {
        expr.eval_float(env)
            .or_else(|error| fail(place, format!("`{}`: {error}", expr.text())))
    };
    Ok(match data {
        DataType::I64 => integer(place, expr, env)?.to_le_bytes().to_vec(),
        DataType::U64 => {
            let value = integer(place, expr, env)?;
            u64::try_from(value)
                .map_err(|_| range("u64", value))?
                .to_le_bytes()
                .to_vec()
        }
        DataType::I32 => {
            let value = integer(place, expr, env)?;
            i32::try_from(value)
                .map_err(|_| range("i32", value))?
                .to_le_bytes()
                .to_vec()
        }
        DataType::U32 => {
            let value = integer(place, expr, env)?;
            u32::try_from(value)
                .map_err(|_| range("u32", value))?
                .to_le_bytes()
                .to_vec()
        }
        DataType::F32 => (float()? as f32).to_le_bytes().to_vec(),
        DataType::F64 => float()?.to_le_bytes().to_vec(),
    })
}

/// The bytes of a scalar argument in its own type.
pub(super) fn scalar_bytes(place: &str, dtype: DType, value: f64) -> Result<Vec<u8>, PlanError> {
    Ok(match dtype {
        DType::F64 => value.to_le_bytes().to_vec(),
        DType::F32 => (value as f32).to_le_bytes().to_vec(),
        DType::I64 => (value as i64).to_le_bytes().to_vec(),
        DType::I32 => (value as i32).to_le_bytes().to_vec(),
        DType::I16 => (value as i16).to_le_bytes().to_vec(),
        DType::I8 => (value as i8).to_le_bytes().to_vec(),
        DType::U8 | DType::Bool => vec![value as u8],
        DType::F16 | DType::Bf16 | DType::F8e4m3 | DType::F8e5m2 => {
            return fail(
                place,
                format!("a scalar of type {dtype} cannot be passed to a launch; declare it f32"),
            );
        }
    })
}

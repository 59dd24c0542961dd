//! Tensor maps of a plan, checked against the buffer that they describe.

use ksmith_task::candidate::{FillMode, Swizzle, TensorMap};
use ksmith_task::expr::{Env, Expr};

use super::resolve::{Resolver, positive};
use super::{PlanError, TensorMapParam, fail};

impl Resolver<'_> {
    pub(super) fn map(&self, map: &TensorMap, env: &Env) -> Result<TensorMapParam, PlanError> {
        let place = format!("tensormap `{}`", map.name);
        let Some((buffer, size)) = self.buffer(&map.tensor) else {
            return fail(&place, format!("`{}` is no tensor or workspace", map.tensor));
        };
        let Some(element) = map
            .dtype
            .or_else(|| self.bound.tensors.get(buffer).map(|tensor| tensor.dtype))
        else {
            return fail(&place, "a map over a workspace needs a dtype");
        };
        let rank = map.dims.len();
        if !(1..=5).contains(&rank) || map.box_dims.len() != rank || map.strides.len() + 1 != rank {
            return fail(
                &place,
                format!(
                    "{rank} dims, {} strides, {} box sizes; 1 to 5 dims, one stride less and as many box sizes are needed",
                    map.strides.len(),
                    map.box_dims.len()
                ),
            );
        }
        let list = |exprs: &[Expr], what: &str, most: u64| -> Result<Vec<u64>, PlanError> {
            exprs
                .iter()
                .enumerate()
                .map(|(index, expr)| positive(&format!("{place}, {what}[{index}]"), expr, env, most))
                .collect()
        };
        let dims = list(&map.dims, "dims", 1 << 32)?;
        let strides = list(&map.strides, "strides", 1 << 40)?;
        if let Some(stride) = strides.iter().find(|stride| *stride % 16 != 0) {
            return fail(&place, format!("a stride of {stride} bytes is no multiple of 16"));
        }
        let last: u64 = (1..rank)
            .map(|axis| (dims[axis] - 1) * strides[axis - 1])
            .sum::<u64>()
            + dims[0] * element.bytes() as u64;
        if last > size {
            return fail(
                &place,
                format!("reaches {last} bytes; `{}` has {size}", map.tensor),
            );
        }
        let narrow = |values: Vec<u64>| values.into_iter().map(|value| value as u32).collect::<Vec<u32>>();
        let box_dims = narrow(list(&map.box_dims, "box", 256)?);
        let element_strides = if map.element_strides.is_empty() {
            vec![1; rank]
        } else {
            narrow(list(&map.element_strides, "element_strides", 8)?)
        };
        let swizzle_bytes = match map.swizzle {
            Swizzle::None => 0,
            Swizzle::B32 => 32,
            Swizzle::B64 => 64,
            Swizzle::B128 => 128,
        };
        let inner = u64::from(box_dims[0]) * element.bytes() as u64;
        if swizzle_bytes > 0 && inner > u64::from(swizzle_bytes) {
            return fail(
                &place,
                format!("the inner box has {inner} bytes; swizzle {swizzle_bytes}B takes at most that many"),
            );
        }
        Ok(TensorMapParam {
            buffer,
            element,
            dims,
            strides,
            box_dims,
            element_strides,
            swizzle_bytes,
            nan_fill: matches!(map.fill, FillMode::Nan),
        })
    }
}

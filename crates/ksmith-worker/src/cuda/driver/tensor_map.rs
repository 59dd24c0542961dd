//! Encodes tensor maps.
#![expect(unsafe_code, reason = "the driver API is a C interface")]

use std::ffi::c_void;

use cudarc::driver::sys;

use super::driver;
use crate::cuda::error::CudaError;

/// A tensor map as the driver encodes it: 128 opaque bytes for one address.
pub(crate) fn encode_tensor_map(
    map: &crate::cuda::plan::TensorMapParam,
    address: u64,
) -> Result<Vec<u8>, CudaError> {
    use sys::{
        CUtensorMapFloatOOBfill as Fill, CUtensorMapInterleave as Interleave,
        CUtensorMapL2promotion as Promotion, CUtensorMapSwizzle as Swizzle,
    };
    // SAFETY: a tensor map is plain bytes.
    let mut encoded: sys::CUtensorMap = unsafe { std::mem::zeroed() };
    let swizzle = match map.swizzle_bytes {
        0 => Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
        32 => Swizzle::CU_TENSOR_MAP_SWIZZLE_32B,
        64 => Swizzle::CU_TENSOR_MAP_SWIZZLE_64B,
        _ => Swizzle::CU_TENSOR_MAP_SWIZZLE_128B,
    };
    let fill = if map.nan_fill {
        Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
    } else {
        Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
    };
    driver!(cuTensorMapEncodeTiled(
        &mut encoded,
        tensor_map_type(map.element),
        map.dims.len() as u32,
        address as usize as *mut c_void,
        map.dims.as_ptr(),
        map.strides.as_ptr(),
        map.box_dims.as_ptr(),
        map.element_strides.as_ptr(),
        Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
        swizzle,
        Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        fill
    ))?;
    Ok(encoded
        .opaque
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect())
}

fn tensor_map_type(element: ksmith_task::DType) -> sys::CUtensorMapDataType {
    use ksmith_task::DType as D;
    use sys::CUtensorMapDataType as T;
    match element {
        D::F64 => T::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
        D::F32 => T::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        D::F16 => T::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        D::Bf16 => T::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        D::I64 => T::CU_TENSOR_MAP_DATA_TYPE_INT64,
        D::I32 => T::CU_TENSOR_MAP_DATA_TYPE_INT32,
        D::I16 => T::CU_TENSOR_MAP_DATA_TYPE_UINT16,
        D::F8e4m3 | D::F8e5m2 | D::I8 | D::U8 | D::Bool => T::CU_TENSOR_MAP_DATA_TYPE_UINT8,
    }
}

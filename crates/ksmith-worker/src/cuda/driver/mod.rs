//! Owns the CUDA driver API: every `unsafe` call of the device tier stands in this folder.
//!
//! The driver is loaded at run time; a machine without it gets [`CudaError::Unavailable`]. All objects belong to the
//! context that was current when they were made, and one process makes one context and one thread that uses it.
#![expect(unsafe_code, reason = "the driver API is a C interface")]

mod context;
mod memory;
mod module;
mod stream;
mod tensor_map;

use std::ffi::CStr;
use std::ptr;

use cudarc::driver::sys;
use serde::{Deserialize, Serialize};

use super::error::CudaError;

pub(crate) use context::Context;
pub(crate) use memory::{Mapping, Physical};
pub(crate) use module::{Function, Module};
pub(crate) use stream::{Event, Stream};
pub(crate) use tensor_map::encode_tensor_map;

/// Calls the driver and names the call when it fails.
macro_rules! driver {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: pointers passed here point to live locals or owned objects; handles come from the driver itself.
        let result = unsafe { sys::$function($($argument),*) };
        $crate::cuda::driver::check(stringify!($function), result)
    }};
}

fn check(call: &'static str, result: sys::CUresult) -> Result<(), CudaError> {
    if result == sys::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let mut text = ptr::null();
    // SAFETY: on success the driver sets `text` to a static string.
    let known =
        unsafe { sys::cuGetErrorName(result, &mut text) } == sys::CUresult::CUDA_SUCCESS && !text.is_null();
    let name = if known {
        // SAFETY: a static, NUL-terminated string of the driver.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    } else {
        "CUDA_ERROR_UNKNOWN".to_owned()
    };
    Err(CudaError::Driver {
        call,
        code: result as i32,
        name,
    })
}
use driver;

/// Whether a driver library and at least one device are there; the reason if not.
pub fn available() -> Result<(), CudaError> {
    // SAFETY: only tries to load the library.
    if !unsafe { sys::is_culib_present() } {
        return Err(CudaError::Unavailable(
            "the driver library (libcuda) is not installed".to_owned(),
        ));
    }
    driver!(cuInit(0)).map_err(|error| CudaError::Unavailable(error.to_string()))?;
    let mut count = 0;
    driver!(cuDeviceGetCount(&mut count))?;
    if count == 0 {
        return Err(CudaError::Unavailable("the driver finds no device".to_owned()));
    }
    Ok(())
}

/// Facts of one device, as expressions of a launch plan and records of a run need them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// Name.
    pub name: String,
    /// UUID, 32 hex digits.
    pub uuid: String,
    /// Driver version as the driver states it (13000 is 13.0).
    pub driver: i32,
    /// Compute capability, major and minor.
    pub capability: (i32, i32),
    /// Number of multiprocessors.
    pub sm_count: i32,
    /// L2 size in bytes.
    pub l2_bytes: i32,
    /// Total memory in bytes.
    pub memory_bytes: usize,
    /// Most shared memory of one block, opt-in, in bytes.
    pub shared_per_block: i32,
    /// Shared memory of one multiprocessor in bytes.
    pub shared_per_sm: i32,
    /// Threads of one multiprocessor.
    pub threads_per_sm: i32,
    /// Registers of one multiprocessor.
    pub registers_per_sm: i32,
    /// Whether device code reaches pageable host memory (heterogeneous memory management): tier `device-hmm`.
    pub pageable_access: bool,
}

/// Facts of one loaded kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelFacts {
    /// Lowered name.
    pub name: String,
    /// Size of each parameter in bytes, in order.
    pub params: Vec<usize>,
    /// Most threads of a block.
    pub max_threads: i32,
    /// Static shared memory in bytes.
    pub static_shared: i32,
    /// Local memory per thread in bytes.
    pub local_bytes: i32,
    /// Registers per thread.
    pub registers: i32,
}

//! One small kernel through the driver alone: the target that `doctor` lets the profiler watch.
//!
//! Needs no toolkit: the driver compiles the PTX. The kernel spins for about half a million cycles, long enough for PM
//! sampling (one sample takes some two microseconds).
#![expect(
    unsafe_code,
    reason = "functions of the CUDA driver, which is loaded at run time"
)]

use std::ffi::{c_char, c_int, c_uint, c_void};

use libloading::Library;

/// Why the kernel did not run.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The driver's library is not there.
    #[error("libcuda could not be loaded: {0}")]
    Load(String),
    /// It lacks a function.
    #[error("libcuda has no `{0}`")]
    Symbol(&'static str),
    /// A call failed.
    #[error("`{call}` failed with CUDA status {status}")]
    Call {
        /// The function.
        call: &'static str,
        /// Its status.
        status: c_int,
    },
}

/// PTX for every architecture that CUDA 13 runs on (7.5 and later).
const PTX: &str = "\
.version 6.3
.target sm_75
.address_size 64
.visible .entry ksmith_probe()
{
    .reg .pred p;
    .reg .u64 start, now, gone;
    mov.u64 start, %clock64;
again:
    mov.u64 now, %clock64;
    sub.u64 gone, now, start;
    setp.lt.u64 p, gone, 500000;
    @p bra again;
    ret;
}
\0";

type Handle = *mut c_void;

/// Launches the kernel once on device 0 and waits for it.
///
/// # Errors
/// If there is no driver or device, or a call fails.
pub fn launch_probe_kernel() -> Result<(), KernelError> {
    // SAFETY: loading runs the initialisers of the installed driver's own library.
    let library =
        unsafe { Library::new("libcuda.so.1") }.map_err(|error| KernelError::Load(error.to_string()))?;
    let mut device: c_int = 0;
    let mut context: Handle = std::ptr::null_mut();
    let mut module: Handle = std::ptr::null_mut();
    let mut function: Handle = std::ptr::null_mut();
    let null: Handle = std::ptr::null_mut();
    // SAFETY (all calls below): names and signatures are those of cuda.h (driver API, 64-bit); every pointer refers to
    // a live variable of this function, PTX ends with a zero byte, and the kernel takes no parameters.
    unsafe {
        let init: unsafe extern "C" fn(c_uint) -> c_int = symbol(&library, "cuInit")?;
        check("cuInit", init(0))?;
        let get: unsafe extern "C" fn(*mut c_int, c_int) -> c_int = symbol(&library, "cuDeviceGet")?;
        check("cuDeviceGet", get(&raw mut device, 0))?;
        let retain: unsafe extern "C" fn(*mut Handle, c_int) -> c_int =
            symbol(&library, "cuDevicePrimaryCtxRetain")?;
        check("cuDevicePrimaryCtxRetain", retain(&raw mut context, device))?;
        let current: unsafe extern "C" fn(Handle) -> c_int = symbol(&library, "cuCtxSetCurrent")?;
        check("cuCtxSetCurrent", current(context))?;
        let load: unsafe extern "C" fn(*mut Handle, *const c_void) -> c_int =
            symbol(&library, "cuModuleLoadData")?;
        check("cuModuleLoadData", load(&raw mut module, PTX.as_ptr().cast()))?;
        let entry: unsafe extern "C" fn(*mut Handle, Handle, *const c_char) -> c_int =
            symbol(&library, "cuModuleGetFunction")?;
        check(
            "cuModuleGetFunction",
            entry(&raw mut function, module, c"ksmith_probe".as_ptr()),
        )?;
        let launch: unsafe extern "C" fn(
            Handle,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            Handle,
            *mut Handle,
            *mut Handle,
        ) -> c_int = symbol(&library, "cuLaunchKernel")?;
        let none: *mut Handle = std::ptr::null_mut();
        check(
            "cuLaunchKernel",
            launch(function, 1, 1, 1, 32, 1, 1, 0, null, none, none),
        )?;
        let wait: unsafe extern "C" fn() -> c_int = symbol(&library, "cuCtxSynchronize")?;
        check("cuCtxSynchronize", wait())
    }
}

/// A function of the library.
///
/// # Safety
/// `T` is the type that cuda.h declares for the name, and the pointer is not used after `library` is dropped.
unsafe fn symbol<T: Copy>(library: &Library, name: &'static str) -> Result<T, KernelError> {
    // SAFETY: the caller's promise.
    unsafe { library.get::<T>(name.as_bytes()) }
        .map(|symbol| *symbol)
        .map_err(|_| KernelError::Symbol(name))
}

fn check(call: &'static str, status: c_int) -> Result<(), KernelError> {
    if status == 0 {
        Ok(())
    } else {
        Err(KernelError::Call { call, status })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ptx_text_ends_with_the_zero_byte_that_the_driver_needs() {
        assert!(PTX.ends_with("}\n\0"));
        assert_eq!(PTX.bytes().filter(|byte| *byte == 0).count(), 1);
    }

    #[test]
    fn without_a_driver_the_error_names_the_library() {
        if let Err(error) = launch_probe_kernel() {
            assert!(error.to_string().contains("cu"), "{error}");
        }
    }
}

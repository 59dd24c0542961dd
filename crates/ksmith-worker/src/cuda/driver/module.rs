//! Loaded modules and their kernels.
#![expect(unsafe_code, reason = "the driver API is a C interface")]

use std::ffi::CString;
use std::ptr;

use cudarc::driver::sys;

use super::{KernelFacts, driver};
use crate::cuda::error::CudaError;

/// A loaded module; it lives as long as the context.
pub(crate) struct Module {
    raw: sys::CUmodule,
}

impl Module {
    pub(super) fn of(raw: sys::CUmodule) -> Self {
        Self { raw }
    }

    /// The kernel of this lowered name.
    pub(crate) fn function(&self, name: &str) -> Result<Function, CudaError> {
        let c_name = CString::new(name).map_err(|_| CudaError::Driver {
            call: "cuModuleGetFunction",
            code: 500,
            name: "CUDA_ERROR_NOT_FOUND".to_owned(),
        })?;
        let mut raw = ptr::null_mut();
        driver!(cuModuleGetFunction(&mut raw, self.raw, c_name.as_ptr()))?;
        Ok(Function {
            raw,
            name: name.to_owned(),
        })
    }
}

/// A kernel of a loaded module.
pub(crate) struct Function {
    pub(super) raw: sys::CUfunction,
    name: String,
}

impl Function {
    fn attribute(&self, attribute: sys::CUfunction_attribute) -> Result<i32, CudaError> {
        let mut value = 0;
        driver!(cuFuncGetAttribute(&mut value, attribute, self.raw))?;
        Ok(value)
    }

    /// Reads the kernel's facts.
    pub(crate) fn facts(&self) -> Result<KernelFacts, CudaError> {
        use sys::CUfunction_attribute as A;
        let mut params = Vec::new();
        loop {
            let (mut offset, mut size) = (0, 0);
            // The driver answers CUDA_ERROR_INVALID_VALUE behind the last parameter.
            match driver!(cuFuncGetParamInfo(self.raw, params.len(), &mut offset, &mut size)) {
                Ok(()) => params.push(size),
                Err(CudaError::Driver { code, .. })
                    if code == sys::CUresult::CUDA_ERROR_INVALID_VALUE as i32 =>
                {
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(KernelFacts {
            name: self.name.clone(),
            params,
            max_threads: self.attribute(A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            static_shared: self.attribute(A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            local_bytes: self.attribute(A::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            registers: self.attribute(A::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
        })
    }

    /// Allows this much dynamic shared memory, and clusters beyond 8 blocks.
    pub(crate) fn allow(&self, shared: u32, cluster: bool) -> Result<(), CudaError> {
        use sys::CUfunction_attribute as A;
        if shared > 48 * 1024 {
            driver!(cuFuncSetAttribute(
                self.raw,
                A::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                shared as i32
            ))?;
        }
        if cluster {
            driver!(cuFuncSetAttribute(
                self.raw,
                A::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                1
            ))?;
        }
        Ok(())
    }
}

// SAFETY: a handle is a number to this side; the driver takes it from any thread and guards itself. A thread in which the
// context is not current gets an error, nothing worse.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

// SAFETY: a handle is a number to this side; the driver takes it from any thread and guards itself. A thread in which the
// context is not current gets an error, nothing worse.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

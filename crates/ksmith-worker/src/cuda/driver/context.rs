//! The context: device facts, limits, streams, events, modules.
#![expect(unsafe_code, reason = "the driver API is a C interface")]

use std::ffi::CStr;
use std::ptr;

use cudarc::driver::sys;

use super::{DeviceFacts, Event, Module, Stream, available, driver};
use crate::cuda::error::CudaError;

/// A context on one device, current in the thread that made it.
pub(crate) struct Context {
    raw: sys::CUcontext,
    pub(super) device: sys::CUdevice,
}

impl Context {
    /// Makes a context on device `ordinal`.
    pub(crate) fn new(ordinal: i32) -> Result<Self, CudaError> {
        available()?;
        let mut device = 0;
        driver!(cuDeviceGet(&mut device, ordinal))?;
        let mut raw = ptr::null_mut();
        driver!(cuCtxCreate_v4(&mut raw, ptr::null_mut(), 0, device))?;
        Ok(Self { raw, device })
    }

    fn attribute(&self, attribute: sys::CUdevice_attribute) -> Result<i32, CudaError> {
        let mut value = 0;
        driver!(cuDeviceGetAttribute(&mut value, attribute, self.device))?;
        Ok(value)
    }

    /// Reads the device's facts.
    pub(crate) fn facts(&self) -> Result<DeviceFacts, CudaError> {
        use sys::CUdevice_attribute as A;
        let mut name = [0u8; 256];
        driver!(cuDeviceGetName(name.as_mut_ptr().cast(), 255, self.device))?;
        let mut uuid = sys::CUuuid { bytes: [0; 16] };
        driver!(cuDeviceGetUuid_v2(&mut uuid, self.device))?;
        let mut driver_version = 0;
        driver!(cuDriverGetVersion(&mut driver_version))?;
        let mut memory_bytes = 0;
        driver!(cuDeviceTotalMem_v2(&mut memory_bytes, self.device))?;
        Ok(DeviceFacts {
            name: CStr::from_bytes_until_nul(&name)
                .map_or_else(|_| String::new(), |n| n.to_string_lossy().into_owned()),
            uuid: uuid
                .bytes
                .iter()
                .map(|byte| format!("{:02x}", *byte as u8))
                .collect(),
            driver: driver_version,
            capability: (
                self.attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                self.attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ),
            sm_count: self.attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            l2_bytes: self.attribute(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
            memory_bytes,
            shared_per_block: self.attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            shared_per_sm: self.attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
            threads_per_sm: self.attribute(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
            registers_per_sm: self.attribute(A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
            pageable_access: self.attribute(A::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS)? != 0,
        })
    }

    /// Waits for all work of the context.
    pub(crate) fn synchronize(&self) -> Result<(), CudaError> {
        driver!(cuCtxSynchronize())
    }

    /// Takes persisting lines out of the L2 and forbids new ones.
    pub(crate) fn forbid_persisting(&self) -> Result<(), CudaError> {
        driver!(cuCtxSetLimit(sys::CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0))?;
        self.reset_persisting()
    }

    /// Makes persisting lines of the L2 ordinary ones.
    pub(crate) fn reset_persisting(&self) -> Result<(), CudaError> {
        driver!(cuCtxResetPersistingL2Cache())
    }

    /// Makes a stream that does not synchronise with the default one.
    pub(crate) fn stream(&self) -> Result<Stream, CudaError> {
        let mut raw = ptr::null_mut();
        driver!(cuStreamCreate(
            &mut raw,
            sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32
        ))?;
        Ok(Stream::of(raw))
    }

    /// Makes an event that records time.
    pub(crate) fn event(&self) -> Result<Event, CudaError> {
        let mut raw = ptr::null_mut();
        driver!(cuEventCreate(&mut raw, 0))?;
        Ok(Event::of(raw))
    }

    /// Loads a module from a cubin or from PTX text.
    pub(crate) fn load(&self, image: &[u8]) -> Result<Module, CudaError> {
        let mut owned = image.to_vec();
        owned.push(0);
        let mut raw = ptr::null_mut();
        driver!(cuModuleLoadData(&mut raw, owned.as_ptr().cast()))?;
        Ok(Module::of(raw))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // The process is about to end or the device has failed: nothing could be done about an error here.
        let _ = driver!(cuCtxDestroy_v2(self.raw));
    }
}

// SAFETY: a handle is a number to this side; the driver takes it from any thread and guards itself. A thread in which the
// context is not current gets an error, nothing worse.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

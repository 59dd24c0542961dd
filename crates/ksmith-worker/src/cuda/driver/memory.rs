//! Physical memory that can be shared, its mappings with unmapped neighbours, and copies.
#![expect(unsafe_code, reason = "the driver API is a C interface")]

use std::ffi::c_void;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use cudarc::driver::sys;

use super::{Context, driver};
use crate::cuda::error::CudaError;

impl Context {
    fn properties(&self) -> sys::CUmemAllocationProp {
        sys::CUmemAllocationProp {
            type_: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            requestedHandleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
            location: self.location(),
            win32HandleMetaData: ptr::null_mut(),
            // SAFETY: an all-zero flag block is the documented default.
            allocFlags: unsafe { std::mem::zeroed() },
        }
    }

    fn location(&self) -> sys::CUmemLocation {
        sys::CUmemLocation {
            type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            id: self.device,
        }
    }

    /// Smallest unit of physical memory in bytes (2 MiB on the devices seen).
    pub(crate) fn granularity(&self) -> Result<usize, CudaError> {
        let mut bytes = 0;
        driver!(cuMemGetAllocationGranularity(
            &mut bytes,
            &self.properties(),
            sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM
        ))?;
        Ok(bytes)
    }

    /// Allocates physical memory that can be exported; `bytes` is a multiple of the granularity.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<Physical, CudaError> {
        let mut handle = 0;
        driver!(cuMemCreate(&mut handle, bytes, &self.properties(), 0))?;
        Ok(Physical { handle, bytes })
    }

    /// Imports physical memory that another process exported.
    pub(crate) fn import(&self, fd: &OwnedFd, bytes: usize) -> Result<Physical, CudaError> {
        let mut handle = 0;
        driver!(cuMemImportFromShareableHandle(
            &mut handle,
            fd.as_raw_fd() as usize as *mut c_void,
            sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
        ))?;
        Ok(Physical { handle, bytes })
    }

    /// Maps physical memory with an unmapped granule on each side.
    pub(crate) fn map(&self, physical: &Physical, writable: bool) -> Result<Mapping, CudaError> {
        let guard = self.granularity()?;
        let reserved = physical.bytes + 2 * guard;
        let mut base = 0;
        driver!(cuMemAddressReserve(&mut base, reserved, 0, 0, 0))?;
        let address = base + guard as u64;
        let mapping = Mapping {
            base,
            reserved,
            address,
            bytes: physical.bytes,
        };
        driver!(cuMemMap(address, physical.bytes, 0, physical.handle, 0))?;
        let flags = if writable {
            sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        } else {
            sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ
        };
        let access = sys::CUmemAccessDesc {
            location: self.location(),
            flags,
        };
        driver!(cuMemSetAccess(address, physical.bytes, &access, 1))?;
        Ok(mapping)
    }

    /// Copies host bytes to a device address.
    pub(crate) fn upload(&self, address: u64, bytes: &[u8]) -> Result<(), CudaError> {
        if bytes.is_empty() {
            return Ok(());
        }
        driver!(cuMemcpyHtoD_v2(address, bytes.as_ptr().cast(), bytes.len()))
    }

    /// Copies float64 values to a device address.
    pub(crate) fn upload_reals(&self, address: u64, values: &[f64]) -> Result<(), CudaError> {
        if values.is_empty() {
            return Ok(());
        }
        driver!(cuMemcpyHtoD_v2(
            address,
            values.as_ptr().cast(),
            size_of_val(values)
        ))
    }

    /// Copies 64-bit integers to a device address.
    pub(crate) fn upload_wholes(&self, address: u64, values: &[i64]) -> Result<(), CudaError> {
        if values.is_empty() {
            return Ok(());
        }
        driver!(cuMemcpyHtoD_v2(
            address,
            values.as_ptr().cast(),
            size_of_val(values)
        ))
    }

    /// Copies device bytes to the host.
    pub(crate) fn download(&self, address: u64, bytes: &mut [u8]) -> Result<(), CudaError> {
        if bytes.is_empty() {
            return Ok(());
        }
        driver!(cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), address, bytes.len()))
    }

    /// Copies between device addresses and waits.
    pub(crate) fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<(), CudaError> {
        driver!(cuMemcpyDtoD_v2(to, from, bytes))?;
        self.synchronize()
    }

    /// Fills device memory with one byte.
    pub(crate) fn fill(&self, address: u64, value: u8, bytes: usize) -> Result<(), CudaError> {
        driver!(cuMemsetD8_v2(address, value, bytes))
    }
}

/// Physical device memory.
pub(crate) struct Physical {
    handle: sys::CUmemGenericAllocationHandle,
    pub(crate) bytes: usize,
}

impl Physical {
    /// Makes a descriptor that another process can import.
    pub(crate) fn export(&self) -> Result<OwnedFd, CudaError> {
        let mut fd: i32 = -1;
        driver!(cuMemExportToShareableHandle(
            (&raw mut fd).cast(),
            self.handle,
            sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
            0
        ))?;
        // SAFETY: the driver made this descriptor for us.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

impl Drop for Physical {
    fn drop(&mut self) {
        let _ = driver!(cuMemRelease(self.handle));
    }
}

/// A mapped range with unmapped neighbours.
pub(crate) struct Mapping {
    base: u64,
    reserved: usize,
    pub(crate) address: u64,
    pub(crate) bytes: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let _ = driver!(cuMemUnmap(self.address, self.bytes));
        let _ = driver!(cuMemAddressFree(self.base, self.reserved));
    }
}

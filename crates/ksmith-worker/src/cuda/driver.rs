//! Owns the CUDA driver API: every `unsafe` call of the device tier stands in this file.
//!
//! The driver is loaded at run time; a machine without it gets [`CudaError::Unavailable`]. All objects belong to the
//! context that was current when they were made, and one process makes one context and one thread that uses it.
#![expect(unsafe_code, reason = "the driver API is a C interface")]

use std::ffi::{CStr, CString, c_void};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use cudarc::driver::sys;
use serde::{Deserialize, Serialize};

use super::error::CudaError;
use super::plan::Launch;

/// Calls the driver and names the call when it fails.
macro_rules! driver {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: pointers passed here point to live locals or owned objects; handles come from the driver itself.
        let result = unsafe { sys::$function($($argument),*) };
        check(stringify!($function), result)
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

/// A context on one device, current in the thread that made it.
pub(crate) struct Context {
    raw: sys::CUcontext,
    device: sys::CUdevice,
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
        driver!(cuCtxResetPersistingL2Cache())
    }

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

    /// Makes a stream that does not synchronise with the default one.
    pub(crate) fn stream(&self) -> Result<Stream, CudaError> {
        let mut raw = ptr::null_mut();
        driver!(cuStreamCreate(
            &mut raw,
            sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32
        ))?;
        Ok(Stream { raw })
    }

    /// Makes an event that records time.
    pub(crate) fn event(&self) -> Result<Event, CudaError> {
        let mut raw = ptr::null_mut();
        driver!(cuEventCreate(&mut raw, 0))?;
        Ok(Event { raw })
    }

    /// Loads a module from a cubin or from PTX text.
    pub(crate) fn load(&self, image: &[u8]) -> Result<Module, CudaError> {
        let mut owned = image.to_vec();
        owned.push(0);
        let mut raw = ptr::null_mut();
        driver!(cuModuleLoadData(&mut raw, owned.as_ptr().cast()))?;
        Ok(Module { raw })
    }

    /// Copies host bytes to a device address.
    pub(crate) fn upload(&self, address: u64, bytes: &[u8]) -> Result<(), CudaError> {
        if bytes.is_empty() {
            return Ok(());
        }
        driver!(cuMemcpyHtoD_v2(address, bytes.as_ptr().cast(), bytes.len()))
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

impl Drop for Context {
    fn drop(&mut self) {
        // The process is about to end or the device has failed: nothing could be done about an error here.
        let _ = driver!(cuCtxDestroy_v2(self.raw));
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
    bytes: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let _ = driver!(cuMemUnmap(self.address, self.bytes));
        let _ = driver!(cuMemAddressFree(self.base, self.reserved));
    }
}

/// A stream.
pub(crate) struct Stream {
    raw: sys::CUstream,
}

impl Stream {
    /// Waits for all work of the stream.
    pub(crate) fn synchronize(&self) -> Result<(), CudaError> {
        driver!(cuStreamSynchronize(self.raw))
    }

    /// Queues a fill.
    pub(crate) fn fill(&self, address: u64, value: u8, bytes: usize) -> Result<(), CudaError> {
        driver!(cuMemsetD8Async(address, value, bytes, self.raw))
    }

    /// Queues a copy between device addresses.
    pub(crate) fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<(), CudaError> {
        driver!(cuMemcpyDtoDAsync_v2(to, from, bytes, self.raw))
    }

    /// Queues an event.
    pub(crate) fn record(&self, event: &Event) -> Result<(), CudaError> {
        driver!(cuEventRecord(event.raw, self.raw))
    }

    /// Captures what `work` queues into a graph.
    pub(crate) fn capture(
        &self,
        work: impl FnOnce(&Self) -> Result<(), CudaError>,
    ) -> Result<Graph, CudaError> {
        driver!(cuStreamBeginCapture_v2(
            self.raw,
            sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        ))?;
        let outcome = work(self);
        let mut graph = ptr::null_mut();
        let ended = driver!(cuStreamEndCapture(self.raw, &mut graph));
        outcome?;
        ended?;
        let mut exec = ptr::null_mut();
        let made = driver!(cuGraphInstantiateWithFlags(&mut exec, graph, 0));
        driver!(cuGraphDestroy(graph))?;
        made?;
        Ok(Graph { exec })
    }

    /// Queues a graph.
    pub(crate) fn replay(&self, graph: &Graph) -> Result<(), CudaError> {
        driver!(cuGraphLaunch(graph.exec, self.raw))
    }

    /// Queues one launch. `params` holds one slice per parameter, each of the size that the kernel declares.
    pub(crate) fn launch(
        &self,
        function: &Function,
        launch: &Launch,
        params: &[Vec<u8>],
    ) -> Result<(), CudaError> {
        // Tensor maps must lie on 64 bytes: every parameter gets a block of its own with that alignment.
        let blocks: Vec<Vec<Aligned>> = params.iter().map(|bytes| Aligned::copy(bytes)).collect();
        let mut pointers: Vec<*mut c_void> = blocks
            .iter()
            .map(|block| block.as_ptr().cast_mut().cast())
            .collect();
        // SAFETY: an all-zero attribute is valid; the union's pad is plain bytes.
        let mut attributes: Vec<sys::CUlaunchAttribute> = Vec::new();
        let mut attribute = |id, set: &dyn Fn(&mut sys::CUlaunchAttributeValue)| {
            // SAFETY: all-zero bytes are a valid value of every member.
            let mut entry: sys::CUlaunchAttribute = unsafe { std::mem::zeroed() };
            entry.id = id;
            set(&mut entry.value);
            attributes.push(entry);
        };
        use sys::CUlaunchAttributeID as Id;
        if launch.cooperative {
            attribute(Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &|value| {
                value.cooperative = 1
            });
        }
        if let Some([x, y, z]) = launch.cluster {
            attribute(Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &|value| {
                value.clusterDim.x = x;
                value.clusterDim.y = y;
                value.clusterDim.z = z;
            });
        }
        if launch.pdl {
            attribute(
                Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                &|value| {
                    value.programmaticStreamSerializationAllowed = 1;
                },
            );
        }
        let config = sys::CUlaunchConfig {
            gridDimX: launch.grid[0],
            gridDimY: launch.grid[1],
            gridDimZ: launch.grid[2],
            blockDimX: launch.block[0],
            blockDimY: launch.block[1],
            blockDimZ: launch.block[2],
            sharedMemBytes: launch.shared,
            hStream: self.raw,
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
        };
        driver!(cuLaunchKernelEx(
            &config,
            function.raw,
            pointers.as_mut_ptr(),
            ptr::null_mut()
        ))
    }
}

/// 64 bytes on a 64-byte boundary.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Aligned([u8; 64]);

impl Aligned {
    fn copy(bytes: &[u8]) -> Vec<Self> {
        let mut blocks = vec![Self([0; 64]); bytes.len().div_ceil(64).max(1)];
        for (block, chunk) in blocks.iter_mut().zip(bytes.chunks(64)) {
            block.0[..chunk.len()].copy_from_slice(chunk);
        }
        blocks
    }
}

/// An event that records time.
pub(crate) struct Event {
    raw: sys::CUevent,
}

impl Event {
    /// Milliseconds from `earlier` to this event; both have happened.
    pub(crate) fn since(&self, earlier: &Self) -> Result<f32, CudaError> {
        let mut milliseconds = 0.0;
        driver!(cuEventElapsedTime_v2(&mut milliseconds, earlier.raw, self.raw))?;
        Ok(milliseconds)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let _ = driver!(cuEventDestroy_v2(self.raw));
    }
}

/// An instantiated graph.
pub(crate) struct Graph {
    exec: sys::CUgraphExec,
}

impl Drop for Graph {
    fn drop(&mut self) {
        let _ = driver!(cuGraphExecDestroy(self.exec));
    }
}

/// A loaded module; it lives as long as the context.
pub(crate) struct Module {
    raw: sys::CUmodule,
}

impl Module {
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
    raw: sys::CUfunction,
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

/// A tensor map as the driver encodes it: 128 opaque bytes for one address.
pub(crate) fn encode_tensor_map(
    map: &super::plan::TensorMapParam,
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

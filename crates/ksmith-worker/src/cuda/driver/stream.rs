//! Streams, events, graphs, launches.
#![expect(unsafe_code, reason = "the driver API is a C interface")]

use std::ffi::c_void;
use std::ptr;

use cudarc::driver::sys;

use super::{Function, driver};
use crate::cuda::error::CudaError;
use crate::cuda::plan::Launch;

/// A stream.
pub(crate) struct Stream {
    raw: sys::CUstream,
}

impl Stream {
    pub(super) fn of(raw: sys::CUstream) -> Self {
        Self { raw }
    }

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
    pub(super) fn of(raw: sys::CUevent) -> Self {
        Self { raw }
    }

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

// SAFETY: a handle is a number to this side; the driver takes it from any thread and guards itself. A thread in which the
// context is not current gets an error, nothing worse.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

// SAFETY: a handle is a number to this side; the driver takes it from any thread and guards itself. A thread in which the
// context is not current gets an error, nothing worse.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

// SAFETY: a handle is a number to this side; the driver takes it from any thread and guards itself. A thread in which the
// context is not current gets an error, nothing worse.
unsafe impl Send for Graph {}
// SAFETY: as above.
unsafe impl Sync for Graph {}

//! The judge's half of the memory: one context that owns every physical buffer and compares there.

use std::os::fd::OwnedFd;
use std::time::Instant;

use super::driver::{Context, DeviceFacts, Mapping, Physical};
use super::error::CudaError;
use super::message::BufferSpec;

/// What a worker may do with a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferAccess {
    /// Mapped read-only in the worker: a write there is an illegal address.
    Input,
    /// Mapped read-write.
    Output,
}

/// Which end of a buffer touches unmapped memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferEdge {
    /// The first byte.
    Start,
    /// The last byte, as near as the alignment allows.
    End,
    /// Neither.
    Neither,
}

/// What lies beside a buffer's memory in the worker's address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// Nothing: an access is an illegal address.
    Unmapped,
    /// Memory that belongs to the buffer's own.
    Mapped,
}

/// A buffer of the judge, shared with at most one worker at a time.
pub struct Buffer {
    mapping: Mapping,
    physical: Physical,
    offset: usize,
    bytes: usize,
    access: BufferAccess,
}

impl Buffer {
    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn address(&self) -> u64 {
        self.mapping.address + self.offset as u64
    }

    /// Start and length of the memory before and behind the buffer that is mapped with it.
    pub(crate) fn slack(&self) -> [(u64, usize); 2] {
        let end = self.offset + self.bytes;
        [
            (self.mapping.address, self.offset),
            (self.mapping.address + end as u64, self.physical.bytes - end),
        ]
    }

    pub(crate) fn spec(&self) -> BufferSpec {
        BufferSpec {
            physical: self.physical.bytes,
            offset: self.offset,
            writable: self.access == BufferAccess::Output,
        }
    }

    pub(crate) fn export(&self) -> Result<OwnedFd, CudaError> {
        self.physical.export()
    }
}

/// The judge's context on one device.
pub struct Owner {
    flush: Buffer,
    context: Context,
    facts: DeviceFacts,
    granularity: usize,
}

impl Owner {
    /// Opens device `ordinal` and allocates the buffer that flushes its L2.
    pub fn open(ordinal: i32) -> Result<Self, CudaError> {
        let context = Context::new(ordinal)?;
        context.forbid_persisting()?;
        let facts = context.facts()?;
        let granularity = context.granularity()?;
        // Twice the L2, so that no line of an earlier call survives.
        let whole = (2 * usize::try_from(facts.l2_bytes).unwrap_or(64 << 20)).next_multiple_of(granularity);
        let physical = context.allocate(whole)?;
        let flush = Buffer {
            mapping: context.map(&physical, true)?,
            physical,
            offset: 0,
            bytes: whole,
            access: BufferAccess::Output,
        };
        Ok(Self {
            flush,
            context,
            facts,
            granularity,
        })
    }

    /// The device's facts.
    pub fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    /// Allocates a buffer whose last byte touches the unmapped range behind it, as near as `align` allows.
    pub fn buffer(&self, bytes: usize, align: usize, access: BufferAccess) -> Result<Buffer, CudaError> {
        self.buffer_at(bytes, align, access, BufferEdge::End)
    }

    /// Allocates a buffer that touches the unmapped range at one end.
    pub fn buffer_at(
        &self,
        bytes: usize,
        align: usize,
        access: BufferAccess,
        edge: BufferEdge,
    ) -> Result<Buffer, CudaError> {
        self.buffer_between(bytes, align, access, edge, [Beside::Unmapped; 2])
    }

    /// The same with a choice of what lies before and behind: mapped memory instead of a guard lets a stray access
    /// go on, so that its place can be found.
    pub fn buffer_between(
        &self,
        bytes: usize,
        align: usize,
        access: BufferAccess,
        edge: BufferEdge,
        beside: [Beside; 2],
    ) -> Result<Buffer, CudaError> {
        // At neither edge: a step of the alignment before, and at least one behind.
        let apart = if edge == BufferEdge::Neither {
            2 * align.max(1)
        } else {
            0
        };
        let whole = (bytes.max(1) + apart).next_multiple_of(self.granularity);
        let [before, behind] = beside.map(|beside| match beside {
            Beside::Unmapped => 0,
            Beside::Mapped => self.granularity,
        });
        let physical = self.context.allocate(before + whole + behind)?;
        let mapping = self.context.map(&physical, true)?;
        let inside = match edge {
            BufferEdge::Start => 0,
            BufferEdge::End => (whole - bytes) / align.max(1) * align.max(1),
            BufferEdge::Neither => align.max(1),
        };
        Ok(Buffer {
            mapping,
            physical,
            offset: before + inside,
            bytes,
            access,
        })
    }

    pub(crate) fn flush_buffer(&self) -> &Buffer {
        &self.flush
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Writes a buffer's bytes.
    pub fn write(&self, buffer: &Buffer, bytes: &[u8]) -> Result<(), CudaError> {
        self.context
            .upload(buffer.address(), &bytes[..bytes.len().min(buffer.bytes)])
    }

    /// Writes float64 values, as many as fit.
    pub fn write_reals(&self, buffer: &Buffer, values: &[f64]) -> Result<(), CudaError> {
        self.context
            .upload_reals(buffer.address(), &values[..values.len().min(buffer.bytes / 8)])
    }

    /// Writes 64-bit integers, as many as fit.
    pub fn write_wholes(&self, buffer: &Buffer, values: &[i64]) -> Result<(), CudaError> {
        self.context
            .upload_wholes(buffer.address(), &values[..values.len().min(buffer.bytes / 8)])
    }

    /// Copies one buffer to another of at least its size, on the device.
    pub fn copy(&self, to: &Buffer, from: &Buffer) -> Result<(), CudaError> {
        self.context
            .copy(to.address(), from.address(), from.bytes.min(to.bytes))
    }

    /// Reads a buffer's bytes.
    pub fn read(&self, buffer: &Buffer, into: &mut [u8]) -> Result<(), CudaError> {
        let length = into.len().min(buffer.bytes);
        self.context.download(buffer.address(), &mut into[..length])
    }

    /// Reads as many bytes as `into` holds, from byte `from` of a buffer on; fewer at its end.
    pub fn read_part(&self, buffer: &Buffer, from: usize, into: &mut [u8]) -> Result<(), CudaError> {
        let length = into.len().min(buffer.bytes.saturating_sub(from));
        self.context
            .download(buffer.address() + from as u64, &mut into[..length])
    }

    /// Fills the whole of a buffer's memory, slack included, with one byte.
    pub fn poison(&self, buffer: &Buffer, value: u8) -> Result<(), CudaError> {
        self.context
            .fill(buffer.mapping.address, value, buffer.physical.bytes)
    }

    /// Waits for the judge's own work, then says what time it is.
    pub(crate) fn settled(&self) -> Result<Instant, CudaError> {
        self.context.synchronize()?;
        Ok(Instant::now())
    }
}

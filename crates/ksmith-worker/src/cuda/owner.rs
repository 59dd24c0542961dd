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

    fn address(&self) -> u64 {
        self.mapping.address + self.offset as u64
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
    flush: Option<Buffer>,
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
        let mut owner = Self {
            flush: None,
            context,
            facts,
            granularity,
        };
        // Twice the L2, so that no line of an earlier call survives.
        let bytes = 2 * usize::try_from(owner.facts.l2_bytes).unwrap_or(64 << 20);
        owner.flush = Some(owner.buffer(bytes, 256, BufferAccess::Output)?);
        Ok(owner)
    }

    /// The device's facts.
    pub fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    /// Allocates a buffer whose last byte touches the unmapped range behind it, as near as `align` allows.
    pub fn buffer(&self, bytes: usize, align: usize, access: BufferAccess) -> Result<Buffer, CudaError> {
        let whole = bytes.max(1).next_multiple_of(self.granularity);
        let physical = self.context.allocate(whole)?;
        let mapping = self.context.map(&physical, true)?;
        let offset = (whole - bytes) / align.max(1) * align.max(1);
        Ok(Buffer {
            mapping,
            physical,
            offset,
            bytes,
            access,
        })
    }

    /// Writes a buffer's bytes.
    pub fn write(&self, buffer: &Buffer, bytes: &[u8]) -> Result<(), CudaError> {
        self.context
            .upload(buffer.address(), &bytes[..bytes.len().min(buffer.bytes)])
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

    /// Fills the whole of a buffer's memory, slack included, with one byte.
    pub fn poison(&self, buffer: &Buffer, value: u8) -> Result<(), CudaError> {
        self.context
            .fill(buffer.mapping.address, value, buffer.physical.bytes)
    }

    /// Whether the slack around a buffer still holds `value`.
    pub fn slack_intact(&self, buffer: &Buffer, value: u8) -> Result<bool, CudaError> {
        let mut head = vec![0; buffer.offset];
        self.context.download(buffer.mapping.address, &mut head)?;
        let end = buffer.offset + buffer.bytes;
        let mut tail = vec![0; buffer.physical.bytes - end];
        self.context
            .download(buffer.mapping.address + end as u64, &mut tail)?;
        Ok(head.iter().chain(&tail).all(|byte| *byte == value))
    }

    /// Writes twice the L2 and waits: the next call finds its inputs in memory.
    pub fn flush_l2(&self) -> Result<(), CudaError> {
        if let Some(flush) = &self.flush {
            self.poison(flush, 0)?;
        }
        self.context.synchronize()
    }

    /// Time of a device-to-device copy of `bytes`, the fastest of `calls`, in nanoseconds.
    pub fn copy_ns(&self, bytes: usize, calls: usize) -> Result<u64, CudaError> {
        let from = self.buffer(bytes, 256, BufferAccess::Input)?;
        let to = self.buffer(bytes, 256, BufferAccess::Output)?;
        self.poison(&from, 1)?;
        let start = self.context.event()?;
        let end = self.context.event()?;
        let stream = self.context.stream()?;
        let mut fastest = u64::MAX;
        for _ in 0..calls {
            self.flush_l2()?;
            stream.record(&start)?;
            stream.copy(to.address(), from.address(), bytes)?;
            stream.record(&end)?;
            stream.synchronize()?;
            fastest = fastest.min((f64::from(end.since(&start)?) * 1e6) as u64);
        }
        Ok(fastest)
    }

    /// Waits for the judge's own work, then says what time it is.
    pub(crate) fn settled(&self) -> Result<Instant, CudaError> {
        self.context.synchronize()?;
        Ok(Instant::now())
    }
}

//! Which buffers a worker sees, and how they lie.

/// What the worker may do with a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Read only; a write is a fault.
    Input,
    /// Read and write; the judge reads the result.
    Output,
    /// Filled by the judge, changed by the worker (in-place outputs).
    InOut,
}

/// Which end of a buffer touches a guard page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Edge {
    /// The first byte stands right behind a guard page.
    Start,
    /// The last byte stands before a guard page, as near as the alignment allows; a canary fills the slack.
    End,
    /// Neither end does, as in a heap: canaries fill the slack before and behind.
    Neither,
}

/// One tensor of the layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Name, for faults.
    pub name: String,
    /// Bytes of storage; 0 is allowed.
    pub bytes: u64,
    /// Promised alignment of the base pointer: a power of two up to 4096.
    pub align: u64,
    /// What the worker may do with it.
    pub access: Access,
    /// Which end touches a guard page.
    pub edge: Edge,
}

/// A scalar argument.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    /// Any integer type, sign- or zero-extended to 64 bits; also `f16`, `bf16` and `f8` as their bit patterns.
    Int(u64),
    /// `float`.
    F32(f32),
    /// `double`.
    F64(f64),
}

/// All buffers and arguments of the calls to come.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// Number of independent copies of all buffers (at least 1): one call works on one slot.
    pub slots: usize,
    /// Tensors in the order of the arguments.
    pub placements: Vec<Placement>,
    /// Scalars, after the tensors; may be changed per slot later.
    pub scalars: Vec<Scalar>,
    /// Axes (`int64_t`), after the scalars.
    pub axes: Vec<i64>,
}

/// A few bytes of an output, to be read the moment the clock stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Index of the placement.
    pub placement: usize,
    /// Offset of the first byte.
    pub offset: u64,
    /// 1 to 8 bytes.
    pub bytes: u8,
}

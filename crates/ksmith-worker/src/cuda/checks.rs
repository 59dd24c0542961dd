//! The judge's own kernels: outputs are compared where they lie, in the judge's context.
//!
//! The rule is the one that the host applies (`ksmith-judge`, `compare`); a test there holds both to the same answers.

use std::collections::BTreeMap;

use ksmith_box::Level;
use ksmith_task::DType;

use super::compile::{CompileOptions, Cubin, compile};
use super::driver::{Function, Module, Stream};
use super::error::CudaError;
use super::owner::{Buffer, BufferAccess, Owner};
use super::plan::Launch;

/// The judge's own device code.
pub const SOURCE: &str = concat!(include_str!("kernels.cu"), include_str!("cases.cu"));
const NAMES: [&str; 13] = [
    "compare_real",
    "compare_whole",
    "count_other",
    "read_all",
    "nothing",
    "copy_1",
    "copy_2",
    "copy_4",
    "copy_8",
    "draw",
    "widen_real",
    "widen_whole",
    "magnitudes",
];
pub(super) const READ_ALL: usize = 3;
/// Name, place in `NAMES` and loads in flight of our own copies.
pub(super) const COPIES: [(&str, usize, usize); 4] = [
    ("16 bytes a thread", 5, 1),
    ("2 x 16 bytes a thread", 6, 2),
    ("4 x 16 bytes a thread", 7, 4),
    ("8 x 16 bytes a thread", 8, 8),
];
pub(super) const DRAW: usize = 9;
pub(super) const WIDEN_REAL: usize = 10;
pub(super) const WIDEN_WHOLE: usize = 11;
pub(super) const MAGNITUDES: usize = 12;
/// Name of the kernel that does nothing, in [`Checks::cubin`].
pub const NOTHING: &str = NAMES[4];
/// Bytes of the result block.
const RESULT: usize = 32;

/// When a float element counts as right; names as in the contract.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RealRule {
    /// Type of the output.
    pub dtype: DType,
    /// Absolute part of the tolerance.
    pub atol: f64,
    /// Part relative to the expectation.
    pub rtol: f64,
    /// Part relative to the scale.
    pub ctol: f64,
    /// Magnitude beyond which rounding to the type overflows.
    pub edge: f64,
    /// Magnitude of an element that overflowed; NaN where it becomes one.
    pub limit: f64,
}

/// When an integer element counts as right.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WholeRule {
    /// The expectation holds integers.
    Exact,
    /// The expectation holds float64 values, clamped to the type's range and met within the slack.
    Within {
        /// The slack.
        slack: f64,
        /// Smallest value of the type.
        least: f64,
        /// Largest value of the type.
        most: f64,
    },
}

/// How a comparison ended.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Compared {
    /// Elements outside the tolerance (or bytes that differ).
    pub values: u64,
    /// Elements whose finiteness differs.
    pub non_finite: u64,
    /// Largest finite error over bound.
    pub ratio: f64,
    /// The first element that failed, row-major.
    pub first: Option<usize>,
}

/// Loaded kernels of the judge.
pub struct Checks {
    cubin: Cubin,
    pub(super) functions: Vec<Function>,
    pub(super) stream: Stream,
    pub(super) result: Buffer,
    _module: Module,
}

impl Checks {
    /// Compiles and loads the kernels. `options` names compiler library and includes; sources and kernels are ours.
    ///
    /// # Errors
    /// When the compiler is missing or the device fails.
    pub fn load(
        owner: &Owner,
        options: &CompileOptions,
        least: Level,
        unsandboxed: bool,
    ) -> Result<Self, CudaError> {
        let options = CompileOptions {
            sources: vec![("judge.cu".to_owned(), SOURCE.to_owned())],
            kernels: NAMES.iter().map(|name| (*name).to_owned()).collect(),
            flags: vec!["--fmad=false".to_owned()],
            ..options.clone()
        };
        let cubin = compile(&options, least, unsandboxed)?;
        let lowered: &BTreeMap<String, String> = &cubin.lowered;
        let context = owner.context();
        let module = context.load(&cubin.image)?;
        let functions = NAMES
            .iter()
            .map(|name| module.function(lowered.get(*name).map_or(*name, String::as_str)))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            functions,
            stream: context.stream()?,
            result: owner.buffer(RESULT, 8, BufferAccess::Output)?,
            _module: module,
            cubin,
        })
    }

    /// The module, for workers that time a kernel of ours.
    pub fn cubin(&self) -> &Cubin {
        &self.cubin
    }

    /// Compares `count` float elements with float64 expectations.
    ///
    /// # Errors
    /// When the device fails; `None` for a type that is no float.
    pub fn real(
        &self,
        owner: &Owner,
        rule: &RealRule,
        got: &Buffer,
        want: &Buffer,
        scale: Option<&Buffer>,
        count: usize,
    ) -> Result<Option<Compared>, CudaError> {
        let Some(kind) = real_kind(rule.dtype) else {
            return Ok(None);
        };
        if got.bytes() < count * rule.dtype.bytes()
            || [Some(want), scale]
                .into_iter()
                .flatten()
                .any(|buffer| buffer.bytes() < 8 * count)
        {
            return Ok(None);
        }
        let numbers = [rule.atol, rule.rtol, rule.ctol, rule.edge, rule.limit];
        let params = vec![
            address(got),
            address(want),
            scale.map_or_else(|| 0u64.to_le_bytes().to_vec(), address),
            (count as i64).to_le_bytes().to_vec(),
            kind.to_le_bytes().to_vec(),
            numbers.iter().flat_map(|number| number.to_le_bytes()).collect(),
        ];
        self.launch(owner, 0, params, count).map(Some)
    }

    /// Compares `count` integer elements.
    ///
    /// # Errors
    /// When the device fails; `None` for a type that is no integer.
    pub fn whole(
        &self,
        owner: &Owner,
        dtype: DType,
        rule: WholeRule,
        got: &Buffer,
        want: &Buffer,
        count: usize,
    ) -> Result<Option<Compared>, CudaError> {
        let Some(kind) = whole_kind(dtype) else {
            return Ok(None);
        };
        if got.bytes() < count * dtype.bytes() || want.bytes() < 8 * count {
            return Ok(None);
        }
        let (slack, least, most) = match rule {
            WholeRule::Exact => (-1.0, 0.0, 0.0),
            WholeRule::Within { slack, least, most } => (slack, least, most),
        };
        let mut params = vec![
            address(got),
            address(want),
            (count as i64).to_le_bytes().to_vec(),
            kind.to_le_bytes().to_vec(),
        ];
        params.extend(
            [slack, least, most]
                .iter()
                .map(|number: &f64| number.to_le_bytes().to_vec()),
        );
        self.launch(owner, 1, params, count).map(Some)
    }

    /// Whether every byte before and behind a buffer, in its own physical memory, still holds `filler`.
    ///
    /// # Errors
    /// When the device fails.
    pub fn slack_intact(&self, owner: &Owner, buffer: &Buffer, filler: u8) -> Result<[bool; 2], CudaError> {
        let mut intact = [true; 2];
        for (side, (start, bytes)) in intact.iter_mut().zip(buffer.slack()) {
            if bytes == 0 {
                continue;
            }
            let params = vec![
                start.to_le_bytes().to_vec(),
                (bytes as i64).to_le_bytes().to_vec(),
                i32::from(filler).to_le_bytes().to_vec(),
            ];
            *side = self.launch(owner, 2, params, bytes)?.values == 0;
        }
        Ok(intact)
    }

    pub(super) fn shape(&self, owner: &Owner, kernel: usize, count: usize) -> Launch {
        let most = owner.facts().sm_count.unsigned_abs() as usize * 8;
        Launch {
            kernel,
            grid: [count.div_ceil(256).clamp(1, most.max(1)) as u32, 1, 1],
            block: [256, 1, 1],
            cluster: None,
            shared: 0,
            cooperative: false,
            pdl: false,
        }
    }

    /// Launches a kernel that counts into the result block.
    pub(super) fn launch(
        &self,
        owner: &Owner,
        kernel: usize,
        mut params: Vec<Vec<u8>>,
        count: usize,
    ) -> Result<Compared, CudaError> {
        owner.poison(&self.result, 0)?;
        owner.context().synchronize()?;
        params.push(address(&self.result));
        let launch = self.shape(owner, kernel, count);
        self.stream.launch(&self.functions[kernel], &launch, &params)?;
        self.stream.synchronize()?;
        let mut bytes = [0u8; RESULT];
        owner.read(&self.result, &mut bytes)?;
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        Ok(Compared {
            values: word(0),
            non_finite: word(8),
            ratio: f64::from_bits(word(16)),
            first: usize::try_from(!word(24)).ok().filter(|_| word(24) != 0),
        })
    }

    /// Launches a kernel over `count` elements and waits for it.
    pub(super) fn work(
        &self,
        owner: &Owner,
        kernel: usize,
        params: &[Vec<u8>],
        count: usize,
    ) -> Result<(), CudaError> {
        owner.context().synchronize()?;
        let launch = self.shape(owner, kernel, count);
        self.stream.launch(&self.functions[kernel], &launch, params)?;
        self.stream.synchronize()
    }
}

/// What the kernels call a float type.
pub(super) fn real_kind(dtype: DType) -> Option<i32> {
    match dtype {
        DType::F64 => Some(0),
        DType::F32 => Some(1),
        DType::F16 => Some(2),
        DType::Bf16 => Some(3),
        DType::F8e4m3 => Some(4),
        DType::F8e5m2 => Some(5),
        DType::I64 | DType::I32 | DType::I16 | DType::I8 | DType::U8 | DType::Bool => None,
    }
}

/// What the kernels call an integer type.
pub(super) fn whole_kind(dtype: DType) -> Option<i32> {
    match dtype {
        DType::I64 => Some(0),
        DType::I32 => Some(1),
        DType::I16 => Some(2),
        DType::I8 => Some(3),
        DType::U8 | DType::Bool => Some(4),
        DType::F64 | DType::F32 | DType::F16 | DType::Bf16 | DType::F8e4m3 | DType::F8e5m2 => None,
    }
}

pub(super) fn address(buffer: &Buffer) -> Vec<u8> {
    buffer.address().to_le_bytes().to_vec()
}

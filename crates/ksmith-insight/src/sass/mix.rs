//! Instruction counts of a piece of code.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::opcode::{Class, TensorClass, access_bits, classify};
use super::text::Instruction;

/// Instruction counts. Counts are of instructions in the text, not of executions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mix {
    /// All instructions.
    pub total: u32,
    /// Global loads by bits per thread.
    pub global_loads: BTreeMap<u32, u32>,
    /// Global stores by bits per thread.
    pub global_stores: BTreeMap<u32, u32>,
    /// Shared loads by bits per thread, without matrix loads.
    pub shared_loads: BTreeMap<u32, u32>,
    /// Shared stores by bits per thread.
    pub shared_stores: BTreeMap<u32, u32>,
    /// Matrix loads and stores of shared memory (`ldmatrix`, `stmatrix`).
    pub matrix_moves: u32,
    /// Local loads and stores: spills, or arrays indexed at run time.
    pub local: u32,
    /// Asynchronous copies of a thread (`cp.async`).
    pub async_copies: u32,
    /// Bulk copies and TMA.
    pub bulk_copies: u32,
    /// Waits for copies.
    pub async_waits: u32,
    /// Matrix multiplications by class.
    pub tensor: BTreeMap<TensorClass, u32>,
    /// Block and cluster barriers.
    pub barriers: u32,
    /// Operations on mbarriers.
    pub mbarriers: u32,
    /// Memory fences and cache control.
    pub fences: u32,
    /// Atomics and reductions in memory.
    pub atomics: u32,
    /// Double-precision arithmetic.
    pub doubles: u32,
    /// Single- and half-precision arithmetic.
    pub floats: u32,
    /// Special functions (exp2, rcp, rsqrt, sin).
    pub special: u32,
    /// Conversions.
    pub conversions: u32,
    /// Integer and address arithmetic.
    pub integers: u32,
    /// Exchanges between lanes.
    pub shuffles: u32,
    /// Calls.
    pub calls: u32,
    /// Opcodes that are not known.
    pub unknown: u32,
}

impl Mix {
    pub(super) fn of<'a>(instructions: impl IntoIterator<Item = &'a Instruction>) -> Self {
        let mut mix = Self::default();
        for instruction in instructions {
            mix.add(&instruction.opcode);
        }
        mix
    }

    fn add(&mut self, opcode: &str) {
        self.total += 1;
        let matrix = opcode.starts_with("LDSM") || opcode.starts_with("STSM");
        let count = |widths: &mut BTreeMap<u32, u32>| *widths.entry(access_bits(opcode)).or_default() += 1;
        match classify(opcode) {
            Class::GlobalLoad => count(&mut self.global_loads),
            Class::GlobalStore => count(&mut self.global_stores),
            Class::SharedLoad | Class::SharedStore if matrix => self.matrix_moves += 1,
            Class::SharedLoad => count(&mut self.shared_loads),
            Class::SharedStore => count(&mut self.shared_stores),
            Class::LocalLoad | Class::LocalStore => self.local += 1,
            Class::AsyncCopy => self.async_copies += 1,
            Class::BulkCopy => self.bulk_copies += 1,
            Class::AsyncWait => self.async_waits += 1,
            Class::Tensor(class) => *self.tensor.entry(class).or_default() += 1,
            Class::Barrier => self.barriers += 1,
            Class::Mbarrier => self.mbarriers += 1,
            Class::Fence => self.fences += 1,
            Class::Atomic => self.atomics += 1,
            Class::Double => self.doubles += 1,
            Class::Float => self.floats += 1,
            Class::Special => self.special += 1,
            Class::Convert => self.conversions += 1,
            Class::Integer => self.integers += 1,
            Class::Shuffle => self.shuffles += 1,
            Class::Call => self.calls += 1,
            Class::Unknown => self.unknown += 1,
            Class::TensorWait | Class::Control | Class::Move => {}
        }
    }

    /// Share of global bytes (loads and stores, per pass of the code) that move in accesses of at least `bits`.
    pub fn wide_share(&self, bits: u32) -> Option<f64> {
        let bytes = |wide: bool| -> u32 {
            [&self.global_loads, &self.global_stores]
                .iter()
                .flat_map(|widths| widths.iter())
                .filter(|(width, _)| !wide || **width >= bits)
                .map(|(width, count)| width / 8 * count)
                .sum()
        };
        let all = bytes(false);
        (all > 0).then(|| f64::from(bytes(true)) / f64::from(all))
    }

    /// Whether any matrix unit is used.
    pub fn uses_tensor_cores(&self) -> bool {
        !self.tensor.is_empty()
    }

    /// Whether any copy runs beside the arithmetic.
    pub fn copies_asynchronously(&self) -> bool {
        self.async_copies + self.bulk_copies > 0
    }

    /// Share of integer and address arithmetic in all instructions.
    pub fn integer_share(&self) -> f64 {
        if self.total == 0 {
            0.0
        } else {
            f64::from(self.integers) / f64::from(self.total)
        }
    }
}

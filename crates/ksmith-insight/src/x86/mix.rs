//! Instruction counts of a piece of x86 code (owns the crate `iced-x86` with `binary.rs`).

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use serde::{Deserialize, Serialize};

/// Instruction counts. Counts are of instructions in the text, not of executions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mix {
    /// All instructions.
    pub total: u32,
    /// Float and integer vector arithmetic by register width in bits; scalar float arithmetic counts as its element's
    /// width (32 or 64).
    pub arithmetic: BTreeMap<u32, u32>,
    /// Fused multiply-adds among them.
    pub fused: u32,
    /// Loads by bits.
    pub loads: BTreeMap<u32, u32>,
    /// Stores by bits.
    pub stores: BTreeMap<u32, u32>,
    /// Loads from the stack: spilled values come back.
    pub stack_loads: u32,
    /// Stores to the stack.
    pub stack_stores: u32,
    /// Gathers.
    pub gathers: u32,
    /// Scatters.
    pub scatters: u32,
    /// Divisions and square roots.
    pub divisions: u32,
    /// Conversions between types.
    pub conversions: u32,
    /// Shuffles, permutes, broadcasts, inserts, extracts.
    pub shuffles: u32,
    /// Stores that pass the caches.
    pub streaming_stores: u32,
    /// Software prefetches.
    pub prefetches: u32,
    /// Calls.
    pub calls: u32,
    /// Branches.
    pub branches: u32,
    /// Registers that accumulate: a sum, a maximum or a fused addition reads the value of the turn before, and the turn
    /// writes it anew.
    pub accumulators: u32,
}

/// Vector registers that carry a value from one turn to the next.
#[derive(Default)]
struct Carried {
    /// Written so far, in order of address.
    written: BTreeSet<u32>,
    /// Added to or compared with before they were written.
    sums: BTreeSet<u32>,
}

/// Name of a mnemonic without the VEX `v`, in lower case.
pub(super) fn plain_name(mnemonic: Mnemonic) -> String {
    let name = format!("{mnemonic:?}").to_ascii_lowercase();
    match name.strip_prefix('v') {
        // `verr`, `verw` and the virtual-machine instructions start with a v of their own.
        Some(rest) if !name.starts_with("vm") && !name.starts_with("ver") => rest.to_owned(),
        _ if name.starts_with("vmov")
            || name.starts_with("vmul")
            || name.starts_with("vmin")
            || name.starts_with("vmax") =>
        {
            name[1..].to_owned()
        }
        _ => name,
    }
}

impl Mix {
    pub(super) fn of<'a>(
        instructions: impl IntoIterator<Item = &'a Instruction>,
        factory: &mut InstructionInfoFactory,
        frame_is_rbp: bool,
    ) -> Self {
        let mut mix = Self::default();
        let mut carried = Carried::default();
        for instruction in instructions {
            mix.add(instruction, factory, frame_is_rbp, &mut carried);
            for register in factory.info(instruction).used_registers() {
                let writes = matches!(
                    register.access(),
                    OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
                );
                if writes && register.register().is_vector_register() {
                    carried.written.insert(register.register().full_register() as u32);
                }
            }
        }
        mix.accumulators =
            u32::try_from(carried.sums.intersection(&carried.written).count()).unwrap_or(u32::MAX);
        mix
    }

    fn add(
        &mut self,
        instruction: &Instruction,
        factory: &mut InstructionInfoFactory,
        frame_is_rbp: bool,
        carried: &mut Carried,
    ) {
        self.total += 1;
        match instruction.flow_control() {
            FlowControl::Call | FlowControl::IndirectCall => {
                // The return address is no spill.
                self.calls += 1;
                return;
            }
            FlowControl::ConditionalBranch
            | FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch => {
                self.branches += 1;
                return;
            }
            _ => {}
        }
        let name = plain_name(instruction.mnemonic());
        if name.starts_with("prefetch") {
            self.prefetches += 1;
            return;
        }
        if matches!(
            name.as_str(),
            "push" | "pop" | "lea" | "nop" | "endbr64" | "leave" | "ret"
        ) {
            return;
        }
        self.memory(instruction, factory, frame_is_rbp);
        if name.starts_with("gather") || name.starts_with("pgather") {
            self.gathers += 1;
        } else if name.starts_with("scatter") || name.starts_with("pscatter") {
            self.scatters += 1;
        } else if name.starts_with("movnt") && !name.starts_with("movntdqa") {
            self.streaming_stores += 1;
        } else if ["div", "idiv", "sqrt"].iter().any(|word| name.starts_with(word)) {
            self.divisions += 1;
            self.arithmetic(instruction, &name, carried);
        } else if name.starts_with("cvt") {
            self.conversions += 1;
        } else if [
            "shuf",
            "perm",
            "unpck",
            "punpck",
            "pshuf",
            "broadcast",
            "pbroadcast",
            "insert",
            "extract",
            "blend",
            "pblend",
            "palignr",
            "movhl",
            "movlh",
            "pinsr",
            "pextr",
            "movshdup",
            "movsldup",
            "movddup",
            "compress",
            "expand",
            "align",
        ]
        .iter()
        .any(|word| name.starts_with(word))
        {
            self.shuffles += 1;
        } else {
            self.arithmetic(instruction, &name, carried);
        }
    }

    fn memory(
        &mut self,
        instruction: &Instruction,
        factory: &mut InstructionInfoFactory,
        frame_is_rbp: bool,
    ) {
        if !instruction.op_kinds().any(|kind| kind == OpKind::Memory) {
            return;
        }
        let base = instruction.memory_base();
        let on_stack = base == Register::RSP || (frame_is_rbp && base == Register::RBP);
        let bits = u32::try_from(instruction.memory_size().size() * 8).unwrap_or(0);
        // A gather lists one access per lane; one instruction is one load.
        let Some(memory) = factory.info(instruction).used_memory().first() else {
            return;
        };
        let (reads, writes) = match memory.access() {
            OpAccess::Read | OpAccess::CondRead => (true, false),
            OpAccess::Write | OpAccess::CondWrite => (false, true),
            OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
            OpAccess::None | OpAccess::NoMemAccess => (false, false),
        };
        if reads && on_stack {
            self.stack_loads += 1;
        } else if reads {
            *self.loads.entry(bits).or_default() += 1;
        }
        if writes && on_stack {
            self.stack_stores += 1;
        } else if writes {
            *self.stores.entry(bits).or_default() += 1;
        }
    }

    fn arithmetic(&mut self, instruction: &Instruction, name: &str, carried: &mut Carried) {
        let registers: Vec<Register> = (0..instruction.op_count())
            .filter(|operand| instruction.op_kind(*operand) == OpKind::Register)
            .map(|operand| instruction.op_register(operand))
            .collect();
        let vector: Vec<Register> = registers
            .iter()
            .copied()
            .filter(|register| register.is_vector_register())
            .collect();
        if vector.is_empty() {
            return;
        }
        let moves = [
            "mov", "lddqu", "zero", "comis", "ucomis", "ptest", "test", "pmovmskb",
        ];
        // `xorps x, x` makes a zero.
        let zeroing = (name.starts_with("xor") || name.starts_with("pxor"))
            && vector.len() >= 2
            && vector
                .iter()
                .all(|register| *register == vector[vector.len() - 1]);
        if moves.iter().any(|word| name.starts_with(word)) || zeroing {
            return;
        }
        let scalar = if name.starts_with('p') || name.ends_with("ps") || name.ends_with("pd") {
            None
        } else if name.ends_with("ss") {
            Some(32)
        } else if name.ends_with("sd") {
            Some(64)
        } else {
            None
        };
        let bits = scalar.unwrap_or(if vector.iter().any(|register| register.is_zmm()) {
            512
        } else if vector.iter().any(|register| register.is_ymm()) {
            256
        } else {
            128
        });
        *self.arithmetic.entry(bits).or_default() += 1;
        let fused = ["fmadd", "fmsub", "fnmadd", "fnmsub"]
            .iter()
            .any(|word| name.starts_with(word));
        if fused {
            self.fused += 1;
        }
        let sums = ["add", "sub", "max", "min", "padd"]
            .iter()
            .any(|word| name.starts_with(word));
        // The digits of a fused operation say which operand is added: the first, second or third.
        let addends = match name {
            _ if fused && name.contains("231") => vector.get(..1),
            _ if fused && name.contains("132") => vector.get(1..2),
            _ if fused && name.contains("213") => vector.get(2..3),
            // Two-operand forms read their first operand.
            _ if sums && instruction.op_count() == 2 => vector.get(..),
            _ if sums => vector.get(1..),
            _ => None,
        };
        for register in addends.unwrap_or_default() {
            let register = register.full_register() as u32;
            if !carried.written.contains(&register) {
                carried.sums.insert(register);
            }
        }
    }

    /// The widest arithmetic in bits, 0 if there is none.
    pub fn widest(&self) -> u32 {
        self.arithmetic.keys().copied().max().unwrap_or(0)
    }

    /// Number of vector or scalar arithmetic instructions.
    pub fn arithmetic_total(&self) -> u32 {
        self.arithmetic.values().sum()
    }

    /// Whether float arithmetic is present and all of it is scalar.
    pub fn is_scalar(&self) -> bool {
        self.arithmetic_total() > 0 && self.widest() <= 64
    }
}

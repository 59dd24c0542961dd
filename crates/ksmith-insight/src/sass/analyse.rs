//! Findings from device code.

use serde::{Deserialize, Serialize};

use crate::{Finding, LoopRange, Report, loops};

use super::Mix;
use super::opcode::{Class, classify};
use super::text::{self, Code, Instruction};

/// What the contract lets one expect of the code; without an expectation nothing is missed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expect {
    /// The work is a matrix product in a type that tensor cores take.
    pub tensor_cores: bool,
    /// Rows are contiguous and aligned, so that 128-bit accesses are possible.
    pub wide_accesses: bool,
    /// The contract computes in double precision.
    pub double_precision: bool,
}

/// Analysis of a whole text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sass {
    /// Architecture (`sm_90a`), if the text names it.
    pub arch: Option<String>,
    /// Kernels and functions in the order of the text.
    pub kernels: Vec<KernelCode>,
    /// Findings.
    pub report: Report,
}

/// Code of one kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelCode {
    /// Name as in the text.
    pub name: String,
    /// Mix of all instructions.
    pub whole: Mix,
    /// Loops, outermost first in order of address.
    pub loops: Vec<LoopCode>,
    /// The point of most live registers, where the text carries life ranges.
    pub max_live: Option<MaxLive>,
}

/// Code of one loop body, inner loops included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopCode {
    /// Where it lies.
    pub range: LoopRange,
    /// First source line of its body, where known.
    pub line: Option<String>,
    /// Its mix.
    pub mix: Mix,
}

/// The point of most live registers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaxLive {
    /// Registers live there.
    pub registers: u32,
    /// Address of the instruction.
    pub address: u64,
    /// Source line, where known.
    pub line: Option<String>,
}

/// Analyses the output of `nvdisasm -c [-g | -plr]` or `cuobjdump -sass`.
pub fn analyse(text: &str, expect: Expect) -> Sass {
    let (arch, codes) = text::parse(text);
    let mut sass = Sass {
        arch,
        ..Sass::default()
    };
    if codes.is_empty() {
        sass.report.missing("no function in the disassembly");
    }
    for code in &codes {
        if code.instructions.is_empty() {
            sass.report.missing(format!("no instruction in `{}`", code.name));
            continue;
        }
        let kernel = kernel(code, &mut sass.report);
        findings(code, &kernel, expect, &mut sass.report);
        sass.kernels.push(kernel);
    }
    sass
}

fn kernel(code: &Code, report: &mut Report) -> KernelCode {
    for instruction in &code.instructions {
        if classify(&instruction.opcode) == Class::Unknown {
            report.missing(format!("opcode `{}` is not known", instruction.opcode));
        }
        if instruction.opcode.starts_with("BRX") || instruction.opcode.starts_with("JMX") {
            report.missing(format!(
                "`{}` holds an indirect branch: its loops may be wrong",
                code.name
            ));
        }
    }
    let nodes: Vec<loops::Node> = code
        .instructions
        .iter()
        .map(|instruction| node(code, instruction))
        .collect();
    let loops = loops::find(&nodes)
        .into_iter()
        .map(|range| {
            let body: Vec<&Instruction> = code
                .instructions
                .iter()
                .filter(|instruction| range.holds(instruction.address))
                .collect();
            let line = body.iter().find_map(|instruction| instruction.line.clone());
            let mix = Mix::of(body);
            LoopCode { range, line, mix }
        })
        .collect();
    let max_live = code
        .instructions
        .iter()
        .filter_map(|instruction| Some((instruction.live?, instruction)))
        // The first of equal points: a later one is a consequence.
        .fold(None::<MaxLive>, |best, (registers, instruction)| match best {
            Some(best) if best.registers >= registers => Some(best),
            _ => Some(MaxLive {
                registers,
                address: instruction.address,
                line: instruction.line.clone(),
            }),
        });
    KernelCode {
        name: code.name.clone(),
        whole: Mix::of(&code.instructions),
        loops,
        max_live,
    }
}

/// How control leaves an instruction. A branch under a predicate, or one that takes a condition, may fall through.
fn node(code: &Code, instruction: &Instruction) -> loops::Node {
    let base = instruction.opcode.split('.').next().unwrap_or_default();
    let target = code.target(instruction);
    let conditional = instruction.predicated || (base == "BRA" && instruction.operands.contains(','));
    let leaves = matches!(
        base,
        "BRA" | "BRX" | "BRXU" | "JMP" | "JMX" | "EXIT" | "RET" | "KILL"
    );
    loops::Node {
        address: instruction.address,
        target,
        falls: !leaves || conditional,
        ends: leaves,
    }
}

fn findings(code: &Code, kernel: &KernelCode, expect: Expect, report: &mut Report) {
    let name = kernel.name.as_str();
    for body in kernel.loops.iter().filter(|body| body.range.innermost) {
        let place = body
            .line
            .clone()
            .unwrap_or_else(|| format!("{:#x}", body.range.start));
        inner_loop(name, &place, body, expect, report);
    }
    if expect.tensor_cores && !kernel.whole.uses_tensor_cores() && kernel.whole.floats > 0 {
        report.push(
            Finding::review(
                "sass/no-tensor-cores",
                name,
                "a matrix product without any matrix instruction",
            )
            .advise("use mma.sync or wgmma for the inner product"),
        );
    }
    let fed = kernel.loops.iter().find(|body| {
        let mix = &body.mix;
        let staged = !mix.global_loads.is_empty() && !mix.shared_stores.is_empty() && mix.barriers > 0;
        staged && !mix.copies_asynchronously()
    });
    if let Some(body) = fed {
        let place = body
            .line
            .clone()
            .unwrap_or_else(|| format!("{:#x}", body.range.start));
        report.push(
            Finding::review(
                "sass/no-async-copy",
                name,
                "a loop stages global memory through registers into shared memory, behind a barrier",
            )
            .at(place)
            .advise("copy with cp.async or TMA into a second buffer while the first is used"),
        );
    }
    if kernel.whole.atomics > 0 {
        let evidence = format!(
            "{} atomic instructions: the order of float sums is not fixed",
            kernel.whole.atomics
        );
        report.push(Finding::note("sass/atomics", name, evidence));
    }
    if kernel.whole.doubles > 0 && !expect.double_precision {
        let evidence = format!("{} double-precision instructions", kernel.whole.doubles);
        report.push(
            Finding::review("sass/double-precision", name, evidence)
                .advise("write constants with an `f` and call the float functions"),
        );
    }
    missing_barrier(code, report);
}

fn inner_loop(name: &str, place: &str, body: &LoopCode, expect: Expect, report: &mut Report) {
    let mix = &body.mix;
    if mix.local > 0 {
        let evidence = format!(
            "{} local loads and stores in a loop of {} instructions",
            mix.local, mix.total
        );
        report.push(
            Finding::review("sass/local-memory-in-loop", name, evidence)
                .at(place)
                .advise("fewer live values, constant indices, or looser launch bounds"),
        );
    }
    if expect.wide_accesses && mix.wide_share(128).is_some_and(|share| share < 0.5) {
        let evidence = format!(
            "global loads {:?}, stores {:?} (bits: count)",
            mix.global_loads, mix.global_stores
        );
        report.push(
            Finding::review("sass/narrow-global-access", name, evidence)
                .at(place)
                .advise("move 16 bytes per thread and access (float4, or eight 16-bit values)"),
        );
    }
    if mix.fences > 0 {
        let evidence = format!("{} fences or cache operations in a loop", mix.fences);
        report.push(
            Finding::review("sass/fence-in-loop", name, evidence)
                .at(place)
                .advise("move the fence out of the loop"),
        );
    }
    if mix.calls > 0 {
        let evidence = format!(
            "{} calls in a loop (division, or a function that was not inlined)",
            mix.calls
        );
        report.push(
            Finding::review("sass/call-in-loop", name, evidence)
                .at(place)
                .advise("inline the function; multiply by a reciprocal instead of dividing"),
        );
    }
    if mix.barriers >= 2 && mix.total < 100 {
        let evidence = format!(
            "{} barriers in a loop of {} instructions",
            mix.barriers, mix.total
        );
        report.push(Finding::note("sass/barriers-in-loop", name, evidence).at(place));
    }
    if mix.total >= 16 && mix.integer_share() > 0.5 {
        let evidence = format!(
            "{:.0} % integer and address arithmetic in a loop",
            100.0 * mix.integer_share()
        );
        report.push(
            Finding::review("sass/address-arithmetic", name, evidence)
                .at(place)
                .advise("step pointers instead of recomputing indices; unroll"),
        );
    }
    let early = mix.tensor.keys().any(|class| *class >= super::TensorClass::Hgmma)
        && mix.bulk_copies > 0
        && mix.total < 64
        && mix.tensor.values().sum::<u32>() == 1;
    if early {
        report.push(
            Finding::note(
                "sass/one-matrix-step",
                name,
                "each turn of the loop waits for one copy and one product",
            )
            .at(place),
        );
    }
}

/// A shared store that a shared load may follow without any barrier between them, in address order. Advisory: one warp
/// needs none, and the order of addresses is not that of execution; compute-sanitizer's racecheck decides.
fn missing_barrier(code: &Code, report: &mut Report) {
    let synchronises = |class: Class, opcode: &str| {
        matches!(class, Class::Barrier | Class::Mbarrier | Class::AsyncWait) || opcode.starts_with("WARPSYNC")
    };
    let mut stored: Option<&Instruction> = None;
    let mut any_barrier = false;
    for instruction in &code.instructions {
        let class = classify(&instruction.opcode);
        if synchronises(class, &instruction.opcode) {
            any_barrier = true;
            stored = None;
        } else if matches!(class, Class::SharedStore) {
            stored = Some(instruction);
        } else if let (Class::SharedLoad, Some(store)) = (class, stored)
            && address_of(&instruction.operands) != address_of(&store.operands)
        {
            let place = instruction
                .line
                .clone()
                .unwrap_or_else(|| format!("{:#x}", instruction.address));
            let evidence = if any_barrier
                || code
                    .instructions
                    .iter()
                    .any(|other| other.opcode.starts_with("BAR"))
            {
                "a shared load follows a shared store to another address without a barrier between"
            } else {
                "a shared load follows a shared store to another address, and no barrier exists in the kernel"
            };
            report.push(
                Finding::review("sass/missing-barrier", &code.name, evidence)
                    .at(place)
                    .advise("add __syncthreads() or __syncwarp(); confirm with compute-sanitizer --tool racecheck"),
            );
            return;
        }
    }
}

/// The bracketed address of an operand list.
fn address_of(operands: &str) -> Option<&str> {
    Some(operands.split_once('[')?.1.split_once(']')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;
    use crate::sass::TensorClass;

    fn data(name: &str, expect: Expect) -> Sass {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("testdata/sass")
            .join(name);
        analyse(&std::fs::read_to_string(path).unwrap(), expect)
    }

    fn kernel<'a>(sass: &'a Sass, name: &str) -> &'a KernelCode {
        sass.kernels.iter().find(|kernel| kernel.name == name).unwrap()
    }

    const WIDE: Expect = Expect {
        tensor_cores: false,
        wide_accesses: true,
        double_precision: false,
    };

    #[test]
    fn scalar_and_vector_accesses_are_told_apart_in_the_loop() {
        let sass = data("softmax_90a.sass", WIDE);
        assert_eq!(sass.arch.as_deref(), Some("sm_90a"));
        let copy = kernel(&sass, "vector_copy");
        assert!(copy.whole.global_loads.keys().eq([&128]), "{:?}", copy.whole);
        let softmax = kernel(&sass, "scalar_softmax");
        assert!(softmax.loops.len() >= 3);
        assert!(softmax.whole.special > 0 && softmax.whole.barriers >= 3);
        let narrow = sass.report.find("sass/narrow-global-access").unwrap();
        assert_eq!(narrow.subject, "scalar_softmax");
        assert!(narrow.place.as_deref().unwrap().starts_with("softmax.cu:"));
        assert!(
            sass.report
                .findings
                .iter()
                .all(|finding| finding.subject != "vector_copy"),
            "{:?}",
            sass.report
        );
    }

    #[test]
    fn spills_and_indexed_arrays_are_found_inside_their_loops() {
        let sass = data("spill_90a.sass", Expect::default());
        let local: Vec<&str> = sass
            .report
            .findings
            .iter()
            .filter(|finding| finding.id == "sass/local-memory-in-loop")
            .map(|finding| finding.subject.as_str())
            .collect();
        assert!(
            local.contains(&"spills") && local.contains(&"indexed"),
            "{local:?}"
        );
        assert_eq!(
            sass.report.find("sass/double-precision").unwrap().subject,
            "doubles"
        );
        assert_eq!(sass.report.find("sass/atomics").unwrap().subject, "doubles");
        let expected = data(
            "spill_90a.sass",
            Expect {
                double_precision: true,
                ..Expect::default()
            },
        );
        assert!(expected.report.find("sass/double-precision").is_none());
    }

    #[test]
    fn tensor_core_class_and_async_copies_are_named() {
        let expect = Expect {
            tensor_cores: true,
            ..Expect::default()
        };
        for name in ["gemm_90a.sass", "gemm_80.sass"] {
            let sass = data(name, expect);
            let fast = kernel(&sass, "mma_async");
            assert!(fast.whole.tensor.contains_key(&TensorClass::Hmma) && fast.whole.async_copies > 0);
            let plain = sass.report.find("sass/no-tensor-cores").unwrap();
            assert_eq!(plain.subject, "cuda_cores", "{name}");
            assert_eq!(
                sass.report.find("sass/no-async-copy").unwrap().subject,
                "cuda_cores",
                "{name}"
            );
        }
    }

    #[test]
    fn hopper_code_shows_bulk_copies_warp_group_products_and_mbarriers() {
        let sass = data("hopper_90a.sass", Expect::default());
        let code = kernel(&sass, "tma_wgmma");
        assert!(code.whole.tensor.contains_key(&TensorClass::Hgmma));
        assert!(code.whole.bulk_copies > 0 && code.whole.mbarriers > 0);
        // Waits that are retried out of line are loops of a few instructions; the main loop holds copies and products.
        let main: Vec<&LoopCode> = code
            .loops
            .iter()
            .filter(|body| body.mix.uses_tensor_cores())
            .collect();
        assert_eq!(
            main.len(),
            2,
            "the loop that is unrolled by four, and the one for what remains"
        );
        assert!(
            main.iter()
                .all(|body| body.range.depth == 0 && body.mix.bulk_copies > 0)
        );
        assert_ne!(
            sass.report.scale(),
            Scale::Incomplete,
            "{:?}",
            sass.report.incomplete
        );
    }

    #[test]
    fn most_live_registers_come_with_their_address() {
        let sass = data("spill_90a.plr.sass", Expect::default());
        let live = kernel(&sass, "spills").max_live.as_ref().unwrap();
        assert!((28..=32).contains(&live.registers), "{live:?}");
        assert!(live.address > 0);
        assert_eq!(
            kernel(&data("spill_90a.sass", Expect::default()), "spills").max_live,
            None
        );
    }

    #[test]
    fn both_disassemblers_give_one_mix() {
        let one = data("softmax_90a.sass", WIDE);
        let two = data("vector_copy_90a.cuobjdump.sass", WIDE);
        assert_eq!(
            kernel(&one, "vector_copy").whole,
            kernel(&two, "vector_copy").whole
        );
        let ranges = |sass: &Sass| {
            kernel(sass, "vector_copy")
                .loops
                .iter()
                .map(|l| l.range.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(ranges(&one), ranges(&two));
    }

    #[test]
    fn no_device_code_in_the_test_data_holds_an_unknown_opcode() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/sass");
        for entry in std::fs::read_dir(folder)
            .unwrap()
            .flatten()
            .filter(|entry| entry.path().is_file())
        {
            let sass = analyse(&std::fs::read_to_string(entry.path()).unwrap(), Expect::default());
            assert_eq!(
                sass.report.incomplete,
                Vec::<String>::new(),
                "{}",
                entry.path().display()
            );
        }
    }

    #[test]
    fn a_call_in_a_loop_and_a_missing_barrier_are_found() {
        let sass = data("noinline_90a.sass", Expect::default());
        assert_eq!(sass.report.find("sass/call-in-loop").unwrap().subject, "calls");
        let text = ".text.race:\n/*0000*/ STS [R4], R2 ;\n/*0010*/ LDS R3, [R5] ;\n/*0020*/ EXIT ;\n";
        let race = analyse(text, Expect::default());
        assert!(
            race.report
                .find("sass/missing-barrier")
                .unwrap()
                .evidence
                .contains("no barrier exists")
        );
        let safe = text.replace("/*0010*/", "/*0008*/ BAR.SYNC.DEFER_BLOCKING 0x0 ;\n/*0010*/");
        assert!(
            analyse(&safe, Expect::default())
                .report
                .find("sass/missing-barrier")
                .is_none()
        );
        let own = text.replace("[R5]", "[R4]");
        assert!(
            analyse(&own, Expect::default())
                .report
                .find("sass/missing-barrier")
                .is_none()
        );
    }

    #[test]
    fn an_unknown_opcode_and_an_empty_text_are_incomplete_never_clean() {
        assert_eq!(analyse("", Expect::default()).report.scale(), Scale::Incomplete);
        assert_eq!(
            analyse(".text.k:\n", Expect::default()).report.scale(),
            Scale::Incomplete
        );
        let text = ".text.k:\n/*0000*/ QWERTY R1, R2 ;\n/*0010*/ EXIT ;\n";
        assert_eq!(analyse(text, Expect::default()).report.scale(), Scale::Incomplete);
    }
}

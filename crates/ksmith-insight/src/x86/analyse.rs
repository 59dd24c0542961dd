//! Findings from CPU code.

use std::path::Path;

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};
use serde::{Deserialize, Serialize};

use crate::{Finding, LoopRange, Report, loops};

use super::Mix;
use super::binary::{self, Binary, Function};

/// Most instructions of one function that are looked at.
const INSTRUCTION_CAP: usize = 200_000;

/// What the machine offers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Widest vector registers of the machine in bits, if known.
    pub widest_bits: Option<u32>,
}

/// Analysis of a library.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Analysis {
    /// Functions in order of address, without start-up code.
    pub functions: Vec<FunctionCode>,
    /// Findings.
    pub report: Report,
}

/// Code of one function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCode {
    /// Symbol.
    pub name: String,
    /// Address in the file.
    pub address: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Mix of all instructions.
    pub whole: Mix,
    /// Loops, outermost first in order of address.
    pub loops: Vec<LoopCode>,
}

/// Code of one loop body, inner loops included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopCode {
    /// Where it lies.
    pub range: LoopRange,
    /// Its mix.
    pub mix: Mix,
    /// Functions that it calls.
    pub callees: Vec<String>,
    /// How many vectors (or scalars) of the widest access one turn takes, if the step of its index was found.
    pub unrolled: Option<u32>,
}

/// Analyses a shared library on disk. A file that cannot be read is a report of scale `error`.
pub fn analyse(path: &Path, options: Options) -> Analysis {
    match std::fs::read(path) {
        Ok(data) => analyse_bytes(&data, options),
        Err(error) => failed(format!("`{}`: {error}", path.display())),
    }
}

/// Analyses the bytes of a shared library.
pub fn analyse_bytes(data: &[u8], options: Options) -> Analysis {
    let binary = match Binary::read(data) {
        Ok(binary) => binary,
        Err(message) => return failed(message),
    };
    let mut analysis = Analysis::default();
    if binary.functions.is_empty() {
        analysis
            .report
            .missing("no function with a size in the symbol tables");
    }
    for function in &binary.functions {
        let code = function_code(&binary, function, &mut analysis.report);
        for body in code.loops.iter().filter(|body| body.range.innermost) {
            inner_loop(&code.name, body, options, &mut analysis.report);
        }
        analysis.functions.push(code);
    }
    analysis
}

fn failed(message: String) -> Analysis {
    let mut report = Report::default();
    report.push(Finding::error("x86/unreadable", "", message));
    Analysis {
        functions: Vec::new(),
        report,
    }
}

impl Analysis {
    /// The function with this symbol.
    pub fn function(&self, name: &str) -> Option<&FunctionCode> {
        self.functions.iter().find(|function| function.name == name)
    }
}

fn function_code(binary: &Binary, function: &Function, report: &mut Report) -> FunctionCode {
    let mut instructions = binary::decode(function);
    if instructions.len() > INSTRUCTION_CAP {
        report.missing(format!(
            "`{}` has more than {INSTRUCTION_CAP} instructions",
            function.name
        ));
        instructions.truncate(INSTRUCTION_CAP);
    }
    if instructions.iter().any(Instruction::is_invalid) {
        report.missing(format!("`{}` holds bytes that are no instruction", function.name));
    }
    if instructions
        .iter()
        .any(|instruction| instruction.flow_control() == FlowControl::IndirectBranch)
    {
        report.missing(format!(
            "`{}` holds an indirect branch: its loops may be wrong",
            function.name
        ));
    }
    let frame_is_rbp = instructions.iter().take(12).any(|instruction| {
        instruction.mnemonic() == Mnemonic::Mov
            && instruction.op_kind(0) == OpKind::Register
            && instruction.op_register(0) == Register::RBP
            && instruction.op_kind(1) == OpKind::Register
            && instruction.op_register(1) == Register::RSP
    });
    let last = function.address + function.bytes.len() as u64;
    let nodes: Vec<loops::Node> = instructions
        .iter()
        .map(|instruction| {
            let flow = instruction.flow_control();
            let branches = matches!(
                flow,
                FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
            );
            let target = branches.then(|| instruction.near_branch_target());
            let leaves = matches!(
                flow,
                FlowControl::UnconditionalBranch
                    | FlowControl::IndirectBranch
                    | FlowControl::Return
                    | FlowControl::Exception
            );
            loops::Node {
                address: instruction.ip(),
                target: target.filter(|target| (function.address..last).contains(target)),
                falls: !leaves,
                ends: leaves || branches,
            }
        })
        .collect();
    let mut factory = InstructionInfoFactory::new();
    let ranges = loops::find(&nodes);
    let loops = ranges
        .into_iter()
        .map(|range| {
            let body: Vec<&Instruction> = instructions
                .iter()
                .filter(|instruction| range.holds(instruction.ip()))
                .collect();
            let mix = Mix::of(body.iter().copied(), &mut factory, frame_is_rbp);
            let mut callees: Vec<String> = body
                .iter()
                .filter(|instruction| {
                    matches!(
                        instruction.flow_control(),
                        FlowControl::Call | FlowControl::IndirectCall
                    )
                })
                .map(|instruction| callee(binary, instruction))
                .collect();
            callees.sort();
            callees.dedup();
            LoopCode {
                range,
                unrolled: unrolled(&body, &mix),
                mix,
                callees,
            }
        })
        .collect();
    FunctionCode {
        name: function.name.clone(),
        address: function.address,
        bytes: function.bytes.len() as u64,
        whole: Mix::of(&instructions, &mut factory, frame_is_rbp),
        loops,
    }
}

fn callee(binary: &Binary, instruction: &Instruction) -> String {
    if instruction.flow_control() == FlowControl::IndirectCall {
        return "an address that is computed".to_owned();
    }
    let target = instruction.near_branch_target();
    binary
        .name_at(target)
        .map_or_else(|| format!("{target:#x}"), str::to_owned)
}

/// Bytes that the index moves in one turn, divided by the widest load or store.
fn unrolled(body: &[&Instruction], mix: &Mix) -> Option<u32> {
    let widest = mix
        .loads
        .keys()
        .chain(mix.stores.keys())
        .copied()
        .max()
        .filter(|bits| *bits >= 8)?
        / 8;
    let mut best: Option<u64> = None;
    for instruction in body {
        let step = match (instruction.mnemonic(), instruction.op_kind(1)) {
            (Mnemonic::Add | Mnemonic::Sub, OpKind::Immediate8to64 | OpKind::Immediate32to64) => {
                i64::from_le_bytes(instruction.immediate(1).to_le_bytes()).unsigned_abs()
            }
            (Mnemonic::Inc | Mnemonic::Dec, _) => 1,
            _ => continue,
        };
        if instruction.op_kind(0) != OpKind::Register {
            continue;
        }
        let register = instruction.op_register(0).full_register();
        // The register has to address memory in the loop; the scale of an index multiplies the step.
        let scale = body
            .iter()
            .filter(|other| other.op_kinds().any(|kind| kind == OpKind::Memory))
            .filter_map(|other| {
                if other.memory_index().full_register() == register {
                    Some(u64::from(other.memory_index_scale()))
                } else {
                    (other.memory_base().full_register() == register).then_some(1)
                }
            })
            .max();
        if let Some(scale) = scale {
            best = best.max(Some(step.saturating_mul(scale)));
        }
    }
    let vectors = best? / u64::from(widest);
    u32::try_from(vectors).ok().filter(|vectors| *vectors >= 1)
}

fn inner_loop(name: &str, body: &LoopCode, options: Options, report: &mut Report) {
    let mix = &body.mix;
    let place = format!("{:#x}", body.range.start);
    if !body.callees.is_empty() {
        let evidence = format!("calls {} in a loop", body.callees.join(", "));
        // Names of the vector function ABI: the call takes a whole vector.
        let vectors = body.callees.iter().all(|callee| callee.starts_with("_ZGV"));
        let finding = if vectors {
            Finding::note("x86/vector-call-in-loop", name, evidence)
        } else {
            Finding::review("x86/call-in-loop", name, evidence)
        };
        report.push(
            finding
                .at(&place)
                .advise("inline the function, or write it as a polynomial that vectorises"),
        );
    }
    if mix.is_scalar() && mix.divisions + mix.arithmetic_total() > 0 && !is_tail(mix) {
        let evidence = format!("{} scalar operations, none on vectors", mix.arithmetic_total());
        report.push(
            Finding::review("x86/scalar-loop", name, evidence)
                .at(&place)
                .advise("read the compiler's remarks for this loop; allow reassociation or use intrinsics"),
        );
    }
    if let (Some(offered), true) = (options.widest_bits, mix.widest() >= 128)
        && mix.widest() < offered
    {
        let evidence = format!("{}-bit vectors where the machine offers {offered}", mix.widest());
        report.push(
            Finding::note("x86/narrow-vectors", name, evidence)
                .at(&place)
                .advise(
                    "-march=native -mprefer-vector-width=512, and measure: wide vectors may lower the clock",
                ),
        );
    }
    if mix.stack_loads + mix.stack_stores > 0 {
        let evidence = format!(
            "{} stack loads, {} stack stores",
            mix.stack_loads, mix.stack_stores
        );
        report.push(
            Finding::review("x86/spill-in-loop", name, evidence)
                .at(&place)
                .advise("unroll less, or keep fewer values"),
        );
    }
    if mix.gathers + mix.scatters > 0 {
        let evidence = format!("{} gathers, {} scatters", mix.gathers, mix.scatters);
        report.push(
            Finding::review("x86/gather-in-loop", name, evidence)
                .at(&place)
                .advise("make the inner index contiguous"),
        );
    }
    if mix.divisions > 0 {
        let evidence = format!("{} divisions or square roots", mix.divisions);
        report.push(
            Finding::review("x86/division-in-loop", name, evidence)
                .at(&place)
                .advise("multiply by a reciprocal that is computed once, where the tolerance allows it"),
        );
    }
    if mix.accumulators == 1 && mix.widest() >= 128 && body.unrolled == Some(1) {
        report.push(
            Finding::review(
                "x86/one-accumulator",
                name,
                "one register accumulates, one vector a turn: bound by latency",
            )
            .at(&place)
            .advise("keep 4 to 8 accumulators and add them after the loop"),
        );
    }
}

/// Remainder loops of a few scalar operations follow vector loops; they are short by construction only when nothing but
/// one element is handled, which the text does not tell. Only loops without any load are left out.
fn is_tail(mix: &Mix) -> bool {
    mix.loads.is_empty() && mix.stores.is_empty() && mix.stack_loads == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;

    fn data(name: &str, options: Options) -> Analysis {
        analyse(
            &Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("testdata/x86")
                .join(name),
            options,
        )
    }

    fn hot<'a>(analysis: &'a Analysis, name: &str) -> &'a LoopCode {
        let loops = &analysis.function(name).unwrap().loops;
        loops
            .iter()
            .filter(|body| body.range.innermost)
            .max_by_key(|body| body.mix.widest())
            .unwrap()
    }

    #[test]
    fn a_dot_product_at_v3_uses_256_bits_fma_and_one_accumulator() {
        let analysis = data(
            "fast_v3.so",
            Options {
                widest_bits: Some(512),
            },
        );
        let dot = hot(&analysis, "dot");
        assert_eq!(
            (
                dot.mix.widest(),
                dot.mix.fused,
                dot.mix.accumulators,
                dot.unrolled
            ),
            (256, 1, 1, Some(1))
        );
        assert_eq!(dot.mix.loads, [(256, 2)].into());
        let of = |id: &str| -> Vec<&str> {
            let found = analysis.report.findings.iter().filter(|finding| finding.id == id);
            found.map(|finding| finding.subject.as_str()).collect()
        };
        assert!(
            of("x86/one-accumulator").contains(&"dot"),
            "{:?}",
            analysis.report
        );
        assert!(of("x86/narrow-vectors").contains(&"dot"));
        assert_eq!(of("x86/vector-call-in-loop"), ["exps"]);
        assert_ne!(analysis.report.scale(), Scale::Clean);
    }

    #[test]
    fn unvectorised_code_shows_scalar_loops_and_calls_by_name() {
        let analysis = data("o1_v3.so", Options::default());
        let scale = hot(&analysis, "scale");
        assert!(scale.mix.is_scalar(), "{scale:?}");
        assert_eq!(scale.unrolled, Some(1));
        assert!(
            analysis
                .report
                .findings
                .iter()
                .any(|f| f.id == "x86/scalar-loop" && f.subject == "sum")
        );
        let exps = hot(&analysis, "exps");
        assert_eq!(exps.callees, ["expf"]);
        let call = analysis.report.find("x86/call-in-loop").unwrap();
        assert!(call.evidence.contains("expf"), "{call:?}");
        assert!(
            analysis
                .report
                .findings
                .iter()
                .any(|f| f.id == "x86/division-in-loop" && f.subject == "divide")
        );
    }

    #[test]
    fn four_accumulators_are_counted_and_a_nest_has_a_depth() {
        let analysis = data("o1_v3.so", Options::default());
        assert_eq!(hot(&analysis, "dot4").mix.accumulators, 4);
        let rows = &analysis.function("rows").unwrap().loops;
        assert_eq!(
            rows.iter().filter(|body| body.range.innermost).count(),
            2,
            "{rows:?}"
        );
        assert_eq!(rows.iter().map(|body| body.range.depth).max(), Some(1));
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_an_empty_library_incomplete() {
        assert_eq!(
            analyse_bytes(b"not elf", Options::default()).report.scale(),
            Scale::Error
        );
        assert_eq!(
            analyse(Path::new("/no/such/file"), Options::default())
                .report
                .scale(),
            Scale::Error
        );
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/x86/fast_v3.so");
        let data = std::fs::read(path).unwrap();
        assert_eq!(
            analyse_bytes(&data[..data.len() / 2], Options::default())
                .report
                .scale(),
            Scale::Error
        );
    }

    #[test]
    fn cut_or_changed_files_never_panic() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/x86/fast_v3.so");
        let data = std::fs::read(path).unwrap();
        for step in 1..60 {
            let mut changed = data.clone();
            for index in (step * 7..changed.len()).step_by(step * 131) {
                changed[index] ^= 0x5a;
            }
            let _ = analyse_bytes(&changed, Options::default());
            let _ = analyse_bytes(&data[..data.len() * step / 60], Options::default());
        }
    }
}

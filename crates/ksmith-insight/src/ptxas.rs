//! What `ptxas -v` writes: registers, spills, stack, memory of every kernel, and its notes about lost performance.
//!
//! Kernels come in reverse order of the source, and properties of device functions that were not inlined follow an
//! entry's block without a line of their own usage: a block is therefore opened by `Function properties` too.

use serde::{Deserialize, Serialize};

use crate::{Finding, Report, Severity};

/// What ptxas said of one compilation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ptxas {
    /// Entry functions, in the order of the text.
    pub kernels: Vec<KernelUsage>,
    /// Device functions that were not inlined.
    pub functions: Vec<FunctionUsage>,
    /// Bytes of global memory of the module: state that outlives a launch.
    pub global_bytes: u64,
    /// Findings.
    pub report: Report,
}

/// Resources of one kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelUsage {
    /// Name as the assembler has it (mangled).
    pub name: String,
    /// Architecture (`sm_90a`).
    pub arch: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Named barriers.
    pub barriers: u32,
    /// Stack frame in bytes.
    pub stack_bytes: u64,
    /// Spilled bytes stored.
    pub spill_store_bytes: u64,
    /// Spilled bytes loaded.
    pub spill_load_bytes: u64,
    /// Static shared memory in bytes; dynamic memory is the launch's.
    pub shared_bytes: u64,
    /// Constant memory in bytes, all banks.
    pub constant_bytes: u64,
    /// Whether a line of usage was seen; without one the numbers are not known.
    pub complete: bool,
}

/// Resources of a function that was not inlined.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionUsage {
    /// Name as the assembler has it.
    pub name: String,
    /// Stack frame in bytes.
    pub stack_bytes: u64,
    /// Spilled bytes stored.
    pub spill_store_bytes: u64,
    /// Spilled bytes loaded.
    pub spill_load_bytes: u64,
}

/// Parses the standard error of `nvcc -Xptxas -v` or of `ptxas -v`.
pub fn parse(text: &str) -> Ptxas {
    let mut parsed = Ptxas::default();
    // Which block the next properties and usage belong to.
    let mut entry: Option<usize> = None;
    let mut function: Option<usize> = None;
    for line in text.lines() {
        if let Some((name, arch)) = entry_of(line) {
            parsed.kernels.push(KernelUsage {
                name,
                arch,
                ..KernelUsage::default()
            });
            entry = Some(parsed.kernels.len() - 1);
            function = None;
        } else if let Some(name) = between(line, "Function properties for ", None) {
            let own = entry.is_some_and(|index| parsed.kernels[index].name == name);
            function = if own {
                None
            } else {
                parsed.functions.push(FunctionUsage {
                    name: name.to_owned(),
                    ..FunctionUsage::default()
                });
                Some(parsed.functions.len() - 1)
            };
        } else if let Some((stack, stores, loads)) = frame(line) {
            if let Some(index) = function {
                let usage = &mut parsed.functions[index];
                (usage.stack_bytes, usage.spill_store_bytes, usage.spill_load_bytes) = (stack, stores, loads);
            } else if let Some(index) = entry {
                let usage = &mut parsed.kernels[index];
                (usage.stack_bytes, usage.spill_store_bytes, usage.spill_load_bytes) = (stack, stores, loads);
            }
        } else if line.contains(": Used ") && line.contains(" registers") {
            if let Some(index) = entry {
                usage(line, &mut parsed.kernels[index]);
            }
        } else if let Some(bytes) = between(line, "info    : ", Some(" bytes gmem")) {
            parsed.global_bytes = parsed.global_bytes.max(bytes.parse().unwrap_or(0));
        } else {
            message(line, &mut parsed.report);
        }
    }
    conclude(&mut parsed);
    parsed
}

fn entry_of(line: &str) -> Option<(String, String)> {
    let rest = line.split_once("Compiling entry function '")?.1;
    let (name, rest) = rest.split_once("' for '")?;
    Some((name.to_owned(), rest.split('\'').next()?.to_owned()))
}

fn between<'a>(line: &'a str, before: &str, after: Option<&str>) -> Option<&'a str> {
    let rest = line.split_once(before)?.1;
    match after {
        Some(after) => Some(rest.split_once(after)?.0.trim()),
        None => Some(rest.trim()),
    }
}

fn number_before(line: &str, word: &str) -> Option<u64> {
    let head = line.split_once(word)?.0;
    head.split(|c: char| !c.is_ascii_digit())
        .rfind(|part| !part.is_empty())?
        .parse()
        .ok()
}

fn frame(line: &str) -> Option<(u64, u64, u64)> {
    if !line.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    Some((
        number_before(line, " bytes stack frame")?,
        number_before(line, " bytes spill stores")?,
        number_before(line, " bytes spill loads")?,
    ))
}

fn usage(line: &str, kernel: &mut KernelUsage) {
    let small = |word| number_before(line, word).and_then(|number| u32::try_from(number).ok());
    if let Some(registers) = small(" registers") {
        kernel.registers = registers;
        kernel.complete = true;
    }
    kernel.barriers = small(" barriers").unwrap_or(0);
    kernel.shared_bytes = number_before(line, " bytes smem").unwrap_or(0);
    kernel.constant_bytes = line
        .split(',')
        .filter(|part| part.contains(" bytes cmem["))
        .filter_map(|part| number_before(part, " bytes cmem["))
        .sum();
}

/// Notes with a number of their own, and what helps.
const NOTES: [(&str, &str, &str); 8] = [
    (
        "instructions are serialized",
        "ptxas/wgmma-serialised",
        "keep accumulators untouched between arrive and wait, inline all calls of that stage, and give the pipeline registers",
    ),
    (
        "warpgroup.arrive is injected",
        "ptxas/wgmma-fence-injected",
        "place wgmma.fence where registers of the accumulator are first written",
    ),
    (
        "warpgroup.wait is injected",
        "ptxas/wgmma-wait-injected",
        "wait for the group before its accumulators are read",
    ),
    (
        "'setmaxnreg' ignored",
        "ptxas/setmaxnreg-ignored",
        "add __launch_bounds__ so that the register count at entry is known",
    ),
    (
        ".minnctapersm will be ignored",
        "ptxas/launch-bounds-impossible",
        "lower the blocks per multiprocessor in __launch_bounds__",
    ),
    (
        "Overriding global maxrregcount",
        "ptxas/register-limit-overridden",
        "use either __launch_bounds__ or -maxrregcount",
    ),
    (
        "adjusting per thread register count",
        "ptxas/register-limit-raised",
        "ask for at least 24 registers",
    ),
    (
        "Register allocation failed",
        "ptxas/no-registers",
        "loosen the launch bounds",
    ),
];

fn message(line: &str, report: &mut Report) {
    let subject = || {
        let name = line
            .rsplit_once("function '")
            .or_else(|| line.rsplit_once("for entry "));
        name.map_or("", |(_, rest)| rest.split(['\'', ' ']).next().unwrap_or(""))
            .to_owned()
    };
    let text: String = line
        .split_once(" : ")
        .map_or(line, |(_, rest)| rest)
        .trim()
        .chars()
        .take(300)
        .collect();
    for (needle, id, advice) in NOTES {
        if line.contains(needle) {
            let severity = if id == "ptxas/no-registers" {
                Severity::Error
            } else {
                Severity::Review
            };
            let mut finding = Finding::new(id, severity, &subject(), text).advise(advice);
            finding.place = between(line, "in around line ", Some(" "))
                .filter(|number| number.bytes().all(|b| b.is_ascii_digit()))
                .map(|number| format!("ptx line {number}"));
            report.push(finding);
            return;
        }
    }
    if line.contains("double precision computations") {
        // One line per instruction: one finding is enough.
        if report.find("ptxas/double-precision").is_none() {
            let finding = Finding::note(
                "ptxas/double-precision",
                "",
                "the program computes in double precision",
            );
            report.push(finding.advise("write constants with an `f` and call the float functions"));
        }
    } else if line.contains("uses too much shared data") {
        report.push(
            Finding::error("ptxas/too-much-shared", &subject(), text)
                .advise("use dynamic shared memory, or smaller tiles"),
        );
    } else if line.contains("not supported on .target") {
        report.push(
            Finding::error("ptxas/wrong-target", "", text)
                .advise("compile for the architecture's `a` variant"),
        );
    } else if line.contains("error   :") || line.contains("fatal   :") || front_end_error(line) {
        report.push(Finding::error("ptxas/refused", &subject(), text));
    } else if line.starts_with("ptxas") && line.contains("Potential Performance Loss") {
        report.push(Finding::review("ptxas/performance-loss", &subject(), text));
    }
}

/// `file(line): error: text`, as the front end writes it.
fn front_end_error(line: &str) -> bool {
    line.split_once("): error").is_some_and(|(head, _)| {
        head.rsplit_once('(')
            .is_some_and(|(_, number)| number.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// Findings that follow from the numbers.
fn conclude(parsed: &mut Ptxas) {
    for kernel in &parsed.kernels {
        if !kernel.complete {
            parsed
                .report
                .missing(format!("no usage line for kernel `{}`", kernel.name));
        }
        if kernel.spill_store_bytes + kernel.spill_load_bytes > 0 {
            let evidence = format!(
                "{} B spill stores, {} B spill loads at {} registers",
                kernel.spill_store_bytes, kernel.spill_load_bytes, kernel.registers
            );
            let finding = Finding::review("ptxas/spills", &kernel.name, evidence);
            parsed
                .report
                .push(finding.advise("smaller tile, fewer live values, or looser launch bounds"));
        } else if kernel.stack_bytes > 0 {
            let evidence = format!("{} B of stack without spills", kernel.stack_bytes);
            let finding = Finding::review("ptxas/local-array", &kernel.name, evidence);
            parsed.report.push(
                finding.advise("index local arrays with constants (unroll), or keep them in shared memory"),
            );
        }
    }
    if parsed.global_bytes > 0 {
        let evidence = format!("{} B of module globals outlive a launch", parsed.global_bytes);
        parsed
            .report
            .push(Finding::note("ptxas/module-globals", "", evidence));
    }
    if parsed.kernels.is_empty() {
        parsed
            .report
            .missing("no kernel in the assembler's text (was `-v` given?)");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;

    fn data(name: &str) -> Ptxas {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("testdata/ptxas")
            .join(name);
        parse(&std::fs::read_to_string(path).unwrap())
    }

    #[test]
    fn every_kernel_of_a_real_text_is_read() {
        let parsed = data("spill_80.txt");
        let names: Vec<(&str, u32, u64)> = parsed
            .kernels
            .iter()
            .map(|k| (k.name.as_str(), k.registers, k.constant_bytes))
            .collect();
        assert_eq!(
            names,
            [("doubles", 32, 372), ("indexed", 24, 380), ("spills", 32, 372)]
        );
        let spills = &parsed.kernels[2];
        assert_eq!(
            (
                spills.stack_bytes,
                spills.spill_store_bytes,
                spills.spill_load_bytes
            ),
            (192, 352, 376)
        );
        assert_eq!(spills.arch, "sm_80");
        assert_eq!(parsed.report.scale(), Scale::Review);
        assert_eq!(parsed.report.find("ptxas/spills").unwrap().subject, "spills");
        assert_eq!(
            parsed.report.find("ptxas/local-array").unwrap().subject,
            "indexed"
        );
        assert!(parsed.report.find("ptxas/double-precision").is_some());
    }

    #[test]
    fn hopper_notes_name_the_cause_the_kernel_and_the_line() {
        let parsed = data("hopper_90a.txt");
        let serialised = parsed.report.find("ptxas/wgmma-serialised").unwrap();
        assert_eq!(serialised.subject, "tma_wgmma");
        assert!(serialised.evidence.contains("insufficient register resources"));
        let injected: Vec<_> = parsed
            .report
            .findings
            .iter()
            .filter(|f| f.id == "ptxas/wgmma-fence-injected")
            .collect();
        assert_eq!(injected.len(), 3);
        assert_eq!(injected[0].place.as_deref(), Some("ptx line 156"));
        assert_eq!(
            (parsed.kernels[0].registers, parsed.kernels[0].shared_bytes),
            (30, 16392)
        );
    }

    #[test]
    fn clean_kernels_are_clean() {
        let parsed = data("softmax_90a.txt");
        assert_eq!(parsed.kernels.len(), 2);
        assert_eq!(parsed.kernels[1].shared_bytes, 128);
        assert_eq!(parsed.report.scale(), Scale::Clean);
    }

    #[test]
    fn a_function_that_was_not_inlined_is_not_mixed_up_with_its_kernel() {
        let parsed = data("noinline_90a.txt");
        assert_eq!(parsed.functions.len(), 1);
        assert!(parsed.functions[0].name.contains("helper"));
        assert_eq!(parsed.kernels.len(), 1);
        assert!(parsed.kernels[0].complete);
    }

    #[test]
    fn refusals_are_errors_and_an_empty_text_is_incomplete() {
        let wrong = parse(
            "ptxas k.ptx, line 20; error   : Instruction 'wgmma.fence' not supported on .target 'sm_90'\n\
                           ptxas fatal   : Ptx assembly aborted due to errors\n",
        );
        assert_eq!(wrong.report.scale(), Scale::Error);
        assert!(wrong.report.find("ptxas/wrong-target").is_some());
        let shared = parse(
            "ptxas error   : Entry function 'big' uses too much shared data (0x40000 bytes, 0x38c00 max)\n",
        );
        assert_eq!(
            shared.report.find("ptxas/too-much-shared").unwrap().subject,
            "big"
        );
        assert_eq!(
            parse("k.cu(3): error: identifier \"x\" is undefined\n")
                .report
                .scale(),
            Scale::Error
        );
        assert_eq!(parse("").report.scale(), Scale::Incomplete);
        assert_eq!(
            parse("ptxas info    : Compiling entry function 'k' for 'sm_80'\n")
                .report
                .scale(),
            Scale::Incomplete
        );
    }
}

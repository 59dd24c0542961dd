//! Every stable `gate/cause` code: meaning, example, what to do. `docs/verdicts.md` is made from this file.

use std::fmt::Write as _;

use ksmith_ledger::Gate;

/// A cause: the second part of a code.
#[derive(Debug, Clone, Copy)]
pub struct Cause {
    /// Stable name.
    pub name: &'static str,
    /// What it says.
    pub meaning: &'static str,
    /// A candidate that gets it.
    pub example: &'static str,
    /// What the writer should do.
    pub action: &'static str,
}

const fn cause(
    name: &'static str,
    meaning: &'static str,
    example: &'static str,
    action: &'static str,
) -> Cause {
    Cause {
        name,
        meaning,
        example,
        action,
    }
}

/// What any call of a candidate may end with.
const CALL: [Cause; 18] = [
    cause(
        "wrong-value",
        "A finite output element lies outside `atol + rtol*|ref| + ctol*scale`.",
        "A softmax without subtraction of the maximum.",
        "Correct the mathematics; on dev cases the evidence shows the worst element.",
    ),
    cause(
        "non-finite",
        "NaN or infinity where the rounded reference has none, or the other way round.",
        "An exponential that overflows on large inputs.",
        "Keep intermediate values in range.",
    ),
    cause(
        "wrong-integer",
        "An integer or bool output differs from the reference.",
        "Truncation where the contract rounds.",
        "Use the rounding that the contract names.",
    ),
    cause(
        "wrong-index",
        "A chosen index is out of range, repeated, not among the best, or out of order.",
        "A top-k that returns one index twice.",
        "Choose distinct indices by falling score.",
    ),
    cause(
        "checker",
        "The task's own checker refused an element.",
        "A factorisation with a large residual.",
        "See the checker in the task's folder.",
    ),
    cause(
        "unwritten",
        "An output element was never written.",
        "A tail loop that stops one vector early.",
        "Write every element of every output.",
    ),
    cause(
        "gap-write",
        "Bytes between the rows of a strided output were changed.",
        "A full-width vector store at the end of a padded row.",
        "Store only the elements of the row.",
    ),
    cause(
        "late-write",
        "An output changed after the call had returned.",
        "A thread that goes on computing.",
        "Finish all work before returning.",
    ),
    cause(
        "crash",
        "A signal ended the worker.",
        "A read past the end of an input that hits the guard page.",
        "Stay inside the buffers named in the evidence.",
    ),
    cause(
        "input-write",
        "A read-only input was written to.",
        "An in-place reduction on the input.",
        "Copy to memory of your own.",
    ),
    cause(
        "canary",
        "Bytes directly around a buffer were changed.",
        "A store one element too far.",
        "Stay inside the buffer and side named in the evidence.",
    ),
    cause(
        "timeout",
        "The call did not answer in time.",
        "A loop without end.",
        "Terminate; deadlines are far above the champion's time.",
    ),
    cause(
        "out-of-memory",
        "The worker used more memory than its box has.",
        "An allocation that grows with each call.",
        "Use less scratch memory and free it.",
    ),
    cause(
        "forbidden-call",
        "A system call outside the worker's list.",
        "Opening a file or a socket.",
        "Compute only.",
    ),
    cause(
        "exited",
        "The worker ended by itself.",
        "A call of `exit`.",
        "Return from the entry function.",
    ),
    cause(
        "control-bits",
        "Rounding mode, flush-to-zero or exception masks were left changed.",
        "Setting FTZ for speed and leaving it set.",
        "Restore MXCSR before returning.",
    ),
    cause(
        "load",
        "The library could not be loaded or lacks the entry.",
        "An undefined symbol.",
        "Define what you call; export the entry as C.",
    ),
    cause(
        "protocol",
        "The worker broke the protocol with the judge.",
        "Overwriting the shared control words.",
        "Do not touch memory that is not yours.",
    ),
];

const UNABLE: Cause = cause(
    "could-not-run",
    "The judge could not run this check: no statement about the candidate.",
    "The sandbox is weaker than the task demands.",
    "Fix the machine; the evidence names the cause.",
);

/// The causes of one gate, beside [`UNABLE`], and whether those of every call belong to it.
fn causes(gate: Gate) -> (&'static [Cause], bool) {
    match gate {
        Gate::Policy => (
            const {
                &[
                    cause(
                        "language",
                        "A source in a language that the task does not allow.",
                        "A `.cpp` file in a C-only task.",
                        "Use an allowed language.",
                    ),
                    cause(
                        "library",
                        "A library that the task does not allow.",
                        "Linking a BLAS.",
                        "Write the kernel, or ask for the library in the policy.",
                    ),
                    cause(
                        "include",
                        "A source includes or embeds what it may not.",
                        "`#include` of the reference, `.incbin`.",
                        "Include system headers and your own files only.",
                    ),
                    cause(
                        "plan",
                        "The launch plan does not fit the task.",
                        "An unknown argument.",
                        "Correct the key that the evidence names.",
                    ),
                    cause(
                        "backend",
                        "The candidate is written for another backend.",
                        "A CUDA candidate before the CPU judge.",
                        "Judge it with the backend it is written for.",
                    ),
                ]
            },
            false,
        ),
        Gate::Compile => (
            const {
                &[
                    cause(
                        "error",
                        "The compiler refused a source.",
                        "A syntax error.",
                        "Read the compiler's output in the evidence.",
                    ),
                    cause(
                        "timeout",
                        "The build took too long.",
                        "Templates that expand without end.",
                        "Simplify.",
                    ),
                    cause(
                        "memory",
                        "The compiler used too much memory.",
                        "A huge generated table.",
                        "Simplify.",
                    ),
                    cause(
                        "forbidden-call",
                        "The compiler made a forbidden system call.",
                        "A compiler plugin.",
                        "Use plain sources and allowed flags.",
                    ),
                    cause(
                        "no-entry",
                        "The library does not export the entry.",
                        "A C++ function without `extern \"C\"`.",
                        "Export it with C linkage.",
                    ),
                ]
            },
            false,
        ),
        Gate::Static => (
            const {
                &[
                    cause(
                        "forbidden-import",
                        "The library imports a function outside the list of pure ones.",
                        "`open`, `clock_gettime`, `dlsym`.",
                        "Compute only; the evidence names the symbol.",
                    ),
                    cause(
                        "constructor",
                        "Code would run when the library is loaded or unloaded.",
                        "`__attribute__((constructor))`.",
                        "Initialise inside the entry.",
                    ),
                    cause(
                        "ifunc",
                        "A symbol is resolved by the candidate's code at load time.",
                        "`__attribute__((ifunc))`, `target_clones`.",
                        "Dispatch inside the entry.",
                    ),
                    cause(
                        "extra-library",
                        "The library needs another one outside the list.",
                        "A dependency on libssl.",
                        "Remove it.",
                    ),
                    cause(
                        "executable-data",
                        "A segment is writable and executable, or the stack is executable.",
                        "Hand-written code in data.",
                        "Leave code in the text section.",
                    ),
                    cause(
                        "system-call",
                        "The machine code holds a direct system call.",
                        "Inline assembly with `syscall`.",
                        "Remove it.",
                    ),
                    cause(
                        "interposition",
                        "The library exports a name that the C library or the runtime looks up.",
                        "An own `memcpy` exported from the library.",
                        "Make it static.",
                    ),
                ]
            },
            false,
        ),
        Gate::Smoke
        | Gate::Dev
        | Gate::Hidden
        | Gate::Probes
        | Gate::Traces
        | Gate::Bounds
        | Gate::PostBench => (&[], true),
        Gate::Slow => (
            const {
                &[cause(
                    "slower",
                    "More than 1.25 times slower than the champion in two workers.",
                    "An unoptimised build.",
                    "Start from a faster structure.",
                )]
            },
            true,
        ),
        Gate::State => (
            const {
                &[cause(
                    "not-resumable",
                    "A sequence cut in two gives another result than one call.",
                    "A recurrence that ignores its initial state.",
                    "Read and write the state as the contract says.",
                )]
            },
            true,
        ),
        Gate::Repeat => (
            const {
                &[cause(
                    "differs",
                    "The same inputs gave other bits in another process.",
                    "A sum whose order depends on threads.",
                    "Fix the order, or ask the task for `repeat = \"tolerance\"`.",
                )]
            },
            true,
        ),
        Gate::Poison => (
            const {
                &[cause(
                    "old-output",
                    "An output depends on what its memory held before.",
                    "Accumulation into an output that is never cleared.",
                    "Write, do not accumulate.",
                )]
            },
            true,
        ),
        Gate::Depends => (
            const {
                &[
                    cause(
                        "stale",
                        "An input element changed at the same address, and the outputs did not follow.",
                        "A cache keyed by pointer or by sampled contents.",
                        "Compute from the inputs on every call.",
                    ),
                    cause(
                        "stray-effect",
                        "Outputs changed where the reference says that they do not depend on the changed element.",
                        "State carried between calls.",
                        "Keep no state between calls.",
                    ),
                ]
            },
            true,
        ),
        Gate::Precision => (
            const {
                &[cause(
                    "too-coarse",
                    "The error against float64 exceeds both half of the tolerance and 1.5 times the baseline's.",
                    "bfloat16 arithmetic inside a float32 contract.",
                    "Compute in the precision that the contract names.",
                )]
            },
            true,
        ),
        Gate::Sanitize => (
            const {
                &[
                    cause(
                        "address",
                        "AddressSanitizer found an access outside a buffer or after its end.",
                        "A read-modify-write just before a buffer.",
                        "Read the report in the evidence.",
                    ),
                    cause(
                        "undefined",
                        "UndefinedBehaviorSanitizer found undefined behaviour.",
                        "A signed overflow in an index.",
                        "Read the report in the evidence.",
                    ),
                    cause(
                        "race",
                        "ThreadSanitizer found a data race.",
                        "Two threads adding to one counter.",
                        "Synchronise, or give each thread memory of its own.",
                    ),
                ]
            },
            true,
        ),
        Gate::Bench => (
            const {
                &[
                    cause(
                        "contradiction",
                        "Medians, means or the share of preempted calls contradict the claimed gain.",
                        "A kernel that is fast only now and then.",
                        "Be fast on every call.",
                    ),
                    cause(
                        "machine-busy",
                        "Too few calls ran undisturbed (`ambiguous`).",
                        "A compiler running beside the measurement.",
                        "Repeat on a quiet machine.",
                    ),
                    cause(
                        "noisy",
                        "The control, the champion against itself, is off zero or too wide (`error`).",
                        "A virtual machine that changes speed.",
                        "Repeat on a quieter machine.",
                    ),
                    cause(
                        "other-arm-failed",
                        "Champion, baseline or flag control failed (`error`).",
                        "A champion that is not deterministic.",
                        "Look at the evidence; the candidate is not to blame.",
                    ),
                    cause(
                        "broken",
                        "The judge failed while measuring (`error`).",
                        "A full disk.",
                        "Fix the machine.",
                    ),
                ]
            },
            true,
        ),
        Gate::Floor => (
            const {
                &[cause(
                    "impossible",
                    "Faster than 0.8 times our own fastest read, write or copy of the same bytes.",
                    "A kernel that does not touch its inputs.",
                    "Do the work.",
                )]
            },
            true,
        ),
        Gate::Clocks => (
            const {
                &[
                    cause(
                        "cpu-time",
                        "The group's CPU time exceeds what the timed calls can hold.",
                        "Threads that work between calls.",
                        "Work only inside the call.",
                    ),
                    cause(
                        "slope",
                        "Several inputs revealed together cost far less than one by one, or one far less than its share.",
                        "Work moved out of the timed call.",
                        "Do all work for a call inside it.",
                    ),
                ]
            },
            true,
        ),
        Gate::Distributions => (
            const {
                &[cause(
                    "uneven",
                    "The gain over the baseline does not hold on a timed distribution.",
                    "Cheap arithmetic when a sample looks like the usual inputs.",
                    "Be fast on all inputs, or declare `data_dependent = true` in the task.",
                )]
            },
            false,
        ),
        Gate::Gain => (
            const {
                &[
                    cause(
                        "below-floor",
                        "The gain over the champion is bounded below the floor (`reject`).",
                        "A copy of the champion.",
                        "Find a larger improvement.",
                    ),
                    cause(
                        "undecided",
                        "Correct, but the gain is not shown (`revise`, or `reject` if its estimate is not above zero).",
                        "A gain of 0.5 %.",
                        "Find a larger improvement.",
                    ),
                    cause(
                        "not-confirmed",
                        "The decision was for it, the confirmation with new processes and secrets was not.",
                        "A lucky draw.",
                        "Find a larger improvement.",
                    ),
                    cause(
                        "not-measured",
                        "Correct; timing was switched off (`revise`).",
                        "A corpus run.",
                        "Score it in full.",
                    ),
                ]
            },
            false,
        ),
        Gate::Regression => (
            const {
                &[
                    cause(
                        "slower",
                        "A workload is slower than the baseline by more than the task allows.",
                        "A kernel tuned for one shape.",
                        "Dispatch by shape.",
                    ),
                    cause(
                        "unproven",
                        "A workload's slowdown could not be bounded within the limit (`revise`).",
                        "A noisy workload.",
                        "Repeat, or improve that workload.",
                    ),
                ]
            },
            false,
        ),
    }
}

/// Every code with its cause, in the order of the gates.
pub fn all() -> Vec<(String, Cause)> {
    let mut codes = Vec::new();
    for gate in Gate::ALL {
        let (own, call) = causes(gate);
        let shared: &[Cause] = if call { &CALL } else { &[] };
        for cause in own.iter().chain(shared).chain(std::iter::once(&UNABLE)) {
            codes.push((format!("{gate}/{}", cause.name), *cause));
        }
    }
    codes
}

/// Builds a code; a test and, in debug builds, every call make sure that it is documented.
pub(crate) fn code(gate: Gate, cause: &str) -> String {
    let code = format!("{gate}/{cause}");
    debug_assert!(is_known(gate, cause), "`{code}` is not documented");
    code
}

/// Whether a gate has this cause.
pub(crate) fn is_known(gate: Gate, cause: &str) -> bool {
    let (own, call) = causes(gate);
    let shared: &[Cause] = if call { &CALL } else { &[] };
    own.iter()
        .chain(shared)
        .chain(std::iter::once(&UNABLE))
        .any(|known| known.name == cause)
}

/// The text of `docs/verdicts.md`.
pub fn document() -> String {
    let mut text = String::from(
        "# Verdicts and codes\n\n\
         Every verdict has one stable code, `gate/cause`. A failed gate is data about the candidate (`reject`);\n\
         `could-not-run` and the causes marked `error` say that the judge could not judge. For a hidden case the code is\n\
         all that a writer learns: never shape, value, index or distribution.\n\n\
         `accept/confirmed` is the one code of an accepted candidate; `screen/passed` that of a screened one.\n\n\
         This page is generated from the program's own list and checked by a test.\n\n\
         ## Causes that any call may have\n\n\
         | cause | meaning | example | what to do |\n|---|---|---|---|\n",
    );
    for cause in CALL.iter().chain(std::iter::once(&UNABLE)) {
        row(&mut text, cause.name, cause);
    }
    for gate in Gate::ALL {
        let (own, call) = causes(gate);
        let _ = write!(text, "\n## {gate}\n\n{}\n", purpose(gate));
        if call {
            text.push_str("\nAlso every cause of a call, above.\n");
        }
        if !own.is_empty() {
            text.push_str("\n| code | meaning | example | what to do |\n|---|---|---|---|\n");
            for cause in own {
                row(&mut text, &format!("{gate}/{}", cause.name), cause);
            }
        }
    }
    text
}

fn row(text: &mut String, name: &str, cause: &Cause) {
    let _ = writeln!(
        text,
        "| `{name}` | {} | {} | {} |",
        cause.meaning, cause.example, cause.action
    );
}

fn purpose(gate: Gate) -> &'static str {
    match gate {
        Gate::Policy => "Languages, libraries and includes against the task's policy.",
        Gate::Compile => "The candidate compiles in the compiler's box.",
        Gate::Static => "Imports, load-time code and segments of the library. A tripwire, not a proof.",
        Gate::Smoke => "A few tiny shapes, each compared in full.",
        Gate::Dev => "The visible workloads; evidence shows everything.",
        Gate::Slow => "Screening only: hopelessly slow candidates leave early.",
        Gate::Hidden => "Secret shapes and distributions, drawn for this scoring.",
        Gate::Probes => {
            "Pressure on known weaknesses, at small shapes and at the dev shapes, and rows of mixed kind."
        }
        Gate::Traces => "Recorded tensors.",
        Gate::State => "A sequence cut at random points gives the outputs and the final state of one call.",
        Gate::Repeat => "The same inputs in another process give the same result.",
        Gate::Bounds => "Guard pages at both edges, canaries, read-only inputs, poisoned gaps.",
        Gate::Poison => {
            "Two different poisons in the outputs: every element is written, none depends on the poison."
        }
        Gate::Depends => {
            "One input element changes at the same address: outputs follow exactly where the reference does."
        }
        Gate::Precision => {
            "The error against float64 is at most half of the tolerance, or 1.5 times the baseline's."
        }
        Gate::Sanitize => {
            "AddressSanitizer, UndefinedBehaviorSanitizer and, with threads, ThreadSanitizer at small shapes."
        }
        Gate::Bench => "The paired bench itself: are its figures fit for a statement?",
        Gate::PostBench => "The outputs of every timed call.",
        Gate::Floor => "No kernel is faster than moving its bytes.",
        Gate::Clocks => {
            "Independent clocks agree: CPU time of the whole group, and the slope over several inputs."
        }
        Gate::Distributions => {
            "The gain holds on every timed distribution, against the baseline on the same one."
        }
        Gate::Gain => "The gain over the champion, decided and confirmed.",
        Gate::Regression => "No workload becomes slower than the baseline by more than the task allows.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docs_verdicts_is_generated_from_this_list() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verdicts.md");
        if std::env::var_os("KSMITH_BLESS").is_some() {
            std::fs::write(path, document()).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap();
        assert_eq!(
            written,
            document(),
            "run the test with KSMITH_BLESS=1 to write the page anew"
        );
    }

    #[test]
    fn codes_are_unique() {
        let mut codes: Vec<String> = all().into_iter().map(|(code, _)| code).collect();
        let count = codes.len();
        codes.sort();
        codes.dedup();
        assert_eq!(codes.len(), count);
    }

    #[test]
    fn codes_made_by_the_bench_and_the_policy_are_listed() {
        for (gate, cause) in [
            (Gate::Bench, "contradiction"),
            (Gate::Bench, "machine-busy"),
            (Gate::Bench, "noisy"),
            (Gate::Bench, "other-arm-failed"),
            (Gate::Bench, "broken"),
            (Gate::Gain, "below-floor"),
            (Gate::Gain, "undecided"),
            (Gate::Gain, "not-confirmed"),
            (Gate::Policy, "language"),
            (Gate::Policy, "library"),
            (Gate::Policy, "include"),
            (Gate::Policy, "plan"),
        ] {
            assert!(is_known(gate, cause), "{gate}/{cause}");
        }
    }
}

//! The causes that belong to one gate.

use ksmith_ledger::Gate;

use super::{Cause, cause};

/// The causes of one gate, beside the one that every gate has, and whether those of every call belong to it.
pub(super) fn causes(gate: Gate) -> (&'static [Cause], bool) {
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
                        "Code of the candidate would run when the library is loaded or unloaded.",
                        "`__attribute__((constructor))`.",
                        "Initialise inside the entry.",
                    ),
                    cause(
                        "ifunc",
                        "A symbol is resolved at load time by code that does more than choose.",
                        "A resolver that fills a table. (Versions by `target_clones` are allowed.)",
                        "Choose by the processor's features only, or dispatch inside the entry.",
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
                        "The machine code holds a system call instruction.",
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
                    "The same inputs gave other bits in another process or under another schedule.",
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
                    cause(
                        "memory-kept",
                        "The process grows by the same amount with every further equal call.",
                        "A temporary that is never freed.",
                        "Free what a call takes, or take it once and keep it.",
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
                    cause(
                        "claims",
                        "On a device: the judge's clock shows more time than the worker's events claim.",
                        "A kernel that writes to the memory of the events.",
                        "Write to outputs and workspaces only.",
                    ),
                    cause(
                        "lanes-disagree",
                        "On a device: faster than the champion from cold caches, slower in a graph of calls.",
                        "Work that is left to the launch after the timed one.",
                        "Be faster in both; the evidence shows the lanes.",
                    ),
                ]
            },
            true,
        ),
        Gate::Distributions => (
            const {
                &[
                    cause(
                        "uneven",
                        "The gain over the baseline does not hold on a timed distribution, and the candidate's own time is uneven.",
                        "Cheap arithmetic when a sample looks like the usual inputs.",
                        "Be fast on all inputs, or declare `data_dependent = true` in the task.",
                    ),
                    cause(
                        "slower",
                        "Faster than the baseline on the whole, slower on a timed distribution.",
                        "A full sort where the baseline can stop early.",
                        "Be no slower than the baseline on any of the timed inputs; the evidence shows the loss.",
                    ),
                ]
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

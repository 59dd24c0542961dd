//! Every stable `gate/cause` code: meaning, example, what to do. `docs/verdicts.md` is made from this module.

mod call;
mod gate;

use std::fmt::Write as _;

use ksmith_ledger::Gate;

use call::{CALL, UNABLE};
use gate::causes;

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

/// What a gate asks, in one sentence.
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
            "The contract's probes, rows of mixed kind, and the judge's own pressure on every input (docs/probes.md)."
        }
        Gate::Traces => "Recorded tensors.",
        Gate::State => "A sequence cut at random points gives the outputs and the final state of one call.",
        Gate::Repeat => {
            "The same inputs in other processes, at other addresses and under other schedules, give the same result."
        }
        Gate::Bounds => "Guard pages at both edges, canaries, read-only inputs, poisoned gaps.",
        Gate::Poison => {
            "Two different poisons in the outputs: every element is written, none depends on the poison."
        }
        Gate::Depends => {
            "One input element changes at the same address, or two change places: outputs follow exactly where the reference does; so they do after a thousand equal calls."
        }
        Gate::Precision => {
            "The error against float64 is at most half of the tolerance, or 1.5 times the baseline's."
        }
        Gate::Sanitize => {
            "AddressSanitizer, UndefinedBehaviorSanitizer and, with threads, ThreadSanitizer at small shapes."
        }
        Gate::Bench => "The paired bench itself: are its figures fit for a statement?",
        Gate::PostBench => {
            "The outputs of every timed call, and of the contract's probes once the process is old."
        }
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
        let written = std::fs::read_to_string(path).unwrap();
        // The codes of process and review follow; their own crate writes and checks them.
        let end = written.find("\n## process\n").unwrap_or(written.len());
        if std::env::var_os("KSMITH_BLESS").is_some() {
            std::fs::write(path, format!("{}{}", document(), &written[end..])).unwrap();
            return;
        }
        assert_eq!(
            &written[..end],
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

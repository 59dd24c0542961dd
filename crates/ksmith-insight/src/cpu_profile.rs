//! A CPU profile from what the machine allows: hardware counters (`perf stat`), else instruction counts of callgrind,
//! else a static model of the code. Each names itself: a modelled number is never shown as a measured one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::x86;

/// Where the numbers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Counted by the hardware.
    PerfCounters,
    /// Counted by simulation, instruction by instruction.
    Callgrind,
    /// Estimated from the code alone.
    StaticModel,
}

/// A CPU profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpuProfile {
    /// Where the numbers come from.
    pub source: Source,
    /// Numbers by name.
    pub numbers: BTreeMap<String, f64>,
    /// Share of all instructions by function, largest first, where the source knows it.
    pub functions: Vec<(String, f64)>,
    /// What the source could not give.
    pub unavailable: Vec<String>,
}

/// Events that are asked for.
pub const EVENTS: [&str; 7] = [
    "cycles",
    "instructions",
    "branches",
    "branch-misses",
    "cache-references",
    "cache-misses",
    "L1-dcache-load-misses",
];

/// The command that counts events of a program.
pub fn perf_command(program: &[String]) -> Vec<String> {
    let events = EVENTS.map(|event| format!("{event}:u")).join(",");
    let mut command = ["perf", "stat", "-x,", "-e", events.as_str(), "--"]
        .map(str::to_owned)
        .to_vec();
    command.extend(program.iter().cloned());
    command
}

/// The command that simulates a program; its counts go to `file`.
pub fn callgrind_command(file: &str, program: &[String]) -> Vec<String> {
    let out = format!("--callgrind-out-file={file}");
    let mut command = [
        "valgrind",
        "--tool=callgrind",
        "--compress-strings=no",
        "--compress-pos=no",
        out.as_str(),
        "--",
    ]
    .map(str::to_owned)
    .to_vec();
    command.extend(program.iter().cloned());
    command
}

/// Reads the standard error of `perf stat -x,`. `None` if no event was counted: the caller then takes the next source.
pub fn perf(text: &str) -> Option<CpuProfile> {
    let mut numbers = BTreeMap::new();
    let mut unavailable = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(',').collect();
        let [count, _, event, ..] = fields[..] else {
            continue;
        };
        let event = event.trim_end_matches(":u");
        if !EVENTS.contains(&event) {
            continue;
        }
        match count.parse::<f64>() {
            Ok(count) => {
                numbers.insert(event.replace('-', "_"), count);
            }
            Err(_) => unavailable.push(event.to_owned()),
        }
    }
    if numbers.is_empty() {
        return None;
    }
    if let (Some(instructions), Some(cycles)) = (numbers.get("instructions"), numbers.get("cycles"))
        && *cycles > 0.0
    {
        let ratio = instructions / cycles;
        numbers.insert("instructions_per_cycle".to_owned(), ratio);
    }
    Some(CpuProfile {
        source: Source::PerfCounters,
        numbers,
        functions: Vec::new(),
        unavailable,
    })
}

/// Reads a `callgrind.out` file: instructions by function, without those of its callees. `None` if it holds no cost.
pub fn callgrind(text: &str) -> Option<CpuProfile> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut costs: BTreeMap<String, f64> = BTreeMap::new();
    let mut function: Option<String> = None;
    let mut inclusive = false;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("fn=") {
            function = Some(resolve(rest, &mut names));
        } else if let Some(rest) = line.strip_prefix("cfn=") {
            resolve(rest, &mut names);
        } else if line.starts_with("calls=") {
            // The next line is the cost of the callee.
            inclusive = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || c == '+' || c == '-' || c == '*') {
            let cost = line
                .split_whitespace()
                .nth(1)
                .and_then(|word| word.parse::<f64>().ok());
            if let (Some(cost), Some(name), false) = (cost, &function, inclusive) {
                *costs.entry(name.clone()).or_default() += cost;
            }
            inclusive = false;
        }
    }
    let total: f64 = costs.values().sum();
    if total <= 0.0 {
        return None;
    }
    let mut functions: Vec<(String, f64)> = costs
        .into_iter()
        .map(|(name, cost)| (name, cost / total))
        .collect();
    functions.sort_by(|one, two| two.1.total_cmp(&one.1).then_with(|| one.0.cmp(&two.0)));
    Some(CpuProfile {
        source: Source::Callgrind,
        numbers: BTreeMap::from([("instructions".to_owned(), total)]),
        functions,
        unavailable: vec!["time: callgrind counts instructions, not cycles".to_owned()],
    })
}

/// `(12) name` defines a number, `(12)` uses it; plain names stand for themselves.
fn resolve(text: &str, names: &mut BTreeMap<String, String>) -> String {
    let Some((number, name)) = text.strip_prefix('(').and_then(|rest| rest.split_once(')')) else {
        return text.to_owned();
    };
    let name = name.trim();
    if name.is_empty() {
        return names
            .get(number)
            .cloned()
            .unwrap_or_else(|| format!("({number})"));
    }
    names.insert(number.to_owned(), name.to_owned());
    name.to_owned()
}

/// Estimates cycles of one turn of the innermost loop with the widest arithmetic of a function.
///
/// The model: two vector operations, two loads and one store a cycle; four cycles of latency for each step of an
/// accumulator chain; ten cycles for a division or square root of one vector. It ranks bounds within a loop; it does
/// not predict time.
pub fn static_model(code: &x86::Analysis, function: &str) -> Option<CpuProfile> {
    let function = code.function(function)?;
    let hot = function
        .loops
        .iter()
        .filter(|body| body.range.innermost)
        .max_by_key(|body| (body.mix.widest(), body.mix.arithmetic_total()))?;
    let mix = &hot.mix;
    let loads: u32 = mix.loads.values().sum::<u32>() + mix.stack_loads;
    let stores: u32 = mix.stores.values().sum::<u32>() + mix.stack_stores;
    let chain = if mix.accumulators > 0 {
        let steps = mix
            .arithmetic_total()
            .min(hot.unrolled.unwrap_or(1).max(mix.accumulators));
        4.0 * f64::from(steps.div_ceil(mix.accumulators))
    } else {
        0.0
    };
    let bounds = [
        (
            "arithmetic_cycles",
            f64::from(mix.arithmetic_total() + mix.shuffles + mix.conversions) / 2.0,
        ),
        ("load_cycles", f64::from(loads) / 2.0),
        ("store_cycles", f64::from(stores)),
        ("chain_cycles", chain),
        ("division_cycles", 10.0 * f64::from(mix.divisions)),
        ("issue_cycles", f64::from(mix.total) / 4.0),
    ];
    let turn = bounds.iter().map(|(_, cycles)| *cycles).fold(0.0, f64::max);
    let mut numbers: BTreeMap<String, f64> = bounds
        .iter()
        .map(|(name, cycles)| ((*name).to_owned(), *cycles))
        .collect();
    numbers.insert("modelled_cycles_per_turn".to_owned(), turn);
    numbers.insert("widest_bits".to_owned(), f64::from(mix.widest()));
    let mut unavailable =
        vec!["time, caches and branches: this is a model of the code, nothing was run".to_owned()];
    if !hot.callees.is_empty() {
        unavailable.push(format!("cost of {}", hot.callees.join(", ")));
    }
    Some(CpuProfile {
        source: Source::StaticModel,
        numbers,
        functions: Vec::new(),
        unavailable,
    })
}

impl CpuProfile {
    /// The profile as one line, with its source first.
    pub fn line(&self) -> String {
        let source = match self.source {
            Source::PerfCounters => "hardware counters",
            Source::Callgrind => "callgrind (instructions, simulated)",
            Source::StaticModel => "static model (nothing was run)",
        };
        let numbers: Vec<String> = self
            .numbers
            .iter()
            .map(|(name, value)| format!("{name} {value:.2}"))
            .collect();
        let functions: Vec<String> = self
            .functions
            .iter()
            .take(3)
            .map(|(name, share)| format!("{name} {:.0} %", 100.0 * share))
            .collect();
        let mut line = format!("{source}: {}", numbers.join(", "));
        if !functions.is_empty() {
            line.push_str(&format!("; {}", functions.join(", ")));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn data(name: &str) -> String {
        std::fs::read_to_string(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("testdata/cpu")
                .join(name),
        )
        .unwrap()
    }

    #[test]
    fn counters_are_read_and_a_machine_without_them_gives_none() {
        let text = "1204567,,instructions:u,812345,100.00,1.20,insn per cycle\n\
                    998877,,cycles:u,812345,100.00,,\n<not counted>,,cache-misses:u,0,0.00,,\n";
        let profile = perf(text).unwrap();
        assert_eq!(profile.source, Source::PerfCounters);
        assert!((profile.numbers["instructions_per_cycle"] - 1.2059).abs() < 1e-3);
        assert_eq!(profile.unavailable, ["cache-misses"]);
        assert_eq!(perf(&data("perf_in_virtual_machine.txt")), None);
    }

    #[test]
    fn callgrind_counts_are_split_by_function_without_callees() {
        let profile = callgrind(&data("callgrind.out")).unwrap();
        assert_eq!(profile.source, Source::Callgrind);
        let (name, share) = &profile.functions[0];
        assert_eq!(name, "work");
        assert!(*share > 0.5, "{profile:?}");
        assert!((profile.functions.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-9);
        assert_eq!(callgrind("events: Ir\n"), None);
    }

    #[test]
    fn the_model_names_itself_and_sees_the_chain() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/x86/fast_v3.so");
        let code = x86::analyse(&path, x86::Options::default());
        let dot = static_model(&code, "dot").unwrap();
        assert_eq!(
            dot.numbers["modelled_cycles_per_turn"],
            dot.numbers["chain_cycles"]
        );
        assert!(dot.line().starts_with("static model (nothing was run)"));
        assert_eq!(static_model(&code, "no-such-function"), None);
    }

    #[test]
    fn commands_name_every_event_and_the_file() {
        let line = perf_command(&["./a".to_owned()]).join(" ");
        assert!(line.starts_with("perf stat -x, -e cycles:u,instructions:u,") && line.ends_with("-- ./a"));
        assert!(callgrind_command("o", &["./a".to_owned()]).contains(&"--callgrind-out-file=o".to_owned()));
    }
}

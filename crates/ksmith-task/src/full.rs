//! The expanded contract as TOML: what `lint --full` prints and what is locked. It parses back to the same contract.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fmt::Write as _;

use crate::contract::{
    AxisKind, Compare, Domain, Goals, Lane, NonFinite, Overflow, PeerKind, Phase, Repeat, ScalarSource, Stop,
    TypeName,
};
use crate::expr::{Expr, Value};
use crate::resolve::print_duration;
use crate::{DType, Task};

/// A TOML string.
fn text(value: impl Display) -> String {
    toml::Value::String(value.to_string()).to_string()
}

/// A TOML number for constants, a string for the rest.
fn formula(expr: &Expr) -> String {
    match expr.as_constant() {
        Some(Value::Int(value)) => value.to_string(),
        Some(Value::Float(value)) => float(value),
        Some(Value::Bool(_) | Value::DType(_)) | None => text(expr),
    }
}

fn float(value: f64) -> String {
    toml::Value::Float(value).to_string()
}

/// One number, or a table by backend.
fn goals(goals: Goals) -> String {
    if goals.cpu == goals.cuda {
        return float(goals.cpu);
    }
    Inline::new()
        .put("cpu", float(goals.cpu))
        .put("cuda", float(goals.cuda))
        .end()
}

fn list<T>(items: impl IntoIterator<Item = T>, show: impl Fn(T) -> String) -> String {
    format!("[{}]", items.into_iter().map(show).collect::<Vec<_>>().join(", "))
}

fn table<K: Display, V>(entries: impl IntoIterator<Item = (K, V)>, show: impl Fn(V) -> String) -> String {
    let entries: Vec<_> = entries
        .into_iter()
        .map(|(key, value)| format!("{} = {}", quote_key(&key), show(value)))
        .collect();
    if entries.is_empty() {
        "{}".to_owned()
    } else {
        format!("{{ {} }}", entries.join(", "))
    }
}

fn quote_key(key: &impl Display) -> String {
    let key = key.to_string();
    let bare = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare { key } else { text(key) }
}

/// Entries of one inline table, in order.
struct Inline(Vec<(&'static str, String)>);

impl Inline {
    fn new() -> Self {
        Self(Vec::new())
    }

    fn put(mut self, key: &'static str, value: String) -> Self {
        self.0.push((key, value));
        self
    }

    fn maybe(self, key: &'static str, value: Option<String>) -> Self {
        match value {
            Some(value) => self.put(key, value),
            None => self,
        }
    }

    fn end(self) -> String {
        table(self.0, |value| value)
    }
}

fn type_name(name: &TypeName) -> String {
    match name {
        TypeName::Fixed(dtype) => text(dtype),
        TypeName::Variable(variable) => text(variable),
    }
}

fn per_type(map: &BTreeMap<DType, Expr>) -> Option<String> {
    (!map.is_empty()).then(|| table(map, formula))
}

fn domain(domain: &Domain) -> String {
    text(match (domain.low, domain.high) {
        (Some(low), Some(high)) => format!("{low:?}..{high:?}"),
        (Some(low), None) => format!("{} {low:?}", if domain.low_included { ">=" } else { ">" }),
        (None, Some(high)) => format!("{} {high:?}", if domain.high_included { "<=" } else { "<" }),
        (None, None) => "finite".to_owned(),
    })
}

fn compare(compare: &Compare<Expr>) -> String {
    match compare {
        Compare::Elementwise => text("elementwise"),
        Compare::Exact => text("exact"),
        Compare::Rounded { tie } => Inline::new()
            .put("mode", text("rounded"))
            .put("tie", formula(tie))
            .end(),
        Compare::Index { of, axis, k, tie } => Inline::new()
            .put("mode", text("index"))
            .put("of", text(of))
            .put("axis", axis.to_string())
            .put("k", formula(k))
            .put("tie", formula(tie))
            .end(),
        Compare::Checker { source } => Inline::new().put("checker", text(source.display())).end(),
    }
}

impl Task {
    /// The expanded contract as TOML: every default of the family and of the format is written out.
    pub fn full(&self) -> String {
        let contract = self.contract();
        let mut out = format!(
            "schema = {}\nname = {}\nfamily = {}\n",
            contract.schema,
            text(&contract.name),
            text(&contract.family)
        );
        let mut line = |key: &str, value: String| {
            let _ = writeln!(out, "{key} = {value}");
        };
        let types = contract.types.iter().map(|variable| (&variable.name, variable));
        line(
            "types",
            table(types, |variable| {
                if variable.backends.is_empty() {
                    return list(&variable.dtypes, text);
                }
                let backends = variable
                    .backends
                    .iter()
                    .map(|(backend, dtypes)| (backend.name(), dtypes));
                table(backends, |dtypes| list(dtypes, text))
            }),
        );
        let axes = contract.axes.iter().map(|axis| (&axis.name, &axis.kind));
        line(
            "axes",
            table(axes, |kind| match kind {
                AxisKind::Range {
                    min,
                    max,
                    multiple_of,
                } => Inline::new()
                    .put("min", min.to_string())
                    .put("max", max.to_string())
                    .put("multiple_of", multiple_of.to_string())
                    .end(),
                AxisKind::Values(values) => Inline::new().put("values", list(values, i64::to_string)).end(),
                AxisKind::Expr(expr) => Inline::new().put("expr", text(expr)).end(),
            }),
        );
        line("constraints", list(&contract.constraints, text));
        line(
            "inputs",
            lines(contract.inputs.iter().map(|input| {
                Inline::new()
                    .put("name", text(&input.name))
                    .put("dtype", type_name(&input.dtype))
                    .put("shape", list(&input.shape, formula))
                    .put("fill", text(&input.fill))
                    .put("hidden", list(&input.hidden, text))
                    .maybe("domain", input.domain.as_ref().map(domain))
                    .maybe(
                        "strides",
                        input.strides.as_ref().map(|strides| list(strides, formula)),
                    )
                    .maybe("align", input.align.map(|align| align.to_string()))
                    .put("static", input.is_static.to_string())
                    .end()
            })),
        );
        line(
            "scalars",
            lines(contract.scalars.iter().map(|scalar| {
                let start = Inline::new()
                    .put("name", text(&scalar.name))
                    .put("dtype", type_name(&scalar.dtype));
                match &scalar.source {
                    ScalarSource::Value(expr) => start.put("value", formula(expr)).end(),
                    ScalarSource::Fill(fill) => start.put("fill", text(fill)).end(),
                }
            })),
        );
        line(
            "outputs",
            lines(contract.outputs.iter().map(|output| {
                Inline::new()
                    .put("name", text(&output.name))
                    .put("dtype", type_name(&output.dtype))
                    .put("shape", list(&output.shape, formula))
                    .maybe(
                        "strides",
                        output
                            .strides
                            .as_ref()
                            .filter(|_| output.inplace.is_none())
                            .map(|s| list(s, formula)),
                    )
                    .maybe("align", output.align.map(|align| align.to_string()))
                    .maybe("atol", per_type(&output.atol))
                    .maybe("rtol", per_type(&output.rtol))
                    .maybe("ctol", per_type(&output.ctol))
                    .put("scale", output.scale.to_string())
                    .put("compare", compare(&output.compare))
                    .maybe("inplace", output.inplace.as_ref().map(text))
                    .maybe("state_of", output.state_of.as_ref().map(text))
                    .maybe("cut", output.cut.as_ref().map(text))
                    .maybe("along", output.along.as_ref().map(text))
                    .put(
                        "overflow",
                        text(match output.overflow {
                            Overflow::Inf => "inf",
                            Overflow::Saturate => "saturate",
                            Overflow::Nan => "nan",
                        }),
                    )
                    .end()
            })),
        );
        line(
            "reference",
            Inline::new()
                .put("source", text(contract.reference.source.display()))
                .put("entry", text(&contract.reference.entry))
                .put("threads", contract.reference.threads.to_string())
                .maybe(
                    "cuda",
                    contract
                        .reference
                        .cuda
                        .as_ref()
                        .map(|folder| text(folder.display())),
                )
                .end(),
        );
        if let Some(generator) = &contract.generator {
            let inline = Inline::new().put("source", text(generator.source.display()));
            line("generator", inline.put("entry", text(&generator.entry)).end());
        }
        self.full_hidden(&mut line);
        self.full_run(&mut line);
        out
    }

    fn full_hidden(&self, line: &mut impl FnMut(&str, String)) {
        let hidden = &self.contract().hidden;
        line("hidden.cases", hidden.cases.to_string());
        line("hidden.shapes", hidden.shapes.to_string());
        line(
            "hidden.distributions",
            lines(hidden.distributions.iter().map(|distribution| {
                let fills = table(&distribution.fills, text);
                Inline::new()
                    .put("name", text(&distribution.name))
                    .put("fill", fills)
                    .end()
            })),
        );
        line(
            "hidden.probes",
            lines(hidden.probes.iter().map(|probe| {
                Inline::new()
                    .put("name", text(&probe.name))
                    .put("fill", table(&probe.fills, text))
                    .put("axes", table(&probe.axes, i64::to_string))
                    .end()
            })),
        );
        line(
            "hidden.traces",
            lines(hidden.traces.iter().map(|trace| {
                Inline::new()
                    .put("file", text(trace.file.display()))
                    .put("map", table(&trace.map, text))
                    .put("axes", table(&trace.axes, i64::to_string))
                    .end()
            })),
        );
        line("hidden.max_bytes", hidden.max_bytes.to_string());
        line("hidden.max_flops", float(hidden.max_flops));
        let limit = std::time::Duration::try_from_secs_f64(hidden.scoring_limit_s).unwrap_or_default();
        line("hidden.scoring_limit", text(print_duration(limit)));
    }

    fn full_run(&self, line: &mut impl FnMut(&str, String)) {
        let contract = self.contract();
        let cost = Inline::new()
            .maybe("bytes", contract.cost.bytes.as_ref().map(formula))
            .maybe("flops", contract.cost.flops.as_ref().map(formula));
        line("cost", cost.end());
        line(
            "workloads",
            lines(contract.workloads.iter().map(|workload| {
                let backends = &workload.backends;
                Inline::new()
                    .put("name", text(&workload.name))
                    .put("axes", table(&workload.axes, i64::to_string))
                    .put("weight", float(workload.weight))
                    .maybe(
                        "backends",
                        (!backends.is_empty()).then(|| list(backends, |b| text(b.name()))),
                    )
                    .maybe(
                        "phase",
                        workload.phase.map(|phase| {
                            text(match phase {
                                Phase::Prefill => "prefill",
                                Phase::Decode => "decode",
                                Phase::Train => "train",
                            })
                        }),
                    )
                    .end()
            })),
        );
        let baseline = contract
            .baseline
            .iter()
            .map(|(backend, folder)| (backend.name(), folder.display()));
        line("baseline", table(baseline, text));
        line(
            "peers",
            lines(contract.peers.iter().map(|peer| {
                Inline::new()
                    .put("name", text(&peer.name))
                    .put(
                        "kind",
                        text(match peer.kind {
                            PeerKind::Eager => "eager",
                            PeerKind::Compile => "compile",
                            PeerKind::Library => "library",
                            PeerKind::Candidate => "candidate",
                        }),
                    )
                    .maybe(
                        "source",
                        peer.source.as_ref().map(|source| text(source.display())),
                    )
                    .end()
            })),
        );
        line("seeds", list(&contract.seeds, |seed| text(seed.display())));
        let performance = &contract.performance;
        let protocol = &performance.protocol;
        let mut inline = Inline::new()
            .put("goal", goals(performance.goal))
            .put(
                "stop",
                text(if performance.stop == Stop::Goal {
                    "goal"
                } else {
                    "budget"
                }),
            )
            .put("max_regression", float(performance.max_regression))
            .put("min_gain", float(performance.min_gain));
        inline = if protocol.name == "custom" {
            inline
                .put("warmup", protocol.warmup.to_string())
                .put("repeats", protocol.repeats.to_string())
                .put("rounds", protocol.rounds.to_string())
        } else {
            inline.put("protocol", text(&protocol.name))
        };
        inline = inline
            .put("data_dependent", performance.data_dependent.to_string())
            .put(
                "lane",
                text(if performance.lane == Lane::Batched {
                    "batched"
                } else {
                    "single"
                }),
            );
        line("performance", inline.end());
        let correctness = &contract.correctness;
        line(
            "correctness",
            Inline::new()
                .put(
                    "nonfinite",
                    text(if correctness.nonfinite == NonFinite::Match {
                        "match"
                    } else {
                        "forbid"
                    }),
                )
                .put(
                    "repeat",
                    text(if correctness.repeat == Repeat::Tolerance {
                        "tolerance"
                    } else {
                        "bitwise"
                    }),
                )
                .end(),
        );
        let budget = &contract.budget;
        line(
            "budget",
            Inline::new()
                .put("wall", text(print_duration(budget.wall)))
                .put("candidates", budget.candidates.to_string())
                .put("cost_usd", float(budget.cost_usd))
                .maybe("tokens", budget.tokens.map(|tokens| tokens.to_string()))
                .maybe("device", budget.device.map(|device| text(print_duration(device))))
                .maybe("device_usd_per_hour", budget.device_usd_per_hour.map(float))
                .end(),
        );
        let policy = &contract.policy;
        line(
            "policy",
            Inline::new()
                .put("languages", list(&policy.languages, text))
                .maybe("threads", policy.threads.map(|threads| threads.to_string()))
                .put("libraries", list(&policy.libraries, text))
                .put("compute", list(&policy.compute, text))
                .maybe("isolation", policy.isolation.as_ref().map(text))
                .end(),
        );
        line("environment", table(&contract.environment.0, text));
    }
}

/// An array with one entry per line.
fn lines(entries: impl Iterator<Item = String>) -> String {
    let entries: Vec<_> = entries.collect();
    if entries.is_empty() {
        "[]".to_owned()
    } else {
        format!("[\n  {},\n]", entries.join(",\n  "))
    }
}

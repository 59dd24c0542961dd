//! Goal, correctness, budget, policy, peers and pins.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::context::Context;
use crate::ContractError;
use crate::contract::{
    Backend, Budget, Correctness, Environment, Goals, Lane, NonFinite, Peer, PeerKind, Performance, Policy,
    Protocol, Repeat, Stop,
};
use crate::document::{
    At, BudgetDocument, CorrectnessDocument, Ordered, PeerDocument, PerBackend, PerformanceDocument,
    PolicyDocument, TextOr,
};
use crate::nearest::nearest;

impl Context<'_> {
    pub(super) fn performance(
        &self,
        document: &At<PerformanceDocument>,
        baselines: &BTreeMap<Backend, PathBuf>,
    ) -> Result<Performance, ContractError> {
        let number = |value: &Option<At<f64>>, default, low, high, what: &str| match value {
            Some(value) => self.within(value, low, high, what),
            None => Ok(default),
        };
        Ok(Performance {
            goal: self.goals(&document.goal, baselines)?,
            stop: document.stop.unwrap_or(Stop::Budget),
            max_regression: number(&document.max_regression, 0.02, 0.0, 1.0, "max_regression")?,
            min_gain: number(&document.min_gain, 0.01, 0.005, 1.0, "min_gain")?,
            protocol: self.protocol(document)?,
            data_dependent: document.data_dependent.unwrap_or(false),
            lane: document.lane.unwrap_or(Lane::Single),
        })
    }

    /// Every backend with a baseline needs a goal.
    fn goals(
        &self,
        goal: &At<PerBackend>,
        baselines: &BTreeMap<Backend, PathBuf>,
    ) -> Result<Goals, ContractError> {
        let one = |value: f64, span: &std::ops::Range<usize>| {
            let value = At {
                span: span.clone(),
                value,
            };
            self.within(&value, 1e-3, 1.0, "goal")
        };
        let each = match &goal.value {
            PerBackend::All(value) => {
                let goal = one(*value, &goal.span)?;
                return Ok(Goals {
                    cpu: goal,
                    cuda: goal,
                });
            }
            PerBackend::Each(each) => each,
        };
        let on = |backend: Backend, given: &Option<At<f64>>, other: &Option<At<f64>>| match (given, other) {
            (Some(value), _) => one(value.value, &value.span),
            (None, Some(other)) if !baselines.contains_key(&backend) => one(other.value, &other.span),
            (None, _) => Err(self
                .error(&goal.span, format!("backend `{}` has no goal", backend.name()))
                .expected("expected one for each backend with a baseline")),
        };
        Ok(Goals {
            cpu: on(Backend::Cpu, &each.cpu, &each.cuda)?,
            cuda: on(Backend::Cuda, &each.cuda, &each.cpu)?,
        })
    }

    fn protocol(&self, document: &PerformanceDocument) -> Result<Protocol, ContractError> {
        let numbers = [&document.warmup, &document.repeats, &document.rounds];
        let given = numbers.iter().find_map(|number| number.as_ref());
        let preset = match &document.protocol {
            None => Protocol::preset("course"),
            Some(name) => {
                let known = Protocol::PRESETS.map(|preset| preset.0);
                let preset = Protocol::preset(name).ok_or_else(|| {
                    self.error(&name.span, format!("there is no protocol `{}`", name.value))
                        .expected(format!("expected one of {}", known.join(", ")))
                        .maybe_help(nearest(name, known).map(|near| format!("did you mean `{near}`?")))
                })?;
                if let Some(given) = given {
                    return Err(self
                        .error(&given.span, "the protocol's numbers are given twice")
                        .expected("expected `protocol` or numbers"));
                }
                Some(preset)
            }
        };
        let preset = preset.unwrap_or(Protocol {
            name: "course".to_owned(),
            warmup: 5,
            repeats: 30,
            rounds: 1,
        });
        for number in [&document.repeats, &document.rounds].into_iter().flatten() {
            if number.value == 0 || number.value > 100_000 {
                return Err(self
                    .error(&number.span, format!("{} calls measure nothing", number.value))
                    .expected("expected 1 to 100000"));
            }
        }
        let value =
            |number: &Option<At<u32>>, default| number.as_ref().map_or(default, |number| number.value);
        Ok(Protocol {
            warmup: value(&document.warmup, preset.warmup),
            repeats: value(&document.repeats, preset.repeats),
            rounds: value(&document.rounds, preset.rounds),
            name: if given.is_some() {
                "custom".to_owned()
            } else {
                preset.name
            },
        })
    }

    pub(super) fn correctness(&self, document: &CorrectnessDocument) -> Correctness {
        Correctness {
            nonfinite: document.nonfinite.unwrap_or(NonFinite::Forbid),
            repeat: document.repeat.unwrap_or(Repeat::Bitwise),
        }
    }

    pub(super) fn budget(&self, document: &BudgetDocument) -> Result<Budget, ContractError> {
        let duration = |text: &Option<At<String>>| text.as_ref().map(|text| self.duration(text)).transpose();
        let money = |value: &Option<At<f64>>, what| {
            value
                .as_ref()
                .map(|value| self.within(value, 0.0, 1e9, what))
                .transpose()
        };
        Ok(Budget {
            wall: duration(&document.wall)?.unwrap_or(Duration::from_secs(1200)),
            candidates: document.candidates.as_ref().map_or(60, |count| count.value),
            cost_usd: money(&document.cost_usd, "cost_usd")?.unwrap_or(5.0),
            tokens: document.tokens.as_ref().map(|count| count.value),
            device: duration(&document.device)?,
            device_usd_per_hour: money(&document.device_usd_per_hour, "device_usd_per_hour")?,
        })
    }

    pub(super) fn policy(&self, document: &PolicyDocument) -> Result<Policy, ContractError> {
        let word = |value: &At<String>, known: &[&str], what: &str| {
            if known.contains(&value.value.as_str()) {
                return Ok(value.value.clone());
            }
            Err(self
                .error(
                    &value.span,
                    format!("`{}` is not {what}", value.value.escape_debug()),
                )
                .expected(format!("expected one of {}", known.join(", ")))
                .maybe_help(
                    nearest(value, known.iter().copied()).map(|near| format!("did you mean `{near}`?")),
                ))
        };
        let languages = document.languages.as_deref().unwrap_or_default();
        let libraries = document.libraries.as_deref().unwrap_or_default();
        let compute = document.compute.as_deref().unwrap_or_default();
        if let Some(threads) = document.threads.as_ref().filter(|threads| threads.value == 0) {
            return Err(self
                .error(&threads.span, "a candidate needs a thread")
                .expected("expected 1 or more"));
        }
        if let Some(dtype) = compute.iter().find(|dtype| !dtype.value.is_float()) {
            return Err(self
                .error(&dtype.span, format!("`{}` is no precision", dtype.value))
                .expected("expected a float dtype"));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+');
        if let Some(bad) = libraries
            .iter()
            .find(|name| name.is_empty() || !name.chars().all(plain))
        {
            return Err(self
                .error(
                    &bad.span,
                    format!("`{}` is not a library", bad.value.escape_debug()),
                )
                .expected("expected a name without path"));
        }
        Ok(Policy {
            languages: languages
                .iter()
                .map(|language| word(language, &["c", "c++", "cuda", "ptx"], "a language"))
                .collect::<Result<Vec<_>, _>>()?,
            threads: document.threads.as_ref().map(|threads| threads.value),
            libraries: libraries.iter().map(|library| library.value.clone()).collect(),
            compute: compute.iter().map(|dtype| dtype.value).collect(),
            isolation: document
                .isolation
                .as_ref()
                .map(|level| word(level, &["box", "kernel", "limits", "none"], "an isolation level"))
                .transpose()?,
        })
    }

    pub(super) fn peers(&self, documents: &[At<TextOr<PeerDocument>>]) -> Result<Vec<Peer>, ContractError> {
        documents.iter().map(|document| self.peer(document)).collect()
    }

    fn peer(&self, document: &At<TextOr<PeerDocument>>) -> Result<Peer, ContractError> {
        match &document.value {
            TextOr::Text(word) => {
                let kind = match word.as_str() {
                    "eager" => PeerKind::Eager,
                    "compile" => PeerKind::Compile,
                    other => {
                        return Err(self
                            .error(&document.span, format!("`{other}` is not a peer by itself"))
                            .expected("expected eager, compile, or a table")
                            .help("a library: `{ name = \"..\", kind = \"library\", source = \"..\" }`"));
                    }
                };
                Ok(Peer {
                    name: word.clone(),
                    kind,
                    source: None,
                })
            }
            TextOr::Table(table) => {
                let source = table
                    .source
                    .as_ref()
                    .map(|source| self.relative(source))
                    .transpose()?;
                let needs = matches!(table.kind.value, PeerKind::Library | PeerKind::Candidate);
                if needs && source.is_none() {
                    return Err(self
                        .error(
                            &document.span,
                            format!("peer `{}` has no source", table.name.value),
                        )
                        .expected("expected `source`"));
                }
                Ok(Peer {
                    name: table.name.value.clone(),
                    kind: table.kind.value,
                    source,
                })
            }
        }
    }

    pub(super) fn environment(&self, pins: &Ordered<At<String>>) -> Result<Environment, ContractError> {
        let mut checked = BTreeMap::new();
        for (name, pattern) in &pins.0 {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '*' | '-' | '_' | '+' | ' ');
            if pattern.is_empty() || !pattern.chars().all(plain) {
                return Err(self
                    .error(
                        &pattern.span,
                        format!("`{}` is not a version", pattern.value.escape_debug()),
                    )
                    .expected("expected for example \"13.*\""));
            }
            checked.insert(name.value.clone(), pattern.value.clone());
        }
        Ok(Environment(checked))
    }
}

//! The model gateway of a run: one account for writer and reviewer, calls on record before they are answered, and answers
//! of a step that a kill cut short served again instead of being paid for twice.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ksmith_agents::gateway::{
    Answered, Body, Call, Endpoint, Gateway, Limits, Meter, Options, PriceTable, ProviderError, Recorded,
    Replay, Sent, Sink, Spent, WRITER, Wire, find_upstream, shape,
};
use ksmith_agents::writers::ModelFacts;
use ksmith_ledger::{
    BlobRef, Entry, ModelAccount, ModelCall, ModelSent, ObjectStore, ReadError, ToolCall, read_records,
};
use ksmith_task::chain;

use crate::workshop::Setting;
use crate::{AgentHost, Budget, Memory, Recorder, RunError};

/// The account of a run's models: what may be spent, what is spent, and what a killed step has asked already.
#[derive(Debug, Clone)]
pub struct Account {
    /// The shared meter.
    pub meter: Arc<Meter>,
    /// Calls of the step that is not on record yet.
    pub unfinished: Vec<ModelCall>,
    /// Calls of tools by that step.
    pub unfinished_tools: Vec<ToolCall>,
}

impl Account {
    /// The account of a new run.
    pub fn new(budget: &Budget) -> Self {
        Self::with(budget, &ModelAccount::default(), &[])
    }

    /// The account of a run with these records.
    pub fn of(memory: &Memory) -> Self {
        Self::with(&memory.budget(), &memory.models, &memory.tools_since_step)
    }

    fn with(budget: &Budget, records: &ModelAccount, tools: &[ToolCall]) -> Self {
        let totals = records.totals();
        let spent = Spent {
            calls: totals.calls,
            input_tokens: totals.tokens_in,
            output_tokens: totals.tokens_out,
            dollars: totals.cost_usd,
            estimated_dollars: totals.estimated_usd,
        };
        let limits = Limits {
            dollars: Some(budget.cost_usd).filter(|dollars| dollars.is_finite()),
            tokens: budget.tokens,
            calls: None,
        };
        Self {
            meter: Meter::going_on(limits, spent, records.next()),
            unfinished: records.since_step().to_vec(),
            unfinished_tools: tools.to_vec(),
        }
    }
}

/// Why a model cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Its server, key or price is not known.
    #[error("{what}")]
    Usage {
        /// What is wrong.
        what: String,
        /// What to do.
        fix: String,
    },
    /// Its key is not in the environment.
    #[error("{what}")]
    NoKey {
        /// What is missing.
        what: String,
        /// What to do.
        fix: String,
    },
    /// A table of the user's own cannot be read.
    #[error("cannot read `{}`", path.display())]
    Prices {
        /// The table.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The gateway does not start.
    #[error("the model gateway: {0}")]
    Gateway(String),
}

/// Which model, and where it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) model: &'a str,
    /// The format that an agent speaks, if it speaks one only.
    pub(crate) wire: Option<Wire>,
    pub(crate) endpoint: &'a Endpoint,
    /// A price table of the user's own.
    pub(crate) prices: Option<&'a Path>,
    /// The options that name it, for the hint.
    pub(crate) named_by: &'static str,
}

impl Wanted<'_> {
    /// A gateway to it that charges `meter` and records in `sink`; the rest is as usual.
    pub(crate) fn options(
        self,
        host: &AgentHost,
        meter: Arc<Meter>,
        sink: Box<dyn Sink>,
    ) -> Result<Options, ModelError> {
        let usage = |error: &dyn std::error::Error| ModelError::Usage {
            what: chain(error),
            fix: format!("{} name model, server and key; `docs/gateway.md`.", self.named_by),
        };
        let upstream = find_upstream(self.model, self.wire, self.endpoint, |name| (host.variable)(name))
            .map_err(|error| match error {
                ProviderError::NoKey(_) => ModelError::NoKey {
                    what: error.to_string(),
                    fix: "Set it, or name another variable that holds the key.".into(),
                },
                other => usage(&other),
            })?;
        let prices = match self.prices {
            None => PriceTable::built_in(),
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|source| ModelError::Prices {
                    path: path.to_owned(),
                    source,
                })?;
                let own = PriceTable::parse(&text).map_err(|error| usage(&error))?;
                PriceTable::built_in().with_first(own)
            }
        };
        let price = prices
            .price_of(self.model, upstream.is_local())
            .map_err(|error| usage(&error))?;
        Ok(Options::new(upstream, self.model, price, meter, sink))
    }
}

/// Starts a gateway.
pub(crate) fn start(options: Options) -> Result<Gateway, ModelError> {
    Gateway::start(options).map_err(|error| ModelError::Gateway(chain(&error)))
}

/// A running gateway for one writer.
#[derive(Debug)]
pub(crate) struct Models {
    gateway: Gateway,
    socket: Option<PathBuf>,
}

impl Models {
    /// Starts a gateway to `model`. `wire` is the format that an agent speaks, if it speaks one only; `folder` is where
    /// its socket for a box is made, if one is needed.
    pub(crate) fn start(
        model: &str,
        wire: Option<Wire>,
        folder: Option<&Path>,
        setting: &Setting<'_>,
    ) -> Result<Self, ModelError> {
        let asked = setting.agents;
        let wanted = Wanted {
            model,
            wire,
            endpoint: &asked.endpoint,
            prices: asked.prices.as_deref(),
            named_by: "`--model`, `--model-url` and `--model-key-env`",
        };
        let mut gateway = start(options_of_run(wanted, setting)?)?;
        let socket = folder.map(|folder| folder.join("gateway.sock"));
        if let Some(socket) = &socket {
            gateway
                .socket(socket)
                .map_err(|error| ModelError::Gateway(chain(&error)))?;
        }
        Ok(Self { gateway, socket })
    }

    /// The gateway.
    pub(crate) fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Its socket for a box.
    pub(crate) fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// How the writer's calls ended so far.
    pub(crate) fn facts(&self) -> ModelFacts {
        let tally = self.gateway.meter().tally(WRITER);
        ModelFacts {
            answered: tally.answered,
            failed: tally.failed,
            refused: tally.refused,
        }
    }
}

/// A gateway of a run: on the run's account, in its record, with the answers of a step that a kill cut short.
pub(crate) fn options_of_run(wanted: Wanted<'_>, setting: &Setting<'_>) -> Result<Options, ModelError> {
    let sink = Box::new(CallBook(setting.recorder.clone()));
    let mut options = wanted.options(setting.host, Arc::clone(&setting.account.meter), sink)?;
    options.replay = unfinished(&setting.account.unfinished, setting.run);
    Ok(options)
}

/// Texts that `role` has sent in a step that a kill cut short, of those whose answers are served again; oldest first.
pub(crate) fn unfinished_texts(role: &str, setting: &Setting<'_>) -> Vec<String> {
    let objects = ObjectStore::new(setting.run);
    let calls = setting.account.unfinished.iter();
    calls
        .filter(|call| call.role == role)
        .filter(|call| recorded(call, &objects).is_some_and(|call| call.answer.is_success()))
        .filter_map(|call| serde_json::from_slice(&objects.get(call.request?.blob).ok()?).ok())
        .map(|request: serde_json::Value| {
            let mut text = String::new();
            strings(&request, &mut text);
            text
        })
        .collect()
}

/// Every string below `value`, a line each.
fn strings(value: &serde_json::Value, text: &mut String) {
    match value {
        serde_json::Value::String(found) => {
            text.push('\n');
            text.push_str(found);
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| strings(item, text)),
        serde_json::Value::Object(fields) => fields.values().for_each(|field| strings(field, text)),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
    }
}

/// Answers of a step that a kill cut short; those whose bytes are gone are asked again.
fn unfinished(calls: &[ModelCall], run: &Path) -> Option<Arc<Mutex<Replay>>> {
    let objects = ObjectStore::new(run);
    let recorded: Vec<Recorded> = calls.iter().filter_map(|call| recorded(call, &objects)).collect();
    (!recorded.is_empty()).then(|| Arc::new(Mutex::new(Replay::of_interrupted(recorded))))
}

/// A call as the record holds it; none where no answer came, or the record is of an older version.
fn recorded(call: &ModelCall, objects: &ObjectStore) -> Option<Recorded> {
    let wire: Wire = call.wire.parse().ok()?;
    let request = call.request.and_then(|request| objects.get(request.blob).ok());
    Some(Recorded {
        id: call.call.clone(),
        role: call.role.clone(),
        wire,
        key: call.key?,
        shape: request.and_then(|request| shape(wire, &request)),
        answer: Body {
            status: call.status,
            content_type: call.content_type.clone(),
            bytes: objects.get(call.response?.blob).ok()?,
            is_whole: call.whole,
        },
    })
}

/// Every call of a run as its record holds it, oldest first: what a replay serves. Answers that were themselves served
/// from the record, after a kill, are left out: a run that is not killed asks once.
///
/// # Errors
/// When the record cannot be read.
pub fn recorded_calls(run: &Path) -> Result<Vec<Recorded>, RunError> {
    let objects = ObjectStore::new(run);
    let mut calls = Vec::new();
    for record in read_records(run)? {
        let seq = record.seq;
        let entry = record.entry().map_err(|source| ReadError::Body { seq, source })?;
        if let Entry::ModelCall(call) = entry
            && call.served_from.is_none()
        {
            calls.extend(recorded(&call, &objects));
        }
    }
    Ok(calls)
}

/// Writes calls into the ledger, each before it is sent and before its answer is complete.
struct CallBook(Recorder);

impl Sink for CallBook {
    fn call(&mut self, call: Call) -> io::Result<()> {
        let put = |bytes: &[u8]| self.0.put(bytes);
        match call {
            Call::Sent(sent) => self.0.append(record_sent(*sent, put)?),
            Call::Answered(answered) => self.0.append(record_answered(*answered, put)?),
        }
    }
}

/// The first record of a call; `put` stores its bytes.
pub(crate) fn record_sent(sent: Sent, put: impl Fn(&[u8]) -> io::Result<BlobRef>) -> io::Result<ModelSent> {
    Ok(ModelSent {
        asked_model: (sent.asked_model != sent.model).then_some(sent.asked_model),
        request: put(&sent.request)?,
        bound_tokens: sent.bound.all_input().saturating_add(sent.bound.output),
        call: sent.id,
        role: sent.role,
        wire: sent.wire.name().to_owned(),
        model: sent.model,
        changed: sent.changed,
        key: sent.key,
        bound_usd: sent.bound_usd,
    })
}

/// The second record of a call; `put` stores its bytes.
pub(crate) fn record_answered(
    answered: Answered,
    put: impl Fn(&[u8]) -> io::Result<BlobRef>,
) -> io::Result<ModelCall> {
    let usage = answered.usage;
    Ok(ModelCall {
        request: Some(put(&answered.request)?),
        response: Some(put(&answered.answer.bytes)?),
        tokens_in: usage.all_input(),
        tokens_out: usage.output,
        tokens_cached: usage.cached,
        tokens_cache_write: usage.cache_write.saturating_add(usage.cache_write_long),
        tokens_reasoning: usage.reasoning,
        model: answered.model,
        cost_usd: answered.cost_usd,
        ms: answered.ms,
        own_ms: answered.own_ms,
        call: answered.id,
        role: answered.role,
        wire: answered.wire.name().to_owned(),
        key: Some(answered.key),
        usage: answered.raw_usage,
        estimated: answered.is_estimated,
        priced_by: answered.priced_by,
        status: answered.answer.status,
        content_type: answered.answer.content_type,
        whole: answered.answer.is_whole,
        answered_model: answered.answered_model,
        error: answered.error,
        served_from: answered.served_from,
        redactions: answered.redactions,
    })
}

//! The model gateway of a run: one account for writer and reviewer, calls on record before they are answered, and answers
//! of a step that a kill cut short served again instead of being paid for twice.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ksmith_agents::gateway::{
    Answered, Body, Call, Gateway, Limits, Meter, Options, PriceTable, Recorded, Replay, Sent, Sink, Spent,
    WRITER, Wire, find_upstream, shape,
};
use ksmith_agents::writers::ModelFacts;
use ksmith_ledger::{
    Entry, ModelAccount, ModelCall, ModelSent, ObjectStore, ReadError, ToolCall, read_records,
};
use ksmith_task::chain;

use crate::workshop::Setting;
use crate::writer::WriterError;
use crate::{Budget, Memory, Recorder, RunError};

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
    ) -> Result<Self, WriterError> {
        let asked = setting.agents;
        let variable = |name: &str| (setting.host.variable)(name);
        let upstream =
            find_upstream(model, wire, &asked.endpoint, variable).map_err(|error| usage(&error))?;
        let prices = match &asked.prices {
            None => PriceTable::built_in(),
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|source| WriterError::Io {
                    what: "read",
                    path: path.clone(),
                    source,
                })?;
                let own = PriceTable::parse(&text).map_err(|error| usage(&error))?;
                PriceTable::built_in().with_first(own)
            }
        };
        let price = prices
            .price_of(model, upstream.is_local())
            .map_err(|error| usage(&error))?;
        let sink = Box::new(CallBook(setting.recorder.clone()));
        let mut options = Options::new(upstream, model, price, Arc::clone(&setting.account.meter), sink);
        options.replay = unfinished(&setting.account.unfinished, setting.run);
        let failed = |error: &dyn std::error::Error| WriterError::Failed(chain(error));
        let mut gateway = Gateway::start(options).map_err(|error| failed(&error))?;
        let socket = folder.map(|folder| folder.join("gateway.sock"));
        if let Some(socket) = &socket {
            gateway.socket(socket).map_err(|error| failed(&error))?;
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

fn usage(error: &dyn std::error::Error) -> WriterError {
    WriterError::Usage {
        what: chain(error),
        fix: "`--model`, `--model-url` and `--model-key-env` name model, server and key; `docs/gateway.md`."
            .into(),
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
        match call {
            Call::Sent(sent) => self.0.append(self.sent(*sent)?),
            Call::Answered(answered) => self.0.append(self.answered(*answered)?),
        }
    }
}

impl CallBook {
    fn sent(&self, sent: Sent) -> io::Result<ModelSent> {
        Ok(ModelSent {
            asked_model: (sent.asked_model != sent.model).then_some(sent.asked_model),
            request: self.0.put(&sent.request)?,
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

    fn answered(&self, answered: Answered) -> io::Result<ModelCall> {
        let usage = answered.usage;
        Ok(ModelCall {
            request: Some(self.0.put(&answered.request)?),
            response: Some(self.0.put(&answered.answer.bytes)?),
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
}

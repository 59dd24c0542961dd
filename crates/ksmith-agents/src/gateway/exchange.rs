//! One call from beginning to end, whoever makes it: budget, record, send, count, record, pass on.

use std::io::{self, Read as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::upstream::{Incoming, NoAnswer, Sender};
use super::wire::{AnswerReader, Flow, Prepared, Splitter, prepare};
use super::{
    Answered, Body, Call, Meter, Otherwise, Price, Recorded, Redactor, Replay, Sent, Sink, Usage, Wire,
};

/// Most bytes of an error answer that are kept and passed on.
const ERROR_BYTES: u64 = 64 * 1024;
/// Most bytes of an answer.
const ANSWER_BYTES: u64 = 256 * 1024 * 1024;
/// How long an answer whose client has gone is still read, to learn what it used.
const DRAIN: Duration = Duration::from_secs(120);

/// Where an answer goes. An error means that the client is gone, which does not end the call.
pub(crate) trait Delivery {
    /// A whole answer.
    fn whole(&mut self, status: u16, headers: &[(&str, &str)], body: &[u8]) -> io::Result<()>;
    /// The beginning of a streamed answer.
    fn begin(&mut self, status: u16, content_type: &str) -> io::Result<()>;
    /// A piece of it.
    fn piece(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Its end; without it the client sees that the answer is cut off.
    fn end(&mut self) -> io::Result<()>;
}

/// What the client sends, for either way in.
pub(crate) struct Incall<'a> {
    pub(crate) role: &'a str,
    pub(crate) wire: Wire,
    pub(crate) headers: &'a [(String, String)],
    pub(crate) body: &'a [u8],
}

impl<'a> Incall<'a> {
    fn header(&self, name: &str) -> Option<&'a str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(found, _)| found.eq_ignore_ascii_case(name))?;
        Some(&found.1)
    }
}

/// Everything that a call needs; shared by all ways in.
pub(crate) struct Core {
    pub(crate) sender: Option<Sender>,
    pub(crate) wire: Wire,
    pub(crate) model: String,
    pub(crate) price: Price,
    pub(crate) meter: Arc<Meter>,
    pub(crate) redactor: Redactor,
    pub(crate) sink: Mutex<Box<dyn Sink>>,
    pub(crate) replay: Option<Arc<Mutex<Replay>>>,
    /// Set when the record failed: then nothing more is let through.
    pub(crate) is_broken: AtomicBool,
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a call is refused before anything is sent.
struct Refusal {
    status: u16,
    kind: &'static str,
    message: String,
}

impl Refusal {
    fn new(status: u16, kind: &'static str, message: impl ToString) -> Self {
        Self {
            status,
            kind,
            message: message.to_string(),
        }
    }
}

impl Core {
    /// Makes one call.
    pub(crate) fn call(&self, incall: &Incall<'_>, delivery: &mut dyn Delivery) -> io::Result<()> {
        if let Err(refusal) = self.try_call(incall, delivery) {
            let Refusal {
                status,
                kind,
                message,
            } = refusal;
            return refuse(incall.wire, status, kind, &message, delivery);
        }
        Ok(())
    }

    fn try_call(&self, incall: &Incall<'_>, delivery: &mut dyn Delivery) -> Result<(), Refusal> {
        let began = Instant::now();
        if incall.wire != self.wire {
            let what = format!("this gateway speaks `{}` only", self.wire);
            return Err(Refusal::new(404, "not_found_error", what));
        }
        let prepared = prepare(incall.wire, incall.body, &self.model)
            .map_err(|error| Refusal::new(400, "invalid_request_error", error))?;
        let turn = self.meter.turn(incall.role);
        let _turn = lock(&turn);
        if self.is_broken.load(Ordering::SeqCst) {
            return Err(Refusal::new(
                503,
                "api_error",
                "the record of calls cannot be written",
            ));
        }
        let (recorded, otherwise) = match &self.replay {
            Some(replay) => {
                let mut replay = lock(replay);
                let recorded = replay.take(incall.role, incall.wire, prepared.key, prepared.shape);
                (recorded, Some(replay.otherwise()))
            }
            None => (None, None),
        };
        if let Some(recorded) = recorded {
            return self.serve_recorded(incall, &prepared, &recorded, began, delivery);
        }
        let Some(sender) = self
            .sender
            .as_ref()
            .filter(|_| otherwise != Some(Otherwise::Refuse))
        else {
            let what = "the recorded run holds no answer to this request, and a replay asks no model";
            return Err(Refusal::new(409, "replay_error", what));
        };
        let id = self.meter.next_id();
        let bound = self.price.bound(prepared.body.len(), prepared.max_output);
        let bound_usd = self.price.cost(&bound);
        self.meter
            .begin(incall.role, &id, bound, bound_usd)
            .map_err(|spent| Refusal::new(402, "budget_spent", spent))?;
        let (request, redactions) = self.redactor.redact(&prepared.body);
        let sent = Call::Sent(Box::new(Sent {
            id: id.clone(),
            role: incall.role.to_owned(),
            wire: incall.wire,
            model: self.model.clone(),
            asked_model: prepared.asked_model.clone(),
            changed: prepared.changed.clone(),
            key: prepared.key,
            request: request.clone(),
            bound,
            bound_usd,
        }));
        if self.record(sent).is_err() {
            self.meter.withdraw(&id);
            return Err(Refusal::new(
                503,
                "api_error",
                "the record of calls cannot be written",
            ));
        }
        let mut flight = Flight {
            core: self,
            answered: Answered {
                id,
                role: incall.role.to_owned(),
                wire: incall.wire,
                model: self.model.clone(),
                answered_model: None,
                key: prepared.key,
                request,
                answer: Body::default(),
                error: None,
                usage: Usage::default(),
                raw_usage: serde_json::Value::Null,
                cost_usd: 0.0,
                is_estimated: false,
                priced_by: self.price.by.clone(),
                served_from: None,
                redactions,
                ms: 0.0,
                own_ms: 0.0,
            },
            bound,
            began,
            waited: Duration::ZERO,
        };
        let asked = Instant::now();
        let incoming = sender.send(|name| incall.header(name), &prepared.body);
        flight.waited += asked.elapsed();
        match incoming {
            Err(no_answer) => flight.no_answer(&no_answer),
            Ok(incoming) if !(200..300).contains(&incoming.status) => flight.error(incoming, delivery),
            Ok(incoming) if incoming.content_type.starts_with("text/event-stream") => {
                flight.stream(incoming, delivery)
            }
            Ok(incoming) => flight.whole(incoming, delivery),
        }
    }

    /// Writes a report; a failure breaks the gateway.
    fn record(&self, call: Call) -> io::Result<()> {
        let written = lock(&self.sink).call(call);
        if written.is_err() {
            self.is_broken.store(true, Ordering::SeqCst);
        }
        written
    }

    /// Serves a recorded answer: nothing is sent and nothing is paid.
    fn serve_recorded(
        &self,
        incall: &Incall<'_>,
        prepared: &Prepared,
        recorded: &Recorded,
        began: Instant,
        delivery: &mut dyn Delivery,
    ) -> Result<(), Refusal> {
        let (request, redactions) = self.redactor.redact(&prepared.body);
        let mut reader = AnswerReader::new(incall.wire);
        if recorded.answer.is_stream() {
            let events = Splitter::default().feed(&recorded.answer.bytes);
            events.iter().for_each(|event| {
                reader.event(event);
            });
        } else {
            reader.whole(&recorded.answer.bytes);
        }
        let ms = began.elapsed().as_secs_f64() * 1e3;
        let id = self.meter.next_id();
        self.record(Call::Answered(Box::new(Answered {
            id,
            role: incall.role.to_owned(),
            wire: incall.wire,
            model: self.model.clone(),
            answered_model: reader.model().map(str::to_owned),
            key: prepared.key,
            request,
            answer: recorded.answer.clone(),
            error: reader.error().map(str::to_owned),
            usage: reader.usage().unwrap_or_default(),
            raw_usage: reader.raw_usage(),
            cost_usd: 0.0,
            is_estimated: false,
            priced_by: "recorded".to_owned(),
            served_from: Some(recorded.id.clone()),
            redactions,
            ms,
            own_ms: ms,
        })))
        .map_err(|error| Refusal::new(503, "api_error", error))?;
        self.meter.ended(incall.role, recorded.answer.is_success());
        // The client of an answer that was cut off sees it cut off again. A client that is gone needs nothing.
        let _ = deliver_body(&recorded.answer, delivery);
        Ok(())
    }
}

fn deliver_body(body: &Body, delivery: &mut dyn Delivery) -> io::Result<()> {
    let status = body.status.unwrap_or(502);
    if body.is_whole && !body.is_stream() {
        return delivery.whole(status, &[("content-type", &body.content_type)], &body.bytes);
    }
    delivery.begin(status, &body.content_type)?;
    delivery.piece(&body.bytes)?;
    if body.is_whole { delivery.end() } else { Ok(()) }
}

/// An error in the shape of the format. `x-should-retry` is what the vendors' own clients look at.
pub(crate) fn refuse(
    wire: Wire,
    status: u16,
    kind: &str,
    message: &str,
    delivery: &mut dyn Delivery,
) -> io::Result<()> {
    let error = serde_json::json!({"type": kind, "code": kind, "message": message});
    let body = match wire {
        Wire::Messages => serde_json::json!({"type": "error", "error": error}),
        Wire::Chat | Wire::Responses => serde_json::json!({"error": error}),
    };
    let headers = [("content-type", "application/json"), ("x-should-retry", "false")];
    delivery.whole(status, &headers, body.to_string().as_bytes())
}

/// A call that has been sent.
struct Flight<'a> {
    core: &'a Core,
    answered: Answered,
    bound: Usage,
    began: Instant,
    /// Time spent waiting for the provider.
    waited: Duration,
}

impl Flight<'_> {
    fn no_answer(mut self, no_answer: &NoAnswer) -> Result<(), Refusal> {
        let message = self.core.redactor.redact_text(&no_answer.what);
        self.answered.error = Some(message.clone());
        if no_answer.may_be_sent {
            self.estimate();
        }
        self.finish()?;
        Err(Refusal::new(502, "api_error", message))
    }

    /// An error answer costs nothing; the provider's words may hold the key, so the client gets them redacted.
    fn error(mut self, incoming: Incoming, delivery: &mut dyn Delivery) -> Result<(), Refusal> {
        let mut bytes = Vec::new();
        let asked = Instant::now();
        let is_whole = incoming.body.take(ERROR_BYTES).read_to_end(&mut bytes).is_ok();
        self.waited += asked.elapsed();
        let mut reader = AnswerReader::new(self.answered.wire);
        reader.whole(&bytes);
        self.answered.error = Some(
            reader
                .error()
                .map_or_else(|| format!("status {}", incoming.status), str::to_owned),
        );
        self.keep(incoming.status, &incoming.content_type, &bytes, is_whole);
        self.answered.error = self
            .answered
            .error
            .map(|text| self.core.redactor.redact_text(&text));
        let body = self.answered.answer.bytes.clone();
        self.finish()?;
        let mut headers = vec![("content-type", incoming.content_type.as_str())];
        if let Some(after) = &incoming.retry_after {
            headers.push(("retry-after", after));
        }
        // A redirect is not followed here, and leads an agent nowhere.
        let status = if incoming.status < 400 {
            502
        } else {
            incoming.status
        };
        let _ = delivery.whole(status, &headers, &body);
        Ok(())
    }

    fn whole(mut self, incoming: Incoming, delivery: &mut dyn Delivery) -> Result<(), Refusal> {
        let mut bytes = Vec::new();
        let asked = Instant::now();
        let read = incoming.body.take(ANSWER_BYTES).read_to_end(&mut bytes);
        self.waited += asked.elapsed();
        let mut reader = AnswerReader::new(self.answered.wire);
        reader.whole(&bytes);
        let cut = read.err().map(|error| format!("the answer broke off: {error}"));
        self.count(&reader, cut.as_deref());
        self.keep(incoming.status, &incoming.content_type, &bytes, cut.is_none());
        self.finish()?;
        if let Some(cut) = cut {
            return Err(Refusal::new(502, "api_error", cut));
        }
        let _ = delivery.whole(
            incoming.status,
            &[("content-type", &incoming.content_type)],
            &bytes,
        );
        Ok(())
    }

    /// Passes events on as they come, and holds back the one that completes the answer until the call is recorded.
    fn stream(mut self, mut incoming: Incoming, delivery: &mut dyn Delivery) -> Result<(), Refusal> {
        let mut client = Client {
            is_there: delivery.begin(incoming.status, &incoming.content_type).is_ok(),
            gone_at: Instant::now(),
            delivery,
        };
        let mut reader = AnswerReader::new(self.answered.wire);
        let (mut splitter, mut bytes, mut held) = (Splitter::default(), Vec::new(), Vec::new());
        let mut buffer = [0; 32 * 1024];
        let cut = loop {
            let asked = Instant::now();
            let read = incoming.body.read(&mut buffer);
            self.waited += asked.elapsed();
            let count = match read {
                Ok(0) => break None,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => break Some(format!("the answer broke off: {error}")),
            };
            bytes.extend_from_slice(&buffer[..count]);
            for event in splitter.feed(&buffer[..count]) {
                match reader.event(&event) {
                    Flow::Pass if held.is_empty() => client.piece(&event.raw),
                    Flow::Pass | Flow::Ends => held.extend_from_slice(&event.raw),
                }
            }
            if bytes.len() as u64 > ANSWER_BYTES {
                break Some("the answer is too long".to_owned());
            }
            if client.is_gone_for(DRAIN) {
                break Some("the client left, and the answer did not end".to_owned());
            }
        };
        held.extend_from_slice(splitter.rest());
        self.count(&reader, cut.as_deref());
        self.keep(incoming.status, &incoming.content_type, &bytes, cut.is_none());
        if self.finish().is_ok() {
            client.piece(&held);
            if cut.is_none() {
                client.end();
            }
        }
        Ok(())
    }

    /// What the answer used, or at most can have used.
    fn count(&mut self, reader: &AnswerReader, cut: Option<&str>) {
        self.answered.answered_model = reader.model().map(str::to_owned);
        self.answered.raw_usage = reader.raw_usage();
        let error = cut.or_else(|| reader.error());
        self.answered.error = error.map(|text| self.core.redactor.redact_text(text));
        match reader.usage().filter(|_| reader.is_ended()) {
            Some(usage) => {
                self.answered.usage = usage;
                self.answered.cost_usd = self.core.price.cost(&usage);
            }
            None => self.estimate(),
        }
    }

    fn estimate(&mut self) {
        self.answered.usage = self.bound;
        self.answered.cost_usd = self.core.price.cost(&self.bound);
        self.answered.is_estimated = true;
    }

    fn keep(&mut self, status: u16, content_type: &str, bytes: &[u8], is_whole: bool) {
        let (bytes, redactions) = self.core.redactor.redact(bytes);
        self.answered.redactions += redactions;
        self.answered.answer = Body {
            status: Some(status),
            content_type: content_type.to_owned(),
            bytes,
            is_whole,
        };
    }

    /// Settles the budget and writes the record. Budget first: if the record fails, the money is spent all the same.
    fn finish(&mut self) -> Result<(), Refusal> {
        let answered = &mut self.answered;
        answered.ms = self.began.elapsed().as_secs_f64() * 1e3;
        answered.own_ms = (answered.ms - self.waited.as_secs_f64() * 1e3).max(0.0);
        let core = self.core;
        core.meter.settle(
            &answered.id,
            &answered.usage,
            answered.cost_usd,
            answered.is_estimated,
        );
        core.meter.ended(&answered.role, answered.answer.is_success());
        core.record(Call::Answered(Box::new(answered.clone())))
            .map_err(|_| Refusal::new(503, "api_error", "the record of calls cannot be written"))
    }
}

/// The client of a streamed answer, who may leave.
struct Client<'a> {
    delivery: &'a mut dyn Delivery,
    is_there: bool,
    gone_at: Instant,
}

impl Client<'_> {
    fn piece(&mut self, bytes: &[u8]) {
        if self.is_there && self.delivery.piece(bytes).is_err() {
            self.is_there = false;
            self.gone_at = Instant::now();
        }
    }

    fn end(&mut self) {
        if self.is_there {
            self.is_there = self.delivery.end().is_ok();
        }
    }

    fn is_gone_for(&self, limit: Duration) -> bool {
        !self.is_there && self.gone_at.elapsed() > limit
    }
}

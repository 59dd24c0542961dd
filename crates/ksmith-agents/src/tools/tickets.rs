//! Long work behind tickets: it runs alone, one after the other, and whoever asked may come back for it.
//!
//! Command lines of agents give up on a tool after times that nobody can know, so an answer that takes longer than the
//! caller waits is a ticket, and asking again with it costs nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Cost, Envelope, ToolVerdict, Verb, Verbs};

/// Most work that waits.
const WAITING: usize = 8;
/// Most answers that are kept for whoever comes back.
const KEPT: usize = 64;

#[derive(Default)]
struct State {
    next: u64,
    waiting: VecDeque<(u64, Verb, Value)>,
    running: Option<u64>,
    done: BTreeMap<u64, Envelope>,
    closed: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    verbs: Arc<dyn Verbs>,
}

/// Takes requests and hands out answers or tickets. Clones share the work.
#[derive(Clone)]
pub struct Tickets {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Tickets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tickets").finish_non_exhaustive()
    }
}

impl Tickets {
    /// Begins to work with these probes, on a thread of its own.
    pub fn new(verbs: Arc<dyn Verbs>) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            verbs,
        });
        let worker = Arc::clone(&shared);
        thread::spawn(move || worker.work());
        Self { shared }
    }

    /// Does a verb. Short ones are answered at once; long ones after `wait` at the latest, by a ticket if need be.
    /// `arguments.ticket` asks for the answer of earlier work instead.
    pub fn ask(&self, verb: Verb, arguments: &Value, wait: Duration) -> Envelope {
        let deadline = Instant::now() + wait;
        if let Some(ticket) = arguments.get("ticket") {
            let number = ticket
                .as_str()
                .and_then(|text| text.strip_prefix('t'))
                .and_then(|text| text.parse().ok());
            return match number {
                Some(number) => self.shared.await_answer(verb, number, deadline),
                None => Envelope::refused(verb, "tool/no-such-ticket", "a ticket looks like t12"),
            };
        }
        if !verb.is_long() {
            return timed(&*self.shared.verbs, verb, arguments);
        }
        match self.shared.enqueue(verb, arguments.clone()) {
            Some(number) => self.shared.await_answer(verb, number, deadline),
            None => Envelope::refused(
                verb,
                "tool/too-many-requests",
                format!("{WAITING} requests wait already; ask with their tickets first"),
            ),
        }
    }

    /// Takes no further work, drops what waits, and returns once nothing runs: what comes next may be timed.
    pub fn close(&self) {
        let mut state = self.shared.lock();
        state.closed = true;
        state.waiting.clear();
        self.shared.changed.notify_all();
        while state.running.is_some() {
            state = self
                .shared
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn timed(verbs: &dyn Verbs, verb: Verb, arguments: &Value) -> Envelope {
    let began = Instant::now();
    let mut envelope = verbs.call(verb, arguments);
    // An answer from the record keeps what it cost.
    if envelope.cost == Cost::default() {
        envelope.cost.ms = began.elapsed().as_secs_f64() * 1e3;
    }
    envelope
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A probe that panicked leaves the state whole: it is never changed while one runs.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enqueue(&self, verb: Verb, arguments: Value) -> Option<u64> {
        let mut state = self.lock();
        if state.closed || state.waiting.len() >= WAITING {
            return None;
        }
        state.next += 1;
        let number = state.next;
        state.waiting.push_back((number, verb, arguments));
        self.changed.notify_all();
        Some(number)
    }

    fn await_answer(&self, verb: Verb, number: u64, deadline: Instant) -> Envelope {
        let mut state = self.lock();
        loop {
            if let Some(envelope) = state.done.get(&number) {
                return envelope.clone();
            }
            let known =
                state.running == Some(number) || state.waiting.iter().any(|(waiting, ..)| *waiting == number);
            if !known {
                let why = format!("ticket t{number} is unknown, or its answer is no longer kept");
                return Envelope::refused(verb, "tool/no-such-ticket", why);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || state.closed {
                let mut envelope = Envelope::new(verb, ToolVerdict::Pending, "the work goes on")
                    .next(format!("ask again: {verb} with ticket t{number}"));
                envelope.ticket = Some(format!("t{number}"));
                return envelope;
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn work(&self) {
        loop {
            let (number, verb, arguments) = {
                let mut state = self.lock();
                loop {
                    if state.closed {
                        return;
                    }
                    if let Some(job) = state.waiting.pop_front() {
                        state.running = Some(job.0);
                        break job;
                    }
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            };
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                timed(&*self.verbs, verb, &arguments)
            }));
            let envelope = done.unwrap_or_else(|_| {
                Envelope::new(
                    verb,
                    ToolVerdict::Unavailable,
                    "the probe failed by a fault of ours",
                )
                .code("tool/internal")
            });
            let mut state = self.lock();
            state.running = None;
            state.done.insert(number, envelope);
            while state.done.len() > KEPT {
                state.done.pop_first();
            }
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Takes as long as it is told, and counts how many run at once.
    #[derive(Default)]
    struct Slow {
        now: AtomicUsize,
        most: AtomicUsize,
    }

    impl Verbs for Slow {
        fn call(&self, verb: Verb, arguments: &Value) -> Envelope {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            let ms = arguments["ms"].as_u64().unwrap_or(0);
            assert!(arguments.get("panic").is_none(), "asked to");
            thread::sleep(Duration::from_millis(ms));
            self.now.fetch_sub(1, Ordering::SeqCst);
            Envelope::new(verb, ToolVerdict::Info, format!("slept {ms}"))
        }
    }

    const MOMENT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn long_work_is_a_ticket_and_its_answer_is_there_later() {
        let tickets = Tickets::new(Arc::new(Slow::default()));
        let pending = tickets.ask(Verb::Bench, &json!({ "ms": 300 }), MOMENT);
        assert_eq!(pending.verdict, ToolVerdict::Pending);
        let again = json!({ "ticket": pending.ticket.unwrap() });
        let answer = tickets.ask(Verb::Bench, &again, LONG);
        assert_eq!(
            (answer.verdict, answer.summary.as_str()),
            (ToolVerdict::Info, "slept 300")
        );
        assert!(answer.cost.ms >= 300.0);
        // An answer may be fetched twice.
        assert_eq!(tickets.ask(Verb::Bench, &again, MOMENT), answer);
    }

    #[test]
    fn long_work_never_runs_beside_other_long_work() {
        let slow = Arc::new(Slow::default());
        let tickets = Tickets::new(Arc::clone(&slow) as Arc<dyn Verbs>);
        thread::scope(|scope| {
            for _ in 0..4 {
                let tickets = tickets.clone();
                scope.spawn(move || tickets.ask(Verb::Test, &json!({ "ms": 20 }), LONG));
            }
        });
        assert_eq!(slow.most.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_flood_of_requests_is_refused_and_unknown_tickets_are_named() {
        let tickets = Tickets::new(Arc::new(Slow::default()));
        let mut refused = 0;
        for _ in 0..WAITING + 4 {
            let answer = tickets.ask(Verb::Check, &json!({ "ms": 200 }), Duration::ZERO);
            refused += usize::from(answer.code.as_deref() == Some("tool/too-many-requests"));
        }
        assert!(refused >= 3, "{refused}");
        for ticket in [json!("t999"), json!("x"), json!(7)] {
            let answer = tickets.ask(Verb::Check, &json!({ "ticket": ticket }), MOMENT);
            assert_eq!(answer.code.as_deref(), Some("tool/no-such-ticket"));
        }
    }

    #[test]
    fn closing_waits_for_what_runs_and_drops_what_waits() {
        let slow = Arc::new(Slow::default());
        let tickets = Tickets::new(Arc::clone(&slow) as Arc<dyn Verbs>);
        for _ in 0..3 {
            tickets.ask(Verb::Bench, &json!({ "ms": 100 }), MOMENT);
        }
        tickets.close();
        assert_eq!(slow.now.load(Ordering::SeqCst), 0);
        let refused = tickets.ask(Verb::Bench, &json!({}), MOMENT);
        assert_eq!(refused.code.as_deref(), Some("tool/too-many-requests"));
    }

    #[test]
    fn a_probe_that_panics_is_unavailable_and_the_next_one_works() {
        let tickets = Tickets::new(Arc::new(Slow::default()));
        let failed = tickets.ask(Verb::Test, &json!({ "panic": true }), LONG);
        assert_eq!(failed.verdict, ToolVerdict::Unavailable);
        let fine = tickets.ask(Verb::Test, &json!({}), LONG);
        assert_eq!(fine.verdict, ToolVerdict::Info);
    }
}

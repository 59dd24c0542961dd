//! Serves a script and remembers what was asked.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ksmith_http::{Limits, Reply, Request, Server};
use serde_json::{Value, json};

use crate::answer::{Answer, error};
use crate::{Asked, Fault, Script, Wire};

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
const EVENTS: &[(&str, &str)] = &[
    ("content-type", "text/event-stream"),
    ("cache-control", "no-cache"),
];

/// What is served, and how.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The script.
    pub script: Script,
    /// The only key that is let in, as a bearer token or `x-api-key`; absent lets everybody in.
    pub key: Option<String>,
    /// Streamed answers are written in pieces of this many bytes, wherever that cuts them; absent means by event.
    pub piece_bytes: Option<usize>,
    /// The port; 0 is one of the system's choice.
    pub port: u16,
}

impl Options {
    /// A script for everybody.
    pub fn new(script: Script) -> Self {
        Self {
            script,
            ..Self::default()
        }
    }
}

/// One request as it arrived, and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Its format; absent where the path is none of the three.
    pub wire: Option<Wire>,
    /// Its path.
    pub path: String,
    /// Its header lines.
    pub headers: Vec<(String, String)>,
    /// Its body; null where it is no JSON.
    pub body: Value,
    /// The turn that answered, from 0; absent where none fits.
    pub turn: Option<usize>,
}

#[derive(Debug, Default)]
struct State {
    used: Vec<u32>,
    seen: Vec<Seen>,
}

#[derive(Debug)]
struct Shared {
    options: Options,
    state: Mutex<State>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A handler that panicked left whole entries behind.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running scripted server; it stops when dropped.
#[derive(Debug)]
pub struct ScriptedServer {
    servers: Vec<Server>,
    shared: Arc<Shared>,
}

impl ScriptedServer {
    /// Starts serving on loopback.
    ///
    /// # Errors
    /// When the port is taken.
    pub fn start(options: Options) -> io::Result<Self> {
        let port = options.port;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                used: vec![0; options.script.turns.len()],
                seen: Vec::new(),
            }),
            options,
        });
        let server = Server::tcp(port, Limits::DEFAULT, handler(&shared))?;
        Ok(Self {
            servers: vec![server],
            shared,
        })
    }

    /// Serves the same script on a Unix socket as well.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn socket(&mut self, path: &Path) -> io::Result<()> {
        let server = Server::unix(path, Limits::DEFAULT, handler(&self.shared))?;
        self.servers.push(server);
        Ok(())
    }

    /// The address without path, such as `http://127.0.0.1:4000`.
    pub fn url(&self) -> String {
        let address = self.servers.first().and_then(Server::address);
        address.map_or_else(String::new, |address| format!("http://{address}"))
    }

    /// Everything asked so far, in order of arrival.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.state().seen.clone()
    }
}

fn handler(shared: &Arc<Shared>) -> Arc<dyn ksmith_http::Handler> {
    let shared = Arc::clone(shared);
    Arc::new(move |request: Request, reply: Reply<'_>| serve(&shared, request, reply))
}

fn wire_of(path: &str) -> Option<Wire> {
    Wire::ALL
        .into_iter()
        .find(|wire| path.ends_with(wire.path().trim_start_matches("/v1")))
}

fn key_of(request: &Request) -> Option<&str> {
    let bearer = request
        .header("authorization")
        .and_then(|value| value.strip_prefix("Bearer "));
    bearer.or_else(|| request.header("x-api-key"))
}

fn serve(shared: &Shared, request: Request, reply: Reply<'_>) -> io::Result<()> {
    let wire = wire_of(&request.path).filter(|_| request.method == "POST");
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let is_let_in = shared.options.key.is_none() || key_of(&request) == shared.options.key.as_deref();
    let asked = wire.map(|wire| Asked::read(wire, &body)).filter(|_| is_let_in);
    let (number, turn) = {
        let mut state = shared.state();
        let turn = asked
            .as_ref()
            .and_then(|asked| choose(&shared.options.script, &mut state, asked));
        state.seen.push(Seen {
            wire,
            path: request.path.clone(),
            headers: request.headers.clone(),
            body,
            turn,
        });
        (state.seen.len() as u64, turn)
    };
    let refuse = |reply: Reply<'_>, status: u16, message: &str| {
        reply.send(status, JSON, error(wire, status, message).to_string().as_bytes())
    };
    if !is_let_in {
        return refuse(reply, 401, "this key is not let in");
    }
    let Some(asked) = asked else {
        if request.path.ends_with("/models") && request.method == "GET" {
            let list = json!({"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "tests"}]});
            return reply.send(200, JSON, list.to_string().as_bytes());
        }
        return refuse(reply, 404, "no such endpoint");
    };
    // Side requests without tools (titles, summaries) are nobody's turn.
    let small_talk = crate::Turn::text("ok");
    let turn = match turn {
        Some(index) => &shared.options.script.turns[index],
        None if asked.tools.is_empty() => &small_talk,
        None => {
            let message = format!(
                "no turn of the script fits: {} tool results, last: {:.200}",
                asked.results, asked.last
            );
            return refuse(reply, 400, &message);
        }
    };
    std::thread::sleep(Duration::from_millis(turn.delay_ms));
    let answer = match Answer::of(turn, &asked, number) {
        Ok(answer) => answer,
        Err(message) => return refuse(reply, 400, &message),
    };
    let cut = match turn.fault {
        Some(Fault::Status(status)) => return refuse(reply, status, "as the script says"),
        Some(Fault::Drop) => return Ok(()),
        Some(Fault::NotHttp) => return reply.raw(b"\x00\xff this is not HTTP\r\n\r\n"),
        Some(Fault::Garbage) if asked.stream => {
            let mut stream = reply.stream(200, EVENTS)?;
            stream.write(b"data: {\"broken\": \n\nevent only\n\ndata: [1,2\n\n\xff\xfe\n\n")?;
            return stream.end();
        }
        Some(Fault::Garbage) => return reply.send(200, JSON, b"{\"broken\": "),
        Some(Fault::Hang(ms)) => {
            std::thread::sleep(Duration::from_millis(ms));
            return Ok(());
        }
        Some(Fault::DropAfter(events)) => Some(events),
        Some(Fault::NoUsage) | None => None,
    };
    if asked.stream {
        stream(shared.options.piece_bytes, &answer.events(&asked), cut, reply)
    } else {
        let whole = answer.whole(asked.wire).to_string();
        match cut {
            None => reply.send(200, JSON, whole.as_bytes()),
            Some(_) => {
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", whole.len());
                reply.raw(format!("{head}{:.20}", whole).as_bytes())
            }
        }
    }
}

/// The first turn that fits and is not used up; counts its use.
fn choose(script: &Script, state: &mut State, asked: &Asked) -> Option<usize> {
    let index = script.turns.iter().enumerate().position(|(index, turn)| {
        turn.times.is_none_or(|times| state.used[index] < times) && turn.when.holds(asked)
    })?;
    state.used[index] += 1;
    Some(index)
}

fn stream(piece: Option<usize>, events: &[String], cut: Option<usize>, reply: Reply<'_>) -> io::Result<()> {
    let mut stream = reply.stream(200, EVENTS)?;
    let events = &events[..cut.unwrap_or(events.len()).min(events.len())];
    match piece {
        None => events
            .iter()
            .try_for_each(|event| stream.write(event.as_bytes()))?,
        Some(bytes) => {
            let whole = events.concat();
            for piece in whole.as_bytes().chunks(bytes.max(1)) {
                stream.write(piece)?;
            }
        }
    }
    match cut {
        None => stream.end(),
        Some(_) => Ok(()),
    }
}

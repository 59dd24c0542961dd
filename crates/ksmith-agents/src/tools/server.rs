//! The socket of our tools: one JSON line in, one JSON line out, on a Unix socket that only the box and we can reach.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Envelope, Tickets, ToolVerdict, Verb, Verbs};

/// Longest request, in bytes.
const REQUEST_BYTES: u64 = 64 << 10;
/// Most connections at once.
const CONNECTIONS: usize = 8;
/// How long a connection may be silent.
const SILENCE: Duration = Duration::from_secs(30);
/// Longest time that a request may wait for its answer.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// A request on the wire.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    /// The verb's word.
    pub(crate) verb: String,
    /// Its arguments.
    #[serde(default)]
    pub(crate) arguments: Value,
    /// How long to wait for long work, in milliseconds.
    #[serde(default)]
    pub(crate) wait_ms: u64,
}

/// A call that was made, for the record.
#[derive(Debug, Clone)]
pub struct Called {
    /// The verb's word, as it was sent.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// The answer.
    pub answer: Envelope,
}

/// Writes calls down; an answer goes out only after its call is written.
pub trait Log: Send + Sync {
    /// Writes one call down.
    ///
    /// # Errors
    /// When it cannot; then the answer is withheld.
    fn write(&self, called: &Called) -> io::Result<()>;
}

/// The running server; it stops taking requests when this is dropped.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    tickets: Tickets,
    closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens on a new socket at `path`, whose folder must keep everybody else out: any user may connect to it.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn start(path: &Path, verbs: Arc<dyn Verbs>, log: Arc<dyn Log>) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        // The box's user is none that has a name here.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
        let tickets = Tickets::new(verbs);
        let closed = Arc::new(AtomicBool::new(false));
        let thread = {
            let (tickets, closed) = (tickets.clone(), Arc::clone(&closed));
            thread::spawn(move || accept(&listener, &tickets, &log, &closed))
        };
        Ok(Self {
            path: path.to_owned(),
            tickets,
            closed,
            thread: Some(thread),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::SeqCst);
        self.tickets.close();
        // Wakes the listener; if that fails it is gone already.
        drop(UnixStream::connect(&self.path));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

fn accept(listener: &UnixListener, tickets: &Tickets, log: &Arc<dyn Log>, closed: &AtomicBool) {
    let open = Arc::new(AtomicUsize::new(0));
    for connection in listener.incoming().flatten() {
        if closed.load(Ordering::SeqCst) {
            return;
        }
        if open.fetch_add(1, Ordering::SeqCst) >= CONNECTIONS {
            open.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let (tickets, log, open) = (tickets.clone(), Arc::clone(log), Arc::clone(&open));
        thread::spawn(move || {
            // A connection that breaks is the agent's own affair.
            let _ = serve(connection, &tickets, &*log);
            open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

fn serve(connection: UnixStream, tickets: &Tickets, log: &dyn Log) -> io::Result<()> {
    connection.set_read_timeout(Some(SILENCE))?;
    connection.set_write_timeout(Some(SILENCE))?;
    let mut writer = connection.try_clone()?;
    let mut reader = BufReader::new(connection);
    loop {
        let mut line = Vec::new();
        let count = (&mut reader).take(REQUEST_BYTES).read_until(b'\n', &mut line)?;
        if count == 0 {
            return Ok(());
        }
        let called = answer(&line, tickets);
        log.write(&called)?;
        let mut text = serde_json::to_vec(&called.answer).map_err(io::Error::other)?;
        text.push(b'\n');
        writer.write_all(&text)?;
        if line.last() != Some(&b'\n') {
            return Ok(());
        }
    }
}

fn answer(line: &[u8], tickets: &Tickets) -> Called {
    let refused = |tool: &str, arguments: Value, code: &str, why: String| Called {
        tool: tool.chars().take(40).collect(),
        arguments,
        answer: Envelope::refused(Verb::Task, code, why),
    };
    let request: Request = match serde_json::from_slice(line) {
        Ok(request) => request,
        Err(error) => {
            let text = String::from_utf8_lossy(line).chars().take(400).collect();
            return refused(
                "unreadable",
                Value::String(text),
                "tool/bad-request",
                format!("the request cannot be read: {error}"),
            );
        }
    };
    let verb: Verb = match request.verb.parse() {
        Ok(verb) => verb,
        Err(why) => return refused(&request.verb, request.arguments, "tool/no-such-verb", why),
    };
    let wait = Duration::from_millis(request.wait_ms).min(LONGEST_WAIT);
    Called {
        tool: verb.name().to_owned(),
        answer: tickets.ask(verb, &request.arguments, wait),
        arguments: request.arguments,
    }
}

impl Called {
    /// Whether the call was allowed.
    pub fn allowed(&self) -> bool {
        self.answer.verdict != ToolVerdict::Refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::ask;
    use serde_json::json;
    use std::sync::Mutex;

    struct Echo;

    impl Verbs for Echo {
        fn call(&self, verb: Verb, arguments: &Value) -> Envelope {
            Envelope::new(verb, ToolVerdict::Info, arguments.to_string())
        }
    }

    #[derive(Default)]
    struct Kept(Mutex<Vec<Called>>);

    impl Log for Kept {
        fn write(&self, called: &Called) -> io::Result<()> {
            self.0.lock().unwrap().push(called.clone());
            Ok(())
        }
    }

    struct Full;

    impl Log for Full {
        fn write(&self, _: &Called) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    #[test]
    fn a_call_is_answered_and_written_down() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tools.sock");
        let kept = Arc::new(Kept::default());
        let server = Server::start(&path, Arc::new(Echo), Arc::clone(&kept) as Arc<dyn Log>).unwrap();
        let answer = ask(&path, "test", &json!({ "case": 1 }), Duration::from_secs(5)).unwrap();
        assert_eq!(answer.summary, "{\"case\":1}");
        let answer = ask(&path, "promote", &json!({}), Duration::ZERO).unwrap();
        assert_eq!(answer.code.as_deref(), Some("tool/no-such-verb"));
        drop(server);
        assert!(!path.exists());
        assert!(ask(&path, "task", &json!({}), Duration::ZERO).is_err());
        let kept = kept.0.lock().unwrap();
        let tools: Vec<(&str, bool)> = kept
            .iter()
            .map(|called| (called.tool.as_str(), called.allowed()))
            .collect();
        assert_eq!(tools, [("test", true), ("promote", false)]);
    }

    #[test]
    fn garbage_and_endless_lines_are_refused_and_the_server_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tools.sock");
        let kept = Arc::new(Kept::default());
        let _server = Server::start(&path, Arc::new(Echo), Arc::clone(&kept) as Arc<dyn Log>).unwrap();
        for garbage in [
            b"not json\n".to_vec(),
            vec![b'x'; 100 << 10],
            b"{\"verb\":\"task\",\"judge\":1}\n".to_vec(),
        ] {
            let mut connection = UnixStream::connect(&path).unwrap();
            // An endless line is cut off while we still write.
            let _ = connection.write_all(&garbage);
            let mut line = String::new();
            let _ = BufReader::new(connection).read_line(&mut line);
            let answer: Envelope = serde_json::from_str(&line).unwrap();
            assert_eq!(answer.code.as_deref(), Some("tool/bad-request"));
        }
        assert!(ask(&path, "task", &json!({}), Duration::ZERO).is_ok());
    }

    #[test]
    fn an_answer_that_cannot_be_written_down_is_withheld() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tools.sock");
        let _server = Server::start(&path, Arc::new(Echo), Arc::new(Full)).unwrap();
        assert!(ask(&path, "task", &json!({}), Duration::ZERO).is_err());
    }
}

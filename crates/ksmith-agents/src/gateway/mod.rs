//! The model gateway: the only way from a run to a model, for every writer and reviewer.
//!
//! Agents get an address on this machine and a key that is good for nothing else. The gateway holds the real key,
//! pins the model, lets only the model endpoints through, counts tokens and dollars, refuses the next call when the
//! budget is spent, and has each call on disk before it is sent and again before its answer is complete at the client
//! (`docs/gateway.md`). It does not judge what is said, and it is not the box: an agent that reaches a network past it
//! is the box's failure.
//!
//! Synchronous: a thread per connection. [`Client`] takes the same way without a socket.

mod budget;
mod call;
mod client;
mod exchange;
mod keys;
mod price;
mod providers;
mod redact;
mod server;
mod tape;
mod upstream;
mod wire;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use exchange::Core;
use keys::Keys;

pub use budget::{Exhausted, Limits, Meter, Spent, Tally};
pub use call::{Answered, Body, Call, NoRecord, Sent, Sink};
pub use client::{Answer, Client, ClientError, Message, Spoken, Stop, Tool, ToolUse};
pub use price::{Price, PriceError, PriceTable};
pub use providers::{Endpoint, ProviderError, find as find_upstream, vendor};
pub use redact::{REDACTED, Redactor, Secret};
pub use tape::{Matching, Otherwise, Recorded, Replay, read_tape, write_tape};
pub use upstream::{Upstream, UpstreamError};
pub use wire::{AnswerReader, Event, Flow, Prepared, RequestError, Splitter, Usage, Wire, prepare, shape};

/// The role of a gateway's first key.
pub const WRITER: &str = "writer";
/// The role of a model that reviews.
pub const REVIEWER: &str = "reviewer";

/// Why no gateway was started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// The server's address is not used.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// Neither a server nor recorded answers.
    #[error("a gateway needs a model server or a recorded run")]
    NoSource,
    /// The system refused.
    #[error("the gateway cannot {what}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// What a gateway does.
pub struct Options {
    /// The model server; absent where every answer is recorded.
    pub upstream: Option<Upstream>,
    /// The format where there is no server.
    pub wire: Wire,
    /// The model; whatever a request names is replaced by it.
    pub model: String,
    /// What it costs.
    pub price: Price,
    /// The account that is charged.
    pub meter: Arc<Meter>,
    /// Where calls are recorded.
    pub sink: Box<dyn Sink>,
    /// Recorded answers that come before the server; shared by the gateways of a run, for each is served once.
    pub replay: Option<Arc<Mutex<Replay>>>,
    /// Further secrets to keep out of the record.
    pub secrets: Vec<Secret>,
    /// Most bytes of a request.
    pub request_bytes: usize,
    /// How long the server may be silent.
    pub timeout: Duration,
}

impl Options {
    /// A server and a model, with an account and a record; everything else as usual.
    pub fn new(
        upstream: Upstream,
        model: &str,
        price: Price,
        meter: Arc<Meter>,
        sink: Box<dyn Sink>,
    ) -> Self {
        Self {
            wire: upstream.wire,
            upstream: Some(upstream),
            model: model.to_owned(),
            price,
            meter,
            sink,
            replay: None,
            secrets: Vec::new(),
            request_bytes: 32 * 1024 * 1024,
            timeout: Duration::from_secs(600),
        }
    }

    /// A recorded run instead of a server.
    pub fn replaying(
        wire: Wire,
        model: &str,
        replay: Replay,
        meter: Arc<Meter>,
        sink: Box<dyn Sink>,
    ) -> Self {
        Self {
            wire,
            upstream: None,
            model: model.to_owned(),
            price: Price::free(),
            meter,
            sink,
            replay: Some(Arc::new(Mutex::new(replay))),
            secrets: Vec::new(),
            request_bytes: 32 * 1024 * 1024,
            timeout: Duration::from_secs(600),
        }
    }
}

/// A running gateway; it stops when dropped. Calls in flight are then read to their end and recorded, as long as the
/// process lives.
pub struct Gateway {
    core: Arc<Core>,
    keys: Arc<Keys>,
    limits: ksmith_http::Limits,
    servers: Vec<ksmith_http::Server>,
    address: SocketAddr,
    dummy_key: String,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway")
            .field("address", &self.address)
            .field("model", &self.core.model)
            .finish_non_exhaustive()
    }
}

impl Gateway {
    /// Starts serving on loopback.
    ///
    /// # Errors
    /// When the server's address is not used, there is no source of answers, or the system refuses a socket.
    pub fn start(options: Options) -> Result<Self, GatewayError> {
        if options.upstream.is_none() && options.replay.is_none() {
            return Err(GatewayError::NoSource);
        }
        let wire = options
            .upstream
            .as_ref()
            .map_or(options.wire, |upstream| upstream.wire);
        let key = options
            .upstream
            .as_ref()
            .and_then(|upstream| upstream.key.clone());
        let redactor = Redactor::new(key.into_iter().chain(options.secrets));
        let sender = options
            .upstream
            .map(|upstream| upstream::Sender::new(upstream, options.timeout))
            .transpose()?;
        let core = Arc::new(Core {
            sender,
            wire,
            model: options.model,
            price: options.price,
            meter: options.meter,
            redactor,
            sink: Mutex::new(options.sink),
            replay: options.replay,
            is_broken: AtomicBool::new(false),
        });
        let io = |what| move |source| GatewayError::Io { what, source };
        let keys = Arc::new(Keys::default());
        let dummy_key = keys.issue(WRITER).map_err(io("draw a random key"))?;
        let limits = ksmith_http::Limits {
            body_bytes: options.request_bytes,
            ..ksmith_http::Limits::DEFAULT
        };
        let server = ksmith_http::Server::tcp(0, limits, server::handler(&core, &keys))
            .map_err(io("listen on loopback"))?;
        let address = server.address().ok_or(GatewayError::NoSource)?;
        Ok(Self {
            core,
            keys,
            limits,
            servers: vec![server],
            address,
            dummy_key,
        })
    }

    /// Where agents find it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base address, without path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Serves on a Unix socket too, for boxes without network. The file is open to every user that reaches its
    /// folder; the key is still needed.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn socket(&mut self, path: &Path) -> Result<(), GatewayError> {
        let io = |what| move |source| GatewayError::Io { what, source };
        let server = ksmith_http::Server::unix(path, self.limits, server::handler(&self.core, &self.keys))
            .map_err(io("listen on a socket"))?;
        self.servers.push(server);
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))
            .map_err(io("open the socket to the box"))
    }

    /// The key for the writer: good for this gateway, as long as it runs.
    pub fn dummy_key(&self) -> &str {
        &self.dummy_key
    }

    /// A key for another role (`reviewer`, `critic`, …).
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn key_for(&self, role: &str) -> Result<String, GatewayError> {
        self.keys.issue(role).map_err(|source| GatewayError::Io {
            what: "draw a random key",
            source,
        })
    }

    /// The format that it speaks.
    pub fn wire(&self) -> Wire {
        self.core.wire
    }

    /// The pinned model.
    pub fn model(&self) -> &str {
        &self.core.model
    }

    /// What the account has spent, calls in flight included at their bound.
    pub fn spent(&self) -> Spent {
        self.core.meter.spent()
    }

    /// The account.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.core.meter
    }

    /// Takes secrets out of a text, as in the record.
    pub fn redactor(&self) -> &Redactor {
        &self.core.redactor
    }

    /// Whether the record of calls failed; nothing is let through any more.
    pub fn is_broken(&self) -> bool {
        self.core.is_broken.load(Ordering::SeqCst)
    }

    /// Recorded answers that were not asked for; zero without a replay.
    pub fn replay_left(&self) -> usize {
        let left = |replay: &Arc<Mutex<Replay>>| replay.lock().unwrap_or_else(PoisonError::into_inner).left();
        self.core.replay.as_ref().map_or(0, left)
    }
}

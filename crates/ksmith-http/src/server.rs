//! Listens, and gives each connection a thread of its own.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::request::{self, Unread};
use crate::socket::Socket;
use crate::{Reply, Request};

/// Bounds on what a peer may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Connections at a time; further ones are closed at once.
    pub connections: usize,
    /// How long a peer may be silent while a request is read or an answer is written.
    pub silence: Duration,
}

impl Limits {
    /// 64 KiB of head, 32 MiB of body, 64 connections, 60 s of silence.
    pub const DEFAULT: Self = Self {
        head_bytes: 64 * 1024,
        body_bytes: 32 * 1024 * 1024,
        connections: 64,
        silence: Duration::from_secs(60),
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Whoever answers.
pub trait Handler: Send + Sync + 'static {
    /// Answers one request, on the thread of its connection. An error means that the peer is gone.
    ///
    /// # Errors
    /// When the answer could not be written.
    fn handle(&self, request: Request, reply: Reply<'_>) -> io::Result<()>;
}

impl<F> Handler for F
where
    F: Fn(Request, Reply<'_>) -> io::Result<()> + Send + Sync + 'static,
{
    fn handle(&self, request: Request, reply: Reply<'_>) -> io::Result<()> {
        self(request, reply)
    }
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

struct Shared {
    handler: Arc<dyn Handler>,
    limits: Limits,
    stopping: AtomicBool,
    open: Mutex<HashMap<u64, Socket>>,
    next: AtomicU64,
}

/// A running server; dropping it stops listening and closes every connection.
pub struct Server {
    place: Place,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug, Clone)]
enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Listens on 127.0.0.1, on a port of the system's choice where `port` is 0.
    ///
    /// # Errors
    /// When the port is taken, or no thread can be had.
    pub fn tcp(port: u16, limits: Limits, handler: Arc<dyn Handler>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let place = Place::Tcp(listener.local_addr()?);
        Self::start(Listener::Tcp(listener), place, limits, handler)
    }

    /// Listens on a Unix socket that does not exist yet; it is removed when the server is dropped.
    ///
    /// # Errors
    /// When the socket cannot be made, or no thread can be had.
    pub fn unix(path: &Path, limits: Limits, handler: Arc<dyn Handler>) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        Self::start(
            Listener::Unix(listener),
            Place::Unix(path.to_owned()),
            limits,
            handler,
        )
    }

    fn start(
        listener: Listener,
        place: Place,
        limits: Limits,
        handler: Arc<dyn Handler>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            handler,
            limits,
            stopping: AtomicBool::new(false),
            open: Mutex::default(),
            next: AtomicU64::new(0),
        });
        let for_thread = Arc::clone(&shared);
        let accepting = std::thread::Builder::new()
            .name("http-accept".into())
            .spawn(move || accept(&listener, &for_thread))?;
        Ok(Self {
            place,
            shared,
            accepting: Some(accepting),
        })
    }

    /// Where it listens, if over TCP.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.place {
            Place::Tcp(address) => Some(*address),
            Place::Unix(_) => None,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Accepting has no time limit: a connection of our own wakes it.
        let woken = match &self.place {
            Place::Tcp(address) => TcpStream::connect_timeout(address, Duration::from_secs(1)).is_ok(),
            Place::Unix(path) => UnixStream::connect(path).is_ok(),
        };
        if let Some(thread) = self.accepting.take().filter(|_| woken) {
            let _ = thread.join();
        }
        if let Place::Unix(path) = &self.place {
            let _ = std::fs::remove_file(path);
        }
        for socket in lock(&self.shared.open).values() {
            socket.shutdown(Shutdown::Both);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // The map of open connections is whole after each statement, so a panic elsewhere leaves it usable.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &Listener, shared: &Arc<Shared>) {
    loop {
        let accepted = match listener {
            Listener::Tcp(listener) => listener.accept().map(|(socket, _)| Socket::Tcp(socket)),
            Listener::Unix(listener) => listener.accept().map(|(socket, _)| Socket::Unix(socket)),
        };
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        match accepted {
            Ok(socket) => admit(socket, shared),
            // Out of descriptors, or a peer that left at once: neither ends the server.
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Gives a connection its thread; without room, descriptor or thread it is closed.
fn admit(socket: Socket, shared: &Arc<Shared>) {
    let Ok(second) = socket.try_clone() else { return };
    let number = shared.next.fetch_add(1, Ordering::Relaxed);
    {
        let mut open = lock(&shared.open);
        if open.len() >= shared.limits.connections {
            return;
        }
        open.insert(number, second);
    }
    let for_thread = Arc::clone(shared);
    let spawned = std::thread::Builder::new().name("http".into()).spawn(move || {
        let _closed = Closed(&for_thread, number);
        serve(socket, &for_thread);
    });
    if spawned.is_err() {
        lock(&shared.open).remove(&number);
    }
}

/// Takes a connection off the list, also when its handler panics.
struct Closed<'a>(&'a Shared, u64);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        lock(&self.0.open).remove(&self.1);
    }
}

/// Errors mean that the peer is gone: there is nobody left to tell.
fn serve(mut socket: Socket, shared: &Shared) {
    if socket.set_timeout(shared.limits.silence).is_err() {
        return;
    }
    match request::read(&mut socket, &shared.limits) {
        Ok(request) => {
            let method = request.method.clone();
            let _ = shared.handler.handle(request, Reply::new(&mut socket, &method));
        }
        Err(Unread::Refused(status, sentence)) => {
            let _ = Reply::new(&mut socket, "").send(
                status,
                &[("content-type", "text/plain")],
                sentence.as_bytes(),
            );
            linger(&mut socket);
        }
        Err(Unread::Gone) => {}
    }
    // The list of open connections holds a second descriptor, so dropping this one would not close it.
    socket.shutdown(Shutdown::Both);
}

/// Reads on for a moment: closing over unread bytes would take the answer away from the peer.
fn linger(socket: &mut Socket) {
    socket.shutdown(Shutdown::Write);
    let until = Instant::now() + Duration::from_secs(1);
    if socket.set_timeout(Duration::from_millis(200)).is_err() {
        return;
    }
    let mut rest = [0; 16 * 1024];
    while Instant::now() < until && socket.read(&mut rest).is_ok_and(|count| count > 0) {}
}

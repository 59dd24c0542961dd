//! A small HTTP/1.1 server on threads, for loopback and Unix sockets.
//!
//! Heads are parsed by `httparse`; this crate adds framing, bounds and streaming: every request is read whole within
//! a size limit, every answer closes its connection, and each piece of a streamed answer is on the wire when
//! [`Stream::write`] returns. (The synchronous servers in the registry hold chunks back until 8 KiB have gathered,
//! which would stall an event stream, or bring an async runtime.)
//!
//! It speaks to programs on this machine. It does no TLS, no pipelining and no compression.

mod reply;
mod request;
mod server;
mod socket;

pub use reply::{Reply, Stream, reason};
pub use request::Request;
pub use server::{Handler, Limits, Server};

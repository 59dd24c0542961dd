//! Tools for agents: at most eight verbs, one envelope, two faces (a socket in the box, an MCP server).
//!
//! Every verb is a probe. What it says helps an agent to find its way; what counts is the judge's own fresh run on the
//! files that are left. No verb returns hidden shapes, seeds or expected values, because none of them is given any: the
//! verbs come from the loop through [`Verbs`], with dev cases only.

mod client;
mod envelope;
#[cfg(feature = "mcp")]
mod mcp;
mod server;
mod tickets;
mod verb;

pub use client::{ToolError, ask};
pub use envelope::{Cost, Envelope, SUMMARY_BYTES, ToolVerdict};
#[cfg(feature = "mcp")]
pub use mcp::serve as serve_mcp;
pub use server::{Called, Log, Server};
pub use tickets::Tickets;
pub use verb::{Verb, Verbs};

/// The environment variable that names the socket of the tools inside an agent's box.
pub const SOCKET_VARIABLE: &str = "KSMITH_TOOLS";

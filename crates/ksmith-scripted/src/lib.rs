//! Test support: a model server that answers from a script, in the formats of OpenAI chat completions, OpenAI
//! responses and Anthropic messages, streamed or not, and misbehaves on demand.
//!
//! A [`Script`] is a list of [`Turn`]s, each with conditions on the request; the first that fits answers. Conditions
//! look at the conversation, not at a counter, because command-line agents retry, ask for titles and open side
//! conversations. It needs no network but loopback, holds no key, and is never linked into `ksmith`.
//!
//! ```
//! use ksmith_scripted::{Action, Options, Script, ScriptedServer, Turn};
//!
//! let script = Script::new([
//!     Turn::calls([Action::shell("echo hello > greeting.txt")]).after_results(0),
//!     Turn::text("Done.").after_results(1),
//! ]);
//! let server = ScriptedServer::start(Options::new(script))?;
//! assert!(server.url().starts_with("http://127.0.0.1:"));
//! # Ok::<(), std::io::Error>(())
//! ```

mod answer;
mod asked;
mod reviewer;
mod script;
mod server;

pub use asked::{Asked, Tool, Wire};
pub use script::{Action, Fault, Script, Turn, Usage, When};
pub use server::{Options, ScriptedServer, Seen};

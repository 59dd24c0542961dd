//! The client's face: what `ksmith tool VERB` does inside a box.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::Envelope;
use super::server::Request;

/// Longest answer, in bytes.
const ANSWER_BYTES: u64 = 1 << 20;
/// How long the server may take beyond what it was asked to wait.
const GRACE: Duration = Duration::from_secs(30);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The server is not there, or broke off.
    #[error("the tools at `{}` do not answer", socket.display())]
    Io {
        /// Its socket.
        socket: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The answer is none.
    #[error("the tools gave an answer that cannot be read: {0}")]
    Answer(String),
}

/// Asks the server behind a socket for one verb, waiting at most `wait` for long work.
///
/// # Errors
/// When no answer comes.
pub fn ask(socket: &Path, verb: &str, arguments: &Value, wait: Duration) -> Result<Envelope, ToolError> {
    let failed = |source| ToolError::Io {
        socket: socket.to_owned(),
        source,
    };
    let request = Request {
        verb: verb.to_owned(),
        arguments: arguments.clone(),
        wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
    };
    let mut text = serde_json::to_vec(&request).map_err(|error| ToolError::Answer(error.to_string()))?;
    text.push(b'\n');
    let mut connection = UnixStream::connect(socket).map_err(failed)?;
    connection.set_read_timeout(Some(wait + GRACE)).map_err(failed)?;
    connection.write_all(&text).map_err(failed)?;
    let mut line = String::new();
    BufReader::new(connection.take(ANSWER_BYTES))
        .read_line(&mut line)
        .map_err(failed)?;
    if line.is_empty() {
        return Err(failed(std::io::ErrorKind::UnexpectedEof.into()));
    }
    serde_json::from_str(&line).map_err(|error| ToolError::Answer(error.to_string()))
}

//! What runs first in an agent's box: relays from loopback ports to Unix sockets, then the agent's program.
//!
//! The box has no network but its own loopback. Agents want an address for their model, so this role listens on one port
//! there and carries every connection to the gateway's socket, which is the only thing of the outside that is shown. It
//! runs inside the box with no more rights than the agent: if the agent kills it, the box ends.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use ksmith_box::{Role, RoleContext};
use serde::{Deserialize, Serialize};

/// The role; every `main` that drives agents hands it to `ksmith_box::intercept_with`.
pub const ROLE: Role = Role {
    name: NAME,
    before: None,
    run: start,
};

/// The role's name.
pub(crate) const NAME: &str = "agent";

/// Exit code where the program could not be started, as shells have it.
const NOT_STARTED: i32 = 127;

/// What the role is to do; passed as its only argument.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Errand {
    /// The agent's program.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) args: Vec<String>,
    /// Its whole environment.
    pub(crate) env: BTreeMap<String, String>,
    /// Loopback port, and the socket to which its connections are carried.
    pub(crate) relay: Option<(u16, PathBuf)>,
}

fn start(context: &RoleContext) -> i32 {
    let errand: Option<Errand> = context
        .args
        .first()
        .and_then(|text| serde_json::from_str(text).ok());
    let Some(errand) = errand else {
        return say("the errand cannot be read");
    };
    if errand.program.as_os_str() == super::probe::WORD {
        return super::probe::look(&errand.args);
    }
    if let Some((port, socket)) = errand.relay
        && let Err(error) = listen(port, socket)
    {
        return say(&format!("cannot listen on port {port} of the loopback: {error}"));
    }
    let status = Command::new(&errand.program)
        .args(&errand.args)
        .env_clear()
        .envs(&errand.env)
        .status();
    match status {
        Ok(status) => status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or_default()),
        Err(error) => say(&format!("cannot start `{}`: {error}", errand.program.display())),
    }
}

fn say(text: &str) -> i32 {
    use std::io::Write as _;
    let _ = writeln!(io::stderr(), "ksmith: {text}");
    NOT_STARTED
}

fn listen(port: u16, socket: PathBuf) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let socket = socket.clone();
            thread::spawn(move || {
                // A connection that breaks is the agent's own affair.
                let _ = carry(connection, &socket);
            });
        }
    });
    Ok(())
}

/// Carries one connection, both ways, until both sides are done.
fn carry(inside: TcpStream, socket: &Path) -> io::Result<()> {
    let outside = UnixStream::connect(socket)?;
    let (mut from, mut to) = (inside.try_clone()?, outside.try_clone()?);
    let up = thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let (mut from, mut to) = (outside, inside);
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
    let _ = up.join();
    Ok(())
}

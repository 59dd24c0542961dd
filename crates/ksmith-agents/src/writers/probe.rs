//! Tries, from inside an agent's box, what an agent must not be able to do: the facts behind `doctor --safety`.
//!
//! The answers come from the same box that agents get, so they change when the box does.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ksmith_box::{BoxError, Level};
use ksmith_machine::AgentFacts;
use serde::{Deserialize, Serialize};

use super::relay::Errand;
use super::{AgentBox, Bounds, Desk, Profile, Snapshot};

/// In place of a program: look around and print what was seen.
pub(crate) const WORD: &str = "ksmith-look-around";

/// What an agent's box shows and allows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Anything of the user's home folder can be listed, but the agent's own folders, should they lie there.
    pub home: bool,
    /// A packet or connection can leave the machine.
    pub network: bool,
    /// A namespace can be made, or another process can be traced.
    pub dangerous: bool,
    /// A given file could be changed in place, so that the change shows afterwards.
    pub changed: bool,
}

/// Inside the box: looks around and prints [`Seen`] as JSON.
pub(crate) fn look(args: &[String]) -> i32 {
    let [home, given] = args else { return 2 };
    // Folders on the way to the agent's own are empty shells.
    let own = Path::new(given)
        .strip_prefix(home)
        .ok()
        .and_then(|inner| inner.components().next())
        .map(|first| first.as_os_str().to_owned());
    let listed =
        std::fs::read_dir(home).map(|entries| entries.flatten().any(|entry| Some(entry.file_name()) != own));
    let seen = Seen {
        home: listed.unwrap_or(false),
        network: leaves(),
        dangerous: starts("unshare", &["-U", "true"]) || starts("mount", &["-t", "tmpfs", "x", "/tmp"]),
        changed: change(Path::new(given)).is_ok(),
    };
    let text = serde_json::to_string(&seen).unwrap_or_default();
    let _ = writeln!(std::io::stdout(), "{text}");
    0
}

/// Addresses for documentation (RFC 5737): nobody answers there, and without a network they cannot even be tried.
fn leaves() -> bool {
    let tcp = SocketAddr::from(([192, 0, 2, 1], 80));
    let refused = |error: &std::io::Error| {
        matches!(
            error.kind(),
            std::io::ErrorKind::NetworkUnreachable
                | std::io::ErrorKind::HostUnreachable
                | std::io::ErrorKind::PermissionDenied
        )
    };
    let connected = match TcpStream::connect_timeout(&tcp, Duration::from_millis(200)) {
        Ok(_) => true,
        Err(error) => !refused(&error),
    };
    let sent = UdpSocket::bind(("0.0.0.0", 0)).and_then(|socket| socket.send_to(b"x", ("192.0.2.1", 9)));
    connected || sent.is_ok()
}

fn starts(program: &str, args: &[&str]) -> bool {
    Command::new(program)
        .args(args)
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Changes a file as one who means it: makes it writable first.
fn change(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
    std::fs::write(path, "changed")
}

/// Looks around in a box such as agents get, and adds what the profiles say of themselves.
///
/// # Errors
/// When no such box can be made here.
pub fn facts(user_home: &Path, scratch: &Path) -> Result<AgentFacts, BoxError> {
    let io = |source| BoxError::Io {
        what: "lay out a desk for a look around",
        source,
    };
    let desk = Desk::bare(scratch).map_err(io)?;
    let given = desk.path().join("task").join("given");
    std::fs::create_dir_all(desk.path().join("task")).map_err(io)?;
    std::fs::write(&given, "as given").map_err(io)?;
    let before = Snapshot::read(&desk.path(), &["task"], Bounds::GIVEN);
    let errand = Errand {
        program: PathBuf::from(WORD),
        args: vec![user_home.display().to_string(), given.display().to_string()],
        ..Errand::default()
    };
    let finished = ksmith_box::run(
        &AgentBox::new(&desk)
            .least(Level::Limits)
            .wall(Duration::from_secs(10))
            .spec(&errand),
    )?;
    let seen: Option<Seen> = serde_json::from_slice(&finished.stdout).ok();
    let after = Snapshot::read(&desk.path(), &["task"], Bounds::GIVEN);
    let shown = !before.differences(&after).is_empty();
    let command_lines = Profile::built_in()
        .into_iter()
        .map(|profile| {
            let mut line = vec![profile.program];
            line.extend(profile.args);
            line.extend(profile.files.into_iter().map(|file| file.text));
            (profile.name, line)
        })
        .collect();
    // A look around that failed has seen the worst.
    let seen = seen.unwrap_or(Seen {
        home: true,
        network: true,
        dangerous: true,
        changed: true,
    });
    Ok(AgentFacts {
        boxed_without_home: !seen.home,
        network_denied: !seen.network,
        dangerous_denied: !seen.dangerous,
        protected_diffs_shown: !seen.changed || shown,
        command_lines,
    })
}

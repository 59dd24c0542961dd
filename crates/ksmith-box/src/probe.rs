//! Tries every layer once, in a helper of its own, so that a refusal is known before anything depends on it.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use crate::helper::own_user_namespace;
use crate::mounts::{self, View};
use crate::seccomp::Filters;
use crate::sys::confine::{self, Listener};
use crate::sys::process::{self, Fork, Hang, Status};
use crate::{Isolation, Layer, LayerState, Level, Limits, Profile, landlock, wire};

/// Runs `trial` in a process of its own; the error number is its exit code.
fn attempt(trial: impl FnOnce() -> io::Result<()>) -> Result<(), String> {
    let pid = match process::fork() {
        Ok(Fork::Child) => {
            process::end_after(5);
            match trial() {
                Ok(()) => process::exit(0),
                Err(error) => process::exit(error.raw_os_error().unwrap_or(255)),
            }
        }
        Ok(Fork::Parent(pid)) => pid,
        Err(error) => return Err(error.to_string()),
    };
    match process::wait(pid, Hang::Yes) {
        Some((_, Status::Exited(0))) => Ok(()),
        Some((_, Status::Exited(255))) => Err("not supported".to_owned()),
        Some((_, Status::Exited(code))) => Err(io::Error::from_raw_os_error(code).to_string()),
        Some((_, Status::Signal(signal))) => Err(format!("killed by signal {signal}")),
        None => Err("lost".to_owned()),
    }
}

/// Unshares and forks, as a process namespace needs.
fn namespace(flag: i32, through_user: bool) -> io::Result<()> {
    if through_user {
        own_user_namespace()?;
    }
    confine::unshare(flag)?;
    match process::fork()? {
        Fork::Child => process::exit(0),
        Fork::Parent(pid) => match process::wait(pid, Hang::Yes) {
            Some((_, Status::Exited(0))) => Ok(()),
            _ => Err(io::Error::other("no process starts in it")),
        },
    }
}

/// The helper's side: prints the layers as JSON; never returns.
pub(crate) fn main() -> ! {
    let root = process::effective_uid() == 0;
    let all = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWNET;
    let through_user = attempt(|| namespace(all, false)).is_err();
    let space = |flag| attempt(move || namespace(flag, through_user));
    let states: Vec<LayerState> = [
        (
            Layer::Rlimits,
            attempt(|| confine::limit(libc::RLIMIT_CORE, 0, 0)),
        ),
        (Layer::NoNewPrivileges, attempt(confine::no_new_privileges)),
        (
            Layer::UidDrop,
            if root {
                attempt(|| confine::become_user(1_610_612_735, 1_610_612_735))
            } else {
                Err("started as an ordinary user".to_owned())
            },
        ),
        (
            Layer::UserNamespace,
            if through_user {
                attempt(own_user_namespace)
            } else {
                Err("not needed".to_owned())
            },
        ),
        (Layer::PidNamespace, space(libc::CLONE_NEWPID)),
        (
            Layer::MountNamespace,
            attempt(|| {
                if through_user {
                    own_user_namespace()?;
                }
                confine::unshare(libc::CLONE_NEWNS)?;
                mounts::enter(&View::default())
            }),
        ),
        (Layer::NetworkNamespace, space(libc::CLONE_NEWNET)),
        (Layer::IpcNamespace, space(libc::CLONE_NEWIPC)),
        (Layer::HostNameNamespace, space(libc::CLONE_NEWUTS)),
        (
            Layer::Landlock,
            attempt(|| {
                confine::no_new_privileges()?;
                landlock::restrict(&landlock::Files::default(), landlock::Network::None)
            }),
        ),
        (Layer::Seccomp, filter(Listener::None)),
        (Layer::SeccompListener, filter(Listener::New)),
    ]
    .into_iter()
    .map(|(layer, result)| LayerState {
        layer,
        available: result.is_ok(),
        reason: result.err().unwrap_or_default(),
    })
    .collect();
    let text = serde_json::to_vec(&states).unwrap_or_default();
    let mut output = io::stdout().lock();
    let written = output.write_all(&text).and_then(|()| output.flush());
    process::exit(i32::from(written.is_err()))
}

fn filter(listener: Listener) -> Result<(), String> {
    attempt(|| {
        confine::no_new_privileges()?;
        Filters::new(Profile::Worker, listener, 3)?.install().map(drop)
    })
}

/// The starter's side.
pub(crate) fn ask() -> Isolation {
    let output = Command::new(crate::intercept::own_executable())
        .arg(wire::PROBE)
        .env_clear()
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let mut layers: Vec<LayerState> = output
        .ok()
        .and_then(|output| serde_json::from_slice(&output.stdout).ok())
        .unwrap_or_default();
    let groups = crate::cgroup::Groups::create(&Limits::default());
    layers.push(LayerState {
        layer: Layer::CgroupMemory,
        available: groups.limits_memory(),
        reason: if groups.limits_memory() {
            String::new()
        } else {
            "no writable control group".to_owned()
        },
    });
    Isolation {
        level: level_of(&layers),
        layers,
    }
}

/// The level that follows from a set of layers.
pub(crate) fn level_of(layers: &[LayerState]) -> Level {
    let has = |wanted: &[Layer]| {
        wanted.iter().all(|layer| {
            layers
                .iter()
                .any(|state| state.layer == *layer && state.available)
        })
    };
    if !has(&[Layer::Rlimits, Layer::NoNewPrivileges]) {
        Level::None
    } else if !has(&[Layer::Seccomp]) {
        Level::Limits
    } else if has(&[
        Layer::PidNamespace,
        Layer::MountNamespace,
        Layer::NetworkNamespace,
    ]) {
        Level::Box
    } else if has(&[Layer::Landlock]) {
        Level::Kernel
    } else {
        Level::Limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(layers: &[Layer]) -> Level {
        let states: Vec<_> = layers
            .iter()
            .map(|&layer| LayerState {
                layer,
                available: true,
                reason: String::new(),
            })
            .collect();
        level_of(&states)
    }

    #[test]
    fn a_level_needs_all_of_its_layers() {
        use Layer::{
            Landlock, MountNamespace, NetworkNamespace, NoNewPrivileges, PidNamespace, Rlimits, Seccomp,
        };
        let limits = [Rlimits, NoNewPrivileges];
        assert_eq!(with(&[]), Level::None);
        assert_eq!(with(&limits), Level::Limits);
        assert_eq!(with(&[Rlimits, NoNewPrivileges, Landlock]), Level::Limits);
        assert_eq!(
            with(&[Rlimits, NoNewPrivileges, Landlock, Seccomp]),
            Level::Kernel
        );
        let spaces = [PidNamespace, MountNamespace, NetworkNamespace];
        assert_eq!(with(&[&limits[..], &spaces, &[Seccomp]].concat()), Level::Box);
        assert_eq!(
            with(&[&limits[..], &spaces[..2], &[Seccomp, Landlock]].concat()),
            Level::Kernel
        );
        assert_eq!(with(&[&limits[..], &spaces, &[Landlock]].concat()), Level::Limits);
    }
}

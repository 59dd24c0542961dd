//! The helper's own work. Three processes, all of one thread:
//!
//! - the **warden** stands outside: it makes the namespaces, watches the starter, and kills the box if that is gone;
//! - the **init** is the first process inside: it sees the target's end or forbidden calls and says so;
//! - the **target** gives up everything and becomes the program or role.

use std::ffi::CString;
use std::fs;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::mounts::{self, View};
use crate::seccomp::Filters;
use crate::spec::Target;
use crate::sys::channel::{self, KeepOnExec};
use crate::sys::confine::{self, Listener};
use crate::sys::process::{self, Fork, Hang, Status};
use crate::wire::{Message, Wire};
use crate::{Ended, Layer, Profile, Role, RoleContext, landlock};

/// User ids of boxes start here; the helper's own process id is added, so that no two boxes share one.
const FIRST_UID: u32 = 1_610_612_736;
/// The user that a process in a user namespace sees itself as.
const INNER_UID: u32 = 1000;

/// A step of the set-up that failed.
struct Failure {
    step: &'static str,
    error: io::Error,
}

trait Step<T> {
    fn step(self, step: &'static str) -> Result<T, Failure>;
}

impl<T> Step<T> for io::Result<T> {
    fn step(self, step: &'static str) -> Result<T, Failure> {
        self.map_err(|error| Failure { step, error })
    }
}

impl Failure {
    fn message(&self) -> Message {
        Message::Failed {
            step: self.step.to_owned(),
            reason: self.error.to_string(),
        }
    }
}

/// Runs a helper; never returns.
pub(crate) fn main(roles: &[Role]) -> ! {
    const SPEC: RawFd = 3;
    const STATUS: RawFd = 4;
    const FIRST: RawFd = 5;
    let mut text = String::new();
    let mut file = channel::take(SPEC);
    let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
    // The number is closed or filled again below.
    std::mem::forget(file);
    let wire: Option<Wire> = read.ok().and_then(|_| serde_json::from_str(&text).ok());
    let Some(wire) = wire else { process::exit(3) };
    let count = i32::try_from(wire.fds).unwrap_or(0);
    let arrange = || -> io::Result<RawFd> {
        channel::duplicate(STATUS, FIRST + count, KeepOnExec::No)?;
        channel::close_from(FIRST + count + 1)?;
        for index in 0..count {
            channel::duplicate(FIRST + index, 3 + index, KeepOnExec::Yes)?;
        }
        channel::duplicate(FIRST + count, 3 + count, KeepOnExec::No)?;
        channel::close_from(4 + count)?;
        Ok(3 + count)
    };
    let Ok(status) = arrange() else { process::exit(3) };
    match warden(&wire, status, roles) {
        Ok(()) => process::exit(0),
        Err(failure) => {
            let _ = channel::send(status, &failure.message().encode(), None);
            process::exit(1)
        }
    }
}

fn warden(wire: &Wire, status: RawFd, roles: &[Role]) -> Result<(), Failure> {
    // Fails only if this is a session leader already.
    let _ = process::new_session();
    process::plain_umask();
    process::adopt_orphans().step("adopt orphans")?;
    for entrance in &wire.groups {
        fs::write(entrance, "0").step("enter the control group")?;
    }
    let uid = FIRST_UID + u32::try_from(process::own_pid()).unwrap_or(0);
    if wire.has(Layer::UserNamespace) {
        own_user_namespace().step("make a user namespace")?;
    }
    let flags = [
        (Layer::PidNamespace, libc::CLONE_NEWPID),
        (Layer::NetworkNamespace, libc::CLONE_NEWNET),
        (Layer::IpcNamespace, libc::CLONE_NEWIPC),
        (Layer::HostNameNamespace, libc::CLONE_NEWUTS),
    ]
    .iter()
    .filter(|(layer, _)| wire.has(*layer))
    .fold(0, |flags, (_, flag)| flags | flag);
    confine::unshare(flags).step("make namespaces")?;
    if wire.loopback.is_some() && wire.has(Layer::NetworkNamespace) {
        confine::raise_loopback().step("switch the loopback on")?;
    }
    let init_pid = match process::fork().step("fork")? {
        Fork::Child => {
            let result = init(wire, status, uid, roles);
            if let Err(failure) = &result {
                let _ = channel::send(status, &failure.message().encode(), None);
            }
            if !wire.has(Layer::PidNamespace) {
                kill_descendants();
            }
            process::exit(0)
        }
        Fork::Parent(pid) => pid,
    };
    let ended = process::pidfd(init_pid).step("watch the box")?;
    loop {
        match channel::poll([ended.as_raw_fd(), status], None) {
            Ok([true, _]) | Err(_) => break,
            Ok([false, true]) => {
                // The starter closed its end or is gone.
                break;
            }
            Ok([false, false]) => {}
        }
    }
    let _ = process::kill(init_pid, libc::SIGKILL);
    process::wait(init_pid, Hang::Yes);
    kill_descendants();
    Ok(())
}

/// Makes a user namespace in which this user is an ordinary one.
pub(crate) fn own_user_namespace() -> io::Result<()> {
    let (uid, gid) = (process::effective_uid(), process::effective_gid());
    confine::unshare(libc::CLONE_NEWUSER)?;
    // The file is missing on kernels before 3.19.
    let _ = fs::write("/proc/self/setgroups", "deny");
    fs::write("/proc/self/uid_map", format!("{INNER_UID} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{INNER_UID} {gid} 1"))
}

/// Kills all that is left below this process, however often it forked away.
fn kill_descendants() {
    let own = process::own_pid();
    for _ in 0..1000 {
        while process::wait(-1, Hang::No).is_some() {}
        let children = children_of(own);
        if children.is_empty() {
            return;
        }
        for child in children {
            let _ = process::kill(child, libc::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn children_of(parent: i32) -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            fs::read_to_string(format!("/proc/{pid}/stat"))
                .ok()
                .and_then(|stat| stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<i32>().ok())
                == Some(parent)
        })
        .collect()
}

fn init(wire: &Wire, status: RawFd, uid: u32, roles: &[Role]) -> Result<(), Failure> {
    process::die_with_parent(libc::SIGKILL).step("follow the warden")?;
    let started = Instant::now();
    if wire.has(Layer::UidDrop) {
        for path in &wire.read_write {
            hand_over(path, uid).step("hand over a writable path")?;
        }
    }
    let user = match (wire.has(Layer::UidDrop), wire.has(Layer::UserNamespace)) {
        (true, _) => uid,
        (false, true) => INNER_UID,
        (false, false) => process::effective_uid(),
    };
    if wire.has(Layer::MountNamespace) {
        confine::unshare(libc::CLONE_NEWNS).step("make a mount namespace")?;
        let view = View {
            read_only: &wire.read_only,
            read_write: &wire.read_write,
            devices: &wire.devices,
            temporary_bytes: (!wire.is_worker()).then_some(wire.limits.file_bytes.unwrap_or(256 << 20)),
            proc: wire.proc_view,
            user: wire.home.as_deref().map(|home| mounts::User { id: user, home }),
        };
        mounts::enter(&view).step("build the file view")?;
    }
    if !wire.has(Layer::PidNamespace) {
        process::adopt_orphans().step("adopt orphans")?;
    }
    let (ours, theirs) = channel::message_pair().step("make a channel")?;
    let target_pid = match process::fork().step("fork")? {
        Fork::Child => target(wire, status, &theirs, uid, roles),
        Fork::Parent(pid) => pid,
    };
    drop(theirs);
    let ended = watch(
        target_pid,
        ours,
        status,
        wire.limits.wall.map(|wall| started + wall),
    )?;
    channel::send(status, &Message::Ended(ended).encode(), None).step("report the end")
}

/// Makes the box's user the owner of a path and all below it; links are handed over, never followed.
fn hand_over(path: &Path, uid: u32) -> io::Result<()> {
    std::os::unix::fs::lchown(path, Some(uid), Some(uid))?;
    if fs::symlink_metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            hand_over(&entry?.path(), uid)?;
        }
    }
    Ok(())
}

/// Watches the target: its own end, a failed set-up, a forbidden call, the wall limit.
fn watch(
    target: i32,
    channel_end: OwnedFd,
    status: RawFd,
    deadline: Option<Instant>,
) -> Result<Ended, Failure> {
    let ended = process::pidfd(target).step("watch the target")?;
    let mut channel_end = Some(channel_end);
    let mut listener: Option<OwnedFd> = None;
    let number = |fd: &Option<OwnedFd>| fd.as_ref().map_or(-1, AsRawFd::as_raw_fd);
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            let _ = process::kill(target, libc::SIGKILL);
            return Ok(Ended::TimedOut);
        }
        let fds = [ended.as_raw_fd(), number(&listener), number(&channel_end)];
        let [over, stopped, message] = channel::poll(fds, left).step("watch the target")?;
        if message && let Some(socket) = &channel_end {
            match channel::receive(socket.as_raw_fd()) {
                Ok(received) if !received.bytes.is_empty() => {
                    listener = received.fd.or(listener);
                    if let Some(Message::Failed { step, reason }) = Message::decode(&received.bytes) {
                        let error = io::Error::other(format!("{step}: {reason}"));
                        return Err(Failure {
                            step: "prepare the target",
                            error,
                        });
                    }
                }
                Ok(_) | Err(_) => {
                    channel_end = None;
                    channel::send(status, &Message::Ready.encode(), None).step("report the start")?;
                }
            }
            continue;
        }
        // If no call is found, its process is gone already, or every process of the filter is: then the target's end
        // follows at once.
        if stopped
            && let Some(listener_fd) = &listener
            && let Some(number) = confine::stopped_call(listener_fd.as_raw_fd())
        {
            let _ = process::kill(target, libc::SIGKILL);
            return Ok(Ended::ForbiddenCall(crate::calls::name(number)));
        }
        if over {
            return Ok(match process::wait(target, Hang::Yes) {
                Some((_, Status::Exited(code))) => Ended::Exited(code),
                Some((_, Status::Signal(libc::SIGXCPU))) => Ended::TimedOut,
                Some((_, Status::Signal(libc::SIGSYS))) => Ended::ForbiddenCall("unknown".to_owned()),
                Some((_, Status::Signal(signal))) => Ended::Signal(signal),
                None => Ended::Killed,
            });
        }
    }
}

fn target(wire: &Wire, status: RawFd, report: &OwnedFd, uid: u32, roles: &[Role]) -> ! {
    let failure = match confine_and_run(wire, status, report.as_raw_fd(), uid, roles) {
        Ok(code) => process::exit(code),
        Err(failure) => failure,
    };
    let _ = channel::send(report.as_raw_fd(), &failure.message().encode(), None);
    process::exit(1)
}

fn limits(wire: &Wire) -> io::Result<()> {
    let limits = &wire.limits;
    let seconds = limits.cpu.map(|cpu| cpu.as_secs().max(1));
    let address_space = limits.address_space_bytes.or(limits.memory_bytes);
    // Sanitizers reserve terabytes of private memory for their shadow, which counts as data though it is never touched:
    // only the control group can hold such a program.
    let shadow = limits.address_space_bytes.is_some_and(|bytes| bytes >= 1 << 46);
    let table = [
        (libc::RLIMIT_CORE, Some(0)),
        (libc::RLIMIT_AS, address_space),
        (libc::RLIMIT_DATA, limits.memory_bytes.filter(|_| !shadow)),
        (libc::RLIMIT_FSIZE, limits.file_bytes),
        (libc::RLIMIT_NOFILE, limits.files),
        (libc::RLIMIT_NPROC, limits.processes),
        (libc::RLIMIT_STACK, limits.stack_bytes),
        (libc::RLIMIT_MEMLOCK, Some(0)),
        (libc::RLIMIT_MSGQUEUE, Some(0)),
    ];
    for (resource, value) in table {
        if let Some(value) = value {
            // Compilers raise their stack within the hard limit.
            let hard = if resource == libc::RLIMIT_STACK {
                value.max(64 << 20)
            } else {
                value
            };
            confine::limit(resource, value, hard)?;
        }
    }
    match seconds {
        Some(seconds) => confine::limit(libc::RLIMIT_CPU, seconds, seconds + 1),
        None => Ok(()),
    }
}

/// The TCP of a box, for Landlock.
fn network(wire: &Wire) -> landlock::Network {
    match wire.loopback {
        None => landlock::Network::None,
        Some(_) if wire.has(Layer::NetworkNamespace) => landlock::Network::Own,
        Some(port) => landlock::Network::Port(port),
    }
}

/// The files of a box, for Landlock.
fn files(wire: &Wire) -> landlock::Files {
    let mut files = landlock::Files {
        read_only: wire.read_only.clone(),
        read_write: wire.read_write.clone(),
        devices: mounts::DEVICES.iter().map(PathBuf::from).collect(),
        writable: Vec::new(),
    };
    files.devices.extend(wire.devices.iter().cloned());
    if wire.proc_view {
        files.read_only.push("/proc".into());
    }
    if wire.has(Layer::MountNamespace) && !wire.is_worker() {
        files.read_write.push("/tmp".into());
    }
    if wire.home.is_some() && wire.has(Layer::MountNamespace) {
        files
            .read_only
            .extend(mounts::USER_FILES.iter().map(PathBuf::from));
    }
    if wire.profile == Profile::Device {
        // `cuInit` starts threads and names them through `/proc/self/task/<thread>/comm`; a refusal there ends it with
        // CUDA_ERROR_OPERATING_SYSTEM. The rule binds to this very process, which becomes the role without an exec.
        files.writable.push("/proc/self/task".into());
    }
    files
}

/// Gives everything up, in the only order that works, and runs; returns the exit code of a role.
fn confine_and_run(
    wire: &Wire,
    status: RawFd,
    report: RawFd,
    uid: u32,
    roles: &[Role],
) -> Result<i32, Failure> {
    channel::send(status, &Message::Started.encode(), None).step("report the start")?;
    let _ = process::new_session();
    let cwd = wire.cwd.as_deref().unwrap_or(Path::new("/"));
    std::env::set_current_dir(cwd).step("enter the working folder")?;
    limits(wire).step("set limits")?;
    if !wire.cpus.is_empty() {
        confine::pin(&wire.cpus).step("pin to CPUs")?;
    }
    if wire.nice > 0 {
        confine::give_way(wire.nice).step("lower the priority")?;
    }
    if wire.has(Layer::UidDrop) {
        confine::become_user(uid, uid).step("become another user")?;
    }
    confine::drop_capabilities().step("drop capabilities")?;
    process::die_with_parent(libc::SIGKILL).step("follow the box")?;
    if wire.has(Layer::NoNewPrivileges) {
        confine::no_new_privileges().step("refuse new privileges")?;
    }
    if wire.profile == Profile::Device {
        process::own_proc_files().step("own the files of this process")?;
    }
    if wire.has(Layer::Landlock) {
        landlock::restrict(&files(wire), network(wire)).step("restrict files")?;
    }
    let program = prepare(wire, roles)?;
    if let Prepared::Role(
        Role {
            before: Some(before), ..
        },
        _,
    ) = &program
    {
        before();
    }
    if wire.has(Layer::Seccomp) {
        let kind = if wire.has(Layer::SeccompListener) {
            Listener::New
        } else {
            Listener::None
        };
        let filters = Filters::new(wire.profile, kind, report).step("compile the call filter")?;
        let listener = filters.install().step("install the call filter")?;
        if let Some(listener) = &listener {
            channel::send(report, b"listener", Some(listener.as_raw_fd())).step("hand over the listener")?;
        }
    }
    match program {
        Prepared::Program { path, args, env } => {
            Err(process::exec(&path, &args, &env)).step("start the program")
        }
        Prepared::Role(role, context) => {
            channel::close_from(status).step("close descriptors")?;
            let code = (role.run)(&context);
            // There are no exit handlers on the way out of here.
            let _ = io::stdout().flush();
            Ok(code)
        }
    }
}

enum Prepared {
    Program {
        path: CString,
        args: Vec<CString>,
        env: Vec<CString>,
    },
    Role(Role, RoleContext),
}

fn prepare(wire: &Wire, roles: &[Role]) -> Result<Prepared, Failure> {
    let text = |text: String| CString::new(text).map_err(io::Error::other);
    match &wire.target {
        Target::Program(path) => {
            let path = text(path.display().to_string()).step("name the program")?;
            let args = [path.clone()]
                .into_iter()
                .map(Ok)
                .chain(wire.args.iter().cloned().map(text))
                .collect::<io::Result<_>>()
                .step("name the arguments")?;
            let env = wire
                .env
                .iter()
                .map(|(name, value)| text(format!("{name}={value}")));
            let env = env.collect::<io::Result<_>>().step("name the environment")?;
            Ok(Prepared::Program { path, args, env })
        }
        Target::Role(name) => {
            let role = roles.iter().find(|role| role.name == name);
            let role = role
                .ok_or_else(|| io::Error::other(format!("no role `{name}`")))
                .step("find the role")?;
            let fds = (3..).take(wire.fds).collect();
            Ok(Prepared::Role(
                *role,
                RoleContext {
                    args: wire.args.clone(),
                    fds,
                },
            ))
        }
    }
}

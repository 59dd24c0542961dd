//! Processes: fork, exec, wait, signals, clocks.
#![expect(
    unsafe_code,
    reason = "fork, raw exec, process descriptors and clocks have no safe interface in std"
)]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;

use super::checked;

/// The two sides of a fork.
pub(crate) enum Fork {
    Parent(i32),
    Child,
}

/// Forks this process, which must have one thread only: the helper does.
pub(crate) fn fork() -> io::Result<Fork> {
    // SAFETY: helpers are single-threaded, so the child may go on with any code.
    match checked(unsafe { libc::fork() })? {
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(pid)),
    }
}

/// Ends this process at once, without destructors or exit handlers.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: never returns, touches no memory.
    unsafe { libc::_exit(code) }
}

/// How a process ended, as the kernel says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Exited(i32),
    Signal(i32),
}

/// Waits for one child (or any with -1); `None` if there is none left, or none yet and `hang` is `No`.
pub(crate) fn wait(pid: i32, hang: Hang) -> Option<(i32, Status)> {
    let flags = match hang {
        Hang::Yes => 0,
        Hang::No => libc::WNOHANG,
    };
    loop {
        let mut status = 0;
        // SAFETY: `status` is a live integer.
        match checked(unsafe { libc::waitpid(pid, &raw mut status, flags) }) {
            Ok(0) => return None,
            Ok(pid) if libc::WIFEXITED(status) => {
                return Some((pid, Status::Exited(libc::WEXITSTATUS(status))));
            }
            Ok(pid) => return Some((pid, Status::Signal(libc::WTERMSIG(status)))),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// Whether [`wait`] blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hang {
    Yes,
    No,
}

/// A descriptor that becomes readable when the process ends.
pub(crate) fn pidfd(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: no memory is involved; the descriptor is new.
    unsafe {
        let fd = checked(libc::syscall(libc::SYS_pidfd_open, pid, 0u32))?;
        Ok(OwnedFd::from_raw_fd(fd as i32))
    }
}

/// Sends a signal.
pub(crate) fn kill(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: no memory is involved.
    checked(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Lets files that this process makes be read by other users, whatever its starter wished.
pub(crate) fn plain_umask() {
    // SAFETY: never fails, and no memory is involved.
    unsafe { libc::umask(0o022) };
}

/// Starts a session of its own.
pub(crate) fn new_session() -> io::Result<()> {
    // SAFETY: no memory is involved.
    checked(unsafe { libc::setsid() }).map(drop)
}

/// Makes orphans of our descendants our own children.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    // SAFETY: no memory is involved.
    checked(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }).map(drop)
}

/// Asks for `signal` when our parent dies.
pub(crate) fn die_with_parent(signal: i32) -> io::Result<()> {
    // SAFETY: no memory is involved.
    checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0) }).map(drop)
}

/// Gives `/proc/self` back to this process: after a change of user the kernel keeps it for root.
pub(crate) fn own_proc_files() -> io::Result<()> {
    // SAFETY: no memory is involved.
    checked(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) }).map(drop)
}

/// Replaces this process by a program.
pub(crate) fn exec(program: &CStr, args: &[CString], env: &[CString]) -> io::Error {
    let pointers = |list: &[CString]| -> Vec<*const libc::c_char> {
        list.iter()
            .map(|text| text.as_ptr())
            .chain([std::ptr::null()])
            .collect()
    };
    let (args, env) = (pointers(args), pointers(env));
    // SAFETY: both arrays end with a null pointer and their strings outlive the call.
    unsafe { libc::execve(program.as_ptr(), args.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// CPU time of a process, all its threads together.
pub(crate) fn cpu_time(pid: i32) -> Option<Duration> {
    let mut clock = 0;
    // SAFETY: a zero `timespec` is valid, and both pointers are live.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        if libc::clock_getcpuclockid(pid, &raw mut clock) != 0 {
            return None;
        }
        checked(libc::clock_gettime(clock, &raw mut time)).ok()?;
        Some(Duration::new(
            u64::try_from(time.tv_sec).ok()?,
            u32::try_from(time.tv_nsec).ok()?,
        ))
    }
}

/// Bytes of memory of a process' own: resident, and shared with no file and no other process.
pub(crate) fn own_memory(pid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let mut pages = text
        .split_whitespace()
        .skip(1)
        .map(|field| field.parse::<u64>().ok());
    let (resident, shared) = (pages.next()??, pages.next()??);
    // SAFETY: asks for a constant of the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Some(resident.saturating_sub(shared) * u64::try_from(page).ok()?)
}

/// Our own effective user id.
pub(crate) fn effective_uid() -> u32 {
    // SAFETY: never fails.
    unsafe { libc::geteuid() }
}

/// Our own effective group id.
pub(crate) fn effective_gid() -> u32 {
    // SAFETY: never fails.
    unsafe { libc::getegid() }
}

/// Our own process id, in our own namespace.
pub(crate) fn own_pid() -> i32 {
    // SAFETY: never fails.
    unsafe { libc::getpid() }
}

/// Kills this process after some seconds, unless it ends before.
pub(crate) fn end_after(seconds: u32) {
    // SAFETY: no memory is involved.
    unsafe { libc::alarm(seconds) };
}

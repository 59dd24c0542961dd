//! Memory files, message sockets with descriptors and credentials, polling.
#![expect(
    unsafe_code,
    reason = "sockets with control messages and memory files have no safe interface in std"
)]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use super::checked;

/// Makes an anonymous file in memory.
pub(crate) fn memory_file(name: &std::ffi::CStr) -> io::Result<OwnedFd> {
    // SAFETY: `name` is a terminated string; the result is a new descriptor that nobody else owns.
    unsafe {
        let fd = checked(libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Makes a connected pair of message sockets; the first one sees the process ids of senders.
pub(crate) fn message_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    let on: libc::c_int = 1;
    // SAFETY: `fds` has room for two descriptors; both are new and owned here. The option value is a live `c_int`.
    unsafe {
        checked(libc::socketpair(
            libc::AF_UNIX,
            libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC,
            0,
            fds.as_mut_ptr(),
        ))?;
        let pair = (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1]));
        checked(libc::setsockopt(
            fds[0],
            libc::SOL_SOCKET,
            libc::SO_PASSCRED,
            (&raw const on).cast(),
            mem::size_of_val(&on) as libc::socklen_t,
        ))?;
        Ok(pair)
    }
}

/// Sends one message, with a descriptor if given.
pub(crate) fn send(socket: RawFd, bytes: &[u8], fd: Option<RawFd>) -> io::Result<()> {
    let mut part = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let mut control = [0u64; 8];
    // SAFETY: all pointers in `message` live until `sendmsg` returns; `control` is aligned and large enough for one
    // descriptor, as `CMSG_SPACE` says 24 bytes.
    unsafe {
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        if let Some(fd) = fd {
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(mem::size_of::<RawFd>() as u32) as _;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(mem::size_of::<RawFd>() as u32) as _;
            libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(fd);
        }
        checked(libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL))?;
    }
    Ok(())
}

/// One received message.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) bytes: Vec<u8>,
    /// Process id of the sender in our own view, if the socket asks for it.
    pub(crate) pid: Option<i32>,
    pub(crate) fd: Option<OwnedFd>,
}

/// Receives one message; an empty one means that the other side is closed.
pub(crate) fn receive(socket: RawFd) -> io::Result<Received> {
    let mut bytes = vec![0u8; 8192];
    let mut part = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    let mut control = [0u64; 16];
    let mut received = Received {
        bytes: Vec::new(),
        pid: None,
        fd: None,
    };
    // SAFETY: all pointers in `message` live until `recvmsg` returns, and the lengths are those of the buffers. The
    // headers are walked with the kernel's own macros, and a received descriptor is owned at once.
    unsafe {
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = mem::size_of_val(&control) as _;
        let length = checked(libc::recvmsg(socket, &raw mut message, libc::MSG_CMSG_CLOEXEC))?;
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            match ((*header).cmsg_level, (*header).cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) => {
                    received.pid = Some(libc::CMSG_DATA(header).cast::<libc::ucred>().read_unaligned().pid);
                }
                (libc::SOL_SOCKET, libc::SCM_RIGHTS) => {
                    let fd = libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned();
                    received.fd = Some(OwnedFd::from_raw_fd(fd));
                }
                _ => {}
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
        bytes.truncate(length as usize);
    }
    received.bytes = bytes;
    Ok(received)
}

/// Waits until one of the descriptors can be read or is closed; returns which ones are.
pub(crate) fn poll<const N: usize>(fds: [RawFd; N], timeout: Option<Duration>) -> io::Result<[bool; N]> {
    let mut entries = fds.map(|fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    let millis = timeout.map_or(-1, |t| {
        i32::try_from(t.as_micros().div_ceil(1000)).unwrap_or(i32::MAX)
    });
    // SAFETY: `entries` is a live array of `N` entries.
    let result = unsafe { libc::poll(entries.as_mut_ptr(), N as libc::nfds_t, millis) };
    match checked(result) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        Err(_) => Ok([false; N]),
        Ok(_) => Ok(entries.map(|entry| entry.revents != 0)),
    }
}

/// Makes `command` start with these descriptors as 3, 4, 5, and so on, and with no other.
pub(crate) fn pass_descriptors(command: &mut Command, fds: Vec<OwnedFd>) {
    // First all out of the way of the numbers to be filled, then down to their places.
    const AWAY: RawFd = 400;
    let mut away = vec![0; fds.len()];
    // SAFETY: the closure runs between fork and exec and only makes async-signal-safe calls; it allocates nothing.
    unsafe {
        command.pre_exec(move || {
            for (slot, fd) in away.iter_mut().zip(&fds) {
                *slot = checked(libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, AWAY))?;
            }
            for (number, fd) in (3..).zip(&away) {
                checked(libc::dup2(*fd, number))?;
            }
            Ok(())
        });
    }
}

/// Duplicates `from` as `to`.
pub(crate) fn duplicate(from: RawFd, to: RawFd, keep_on_exec: KeepOnExec) -> io::Result<()> {
    let flags = match keep_on_exec {
        KeepOnExec::Yes => 0,
        KeepOnExec::No => libc::O_CLOEXEC,
    };
    if from == to {
        return Ok(());
    }
    // SAFETY: no memory is involved.
    checked(unsafe { libc::dup3(from, to, flags) }).map(drop)
}

/// Whether a descriptor survives `exec`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeepOnExec {
    Yes,
    No,
}

/// Closes every descriptor from `first` on.
pub(crate) fn close_from(first: RawFd) -> io::Result<()> {
    let first = u32::try_from(first).unwrap_or(0);
    // SAFETY: no memory is involved; the helper owns no descriptor above `first`.
    checked(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0u32) }).map(drop)
}

/// Borrows a number as a file, to read it to its end.
pub(crate) fn take(fd: RawFd) -> std::fs::File {
    // SAFETY: called once per inherited descriptor by the helper, which owns them all.
    unsafe { std::fs::File::from_raw_fd(fd) }
}

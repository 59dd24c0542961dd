//! Shared memory between judge and worker, seen from both sides.
//!
//! Every memory file is sealed against shrinking and growing: a worker that truncated one would kill the judge with
//! SIGBUS. What the worker may only read is sealed against future writable maps as well, after the judge has made its
//! own: a read-only *map* alone is undone by `mprotect`.
#![expect(unsafe_code, reason = "maps of memory files have no safe interface in std")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;

/// Size of a page; guards and canaries are laid out by it.
pub(super) const PAGE: u64 = 4096;

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// What the worker may do with a memory file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkerMay {
    Read,
    Write,
}

/// A sealed memory file with the judge's own writable map.
#[derive(Debug)]
pub(super) struct Memory {
    start: NonNull<u8>,
    length: usize,
    fd: OwnedFd,
}

// SAFETY: the map belongs to this value alone and has no thread affinity.
unsafe impl Send for Memory {}

impl Memory {
    /// Makes a zeroed memory of at least one page.
    pub(super) fn new(bytes: u64, worker: WorkerMay) -> io::Result<Self> {
        let bytes = bytes.max(PAGE).next_multiple_of(PAGE);
        let length = usize::try_from(bytes).map_err(io::Error::other)?;
        let size = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
        let all = match worker {
            WorkerMay::Read => seals | libc::F_SEAL_FUTURE_WRITE | libc::F_SEAL_SEAL,
            WorkerMay::Write => seals | libc::F_SEAL_SEAL,
        };
        // SAFETY: the descriptor is new and owned at once; the map is new, of exactly `length` bytes of a file of that
        // size that nobody can shrink; seals involve no memory.
        unsafe {
            let fd = checked(libc::memfd_create(
                c"tensors".as_ptr(),
                libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING,
            ))?;
            let fd = OwnedFd::from_raw_fd(fd);
            checked(libc::ftruncate(fd.as_raw_fd(), size))?;
            checked(libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals))?;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let start = libc::mmap(
                std::ptr::null_mut(),
                length,
                protection,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            );
            let start = (start != libc::MAP_FAILED)
                .then(|| NonNull::new(start.cast()))
                .flatten();
            let start = start.ok_or_else(io::Error::last_os_error)?;
            let memory = Self { start, length, fd };
            checked(libc::fcntl(memory.fd.as_raw_fd(), libc::F_ADD_SEALS, all))?;
            Ok(memory)
        }
    }

    /// A descriptor for the worker.
    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.fd.try_clone()
    }

    pub(super) fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The bytes. Of memory that the worker may write, only while it is frozen or dead.
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the map is live as long as `self`; the caller keeps the worker from writing meanwhile.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    /// The bytes, writable, under the same condition.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }

    /// Reads up to 8 bytes that a running worker may be changing, little-endian; 0 where out of range.
    pub(super) fn peek(&self, offset: usize, count: u8) -> u64 {
        let mut value = [0u8; 8];
        for (index, byte) in value.iter_mut().enumerate().take(usize::from(count)) {
            if let Some(at) = offset.checked_add(index).filter(|at| *at < self.length) {
                // SAFETY: `at` is within the live map; volatile, because another process may write there.
                *byte = unsafe { self.start.as_ptr().add(at).read_volatile() };
            }
        }
        u64::from_le_bytes(value)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the map was made by `new` with this length and nobody borrows it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// Secret random bytes from the kernel.
pub(super) fn random() -> io::Result<u64> {
    let mut bytes = [0u8; 8];
    // SAFETY: the buffer is live and of the length given.
    let count = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if count == 8 {
        Ok(u64::from_ne_bytes(bytes))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Sends a byte and two descriptors to the worker.
pub(super) fn send_memories(socket: RawFd, fds: [RawFd; 2]) -> io::Result<()> {
    let byte = [1u8];
    let mut part = libc::iovec {
        iov_base: byte.as_ptr().cast_mut().cast(),
        iov_len: 1,
    };
    let mut control = [0u64; 8];
    // SAFETY: all pointers live until `sendmsg` returns; `control` has room for two descriptors.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(8) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(8) as _;
        libc::CMSG_DATA(header).cast::<[RawFd; 2]>().write_unaligned(fds);
        let sent = libc::sendmsg(
            socket,
            &raw const message,
            libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
        );
        if sent < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }
}

/// Reads one text message of the worker, if there is one; never more than 1000 bytes.
pub(super) fn read_text(socket: RawFd) -> Option<Vec<u8>> {
    let mut bytes = vec![0u8; 1000];
    // SAFETY: the buffer is live and of the length given.
    let count = unsafe { libc::recv(socket, bytes.as_mut_ptr().cast(), bytes.len(), libc::MSG_DONTWAIT) };
    bytes.truncate(usize::try_from(count).ok()?);
    Some(bytes)
}

/// A connected pair of message sockets.
pub(super) fn message_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: `fds` has room for two; both are new and owned at once.
    unsafe {
        checked(libc::socketpair(
            libc::AF_UNIX,
            libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC,
            0,
            fds.as_mut_ptr(),
        ))?;
        Ok((OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])))
    }
}

/// CPUs that this process may use, and pinning the calling thread while a call is timed.
pub(super) struct Pinned {
    before: Option<libc::cpu_set_t>,
}

fn affinity() -> Option<libc::cpu_set_t> {
    // SAFETY: the set is plain integers of the size given.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        (libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) == 0).then_some(set)
    }
}

/// The CPUs that the calling thread may use.
pub fn allowed_cpus() -> Vec<usize> {
    affinity().map_or_else(Vec::new, |set| {
        // SAFETY: every number is below the size of the set.
        (0..libc::CPU_SETSIZE as usize)
            .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
            .collect()
    })
}

impl Pinned {
    /// Keeps the calling thread on one CPU until dropped.
    pub(super) fn to(cpu: usize) -> Self {
        let before = affinity();
        // SAFETY: the set is plain integers; `cpu` came from a set of this size.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            if cpu < libc::CPU_SETSIZE as usize {
                libc::CPU_SET(cpu, &mut set);
                libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
            }
        }
        Self { before }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // SAFETY: the set is the one that the kernel gave.
            unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), before) };
        }
    }
}

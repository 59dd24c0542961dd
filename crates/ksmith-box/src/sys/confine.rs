//! Giving things up: namespaces, mounts, limits, privileges, system calls.
#![expect(
    unsafe_code,
    reason = "namespaces, mounts, limits and filters have no safe interface in std"
)]

use std::ffi::{CStr, CString};
use std::io;
use std::mem;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use seccompiler::sock_filter;

use super::checked;

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}

/// Leaves the shared namespaces named by `flags`.
pub(crate) fn unshare(flags: i32) -> io::Result<()> {
    // SAFETY: no memory is involved; the helper is single-threaded.
    checked(unsafe { libc::unshare(flags) }).map(drop)
}

/// Switches the loopback device of this network namespace on.
pub(crate) fn raise_loopback() -> io::Result<()> {
    // SAFETY: the descriptor is new and owned here; a zero request is valid, and the call only reads it.
    unsafe {
        let socket = checked(libc::socket(
            libc::AF_INET,
            libc::SOCK_DGRAM | libc::SOCK_CLOEXEC,
            0,
        ))?;
        let socket = OwnedFd::from_raw_fd(socket);
        let mut request: libc::ifreq = mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        checked(libc::ioctl(
            std::os::fd::AsRawFd::as_raw_fd(&socket),
            libc::SIOCSIFFLAGS,
            &raw const request,
        ))
        .map(drop)
    }
}

/// Mounts a file system.
pub(crate) fn mount(source: &CStr, target: &Path, kind: &CStr, flags: u64, data: &CStr) -> io::Result<()> {
    let target = c_path(target)?;
    // SAFETY: all strings are terminated and outlive the call.
    checked(unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            flags as libc::c_ulong,
            data.as_ptr().cast(),
        )
    })
    .map(drop)
}

/// Shows `source` at `target` too, with all that is mounted below it.
pub(crate) fn bind(source: &Path, target: &Path) -> io::Result<()> {
    mount(&c_path(source)?, target, c"", libc::MS_BIND | libc::MS_REC, c"")
}

/// Sets mount attributes on a mount and all below it.
pub(crate) fn restrict_mount(target: &Path, attributes: u64) -> io::Result<()> {
    #[repr(C)]
    struct MountAttributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    const AT_RECURSIVE: libc::c_uint = 0x8000;
    let target = c_path(target)?;
    let value = MountAttributes {
        set: attributes,
        clear: 0,
        propagation: 0,
        user_namespace: 0,
    };
    // SAFETY: `value` has the layout of the kernel's `mount_attr`, version 0, and its size is passed along.
    checked(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            target.as_ptr(),
            AT_RECURSIVE,
            &raw const value,
            mem::size_of::<MountAttributes>(),
        )
    })
    .map(drop)
}

/// Makes `new_root` the root and shows the old one at `put_old`.
pub(crate) fn pivot_root(new_root: &Path, put_old: &Path) -> io::Result<()> {
    let (new_root, put_old) = (c_path(new_root)?, c_path(put_old)?);
    // SAFETY: both strings are terminated and outlive the call.
    checked(unsafe { libc::syscall(libc::SYS_pivot_root, new_root.as_ptr(), put_old.as_ptr()) }).map(drop)
}

/// Takes a mount away, now or when it is no longer busy.
pub(crate) fn detach(target: &Path) -> io::Result<()> {
    let target = c_path(target)?;
    // SAFETY: the string is terminated and outlives the call.
    checked(unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) }).map(drop)
}

/// Sets soft and hard limit of one resource; never above the present hard limit.
pub(crate) fn limit(resource: libc::__rlimit_resource_t, soft: u64, hard: u64) -> io::Result<()> {
    // SAFETY: the structure is plain integers, live during both calls.
    unsafe {
        let mut now: libc::rlimit = mem::zeroed();
        checked(libc::getrlimit(resource, &raw mut now))?;
        let hard = hard.min(now.rlim_max);
        let value = libc::rlimit {
            rlim_cur: soft.min(hard),
            rlim_max: hard,
        };
        checked(libc::setrlimit(resource, &raw const value)).map(drop)
    }
}

/// Pins this thread to some CPUs.
pub(crate) fn pin(cpus: &[usize]) -> io::Result<()> {
    // SAFETY: the set is plain integers; CPU numbers are below its size.
    unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        for &cpu in cpus.iter().filter(|&&cpu| cpu < libc::CPU_SETSIZE as usize) {
            libc::CPU_SET(cpu, &mut set);
        }
        checked(libc::sched_setaffinity(0, mem::size_of_val(&set), &raw const set)).map(drop)
    }
}

/// Lowers the priority of this process; needs no privilege.
pub(crate) fn give_way(nice: i32) -> io::Result<()> {
    // SAFETY: no memory is involved.
    checked(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) }).map(drop)
}

/// Can never gain privileges again.
pub(crate) fn no_new_privileges() -> io::Result<()> {
    // SAFETY: no memory is involved.
    checked(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }).map(drop)
}

/// Becomes another user with no groups; needs the privilege.
pub(crate) fn become_user(uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: no memory is involved but an empty list.
    unsafe {
        checked(libc::setgroups(0, std::ptr::null()))?;
        checked(libc::setresgid(gid, gid, gid))?;
        checked(libc::setresuid(uid, uid, uid))?;
    }
    Ok(())
}

/// Gives up every capability, in every set.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    const VERSION_3: u32 = 0x2008_0522;
    let header = Header {
        version: VERSION_3,
        pid: 0,
    };
    let data = [const {
        Data {
            effective: 0,
            permitted: 0,
            inheritable: 0,
        }
    }; 2];
    // SAFETY: the structures have the layout of version 3, which has two data parts.
    unsafe {
        for capability in 0..64 {
            // Fails beyond the last capability, or without the privilege: then there is nothing to drop.
            libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
        }
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        checked(libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr())).map(drop)
    }
}

/// What answers a system call that the filter passes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listener {
    /// Nobody: the filter kills by itself.
    None,
    /// The descriptor that is returned.
    New,
}

/// Installs a filter; with [`Listener::New`], returns the descriptor on which forbidden calls appear.
pub(crate) fn install_filter(program: &[sock_filter], listener: Listener) -> io::Result<Option<OwnedFd>> {
    let value = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_ptr().cast_mut().cast(),
    };
    let flags = match listener {
        Listener::None => 0,
        Listener::New => libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
    };
    // SAFETY: `sock_filter` of the crate has the C layout; the program outlives the call; a descriptor is new.
    unsafe {
        let fd = checked(libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const value,
        ))?;
        Ok((listener == Listener::New).then(|| OwnedFd::from_raw_fd(fd as RawFd)))
    }
}

/// Reads which system call was stopped; `None` if its process is gone already.
pub(crate) fn stopped_call(listener: RawFd) -> Option<i32> {
    // SAFETY: the structure is plain integers and must be zero before the call.
    unsafe {
        let mut notice: libc::seccomp_notif = mem::zeroed();
        checked(libc::ioctl(
            listener,
            libc::SECCOMP_IOCTL_NOTIF_RECV as _,
            &raw mut notice,
        ))
        .ok()?;
        Some(notice.data.nr)
    }
}

//! The file view of a box: an empty root that shows only what was asked for.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::sys::confine::{bind, detach, mount, pivot_root, restrict_mount};

const READ_ONLY: u64 = 1;
const NO_SUID: u64 = 2;
const NO_DEVICES: u64 = 4;
const NO_EXEC: u64 = 8;

/// Where the old root stands while the new one is built.
const OLD: &str = "/.old";

/// Devices that do nothing but answer.
pub(crate) const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// Files that a box with a user of its own holds.
pub(crate) const USER_FILES: [&str; 4] = ["/etc/passwd", "/etc/group", "/etc/hosts", "/etc/nsswitch.conf"];

/// Who a box's programs find themselves to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct User<'a> {
    pub(crate) id: u32,
    pub(crate) home: &'a Path,
}

impl User<'_> {
    /// Writes the files by which a C library knows the user; nothing of the machine's own users is in them.
    fn write_files(self) -> io::Result<()> {
        let Self { id, home } = self;
        let texts = [
            format!("agent:x:{id}:{id}:agent:{}:/bin/sh\n", home.display()),
            format!("agent:x:{id}:\n"),
            "127.0.0.1 localhost\n".to_owned(),
            "passwd: files\ngroup: files\nhosts: files\n".to_owned(),
        ];
        fs::create_dir_all("/etc")?;
        for (path, text) in USER_FILES.iter().zip(texts) {
            fs::write(path, text)?;
        }
        Ok(())
    }
}

/// What a box shows.
#[derive(Debug, Default)]
pub(crate) struct View<'a> {
    pub(crate) read_only: &'a [PathBuf],
    pub(crate) read_write: &'a [PathBuf],
    /// Device nodes beyond the harmless ones.
    pub(crate) devices: &'a [PathBuf],
    /// A private `/tmp` of at most this size.
    pub(crate) temporary_bytes: Option<u64>,
    pub(crate) proc: bool,
    pub(crate) user: Option<User<'a>>,
}

fn old(path: &Path) -> PathBuf {
    Path::new(OLD).join(path.strip_prefix("/").unwrap_or(path))
}

fn named(path: &Path) -> impl FnOnce(io::Error) -> io::Error + '_ {
    move |error| io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
}

/// Shows one path at its own place; symbolic links stay links, missing system folders are left out.
fn show(path: &Path, attributes: u64) -> io::Result<()> {
    let source = old(path);
    let kind = match fs::symlink_metadata(&source) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    if kind.is_symlink() {
        return match symlink(fs::read_link(&source)?, path) {
            // It lies in a folder that is shown already.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        };
    }
    if kind.is_dir() {
        fs::create_dir_all(path)?;
    } else if !path.exists() {
        fs::File::create(path)?;
    }
    bind(&source, path)?;
    restrict_mount(path, attributes)
}

/// Moves this process into a view of its own; it must own its mount namespace.
pub(crate) fn enter(view: &View<'_>) -> io::Result<()> {
    mount(c"", Path::new("/"), c"", libc::MS_REC | libc::MS_PRIVATE, c"")?;
    let base = ["/tmp", "/run", "/mnt", "/var"]
        .iter()
        .map(Path::new)
        .find(|path| path.is_dir())
        .ok_or_else(|| io::Error::other("no folder to mount on"))?;
    mount(
        c"ksmith",
        base,
        c"tmpfs",
        libc::MS_NOSUID | libc::MS_NODEV,
        c"mode=755,size=1m",
    )?;
    let put_old = base.join(".old");
    fs::create_dir(&put_old)?;
    pivot_root(base, &put_old)?;
    std::env::set_current_dir("/")?;

    fs::create_dir("/dev")?;
    for device in DEVICES
        .iter()
        .map(Path::new)
        .chain(view.devices.iter().map(PathBuf::as_path))
    {
        show(device, NO_SUID | NO_EXEC).map_err(named(device))?;
    }
    if let Some(bytes) = view.temporary_bytes {
        fs::create_dir("/tmp")?;
        let data = std::ffi::CString::new(format!("mode=1777,size={bytes}")).map_err(io::Error::other)?;
        mount(
            c"ksmith",
            Path::new("/tmp"),
            c"tmpfs",
            libc::MS_NOSUID | libc::MS_NODEV,
            &data,
        )?;
    }
    if view.proc {
        fs::create_dir("/proc")?;
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        mount(c"proc", Path::new("/proc"), c"proc", flags, c"")?;
        // Shells write to these.
        for (name, target) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
            symlink(format!("/proc/self/fd{target}"), Path::new("/dev").join(name))?;
        }
    }
    let mut paths: Vec<(&PathBuf, u64)> = view
        .read_only
        .iter()
        .map(|path| (path, READ_ONLY | NO_SUID | NO_DEVICES))
        .chain(view.read_write.iter().map(|path| (path, NO_SUID | NO_DEVICES)))
        .collect();
    // Outer folders first, so that what is shown inside one is not covered by it.
    paths.sort_by_key(|(path, _)| path.components().count());
    for (path, attributes) in paths {
        show(path, attributes).map_err(named(path))?;
    }
    if let Some(user) = view.user {
        user.write_files().map_err(named(Path::new("/etc")))?;
    }
    // The root itself: folders made for mount points must be passable by the box's own user.
    fs::set_permissions("/", fs::Permissions::from_mode(0o755))?;
    detach(Path::new(OLD))?;
    fs::remove_dir(OLD)?;
    let flags = libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV;
    mount(c"", Path::new("/"), c"", flags, c"")
}

//! One timing at a time on each device: a file lock named by the device's UUID.
//!
//! The kernel drops the lock when its holder ends, however it ends. Judges of other users wait as well: the file is
//! open to all.

use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::PathBuf;

use crate::judge::JudgeError;

/// The right to time on one device; given back when dropped.
#[derive(Debug)]
pub(crate) struct TimingLock(#[expect(dead_code, reason = "dropping it gives the lock back")] File);

impl TimingLock {
    /// Waits until nobody else times on the device.
    pub(crate) fn take(uuid: &str) -> Result<Self, JudgeError> {
        let path = path(uuid);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o666)
            .open(&path)
            .map_err(JudgeError::io("could not open the device's timing lock"))?;
        // The mask of this process must not shut others out; only the owner may change it, and needs to only once.
        let _ = file.set_permissions(Permissions::from_mode(0o666));
        file.lock()
            .map_err(JudgeError::io("could not take the device's timing lock"))?;
        Ok(Self(file))
    }
}

fn path(uuid: &str) -> PathBuf {
    let name: String = uuid.chars().filter(char::is_ascii_alphanumeric).collect();
    std::env::temp_dir().join(format!("ksmith-device-{name}.lock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_timing_waits_until_the_first_is_over() {
        let uuid = format!("test{}", std::process::id());
        let first = TimingLock::take(&uuid).unwrap();
        let file = File::open(path(&uuid)).unwrap();
        assert!(file.try_lock().is_err());
        drop(first);
        assert!(file.try_lock().is_ok());
        std::fs::remove_file(path(&uuid)).unwrap();
    }
}

//! Thin, safe wrappers of the kernel calls that a box needs; the only files of this crate with `unsafe`.

pub(crate) mod channel;
pub(crate) mod confine;
pub(crate) mod process;

use std::io;

/// Turns the `-1` of a C call into the error it left.
pub(crate) fn checked<T: Copy + PartialOrd + From<i8>>(result: T) -> io::Result<T> {
    if result < T::from(0) {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

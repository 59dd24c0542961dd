//! The two pages of the protocol: commands (the judge writes, the worker only reads) and answers (the worker writes).
//!
//! The judge never reads a command back and checks every answer: a worker that writes garbage can only fail.
#![expect(unsafe_code, reason = "views of shared memory as atomics")]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Most slots of a layout.
pub(super) const MAX_SLOTS: usize = 64;
/// Most integer-class arguments: pointers, integers, axes.
pub(super) const MAX_INTEGERS: usize = 32;
/// Most floating-point arguments: one vector register each.
pub(super) const MAX_FLOATS: usize = 8;
/// Most buffers of a layout, all slots together.
pub(super) const MAX_SEGMENTS: usize = MAX_SLOTS * MAX_INTEGERS;

/// Argument registers of one slot.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Arguments {
    pub(super) integers: [AtomicU64; MAX_INTEGERS],
    pub(super) floats: [AtomicU64; MAX_FLOATS],
}

/// One buffer to be mapped by the worker; guard pages stand before and behind it.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) address: AtomicU64,
    pub(super) length: AtomicU64,
    pub(super) offset: AtomicU64,
    /// 0: the read-only memory, 1: the writable one.
    pub(super) memory: AtomicU64,
}

/// What the judge says.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Commands {
    /// Rises with every challenge.
    pub(super) sequence: AtomicU64,
    /// First slot of the challenge, and number of slots.
    pub(super) first: AtomicU64,
    pub(super) count: AtomicU64,
    /// Rises with every question whether the worker is awake.
    pub(super) ping: AtomicU64,
    /// Rises with every layout.
    pub(super) layout: AtomicU64,
    pub(super) segments: AtomicU64,
    /// Rises with every change of the above; a sleeping worker waits on it.
    pub(super) bell: AtomicU32,
    pub(super) arguments: [Arguments; MAX_SLOTS],
    pub(super) table: [Segment; MAX_SEGMENTS],
}

/// What the worker says: claims.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Answers {
    pub(super) done: AtomicU64,
    pub(super) pong: AtomicU64,
    pub(super) layout: AtomicU64,
    /// 0: mapped; otherwise the error number.
    pub(super) layout_error: AtomicU64,
    /// Rises when the library is loaded.
    pub(super) loaded: AtomicU64,
    /// Not 0 once a call changed floating-point control bits.
    pub(super) control_bits: AtomicU64,
    pub(super) signal: AtomicU64,
    pub(super) address: AtomicU64,
    pub(super) bell: AtomicU32,
}

/// Sees memory as commands.
///
/// The memory must be mapped for as long as the process lives or the owner of the reference does, and be large enough.
pub(super) fn commands<'a>(start: NonNull<u8>) -> &'a Commands {
    // SAFETY: all fields are atomics, valid for any bytes; maps are page-aligned and callers map the whole structure.
    unsafe { start.cast().as_ref() }
}

/// Sees memory as answers, under the same conditions.
pub(super) fn answers<'a>(start: NonNull<u8>) -> &'a Answers {
    // SAFETY: as above.
    unsafe { start.cast().as_ref() }
}

/// Wakes whoever sleeps on `word`, in any process.
pub(super) fn ring(word: &AtomicU32) {
    // SAFETY: the word is live; the call only looks up its address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// Sleeps until `word` is no longer `seen`, it is rung, or `nanos` passed.
pub(super) fn sleep_on(word: &AtomicU32, seen: u32, nanos: i64) {
    let limit = libc::timespec {
        tv_sec: nanos / 1_000_000_000,
        tv_nsec: nanos % 1_000_000_000,
    };
    // SAFETY: the word and the time are live during the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            seen,
            &raw const limit,
        )
    };
}

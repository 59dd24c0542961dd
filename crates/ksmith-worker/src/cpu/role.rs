//! The worker's half: loads the library, maps buffers, answers calls. Runs inside the box, under its call filter.
#![expect(unsafe_code, reason = "loads and calls foreign code, handles its faults")]

use std::ffi::{CStr, CString};
use std::os::fd::RawFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ksmith_box::{Role, RoleContext};

use super::memory::PAGE;
use super::page::{self, Answers, Arguments, Commands};

/// The role that a worker's helper runs.
pub const ROLE: Role = Role {
    name: "cpu-worker",
    before: Some(catch_faults),
    run,
};

/// Spins before a worker that may sleep does: about 50 µs.
const PATIENCE: u32 = 2_000;

/// Every signature of a kernel: integer-class arguments and vector-class arguments are assigned independently by the
/// System V x86-64 and the AAPCS64 Linux conventions, so surplus ones harm nobody.
type Entry = unsafe extern "C" fn(
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    f64,
    f64,
    f64,
    f64,
    f64,
    f64,
    f64,
    f64,
);

/// The control bits before foreign code was loaded: what its start changes counts like what a call changes.
static CONTROL_BITS: AtomicU64 = AtomicU64::new(0);

/// Where the fault handler writes; set once before foreign code is loaded.
static ANSWERS: AtomicPtr<Answers> = AtomicPtr::new(ptr::null_mut());

extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let answers = ANSWERS.load(Ordering::Relaxed);
    // SAFETY: the page is mapped before the handler is installed; if the candidate unmapped it, this faults again and
    // the process dies of that. `info` comes from the kernel. The handler is gone by now, so the instruction kills.
    unsafe {
        if let Some(answers) = answers.as_ref() {
            answers.address.store((*info).si_addr() as u64, Ordering::Relaxed);
            answers.signal.store(signal as u64, Ordering::Release);
        }
    }
}

fn catch_faults() {
    const STACK: usize = 64 << 10;
    // SAFETY: the alternate stack is leaked on purpose; structures are fully set before the calls.
    unsafe {
        let stack = libc::stack_t {
            ss_sp: Box::leak(vec![0u8; STACK].into_boxed_slice()).as_mut_ptr().cast(),
            ss_flags: 0,
            ss_size: STACK,
        };
        libc::sigaltstack(&raw const stack, ptr::null_mut());
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESETHAND;
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL] {
            libc::sigaction(signal, &raw const action, ptr::null_mut());
        }
    }
}

/// Maps a whole shared structure; lives as long as the process.
fn map(fd: RawFd, length: usize, protection: i32) -> Option<NonNull<u8>> {
    // SAFETY: a new map at an address of the kernel's choice.
    let start = unsafe { libc::mmap(ptr::null_mut(), length, protection, libc::MAP_SHARED, fd, 0) };
    if start == libc::MAP_FAILED {
        None
    } else {
        NonNull::new(start.cast())
    }
}

fn say(socket: RawFd, text: &[u8]) {
    let mut part = libc::iovec {
        iov_base: text.as_ptr().cast_mut().cast(),
        iov_len: text.len().min(900),
    };
    // SAFETY: the message and its only part live until the call returns.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL);
    }
}

fn load(library: &CStr, entry: &CStr) -> Result<Entry, Vec<u8>> {
    // SAFETY: runs the candidate's constructors, which is what this box is for. The symbol is taken for a function;
    // if it is none, the call faults inside the box. `dlerror` gives a terminated string or null.
    unsafe {
        let words = || {
            let text = libc::dlerror();
            if text.is_null() {
                b"unknown".to_vec()
            } else {
                CStr::from_ptr(text).to_bytes().to_vec()
            }
        };
        let handle = libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if handle.is_null() {
            return Err(words());
        }
        let symbol = libc::dlsym(handle, entry.as_ptr());
        if symbol.is_null() {
            return Err(words());
        }
        Ok(std::mem::transmute::<*mut libc::c_void, Entry>(symbol))
    }
}

fn run(context: &RoleContext) -> i32 {
    let [library, entry, wait, rivals] = context.args.as_slice() else {
        return 2;
    };
    let &[socket, commands, answers] = context.fds.as_slice() else {
        return 2;
    };
    let (Ok(library), Ok(entry)) = (CString::new(library.as_str()), CString::new(entry.as_str())) else {
        return 2;
    };
    let may_sleep = wait == "hybrid";
    let Some(commands) = map(commands, size_of::<Commands>(), libc::PROT_READ) else {
        return 2;
    };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let Some(answers) = map(answers, size_of::<Answers>(), protection) else {
        return 2;
    };
    ANSWERS.store(answers.cast().as_ptr(), Ordering::Relaxed);
    let (commands, answers) = (page::commands(commands), page::answers(answers));
    (0..rivals.parse().unwrap_or(0)).for_each(compete);
    CONTROL_BITS.store(control_bits(), Ordering::Relaxed);
    let entry = match load(&library, &entry) {
        Ok(entry) => entry,
        Err(words) => {
            say(socket, &words);
            answers.loaded.store(2, Ordering::Release);
            return 0;
        }
    };
    answers.loaded.store(1, Ordering::Release);
    serve(commands, answers, socket, entry, may_sleep)
}

/// Starts a thread that takes the CPU in bursts of 20 to 500 µs, with pauses of the same kind between them: what the
/// candidate's threads do at the same time happens in another order than usual. Lives as long as the process.
fn compete(number: u64) {
    let mut dice = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = move || {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        Duration::from_micros(20 + dice % 480)
    };
    // Without it the worker is merely perturbed less.
    let _ = std::thread::Builder::new().stack_size(64 << 10).spawn(move || {
        loop {
            let (burst, pause) = (next(), next());
            let started = Instant::now();
            while started.elapsed() < burst {
                std::hint::spin_loop();
            }
            std::thread::sleep(pause);
        }
    });
}

fn serve(commands: &Commands, answers: &Answers, socket: RawFd, entry: Entry, may_sleep: bool) -> ! {
    let (mut sequence, mut ping, mut layout) = (0, 0, 0);
    let mut mapped: Vec<(u64, u64)> = Vec::new();
    let mut idle = 0u32;
    loop {
        let bell = commands.bell.load(Ordering::Acquire);
        let next = commands.sequence.load(Ordering::Acquire);
        if next != sequence {
            sequence = next;
            let (first, count) = (
                commands.first.load(Ordering::Relaxed),
                commands.count.load(Ordering::Relaxed),
            );
            for arguments in commands
                .arguments
                .iter()
                .skip(first as usize)
                .take(count as usize)
            {
                call(entry, arguments, answers);
            }
            answers.done.store(next, Ordering::Release);
            if may_sleep {
                answers.bell.fetch_add(1, Ordering::Release);
                page::ring(&answers.bell);
            }
            idle = 0;
            continue;
        }
        let next = commands.ping.load(Ordering::Acquire);
        if next != ping {
            ping = next;
            answers.pong.store(next, Ordering::Release);
            idle = 0;
        }
        let next = commands.layout.load(Ordering::Acquire);
        if next != layout {
            layout = next;
            let error = remap(commands, socket, &mut mapped);
            answers.layout_error.store(error, Ordering::Relaxed);
            answers.layout.store(next, Ordering::Release);
            idle = 0;
        }
        idle += 1;
        if may_sleep && idle > PATIENCE {
            idle = 0;
            page::sleep_on(&commands.bell, bell, 1_000_000_000);
        }
        std::hint::spin_loop();
    }
}

/// Receives the two memories of a layout.
fn receive_memories(socket: RawFd) -> Option<[RawFd; 2]> {
    let mut byte = [0u8; 1];
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    let mut control = [0u64; 8];
    // SAFETY: all pointers live until `recvmsg` returns; the header is checked before its data are read.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        if libc::recvmsg(socket, &raw mut message, 0) <= 0 {
            return None;
        }
        let header = libc::CMSG_FIRSTHDR(&raw const message).as_ref()?;
        (header.cmsg_type == libc::SCM_RIGHTS && header.cmsg_len as usize == libc::CMSG_LEN(8) as usize)
            .then(|| libc::CMSG_DATA(header).cast::<[RawFd; 2]>().read_unaligned())
    }
}

/// Takes the old buffers away and maps the new ones where the judge says; returns 0 or the error number.
fn remap(commands: &Commands, socket: RawFd, mapped: &mut Vec<(u64, u64)>) -> u64 {
    let errno = || {
        std::io::Error::last_os_error()
            .raw_os_error()
            .map_or(u64::MAX, |code| code as u64)
    };
    for (start, length) in mapped.drain(..) {
        // SAFETY: a region that an earlier layout mapped; nothing of ours points into it.
        unsafe { libc::munmap(start as *mut libc::c_void, length as usize) };
    }
    let Some(memories) = receive_memories(socket) else {
        return errno();
    };
    let count = commands.segments.load(Ordering::Relaxed) as usize;
    let mut result = 0;
    for segment in commands.table.iter().take(count) {
        let (address, length) = (
            segment.address.load(Ordering::Relaxed),
            segment.length.load(Ordering::Relaxed),
        );
        let (offset, writable) = (
            segment.offset.load(Ordering::Relaxed),
            segment.memory.load(Ordering::Relaxed) == 1,
        );
        let protection = if writable {
            libc::PROT_READ | libc::PROT_WRITE
        } else {
            libc::PROT_READ
        };
        let (outer, outer_length) = (address - PAGE, length + 2 * PAGE);
        // SAFETY: the guard region is only made where nothing is mapped yet; the buffer replaces its middle.
        let placed = unsafe {
            let flags =
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
            let guard = libc::mmap(
                outer as *mut _,
                outer_length as usize,
                libc::PROT_NONE,
                flags,
                -1,
                0,
            );
            if guard != libc::MAP_FAILED {
                mapped.push((outer, outer_length));
            }
            guard == outer as *mut libc::c_void
                && libc::mmap(
                    address as *mut _,
                    length as usize,
                    protection,
                    libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_POPULATE,
                    memories[usize::from(writable)],
                    offset as libc::off_t,
                ) != libc::MAP_FAILED
        };
        if !placed {
            result = errno().max(1);
            break;
        }
    }
    for fd in memories {
        // SAFETY: both descriptors were received by this call and are used no more.
        unsafe { libc::close(fd) };
    }
    result
}

/// What a call must leave as it found it: rounding, flush-to-zero and exception masks (not the sticky flags), an empty x87
/// stack, the direction and the alignment flag.
#[cfg(target_arch = "x86_64")]
fn control_bits() -> u64 {
    let mut vector = 0u32;
    // Control word, status word, tag word; the rest says where the last operation was.
    let mut x87 = [0u32; 7];
    let flags: u64;
    // SAFETY: the instructions store registers to live memory; what `fnstenv` masks the next one restores. The direction
    // flag is cleared, as the calling convention has it, before any code of ours may copy memory.
    unsafe {
        std::arch::asm!("pushfq", "pop {}", "cld", out(reg) flags);
        std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut vector, options(nostack, preserves_flags));
        std::arch::asm!("fnstenv [{0}]", "fldenv [{0}]", in(reg) &raw mut x87, options(nostack, preserves_flags));
    }
    let (word, tags) = (u64::from(x87[0] as u16), u64::from(x87[2] as u16));
    u64::from(vector & 0xffc0) << 48 | (flags >> 3 & 0x8080) << 32 | tags << 16 | word
}

#[cfg(target_arch = "aarch64")]
fn control_bits() -> u64 {
    let bits: u64;
    // SAFETY: reads a register.
    unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) bits, options(nomem, nostack, preserves_flags)) };
    bits
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn control_bits() -> u64 {
    0
}

fn call(entry: Entry, arguments: &Arguments, answers: &Answers) {
    let i = arguments
        .integers
        .each_ref()
        .map(|value| value.load(Ordering::Relaxed));
    // A `float` travels in the low bits of its vector register.
    let f = arguments
        .floats
        .each_ref()
        .map(|value| f64::from_bits(value.load(Ordering::Relaxed)));
    // SAFETY: foreign code with the arguments that its contract promises; whatever it does stays in this box.
    unsafe {
        entry(
            i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7], i[8], i[9], i[10], i[11], i[12], i[13], i[14],
            i[15], i[16], i[17], i[18], i[19], i[20], i[21], i[22], i[23], i[24], i[25], i[26], i[27], i[28],
            i[29], i[30], i[31], f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7],
        );
    }
    if control_bits() != CONTROL_BITS.load(Ordering::Relaxed) {
        answers.control_bits.store(1, Ordering::Relaxed);
    }
}

//! Gate `static`: what the library imports, exports, and would run at load time.
//!
//! A tripwire: it makes honest mistakes and crude attacks visible early. What it cannot see the sandbox refuses.

use std::fs;

use ksmith_ledger::Gate;
use object::elf;
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _, Sym as _};
use object::{Endianness, read::elf::ElfFile64};
use serde_json::json;

use super::context::{Code, End, GateEnd, Scoring};
use crate::codes::code;
use crate::judge::JudgeError;

/// Functions that compute, move memory or synchronise: nothing that sees files, clocks, processes or the loader.
const PURE: &[&str] = &[
    // Memory and strings.
    "memcpy",
    "memmove",
    "memset",
    "memcmp",
    "memchr",
    "strlen",
    "strcmp",
    "strncmp",
    "bzero",
    "bcmp",
    "malloc",
    "calloc",
    "realloc",
    "free",
    "aligned_alloc",
    "posix_memalign",
    "memalign",
    "qsort",
    "bsearch",
    "abs",
    "labs",
    "llabs",
    "div",
    "ldiv",
    "__memcpy_chk",
    "__memset_chk",
    "__memmove_chk",
    "__stack_chk_fail",
    "abort",
    "__assert_fail",
    "rand_r",
    // C++ run time.
    "_Znwm",
    "_ZdlPv",
    "_ZdlPvm",
    "_Znam",
    "_ZdaPv",
    "_ZdaPvm",
    "_ZnwmSt11align_val_t",
    "_ZdlPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t",
    "_ZdaPvSt11align_val_t",
    "_ZnamSt11align_val_t",
    "__cxa_finalize",
    "__cxa_atexit",
    "__cxa_guard_acquire",
    "__cxa_guard_release",
    "__cxa_guard_abort",
    "__cxa_begin_catch",
    "__cxa_end_catch",
    "__cxa_throw",
    "__cxa_rethrow",
    "__cxa_allocate_exception",
    "__cxa_free_exception",
    "__cxa_throw_bad_array_new_length",
    "__cxa_pure_virtual",
    "__gxx_personality_v0",
    "_Unwind_Resume",
    "__gmon_start__",
    "_ITM_deregisterTMCloneTable",
    "_ITM_registerTMCloneTable",
    "__tls_get_addr",
    "__errno_location",
    // Threads.
    "pthread_create",
    "pthread_join",
    "pthread_detach",
    "pthread_self",
    "pthread_exit",
    "pthread_once",
    "pthread_attr_init",
    "pthread_attr_destroy",
    "pthread_attr_setstacksize",
    "pthread_attr_setdetachstate",
    "sched_yield",
    "sem_init",
    "sem_destroy",
    "sem_wait",
    "sem_post",
    "sem_trywait",
    "call_once",
    "thrd_create",
    "thrd_join",
    "thrd_yield",
    "mtx_init",
    "mtx_lock",
    "mtx_unlock",
    "mtx_destroy",
    "cnd_init",
    "cnd_wait",
    "cnd_signal",
    "cnd_broadcast",
    "cnd_destroy",
    // Integers and vectors of the compiler's own library.
    "__cpu_model",
    "__cpu_indicator_init",
    "__popcountdi2",
    "__divti3",
    "__udivti3",
    "__modti3",
    "__umodti3",
    "__multi3",
    "__clear_cache",
];

/// Whole groups of pure functions, by prefix.
const PURE_PREFIXES: &[&str] = &[
    "pthread_mutex_",
    "pthread_mutexattr_",
    "pthread_cond_",
    "pthread_condattr_",
    "pthread_barrier_",
    "pthread_barrierattr_",
    "pthread_spin_",
    "pthread_rwlock_",
    "pthread_key_",
    "pthread_getspecific",
    "pthread_setspecific",
    "GOMP_",
    "omp_",
    "__atomic_",
    "__sync_",
    "_ZGV",
    "_ZSt",
    "_ZNSt",
    "_ZNKSt",
    "_ZTVN10__cxxabiv1",
    "_ZTI",
    "_ZTS",
    "_ZTV",
    "__trunc",
    "__extend",
    "__float",
    "__fix",
];

/// The mathematical library, without the trailing `f` or `l` of the narrower and wider forms.
const MATH: &[&str] = &[
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "exp10",
    "expm1",
    "fabs",
    "fdim",
    "floor",
    "fma",
    "fmax",
    "fmin",
    "fmod",
    "frexp",
    "hypot",
    "ilogb",
    "j0",
    "j1",
    "jn",
    "ldexp",
    "lgamma",
    "lgamma_r",
    "llrint",
    "llround",
    "log",
    "log10",
    "log1p",
    "log2",
    "logb",
    "lrint",
    "lround",
    "modf",
    "nan",
    "nearbyint",
    "nextafter",
    "nexttoward",
    "pow",
    "remainder",
    "remquo",
    "rint",
    "round",
    "roundeven",
    "scalbln",
    "scalbn",
    "sin",
    "sincos",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "tgamma",
    "trunc",
    "y0",
    "y1",
    "yn",
];

/// Libraries that every candidate may need.
const LIBRARIES: &[&str] = &[
    "libc.so.6",
    "libm.so.6",
    "libgcc_s.so.1",
    "libstdc++.so.6",
    "libpthread.so.0",
    "libgomp.so.1",
    "libmvec.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];

fn is_pure(name: &str) -> bool {
    let math = |name: &str| MATH.contains(&name);
    PURE.contains(&name)
        || PURE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || math(name)
        || name.strip_suffix(['f', 'l']).is_some_and(math)
        || name
            .strip_prefix("__")
            .and_then(|name| name.strip_suffix("_finite"))
            .is_some_and(|name| math(name) || name.strip_suffix(['f', 'l']).is_some_and(math))
}

/// Names that the C library or the loader would take from the candidate instead of from itself.
fn interposes(name: &str) -> bool {
    const LOOKED_UP: &[&str] = &[
        "write",
        "read",
        "mmap",
        "munmap",
        "mprotect",
        "open",
        "close",
        "exit",
        "_exit",
        "syscall",
        "futex",
        "clock_gettime",
        "sched_setaffinity",
        "nanosleep",
        "raise",
        "kill",
        "sigaction",
        "dlsym",
        "dlopen",
        "main",
    ];
    is_pure(name) && !name.starts_with('_') || LOOKED_UP.contains(&name)
}

pub(crate) fn library(scoring: &mut Scoring<'_>) -> GateEnd {
    let (library, entry) = match &scoring.library()?.code {
        Code::Native { library, entry, .. } => (library, entry),
        Code::Device(code) => return super::module::module(code),
    };
    let bytes = fs::read(&library.path).map_err(JudgeError::io("could not read the library"))?;
    match inspect(&bytes, entry) {
        Ok(finding) => Ok(match finding {
            Some((cause, name)) => End::Fail(code(Gate::Static, cause), json!({ "name": name })),
            None => End::Pass(json!({ "bytes": bytes.len() })),
        }),
        Err(error) => Err(JudgeError::Unsupported(format!(
            "the library could not be read: {error}"
        ))),
    }
}

type Finding = Option<(&'static str, String)>;

fn inspect(bytes: &[u8], entry: &str) -> Result<Finding, object::read::Error> {
    let file = ElfFile64::<Endianness>::parse(bytes)?;
    let header = file.elf_header();
    let endian = file.endian();
    for segment in header.program_headers(endian, bytes)? {
        let flags = segment.p_flags(endian);
        let both = (flags & elf::PF_W).0 != 0 && (flags & elf::PF_X).0 != 0;
        let kind = segment.p_type(endian);
        if (kind == elf::PT_LOAD && both) || (kind == elf::PT_GNU_STACK && (flags & elf::PF_X).0 != 0) {
            return Ok(Some(("executable-data", String::new())));
        }
    }
    if let Some(finding) = dynamic(&file, bytes)? {
        return Ok(Some(finding));
    }
    let table = file.elf_dynamic_symbol_table();
    for symbol in table.symbols() {
        let name = String::from_utf8_lossy(symbol.name(endian, table.strings())?).into_owned();
        if name.is_empty() {
            continue;
        }
        if symbol.st_type() == elf::STT_GNU_IFUNC {
            return Ok(Some(("ifunc", name)));
        }
        if symbol.is_undefined(endian) {
            if !is_pure(&name) {
                return Ok(Some(("forbidden-import", name)));
            }
        } else if name != entry && interposes(&name) {
            return Ok(Some(("interposition", name)));
        }
    }
    for symbol in file.elf_symbol_table().symbols() {
        if symbol.st_type() == elf::STT_GNU_IFUNC {
            let name = symbol.name(endian, file.elf_symbol_table().strings())?;
            return Ok(Some(("ifunc", String::from_utf8_lossy(name).into_owned())));
        }
    }
    Ok(None)
}

/// The dynamic section: needed libraries, and more load-time code than the compiler's own start files bring.
fn dynamic(file: &ElfFile64<'_, Endianness>, bytes: &[u8]) -> Result<Finding, object::read::Error> {
    let endian = file.endian();
    let table = file.elf_section_table();
    let Some((entries, strings)) = table.dynamic(endian, bytes)? else {
        return Ok(None);
    };
    let strings = table.strings(endian, bytes, strings)?;
    for entry in entries {
        let value = entry.d_val(endian);
        // The start files bring one pointer in each array (`frame_dummy`, `__do_global_dtors_aux`).
        let own = 8;
        match entry.d_tag(endian) {
            elf::DT_INIT_ARRAYSZ if value > own => return Ok(Some(("constructor", "init_array".to_owned()))),
            elf::DT_FINI_ARRAYSZ if value > own => return Ok(Some(("constructor", "fini_array".to_owned()))),
            elf::DT_PREINIT_ARRAYSZ if value > 0 => {
                return Ok(Some(("constructor", "preinit_array".to_owned())));
            }
            elf::DT_NEEDED => {
                let name = strings
                    .get(u32::try_from(value).unwrap_or(u32::MAX))
                    .unwrap_or(b"?");
                let name = String::from_utf8_lossy(name).into_owned();
                if !LIBRARIES.contains(&name.as_str()) {
                    return Ok(Some(("extra-library", name)));
                }
            }
            elf::DT_AUDIT
            | elf::DT_DEPAUDIT
            | elf::DT_FILTER
            | elf::DT_AUXILIARY
            | elf::DT_RPATH
            | elf::DT_RUNPATH => {
                return Ok(Some((
                    "extra-library",
                    "a search path or an audit library".to_owned(),
                )));
            }
            _ => {}
        }
    }
    Ok(system_call(file, bytes)?.map(|section| ("system-call", section)))
}

/// Looks for the two-byte `syscall` and `sysenter` instructions at any offset of executable sections.
///
/// Any offset means false alarms inside constants; a real instruction cannot hide. Immediates that spell one are so
/// rare that a rebuild with other constants is the way out; they are not reported unless a number load precedes them.
fn system_call(file: &ElfFile64<'_, Endianness>, _: &[u8]) -> Result<Option<String>, object::read::Error> {
    use object::{Object as _, ObjectSection as _, SectionKind};
    for section in file.sections() {
        if section.kind() != SectionKind::Text {
            continue;
        }
        let data = section.data()?;
        for (at, pair) in data.windows(2).enumerate() {
            if !matches!(pair, [0x0f, 0x05] | [0x0f, 0x34] | [0xcd, 0x80]) {
                continue;
            }
            // `mov $imm32, %eax` (b8 ..) or a push/pop of a number shortly before.
            let from = at.saturating_sub(48);
            let before = &data[from..at];
            let loads = before
                .windows(5)
                .any(|code| code[0] == 0xb8 && code[3] == 0 && code[4] == 0);
            if loads {
                return Ok(Some(section.name().unwrap_or("?").to_owned()));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_pure_functions_holds_mathematics_and_no_clock() {
        for name in [
            "expf",
            "exp",
            "fmaxf",
            "sqrtl",
            "memcpy",
            "_ZGVdN8v_expf",
            "GOMP_parallel",
            "__expf_finite",
        ] {
            assert!(is_pure(name), "{name}");
        }
        for name in [
            "clock_gettime",
            "open",
            "dlsym",
            "mprotect",
            "getenv",
            "syscall",
            "ptrace",
            "printf",
            "sigaction",
        ] {
            assert!(!is_pure(name), "{name}");
        }
    }
}

//! Owns NVRTC, loaded at run time inside the compiler's box.
#![expect(unsafe_code, reason = "the compiler is a C interface")]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

use libloading::{Library, Symbol};

use super::compile::CompileOptions;

/// Bytes kept of the compiler's output.
const LOG_BYTES: usize = 64 << 10;

/// What the compiler made.
pub(crate) struct Output {
    pub(crate) image: Vec<u8>,
    pub(crate) lowered: BTreeMap<String, String>,
    pub(crate) log: String,
}

/// Why it made nothing.
pub(crate) enum Failure {
    /// It refused the source; its words.
    Refused(String),
    /// It is not there.
    Missing(String),
}

type Program = *mut c_void;
type Create = unsafe extern "C" fn(
    *mut Program,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
type AddName = unsafe extern "C" fn(Program, *const c_char) -> c_int;
type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Bytes = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
type Lowered = unsafe extern "C" fn(Program, *const c_char, *mut *const c_char) -> c_int;

/// Names under which the library is looked for.
const NAMES: [&str; 3] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];

fn library(options: &CompileOptions) -> Result<Library, Failure> {
    // NVRTC asks the loader for its built-ins by bare name: a private toolchain's must be there already.
    let beside = options
        .library
        .as_deref()
        .and_then(Path::parent)
        .and_then(|folder| std::fs::read_dir(folder).ok());
    for entry in beside.into_iter().flatten().filter_map(Result::ok) {
        if entry
            .file_name()
            .to_string_lossy()
            .starts_with("libnvrtc-builtins.so")
        {
            // SAFETY: a data library of NVRTC without initialisers of its own.
            if let Ok(library) = unsafe { Library::new(entry.path()) } {
                std::mem::forget(library);
            }
        }
    }
    let given: Vec<String> = options
        .library
        .iter()
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    for name in given.iter().map(String::as_str).chain(NAMES) {
        // SAFETY: NVRTC's initialisers have no preconditions.
        if let Ok(library) = unsafe { Library::new(name) } {
            return Ok(library);
        }
    }
    Err(Failure::Missing(
        "libnvrtc is not installed; `ksmith toolchain cuda --install` fetches it".to_owned(),
    ))
}

fn c_string(text: &str) -> Result<CString, Failure> {
    CString::new(text).map_err(|_| Failure::Refused("a NUL byte in a source or name".to_owned()))
}

/// Compiles one program to a module for `options.arch`.
pub(crate) fn build(options: &CompileOptions) -> Result<Output, Failure> {
    let library = library(options)?;
    let missing = |error: libloading::Error| Failure::Missing(error.to_string());
    // SAFETY: the types are those of nvrtc.h.
    let (create, compile, add_name, log_size, log, cubin_size, cubin, lowered_name) = unsafe {
        let create: Symbol<'_, Create> = library.get(b"nvrtcCreateProgram\0").map_err(missing)?;
        let compile: Symbol<'_, Compile> = library.get(b"nvrtcCompileProgram\0").map_err(missing)?;
        let add_name: Symbol<'_, AddName> = library.get(b"nvrtcAddNameExpression\0").map_err(missing)?;
        let log_size: Symbol<'_, Size> = library.get(b"nvrtcGetProgramLogSize\0").map_err(missing)?;
        let log: Symbol<'_, Bytes> = library.get(b"nvrtcGetProgramLog\0").map_err(missing)?;
        let cubin_size: Symbol<'_, Size> = library.get(b"nvrtcGetCUBINSize\0").map_err(missing)?;
        let cubin: Symbol<'_, Bytes> = library.get(b"nvrtcGetCUBIN\0").map_err(missing)?;
        let lowered_name: Symbol<'_, Lowered> = library.get(b"nvrtcGetLoweredName\0").map_err(missing)?;
        (
            create,
            compile,
            add_name,
            log_size,
            log,
            cubin_size,
            cubin,
            lowered_name,
        )
    };
    let Some(((main_name, main_text), headers)) = options.sources.split_first() else {
        return Err(Failure::Refused("no sources".to_owned()));
    };
    let (text, name) = (c_string(main_text)?, c_string(main_name)?);
    let header_texts = headers
        .iter()
        .map(|(_, text)| c_string(text))
        .collect::<Result<Vec<_>, _>>()?;
    let header_names = headers
        .iter()
        .map(|(name, _)| c_string(name))
        .collect::<Result<Vec<_>, _>>()?;
    let text_pointers: Vec<_> = header_texts.iter().map(|text| text.as_ptr()).collect();
    let name_pointers: Vec<_> = header_names.iter().map(|name| name.as_ptr()).collect();
    let kernels = options
        .kernels
        .iter()
        .map(|name| c_string(name))
        .collect::<Result<Vec<_>, _>>()?;
    let mut flags = vec![
        format!("--gpu-architecture={}", options.arch),
        "--std=c++17".to_owned(),
        "--generate-line-info".to_owned(),
    ];
    flags.extend(
        options
            .include
            .iter()
            .map(|folder| format!("--include-path={}", folder.display())),
    );
    flags.extend(options.flags.iter().cloned());
    let flags = flags
        .iter()
        .map(|flag| c_string(flag))
        .collect::<Result<Vec<_>, _>>()?;
    let flag_pointers: Vec<_> = flags.iter().map(|flag| flag.as_ptr()).collect();
    let mut program: Program = ptr::null_mut();
    // SAFETY: all strings outlive the calls; `program` is set by the first and used by the others only if it succeeds.
    unsafe {
        let count = headers.len() as c_int;
        if create(
            &mut program,
            text.as_ptr(),
            name.as_ptr(),
            count,
            text_pointers.as_ptr(),
            name_pointers.as_ptr(),
        ) != 0
        {
            return Err(Failure::Refused(
                "the compiler could not make a program".to_owned(),
            ));
        }
        for kernel in &kernels {
            add_name(program, kernel.as_ptr());
        }
        let code = compile(program, flag_pointers.len() as c_int, flag_pointers.as_ptr());
        let words = bytes(program, &log_size, &log);
        let mut words = String::from_utf8_lossy(&words).trim_end_matches('\0').to_owned();
        words.truncate(words.floor_char_boundary(LOG_BYTES));
        if code != 0 {
            return Err(Failure::Refused(words));
        }
        let image = bytes(program, &cubin_size, &cubin);
        let mut lowered = BTreeMap::new();
        for (kernel, expression) in kernels.iter().zip(&options.kernels) {
            let mut name = ptr::null();
            if lowered_name(program, kernel.as_ptr(), &mut name) != 0 || name.is_null() {
                return Err(Failure::Refused(format!("there is no kernel `{expression}`")));
            }
            lowered.insert(
                expression.clone(),
                CStr::from_ptr(name).to_string_lossy().into_owned(),
            );
        }
        Ok(Output {
            image,
            lowered,
            log: words,
        })
    }
}

/// SAFETY: `size` and `get` are a pair of NVRTC for a live program.
unsafe fn bytes(program: Program, size: &Size, get: &Bytes) -> Vec<u8> {
    let mut length = 0;
    // SAFETY: by the contract of this function.
    unsafe {
        if size(program, &mut length) != 0 {
            return Vec::new();
        }
        let mut bytes = vec![0u8; length];
        if get(program, bytes.as_mut_ptr().cast()) != 0 {
            return Vec::new();
        }
        bytes
    }
}

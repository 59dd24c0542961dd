//! Gate `static`: what the library imports, exports, and would run at load time.
//!
//! A tripwire: it makes honest mistakes and crude attacks visible early. What it cannot see the sandbox refuses: a system
//! call reached by a jump into the middle of an instruction, or code written at run time, meets the call filter.

use std::fs;
use std::path::Path;

use ksmith_insight::x86;
use ksmith_ledger::Gate;
use ksmith_worker::build::{self, Build, BuildOptions, Sources};
use object::Endianness;
use object::elf;
use object::read::elf::{Dyn as _, ElfFile64, FileHeader as _, ProgramHeader as _, Sym as _};
use serde_json::json;

use super::context::{Code, End, GateEnd, Scoring};
use super::pure::{interposes, is_pure};
use crate::codes::code;
use crate::judge::JudgeError;

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

/// The one start function that the compiler's own library brings: it reads the processor's features, which
/// `__builtin_cpu_supports` and versions of a function need.
const FEATURES: &str = "__cpu_indicator_init";
/// A library with that function and nothing else.
const TEMPLATE: &str = "int template(void) { return __builtin_cpu_supports(\"avx2\") != 0; }\n";

pub(crate) fn library(scoring: &mut Scoring<'_>) -> GateEnd {
    let (library, entry) = match &scoring.library()?.code {
        Code::Native { library, entry, .. } => (library, entry),
        Code::Device(code) => return super::module::module(code),
    };
    let bytes = fs::read(&library.path).map_err(JudgeError::io("could not read the library"))?;
    let unreadable =
        |error: String| JudgeError::Unsupported(format!("the library could not be read: {error}"));
    // The compiler's own function is told from one that merely has its name by its code.
    let features = match x86::function(&bytes, FEATURES) {
        None => None,
        Some((address, theirs)) => features(scoring.build, &scoring.scratch)?
            .filter(|ours| x86::same_code(ours, &theirs))
            .map(|_| address),
    };
    let finding = match inspect(&bytes, entry, features).map_err(|error| unreadable(error.to_string()))? {
        Some(finding) => Some(finding),
        None => x86::system_calls(&bytes)
            .map_err(unreadable)?
            .into_iter()
            .next()
            .map(|place| ("system-call", place)),
    };
    Ok(match finding {
        Some((cause, name)) => End::Fail(code(Gate::Static, cause), json!({ "name": name })),
        None => End::Pass(json!({ "bytes": bytes.len(), "reads_features": features.is_some() })),
    })
}

/// The code of the compiler's own function that reads the processor's features; `None` where the compiler has none.
fn features(options: &BuildOptions, scratch: &Path) -> Result<Option<Vec<u8>>, JudgeError> {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = scratch.join("template");
    fs::create_dir_all(&folder)
        .and_then(|()| fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)))
        .and_then(|()| fs::write(folder.join("template.c"), TEMPLATE))
        .map_err(JudgeError::io("could not write the template library"))?;
    let sources = Sources {
        folder,
        files: vec!["template.c".to_owned()],
        entry: "template".to_owned(),
        flags: vec!["-O2".to_owned()],
    };
    match build::compile(&sources, options)? {
        Build::Library(library) => {
            let bytes = fs::read(&library.path).map_err(JudgeError::io("could not read a library"))?;
            Ok(x86::function(&bytes, FEATURES).map(|(_, code)| code))
        }
        Build::Refused(_) => Ok(None),
    }
}

type Finding = Option<(&'static str, String)>;

/// `features` is the address of the compiler's own feature function, if the library holds it.
fn inspect(bytes: &[u8], entry: &str, features: Option<u64>) -> Result<Finding, object::read::Error> {
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
    if let Some(finding) = dynamic(&file, bytes, features)? {
        return Ok(Some(finding));
    }
    let may_call: Vec<u64> = features.into_iter().collect();
    for table in [file.elf_dynamic_symbol_table(), file.elf_symbol_table()] {
        for symbol in table.symbols() {
            // A resolver that only chooses is what the compiler itself writes for versions of a function.
            if symbol.st_type() == elf::STT_GNU_IFUNC
                && !x86::only_chooses(bytes, symbol.st_value(endian), &may_call)
            {
                let name = symbol.name(endian, table.strings())?;
                return Ok(Some(("ifunc", String::from_utf8_lossy(name).into_owned())));
            }
        }
    }
    let table = file.elf_dynamic_symbol_table();
    for symbol in table.symbols() {
        let name = String::from_utf8_lossy(symbol.name(endian, table.strings())?).into_owned();
        if name.is_empty() {
            continue;
        }
        if symbol.is_undefined(endian) {
            if !is_pure(&name) {
                return Ok(Some(("forbidden-import", name)));
            }
        } else if name != entry && interposes(&name) {
            return Ok(Some(("interposition", name)));
        }
    }
    Ok(None)
}

/// The dynamic section: needed libraries, and more load-time code than the compiler's own.
fn dynamic(
    file: &ElfFile64<'_, Endianness>,
    bytes: &[u8],
    features: Option<u64>,
) -> Result<Finding, object::read::Error> {
    let endian = file.endian();
    let table = file.elf_section_table();
    let Some((entries, strings)) = table.dynamic(endian, bytes)? else {
        return Ok(None);
    };
    let strings = table.strings(endian, bytes, strings)?;
    let value_of = |tag| {
        entries
            .iter()
            .find(|entry| entry.d_tag(endian) == tag)
            .map_or(0, |entry| entry.d_val(endian))
    };
    for (name, start, size) in [
        ("init_array", elf::DT_INIT_ARRAY, elf::DT_INIT_ARRAYSZ),
        ("fini_array", elf::DT_FINI_ARRAY, elf::DT_FINI_ARRAYSZ),
        ("preinit_array", elf::DT_PREINIT_ARRAY, elf::DT_PREINIT_ARRAYSZ),
    ] {
        if foreign_start(bytes, value_of(start), value_of(size), features) {
            return Ok(Some(("constructor", name.to_owned())));
        }
    }
    for entry in entries {
        let value = entry.d_val(endian);
        match entry.d_tag(endian) {
            elf::DT_INIT | elf::DT_FINI => {
                return Ok(Some((
                    "constructor",
                    "a function of its own at load or unload".to_owned(),
                )));
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
    Ok(None)
}

/// Whether an array of start functions holds more than the compiler's own feature function. Libraries are linked without
/// start files, so there is nothing else that could honestly stand there.
fn foreign_start(bytes: &[u8], array: u64, size: u64, features: Option<u64>) -> bool {
    let pointers = x86::pointers(bytes, array, size);
    // Filled in a way that is not understood, or another processor: nothing is known to be the compiler's.
    pointers.len() as u64 != size / 8
        || pointers.len() > 1
        || pointers.into_iter().any(|address| Some(address) != features)
}

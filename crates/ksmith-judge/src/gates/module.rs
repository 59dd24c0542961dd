//! Gate `static` on a device: what a module calls, and what state it keeps.
//!
//! Device `printf`, `malloc`, `assert` and launches need host code or memory that the worker does not have; each leaves
//! an undefined symbol. State in module globals is legal and only noted: fresh inputs are what defeats a memo.

use ksmith_ledger::Gate;
use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _};
use serde_json::json;

use super::context::{End, GateEnd};
use crate::codes::code;
use crate::device::Code;
use crate::judge::JudgeError;

/// Functions of the device runtime that device code may not call, with what calls them.
const FORBIDDEN: [(&str, &str); 8] = [
    ("vprintf", "printf"),
    ("malloc", "malloc"),
    ("free", "free"),
    ("__assertfail", "assert"),
    ("__assert_fail", "assert"),
    ("cudaLaunchDeviceV2", "a launch from the device"),
    ("cudaLaunchDevice", "a launch from the device"),
    ("cudaGetParameterBufferV2", "a launch from the device"),
];

pub(super) fn module(built: &Code) -> GateEnd {
    let image = &built.cubin.image;
    if !image.starts_with(b"\x7fELF") {
        // PTX text: its externs are named as they are.
        let text = String::from_utf8_lossy(image);
        let called = FORBIDDEN.iter().find(|(name, _)| {
            text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .any(|word| word == *name)
        });
        return Ok(match called {
            Some((_, what)) => forbidden(what),
            None => End::Pass(json!({ "bytes": image.len(), "text": "ptx" })),
        });
    }
    let (undefined, globals) = inspect(image)
        .map_err(|error| JudgeError::Unsupported(format!("the module could not be read: {error}")))?;
    if let Some((_, what)) = FORBIDDEN
        .iter()
        .find(|(name, _)| undefined.iter().any(|symbol| symbol == name))
    {
        return Ok(forbidden(what));
    }
    Ok(End::Pass(
        json!({ "bytes": image.len(), "global_bytes": globals }),
    ))
}

fn forbidden(what: &str) -> End {
    End::Fail(code(Gate::Static, "forbidden-import"), json!({ "name": what }))
}

/// Undefined symbols, and bytes of module state.
fn inspect(image: &[u8]) -> Result<(Vec<String>, u64), object::read::Error> {
    let file = ElfFile64::<Endianness>::parse(image)?;
    let undefined = file
        .symbols()
        .filter(|symbol| symbol.is_undefined())
        .filter_map(|symbol| Some(symbol.name().ok()?.to_owned()))
        .collect();
    let globals = file
        .sections()
        .filter(|section| section.name().is_ok_and(|name| name.starts_with(".nv.global")))
        .map(|section| section.size())
        .sum();
    Ok((undefined, globals))
}

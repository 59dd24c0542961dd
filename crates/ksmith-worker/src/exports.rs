//! What a finished library exports: a missing entry is found when it is built, not when it is loaded.

use object::Endianness;
use object::read::elf::ElfFile64;
use object::read::{Object as _, ObjectSymbol as _};

/// Names that a message lists.
const SHOWN: usize = 8;

/// Why `entry` cannot be called, in words; `None` where the library exports it.
pub(crate) fn lacks(library: &[u8], entry: &str) -> Option<String> {
    let names = exported(library);
    if names.iter().any(|name| name == entry) {
        return None;
    }
    let mut text = format!("the library does not export `{entry}`; ");
    let own: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !matches!(*name, "_init" | "_fini"))
        .collect();
    if own.is_empty() {
        text.push_str("it exports nothing");
    } else {
        let shown = &own[..own.len().min(SHOWN)];
        text.push_str(&format!("it exports {}", shown.join(", ")));
        if own.len() > shown.len() {
            text.push_str(&format!(" and {} more", own.len() - shown.len()));
        }
    }
    if own
        .iter()
        .any(|name| name.starts_with("_Z") && name.contains(entry))
    {
        text.push_str(": declare it `extern \"C\"`");
    }
    Some(text)
}

fn exported(library: &[u8]) -> Vec<String> {
    let Ok(file) = ElfFile64::<Endianness>::parse(library) else {
        return Vec::new();
    };
    file.dynamic_symbols()
        .filter(|symbol| !symbol.is_undefined())
        .filter_map(|symbol| symbol.name().ok().map(str::to_owned))
        .filter(|name| !name.is_empty())
        .collect()
}

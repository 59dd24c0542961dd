//! Functions and call targets of an ELF shared library (owns the crate `object`).

use std::collections::BTreeMap;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

/// A function and its bytes.
pub(super) struct Function {
    pub(super) name: String,
    pub(super) address: u64,
    pub(super) bytes: Vec<u8>,
}

/// What an analysis needs of a library.
pub(super) struct Binary {
    pub(super) functions: Vec<Function>,
    /// Names by address: functions, and stubs of imported functions.
    names: BTreeMap<u64, String>,
}

/// Start-up code that every library carries.
const RUNTIME: [&str; 8] = [
    "_init",
    "_fini",
    "deregister_tm_clones",
    "register_tm_clones",
    "__do_global_dtors_aux",
    "frame_dummy",
    "_start",
    "__libc_csu_init",
];

impl Binary {
    /// Reads an x86-64 ELF file.
    pub(super) fn read(data: &[u8]) -> Result<Self, String> {
        let file = ElfFile64::<object::Endianness>::parse(data).map_err(|error| error.to_string())?;
        if file.architecture() != object::Architecture::X86_64 {
            return Err(format!("{:?} code, not x86-64", file.architecture()));
        }
        let mut functions: BTreeMap<u64, Function> = BTreeMap::new();
        let mut names = BTreeMap::new();
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let Ok(name) = symbol.name() else { continue };
            if symbol.kind() != SymbolKind::Text || !symbol.is_definition() || name.is_empty() {
                continue;
            }
            names.insert(symbol.address(), name.to_owned());
            if symbol.size() == 0 || RUNTIME.contains(&name) {
                continue;
            }
            let bytes = symbol
                .section_index()
                .and_then(|index| file.section_by_index(index).ok())
                .and_then(|section| section.data_range(symbol.address(), symbol.size()).ok().flatten());
            if let Some(bytes) = bytes {
                functions.entry(symbol.address()).or_insert_with(|| Function {
                    name: name.to_owned(),
                    address: symbol.address(),
                    bytes: bytes.to_vec(),
                });
            }
        }
        stubs(&file, &mut names);
        Ok(Self {
            functions: functions.into_values().collect(),
            names,
        })
    }

    /// The name of what lies at an address.
    pub(super) fn name_at(&self, address: u64) -> Option<&str> {
        self.names.get(&address).map(String::as_str)
    }
}

/// Stubs of the procedure linkage table: each jumps through a slot that a relocation fills with a symbol.
fn stubs(file: &ElfFile64<'_, object::Endianness>, names: &mut BTreeMap<u64, String>) {
    let mut slots = BTreeMap::new();
    let symbols: BTreeMap<usize, String> = file
        .dynamic_symbols()
        .filter_map(|symbol| Some((symbol.index().0, symbol.name().ok()?.to_owned())))
        .collect();
    for (slot, relocation) in file.dynamic_relocations().into_iter().flatten() {
        if let object::RelocationTarget::Symbol(index) = relocation.target()
            && let Some(name) = symbols.get(&index.0)
        {
            slots.insert(slot, name.clone());
        }
    }
    for section in file.sections() {
        if !section.name().is_ok_and(|name| name.starts_with(".plt")) {
            continue;
        }
        let Ok(data) = section.data() else { continue };
        // A stub starts at each multiple of its size; an endbr64 may stand before the jump.
        let mut start = section.address();
        for instruction in Decoder::with_ip(64, data, section.address(), DecoderOptions::NONE).iter() {
            if instruction.mnemonic() == Mnemonic::Jmp && instruction.is_ip_rel_memory_operand() {
                if let Some(name) = slots.get(&instruction.ip_rel_memory_address()) {
                    for address in [start, instruction.ip(), instruction.ip() & !0xf] {
                        names.entry(address).or_insert_with(|| name.clone());
                    }
                }
                start = instruction.next_ip();
            }
        }
    }
}

/// Decodes a function; an undecodable byte ends up as an invalid instruction in the list.
pub(super) fn decode(function: &Function) -> Vec<Instruction> {
    Decoder::with_ip(64, &function.bytes, function.address, DecoderOptions::NONE)
        .iter()
        .collect()
}

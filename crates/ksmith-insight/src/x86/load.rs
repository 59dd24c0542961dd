//! What a library does while it is loaded, and which system calls it makes by itself: read from decoded instructions,
//! never from bytes alone, because any pair of bytes may stand inside a constant.

use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};

/// Longest function that can be a mere choice.
const CHOICE_BYTES: u64 = 4096;
/// Pieces that a compiler may cut it into.
const PIECES: usize = 4;

type File<'data> = ElfFile64<'data, object::Endianness>;

fn parse(data: &[u8]) -> Result<Option<File<'_>>, String> {
    let file = File::parse(data).map_err(|error| error.to_string())?;
    Ok((file.architecture() == object::Architecture::X86_64).then_some(file))
}

fn decode(bytes: &[u8], address: u64) -> Decoder<'_> {
    Decoder::with_ip(64, bytes, address, DecoderOptions::NONE)
}

/// Places of `syscall`, `sysenter` and `int 0x80` in the code: names of functions, or of sections where code stands outside
/// of functions. Empty for other processors.
///
/// Every executable section is decoded from its start and again at the start of every function, so that data between
/// functions hides nothing. An instruction inside another one, reached by a jump into its middle, is not seen.
///
/// # Errors
/// When the file cannot be read.
pub fn system_calls(data: &[u8]) -> Result<Vec<String>, String> {
    let Some(file) = parse(data)? else {
        return Ok(Vec::new());
    };
    let mut starts: Vec<(u64, String)> = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
        .filter_map(|symbol| Some((symbol.address(), symbol.name().ok()?.to_owned())))
        .collect();
    starts.sort();
    starts.dedup_by_key(|(address, _)| *address);
    let mut found = Vec::new();
    for section in file.sections() {
        if section.kind() != SectionKind::Text {
            continue;
        }
        let bytes = section.data().map_err(|error| error.to_string())?;
        let (from, to) = (section.address(), section.address() + bytes.len() as u64);
        let here: Vec<u64> = std::iter::once(from)
            .chain(
                starts
                    .iter()
                    .map(|(address, _)| *address)
                    .filter(|address| (from..to).contains(address)),
            )
            .chain(std::iter::once(to))
            .collect();
        for pair in here.windows(2) {
            let part = &bytes[(pair[0] - from) as usize..(pair[1] - from) as usize];
            for instruction in decode(part, pair[0]).iter().filter(enters_the_kernel) {
                let name = starts
                    .iter()
                    .rev()
                    .find(|(address, _)| *address <= instruction.ip())
                    .map_or_else(
                        || section.name().unwrap_or("?").to_owned(),
                        |(_, name)| name.clone(),
                    );
                if !found.contains(&name) {
                    found.push(name);
                }
            }
        }
    }
    Ok(found)
}

fn enters_the_kernel(instruction: &Instruction) -> bool {
    match instruction.mnemonic() {
        Mnemonic::Syscall | Mnemonic::Sysenter => true,
        Mnemonic::Int => instruction.immediate8() == 0x80,
        _ => false,
    }
}

/// Address and bytes of a function by its name.
pub fn function(data: &[u8], name: &str) -> Option<(u64, Vec<u8>)> {
    let file = parse(data).ok()??;
    let symbol = file.symbols().chain(file.dynamic_symbols()).find(|symbol| {
        symbol.is_definition() && symbol.size() > 0 && symbol.name().is_ok_and(|found| found == name)
    })?;
    let bytes = code_at(&file, symbol.address(), symbol.size())?;
    Some((symbol.address(), bytes))
}

/// The name of the function that begins at an address.
pub fn name_at(data: &[u8], address: u64) -> Option<String> {
    let file = parse(data).ok()??;
    file.symbols()
        .chain(file.dynamic_symbols())
        .find(|symbol| {
            symbol.is_definition() && symbol.kind() == SymbolKind::Text && symbol.address() == address
        })
        .and_then(|symbol| symbol.name().ok().map(str::to_owned))
}

fn code_at(file: &File<'_>, address: u64, size: u64) -> Option<Vec<u8>> {
    file.sections().find_map(|section| {
        section
            .data_range(address, size)
            .ok()
            .flatten()
            .map(<[u8]>::to_vec)
    })
}

/// Addresses that the pointers of an array of start functions hold, by the relocations that fill them.
pub fn pointers(data: &[u8], array: u64, bytes: u64) -> Vec<u64> {
    let Ok(Some(file)) = parse(data) else {
        return Vec::new();
    };
    file.dynamic_relocations()
        .into_iter()
        .flatten()
        .filter(|(slot, _)| (array..array + bytes).contains(slot))
        .map(|(_, relocation)| relocation.addend().cast_unsigned())
        .collect()
}

/// Whether two functions are the same code, linked at different places: every instruction is equal but for the distances
/// to what lies outside.
pub fn same_code(one: &[u8], other: &[u8]) -> bool {
    if one.is_empty() || one.len() != other.len() {
        return false;
    }
    let length = one.len() as u64;
    let mut others = decode(other, 0);
    decode(one, 0).iter().all(|a| {
        let b = others.decode();
        a.code() == b.code()
            && a.len() == b.len()
            && (0..a.op_count()).all(|operand| same_operand(&a, &b, operand, length))
    })
}

fn same_operand(a: &Instruction, b: &Instruction, operand: u32, length: u64) -> bool {
    if a.op_kind(operand) != b.op_kind(operand) {
        return false;
    }
    match a.op_kind(operand) {
        OpKind::Register => a.op_register(operand) == b.op_register(operand),
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => {
            let (to, other) = (a.near_branch_target(), b.near_branch_target());
            to == other || (to >= length && other >= length)
        }
        OpKind::Memory => {
            let same = a.memory_base() == b.memory_base()
                && a.memory_index() == b.memory_index()
                && a.memory_index_scale() == b.memory_index_scale();
            same && (a.memory_base() == Register::RIP
                || a.memory_displacement64() == b.memory_displacement64())
        }
        _ => a.try_immediate(operand).ok() == b.try_immediate(operand).ok(),
    }
}

/// Whether the function at an address only reads, compares and returns one of several addresses: what a compiler writes to
/// choose between versions of a function, and all that a resolver may do while the library is loaded. It may call what
/// begins at one of `may_call`.
pub fn only_chooses(data: &[u8], address: u64, may_call: &[u64]) -> bool {
    let Ok(Some(file)) = parse(data) else {
        return false;
    };
    // A compiler may put the rarer half elsewhere: what is jumped to at its first instruction is a piece of the same kind.
    let mut pieces: Vec<(Range<u64>, Vec<u8>)> = Vec::new();
    let mut open = vec![address];
    while let Some(start) = open.pop() {
        if pieces.iter().any(|(range, _)| range.contains(&start)) {
            continue;
        }
        let Some(piece) = piece(&file, start) else {
            return false;
        };
        if pieces.len() == PIECES {
            return false;
        }
        let jumps = decode(&piece.1, start)
            .iter()
            .filter(|instruction| instruction.is_jcc_short_or_near() || instruction.is_jmp_short_or_near())
            .map(|instruction| instruction.near_branch_target())
            .filter(|target| !piece.0.contains(target))
            .collect::<Vec<_>>();
        pieces.push(piece);
        // A jump back into a piece that is known is fine; anything else must be the start of another one.
        open.extend(
            jumps
                .into_iter()
                .filter(|target| !pieces.iter().any(|(range, _)| range.contains(target))),
        );
    }
    let inside = |target: u64| pieces.iter().any(|(range, _)| range.contains(&target));
    pieces.iter().all(|(range, bytes)| {
        decode(bytes, range.start)
            .iter()
            .all(|instruction| chooses(&instruction, &inside, may_call))
    })
}

/// The function that begins at an address, if it is short.
fn piece(file: &File<'_>, address: u64) -> Option<(Range<u64>, Vec<u8>)> {
    let size = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.is_definition() && symbol.address() == address)
        .map(|symbol| symbol.size())
        .max()
        .filter(|size| (1..=CHOICE_BYTES).contains(size))?;
    Some((address..address + size, code_at(file, address, size)?))
}

fn chooses(instruction: &Instruction, inside: &dyn Fn(u64) -> bool, may_call: &[u64]) -> bool {
    use Mnemonic as M;
    let writes_memory = instruction.op_count() > 0 && instruction.op0_kind() == OpKind::Memory;
    match instruction.mnemonic() {
        M::Call => instruction.is_call_near() && may_call.contains(&instruction.near_branch_target()),
        M::Cmp | M::Test | M::Bt | M::Push | M::Nop | M::Endbr64 => true,
        M::Mov
        | M::Movzx
        | M::Lea
        | M::And
        | M::Or
        | M::Xor
        | M::Sub
        | M::Add
        | M::Shr
        | M::Shl
        | M::Sar
        | M::Pop
        | M::Not
        | M::Neg
        | M::Movsxd
        | M::Cmove
        | M::Cmovne
        | M::Cmovb
        | M::Cmovae
        | M::Cmovs
        | M::Cmovns
        | M::Cmova
        | M::Cmovbe
        | M::Sete
        | M::Setne
        | M::Setb
        | M::Setae => !writes_memory,
        M::Ret => true,
        _ => {
            (instruction.is_jcc_short_or_near() || instruction.is_jmp_short_or_near())
                && inside(instruction.near_branch_target())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chooses_all(code: &[u8], may_call: &[u64]) -> bool {
        let end = 0x1000 + code.len() as u64;
        decode(code, 0x1000)
            .iter()
            .all(|instruction| chooses(&instruction, &|target| (0x1000..end).contains(&target), may_call))
    }

    #[test]
    fn a_system_call_is_an_instruction_and_not_two_bytes() {
        let calls = |code: &[u8]| {
            decode(code, 0)
                .iter()
                .any(|instruction| enters_the_kernel(&instruction))
        };
        assert!(calls(&[0xb8, 1, 0, 0, 0, 0x0f, 0x05]));
        assert!(calls(&[0xcd, 0x80]));
        assert!(!calls(&[0xcd, 0x03]));
        // mov eax, 1; xor ecx, 0x0000050f; add edx, 0x80cd340f
        assert!(!calls(&[
            0xb8, 1, 0, 0, 0, 0x81, 0xf1, 0x0f, 0x05, 0, 0, 0x81, 0xc2, 0x0f, 0x34, 0xcd, 0x80
        ]));
    }

    #[test]
    fn the_same_function_at_another_place_is_the_same_code() {
        // lea rax, [rip + d]; call d; ret
        let one = [0x48, 0x8d, 0x05, 1, 2, 0, 0, 0xe8, 0x10, 0x20, 0, 0, 0xc3];
        let mut moved = one;
        moved[3] = 0x77;
        moved[8] = 0x99;
        assert!(same_code(&one, &moved));
        let mut other = one;
        other[12] = 0x90;
        assert!(!same_code(&one, &other));
        assert!(!same_code(&one, &one[..12]));
        // mov eax, imm: another number is other code.
        assert!(!same_code(&[0xb8, 1, 0, 0, 0], &[0xb8, 2, 0, 0, 0]));
    }

    #[test]
    fn a_choice_reads_compares_and_returns() {
        // sub rsp, 8; call 0x1009; mov rax, [rip+0]; test eax, eax; cmove rax, rdx; add rsp, 8; ret
        let code = [
            0x48, 0x83, 0xec, 8, 0xe8, 0, 0, 0, 0, 0x48, 0x8b, 0x05, 0, 0, 0, 0, 0x85, 0xc0, 0x48, 0x0f,
            0x44, 0xc2, 0x48, 0x83, 0xc4, 8, 0xc3,
        ];
        assert!(chooses_all(&code, &[0x1009]));
        assert!(!chooses_all(&code, &[]), "an unknown function is called");
        // mov [rip+0], eax: it leaves something behind.
        assert!(!chooses_all(&[0x89, 0x05, 0, 0, 0, 0, 0xc3], &[]));
        assert!(!chooses_all(&[0x0f, 0x05, 0xc3], &[]), "a system call");
        assert!(!chooses_all(&[0xff, 0xe0], &[]), "a jump to anywhere");
    }
}

//! The text of the disassemblers, line by line.

use std::collections::BTreeMap;

/// Code of one section.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) name: String,
    pub(super) instructions: Vec<Instruction>,
    pub(super) labels: BTreeMap<String, u64>,
}

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) address: u64,
    pub(super) predicated: bool,
    pub(super) opcode: String,
    pub(super) operands: String,
    /// `file:line`, where the text carries line information.
    pub(super) line: Option<String>,
    /// Live registers, where the text carries life ranges.
    pub(super) live: Option<u32>,
}

/// Architecture and code of every function in the text.
pub(super) fn parse(text: &str) -> (Option<String>, Vec<Code>) {
    let mut arch = None;
    let mut codes: Vec<Code> = Vec::new();
    let mut line_of_source: Option<String> = None;
    let mut pending: Vec<String> = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(name) = trimmed.strip_prefix(".target") {
            arch.get_or_insert_with(|| name.trim().to_owned());
        } else if let Some(name) = section(trimmed) {
            codes.push(Code {
                name,
                ..Code::default()
            });
            line_of_source = None;
            pending.clear();
        } else if let Some(place) = source_line(trimmed) {
            line_of_source = Some(place);
        } else if let Some(label) = label(trimmed) {
            pending.push(label);
        } else if let (Some(code), Some(mut instruction)) = (codes.last_mut(), instruction(trimmed)) {
            for label in pending.drain(..) {
                code.labels.insert(label, instruction.address);
            }
            instruction.line.clone_from(&line_of_source);
            code.instructions.push(instruction);
        }
    }
    for code in &mut codes {
        drop_padding(code);
    }
    (arch, codes)
}

/// `.text.NAME:` of nvdisasm, `Function : NAME` of cuobjdump.
fn section(line: &str) -> Option<String> {
    if let Some(name) = line.strip_prefix("Function : ") {
        return Some(name.trim().to_owned());
    }
    let rest = line.strip_prefix(".text.")?;
    let (name, after) = rest.split_once(':')?;
    (after.is_empty() || after.trim_start().starts_with("//")).then(|| name.to_owned())
}

/// `//## File "f.cu", line 12`; lines of inlined functions carry more text behind.
fn source_line(line: &str) -> Option<String> {
    let rest = line.strip_prefix("//## File \"")?;
    let (file, rest) = rest.split_once("\", line ")?;
    let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let file = file.rsplit('/').next().unwrap_or(file);
    Some(format!("{file}:{number}"))
}

fn label(line: &str) -> Option<String> {
    let (name, after) = line.split_once(':')?;
    let known = name.starts_with(".L_") || name.starts_with("$");
    (known && !name.contains(' ') && (after.is_empty() || after.trim_start().starts_with("//")))
        .then(|| name.to_owned())
}

fn instruction(line: &str) -> Option<Instruction> {
    let rest = line.strip_prefix("/*")?;
    let (address, rest) = rest.split_once("*/")?;
    if address.len() < 4 || !address.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let (body, after) = rest.split_once(';')?;
    let mut words = body.trim().trim_start_matches('{').trim();
    let mut predicated = false;
    while let Some(rest) = words.strip_prefix('@') {
        // A vector predicate may be followed by one of the uniform unit.
        let (_, rest) = rest.split_once(char::is_whitespace)?;
        words = rest.trim_start();
        predicated = true;
    }
    let (opcode, operands) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    if !opcode.starts_with(|c: char| c.is_ascii_uppercase()) {
        return None;
    }
    let live = after
        .split_once("// |")
        .and_then(|(_, columns)| columns.split_whitespace().next())
        .and_then(|number| number.parse().ok());
    Some(Instruction {
        address: u64::from_str_radix(address, 16).ok()?,
        predicated,
        opcode: opcode.to_owned(),
        operands: operands.trim().to_owned(),
        line: None,
        live,
    })
}

/// A function ends with a branch to itself and `NOP`s up to the alignment: no code of its own.
fn drop_padding(code: &mut Code) {
    while let Some(last) = code.instructions.last() {
        let own_branch = last.opcode == "BRA" && code.target(last) == Some(last.address);
        if last.opcode != "NOP" && !own_branch {
            return;
        }
        code.instructions.pop();
    }
}

impl Code {
    /// Where a branch goes, if its target is in the text.
    pub(super) fn target(&self, instruction: &Instruction) -> Option<u64> {
        if !instruction.opcode.starts_with("BRA") {
            return None;
        }
        let last = instruction.operands.rsplit(',').next()?.trim();
        if let Some(label) = last.strip_prefix("`(").and_then(|rest| rest.split(')').next()) {
            return self.labels.get(label).copied();
        }
        let last = last.split_whitespace().next_back()?;
        u64::from_str_radix(last.strip_prefix("0x")?, 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_disassemblers_are_read() {
        let one = instruction("/*00b0*/                   @!UP0 UIADD3 UR4, -UR4, 0x100000, URZ ;").unwrap();
        assert_eq!(
            (one.address, one.predicated, one.opcode.as_str()),
            (0xb0, true, "UIADD3")
        );
        let two =
            instruction("/*0110*/  @P0 LDG.E.128.CONSTANT R4, desc[UR6][R2.64] ;   /* 0x000fe20000000800 */")
                .unwrap();
        assert_eq!(two.operands, "R4, desc[UR6][R2.64]");
        let three = instruction("/*00c0*/   IMAD.WIDE R2, R7, 0x4, R2 ;    // | 6   : x x : |").unwrap();
        assert_eq!(three.live, Some(6));
        assert_eq!(instruction("/* 0x000fe20000000800 */"), None);
        assert_eq!(label(".L_x_1:   // | 2"), Some(".L_x_1".to_owned()));
        assert_eq!(
            source_line("//## File \"/a/b/k.cu\", line 12 inlined at \"x\", line 9"),
            Some("k.cu:12".to_owned())
        );
    }

    #[test]
    fn padding_is_not_code() {
        let text = ".text.k:\n/*0000*/ EXIT ;\n.L_x_0:\n/*0010*/ BRA `(.L_x_0);\n/*0020*/ NOP;\n";
        let (_, codes) = parse(text);
        assert_eq!(codes[0].instructions.len(), 1);
    }
}

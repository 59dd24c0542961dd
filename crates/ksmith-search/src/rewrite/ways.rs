//! Tables of whole numbers that a loop adds to at computed places are kept several times over.
//!
//! ```c
//! for (int64_t i = 0; i < n; i++) count[x[i]] += 1;
//! ```
//!
//! Neighbouring turns may hit the same element, which makes each wait for the last one's store. With one table per turn of an
//! unrolled loop they do not, and whole numbers may be added up in any order. Allowed where the loop does nothing else, the
//! place and what is added do not read the table, and the contract gives the table a fixed size.

use std::collections::BTreeMap;

use tree_sitter::Node;

use super::alias::{Aliases, is_alone};
use super::edit::Edits;
use super::interchange::replaced;
use super::loops::{counter, first_value, limit, mentions, operand};
use super::source::Source;

/// Tables, and turns per iteration.
const WAYS: usize = 4;
/// Larger tables would leave the first-level cache when kept [`WAYS`] times.
pub(super) const MOST: usize = 1024;
/// C types whose sums do not depend on the order (unsigned or too wide to overflow in practice).
pub(super) const WHOLE: [&str; 8] = [
    "int64_t", "uint64_t", "int32_t", "uint32_t", "int", "unsigned", "long", "size_t",
];

/// The rewritten source; `None` where no loop has this shape. `tables` maps positions of parameters of `entry` to the
/// number of elements of outputs whose size is fixed.
pub(super) fn several(source: &Source<'_>, entry: &str, tables: &BTreeMap<usize, usize>) -> Option<String> {
    let known = parameters(source, entry, tables);
    let mut edits = Edits::default();
    for node in source.innermost_loops() {
        let aliases = Aliases::around(source, node, entry).filter(|aliases| aliases.is_entry);
        if let Some(text) = aliases.and_then(|aliases| rewritten(source, node, &known, &aliases)) {
            edits.replace(node.byte_range(), text);
        }
    }
    (!edits.is_empty()).then(|| edits.apply(source.text))
}

/// Name, element type and size of each table of whole numbers among the parameters.
fn parameters<'a>(
    source: &Source<'a>,
    entry: &str,
    tables: &BTreeMap<usize, usize>,
) -> BTreeMap<&'a str, (&'a str, usize)> {
    let mut known = BTreeMap::new();
    for function in source.all(source.root(), "function_declarator") {
        let named = function
            .child_by_field_name("declarator")
            .map(|name| source.text_of(name));
        if named != Some(entry) {
            continue;
        }
        let declared = source.all(function, "parameter_declaration");
        for (at, parameter) in declared.into_iter().enumerate() {
            let (Some(size), Some(kind)) = (tables.get(&at), parameter.child_by_field_name("type")) else {
                continue;
            };
            let kind = source.text_of(kind);
            let name = source.all(parameter, "identifier").into_iter().next_back();
            if let (Some(name), true) = (name, WHOLE.contains(&kind)) {
                known.insert(source.text_of(name), (kind, *size));
            }
        }
    }
    known
}

fn rewritten<'a>(
    source: &Source<'a>,
    node: Node<'_>,
    known: &BTreeMap<&'a str, (&'a str, usize)>,
    aliases: &Aliases<'a>,
) -> Option<String> {
    let variable = counter(source, node)?;
    let limit = limit(source, node)?;
    let first = first_value(source, node)?;
    let statement = match node.child_by_field_name("body")? {
        block if block.kind() == "compound_statement" && block.named_child_count() == 1 => {
            block.named_child(0)?
        }
        other => other,
    };
    let change = statement.named_child(0)?;
    let (target, added) = match change.kind() {
        "assignment_expression" if source.text_of(change.child_by_field_name("operator")?) == "+=" => {
            let right = change.child_by_field_name("right")?;
            let whole = right.kind() == "number_literal" && source.text_of(right).parse::<u32>().is_ok();
            (
                change.child_by_field_name("left")?,
                whole.then(|| source.text_of(right))?,
            )
        }
        "update_expression" if source.text_of(change).contains("++") => {
            (change.child_by_field_name("argument")?, "1")
        }
        _ => return None,
    };
    if target.kind() != "subscript_expression" {
        return None;
    }
    let table = target.child_by_field_name("argument")?;
    let place = target.child_by_field_name("index")?;
    let name = source.text_of(table);
    let (kind, size) = *known.get(name)?;
    let simple = [
        "assignment_expression",
        "update_expression",
        "call_expression",
        "pointer_expression",
    ]
    .iter()
    .all(|kind| source.all(place, kind).is_empty());
    if !simple
        || size > MOST
        || mentions(source, place, name)
        || mentions(source, limit, name)
        || !is_alone(source, statement, name, aliases)
        || !mentions(source, place, variable)
    {
        return None;
    }
    let limit = operand(source, limit);
    let turn = |way: usize| {
        let index = replaced(source, place, variable, &format!("({variable} + {way})"));
        format!("            {name}_ways[{way}][{index}] += {added};\n")
    };
    let turns: String = (0..WAYS).map(turn).collect();
    let sum: String = (0..WAYS)
        .map(|way| format!("{name}_ways[{way}][{name}_slot]"))
        .collect::<Vec<_>>()
        .join(" + ");
    Some(format!(
        "{{
        {kind} {name}_ways[{WAYS}][{size}] = {{{{0}}}};
        long {variable} = {first};
        for (; {variable} + {WAYS} <= {limit}; {variable} += {WAYS}) {{
{turns}        }}
        for (; {variable} < {limit}; {variable}++) {name}_ways[0][{}] += {added};
        for (int {name}_slot = 0; {name}_slot < {size}; {name}_slot++) {name}[{name}_slot] += {sum};
    }}",
        source.text_of(place)
    ))
}

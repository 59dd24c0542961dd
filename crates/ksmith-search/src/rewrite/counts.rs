//! Counts are kept in 16 bits within blocks of a loop, so that lanes are not widened to the counter's type.
//!
//! ```c
//! for (int64_t i = 0; i < n; i++) if (x[i] > t) found += 1;
//! ```
//!
//! Each element of a byte array that is counted in an `int64_t` is widened eightfold, which costs more than all the rest. A
//! block is so short that 16 bits hold whatever it adds. The order of everything stays; allowed where the loop uses the
//! counter for nothing but adding small constants, and nothing has its address.

use std::collections::BTreeMap;

use tree_sitter::Node;

use super::alias::Aliases;
use super::edit::Edits;
use super::loops::{calls_pure, counter, first_value, jumps, limit, mentions, operand};
use super::source::Source;
use super::ways::WHOLE;

/// Largest sum that 16 bits hold.
const MOST: u32 = 65_535;
/// Blocks are a whole number of the widest vectors of bytes.
const STEP: u32 = 64;

/// The rewritten source; `None` where no loop counts.
pub(super) fn narrowed(source: &Source<'_>, entry: &str) -> Option<String> {
    let mut edits = Edits::default();
    for node in source.innermost_loops() {
        let aliases = Aliases::around(source, node, entry);
        if let Some(text) = aliases.and_then(|aliases| rewritten(source, node, &aliases)) {
            edits.replace(node.byte_range(), text);
        }
    }
    (!edits.is_empty()).then(|| edits.apply(source.text))
}

/// Counters of a loop body with the most that one turn adds to each.
fn counters<'a>(source: &Source<'a>, body: Node<'_>) -> BTreeMap<&'a str, u32> {
    let mut added: BTreeMap<&str, (u32, usize)> = BTreeMap::new();
    let mut add = |name: Node<'_>, amount: Option<u32>| {
        if let (Some(amount), "identifier") = (amount, name.kind()) {
            let (sum, times) = added.entry(source.text_of(name)).or_default();
            (*sum, *times) = (sum.saturating_add(amount), *times + 1);
        }
    };
    for change in source.all(body, "assignment_expression") {
        let amount = change
            .child_by_field_name("right")
            .filter(|right| right.kind() == "number_literal")
            .and_then(|right| source.text_of(right).parse().ok())
            .filter(|_| {
                change
                    .child_by_field_name("operator")
                    .is_some_and(|operator| source.text_of(operator) == "+=")
            });
        if let Some(left) = change.child_by_field_name("left") {
            add(left, amount);
        }
    }
    for change in source.all(body, "update_expression") {
        let is_statement = change
            .parent()
            .is_some_and(|parent| parent.kind() == "expression_statement");
        let amount = (is_statement && source.text_of(change).contains("++")).then_some(1);
        if let Some(argument) = change.child_by_field_name("argument") {
            add(argument, amount);
        }
    }
    let uses = |name: &str| {
        let words = source.all(body, "identifier").into_iter();
        words.filter(|word| source.text_of(*word) == name).count()
    };
    added
        .into_iter()
        .filter(|(name, (sum, times))| *sum <= MOST / STEP && *times == uses(name))
        .map(|(name, (sum, _))| (name, sum))
        .collect()
}

/// Whether a name is declared around the loop with a type of whole numbers, and its address is never taken.
fn is_local_count(source: &Source<'_>, node: Node<'_>, name: &str, aliases: &Aliases<'_>) -> bool {
    let mut function = node;
    while let Some(parent) = function.parent() {
        function = parent;
        if function.kind() == "function_definition" {
            break;
        }
    }
    let declares = |declaration: &Node<'_>| {
        let named = source
            .all(*declaration, "init_declarator")
            .into_iter()
            .any(|one| {
                one.child_by_field_name("declarator")
                    .is_some_and(|declared| source.text_of(declared) == name)
            });
        let whole = declaration
            .child_by_field_name("type")
            .is_some_and(|kind| WHOLE.contains(&source.text_of(kind)));
        let inside = node.byte_range().contains(&declaration.start_byte());
        named && whole && !inside
    };
    let declared = source
        .all(function, "declaration")
        .iter()
        .filter(|one| declares(one))
        .count();
    let pointed = source
        .all(function, "pointer_expression")
        .into_iter()
        .any(|pointer| mentions(source, pointer, name));
    declared == 1 && !pointed && aliases.is_number(name)
}

fn rewritten(source: &Source<'_>, node: Node<'_>, aliases: &Aliases<'_>) -> Option<String> {
    let variable = counter(source, node)?;
    let (first, limit) = (first_value(source, node)?, limit(source, node)?);
    let body = node.child_by_field_name("body")?;
    if jumps(source, body) || !calls_pure(source, body) {
        return None;
    }
    let mut counters = counters(source, body);
    counters.retain(|name, _| {
        *name != variable && !mentions(source, limit, name) && is_local_count(source, node, name, aliases)
    });
    let most = counters.values().copied().max().filter(|most| *most > 0)?;
    // The limit is read once per block instead of once per turn.
    let changed = [
        ("assignment_expression", "left"),
        ("update_expression", "argument"),
    ]
    .into_iter()
    .flat_map(|(kind, field)| {
        source
            .all(body, kind)
            .into_iter()
            .map(move |change| (change, field))
    })
    .filter_map(|(change, field)| change.child_by_field_name(field));
    for name in changed.map(|changed| source.text_of(changed)) {
        if name == variable || mentions(source, limit, name) {
            return None;
        }
    }
    let block = MOST / most / STEP * STEP;
    let mut edits = Edits::default();
    // Before the names in them, which are then left alone.
    for change in source.all(body, "update_expression") {
        let name = change
            .child_by_field_name("argument")
            .map(|name| source.text_of(name))?;
        if counters.contains_key(name) {
            let at = change.start_byte() - body.start_byte()..change.end_byte() - body.start_byte();
            edits.replace(at, format!("{name}_part += 1"));
        }
    }
    for word in source.all(body, "identifier") {
        let name = source.text_of(word);
        if counters.contains_key(name) {
            let at = word.start_byte() - body.start_byte()..word.end_byte() - body.start_byte();
            edits.replace(at, format!("{name}_part"));
        }
    }
    let inside = edits.apply(source.text_of(body));
    let limit = operand(source, limit);
    let names: Vec<&str> = counters.into_keys().collect();
    let each = |text: &dyn Fn(&str) -> String| names.iter().map(|name| text(name)).collect::<Vec<_>>();
    Some(format!(
        "for (long {variable}_block = {first}; {variable}_block < {limit}; {variable}_block += {block}) {{
        const long {variable}_end = {limit} - {variable}_block < {block} ? {limit} : {variable}_block + {block};
        unsigned short {};
        for (long {variable} = {variable}_block; {variable} < {variable}_end; {variable}++) {inside}
        {}
    }}",
        each(&|name| format!("{name}_part = 0")).join(", "),
        each(&|name| format!("{name} += {name}_part;")).join(" "),
    ))
}

//! What a loop writes and the next one overwrites is not written.
//!
//! ```c
//! for (int64_t i = 0; i < h * w; i++) y[i] = x[i];
//! for (int64_t i = 1; i < h - 1; i++)
//!     for (int64_t j = 1; j < w - 1; j++) y[i * w + j] = E(i, j);
//! ```
//!
//! The first loop shrinks to the border. Allowed where both are neighbours in one block, the sizes are parameters (axes are at
//! least 1), the second writes each element of its rectangle in every turn and neither reads the array.

use tree_sitter::Node;

use super::alias::{Aliases, base, is_alone};
use super::edit::Edits;
use super::interchange::replaced;
use super::loops::{calls_pure, counter, first_value, jumps, limit, mentions, statements};
use super::source::Source;

/// The rewritten source; `None` where no two loops have this shape.
pub(super) fn only(source: &Source<'_>, entry: &str) -> Option<String> {
    let mut edits = Edits::default();
    for block in source.all(source.root(), "compound_statement") {
        for pair in statements(block).windows(2) {
            let aliases = Aliases::around(source, pair[0], entry).filter(|aliases| aliases.is_entry);
            if let Some(text) = aliases.and_then(|aliases| rewritten(source, pair[0], pair[1], &aliases)) {
                edits.replace(pair[0].byte_range(), text);
            }
        }
    }
    (!edits.is_empty()).then(|| edits.apply(source.text))
}

/// The one statement of a loop's body.
fn only_statement(node: Node<'_>) -> Option<Node<'_>> {
    let statements = statements(node.child_by_field_name("body")?);
    match statements.as_slice() {
        [one] => Some(*one),
        _ => None,
    }
}

/// Target and value of a plain assignment to an element.
fn assignment<'t>(source: &Source<'_>, statement: Node<'t>) -> Option<(Node<'t>, Node<'t>)> {
    let change = statement.named_child(0).filter(|node| {
        statement.kind() == "expression_statement" && node.kind() == "assignment_expression"
    })?;
    let target = change
        .child_by_field_name("left")
        .filter(|left| left.kind() == "subscript_expression")?;
    let is_plain = source.text_of(change.child_by_field_name("operator")?) == "=";
    is_plain.then_some((target, change.child_by_field_name("right")?))
}

/// The names of `a * b`.
fn product<'a>(source: &Source<'a>, node: Node<'_>) -> Option<(&'a str, &'a str)> {
    let (left, right) = (
        node.child_by_field_name("left")?,
        node.child_by_field_name("right")?,
    );
    let fits = node.kind() == "binary_expression"
        && source.text_of(node.child_by_field_name("operator")?) == "*"
        && left.kind() == "identifier"
        && right.kind() == "identifier";
    fits.then(|| (source.text_of(left), source.text_of(right)))
}

/// Text without white space.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

/// How far a counter stays from both ends of `0 .. size`.
fn margins(source: &Source<'_>, node: Node<'_>, size: &str) -> Option<(u32, u32)> {
    let before = first_value(source, node)?.parse().ok()?;
    let limit = squeezed(source.text_of(limit(source, node)?));
    let after = match limit.strip_prefix(size)? {
        "" => 0,
        rest => rest.strip_prefix('-')?.parse().ok()?,
    };
    Some((before, after))
}

fn rewritten<'a>(
    source: &Source<'a>,
    whole: Node<'_>,
    part: Node<'_>,
    aliases: &Aliases<'a>,
) -> Option<String> {
    if whole.kind() != "for_statement" || part.kind() != "for_statement" {
        return None;
    }
    let at = counter(source, whole)?;
    let (rows, cols) = product(source, limit(source, whole)?)?;
    if first_value(source, whole)? != "0" || !aliases.is_number(rows) || !aliases.is_number(cols) {
        return None;
    }
    let (target, value) = assignment(source, only_statement(whole)?)?;
    let array = base(source, target)?;
    if source.text_of(target.child_by_field_name("argument")?) != array
        || source.text_of(target.child_by_field_name("index")?) != at
        || mentions(source, value, array)
        || !calls_pure(source, whole)
        || !source.all(whole, "pointer_expression").is_empty()
        || !is_alone(source, whole, array, aliases)
    {
        return None;
    }

    let inner = only_statement(part).filter(|inner| inner.kind() == "for_statement")?;
    let (row, col) = (counter(source, part)?, counter(source, inner)?);
    let (above, below) = margins(source, part, rows)?;
    let (left, right) = margins(source, inner, cols)?;
    let body = inner.child_by_field_name("body")?;
    let writes = source.all(body, "assignment_expression");
    let wanted = format!("{row}*{cols}+{col}");
    let mut overwrites = 0;
    for statement in statements(body) {
        match statement.kind() {
            "declaration" => {}
            "expression_statement" => {
                let (target, _) = assignment(source, statement)?;
                let index = squeezed(source.text_of(target.child_by_field_name("index")?));
                if source.text_of(target.child_by_field_name("argument")?) != array || index != wanted {
                    return None;
                }
                overwrites += 1;
            }
            _ => return None,
        }
    }
    let reads = source
        .all(body, "subscript_expression")
        .into_iter()
        .filter(|access| base(source, *access) == Some(array));
    if overwrites != 1
        || writes.len() != 1
        || reads.count() != 1
        || !source.all(part, "update_expression").iter().all(|update| {
            let counted = update
                .child_by_field_name("argument")
                .map(|name| source.text_of(name));
            counted == Some(row) || counted == Some(col)
        })
        || jumps(source, part)
        || !calls_pure(source, part)
        || !source.all(body, "pointer_expression").is_empty()
        || !is_alone(source, part, array, aliases)
    {
        return None;
    }
    let (r, c) = (format!("{at}_row"), format!("{at}_col"));
    let copy = format!(
        "{array}[{r} * {cols} + {c}] = {};",
        replaced(source, value, at, &format!("({r} * {cols} + {c})"))
    );
    Some(format!(
        "for (long {r} = 0; {r} < {rows}; {r}++) {{
        const int {at}_inside = {r} >= {above} && {r} < {rows} - {below};
        const long {at}_left = {at}_inside && {left} < {cols} ? {left} : {at}_inside ? {cols} : 0;
        const long {at}_right = !{at}_inside ? 0 : {cols} - {right} > {at}_left ? {cols} - {right} : {at}_left;
        for (long {c} = 0; {c} < {at}_left; {c}++) {copy}
        for (long {c} = {at}_right; {c} < {cols}; {c}++) {copy}
    }}"
    ))
}

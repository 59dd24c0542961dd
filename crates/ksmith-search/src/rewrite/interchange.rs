//! Interchange of a loop over columns with the reduction inside, by strips of columns.
//!
//! ```c
//! for (int64_t c = 0; c < cols; c++) {              for strips of 256 columns:
//!     double s = 0.0;                                   s[...] = 0.0
//!     for (int64_t r = 0; r < rows; r++) s += E(r, c);  for r: for c in strip: s[c] += E(r, c)
//!     y[c] = (float)s;                                  for c in strip: y[c] = (float)s[c]
//! }
//! ```
//!
//! The reduction may be a nest of loops, may declare values of its own, and may be a sum, a product, a bit operation or
//! `if (e > m) m = e`. Allowed where the bounds inside do not depend on the outer variable, `s` is used for nothing else, the
//! last statement is the only write to memory, and nothing inside reads what it writes. Each column keeps its order of
//! operations, so no rounding changes.

use tree_sitter::Node;

use super::alias::{Aliases, base, is_alone};
use super::edit::Edits;
use super::loops::{calls_pure, counter, first_value, is_plain, jumps, mentions, operand, statements};
use super::source::Source;

const STRIP: usize = 256;

/// The rewritten source; `None` where no loop has this shape.
pub(super) fn strips(source: &Source<'_>, entry: &str) -> Option<String> {
    let mut edits = Edits::default();
    for outer in source.all(source.root(), "for_statement") {
        let aliases = Aliases::around(source, outer, entry);
        if let Some(text) = aliases.and_then(|aliases| rewritten(source, outer, &aliases)) {
            edits.replace(outer.byte_range(), text);
        }
    }
    (!edits.is_empty()).then(|| edits.apply(source.text))
}

/// A nest of loops with nothing between them.
struct Nest<'a, 't> {
    heads: Vec<&'a str>,
    /// Declarations before the one statement that changes the reduction.
    values: Vec<Node<'t>>,
    change: Node<'t>,
}

fn nest<'a, 't>(source: &Source<'a>, inner: Node<'t>, column: &str, sum: &str) -> Option<Nest<'a, 't>> {
    let mut heads = Vec::new();
    let mut node = inner;
    loop {
        if counter(source, node)? == column {
            return None;
        }
        let body = node.child_by_field_name("body")?;
        for part in ["initializer", "condition"] {
            let part = node.child_by_field_name(part)?;
            let changes = ["assignment_expression", "update_expression", "call_expression"];
            if mentions(source, part, column)
                || mentions(source, part, sum)
                || changes.iter().any(|kind| !source.all(part, kind).is_empty())
            {
                return None;
            }
        }
        heads.push(source.text.get(node.start_byte()..body.start_byte())?.trim_end());
        let statements = statements(body);
        match statements.as_slice() {
            [one] if one.kind() == "for_statement" => node = *one,
            [values @ .., change] => {
                return Some(Nest {
                    heads,
                    values: values.to_vec(),
                    change: *change,
                });
            }
            [] => return None,
        }
    }
}

/// Whether a statement changes `sum` as a reduction does and does nothing else.
fn reduces(source: &Source<'_>, statement: Node<'_>, sum: &str) -> Option<()> {
    if statement.kind() == "if_statement" {
        // `if (e > m) m = e;`
        let condition = statement.child_by_field_name("condition")?.named_child(0)?;
        let then = statements(statement.child_by_field_name("consequence")?);
        let [then] = then.as_slice() else {
            return None;
        };
        let assignment = then
            .named_child(0)
            .filter(|node| node.kind() == "assignment_expression")?;
        let value = assignment.child_by_field_name("right")?;
        let (left, right) = (
            source.text_of(condition.child_by_field_name("left")?),
            source.text_of(condition.child_by_field_name("right")?),
        );
        let compared = source.text_of(value);
        let comparison = source.text_of(condition.child_by_field_name("operator")?);
        let fits = matches!(comparison, "<" | "<=" | ">" | ">=")
            && (left == sum && right == compared || left == compared && right == sum)
            && source.text_of(assignment.child_by_field_name("left")?) == sum
            && source.text_of(assignment.child_by_field_name("operator")?) == "="
            && statement.child_by_field_name("alternative").is_none();
        return (fits && is_value(source, value, sum)).then_some(());
    }
    let assignment = statement.named_child(0).filter(|node| {
        node.kind() == "assignment_expression" && statement.kind() == "expression_statement"
    })?;
    let operator = source.text_of(assignment.child_by_field_name("operator")?);
    let fits = matches!(operator, "+=" | "-=" | "*=" | "|=" | "&=" | "^=")
        && source.text_of(assignment.child_by_field_name("left")?) == sum;
    (fits && is_value(source, assignment.child_by_field_name("right")?, sum)).then_some(())
}

/// Whether an expression changes nothing and does not depend on the reduction.
fn is_value(source: &Source<'_>, node: Node<'_>, sum: &str) -> bool {
    let changes = ["assignment_expression", "update_expression", "pointer_expression"];
    !mentions(source, node, sum)
        && calls_pure(source, node)
        && changes.iter().all(|kind| source.all(node, kind).is_empty())
}

fn rewritten<'a>(source: &Source<'a>, outer: Node<'_>, aliases: &Aliases<'a>) -> Option<String> {
    let column = counter(source, outer)?;
    let body = outer
        .child_by_field_name("body")
        .filter(|body| body.kind() == "compound_statement")?;
    let statements = statements(body);
    let [declaration, inner, last] = statements.as_slice() else {
        return None;
    };
    if declaration.kind() != "declaration"
        || inner.kind() != "for_statement"
        || last.kind() != "expression_statement"
        || jumps(source, body)
    {
        return None;
    }
    let declarators = source.all(*declaration, "init_declarator");
    let [declarator] = declarators.as_slice() else {
        return None;
    };
    let kind = source.text_of(declaration.child_by_field_name("type")?);
    let sum = source.text_of(
        declarator
            .child_by_field_name("declarator")
            .filter(|name| name.kind() == "identifier")?,
    );
    let start = declarator.child_by_field_name("value")?;

    let Nest {
        heads,
        values,
        change,
    } = nest(source, *inner, column, sum)?;
    reduces(source, change, sum)?;
    for value in &values {
        let declared = source.all(*value, "init_declarator");
        let plain = |one: &Node<'_>| {
            one.child_by_field_name("declarator")
                .is_some_and(|name| name.kind() == "identifier")
        };
        if value.kind() != "declaration"
            || declared.is_empty()
            || !declared.iter().all(plain)
            || !is_value(source, *value, sum)
        {
            return None;
        }
    }
    let store = last
        .named_child(0)
        .filter(|node| node.kind() == "assignment_expression")?;
    let target = store
        .child_by_field_name("left")
        .filter(|left| left.kind() == "subscript_expression")?;
    let array = base(source, target)?;
    if source.text_of(store.child_by_field_name("operator")?) != "="
        || mentions(source, *declaration, array)
        || mentions(source, *inner, array)
        || !is_alone(source, body, array, aliases)
        || !is_value(source, start, sum)
    {
        return None;
    }

    let bound = outer.child_by_field_name("condition")?;
    let limit = bound
        .child_by_field_name("right")
        .filter(|limit| is_plain(source, *limit))?;
    let limit = operand(source, limit);
    let inclusive = source.text_of(bound.child_by_field_name("operator")?) == "<=";
    let limit = if inclusive {
        format!("({limit} + 1)")
    } else {
        limit
    };
    let first = first_value(source, outer)?;
    let slot = format!("{sum}_strip[{column} - {column}_strip]");
    let heads = heads.join("\n        ");
    let values: String = values
        .iter()
        .map(|value| format!("{} ", source.text_of(*value)))
        .collect();
    let change = replaced(source, change, sum, &slot);
    let stored = replaced(source, *last, sum, &slot);
    let start = source.text_of(start);
    Some(format!(
        "for (long {column}_strip = {first}; {column}_strip < {limit}; {column}_strip += {STRIP}) {{
        {kind} {sum}_strip[{STRIP}];
        const long {column}_end = {limit} - {column}_strip < {STRIP} ? {limit} : {column}_strip + {STRIP};
        for (long {column} = {column}_strip; {column} < {column}_end; {column}++) {slot} = {start};
        {heads}
            for (long {column} = {column}_strip; {column} < {column}_end; {column}++) {{ {values}{change} }}
        for (long {column} = {column}_strip; {column} < {column}_end; {column}++) {stored}
    }}"
    ))
}

/// The text of `node` with an identifier replaced.
pub(super) fn replaced(source: &Source<'_>, node: Node<'_>, name: &str, by: &str) -> String {
    let mut edits = Edits::default();
    for word in source.all(node, "identifier") {
        if source.text_of(word) == name {
            edits.replace(
                word.start_byte() - node.start_byte()..word.end_byte() - node.start_byte(),
                by,
            );
        }
    }
    edits.apply(source.text_of(node))
}

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
//! Allowed where the inner bounds do not depend on the outer variable, `s` is used for nothing else, the last statement
//! is the only write to memory, and `E` does not read what it writes. Each column keeps its order of additions, so no
//! rounding changes.

use tree_sitter::Node;

use super::edit::Edits;
use super::loops::counter;
use super::source::Source;

const STRIP: usize = 256;

/// The rewritten source; `None` where no loop has this shape.
pub(super) fn strips(source: &Source<'_>) -> Option<String> {
    let mut edits = Edits::default();
    for outer in source.all(source.root(), "for_statement") {
        if let Some(text) = rewritten(source, outer) {
            edits.replace(outer.byte_range(), text);
        }
    }
    (!edits.is_empty()).then(|| edits.apply(source.text))
}

pub(super) fn mentions(source: &Source<'_>, node: Node<'_>, name: &str) -> bool {
    source
        .all(node, "identifier")
        .into_iter()
        .any(|word| source.text_of(word) == name)
}

fn rewritten(source: &Source<'_>, outer: Node<'_>) -> Option<String> {
    let column = counter(source, outer)?;
    let body = outer
        .child_by_field_name("body")
        .filter(|body| body.kind() == "compound_statement")?;
    let mut cursor = body.walk();
    let statements: Vec<_> = body
        .named_children(&mut cursor)
        .filter(|node| node.kind() != "comment")
        .collect();
    let [declaration, inner, last] = statements.as_slice() else {
        return None;
    };
    if declaration.kind() != "declaration"
        || inner.kind() != "for_statement"
        || last.kind() != "expression_statement"
    {
        return None;
    }
    let declarators = source.all(*declaration, "init_declarator");
    let [declarator] = declarators.as_slice() else {
        return None;
    };
    let kind = source.text_of(declaration.child_by_field_name("type")?);
    let sum = source.text_of(declarator.child_by_field_name("declarator")?);
    let start = declarator.child_by_field_name("value")?;

    let row = counter(source, *inner)?;
    let head = ["initializer", "condition"];
    if row == column
        || head
            .iter()
            .filter_map(|field| inner.child_by_field_name(field))
            .any(|part| mentions(source, part, column))
    {
        return None;
    }
    let statement = match inner.child_by_field_name("body")? {
        block if block.kind() == "compound_statement" && block.named_child_count() == 1 => {
            block.named_child(0)?
        }
        other => other,
    };
    let addition = statement
        .named_child(0)
        .filter(|node| node.kind() == "assignment_expression")?;
    let into = addition.child_by_field_name("left")?;
    let term = addition.child_by_field_name("right")?;
    let operator = source.text_of(addition.child_by_field_name("operator")?);
    let plain = matches!(operator, "+=" | "-=" | "*=")
        && source.text_of(into) == sum
        && !mentions(source, term, sum)
        && source.all(term, "assignment_expression").is_empty()
        && source.all(term, "update_expression").is_empty()
        && source.all(term, "call_expression").is_empty();
    if !plain {
        return None;
    }
    let store = last
        .named_child(0)
        .filter(|node| node.kind() == "assignment_expression")?;
    let target = store
        .child_by_field_name("left")
        .filter(|left| left.kind() == "subscript_expression")?;
    let array = source.text_of(target.child_by_field_name("argument")?);
    if source.text_of(store.child_by_field_name("operator")?) != "=" || mentions(source, term, array) {
        return None;
    }

    let bound = outer.child_by_field_name("condition")?;
    let limit = source.text_of(bound.child_by_field_name("right")?);
    let inclusive = source.text_of(bound.child_by_field_name("operator")?) == "<=";
    let limit = if inclusive {
        format!("({limit}) + 1")
    } else {
        limit.to_owned()
    };
    let initializer = outer.child_by_field_name("initializer")?;
    let first = match initializer.kind() {
        "declaration" => {
            let declarators = source.all(initializer, "init_declarator");
            let [one] = declarators.as_slice() else {
                return None;
            };
            source.text_of(one.child_by_field_name("value")?)
        }
        _ => return None,
    };
    let inner_head = source
        .text
        .get(inner.start_byte()..inner.child_by_field_name("body")?.start_byte())?
        .trim_end();
    let slot = format!("{sum}_strip[{column} - {column}_strip]");
    let stored = source.text_of(*last).replace(
        source.text_of(store.child_by_field_name("right")?),
        &replaced(source, store.child_by_field_name("right")?, sum, &slot),
    );
    let (term, start) = (source.text_of(term), source.text_of(start));
    Some(format!(
        "for (long {column}_strip = {first}; {column}_strip < {limit}; {column}_strip += {STRIP}) {{
        {kind} {sum}_strip[{STRIP}];
        const long {column}_end = {limit} - {column}_strip < {STRIP} ? {limit} : {column}_strip + {STRIP};
        for (long {column} = {column}_strip; {column} < {column}_end; {column}++) {slot} = {start};
        {inner_head}
            for (long {column} = {column}_strip; {column} < {column}_end; {column}++) {slot} {operator} {term};
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

//! Which innermost loops may be marked for vectorisation, and with which reductions.
//!
//! A loop is marked when all of this can be read off its syntax:
//! it counts one variable upwards; it has no jump out and calls nothing but pure functions; every scalar that it changes
//! is declared inside or is a plain reduction; every array that it writes is accessed at one and the same index, which
//! moves with the loop variable. No other array that it touches may be the same memory ([`super::alias`]).

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use super::alias::{Aliases, base};
use super::edit::Edits;
use super::source::Source;

/// Functions without side effects that a vectorised loop may call.
pub(super) const PURE: [&str; 20] = [
    "expf",
    "exp",
    "logf",
    "log",
    "sqrtf",
    "sqrt",
    "fabsf",
    "fabs",
    "sinf",
    "cosf",
    "tanhf",
    "floorf",
    "ceilf",
    "powf",
    "fminf",
    "fmaxf",
    "roundf",
    "lrintf",
    "rintf",
    super::math::EXP,
];

/// Marks what may be marked; returns how many loops.
pub(super) fn mark(source: &Source<'_>, entry: &str, edits: &mut Edits) -> usize {
    let mut marked = 0;
    for node in source.innermost_loops() {
        let aliases = Aliases::around(source, node, entry);
        let Some(reductions) = aliases.and_then(|aliases| independent(source, node, &aliases)) else {
            continue;
        };
        let mut pragma = String::from("\n#pragma omp simd");
        for (operator, names) in reductions {
            pragma.push_str(&format!(
                " reduction({operator}:{})",
                names.into_iter().collect::<Vec<_>>().join(", ")
            ));
        }
        pragma.push('\n');
        edits.insert(node.start_byte(), pragma);
        marked += 1;
    }
    marked
}

/// The variable that a loop counts upwards by one.
pub(super) fn counter<'a>(source: &Source<'a>, node: Node<'_>) -> Option<&'a str> {
    let update = node.child_by_field_name("update")?;
    let condition = node.child_by_field_name("condition")?;
    if update.kind() != "update_expression" || !source.text_of(update).contains("++") {
        return None;
    }
    let name = source.text_of(update.child_by_field_name("argument")?);
    let compares = condition.kind() == "binary_expression"
        && condition
            .child_by_field_name("left")
            .is_some_and(|left| source.text_of(left) == name)
        && condition
            .child_by_field_name("operator")
            .is_some_and(|operator| matches!(source.text_of(operator), "<" | "<="));
    compares.then_some(name)
}

type Reductions = BTreeMap<&'static str, BTreeSet<String>>;

/// The reductions of an independent loop; `None` where independence cannot be shown.
fn independent<'a>(source: &Source<'a>, node: Node<'_>, aliases: &Aliases<'a>) -> Option<Reductions> {
    let variable = counter(source, node)?;
    let body = node.child_by_field_name("body")?;
    if jumps(source, body) || !calls_pure(source, body) || !source.all(body, "pointer_expression").is_empty()
    {
        return None;
    }
    if !source.all(body, "update_expression").is_empty() || !source.all(body, "field_expression").is_empty() {
        return None;
    }
    let mut inside = BTreeSet::new();
    for declaration in source.all(body, "declaration") {
        for declarator in source.all(declaration, "init_declarator") {
            inside.insert(
                source
                    .text_of(declarator.child_by_field_name("declarator")?)
                    .to_owned(),
            );
        }
        let plain = declaration
            .child_by_field_name("declarator")
            .filter(|name| name.kind() == "identifier");
        inside.extend(plain.map(|name| source.text_of(name).to_owned()));
    }
    let mut reductions = Reductions::new();
    let mut written: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for assignment in source.all(body, "assignment_expression") {
        let left = assignment.child_by_field_name("left")?;
        match left.kind() {
            "identifier" if inside.contains(source.text_of(left)) => {}
            "identifier" => {
                let operator = reduction(source, body, assignment)?;
                reductions
                    .entry(operator)
                    .or_default()
                    .insert(source.text_of(left).to_owned());
            }
            "subscript_expression" => {
                let array = source.text_of(left.child_by_field_name("argument")?);
                let index = source.text_of(left.child_by_field_name("index")?);
                written
                    .entry((base(source, left)?, array))
                    .or_default()
                    .insert(index);
            }
            _ => return None,
        }
    }
    if reductions.is_empty() && written.is_empty() {
        return None;
    }
    let condition = node.child_by_field_name("condition")?;
    let is_fixed = |name: &String| !mentions(source, condition, name);
    if !reductions.values().flatten().all(is_fixed) {
        return None;
    }
    for ((name, array), indices) in &written {
        for access in source.all(body, "subscript_expression") {
            // The row of a two-dimensional access is no access of its own.
            if access.parent().is_some_and(|outer| {
                outer.kind() == "subscript_expression"
                    && outer.child_by_field_name("argument") == Some(access)
            }) {
                continue;
            }
            let accessed = base(source, access)?;
            if accessed != *name && aliases.may_overlap(accessed, name) {
                return None;
            }
            if accessed == *name {
                let index = source.text_of(access.child_by_field_name("index")?);
                let same = source.text_of(access.child_by_field_name("argument")?) == *array;
                if !same || !indices.contains(index) || indices.len() != 1 {
                    return None;
                }
            }
        }
        if !indices.iter().all(|index| moves_with(index, variable, &inside)) {
            return None;
        }
    }
    Some(reductions)
}

/// Whether a name occurs below `node`.
pub(super) fn mentions(source: &Source<'_>, node: Node<'_>, name: &str) -> bool {
    source
        .all(node, "identifier")
        .into_iter()
        .any(|word| source.text_of(word) == name)
}

/// Whether control may leave `node` other than at its end.
pub(super) fn jumps(source: &Source<'_>, node: Node<'_>) -> bool {
    [
        "break_statement",
        "goto_statement",
        "return_statement",
        "continue_statement",
        "labeled_statement",
    ]
    .iter()
    .any(|kind| !source.all(node, kind).is_empty())
}

/// Whether everything called below `node` is without side effects.
pub(super) fn calls_pure(source: &Source<'_>, node: Node<'_>) -> bool {
    source.all(node, "call_expression").into_iter().all(|call| {
        call.child_by_field_name("function")
            .is_some_and(|name| PURE.contains(&source.text_of(name)))
    })
}

/// The statements of a body, whether in braces or not, without comments.
pub(super) fn statements(body: Node<'_>) -> Vec<Node<'_>> {
    if body.kind() != "compound_statement" {
        return vec![body];
    }
    let mut cursor = body.walk();
    body.named_children(&mut cursor)
        .filter(|node| node.kind() != "comment")
        .collect()
}

/// The first value of a counter that is declared in the head of its loop.
pub(super) fn first_value<'a>(source: &Source<'a>, node: Node<'_>) -> Option<&'a str> {
    let initializer = node
        .child_by_field_name("initializer")
        .filter(|initializer| initializer.kind() == "declaration")?;
    let declarators = source.all(initializer, "init_declarator");
    let [declarator] = declarators.as_slice() else {
        return None;
    };
    let value = declarator.child_by_field_name("value")?;
    let name = source.text_of(declarator.child_by_field_name("declarator")?);
    (counter(source, node)? == name && is_plain(source, value)).then(|| source.text_of(value))
}

/// The limit of a counter that stays below it.
pub(super) fn limit<'t>(source: &Source<'_>, node: Node<'t>) -> Option<Node<'t>> {
    let condition = node.child_by_field_name("condition")?;
    let right = condition.child_by_field_name("right")?;
    (source.text_of(condition.child_by_field_name("operator")?) == "<" && is_plain(source, right))
        .then_some(right)
}

/// The text of an expression as an operand of any operator.
pub(super) fn operand(source: &Source<'_>, node: Node<'_>) -> String {
    match node.kind() {
        "identifier" | "number_literal" | "parenthesized_expression" => source.text_of(node).to_owned(),
        _ => format!("({})", source.text_of(node)),
    }
}

/// Whether an expression changes nothing, calls nothing and reads no memory.
pub(super) fn is_plain(source: &Source<'_>, node: Node<'_>) -> bool {
    [
        "assignment_expression",
        "update_expression",
        "call_expression",
        "subscript_expression",
        "pointer_expression",
    ]
    .iter()
    .all(|kind| source.all(node, kind).is_empty())
}

/// Whether an index is the loop variable plus terms that do not change in the loop.
pub(super) fn moves_with(index: &str, variable: &str, changing: &BTreeSet<String>) -> bool {
    let mut seen = 0;
    for term in index.split('+').map(str::trim) {
        if term == variable {
            seen += 1;
        } else if words(term).any(|word| word == variable || changing.contains(word))
            || term.contains(['[', '(', '-'])
        {
            return false;
        }
    }
    seen == 1
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

/// The operator of a reduction into a scalar that the loop uses for nothing else.
fn reduction(source: &Source<'_>, body: Node<'_>, assignment: Node<'_>) -> Option<&'static str> {
    let left = assignment.child_by_field_name("left")?;
    let name = source.text_of(left);
    let right = assignment.child_by_field_name("right")?;
    let uses = source
        .all(body, "identifier")
        .into_iter()
        .filter(|word| source.text_of(*word) == name)
        .count();
    let operator = source.text_of(assignment.child_by_field_name("operator")?);
    if operator != "=" {
        let class = class(operator)?;
        // Several additions into one sum are one reduction; any other use of it is not.
        let alike = source
            .all(body, "assignment_expression")
            .into_iter()
            .filter(|other| {
                other
                    .child_by_field_name("left")
                    .is_some_and(|left| source.text_of(left) == name)
            })
            .map(|other| {
                other
                    .child_by_field_name("operator")
                    .and_then(|operator| self::class(source.text_of(operator)))
            });
        let classes: Vec<_> = alike.collect();
        return (classes.len() == uses && classes.iter().all(|other| *other == Some(class))).then_some(class);
    }
    // `if (e > m) m = e;`
    let statement = assignment
        .parent()
        .filter(|parent| parent.kind() == "expression_statement")?;
    let choice = statement.parent().and_then(|parent| match parent.kind() {
        "if_statement" => Some(parent),
        "compound_statement" if parent.named_child_count() == 1 => {
            parent.parent().filter(|outer| outer.kind() == "if_statement")
        }
        _ => None,
    })?;
    if uses != 2 || choice.child_by_field_name("alternative").is_some() {
        return None;
    }
    let condition = choice.child_by_field_name("condition")?.named_child(0)?;
    let (a, b) = (
        condition.child_by_field_name("left")?,
        condition.child_by_field_name("right")?,
    );
    let comparison = source.text_of(condition.child_by_field_name("operator")?);
    let value = source.text_of(right);
    let (a, b) = (source.text_of(a), source.text_of(b));
    match comparison {
        ">" | ">=" if a == value && b == name => Some("max"),
        "<" | "<=" if a == name && b == value => Some("max"),
        "<" | "<=" if a == value && b == name => Some("min"),
        ">" | ">=" if a == name && b == value => Some("min"),
        _ => None,
    }
}

/// The reduction that a compound assignment belongs to.
fn class(operator: &str) -> Option<&'static str> {
    match operator {
        "+=" | "-=" => Some("+"),
        "*=" => Some("*"),
        "|=" => Some("|"),
        "&=" => Some("&"),
        "^=" => Some("^"),
        _ => None,
    }
}

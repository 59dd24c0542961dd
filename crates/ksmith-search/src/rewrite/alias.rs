//! Which names may stand for the same memory.
//!
//! The entry's parameters do not overlap by contract. A local pointer stands for whatever its initialiser and later
//! assignments mention, and the parameters of another function for anything that is passed to it, so they overlap each
//! other unless they are declared `restrict`.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use super::source::Source;

/// Stands for all memory that a function other than the entry was given.
const GIVEN: &str = "";

/// What each pointer of one function may stand for.
#[derive(Debug)]
pub(super) struct Aliases<'a> {
    stands_for: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// Parameters and locals that are no pointers.
    numbers: BTreeSet<&'a str>,
    /// Whether the function is the entry, whose parameters are those of the contract.
    pub(super) is_entry: bool,
}

impl<'a> Aliases<'a> {
    /// Those of the function around `node`; `None` outside functions.
    pub(super) fn around(source: &Source<'a>, node: Node<'_>, entry: &str) -> Option<Self> {
        let mut function = node;
        while function.kind() != "function_definition" {
            function = function.parent()?;
        }
        let declarators = source.all(function.child_by_field_name("declarator")?, "function_declarator");
        let [declarator] = declarators.as_slice() else {
            return None;
        };
        let name = declarator.child_by_field_name("declarator")?;
        let pointers = pointers(source, function)?;
        let mut aliases = Self {
            stands_for: BTreeMap::new(),
            numbers: numbers(source, function, &pointers),
            is_entry: source.text_of(name) == entry,
        };
        if !aliases.is_entry {
            for pointer in source.all(*declarator, "pointer_declarator") {
                if source.text_of(pointer).contains("restrict") {
                    continue;
                }
                let named = source.all(pointer, "identifier").into_iter().next_back()?;
                aliases.add(source.text_of(named), [GIVEN]);
            }
        }
        let body = function.child_by_field_name("body")?;
        for (kind, to, from) in [
            ("init_declarator", "declarator", "value"),
            ("assignment_expression", "left", "right"),
        ] {
            for change in source.all(body, kind) {
                let (to, from) = (change.child_by_field_name(to)?, change.child_by_field_name(from)?);
                let named = source.all(to, "identifier").into_iter().next();
                let Some(named) = named.map(|name| source.text_of(name)) else {
                    continue;
                };
                if pointers.contains(named) && to.kind() != "subscript_expression" {
                    let mentioned: Vec<&str> = source
                        .all(from, "identifier")
                        .into_iter()
                        .map(|word| source.text_of(word))
                        .filter(|word| !aliases.numbers.contains(word))
                        .collect();
                    aliases.add(named, mentioned);
                }
            }
        }
        Some(aliases)
    }

    fn add(&mut self, name: &'a str, stands_for: impl IntoIterator<Item = &'a str>) {
        self.stands_for.entry(name).or_default().extend(stands_for);
    }

    /// Everything that a name may stand for, itself included.
    fn reach(&self, name: &'a str) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::from([name]);
        let mut open = vec![name];
        while let Some(next) = open.pop() {
            for further in self.stands_for.get(next).into_iter().flatten().copied() {
                if found.insert(further) {
                    open.push(further);
                }
            }
        }
        found
    }

    /// Whether a name is a parameter or local that is no pointer.
    pub(super) fn is_number(&self, name: &str) -> bool {
        self.numbers.contains(name)
    }

    /// Whether two different names may stand for the same memory.
    pub(super) fn may_overlap(&self, one: &'a str, other: &'a str) -> bool {
        !self.reach(one).is_disjoint(&self.reach(other))
    }
}

/// Names that are declared as pointers, or used as such; `None` where pointers lie in memory themselves.
fn pointers<'a>(source: &Source<'a>, function: Node<'_>) -> Option<BTreeSet<&'a str>> {
    let mut found = BTreeSet::new();
    for pointer in source.all(function, "pointer_declarator") {
        let inner = pointer.child_by_field_name("declarator")?;
        let outer = pointer.parent()?.kind();
        if inner.kind() != "identifier" && inner.kind() != "function_declarator"
            || outer == "array_declarator"
        {
            return None;
        }
        found.insert(source.text_of(source.all(inner, "identifier").into_iter().next()?));
    }
    for kind in ["subscript_expression", "pointer_expression"] {
        for used in source.all(function, kind) {
            let argument = used.child_by_field_name("argument")?;
            if argument.kind() == "identifier" {
                found.insert(source.text_of(argument));
            }
        }
    }
    Some(found)
}

/// Parameters and locals that are no pointers.
fn numbers<'a>(source: &Source<'a>, function: Node<'_>, pointers: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
    let declared = ["parameter_declaration", "declaration", "init_declarator"]
        .into_iter()
        .flat_map(|kind| source.all(function, kind))
        .filter_map(|node| node.child_by_field_name("declarator"))
        .filter(|declarator| declarator.kind() == "identifier")
        .map(|name| source.text_of(name));
    declared.filter(|name| !pointers.contains(name)).collect()
}

/// The name of the array that a subscript reads or writes: `m` of `m[i][j]`.
pub(super) fn base<'a>(source: &Source<'a>, subscript: Node<'_>) -> Option<&'a str> {
    let argument = subscript.child_by_field_name("argument")?;
    match argument.kind() {
        "identifier" => Some(source.text_of(argument)),
        "subscript_expression" => base(source, argument),
        _ => None,
    }
}

/// Whether nothing in `node` but `written` itself may stand for its memory; `None` counts as no.
pub(super) fn is_alone<'a>(
    source: &Source<'a>,
    node: Node<'_>,
    written: &'a str,
    aliases: &Aliases<'a>,
) -> bool {
    source
        .all(node, "subscript_expression")
        .into_iter()
        .all(|access| {
            base(source, access).is_some_and(|name| name == written || !aliases.may_overlap(name, written))
        })
}

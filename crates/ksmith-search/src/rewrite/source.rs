//! A C source with its syntax tree; the only file that knows the parser.

use tree_sitter::{Node, Parser, Tree};

use super::edit::Edits;

#[derive(Debug)]
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    tree: Tree,
}

impl<'a> Source<'a> {
    /// Parses C; `None` where the text is not plain C (also C++ that the grammar does not know).
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let mut parser = Parser::new();
        parser.set_language(&tree_sitter_c::LANGUAGE.into()).ok()?;
        let tree = parser.parse(text, None)?;
        (!tree.root_node().has_error()).then_some(Self { text, tree })
    }

    pub(super) fn root(&self) -> Node<'_> {
        self.tree.root_node()
    }

    pub(super) fn text_of(&self, node: Node<'_>) -> &'a str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// All nodes of a kind below `node`, itself included, in source order.
    pub(super) fn all<'t>(&self, node: Node<'t>, kind: &str) -> Vec<Node<'t>> {
        let mut found = Vec::new();
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            if node.kind() == kind {
                found.push(node);
            }
            let mut cursor = node.walk();
            let children: Vec<_> = node.named_children(&mut cursor).collect();
            open.extend(children.into_iter().rev());
        }
        found
    }

    /// `for` loops without a loop inside.
    pub(super) fn innermost_loops(&self) -> Vec<Node<'_>> {
        self.all(self.root(), "for_statement")
            .into_iter()
            .filter(|node| {
                node.child_by_field_name("body").is_some_and(|body| {
                    ["for_statement", "while_statement", "do_statement"]
                        .iter()
                        .all(|kind| self.all(body, kind).is_empty())
                })
            })
            .collect()
    }

    /// Declares every pointer parameter of the entry function as not overlapping.
    pub(super) fn restrict_parameters(&self, entry: &str, edits: &mut Edits) {
        for function in self.all(self.root(), "function_declarator") {
            let named = function
                .child_by_field_name("declarator")
                .map(|name| self.text_of(name));
            if named != Some(entry) {
                continue;
            }
            for pointer in self.all(function, "pointer_declarator") {
                if self.text_of(pointer).contains("restrict") {
                    continue;
                }
                if let Some(name) = pointer
                    .child_by_field_name("declarator")
                    .filter(|name| name.kind() == "identifier")
                {
                    edits.insert(name.start_byte(), "restrict ");
                }
            }
        }
    }
}

//! Text to document, with the family's defaults merged in.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{At, TaskDocument, translate};
use crate::ContractError;
use crate::family::{FAMILIES, Family};
use crate::nearest::nearest;

/// What a family file says beside the defaults.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FamilyDocument {
    /// Defaults of inputs by kind of dtype.
    pub(crate) input: FamilyInputs,
}

/// Defaults of inputs by kind of dtype.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FamilyInputs {
    pub(crate) float: FamilyFill,
    pub(crate) int: FamilyFill,
}

/// Default fills.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FamilyFill {
    pub(crate) fill: String,
    #[serde(default)]
    pub(crate) hidden: Vec<String>,
}

/// A parsed task with what is needed to point into its sources.
pub(crate) struct ParsedTask {
    pub(crate) document: TaskDocument,
    pub(crate) family: FamilyDocument,
}

/// Parses `text` and merges the defaults of its family. Places at or beyond `text.len()` lie in the family's file.
pub(crate) fn parse_task(path: &Path, text: &str) -> Result<ParsedTask, ContractError> {
    let mut tree = DeTable::parse(text).map_err(|error| translate(path, text, &error, 0))?;
    let (name, span) = family_name(path, text, &tree)?;
    let Some(Family {
        defaults: family_text,
        ..
    }) = Family::find(&name)
    else {
        let known = FAMILIES.map(|family| family.name);
        let near = nearest(&name, known);
        return Err(
            ContractError::new(path, text, Some(span), format!("there is no family `{name}`"))
                .expected("expected a family")
                .help(match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!(
                        "the families are {}",
                        known.map(|name| format!("`{name}`")).join(", ")
                    ),
                }),
        );
    };
    // Blanks before the family's text shift its places behind those of the task.
    let padded = format!("{}{family_text}", " ".repeat(text.len()));
    let internal = |error: toml::de::Error| {
        translate(
            Path::new(&format!("{name}.toml")),
            family_text,
            &error,
            text.len(),
        )
    };
    let mut defaults = DeTable::parse(&padded).map_err(internal)?;
    let mut family = DeTable::new();
    // The summary is for people (`FamilyInfo::summary`), the inputs are no part of a task; the rest are defaults.
    defaults.get_mut().remove("summary");
    if let Some((key, value)) = defaults.get_mut().remove_entry("input") {
        family.insert(key, value);
    }
    let family = FamilyDocument::deserialize(toml::de::Deserializer::from(Spanned::new(0..0, family)))
        .map_err(internal)?;
    merge(tree.get_mut(), defaults.into_inner());
    let document = TaskDocument::deserialize(toml::de::Deserializer::from(tree)).map_err(|error| {
        if error.span().is_some_and(|span| span.start > text.len()) {
            internal(error)
        } else {
            translate(path, text, &error, 0)
        }
    })?;
    Ok(ParsedTask { document, family })
}

fn family_name(
    path: &Path,
    text: &str,
    tree: &Spanned<DeTable<'_>>,
) -> Result<(String, std::ops::Range<usize>), ContractError> {
    match tree.get_ref().get("family") {
        None => Ok(("custom".to_owned(), 0..0)),
        Some(value) => match value.get_ref() {
            DeValue::String(name) => Ok((name.to_string(), value.span())),
            other => Err(ContractError::new(
                path,
                text,
                Some(value.span()),
                format!("expected the name of a family, found {}", other.type_str()),
            )),
        },
    }
}

/// Adds what `defaults` has and `tree` lacks; what the task says always wins.
fn merge<'a>(tree: &mut DeTable<'a>, defaults: DeTable<'a>) {
    for (key, value) in defaults {
        match tree.get_mut(key.get_ref().as_ref()) {
            None => {
                tree.insert(key, value);
            }
            Some(existing) => {
                if let (DeValue::Table(existing), DeValue::Table(value)) =
                    (existing.get_mut(), value.into_inner())
                {
                    merge(existing, value);
                }
            }
        }
    }
}

/// The family a document names; `custom` where it names none.
impl TaskDocument {
    pub(crate) fn family_name(&self) -> &str {
        self.family
            .as_ref()
            .map_or("custom", |family: &At<String>| family.value.as_str())
    }
}

//! JSON Schemas of `task.toml` and `candidate.toml`, derived from the very types that parse them.

use schemars::generate::SchemaSettings;

use crate::candidate::CandidateDocument;
use crate::document::TaskDocument;

/// The JSON Schema of `task.toml`, pretty-printed.
pub fn task_schema() -> String {
    print::<TaskDocument>()
}

/// The JSON Schema of `candidate.toml`, pretty-printed.
pub fn candidate_schema() -> String {
    print::<CandidateDocument>()
}

fn print<T: schemars::JsonSchema>() -> String {
    let schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<T>();
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

//! The committed JSON Schemas are those of the parser. `UPDATE_SCHEMAS=1 cargo test -p ksmith-task` rewrites them.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails like the test itself")]

use std::fs;
use std::path::Path;

fn committed(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../schemas")
        .join(name);
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        fs::write(&path, text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "`schemas/{name}` is stale: run `UPDATE_SCHEMAS=1 cargo test -p ksmith-task`"
    );
}

#[test]
fn the_committed_task_schema_is_that_of_the_parser() {
    committed("task.schema.json", &ksmith_task::task_schema());
}

#[test]
fn the_committed_candidate_schema_is_that_of_the_parser() {
    committed("candidate.schema.json", &ksmith_task::candidate_schema());
}

#[test]
fn schemas_refuse_unknown_keys_as_the_parser_does() {
    for text in [ksmith_task::task_schema(), ksmith_task::candidate_schema()] {
        let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(schema["additionalProperties"], serde_json::Value::Bool(false));
        for (name, definition) in schema["$defs"].as_object().unwrap() {
            if definition.get("properties").is_some() {
                assert_eq!(
                    definition["additionalProperties"],
                    serde_json::Value::Bool(false),
                    "{name}"
                );
            }
        }
    }
}

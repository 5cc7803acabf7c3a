//! The JSON Schema (2020-12) of a scenario file, for an editor.

/// The schema.
pub fn schema() -> serde_json::Value {
    serde_json::json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object" })
}

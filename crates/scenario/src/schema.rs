//! Makes the JSON Schema (2020-12) of scenario files, which editors use. It is made of the key tables.
//!
//! The schema has the rules for single keys. Rules for several keys together are checked by
//! [`load`](crate::load) alone.

use serde_json::{Map, Value, json};

use crate::diagnostic::Place;
use crate::keys::ROOT;
use crate::preset::presets;
use crate::quantity::DimensionRange;
use crate::spec::{Default, Key, Kind, LONGEST_PATH, TAG, TableSpec, Tagged, Variant};
use crate::tree::parse_value;

/// Returns the schema.
pub fn schema() -> Value {
    let mut schema = table(&ROOT, false);
    if let Some(object) = schema.as_object_mut() {
        object.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
        object.insert("title".into(), "talkpath scenario".into());
        let either = ["flow", "program"].map(|key| json!({ "required": [key] }));
        object.insert("anyOf".into(), json!(either));
    }
    schema
}

/// Describes a table. With `steps` its quantities may be `{ from, step }`.
fn table(spec: &TableSpec, steps: bool) -> Value {
    object(spec.keys, None, steps)
}

fn object(keys: &[Key], tag: Option<&Variant>, steps: bool) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    if let Some(variant) = tag {
        properties.insert(TAG.into(), json!({ "const": variant.name, "description": variant.doc }));
        required.push(TAG);
    }
    for key in keys {
        properties.insert(key.name.into(), property(key, steps));
        if matches!(key.default, Default::Required) {
            required.push(key.name);
        }
    }
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn property(key: &Key, steps: bool) -> Value {
    let mut property = value(&key.kind, steps);
    let Some(object) = property.as_object_mut() else { return property };
    let description = match key.default {
        Default::Required => key.doc.to_owned(),
        Default::Is(text) => {
            if let Some(node) = parse_value(text, &Place::START) {
                object.insert("default".into(), node.to_json());
            }
            key.doc.to_owned()
        }
        Default::Follows(what) => format!("{}. Default: follows {what}", key.doc),
        Default::Absent(what) => format!("{}. Without it: {what}", key.doc),
    };
    object.insert("description".into(), description.into());
    property
}

fn value(kind: &Kind, steps: bool) -> Value {
    match kind {
        Kind::Text { longest } => text(*longest),
        Kind::File(_) => text(LONGEST_PATH),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Count { least, most } => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Kind::Seed => json!({ "anyOf": [
            { "type": "integer", "minimum": 0, "maximum": i64::MAX },
            { "type": "string", "pattern": "^[0-9]{1,20}$" },
        ] }),
        Kind::Probability => share(&json!({ "type": "number", "minimum": 0, "maximum": 1 })),
        Kind::Number { above, most } => {
            let number = json!({ "type": "number", "exclusiveMinimum": above, "maximum": most });
            if kind.is_share() { share(&number) } else { number }
        }
        Kind::Quantity { ranges, words } | Kind::LinkRate { ranges, words } => {
            let mut forms = vec![quantity(ranges)];
            if !words.is_empty() {
                forms.push(json!({ "enum": words }));
            }
            if matches!(kind, Kind::LinkRate { .. }) {
                forms.push(pair(&[("trace", json!({ "type": "string", "minLength": 1 }))]));
            }
            any_of(forms, steps, ranges)
        }
        Kind::Choice(words) => json!({ "enum": words.known }),
        Kind::FlagOrDefault => json!({ "enum": [true, false, "default"] }),
        Kind::DelayedAck(ranges) => json!({ "anyOf": [
            { "enum": [true, false, "linux"] },
            quantity(ranges),
            pair(&[("tick", quantity(ranges))]),
        ] }),
        Kind::Start(ranges) => {
            let range = pair(&[("from", quantity(ranges)), ("to", quantity(ranges))]);
            any_of(vec![quantity(ranges), range], steps, ranges)
        }
        Kind::Names(_) => json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 }),
        Kind::Table(spec) => table(spec, steps),
        Kind::Tagged(tagged) => self::tagged(tagged, steps),
        Kind::Map(spec) => {
            json!({ "type": "object", "additionalProperties": table(spec, true), "minProperties": 1 })
        }
        Kind::List(spec) => json!({ "type": "array", "items": table(spec, false) }),
        Kind::Path(spec) => {
            let names: Vec<_> = presets().iter().map(|preset| preset.name).collect();
            // The name of a file has a point or a slash.
            let file = json!({ "type": "string", "pattern": "[./]" });
            json!({ "anyOf": [{ "enum": names }, file, table(spec, false)] })
        }
        Kind::Thresholds => {
            let bound =
                json!({ "type": "string", "pattern": "^ *(>=|<=|==|!=|>|<)", "examples": [">= 3.6"] });
            let bounds = json!({ "type": "array", "items": bound, "minItems": 1 });
            json!({ "type": "object", "additionalProperties": { "anyOf": [bound, bounds] } })
        }
        Kind::Sweep => json!({
            "type": "object",
            "additionalProperties": { "anyOf": [{ "type": "array", "minItems": 1 }, { "type": "object" }] },
        }),
    }
}

fn tagged(tagged: &Tagged, steps: bool) -> Value {
    let needs_no_key =
        |variant: &&Variant| !variant.keys.iter().any(|key| matches!(key.default, Default::Required));
    let words: Vec<_> = tagged.variants.iter().filter(needs_no_key).map(|variant| variant.name).collect();
    let mut forms = Vec::new();
    if !words.is_empty() {
        forms.push(json!({ "enum": words }));
    }
    if let Some(key) = tagged.number.and_then(|number| tagged.variant(number.variant)?.key(number.key)) {
        forms.push(value(&key.kind, steps));
    }
    forms.extend(tagged.variants.iter().map(|variant| object(variant.keys, Some(variant), steps)));
    let implied = tagged.by_key.and_then(|implied| tagged.variant(implied.variant));
    forms.extend(implied.map(|variant| object(variant.keys, None, steps)));
    json!({ "anyOf": forms })
}

/// Describes a value that has one of `forms`.
fn any_of(mut forms: Vec<Value>, steps: bool, ranges: &[DimensionRange]) -> Value {
    if steps {
        forms.push(pair(&[("from", quantity(ranges)), ("step", quantity(ranges))]));
    }
    match forms.as_slice() {
        [form] => form.clone(),
        _ => json!({ "anyOf": forms }),
    }
}

/// Describes a text of at most `longest` characters.
fn text(longest: usize) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": longest })
}

/// Describes `number`, or the same in per cent.
fn share(number: &Value) -> Value {
    let percent = json!({ "type": "string", "pattern": "^ *[0-9]*\\.?[0-9]+ *% *$", "examples": ["1%"] });
    json!({ "anyOf": [number, percent] })
}

/// Describes a table with exactly these keys.
fn pair(properties: &[(&str, Value)]) -> Value {
    let required: Vec<_> = properties.iter().map(|(name, _)| *name).collect();
    let properties: Map<_, _> =
        properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn quantity(ranges: &[DimensionRange]) -> Value {
    let units = ranges.iter().flat_map(|range| range.dimension.units()).map(|(name, _)| *name);
    let units = units.collect::<Vec<_>>().join("|");
    let examples: Vec<_> = ranges.iter().map(|range| range.dimension.example()).collect();
    let pattern = format!("^ *\\+?([0-9]+\\.?[0-9]*|\\.[0-9]+) *({units}) *$");
    json!({ "type": "string", "pattern": pattern, "examples": examples })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_tables_is_in_the_schema() {
        let schema = schema();
        for key in ROOT.keys {
            assert!(schema["properties"][key.name]["description"].is_string(), "{}", key.name);
        }
        assert_eq!(schema["required"], json!(["duration"]));
        assert_eq!(schema["anyOf"], json!([{ "required": ["flow"] }, { "required": ["program"] }]));
        let flow = &schema["properties"]["flow"]["additionalProperties"];
        assert_eq!(flow["additionalProperties"], false);
        let transports = &flow["properties"]["transport"]["anyOf"];
        assert_eq!(
            transports[0]["enum"],
            json!([
                "udp",
                "tcp",
                "tcp-nodelay",
                "dccp-ccid2",
                "dccp-ccid3",
                "dccp-ccid4",
                "quic",
                "quic-datagram",
                "quic-stream",
                "quic-stream-per-message"
            ])
        );
        assert_eq!(transports[2]["properties"]["kind"]["const"], "tcp");
        assert_eq!(schema["properties"]["drain"]["default"], "5 s");
    }

    #[test]
    fn a_link_in_a_path_does_not_step_and_one_in_a_table_does() {
        let schema = schema();
        let forms = |link: &Value| link["properties"]["delay"]["anyOf"].as_array().map_or(1, Vec::len);
        assert_eq!(forms(&schema["properties"]["link"]["additionalProperties"]), 2);
        assert_eq!(forms(&schema["properties"]["path"]["anyOf"][1]["properties"]["up"]), 1);
    }
}

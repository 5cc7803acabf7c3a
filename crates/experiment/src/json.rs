//! The JSON form of this program's files: indented, with a line feed at the end.

use serde::Serialize;

/// Returns the bytes of a JSON file that holds `value`.
pub fn json(value: &impl Serialize) -> Vec<u8> {
    // Writing to memory fails only for a map whose keys are not strings, and no type of ours has one.
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

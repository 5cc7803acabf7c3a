//! JSON as this program's files have it.

use serde::Serialize;

/// `value` as a file's bytes.
pub fn json(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

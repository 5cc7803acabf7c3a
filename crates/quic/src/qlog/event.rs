//! An event of a qlog, and its line in the file.

use std::io::{self, Write};

use serde_json::{Value, json};
use talkpath_units::Instant;

/// An event of a connection at one of its ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QlogEvent {
    /// When it was.
    pub at: Instant,
    pub(super) name: &'static str,
    /// Its data, as JSON.
    pub(super) data: String,
}

impl QlogEvent {
    pub(super) fn new(at: Instant, name: &'static str, data: &Value) -> Self {
        Self { at, name, data: data.to_string() }
    }

    /// Writes it as a record of the connection whose first destination ID was `group`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, group: &str, out: &mut dyn Write) -> io::Result<()> {
        let time = json!(self.at.as_nanos() as f64 / 1e6);
        let (name, data) = (self.name, &self.data);
        writeln!(
            out,
            "\u{1e}{{\"time\":{time},\"name\":\"{name}\",\"group_id\":\"{group}\",\"data\":{data}}}"
        )
    }
}

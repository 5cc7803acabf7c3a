//! The journal: one line of JSON for each thing that became of a measurement.
//!
//! A line counts once its line feed is there. What a process that was killed left of its last line is cut off
//! by the next one. Lines are only added.

use serde::{Deserialize, Serialize};

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When, in ms since the Unix epoch.
    pub at_ms: u64,
    /// Which measurement.
    pub id: String,
    /// What became of it.
    #[serde(flatten)]
    pub event: Event,
}

/// What became of a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// It began. Without a later line the coordinator ended before it did.
    Begun,
    /// Its records are there.
    Done,
    /// It came to nothing, and is tried again within its window.
    Failed {
        /// In words for a person.
        why: String,
        /// The host at which it failed; `None` if that is not known.
        host: Option<String>,
    },
    /// It is not tried any more.
    Abandoned {
        /// In words for a person.
        why: String,
    },
}

/// What a journal's file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    /// Every whole line.
    pub entries: Vec<Entry>,
    /// Bytes of the file up to the end of the last whole line; what is beyond is to be cut off.
    pub whole: u64,
}

/// A whole line that is none of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalError {
    /// From 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl Journal {
    /// Reads a journal's file. What follows the last line feed is no line yet.
    ///
    /// # Errors
    /// A whole line that is no entry: no process that was killed leaves that.
    pub fn parse(bytes: &[u8]) -> Result<Self, JournalError> {
        let mut journal = Self::default();
        for (at, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            if !line.ends_with(b"\n") {
                break;
            }
            let entry = serde_json::from_slice(line);
            journal.entries.push(entry.map_err(|why| JournalError { line: at + 1, why: why.to_string() })?);
            journal.whole += line.len() as u64;
        }
        Ok(journal)
    }
}

impl Entry {
    /// Its line, with the line feed.
    pub fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

//! The journal of a campaign. It has one line of JSON for each event of a measurement.
//!
//! A line counts only with its line feed. If a process was killed while it wrote a line, the next process
//! cuts off the unfinished line. Whole lines are never changed or removed.

use serde::{Deserialize, Serialize};

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When the event happened, in ms since the Unix epoch.
    pub at_ms: u64,
    /// The name of the measurement.
    pub id: String,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

/// An event of a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The measurement has begun. If no later line is about it, it still runs, or the coordinator has ended
    /// before it.
    Begun,
    /// The measurement has ended, and its records are written.
    Done,
    /// The measurement has failed. It is tried again within its window.
    Failed {
        /// The reason, in words for a person.
        why: String,
        /// The host at which the measurement failed; `None` if the host is not known.
        host: Option<String>,
    },
    /// The measurement is not tried any more.
    Abandoned {
        /// The reason, in words for a person.
        why: String,
    },
}

/// The content of a journal's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    /// Every whole line.
    pub entries: Vec<Entry>,
    /// The size of the whole lines, bytes. The caller has to cut off the bytes behind them.
    pub whole: u64,
}

/// The error for a whole line that is not a line of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalError {
    /// The number of the line, from 1.
    pub line: usize,
    /// What is wrong with the line.
    pub why: String,
}

impl Journal {
    /// Parses a journal's file. The bytes after the last line feed are ignored.
    ///
    /// # Errors
    /// Returns [`JournalError`] for a whole line that is not an entry. A process that was killed does not
    /// leave such a line, so the file was changed by something else.
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
    /// Returns the entry as a line, with the line feed.
    pub fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

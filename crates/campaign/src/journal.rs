//! The journal of a campaign. It has one line of JSON for each event of a measurement.
//!
//! The file is one of those of `talkpath_experiment::store::lines`. Whole lines are never changed or removed.

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

impl Entry {
    /// Reads an entry from its line.
    ///
    /// # Errors
    /// Returns what is wrong with a line that is not an entry. A process that was killed does not leave such
    /// a whole line, so something else changed the file, or a newer version wrote it.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(line).map_err(|why| why.to_string())
    }

    /// Returns the entry as a line, with the line feed.
    pub fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

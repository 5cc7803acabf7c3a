//! The copies of records in a store: in which folder each measurement is copied, and the notes on what was
//! copied.
//!
//! The folders have names as Hive names partitions, so a reader of Parquet reads `day`, `pair` and
//! `measurement` as columns:
//!
//! ```text
//! day=2026-12-01/pair=berlin-to-lima/measurement=d01.t0000.berlin.lima.call/packets.parquet
//! ```

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::plan::Measurement;

/// One line of the notes: an attempt to copy a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// The time of the attempt, in ms since the Unix epoch.
    pub at_ms: u64,
    /// The id of the measurement.
    pub id: String,
    /// The command that copies to the store, quoted as for a shell.
    pub store: String,
    /// The reason why the attempt failed, in words for a person. It is `None` if every file was copied whole.
    pub why: Option<String>,
}

/// What was copied to one store, by the notes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uploads {
    /// The ids of the measurements that were copied.
    pub there: BTreeSet<String>,
    /// The number of failed attempts of each measurement that was not copied, by its id.
    pub failures: BTreeMap<String, u32>,
    /// The reason of the last failure of a measurement that is still not copied. It is `None` if there is no
    /// such measurement.
    pub failing: Option<String>,
}

/// A measurement whose last attempt failed.
struct OpenFailure {
    id: String,
    why: String,
}

impl Uploads {
    /// Reads the notes on `store`. A line that cannot be parsed is ignored, for example a line that was cut
    /// off when a process was killed. Its measurement is then copied again.
    pub fn parse(bytes: &[u8], store: &str) -> Self {
        let mut uploads = Self::default();
        // The last failure is the last entry.
        let mut open_failures: Vec<OpenFailure> = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            let Ok(Upload { id, store: line_store, why, .. }) = serde_json::from_slice(line) else {
                continue;
            };
            if line_store != store {
                continue;
            }
            open_failures.retain(|failure| failure.id != id);
            if let Some(why) = why {
                *uploads.failures.entry(id.clone()).or_default() += 1;
                open_failures.push(OpenFailure { id, why });
            } else {
                uploads.failures.remove(&id);
                uploads.there.insert(id);
            }
        }
        uploads.failing = open_failures.pop().map(|failure| failure.why);
        uploads
    }
}

impl Upload {
    /// Returns the attempt as a line of the notes, with the line feed.
    pub fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// Returns the folder of a measurement in a store, below the folder of the campaign. The day is a local day
/// in the time zone of the campaign.
pub fn partition(measurement: &Measurement) -> String {
    let Measurement { id, near, far, local, .. } = measurement;
    let day = local.split([' ', 'T']).next().unwrap_or_default();
    format!("day={day}/pair={near}-to-{far}/measurement={id}")
}

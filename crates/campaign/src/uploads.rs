//! Records that are copied to a store: where each lies there, and the notes of what was copied.
//!
//! The folders are partitions as Hive names them, so that a reader of Parquet takes `day`, `pair` and
//! `measurement` as columns:
//!
//! ```text
//! day=2026-12-01/pair=berlin-to-lima/measurement=d01.t0000.berlin.lima.call/packets.parquet
//! ```

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::plan::Measurement;

/// One line of the notes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// When, in ms since the Unix epoch.
    pub at_ms: u64,
    /// Which measurement.
    pub id: String,
    /// Which store: the command that copies there, as for a shell.
    pub store: String,
    /// `None` if every file of it is there, whole; else why not, in words for a person.
    pub why: Option<String>,
}

/// What the notes say of one store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uploads {
    /// The measurements that are there.
    pub there: BTreeSet<String>,
    /// How often each of the others could not be copied.
    pub failures: BTreeMap<String, u32>,
    /// Why the last attempt failed at what is still not there; `None` if nothing is known to be missing.
    pub failing: Option<String>,
}

impl Uploads {
    /// Reads the notes on `store`. A line that is none, such as one that was cut off, is passed over: the
    /// measurement that it would have named is copied again.
    pub fn parse(bytes: &[u8], store: &str) -> Self {
        let mut uploads = Self::default();
        // By measurement, the last failure last.
        let mut failed: Vec<(String, String)> = Vec::new();
        let lines = bytes.split(|byte| *byte == b'\n');
        for line in lines.filter_map(|line| serde_json::from_slice::<Upload>(line).ok()) {
            if line.store != store {
                continue;
            }
            failed.retain(|(id, _)| *id != line.id);
            match line.why {
                None => {
                    uploads.failures.remove(&line.id);
                    uploads.there.insert(line.id);
                }
                Some(why) => {
                    *uploads.failures.entry(line.id.clone()).or_default() += 1;
                    failed.push((line.id, why));
                }
            }
        }
        uploads.failing = failed.pop().map(|(_, why)| why);
        uploads
    }
}

impl Upload {
    /// Its line, with the line feed.
    pub fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// The folder of a measurement in a store, below the campaign's. The day is that of the clocks of the
/// campaign's zone.
pub fn partition(measurement: &Measurement) -> String {
    let Measurement { id, near, far, local, .. } = measurement;
    let day = local.split([' ', 'T']).next().unwrap_or_default();
    format!("day={day}/pair={near}-to-{far}/measurement={id}")
}

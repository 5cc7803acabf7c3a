//! Finished repetitions are kept as they come, until something cannot be written.

use std::sync::{Mutex, MutexGuard, PoisonError};

use talkpath_measure::RunRecord;

use crate::Error;
use crate::choice::Records;
use crate::journal::{Journal, Packed};
use crate::part::{Kept, Part};
use crate::run_dir::RunDir;

/// Where the workers of a process keep what they have measured.
pub(crate) struct Keeping<'w> {
    dir: &'w RunDir,
    records: Records,
    journal: Mutex<Journal>,
    /// What could not be written first: after it nothing is tried.
    unwritten: Mutex<Option<Error>>,
}

impl<'w> Keeping<'w> {
    /// In `dir`, with what `records` says of the rows.
    pub(crate) fn new(dir: &'w RunDir, records: Records) -> Self {
        Self { dir, records, journal: Mutex::default(), unwritten: Mutex::new(None) }
    }

    /// Keeps `part`, of `record`, unless something could not be written before.
    pub(crate) fn save(
        &self,
        part: &mut Part,
        record: &RunRecord,
        kept: &Kept,
        is_cut_short: bool,
    ) -> Result<(), Error> {
        if locked(&self.unwritten).is_some() {
            return Ok(());
        }
        let packed = match kept.capture.is_none() && !is_cut_short {
            true => Packed::new(part, record, kept, self.records)?,
            false => None,
        };
        match packed {
            Some(packed) => part.files = locked(&self.journal).add(self.dir, &packed)?,
            None => part.save(self.dir, record, kept, self.records, is_cut_short)?,
        }
        if is_cut_short { Ok(()) } else { self.dir.discard_unfinished(part.id()) }
    }

    /// Nothing is tried from now on, because of `why`.
    pub(crate) fn fail(&self, why: Error) {
        locked(&self.unwritten).get_or_insert(why);
    }

    /// What could not be written first.
    pub(crate) fn unwritten(self) -> Option<Error> {
        self.unwritten.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

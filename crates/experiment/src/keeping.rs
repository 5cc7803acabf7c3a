//! The keeper of a run: it makes a part of each finished attempt and writes the part into the run directory.
//!
//! A small part is a line in the journal, and a large part has a folder (`part.rs`). After the first failed
//! write nothing more is written, but the figures in memory go on to the end of the run.
//!
//! Begin to read with [`PartKeeper`] and its `keep`.

use std::sync::{Mutex, PoisonError};

use talkpath_measure::RunRecord;
use talkpath_measure::series::SeriesDetail;
use talkpath_scenario::Plan;

use crate::Error;
use crate::attempt::RecordContents;
use crate::choice::Records;
use crate::journal::{Journal, Packed};
use crate::observer::{Event, Observer};
use crate::part::{ExtraFiles, Part, PartsInMemory};
use crate::place::Worker;
use crate::repetitions::{Acceptance, FinishedAttempt, Keeper};
use crate::run_dir::{PartId, PartKey, RunDir};
use crate::stopwatch::instant_formatter;
use crate::workers::locked;

/// Makes a part of each finished attempt at a repetition of `plan`.
pub(crate) struct PartKeeper<'k> {
    /// Writes the parts into the run directory.
    pub(crate) writer: &'k PartWriter<'k>,
    /// The plan that runs now.
    pub(crate) plan: &'k Plan,
    /// The plan that the user started, before the run grew. It decides which cells the page draws.
    pub(crate) demanded: &'k Plan,
    /// How the states over time are sampled; `None` if they are not kept.
    pub(crate) series: Option<SeriesDetail>,
    /// Whether the record has a row for each message.
    pub(crate) rows: bool,
    /// Whether each of many copies of a flow keeps its own figures.
    pub(crate) per_flow: bool,
    /// Whether the parts stay in memory until the run is merged. The parts of a shard do not, because only
    /// `merge` reads them, and because a shard of many small cells may not fit in memory.
    pub(crate) in_memory: bool,
    /// The parts that stay in memory.
    pub(crate) parts: Mutex<PartsInMemory>,
    /// Receives the figures of each repetition.
    pub(crate) observer: &'k dyn Observer,
}

impl PartKeeper<'_> {
    /// Returns the parts that stayed in memory.
    pub(crate) fn into_parts(self) -> PartsInMemory {
        self.parts.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keeper for PartKeeper<'_> {
    fn record_contents(&self, _: PartId) -> RecordContents {
        RecordContents { series: self.series, rows: self.rows }
    }

    fn is_usable(&self, _: PartId, record: &RunRecord) -> bool {
        record.valid
    }

    fn keep(&self, attempt: FinishedAttempt, worker: &mut Worker) -> Result<Acceptance, Error> {
        let FinishedAttempt { id, record, began, reruns, is_cut_short, .. } = attempt;
        let extra_files = ExtraFiles {
            arrivals: worker.take_arrival_log(),
            capture: worker.take_capture(),
            qlog: worker.take_qlog(),
        };
        let Some(cell) = self.plan.cell(id.cell) else { return Ok(Acceptance::Accepted) };
        let mut part = Part::new(&record, self.demanded, cell, self.per_flow, instant_formatter(began));
        part.set_reruns(reruns);
        if !is_cut_short {
            part.warn_of_silence();
            self.observer.observe(Event::Figures(&part.summary));
        }
        if let Err(why) = self.writer.write(&mut part, &record, &extra_files, is_cut_short) {
            if !self.in_memory {
                return Err(why);
            }
            // The figures are in memory, so the run goes on. At its end the user hears of the failed write.
            self.writer.stop_writing(why);
        }
        let acceptance = if part.is_disturbed() {
            Acceptance::Disturbed(part.warnings.clone())
        } else {
            Acceptance::Accepted
        };
        if self.in_memory {
            locked(&self.parts).insert(PartKey { id, is_cut_short }, part);
        }
        Ok(acceptance)
    }
}

/// Writes the parts of one process into a run directory. All workers share it.
pub(crate) struct PartWriter<'w> {
    dir: &'w RunDir,
    records: Records,
    journal: Mutex<Journal>,
    /// The first failed write. After it nothing is written.
    failure: Mutex<Option<Error>>,
}

impl<'w> PartWriter<'w> {
    /// `records` says which record files a part has.
    pub(crate) fn new(dir: &'w RunDir, records: Records) -> Self {
        Self { dir, records, journal: Mutex::default(), failure: Mutex::new(None) }
    }

    /// Writes `part`, with the rows of `record` and `extra_files`. Does nothing after a failed write.
    pub(crate) fn write(
        &self,
        part: &mut Part,
        record: &RunRecord,
        extra_files: &ExtraFiles,
        is_cut_short: bool,
    ) -> Result<(), Error> {
        if locked(&self.failure).is_some() {
            return Ok(());
        }
        // A part with a capture or a qlog, or a part of a repetition that was cut short, always has a folder.
        let mut packed = None;
        if extra_files.capture.is_none() && extra_files.qlog.is_none() && !is_cut_short {
            packed = Packed::new(part, record, extra_files, self.records)?;
        }
        match packed {
            Some(packed) => part.files = locked(&self.journal).add(self.dir, &packed)?,
            None => part.save(self.dir, record, extra_files, self.records, is_cut_short)?,
        }
        if !is_cut_short {
            // An earlier process may have left a part of the same repetition that was cut short.
            self.dir.discard_cut_short(part.id())?;
        }
        Ok(())
    }

    /// Stops writing because of `why`, unless a write has failed before.
    pub(crate) fn stop_writing(&self, why: Error) {
        locked(&self.failure).get_or_insert(why);
    }

    /// Returns the first failed write.
    pub(crate) fn into_failure(self) -> Option<Error> {
        self.failure.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

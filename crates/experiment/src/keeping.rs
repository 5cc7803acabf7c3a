//! A run's finished repetitions become parts, which are kept as they come, until something cannot be written.

use std::sync::{Mutex, PoisonError};

use talkpath_measure::RunRecord;
use talkpath_measure::series::SeriesDetail;
use talkpath_scenario::Plan;

use crate::Error;
use crate::attempt::Wanted;
use crate::choice::Records;
use crate::journal::{Journal, Packed};
use crate::part::{Fresh, Kept, Part};
use crate::place::Worker;
use crate::repetitions::{Judged, Keeper, Ran};
use crate::run_dir::{PartId, RunDir};
use crate::stopwatch::stamps_from;
use crate::workers::locked;

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

/// Makes parts of the repetitions of a plan.
pub(crate) struct PartKeeper<'k> {
    /// Where they are kept.
    pub(crate) keeping: &'k Keeping<'k>,
    /// What runs.
    pub(crate) plan: &'k Plan,
    /// What ran first, without what was added to it during the run: it says what is drawn.
    pub(crate) demanded: &'k Plan,
    /// How states over time are sampled; `None` keeps none.
    pub(crate) series: Option<SeriesDetail>,
    /// Whether every message is kept.
    pub(crate) rows: bool,
    /// Whether many copies of a flow are not summed up.
    pub(crate) per_flow: bool,
    /// Whether the figures are in memory, too. Those of one machine of several are on its disk alone: many
    /// small cells of them need not fit in memory here.
    pub(crate) in_memory: bool,
    /// Those in memory.
    pub(crate) fresh: Mutex<Fresh>,
}

impl PartKeeper<'_> {
    /// What is in memory.
    pub(crate) fn into_fresh(self) -> Fresh {
        self.fresh.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keeper for PartKeeper<'_> {
    fn wanted(&self, _: PartId) -> Wanted {
        Wanted { series: self.series, rows: self.rows }
    }

    fn stands(&self, _: PartId, record: &RunRecord) -> bool {
        record.valid
    }

    fn keep(&self, ran: Ran, worker: &mut Worker) -> Result<Judged, Error> {
        let Ran { id, record, began, ran_again, is_cut_short, .. } = ran;
        let kept = Kept { arrivals: worker.take_arrival_log(), capture: worker.take_capture() };
        let Some(cell) = self.plan.cell(id.cell) else { return Ok(Judged::Counts) };
        let mut part = Part::new(&record, self.demanded, cell, self.per_flow, stamps_from(began));
        part.set_ran_again(ran_again);
        if !is_cut_short {
            part.warn_of_silence();
        }
        match self.keeping.save(&mut part, &record, &kept, is_cut_short) {
            Err(why) if !self.in_memory => return Err(why),
            // The figures are in memory: the run goes on, and says at its end what it could not write.
            saved => saved.unwrap_or_else(|why| self.keeping.fail(why)),
        }
        let judged = match part.is_disturbed() {
            true => Judged::Disturbed(part.warnings.clone()),
            false => Judged::Counts,
        };
        if self.in_memory {
            locked(&self.fresh).insert((id, is_cut_short), part);
        }
        Ok(judged)
    }
}

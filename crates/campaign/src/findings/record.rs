//! A measurement with its summary, and which of its repetitions are judged.

use talkpath_measure::statistic::is_enough;
use talkpath_measure::summary::{RunSummary, Summary};
use talkpath_measure::warning::{reason, which_left_out};
use talkpath_units::counted;

use super::tables::Missing;
use crate::plan::Measurement;

/// A measurement with the summary of its records.
#[derive(Clone, Debug)]
pub struct Recorded<'a> {
    /// The measurement.
    pub measurement: &'a Measurement,
    /// The content of its `summary.json`.
    pub summary: &'a Summary,
}

impl<'a> Recorded<'a> {
    /// Returns whether a machine disturbed this repetition past its stated limits.
    pub(crate) fn is_disturbed(&self, run: &RunSummary) -> bool {
        // An older summary has no validity for each repetition, but one for all of them.
        let is_valid = run.machine.as_ref().and_then(|machine| machine.valid);
        !is_valid.unwrap_or(self.summary.valid)
    }

    fn repetition_count(&self) -> u64 {
        self.summary.runs.len() as u64
    }

    fn disturbed_count(&self) -> u64 {
        self.summary.runs.iter().filter(|run| self.is_disturbed(run)).count() as u64
    }

    /// Returns whether enough repetitions are undisturbed, by the same rule as for a cell of a study.
    pub(super) fn is_valid(&self) -> bool {
        is_enough(self.repetition_count() - self.disturbed_count(), self.repetition_count())
    }

    /// Returns the repetitions from which figures are computed. These are the undisturbed repetitions of a
    /// valid measurement, and all repetitions of another.
    pub(super) fn judged_runs(&self) -> impl Iterator<Item = &'a RunSummary> {
        let is_valid = self.is_valid();
        self.summary.runs.iter().filter(move |run| !is_valid || !self.is_disturbed(run))
    }

    /// Says that the measurement is not valid, and why. Returns `None` if it is valid.
    pub(super) fn not_valid(&self) -> Option<Missing> {
        if self.is_valid() {
            return None;
        }
        Some(Missing { measurement: self.measurement.clone(), why: self.first_reason().to_owned() })
    }

    /// Says how many repetitions of a valid measurement are left out, and why. Returns `None` if none is.
    pub(super) fn left_out(&self) -> Option<Missing> {
        let disturbed = self.disturbed_count();
        if disturbed == 0 || !self.is_valid() {
            return None;
        }
        let repetitions = counted(self.repetition_count(), "repetition");
        let why = format!("{disturbed} of {repetitions}: {}", self.first_reason());
        Some(Missing { measurement: self.measurement.clone(), why })
    }

    /// Returns the first warning that says how a machine disturbed the measurement.
    fn first_reason(&self) -> &'a str {
        let warnings: &'a [String] = &self.summary.warnings;
        let first_invalid = warnings.iter().find_map(|warning| reason(warning));
        let first_left_out = || warnings.iter().find_map(|warning| which_left_out(warning));
        first_invalid.or_else(first_left_out).unwrap_or("summary.json does not say why")
    }
}

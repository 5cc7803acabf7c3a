//! What is made of a run's figures: this crate keeps it in the run directory, and does not know how it is
//! found.

use talkpath_measure::chart_data::CellFigures;
use talkpath_measure::summary::Summary;
use talkpath_scenario::Plan;

use crate::resumable::Resumable;
use crate::run_dir::RunDir;

/// Judges and draws a run.
pub trait Findings: Sync {
    /// Completes `summary`, which has its runs and cells: how the cells compare, and whether what `demanded`
    /// demands of them holds, and in which setting they ran.
    fn judge(&self, demanded: &Plan, summary: &mut Summary);

    /// The text of the run's page.
    fn page(&self, run: &FinishedRun<'_>) -> String;
}

/// A run whose figures are there.
pub struct FinishedRun<'a> {
    /// Its directory.
    pub dir: &'a RunDir,
    /// What ran.
    pub plan: &'a Plan,
    /// How it was started.
    pub begun: &'a Resumable,
    /// Its figures.
    pub summary: &'a Summary,
    /// What can be drawn of its cells.
    pub figures: &'a [CellFigures],
}

//! The interface to the code that judges a run and draws its page. This crate calls that code and stores the
//! result in the run directory, but does not depend on it.

use talkpath_measure::chart_data::CellChartData;
use talkpath_measure::summary::Summary;
use talkpath_scenario::Plan;

use crate::run_dir::RunDir;
use crate::run_options::RunOptions;

/// Judges and draws a run.
pub trait Findings: Sync {
    /// Adds to `summary` how the transports compare, whether the thresholds of `demanded` hold, and in which
    /// setting the run took place. The summary has its runs and cells already.
    fn judge(&self, demanded: &Plan, summary: &mut Summary);

    /// Returns the HTML text of report.html.
    fn page(&self, run: &FinishedRun<'_>) -> String;
}

/// A run with a complete summary.
pub struct FinishedRun<'a> {
    /// The directory of the run.
    pub dir: &'a RunDir,
    /// The plan that ran.
    pub plan: &'a Plan,
    /// The options of the run.
    pub options: &'a RunOptions,
    /// All figures of the run.
    pub summary: &'a Summary,
    /// The chart data of the cells that the page draws.
    pub chart_data: &'a [CellChartData],
}

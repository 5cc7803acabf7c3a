//! The content of a run's page.

use talkpath_measure::chart_data::CellChartData;
use talkpath_measure::summary::Summary;

use crate::animation::Animation;
use crate::path_changes::CellChanges;
use crate::sound::Sounds;

/// The content of a run's page.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The summary of the run, for every table and sentence.
    pub summary: &'a Summary,
    /// The data of the charts, with at most one entry for each cell. A cell without an entry has tables only.
    pub chart_data: &'a [CellChartData],
    /// The scenario with all its defaults, as TOML. Empty if there is none, because the page is that of a
    /// capture.
    pub scenario_toml: &'a str,
    /// The command that repeats the run.
    pub command: &'a str,
    /// The changes of the path, for each cell whose path changes.
    pub changes: &'a [CellChanges],
    /// The network. `None` if it is not known, or if the page has several runs.
    pub network: Option<&'a Network>,
    /// The sounds of a call. `None` unless the user wants them in the page.
    pub sounds: Option<&'a Sounds>,
}

/// The network of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Nodes, links and flows.
    pub animation: Animation,
    /// The command that writes a page with moving packets. `None` if the run did not record packets.
    pub play: Option<String>,
}

//! Checks the name of a threshold's figure, and proposes the figure that the user may have meant.
//!
//! A threshold names its figure by the figure's *path* in summary.json, such as `call.mos`. A word for the
//! *statistic* over the repetitions may follow, such as `call.mos.p10`. The *subject* of the threshold is the
//! flow or the link that the figure belongs to, and it decides which figures there are.

use std::collections::BTreeSet;

use talkpath_measure::figures::{FLOW, GROUP, LINK, Table, statistic_of};
use talkpath_measure::statistic::Statistic;
use talkpath_scenario::{Threshold, ThresholdSubject, nearest};

use super::figure::is_number_or_flag;

/// The short names of `call.mos` and `call.usable`.
const SHORT_NAMES: [&str; 2] = ["mos", "usable"];

/// One meaning of the name of a figure.
#[derive(Clone, Copy, Debug)]
pub(super) struct FigureName<'a> {
    pub(super) path: &'a str,
    pub(super) statistic: StatisticChoice,
}

/// The statistic over the repetitions.
#[derive(Clone, Copy, Debug)]
pub(super) enum StatisticChoice {
    /// The statistic of the tables, because the threshold names none.
    Usual(Statistic),
    /// The statistic that the threshold names.
    Named(Statistic),
}

impl<'a> FigureName<'a> {
    /// Returns the meaning in which the whole name is a path.
    pub(super) fn whole(name: &'a str) -> Self {
        Self { path: name, statistic: StatisticChoice::Usual(statistic_of(name)) }
    }

    /// Returns the meaning in which the last word of the name is a statistic. Returns `None` if it is none.
    pub(super) fn with_statistic(name: &'a str) -> Option<Self> {
        let (path, statistic) = Statistic::split(name)?;
        Some(Self { path, statistic: StatisticChoice::Named(statistic) })
    }
}

/// Checks that the subject of the threshold can have the figure. Nothing needs to have run.
///
/// # Errors
/// Returns a message with the figures that the subject can have.
pub(super) fn check_figure(threshold: &Threshold) -> Result<(), String> {
    let name = threshold.path.as_str();
    let mut paths = figure_paths(&threshold.subject);
    let statistic_path = FigureName::with_statistic(name).map(|name| name.path);
    if paths.contains(name) || statistic_path.is_some_and(|path| paths.contains(path)) {
        return Ok(());
    }
    if matches!(threshold.subject, ThresholdSubject::Flow { .. } | ThresholdSubject::ProgramFlows { .. }) {
        // The run makes up the names of counts, such as the marks of packets, so each name is right.
        if FLOW.counts(name).is_some() {
            return Ok(());
        }
        paths.extend(SHORT_NAMES);
    }
    Err(unknown_figure_message(threshold, &paths))
}

/// Writes the message for a figure that [`check_figure`] let pass, but that the subject has in no cell. For
/// example, only a group has `jain_index`, and a flow without copies has no group.
pub(super) fn figure_in_no_cell_message(threshold: &Threshold) -> String {
    let mut paths = figure_paths(&threshold.subject);
    // The message must not propose the name that it refuses.
    paths.remove(threshold.path.as_str());
    unknown_figure_message(threshold, &paths)
}

/// Returns the paths of all figures that `subject` can have, but for counts by name.
fn figure_paths(subject: &ThresholdSubject) -> BTreeSet<&str> {
    match subject {
        ThresholdSubject::Flow { .. } => table_paths(&FLOW).chain(table_paths(&GROUP)).collect(),
        ThresholdSubject::ProgramFlows { .. } => table_paths(&FLOW).collect(),
        ThresholdSubject::Program { figures } => figures.iter().map(String::as_str).collect(),
        ThresholdSubject::Link { .. } => table_paths(&LINK).collect(),
    }
}

fn table_paths<T>(table: &'static Table<T>) -> impl Iterator<Item = &'static str> {
    table.rows().filter(|row| is_number_or_flag(row)).map(|row| row.path)
}

fn unknown_figure_message(threshold: &Threshold, paths: &BTreeSet<&str>) -> String {
    let subject = match &threshold.subject {
        ThresholdSubject::Flow { name, .. } | ThresholdSubject::ProgramFlows { name } => {
            format!("the flow {name}")
        }
        ThresholdSubject::Program { .. } => "the program".to_owned(),
        ThresholdSubject::Link { name } => format!("the link {name}"),
    };
    format!(
        "threshold {}: {subject} has no figure `{}` in summary.json\n  = help: {}",
        threshold.figure,
        threshold.path,
        help(&threshold.path, paths)
    )
}

/// Says what is right in place of the wrong `name`.
fn help(name: &str, paths: &BTreeSet<&str>) -> String {
    // If the name begins with a right path, only its last word is wrong.
    if let Some((path, _)) = name.rsplit_once('.')
        && paths.contains(path)
    {
        let statistics = Statistic::ALL.map(|statistic| format!(".{statistic}")).join(", ");
        return format!("the statistics of `{path}` over the repetitions are {statistics}");
    }
    if let Some(path) = nearest(name, paths.iter().copied()) {
        return format!("did you mean `{path}`?");
    }
    let first_keys: BTreeSet<&str> = paths.iter().filter_map(|path| path.split('.').next()).collect();
    format!("there are: {}", first_keys.into_iter().collect::<Vec<_>>().join(", "))
}

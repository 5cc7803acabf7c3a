//! Which figures are shares: what the language of scenario files asks the table of figures for its
//! thresholds.

use talkpath_measure::figures::{FLOW, Figure, GROUP, LINK, Table, Unit};
use talkpath_scenario::Percent;

/// Returns whether a threshold of the figure at `path` below its flow, group or link is written in per cent;
/// `None` if there is no such figure. If two tables have a figure at one path, both have one unit.
pub(crate) fn percent_of(path: &str) -> Option<Percent> {
    let path = match path {
        // The short names that thresholds have of a call's figures.
        "mos" => "call.mos",
        _ => path,
    };
    of_table(&FLOW, path).or_else(|| of_table(&GROUP, path)).or_else(|| of_table(&LINK, path))
}

fn of_table<T>(table: &'static Table<T>, path: &str) -> Option<Percent> {
    let count = || table.counts(path).map(|_| Percent::Never);
    table.find(path).map(percent).or_else(count)
}

fn percent<T>(figure: &Figure<T>) -> Percent {
    match (figure.unit, figure.range) {
        (Unit::Share, _) => Percent::Share,
        // What copies are judged by is a share for some workloads. An index may be said in per cent.
        (Unit::Judged, _) | (Unit::One, (_, 1.0)) => Percent::Possible,
        _ => Percent::Never,
    }
}

//! The titles of columns, and what several tables write alike.

use talkpath_measure::metrics::playout::OTHER_WAIT_TEXT;
use talkpath_measure::ranking::clusters::Clusters;

use crate::grid::printable;
use crate::view::{CellView, Metric, Quantile};

/// Begins the title of the column of differences to the leader.
pub(crate) const DIFFERENCE: &str = "vs ";
/// Titles of columns that only some tables have.
pub(crate) const MOS: &str = "MOS";
pub(crate) const IN_TIME: &str = "in time";
pub(crate) const UNFINISHED: &str = "unfinished";
pub(crate) const CLUSTERS: &str = "two outcomes";
pub(crate) const WAIT: &str = "wait in ";
pub(crate) const USABLE: &str = "usable";
/// Title the columns of a call's score with each of two receivers.
pub(crate) const OWN_RECEIVER: &str = "adaptive";
pub(crate) const OTHER_RECEIVER: &str = OTHER_WAIT_TEXT;
/// Titles the column of the fairness of copies.
pub(crate) const JAIN: &str = "Jain's index";
/// Titles the columns of what was delivered under an echo of a mark.
pub(crate) const ECHOED: &str = "echoed, packets";

/// A name that leaves room for figures: names are anybody's text.
pub(crate) fn short(name: &str) -> String {
    let name = printable(name);
    match name.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name,
    }
}

/// Of several runs on a page the end of the name says which run it is.
pub(crate) fn row_name(cell: &CellView<'_>, label: &str) -> String {
    if cell.is_of_several_runs() { printable(label) } else { short(label) }
}

/// Characters of a name that a table shows; chosen.
const MAX_NAME: usize = 32;

/// What the echoing host took of a round trip.
pub(crate) const TURN_ROUND: &str = "turn-round, ms";
/// Titles the column of the times to open, where one is long.
pub(crate) const OPENS: &str = "opens after,";

/// Whether the flow opened after more than two round trips, or never, so that a reader has to know.
pub(crate) fn opens_late(cell: &CellView<'_>, name: &str) -> bool {
    let kind = cell.delay_kind(name);
    let delay = cell.value(name, Metric::Delay(kind, Quantile::Min));
    let round_trip = delay.map(|delay| delay * 2.0 / kind.trips());
    match (cell.value(name, Metric::Opening), round_trip) {
        (Some(opening), Some(round_trip)) => opening > 2.0 * round_trip,
        (Some(opening), None) => opening > 0.0,
        (None, _) => cell.flow(name).and_then(|flow| flow.ledger).is_some_and(|ledger| ledger.not_open > 0),
    }
}

/// `1.70 (40 %), 3.90 (60 %)`
pub(crate) fn shares(found: &Clusters, text: impl Fn(f64) -> String) -> String {
    let share = (found.low_share * 100.0).round();
    format!("{} ({share} %), {} ({} %)", text(found.low), text(found.high), 100.0 - share)
}

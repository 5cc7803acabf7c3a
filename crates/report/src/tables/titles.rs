//! The titles of columns, and the texts that several tables have in common.

use talkpath_measure::metrics::playout::OTHER_WAIT_TEXT;
use talkpath_measure::ranking::clusters::Clusters;

use crate::grid::printable;
use crate::view::{CellView, Metric, Quantile};

pub(crate) const MOS: &str = "MOS";
pub(crate) const IN_TIME: &str = "in time";
pub(crate) const USABLE: &str = "usable";
pub(crate) const UNFINISHED: &str = "unfinished";
pub(crate) const TWO_OUTCOMES: &str = "two outcomes";
/// The beginning of the title over the differences to the leader. The name of the leader follows.
pub(crate) const VERSUS: &str = "vs ";
/// The beginning of the title over the waits in a link's queue. The name of the link follows.
pub(crate) const WAIT_IN: &str = "wait in ";
/// The title over a call's figures with the receiver that adapts its playout.
pub(crate) const OWN_RECEIVER: &str = "adaptive";
/// The title over a call's figures with the second receiver.
pub(crate) const OTHER_RECEIVER: &str = OTHER_WAIT_TEXT;
/// The title over the fairness among copies.
pub(crate) const JAIN: &str = "Jain's index";
/// The title over the packets that were delivered while the receiver echoed an ECN mark.
pub(crate) const ECHOED_PACKETS: &str = "echoed, packets";
/// The title over the time that the echoing host took to answer.
pub(crate) const TURN_ROUND: &str = "turn-round, ms";
/// The title over the time until a connection opened. Tables show it if one of the times is long.
pub(crate) const OPENS_AFTER: &str = "opens after,";

/// Makes a name short enough to leave room for figures, and printable. Users choose the names.
pub(crate) fn short_name(name: &str) -> String {
    let name = printable(name);
    match name.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name,
    }
}

/// The first cell of a row. If the page shows several runs, the end of the label says which run it is, so the
/// label is not shortened.
pub(crate) fn row_name(cell: &CellView<'_>, label: &str) -> String {
    if cell.is_of_several_runs() { printable(label) } else { short_name(label) }
}

/// The most characters of a name in a table; chosen.
const MAX_NAME: usize = 32;

/// Whether the connection of a flow opened after more than two round trips, or never.
pub(crate) fn opens_late(cell: &CellView<'_>, name: &str) -> bool {
    let Some(opening) = cell.value(name, Metric::Opening) else {
        let ledger = cell.flow(name).and_then(|flow| flow.ledger);
        return ledger.is_some_and(|ledger| ledger.not_open > 0);
    };
    let kind = cell.delay_kind(name);
    let Some(shortest) = cell.value(name, Metric::Delay(kind, Quantile::Min)) else {
        // No message was delivered, so there is no round trip to compare with.
        return opening > 0.0;
    };
    let round_trip = shortest * 2.0 / kind.trips();
    opening > 2.0 * round_trip
}

/// Writes both outcomes with their shares of the repetitions: `1.70 (40 %), 3.90 (60 %)`.
pub(crate) fn both_outcomes(clusters: &Clusters, text: impl Fn(f64) -> String) -> String {
    let low_percent = (clusters.low_share * 100.0).round();
    let (low, high) = (text(clusters.low), text(clusters.high));
    format!("{low} ({low_percent} %), {high} ({} %)", 100.0 - low_percent)
}

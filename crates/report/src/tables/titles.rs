//! What the tables of flows and the tables that compare transports have in common.

use talkpath_measure::ranking::clusters::Clusters;

use crate::grid::printable;
use crate::metric::{Metric, Quantile};
use crate::view::CellView;

/// A name in a table has at most 32 characters. We chose 32 because longer names leave no room for figures.
const MAX_NAME: usize = 32;

/// The title over a call's figures with the receiver that adapts its playout.
pub(crate) const OWN_RECEIVER: &str = "adaptive";

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

/// Whether the connection of a flow opened after more than two round trips, or never.
pub(crate) fn opens_late(cell: &CellView<'_>, name: &str) -> bool {
    let Some(opening) = cell.value(name, Metric::OPENING) else {
        let ledger = cell.flow(name).and_then(|flow| flow.ledger);
        return ledger.is_some_and(|ledger| ledger.not_open > 0);
    };
    let kind = cell.delay_kind(name);
    let Some(shortest) = cell.value(name, Metric::delay(kind, Quantile::Min)) else {
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

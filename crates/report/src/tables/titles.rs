//! What the tables of flows and the tables that compare transports have in common.

use talkpath_measure::ranking::clusters::Clusters;

use crate::grid::{Column, printable};
use crate::metric::{Metric, Quantile};
use crate::term::Topic;
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
fn opens_late(cell: &CellView<'_>, name: &str) -> bool {
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

/// A column about the opening of connections.
pub(crate) struct OpeningColumn {
    pub(crate) head: Column,
    pub(crate) metric: Metric,
}

/// Makes the columns about the opening that a table needs. `any` says whether something holds for any flow of
/// the table. A table has none if all connections open within two round trips and no handshake goes on after
/// that. Of the name and the socket, only times that a call would notice have a column.
pub(crate) fn opening_columns(any: &dyn Fn(&Holds<'_>) -> bool) -> Vec<OpeningColumn> {
    let goes_on = |cell: &CellView<'_>, name: &str| {
        let times = cell.value(name, Metric::HANDSHAKE).zip(cell.value(name, Metric::OPENING));
        times.is_some_and(|(handshake, opening)| handshake - opening >= LEAST_GOING_ON_MS)
    };
    let goes_on = any(&goes_on);
    if !goes_on && !any(&opens_late) {
        return Vec::new();
    }
    let takes = |metric: Metric| {
        let is_long =
            |cell: &CellView<'_>, name: &str| cell.value(name, metric).is_some_and(|ms| ms >= LEAST_PART_MS);
        any(&is_long)
    };
    let column = |title: &str, unit: &str, term: &'static str, metric: Metric, omit_order| OpeningColumn {
        head: Column::numbers(title, unit)
            .omit_order(omit_order)
            .explained(metric.term(term).about(Topic::Opening)),
        metric,
    };
    let mut columns = Vec::new();
    if takes(Metric::NAME) {
        columns.push(column("name,", "ms", "name", Metric::NAME, 1));
    }
    if takes(Metric::SOCKET) {
        columns.push(column("socket,", "ms", "socket", Metric::SOCKET, 1));
    }
    columns.push(column("opens after,", "ms", "opens after", Metric::OPENING, 0));
    if goes_on {
        columns.push(column("handshake,", "ms", "handshake", Metric::HANDSHAKE, 4));
    }
    columns.push(column("first", "message, ms", "first message", Metric::FIRST_DELIVERED, 4));
    columns
}

/// Something that may hold for a flow of a cell.
pub(crate) type Holds<'a> = dyn Fn(&CellView<'_>, &str) -> bool + 'a;

/// The time by which a handshake outlasts the opening, from which on it has a column of its own, ms. We chose
/// 1 ms, which is above the time that a thread takes to notice the end of a handshake.
const LEAST_GOING_ON_MS: f64 = 1.0;
/// The time from which on the name or the socket has a column, ms. We chose 10 ms, the speech of the shortest
/// packets.
const LEAST_PART_MS: f64 = 10.0;

/// Writes both outcomes with their shares of the repetitions: `1.70 (40 %), 3.90 (60 %)`.
pub(crate) fn both_outcomes(clusters: &Clusters, text: impl Fn(f64) -> String) -> String {
    let low_percent = (clusters.low_share * 100.0).round();
    let (low, high) = (text(clusters.low), text(clusters.high));
    format!("{low} ({low_percent} %), {high} ({} %)", 100.0 - low_percent)
}

//! What a transfer's own programs print: a row for each figure, and a column for each repetition.
//!
//! The figures are those of Foderaro's tables (5 May 1995) and of Spoor's window and log (2014, appendices B
//! and D). A *transfer* is a burst of messages, or a file. In the simulator it has no start and no end,
//! because virtual time is not that of a clock.

use std::collections::BTreeMap;

use talkpath_measure::figures::{FLOW, Scale};
use talkpath_measure::summary::{DelayMs, FlowSummary, TransferSummary};

use super::titles::short_name;
use crate::grid::{Column, Grid, Role, Row};
use crate::number::{UNKNOWN, count, fixed, percent};
use crate::term::{Term, Topic};
use crate::view::CellView;

/// The table has at most 6 repetitions of a flow. We chose 6 because a terminal of 100 characters has room
/// for as many.
const MAX_REPETITIONS: usize = 6;
/// The place of the date, of the time, and of the last of its three decimals in `2026-11-29 16:12:03.123456`.
const DATE: core::ops::Range<usize> = 0..10;
const TIME: core::ops::Range<usize> = 11..23;

/// One flow in one repetition.
struct Transfer<'a> {
    title: String,
    repetition: u64,
    /// The transport's name for people.
    protocol: String,
    flow: &'a FlowSummary,
}

/// Makes the table of the bursts and files of a cell. Returns `None` if it has none.
pub(crate) fn transfers(cell: &CellView<'_>) -> Option<Grid> {
    let transfers = transfers_of(cell);
    if transfers.is_empty() {
        return None;
    }
    let mut columns = vec![Column::words("transfer").explained(about())];
    for transfer in &transfers {
        let head = (transfer.repetition + 1).to_string();
        let head = if cell.runs.len() > 1 { head } else { String::new() };
        columns.push(Column::numbers(&transfer.title, &head));
    }
    let mut rows = Vec::new();
    for (name, text) in FIGURES {
        let texts: Vec<String> = transfers.iter().map(text).collect();
        // A row that no transfer has is left out: a file has no word, and the simulator no clock.
        if texts.iter().any(|text| !text.is_empty()) {
            let cells = core::iter::once(name.to_owned()).chain(texts).collect();
            rows.push(Row { cells, role: Role::Plain, display: None });
        }
    }
    if cell.runs.len() > MAX_REPETITIONS {
        let mut cells = vec![String::new(); columns.len()];
        cells[0] = format!("and {} more in summary.json", count((cell.runs.len() - MAX_REPETITIONS) as u64));
        rows.push(Row { cells, role: Role::Plain, display: None });
    }
    Some(Grid { columns, rows })
}

/// Returns the repetitions of each transfer, flow by flow.
fn transfers_of<'a>(cell: &CellView<'a>) -> Vec<Transfer<'a>> {
    let mut by_flow: BTreeMap<&str, Vec<Transfer<'a>>> = BTreeMap::new();
    for run in cell.runs.iter().take(MAX_REPETITIONS) {
        for (name, flow) in &run.flows {
            if flow.verdict.is_none() && flow.file.is_none() {
                continue;
            }
            let protocol = cell.transport(name).label;
            let title = format!("{} over {protocol}", short_name(name));
            by_flow.entry(name).or_default().push(Transfer {
                title,
                repetition: run.repetition,
                protocol,
                flow,
            });
        }
    }
    by_flow.into_values().flatten().collect()
}

/// Writes a figure of a transfer. The text is empty if a transfer of its kind has no such figure.
type Text = fn(&Transfer<'_>) -> String;

/// The figures in the order of the rows: first the fields of Spoor's log, then the rows of Foderaro's tables.
const FIGURES: [(&str, Text); 16] = [
    ("day, UTC", |transfer| stamp(transfer, |it| it.start.as_deref(), DATE)),
    ("start", |transfer| stamp(transfer, |it| it.start.as_deref(), TIME)),
    ("end", |transfer| stamp(transfer, |it| it.end.as_deref(), TIME)),
    ("transfer time, ms", |transfer| fixed(transfer.flow.first_sent_to_last_received_ms, 3)),
    ("packet size, B", packet_size),
    ("packets sent", packets_sent),
    ("received of expected", |transfer| {
        format!("{} of {}", count(transfer.flow.received), count(transfer.flow.sent))
    }),
    ("protocol", |transfer| transfer.protocol.clone()),
    ("packets lost", |transfer| count(transfer.flow.lost)),
    ("packets lost, %", |transfer| percent(transfer.flow.loss_rate)),
    ("time to receive, s", |transfer| fixed(transfer.flow.first_to_last_received_ms.map(|ms| ms / 1e3), 3)),
    ("mean delay, ms", |transfer| delay(transfer, |delay| delay.mean)),
    ("largest delay, ms", |transfer| delay(transfer, |delay| delay.max)),
    ("net rate, packets/s", |transfer| figure(transfer, "net_rate_pps")),
    ("error-adjusted, packets/s", |transfer| figure(transfer, "error_adjusted_rate_pps")),
    ("in words", |transfer| transfer.flow.verdict.clone().unwrap_or_default()),
];

fn stamp<'a>(
    transfer: &'a Transfer<'_>,
    field: fn(&'a TransferSummary) -> Option<&'a str>,
    part: core::ops::Range<usize>,
) -> String {
    let Some(of_flow) = transfer.flow.transfer.as_deref() else { return String::new() };
    // A summary that somebody has edited may have any text.
    field(of_flow).map_or(UNKNOWN, |text| text.get(part).unwrap_or(text)).to_owned()
}

fn packet_size(transfer: &Transfer<'_>) -> String {
    let sizes = transfer.flow.transfer.as_deref().map(|it| (it.size_bytes_min, it.size_bytes_max));
    match sizes {
        None => String::new(),
        Some((Some(min), Some(max))) if min == max => count(min),
        Some((Some(min), Some(max))) => format!("{} to {}", count(min), count(max)),
        Some(_) => UNKNOWN.to_owned(),
    }
}

/// The packets that left: not those for which there was no network or no open connection.
fn packets_sent(transfer: &Transfer<'_>) -> String {
    let unsent = transfer.flow.ledger.map_or(0, |ledger| ledger.no_network.saturating_add(ledger.not_open));
    count(transfer.flow.sent.saturating_sub(unsent))
}

/// A one-way delay, or that of the round trip of a flow with an echo.
fn delay(transfer: &Transfer<'_>, of: fn(&DelayMs) -> f64) -> String {
    let FlowSummary { one_way_delay_ms, round_trip_delay_ms, .. } = transfer.flow;
    Scale::MS.text(one_way_delay_ms.as_ref().or(round_trip_delay_ms.as_ref()).map(of))
}

fn figure(transfer: &Transfer<'_>, path: &str) -> String {
    FLOW.row(path).text(transfer.flow)
}

fn about() -> Term {
    let meaning = "transfer time: from the first send to the last arrival (Spoor 2014); time to receive: from the first arrival to \
                   the last; net rate: received / time to receive; error-adjusted: net rate x received / sent; delay: from due \
                   until read; in words: by the mean delay (Foderaro 1995)";
    Term::new("transfer", meaning).about(Topic::Other)
}

#[cfg(test)]
mod tests {
    use talkpath_measure::summary::Summary;

    use super::*;
    use crate::Style;
    use crate::fixture;

    /// A burst of Foderaro's third link (UDP): 10,000 packets of 128 B, of which 6 are lost.
    fn burst(repetitions: u64) -> Summary {
        let mut summary = fixture::summary(repetitions);
        summary.cells.truncate(1);
        summary.runs.retain(|run| run.cell == 0);
        for run in &mut summary.runs {
            let mut flow = run.flows.remove("call").unwrap();
            run.flows.clear();
            (flow.sent, flow.received, flow.lost, flow.loss_rate) = (10_000, 9_994, 6, Some(0.0006));
            (flow.net_rate_pps, flow.error_adjusted_rate_pps) = (Some(71.9), Some(71.86));
            flow.first_to_last_received_ms = Some(139_000.0);
            flow.first_sent_to_last_received_ms = Some(139_024.5);
            flow.round_trip_delay_ms = None;
            let delays = DelayMs { min: 1.0, mean: 65_000.0, max: 132_000.0, ..delays() };
            flow.one_way_delay_ms = Some(delays);
            flow.verdict = Some("horrible".to_owned());
            flow.transfer = Some(Box::new(TransferSummary {
                start: Some("2026-11-29 16:12:03.123456".to_owned()),
                end: Some("2026-11-29 16:14:22.147956".to_owned()),
                size_bytes_min: Some(128),
                size_bytes_max: Some(128),
            }));
            run.flows.insert("transfer".to_owned(), flow);
        }
        fixture::refresh(&mut summary);
        summary
    }

    fn delays() -> DelayMs {
        let mut summary = fixture::summary(1);
        summary.runs[0].flows.get_mut("call").unwrap().round_trip_delay_ms.take().unwrap()
    }

    fn text(summary: &Summary) -> String {
        let grid = transfers(&CellView::all(summary)[0]).unwrap();
        grid.text(&Style { width: 80, color: false, explain: false }).text
    }

    #[test]
    fn a_burst_has_the_seven_figures_of_foderaro_and_the_fields_of_spoors_log() {
        let text = text(&burst(1));
        let expected = [
            ("day, UTC", "2026-11-29"),
            ("start", "16:12:03.123"),
            ("end", "16:14:22.147"),
            ("transfer time, ms", "139024.500"),
            ("packet size, B", "128"),
            ("packets sent", "10 000"),
            ("received of expected", "9994 of 10 000"),
            ("protocol", "UDP"),
            ("packets lost", "6"),
            ("packets lost, %", "0.06"),
            ("time to receive, s", "139.000"),
            ("mean delay, ms", "65000"),
            ("largest delay, ms", "132000"),
            ("net rate, packets/s", "71.90"),
            ("error-adjusted, packets/s", "71.86"),
            ("in words", "horrible"),
        ];
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(rows.len(), expected.len(), "{text}");
        for (row, (name, value)) in rows.iter().zip(expected) {
            let found = row.strip_prefix(name).map(str::trim);
            assert_eq!(found, Some(value), "{row}\n{text}");
        }
    }

    #[test]
    fn each_repetition_has_a_column_and_those_beyond_the_sixth_are_counted() {
        let three = text(&burst(3));
        let protocol = three.lines().find(|line| line.starts_with("protocol")).unwrap();
        assert_eq!(protocol.split_whitespace().collect::<Vec<_>>(), ["protocol", "UDP", "UDP", "UDP"]);
        let grid = transfers(&CellView::all(&burst(9))[0]).unwrap();
        assert_eq!(
            (grid.columns.len(), grid.rows.last().unwrap().cells[0].as_str()),
            (7, "and 3 more in summary.json")
        );
    }

    #[test]
    fn a_burst_in_the_simulator_has_no_clock_time_and_a_call_has_no_table() {
        let mut summary = burst(1);
        for run in &mut summary.runs {
            run.flows.get_mut("transfer").unwrap().transfer = None;
        }
        let text = text(&summary);
        assert!(
            !text.contains("start") && !text.contains("packet size") && text.contains("mean delay"),
            "{text}"
        );
        assert!(transfers(&CellView::all(&fixture::summary(1))[0]).is_none());
    }
}

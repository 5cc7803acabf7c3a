//! Every figure of every flow of one repetition: flows across, figures down. For the page, if there is room.

use talkpath_measure::figures::FLOW;
use talkpath_measure::summary::{CallSummary, FlowSummary, OutsideModel, RunSummary};

use crate::columns::Columns;
use crate::grid::{Column, Grid, printable};
use crate::number::{UNKNOWN, count};

/// A row: its title with its unit, and what it says of a flow.
struct Detail {
    title: String,
    text: Box<dyn Fn(&FlowSummary) -> String>,
}

/// The grid; one column a flow. What no flow knows is left out.
pub(crate) fn details(run: &RunSummary) -> Grid {
    let figures = FLOW
        .rows()
        .map(|figure| Detail { title: figure.title(), text: Box::new(|flow| printable(&figure.text(flow))) });
    let lists = LISTS.map(|(title, text)| Detail { title: title.to_owned(), text: Box::new(text) });
    let is_known = |detail: &Detail| run.flows.values().any(|flow| (detail.text)(flow) != UNKNOWN);
    let mut columns: Columns<'_, Detail> = Columns::new();
    columns.add(Column::words("figure"), |detail| detail.title.clone());
    for (name, flow) in &run.flows {
        columns.add(Column::numbers("", &printable(name)), move |detail| (detail.text)(flow));
    }
    columns.grid(figures.chain(lists).filter(is_known))
}

/// A list's title, and its text.
type ListText = (&'static str, fn(&FlowSummary) -> String);

/// What is no figure.
const LISTS: [ListText; 2] = [
    ("loss runs by length from 1", |f| histogram(&f.loss_runs.histogram)),
    ("outside the E-model's table", |f| f.call.as_ref().map_or_else(unknown, |call| outside(call))),
];

/// The inputs of the E-model that its table does not have.
fn outside(call: &CallSummary) -> String {
    let each = call.outside_model.iter().map(OutsideModel::text);
    let each = each.collect::<Vec<_>>().join(", ");
    if each.is_empty() { "nothing".to_owned() } else { each }
}

/// Lengths that a cell shows.
const HISTOGRAM: usize = 8;

fn histogram(counts: &[u64]) -> String {
    let mut shown: Vec<String> = counts.iter().take(HISTOGRAM).map(|n| count(*n)).collect();
    if counts.len() > HISTOGRAM {
        shown.push("…".to_owned());
    }
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}

fn unknown() -> String {
    UNKNOWN.to_owned()
}

#[cfg(test)]
mod tests {
    use talkpath_measure::summary::{MinMeanMax, RtpStream, TurnRoundMs};

    use super::*;
    use crate::fixture;

    #[test]
    fn each_known_figure_stands_once_with_the_flows_own_value() {
        let mut summary = fixture::summary(1);
        let run = &mut summary.runs[0];
        let stream = |min, max| MinMeanMax { min, mean: 20.0, max };
        let call = run.flows.get_mut("call").unwrap();
        call.turn_round_ms = Some(TurnRoundMs { p50: 0.05, p90: 0.1, p99: 0.25, max: 991.0 });
        call.rtp_stream = Some(RtpStream { delta_ms: stream(17.25, 24.0), jitter_ms: stream(0.0004, 31.0) });
        let run = &*run;
        let grid = details(run);
        let row = |name: &str| {
            let mut rows = grid.rows.iter().filter(|row| row.cells[0] == name);
            let found = rows.next().unwrap();
            assert!(rows.next().is_none());
            found.cells[1..].to_vec()
        };
        let call = &run.flows["call"];
        assert_eq!(row("messages lost")[0], call.lost.to_string());
        let delay = call.round_trip_delay_ms.as_ref().unwrap();
        assert_eq!(row("round trip p99.9, ms"), [format!("{:.1}", delay.p999), "–".to_owned()]);
        assert_eq!(row("turn-round p99, ms"), ["0.250", "–"]);
        assert_eq!(row("turn-round max, ms")[0], "991.000");
        assert_eq!(row("one way max, ms"), ["–", "300.0"]);
        let rtp =
            |kind: &str| ["min", "mean", "max"].map(|it| row(&format!("RTP {kind} {it}, ms")).remove(0));
        assert_eq!(rtp("delta"), ["17.250", "20.000", "24.000"]);
        assert_eq!(rtp("jitter"), ["<0.001", "20.000", "31.000"]);
        assert!(grid.rows.iter().all(|row| row.cells[1..] != ["–", "–"]));
    }
}

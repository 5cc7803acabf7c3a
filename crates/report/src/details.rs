//! The table of every figure of every flow in one repetition. Flows are columns, and figures are rows. The
//! page has this table if the flows are few.

use talkpath_measure::figures::FLOW;
use talkpath_measure::summary::{CallSummary, FlowSummary, OutsideModel, RunSummary};

use crate::columns::Columns;
use crate::grid::{Column, Grid, printable};
use crate::number::{UNKNOWN, count};

/// A cell shows at most 8 lengths of loss runs.
const MAX_LENGTHS: usize = 8;

/// A row of the table.
struct DetailRow {
    /// The name of the figure with its unit.
    title: String,
    text: Box<dyn Fn(&FlowSummary) -> String>,
}

impl DetailRow {
    fn new(title: impl Into<String>, text: impl Fn(&FlowSummary) -> String + 'static) -> Self {
        Self { title: title.into(), text: Box::new(text) }
    }
}

/// Makes the table. A figure that no flow has is left out.
pub(crate) fn details(run: &RunSummary) -> Grid {
    let mut rows: Vec<DetailRow> = FLOW
        .rows()
        .map(|figure| DetailRow::new(figure.title(), |flow| printable(&figure.text(flow))))
        .collect();
    rows.push(DetailRow::new("loss runs by length from 1", |flow| counts(&flow.loss_runs.histogram)));
    rows.push(DetailRow::new("outside the E-model's table", |flow| {
        flow.call.as_ref().map_or_else(|| UNKNOWN.to_owned(), |call| inputs_outside_model(call))
    }));
    rows.retain(|row| run.flows.values().any(|flow| (row.text)(flow) != UNKNOWN));
    let mut columns: Columns<'_, DetailRow> = Columns::new();
    columns.add(Column::words("figure"), |row| row.title.clone());
    for (name, flow) in &run.flows {
        columns.add(Column::numbers("", &printable(name)), move |row| (row.text)(flow));
    }
    columns.grid(rows)
}

/// Lists the inputs that the table of the E-model does not have.
fn inputs_outside_model(call: &CallSummary) -> String {
    let inputs: Vec<String> = call.outside_model.iter().map(OutsideModel::text).collect();
    if inputs.is_empty() { "nothing".to_owned() } else { inputs.join(", ") }
}

/// Lists the number of loss runs of each length.
fn counts(loss_runs: &[u64]) -> String {
    if loss_runs.is_empty() {
        return "none".to_owned();
    }
    let mut listed: Vec<String> = loss_runs.iter().take(MAX_LENGTHS).map(|n| count(*n)).collect();
    if loss_runs.len() > MAX_LENGTHS {
        listed.push("…".to_owned());
    }
    listed.join(", ")
}

#[cfg(test)]
mod tests {
    use talkpath_measure::summary::{MinMeanMax, RtpStream, TurnRoundMs};

    use super::*;
    use crate::fixture;

    #[test]
    fn each_known_figure_has_one_row_with_the_value_of_each_flow() {
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
        let rtp = |quantity: &str| {
            ["min", "mean", "max"].map(|statistic| row(&format!("RTP {quantity} {statistic}, ms")).remove(0))
        };
        assert_eq!(rtp("delta"), ["17.250", "20.000", "24.000"]);
        assert_eq!(rtp("jitter"), ["<0.001", "20.000", "31.000"]);
        assert!(grid.rows.iter().all(|row| row.cells[1..] != ["–", "–"]));
    }
}

//! The tables of flows, transfers, groups of copies, links, ECN marks and breaks. The terminal and the page
//! have the same tables.
//!
//! A *copy* is one of several equal flows of a scenario. A *break* is a time in which a flow delivered
//! nothing although it should have. Each column is made in one place: its head, its cells, and its word in
//! the legend.
//!
//! Begin to read with [`flows`].

mod changes_tried;
mod comparison;
mod machine;
mod titles;
mod transfer;

use std::collections::BTreeSet;

use talkpath_measure::figures::{FLOW, GROUP, LINK, Scale};
use talkpath_measure::judge::{Receiver, judge};
use talkpath_measure::summary::{BreakSummary, EcnSummary, FlowSummary, JudgedBy, LinkSummary, RunSummary};

pub(crate) use self::changes_tried::{WHAT_WAS_TRIED, changes_tried};
pub(crate) use self::comparison::ComparisonTables;
pub(crate) use self::machine::{machine, machine_line};
use self::titles::{Holds, OWN_RECEIVER, OpeningColumn, both_outcomes, opening_columns, short_name};
pub(crate) use self::transfer::transfers;
use crate::columns::Columns;
use crate::display::discipline;
use crate::grid::{Column, Grid, Role, Row};
use crate::metric::{DelayKind, Metric, Quantile};
use crate::number::{UNKNOWN, count, decimals, fixed, percent};
use crate::receiver::wait_text;
use crate::term::{Term, Topic};
use crate::terms::FlowMeanings;
use crate::terms::meanings::{self, unfinished};
use crate::usable::UsableCall;
use crate::verdict::{MOS_CLUSTER_GAP, SHARE_CLUSTER_GAP};
use crate::view::{CellView, is_of_program};

/// A table of flows or links has at most 500 rows. We chose 500 because summary.json has the single figures
/// of as many copies.
const MAX_ROWS: usize = 500;

/// Makes the table with one row for each flow of a cell. If the cell has several repetitions, a value is the
/// mean or the median over them (`measure::statistic` says which of the two).
pub(crate) fn flows(cell: &CellView<'_>, meanings: &FlowMeanings) -> Grid {
    let mut names: Vec<&String> = cell.names().collect();
    let left_out = names.len().saturating_sub(MAX_ROWS);
    names.truncate(MAX_ROWS);
    let mut grid = FlowTable { cell, names, meanings }.grid();
    grid.rows.extend(row_for_left_out(left_out, grid.columns.len()));
    grid
}

/// The table of a cell's flows. Columns that few runs need appear only if a flow has a value for them.
struct FlowTable<'a> {
    cell: &'a CellView<'a>,
    /// The flows that have a row.
    names: Vec<&'a String>,
    meanings: &'a FlowMeanings,
}

/// The columns of a table that has one row for each flow. A row is made from the name of its flow.
type FlowColumns<'a> = Columns<'a, &'a String>;

impl<'a> FlowTable<'a> {
    fn grid(&self) -> Grid {
        let cell = self.cell;
        let mut columns = FlowColumns::new();
        columns.add(Column::words("flow"), |name| match cell.summed_up(name) {
            Some(group) => format!("{}, {} copies", short_name(name), count(group.flows)),
            None => short_name(name),
        });
        columns.add(Column::words("transport"), |name| short_name(&cell.transport(name).label));
        self.add_message_columns(&mut columns);
        self.add_score_columns(&mut columns);
        self.add_call_columns(&mut columns);
        self.add_in_time_column(&mut columns);
        self.add_delay_columns(&mut columns);
        let term = Metric::GOODPUT.term("goodput").about(Topic::Goodput);
        columns.add(Column::numbers("goodput", "Mb/s").explained(term), |name| {
            Scale::MBPS.text(cell.value(name, Metric::GOODPUT))
        });
        if self.any_flow_knows(Metric::RETRANSMIT_RATE) {
            let term = Metric::RETRANSMIT_RATE.term("resent").about(Topic::Resent);
            columns.add(Column::numbers("resent", "%").omit_order(5).explained(term), |name| {
                percent(cell.value(name, Metric::RETRANSMIT_RATE))
            });
        }
        self.add_verdict_column(&mut columns);
        columns
            .grid_with(self.names.iter().copied(), |name| (Role::Plain, Some(cell.transport(name).display)))
    }

    fn any_flow(&self, holds: impl Fn(&str) -> bool) -> bool {
        self.names.iter().any(|name| holds(name))
    }

    fn any_flow_knows(&self, metric: Metric) -> bool {
        self.any_flow(|name| self.cell.value(name, metric).is_some())
    }

    /// Adds the counts of messages, and the time until the connection opened if that time is long.
    fn add_message_columns(&self, columns: &mut FlowColumns<'a>) {
        let cell = self.cell;
        columns.add(Column::numbers("messages", "sent").omit_order(3), |name| {
            message_count(cell.value(name, Metric::SENT))
        });
        columns.add(Column::numbers("messages", "lost").omit_order(2), |name| {
            message_count(cell.value(name, Metric::LOST))
        });
        let head = Column::numbers("messages", "loss %").explained(self.meanings.loss.clone());
        columns.add(head, |name| percent(cell.value(name, Metric::LOSS_RATE)));
        if self.any_flow(|name| cell.many_unfinished(name).is_some()) {
            let head = Column::numbers("unfinished", "%").explained(unfinished());
            columns.add(head, |name| percent(cell.value(name, Metric::UNFINISHED)));
        }
        let any = |holds: &Holds<'_>| self.any_flow(|name| holds(cell, name));
        for OpeningColumn { head, metric } in opening_columns(&any) {
            columns.add(head, move |name| fixed(cell.value(name, metric), 1));
        }
    }

    /// Adds what a score is made of: what was concealed, in which gaps, and the delay. If a call has no
    /// score, these columns always stay.
    fn add_call_columns(&self, columns: &mut FlowColumns<'a>) {
        let cell = self.cell;
        if !self.any_flow_knows(Metric::CONCEALED) {
            return;
        }
        let is_unrated = self.any_flow(|name| judged_by(cell, name) == Some(JudgedBy::Heard));
        let order = move |order| if is_unrated { 0 } else { order };
        let term = Metric::CONCEALED.term("concealed").about(Topic::Playout);
        let head = Column::numbers("concealed", "%").omit_order(order(4)).explained(term);
        columns.add(head, |name| {
            cell.value(name, Metric::CONCEALED).map_or_else(String::new, |share| percent(Some(share)))
        });
        let others = [
            ("burst", "ratio", Metric::BURST_RATIO, 1, Scale::INDEX),
            ("longest gap", "ms", Metric::LONGEST_GAP, order(4), Scale::MS),
            ("mouth to ear", "ms", Metric::MOUTH_TO_EAR_P50, order(4), Scale::MS),
        ];
        for (group, head, metric, omit_order, scale) in others {
            let name = if head == "ms" { group } else { "burst ratio" };
            let term = metric.term(name).about(Topic::Playout);
            let column = Column::numbers(group, head).omit_order(omit_order).explained(term);
            columns.add(column, move |name| {
                cell.value(name, metric).map_or_else(String::new, |value| scale.text(Some(value)))
            });
        }
    }

    /// Adds the opinion score of calls. A call whose scenario names no receiver has a score with each of two
    /// receivers.
    fn add_score_columns(&self, columns: &mut FlowColumns<'a>) {
        if !self.any_flow_knows(Metric::MOS) {
            return;
        }
        let cell = self.cell;
        let has_two_receivers = self.any_flow_knows(Metric::OTHER_MOS);
        let title = if has_two_receivers { OWN_RECEIVER } else { "" };
        let head = Column::numbers(title, "MOS").explained(self.meanings.score.clone());
        columns.add(head, |name| score(cell, name, Metric::MOS));
        if has_two_receivers {
            let head = Column::numbers(wait_text(Receiver::Other), "MOS").omit_order(8);
            columns.add(head, |name| score(cell, name, Metric::OTHER_MOS));
        }
        columns.add(Column::numbers("", "usable").omit_order(7).explained(meanings::usable()), |name| {
            UsableCall::new(cell, name).map_or_else(String::new, |call| call.text())
        });
    }

    fn add_in_time_column(&self, columns: &mut FlowColumns<'a>) {
        let cell = self.cell;
        if !self.any_flow(|name| share_in_time(cell, name).is_some()) {
            return;
        }
        let head = Column::numbers("in time", "%").explained(self.meanings.in_time.clone());
        columns.add(head, |name| match share_in_time(cell, name) {
            Some(share) => {
                let text = |share| percent(Some(share));
                value_or_both_outcomes(cell, name, Metric::IN_TIME, SHARE_CLUSTER_GAP, share, text)
            }
            None => String::new(),
        });
    }

    /// Adds delays and their variation. All of them have the same number of decimals, so that they can be
    /// compared.
    fn add_delay_columns(&self, columns: &mut FlowColumns<'a>) {
        let cell = self.cell;
        let delay = |name: &str, quantile| cell.value(name, Metric::delay(cell.delay_kind(name), quantile));
        let mut longest = 0.0_f64;
        for name in &self.names {
            for quantile in [Quantile::P50, Quantile::P90, Quantile::P99] {
                longest = longest.max(delay(name, quantile).unwrap_or(0.0).abs());
            }
            longest = longest.max(cell.value(name, Metric::IPDV_P90).unwrap_or(0.0).abs());
        }
        let digits = decimals(longest);

        // The head of this column reads "delay, ms" over "of", and a cell is `rtt` or `owd`.
        let mut kind = Column { group: "delay, ms".to_owned(), ..Column::words("of") };
        let known = self.names.iter().filter(|name| delay(name, Quantile::P50).is_some());
        let kinds: BTreeSet<DelayKind> = known.map(|name| cell.delay_kind(name)).collect();
        let has_program = self.any_flow(|name| cell.flow(name).is_some_and(is_of_program));
        for shown in kinds {
            kind = kind.explained(meanings::delay(shown.abbreviation(), shown, has_program));
        }
        columns.add(kind, move |name| match delay(name, Quantile::P50) {
            Some(_) => cell.delay_kind(name).abbreviation().to_owned(),
            None => String::new(),
        });
        let quantiles = [
            (Column::numbers("delay, ms", "p50"), Quantile::P50),
            (Column::numbers("delay, ms", "p90").omit_order(6), Quantile::P90),
            (Column::numbers("delay, ms", "p99"), Quantile::P99),
        ];
        for (head, quantile) in quantiles {
            columns.add(head, move |name| fixed(delay(name, quantile), digits));
        }
        let term = Metric::IPDV_P90.term("jitter").about(Topic::Jitter);
        // A user who rates a capture compares its jitter with that of other programs.
        let of_capture = self.any_flow(|name| cell.flow(name).is_some_and(|flow| flow.transport == "rtp"));
        let order = if of_capture { 9 } else { 4 };
        columns.add(Column::numbers("jitter", "ms").omit_order(order).explained(term), move |name| {
            fixed(cell.value(name, Metric::IPDV_P90), digits)
        });
    }

    /// Adds the verdict in words on the delay of bursts.
    fn add_verdict_column(&self, columns: &mut FlowColumns<'a>) {
        let cell = self.cell;
        let verdict = |name: &str| cell.flow(name).and_then(|flow| flow.verdict.as_deref());
        if self.any_flow(|name| verdict(name).is_some()) {
            let head = Column::words("in words").omit_order(1).explained(self.meanings.in_words.clone());
            columns.add(head, move |name| verdict(name).map_or_else(String::new, short_name));
        }
    }
}

/// Writes a count of messages, which may be a mean over repetitions. A mean below 10 has a decimal unless it
/// is a whole number, because rounding would change a small mean much.
fn message_count(mean: Option<f64>) -> String {
    match mean {
        Some(mean) if mean < 10.0 && mean.fract() > 0.0 => fixed(Some(mean), 1),
        Some(mean) => count(mean.round() as u64),
        None => String::new(),
    }
}

/// Writes the opinion score of a call. A call whose connection did not open has no score.
fn score(cell: &CellView<'_>, name: &str, metric: Metric) -> String {
    let Some(mos) = cell.value(name, metric) else { return String::new() };
    if cell.is_unopened(name) {
        return UNKNOWN.to_owned();
    }
    let text = |mos| Scale::SCORE.text(Some(mos));
    value_or_both_outcomes(cell, name, metric, MOS_CLUSTER_GAP, mos, text)
}

/// The share of messages in time. Returns `None` for a call, which is judged by how it sounds.
fn share_in_time(cell: &CellView<'_>, name: &str) -> Option<f64> {
    if judged_by(cell, name).is_some_and(JudgedBy::is_of_call) {
        return None;
    }
    cell.value(name, Metric::IN_TIME)
}

/// The kind of figure that the flow is judged by. Returns `None` if it is not judged.
fn judged_by(cell: &CellView<'_>, name: &str) -> Option<JudgedBy> {
    cell.runs.iter().find_map(|run| Some(judge(run, name)?.by))
}

/// Writes `value`, which is the mean of `metric`. If the repetitions fall into two clusters whose means
/// differ by `gap` or more, it writes the means of both clusters, because no repetition has the common mean.
fn value_or_both_outcomes(
    cell: &CellView<'_>,
    name: &str,
    metric: Metric,
    gap: f64,
    value: f64,
    text: impl Fn(f64) -> String,
) -> String {
    match cell.two_outcomes(name, metric, gap) {
        Some(clusters) => both_outcomes(&clusters, text),
        None => text(value),
    }
}

/// Makes the row that says how many rows are left out. Returns `None` if no row is left out.
fn row_for_left_out(left_out: usize, columns: usize) -> Option<Row> {
    if left_out == 0 {
        return None;
    }
    let mut cells = vec![String::new(); columns.max(1)];
    cells[0] = format!("and {} more in summary.json", count(left_out as u64));
    Some(Row { cells, role: Role::Plain, display: None })
}

/// Makes the table with one row for each group of copies of a cell. If the cell has several repetitions, a
/// value is the mean or the median over them. Returns `None` if the cell has no groups.
pub(crate) fn groups(cell: &CellView<'_>) -> Option<Grid> {
    let mut columns: Columns<'_, &String> = Columns::new();
    columns.add(Column::words("copies of"), |name| short_name(name));
    // Adds a column with the figure at `path`. Without a `scale` the figure is written in its own unit.
    let mut add = |head: Column, path, scale: Option<Scale>| {
        columns.add(head, move |name| match (cell.value(name, Metric::Group(path)), scale) {
            (Some(value), Some(scale)) => scale.text(Some(value)),
            (Some(value), None) => GROUP.row(path).written(value),
            (None, _) => UNKNOWN.to_owned(),
        });
    };
    add(Column::numbers("", "flows"), "flows", None);
    add(Column::numbers("messages", "sent").omit_order(2), "sent", None);
    add(Column::numbers("messages", "loss %"), "loss_rate", None);
    add(Column::numbers("goodput, Mb/s", "all"), "goodput_bps", Some(Scale::MBPS));
    add(Column::numbers("goodput, Mb/s", "each"), "goodput_bps_mean", Some(Scale::MBPS));
    add(Column::numbers("resent", "%").omit_order(1), "retransmit_rate", None);
    let term = Metric::Group("jain_index").term("Jain's index").about(Topic::Fairness);
    add(Column::numbers("Jain's", "index").explained(term), "jain_index", None);
    // The two directions of a call are no copies. They have rows in the table of flows, and a sentence.
    let is_one_call = |name: &String| cell.flow(&format!("{name}-up")).is_some();
    let grid = columns.grid(cell.groups().filter(|name| !is_one_call(name)));
    (!grid.rows.is_empty()).then_some(grid)
}

/// Makes the table with one row for each link of one repetition. Returns `None` if the arena does not own the
/// path.
pub(crate) fn links(run: &RunSummary) -> Option<Grid> {
    if run.links.is_empty() {
        return None;
    }
    let figure = |path| LINK.row(path);
    let mut columns: Columns<'_, (&String, &LinkSummary)> = Columns::new();
    columns.add(Column::words("link"), |(name, _)| short_name(name));
    columns.add(Column::words("queue"), |(_, link)| discipline(&link.discipline).to_owned());
    columns.add_figure(Column::numbers("", "busy %"), figure("utilisation"));
    columns.add_figure(Column::numbers("queue, packets", "mean"), figure("queue_packets.mean"));
    columns.add_figure(Column::numbers("queue, packets", "p99"), figure("queue_packets.p99"));
    columns.add_figure(Column::numbers("queue, packets", "max"), figure("queue_packets.max"));
    columns.add_figure(Column::numbers("queue, ms", "p50").omit_order(1), figure("queue_delay_ms.p50"));
    columns.add_figure(Column::numbers("queue, ms", "p95").omit_order(2), figure("queue_delay_ms.p95"));
    columns.add_figure(Column::numbers("queue, ms", "p99").omit_order(3), figure("queue_delay_ms.p99"));
    columns.add_figure(Column::numbers("packets", "forwarded").omit_order(4), figure("forwarded"));
    // Summaries of earlier versions do not say why packets were dropped. All of their drops count as a full
    // queue.
    columns.add(Column::numbers("dropped", "full"), |(_, link)| {
        count(link.dropped.saturating_sub(link.dropped_by.aqm))
    });
    columns.add_figure(Column::numbers("dropped", "aqm"), figure("dropped_by.aqm"));
    columns.add_figure(Column::numbers("packets", "marked"), figure("marked"));
    columns.add_figure(Column::numbers("packets", "lost"), figure("lost"));
    // Few paths have wires that do this.
    if run.links.values().any(|link| link.repeated > 0) {
        columns.add_figure(Column::numbers("packets", "repeated"), figure("repeated"));
    }
    if run.links.values().any(|link| link.damaged > 0) {
        columns.add_figure(Column::numbers("packets", "damaged"), figure("damaged"));
    }
    let rows = run.links.iter().take(MAX_ROWS).map(|(name, link)| (name, link.as_ref()));
    let mut grid = columns.grid(rows);
    grid.rows.extend(row_for_left_out(run.links.len().saturating_sub(MAX_ROWS), grid.columns.len()));
    Some(grid)
}

/// Makes the table of ECN marks, with one row for each flow that uses ECN in one repetition. Returns `None`
/// if no packet was marked.
pub(crate) fn ecn_marks(run: &RunSummary) -> Option<Grid> {
    let mut flows: Vec<(&String, &FlowSummary)> = Vec::new();
    let mut has_marks = false;
    for (name, flow) in &run.flows {
        if let Some(ecn) = &flow.ecn {
            has_marks |= has_ecn_marks(ecn);
            flows.push((name, flow));
        }
    }
    if !has_marks {
        return None;
    }
    let figure = |path| FLOW.row(path);
    let mut columns: Columns<'_, (&String, &FlowSummary)> = Columns::new();
    columns.add(Column::words("marks of"), |(name, _)| short_name(name));
    columns.add_figure(Column::words("takes them"), figure("ecn.capable"));
    columns.add_figure(Column::numbers("marked, packets", "out"), figure("ecn.marked_forward"));
    columns.add_figure(Column::numbers("marked, packets", "back"), figure("ecn.marked_return"));
    let meaning = "delivered while the receiver echoed a mark, which it does until the sender has answered (RFC 3168): more than \
                   were marked";
    let echoed = |head| Column::numbers("echoed, packets", head).explained(Term::new("echoed", meaning));
    columns.add_figure(echoed("out"), figure("ecn.echoed_forward"));
    columns.add_figure(echoed("back"), figure("ecn.echoed_return"));
    Some(columns.grid(flows))
}

/// Whether any packet was marked, or any mark was echoed.
fn has_ecn_marks(ecn: &EcnSummary) -> bool {
    let counts = [ecn.marked_forward, ecn.marked_return, ecn.echoed_forward, ecn.echoed_return];
    counts.into_iter().flatten().any(|packets| packets > 0)
}

/// Makes the table of the times in which a flow delivered nothing although it should have, in one repetition.
/// Returns `None` if there were no such times.
pub(crate) fn breaks(run: &RunSummary) -> Option<Grid> {
    let mut rows: Vec<(&String, &BreakSummary)> = Vec::new();
    for (name, flow) in &run.flows {
        rows.extend(flow.breaks.iter().map(|gap| (name, gap)));
    }
    if rows.is_empty() {
        return None;
    }
    let mut columns: Columns<'_, (&String, &BreakSummary)> = Columns::new();
    columns.add(Column::words("broken"), |(name, _)| short_name(name));
    columns.add(Column::numbers("s", "from").omit_order(1), |(_, gap)| fixed(Some(gap.from_s), 1));
    columns.add(Column::numbers("s", "to").omit_order(2), |(_, gap)| match gap.to_s {
        Some(to_s) => fixed(Some(to_s), 1),
        None => "end".to_owned(),
    });
    columns.add(Column::words("what happened"), |(_, gap)| gap.why.clone());
    Some(columns.grid(rows))
}

#[cfg(test)]
mod tests;

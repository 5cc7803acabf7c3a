//! Which column has which figure. The same grids become text and HTML.

mod comparison;
mod machine;
mod titles;

use talkpath_measure::figures::{FLOW, GROUP, LINK, Scale};
use talkpath_measure::summary::{BreakSummary, EcnSummary, FlowSummary, LinkSummary, RunSummary};

pub(crate) use self::comparison::comparison;
pub(crate) use self::machine::{machine, machine_line};
pub(crate) use self::titles::{
    CLUSTERS, DIFFERENCE, ECHOED, IN_TIME, MOS, OPENS, OTHER_RECEIVER, UNFINISHED, WAIT,
};
use self::titles::{OWN_RECEIVER, USABLE, opens_late, shares, short};
use crate::columns::Columns;
use crate::display::discipline;
use crate::grid::{Column, Grid, Role, Row};
use crate::number::{UNKNOWN, count, decimals, fixed, percent};
use crate::usable::UsableCall;
use crate::verdict::{IN_TIME_CLUSTER_GAP, MOS_CLUSTER_GAP};
use crate::view::{CellView, Metric, Quantile};

/// Every flow of one cell: with repetitions, their means and medians (`measure::statistic`).
pub(crate) fn flows(cell: &CellView<'_>) -> Grid {
    let mut names: Vec<&String> = cell.names().collect();
    let left_out = names.len().saturating_sub(MAX_ROWS);
    names.truncate(MAX_ROWS);
    let mut grid = FlowTable { cell, names }.grid();
    grid.rows.extend(more_rows(left_out, grid.columns.len()));
    grid
}

/// A row for each flow of a cell.
struct FlowTable<'a> {
    cell: &'a CellView<'a>,
    names: Vec<&'a String>,
}

/// Columns of rows that are each about the flow of a name.
type FlowColumns<'a> = Columns<'a, &'a String>;

impl<'a> FlowTable<'a> {
    fn grid(&self) -> Grid {
        let cell = self.cell;
        let mut columns = FlowColumns::new();
        columns.add(Column::words("flow"), |name| {
            let copies = cell.summed_up(name).map(|group| format!(", {} copies", count(group.flows)));
            short(name) + &copies.unwrap_or_default()
        });
        columns.add(Column::words("transport"), |name| short(&cell.transport(name).label));
        self.add_messages(&mut columns);
        self.add_score(&mut columns);
        self.add_share_in_time(&mut columns);
        self.add_delays(&mut columns);
        columns.add(Column::numbers("goodput", "Mb/s"), |name| {
            Scale::MBPS.text(cell.value(name, Metric::GoodputBps))
        });
        columns.add(Column::numbers("resent", "%").dispensable(5), |name| {
            percent(cell.value(name, Metric::RetransmitRate))
        });
        self.add_words(&mut columns);
        let look = |name: &&String| (Role::Plain, Some(cell.transport(name).display));
        columns.grid_with(self.names.iter().copied(), look)
    }

    fn any(&self, holds: impl Fn(&str) -> bool) -> bool {
        self.names.iter().any(|name| holds(name))
    }

    fn is_known(&self, metric: Metric) -> bool {
        self.any(|name| self.cell.value(name, metric).is_some())
    }

    /// What became of the messages, and how long it took until the first could leave.
    fn add_messages(&self, columns: &mut FlowColumns<'a>) {
        let cell = self.cell;
        columns.add(Column::numbers("messages", "sent").dispensable(3), |name| {
            messages(cell.value(name, Metric::Sent))
        });
        columns.add(Column::numbers("messages", "lost").dispensable(2), |name| {
            messages(cell.value(name, Metric::Lost))
        });
        columns
            .add(Column::numbers("messages", "loss %"), |name| percent(cell.value(name, Metric::LossRate)));
        if self.any(|name| cell.many_unfinished(name).is_some()) {
            columns
                .add(Column::numbers(UNFINISHED, "%"), |name| percent(cell.value(name, Metric::Unfinished)));
        }
        if self.any(|name| opens_late(cell, name)) {
            columns.add(Column::numbers(OPENS, "ms"), |name| fixed(cell.value(name, Metric::Opening), 1));
        }
    }

    /// A call's score with each receiver.
    fn add_score(&self, columns: &mut FlowColumns<'a>) {
        let cell = self.cell;
        if !self.is_known(Metric::Mos) {
            return;
        }
        let has_second_receiver = self.is_known(Metric::OtherMos);
        let own = if has_second_receiver { OWN_RECEIVER } else { "" };
        columns.add(Column::numbers(own, MOS), |name| score(cell, name, Metric::Mos));
        if has_second_receiver {
            let head = Column::numbers(OTHER_RECEIVER, MOS).dispensable(8);
            columns.add(head, |name| score(cell, name, Metric::OtherMos));
        }
        columns.add(Column::numbers("", USABLE).dispensable(7), |name| {
            UsableCall::new(cell, name).map_or_else(String::new, |call| call.text())
        });
    }

    fn add_share_in_time(&self, columns: &mut FlowColumns<'a>) {
        let cell = self.cell;
        if self.any(|name| share_in_time(cell, name).is_some()) {
            columns.add(Column::numbers(IN_TIME, "%"), |name| {
                let text = |share| percent(Some(share));
                let share = share_in_time(cell, name);
                one_or_two(cell, name, Metric::InTime, IN_TIME_CLUSTER_GAP, share, text)
            });
        }
    }

    /// Delays and their variation. All times share their decimals, so that they can be compared.
    fn add_delays(&self, columns: &mut FlowColumns<'a>) {
        let cell = self.cell;
        let delay = |name: &str, quantile| cell.value(name, Metric::Delay(cell.delay_kind(name), quantile));
        let times = |name: &&String| {
            let delays = [Quantile::P50, Quantile::P90, Quantile::P99].map(|quantile| delay(name, quantile));
            delays.into_iter().chain([cell.value(name, Metric::Ipdv90)]).flatten()
        };
        let longest =
            self.names.iter().flat_map(times).fold(0.0, |longest: f64, time| longest.max(time.abs()));
        let digits = decimals(longest);
        let kind = Column { group: "delay, ms".to_owned(), ..Column::words("of") };
        columns.add(kind, move |name| {
            let kind = cell.delay_kind(name);
            delay(name, Quantile::P50).map_or_else(String::new, |_| kind.abbreviation().to_owned())
        });
        let mut add = |head: Column, quantile| {
            columns.add(head, move |name| fixed(delay(name, quantile), digits));
        };
        add(Column::numbers("delay, ms", "p50"), Quantile::P50);
        add(Column::numbers("delay, ms", "p90").dispensable(6), Quantile::P90);
        add(Column::numbers("delay, ms", "p99"), Quantile::P99);
        columns.add(Column::numbers("jitter", "ms").dispensable(4), move |name| {
            fixed(cell.value(name, Metric::Ipdv90), digits)
        });
    }

    /// How a burst is called.
    fn add_words(&self, columns: &mut FlowColumns<'a>) {
        let cell = self.cell;
        let in_words = |name: &str| cell.flow(name).and_then(|flow| flow.verdict.as_deref());
        if self.any(|name| in_words(name).is_some()) {
            let head = Column::words("in words").dispensable(1);
            columns.add(head, move |name| in_words(name).map_or_else(String::new, short));
        }
    }
}

/// A count of messages. Of few lost messages the mean over the repetitions is no whole number.
fn messages(mean: Option<f64>) -> String {
    mean.map_or_else(String::new, |mean| match mean {
        mean if mean < 10.0 && mean.fract() > 0.0 => fixed(Some(mean), 1),
        mean => count(mean.round() as u64),
    })
}

/// A call's score, or both if there are two outcomes.
fn score(cell: &CellView<'_>, name: &str, metric: Metric) -> String {
    if cell.is_unopened(name) && cell.value(name, metric).is_some() {
        return UNKNOWN.to_owned();
    }
    let text = |mos| Scale::SCORE.text(Some(mos));
    one_or_two(cell, name, metric, MOS_CLUSTER_GAP, cell.value(name, metric), text)
}

/// The share in time of a flow that is no call.
fn share_in_time(cell: &CellView<'_>, name: &str) -> Option<f64> {
    let is_call = cell.value(name, Metric::Mos).is_some();
    cell.value(name, Metric::InTime).filter(|_| !is_call)
}

/// `value` of `metric`, or both clusters of its repetitions if there are two; nothing if it is not known.
fn one_or_two(
    cell: &CellView<'_>,
    name: &str,
    metric: Metric,
    gap: f64,
    value: Option<f64>,
    text: impl Fn(f64) -> String,
) -> String {
    let Some(value) = value else { return String::new() };
    match cell.two_outcomes(name, metric, gap) {
        Some(found) => shares(&found, text),
        None => text(value),
    }
}

/// The row that counts those that are left out of a table with this many columns.
fn more_rows(left_out: usize, columns: usize) -> Option<Row> {
    let text = format!("and {} more in summary.json", count(left_out as u64));
    let cells = [text].into_iter().chain(vec![String::new(); columns.saturating_sub(1)]);
    (left_out > 0).then(|| Row { cells: cells.collect(), role: Role::Plain, display: None })
}

/// Rows of a table of flows or links. Chosen: as many copies as summary.json has one by one.
const MAX_ROWS: usize = 500;

/// Every group of copies of one cell: with repetitions, their means and medians. `None` if there are none.
pub(crate) fn groups(cell: &CellView<'_>) -> Option<Grid> {
    let mut columns: Columns<'_, &String> = Columns::new();
    columns.add(Column::words("copies of"), |name| short(name));
    let mut add = |group, head, rank, path, scale: Option<Scale>| {
        let figure = GROUP.row(path);
        columns.add(Column::numbers(group, head).dispensable(rank), move |name| {
            let value = cell.value(name, Metric::Group(path));
            let text = |value| scale.map_or_else(|| figure.written(value), |scale| scale.text(Some(value)));
            value.map_or_else(|| UNKNOWN.to_owned(), text)
        });
    };
    add("", "flows", 0, "flows", None);
    add("messages", "sent", 2, "sent", None);
    add("messages", "loss %", 0, "loss_rate", None);
    add("goodput, Mb/s", "all", 0, "goodput_bps", Some(Scale::MBPS));
    add("goodput, Mb/s", "each", 0, "goodput_bps_mean", Some(Scale::MBPS));
    add("resent", "%", 1, "retransmit_rate", None);
    add("Jain's", "index", 0, "jain_index", None);
    let grid = columns.grid(cell.groups());
    (!grid.rows.is_empty()).then_some(grid)
}

/// Every link of one repetition; `None` if the arena does not own the path.
pub(crate) fn links(run: &RunSummary) -> Option<Grid> {
    let figure = |path| LINK.row(path);
    let mut columns: Columns<'_, (&String, &LinkSummary)> = Columns::new();
    columns.add(Column::words("link"), |(name, _)| short(name));
    columns.add(Column::words("queue"), |(_, link)| discipline(&link.discipline).to_owned());
    columns.add_figure(Column::numbers("", "busy %"), figure("utilisation"));
    columns.add_figure(Column::numbers("queue, packets", "mean"), figure("queue_packets.mean"));
    columns.add_figure(Column::numbers("queue, packets", "p99"), figure("queue_packets.p99"));
    columns.add_figure(Column::numbers("queue, packets", "max"), figure("queue_packets.max"));
    columns.add_figure(Column::numbers("queue, ms", "p50").dispensable(1), figure("queue_delay_ms.p50"));
    columns.add_figure(Column::numbers("queue, ms", "p95").dispensable(1), figure("queue_delay_ms.p95"));
    columns.add_figure(Column::numbers("queue, ms", "p99").dispensable(1), figure("queue_delay_ms.p99"));
    columns.add_figure(Column::numbers("packets", "forwarded").dispensable(1), figure("forwarded"));
    // Summaries of earlier versions have no drops by cause.
    columns.add(Column::numbers("dropped", "full"), |(_, link)| {
        count(link.dropped - link.dropped_by.aqm.min(link.dropped))
    });
    columns.add_figure(Column::numbers("dropped", "aqm"), figure("dropped_by.aqm"));
    columns.add_figure(Column::numbers("packets", "marked"), figure("marked"));
    columns.add_figure(Column::numbers("packets", "lost"), figure("lost"));
    let rows = run.links.iter().take(MAX_ROWS).map(|(name, link)| (name, link.as_ref()));
    let mut grid = columns.grid(rows);
    grid.rows.extend(more_rows(run.links.len().saturating_sub(MAX_ROWS), grid.columns.len()));
    (!run.links.is_empty()).then_some(grid)
}

/// The marks of each flow that ECN was wanted for, in one repetition; `None` if nothing was marked.
pub(crate) fn marks(run: &RunSummary) -> Option<Grid> {
    let flows =
        || run.flows.iter().map(|(name, flow)| (name, flow.as_ref())).filter(|(_, flow)| flow.ecn.is_some());
    let counts = |ecn: EcnSummary| {
        [ecn.marked_forward, ecn.marked_return, ecn.echoed_forward, ecn.echoed_return].into_iter().flatten()
    };
    if !flows().filter_map(|(_, flow)| flow.ecn).flat_map(counts).any(|packets| packets > 0) {
        return None;
    }
    let figure = |path| FLOW.row(path);
    let mut columns: Columns<'_, (&String, &FlowSummary)> = Columns::new();
    columns.add(Column::words("marks of"), |(name, _)| short(name));
    columns.add_figure(Column::words("takes them"), figure("ecn.capable"));
    columns.add_figure(Column::numbers("marked, packets", "out"), figure("ecn.marked_forward"));
    columns.add_figure(Column::numbers("marked, packets", "back"), figure("ecn.marked_return"));
    columns.add_figure(Column::numbers(ECHOED, "out"), figure("ecn.echoed_forward"));
    columns.add_figure(Column::numbers(ECHOED, "back"), figure("ecn.echoed_return"));
    Some(columns.grid(flows()))
}

/// When flows delivered nothing although they should have, in one repetition; `None` if that never was.
pub(crate) fn breaks(run: &RunSummary) -> Option<Grid> {
    let mut columns: Columns<'_, (&String, &BreakSummary)> = Columns::new();
    columns.add(Column::words("broken"), |(name, _)| short(name));
    columns.add(Column::numbers("s", "from").dispensable(1), |(_, gap)| fixed(Some(gap.from_s), 1));
    columns.add(Column::numbers("s", "to").dispensable(1), |(_, gap)| {
        gap.to_s.map_or_else(|| "end".to_owned(), |to| fixed(Some(to), 1))
    });
    columns.add(Column::words("what happened"), |(_, gap)| gap.why.clone());
    let breaks = run.flows.iter().flat_map(|(name, flow)| flow.breaks.iter().map(move |gap| (name, gap)));
    let grid = columns.grid(breaks);
    (!grid.rows.is_empty()).then_some(grid)
}

#[cfg(test)]
mod tests;

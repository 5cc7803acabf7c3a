//! Which figures stand in which column. The same grids become text and HTML.

use talkpath_measure::figures::{FLOW, GROUP, LINK, Scale};
use talkpath_measure::judge::Receiver;
use talkpath_measure::metrics::playout::OTHER_WAIT_TEXT;
use talkpath_measure::ranking::Standing;
use talkpath_measure::ranking::clusters::Clusters;
use talkpath_measure::summary::{BreakSummary, EcnSummary, FlowSummary, JudgedBy, LinkSummary, RunSummary};

use crate::columns::Columns;
use crate::display::discipline;
use crate::grid::{Column, Grid, Role, Row, printable};
use crate::number::{UNKNOWN, count, decimals, fixed, percent};
use crate::usable::{Usable, UsableCall, with_both};
use crate::verdict::{self, Beside, Cause, IN_TIME_CLUSTER_GAP, MOS_CLUSTER_GAP, Verdict};
use crate::view::{CellView, Condition, Metric, Quantile};

/// How many flows beside the compared one get columns of their own.
const OTHER_FLOWS: usize = 2;

/// The comparison of transports: one row a cell. The columns of the answer stand first.
pub(crate) fn comparison(condition: &Condition<'_>, flow: &str, verdict: Option<&Verdict>) -> Grid {
    let kind = condition.delay_kind(flow);
    let others = condition.beside(flow);
    let others = &others[..others.len().min(OTHER_FLOWS)];
    let flow_of = |cell: &CellView<'_>, other: Option<&str>| match other {
        Some(other) => other.to_owned(),
        None => cell.resolve(flow).unwrap_or(flow).to_owned(),
    };
    let is_known =
        |metric| condition.cells.iter().any(|cell| cell.value(&flow_of(cell, None), metric).is_some());
    let is_call = is_known(Metric::NotPlayed);
    let delay = format!("{}, ms", kind.name());
    let mut columns: Vec<MetricColumn<'_>> = Vec::new();
    let mut add = |metric, scale, group: &str, head: &str, keep| {
        columns.push((None, metric, scale, Column::numbers(group, head, keep)));
    };
    if condition.cells.iter().any(|cell| opens_late(cell, &flow_of(cell, None))) {
        add(Metric::Opening, Scale::MS, OPENS, "ms", 0);
    }
    if is_call {
        add(Metric::MouthToEar50, Scale::MS, "mouth to", "ear, ms", 0);
        add(Metric::NotPlayed, Scale::PERCENT, "late or", "missing %", 0);
    }
    let keep = if is_call { 5 } else { 0 };
    add(Metric::Delay(kind, Quantile::P50), Scale::MS, &delay, "p50", keep);
    add(Metric::Delay(kind, Quantile::P90), Scale::MS, &delay, "p90", keep);
    add(Metric::Delay(kind, Quantile::P99), Scale::MS, &delay, "p99", keep);
    if is_known(Metric::TurnRound99) {
        add(Metric::TurnRound99, Scale::MS, TURN_ROUND, "p99", 6);
    }
    add(Metric::Ipdv90, Scale::MS, "jitter", "ms", 3);
    add(Metric::LossRate, Scale::PERCENT, "loss", "%", if is_call { 4 } else { 0 });
    if condition.cells.iter().any(|cell| cell.many_unfinished(&flow_of(cell, None)).is_some()) {
        add(Metric::Unfinished, Scale::PERCENT, UNFINISHED, "%", 0);
    }
    if !is_call && verdict.is_none() && is_known(Metric::InTime) {
        add(Metric::InTime, Scale::PERCENT, IN_TIME, "%", 0);
    }
    if verdict.is_none_or(|verdict| verdict.by != JudgedBy::Goodput) {
        add(Metric::GoodputBps, Scale::KBPS, "goodput", "kb/s", 2);
    }
    // Of transfers the copies together.
    let is_transfer = verdict.is_none_or(|verdict| verdict.by == JudgedBy::Goodput);
    if is_transfer && !is_call && condition.cells.iter().any(|cell| cell.groups().any(|group| group == flow))
    {
        add_copies(&mut columns, flow, "all flows", 0);
    }
    for (index, other) in others.iter().enumerate() {
        let keep = if index == 0 { 0 } else { 1 };
        let other = match other {
            Beside::Copies { group, flows } => {
                let name = format!("{}, {} copies", short(group), count(*flows));
                add_copies(&mut columns, group, &name, keep);
                continue;
            }
            Beside::Flow(other) => other,
        };
        let name = short(other);
        let mut add = |metric, scale, head: &str, keep| {
            columns.push((Some(other), metric, scale, Column::numbers(&name, head, keep)));
        };
        // What the answer says of it.
        match condition.judged_by(other) {
            Some(JudgedBy::Mos) => add(Metric::Mos, Scale::SCORE, MOS, keep),
            Some(JudgedBy::InTime) => {
                let kind = condition.delay_kind(other);
                add(Metric::InTime, Scale::PERCENT, "in time %", keep);
                let p99 = format!("p99 {}, ms", kind.abbreviation());
                add(Metric::Delay(kind, Quantile::P99), Scale::MS, &p99, keep);
            }
            Some(JudgedBy::Goodput) | None => {
                add(Metric::GoodputBps, Scale::MBPS, "Mb/s", keep);
                let keep = if index == 0 { 4 } else { 1 };
                add(Metric::RetransmitRate, Scale::PERCENT, "resent %", keep);
            }
        }
    }
    let rows = condition.cells.iter().map(|cell| {
        let values = columns.iter().map(|(other, metric, ..)| cell.value(&flow_of(cell, *other), *metric));
        values.collect::<Vec<_>>()
    });
    let rows: Vec<Vec<Option<f64>>> = rows.collect();
    let scales: Vec<Scale> = columns.iter().map(|(_, _, scale, _)| *scale).collect();
    let decimals = column_decimals(&rows, &scales);
    let answer = verdict.map(|verdict| answer_columns(condition, flow, verdict)).unwrap_or_default();
    let (answer_heads, answer_cells): (Vec<Column>, Vec<Vec<String>>) = answer.into_iter().unzip();
    let heads = [Column::words("transport")].into_iter().chain(answer_heads);
    let mut grid =
        Grid { columns: heads.chain(columns.into_iter().map(|it| it.3)).collect(), rows: Vec::new() };
    for (index, (cell, values)) in condition.cells.iter().zip(&rows).enumerate() {
        let transport = cell.transport(flow);
        let texts = values.iter().zip(&scales).zip(&decimals);
        let texts = texts
            .map(|((value, scale), &decimals)| Scale { decimals: Some(decimals), ..*scale }.text(*value));
        let answer = answer_cells.iter().map(|cells| cells[index].clone());
        let is_best = verdict.is_some_and(|verdict| verdict.best.contains(&index));
        grid.rows.push(Row {
            cells: [row_name(cell, &transport.label)].into_iter().chain(answer).chain(texts).collect(),
            role: if is_best { Role::Best } else { Role::Plain },
            display: Some(transport.display),
        });
    }
    grid
}

/// A column of the comparison: another flow than the compared one, if it is about one, what it shows of it,
/// how that is written, and its head.
type MetricColumn<'a> = (Option<&'a str>, Metric, Scale, Column);

/// The columns of the copies of `group` together.
fn add_copies<'a>(columns: &mut Vec<MetricColumn<'a>>, group: &'a str, title: &str, keep: u8) {
    let mut add = |path, scale, head: &str, keep| {
        columns.push((Some(group), Metric::Group(path), scale, Column::numbers(title, head, keep)));
    };
    add("goodput_bps", Scale::MBPS, "Mb/s", keep);
    add("jain_index", Scale::INDEX, JAIN, keep.max(1));
    add("retransmit_rate", Scale::PERCENT, "resent %", keep.max(4));
}

/// What the answer rests on, a column with one text a cell: the figure that the flow is judged by, its
/// difference to the leader, two clusters if there are any, and the wait that is the cause if nothing is
/// usable.
fn answer_columns(condition: &Condition<'_>, flow: &str, verdict: &Verdict) -> Vec<(Column, Vec<String>)> {
    let standings = || {
        condition.cells.iter().enumerate().map(|(index, _)| {
            let at = verdict.judged.iter().position(|judged| *judged == index)?;
            verdict.ranking.standings.get(at)
        })
    };
    let written = verdict::written(verdict.by);
    let figure = |value: f64| written.number(value);
    // The worst of the scale is no score of a connection that did not open.
    let is_open: Vec<bool> = condition.cells.iter().map(|cell| !cell.is_unopened(flow)).collect();
    let texts = |text: &dyn Fn(&Standing) -> String| -> Vec<String> {
        let open = standings().zip(&is_open).map(|(standing, is_open)| standing.filter(|_| *is_open));
        open.map(|standing| standing.map_or_else(|| UNKNOWN.to_owned(), text)).collect()
    };
    let other = verdict.other.as_deref();
    let group = other.map_or(written.head.0, |_| OWN_RECEIVER);
    let name = Column::numbers(group, written.head.1, 0);
    // Of two outcomes both: no repetition has their mean.
    let judged = |standing: &Standing| match standing.clusters {
        Some(found) => format!("{} or {}", figure(found.low), figure(found.high)),
        None => figure(standing.mean),
    };
    let mut columns = vec![(name, texts(&judged))];
    // The cells of both answers are the same.
    let beside = |standing: &Standing| {
        let at = verdict.ranking.standings.iter().position(|it| core::ptr::eq(it, standing))?;
        other?.ranking.standings.get(at)
    };
    if other.is_some() {
        let name = Column::numbers(OTHER_RECEIVER, written.head.1, 0);
        columns.push((name, texts(&|standing| beside(standing).map_or_else(String::new, judged))));
    }
    // Any goodput is usable.
    if verdict.by != JudgedBy::Goodput {
        let usable = |cell: &CellView<'_>, receiver| {
            Usable::new(&cell.judged_with(flow, receiver)).map(|usable| usable.text())
        };
        let with_each = |cell: &CellView<'_>| {
            let other = other.and_then(|_| usable(cell, Receiver::Other));
            usable(cell, Receiver::Own).map(|own| with_both(&own, other.as_deref()))
        };
        let texts = condition.cells.iter().map(|cell| with_each(cell).unwrap_or_else(|| UNKNOWN.to_owned()));
        columns.push((Column::numbers("", USABLE, 0), texts.collect()));
    }
    if standings().flatten().any(|standing| standing.difference.is_some()) {
        let to = |standing: &Standing| {
            if standing.is_off_scale {
                return UNKNOWN.to_owned();
            }
            let ends = standing.difference.map(|(low, high)| [low, high].map(|end| written.signed(end)));
            ends.map_or_else(String::new, |[low, high]| format!("{low} to {high}"))
        };
        let leader = condition.cells.get(verdict.first).map(|cell| short(&cell.transport(flow).label));
        let head = Column::numbers(&format!("{DIFFERENCE}{}", leader.unwrap_or_default()), "95 %", 6);
        columns.push((head, texts(&to)));
    }
    if standings().flatten().any(|standing| standing.clusters.is_some()) {
        let both = |standing: &Standing| {
            let Some(found) = standing.clusters else { return String::new() };
            shares(&found, figure)
        };
        columns.push((Column::numbers(CLUSTERS, "(share)", 0), texts(&both)));
    }
    if let Some(Cause::Queue(link, ..)) = &verdict.cause {
        let waits = condition.cells.iter().map(|cell| fixed(verdict::wait(cell, link), 1)).collect();
        columns.push((Column::numbers(&format!("{WAIT}{}", short(link)), "ms", 0), waits));
    }
    columns
}

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

/// Every flow of one cell: with repetitions, their means and medians (`measure::statistic`).
pub(crate) fn flows(cell: &CellView<'_>) -> Grid {
    let mut names: Vec<&String> = cell.names().collect();
    let left_out = names.len().saturating_sub(MAX_ROWS);
    names.truncate(MAX_ROWS);
    let has = |metric| names.iter().any(|name| cell.value(name, metric).is_some());
    let mut columns: Columns<'_, &String> = Columns::new();
    columns.add(Column::words("flow"), |name| {
        let copies = cell.summed_up(name).map(|group| format!(", {} copies", count(group.flows)));
        short(name) + &copies.unwrap_or_default()
    });
    columns.add(Column::words("transport"), |name| short(&cell.transport(name).label));
    columns.add(Column::numbers("messages", "sent", 3), |name| messages(cell.value(name, Metric::Sent)));
    columns.add(Column::numbers("messages", "lost", 2), |name| messages(cell.value(name, Metric::Lost)));
    columns.add(Column::numbers("messages", "loss %", 0), |name| percent(cell.value(name, Metric::LossRate)));
    if names.iter().any(|name| cell.many_unfinished(name).is_some()) {
        columns
            .add(Column::numbers(UNFINISHED, "%", 0), |name| percent(cell.value(name, Metric::Unfinished)));
    }
    if names.iter().any(|name| opens_late(cell, name)) {
        columns.add(Column::numbers(OPENS, "ms", 0), |name| fixed(cell.value(name, Metric::Opening), 1));
    }
    if has(Metric::Mos) {
        let has_others = has(Metric::OtherMos);
        let own = if has_others { OWN_RECEIVER } else { "" };
        columns.add(Column::numbers(own, MOS, 0), |name| score(cell, name, Metric::Mos));
        if has_others {
            let head = Column::numbers(OTHER_RECEIVER, MOS, 8);
            columns.add(head, |name| score(cell, name, Metric::OtherMos));
        }
        columns.add(Column::numbers("", USABLE, 7), |name| {
            UsableCall::of(cell, name).map_or_else(String::new, |call| call.text())
        });
    }
    if names.iter().any(|name| share_in_time(cell, name).is_some()) {
        columns.add(Column::numbers(IN_TIME, "%", 0), |name| {
            let text = |share| percent(Some(share));
            one_or_two(cell, name, Metric::InTime, IN_TIME_CLUSTER_GAP, share_in_time(cell, name), text)
        });
    }
    let delay = |name: &str, quantile| cell.value(name, Metric::Delay(cell.delay_kind(name), quantile));
    columns.add(Column { group: "delay, ms".to_owned(), ..Column::words("of") }, move |name| {
        let kind = cell.delay_kind(name);
        delay(name, Quantile::P50).map_or_else(String::new, |_| kind.abbreviation().to_owned())
    });
    // All times share their decimals, so that they can be compared.
    let times = |name: &&String| {
        let delays = [Quantile::P50, Quantile::P90, Quantile::P99].map(|quantile| delay(name, quantile));
        delays.into_iter().chain([cell.value(name, Metric::Ipdv90)]).flatten()
    };
    let digits = decimals(names.iter().flat_map(times).fold(0.0, |a: f64, b| a.max(b.abs())));
    for (quantile, head, rank) in
        [(Quantile::P50, "p50", 0), (Quantile::P90, "p90", 6), (Quantile::P99, "p99", 0)]
    {
        let head = Column::numbers("delay, ms", head, rank);
        columns.add(head, move |name| fixed(delay(name, quantile), digits));
    }
    columns
        .add(Column::numbers("jitter", "ms", 4), move |name| fixed(cell.value(name, Metric::Ipdv90), digits));
    columns.add(Column::numbers("goodput", "Mb/s", 0), |name| {
        Scale::MBPS.text(cell.value(name, Metric::GoodputBps))
    });
    columns.add(Column::numbers("resent", "%", 5), |name| percent(cell.value(name, Metric::RetransmitRate)));
    let in_words = |name: &str| cell.flow(name).and_then(|flow| flow.verdict.as_deref());
    if names.iter().any(|name| in_words(name).is_some()) {
        let head = Column { dispensable: 1, ..Column::words("in words") };
        columns.add(head, move |name| in_words(name).map_or_else(String::new, short));
    }
    let mut grid =
        columns.grid_with(names.iter().copied(), |name| (Role::Plain, Some(cell.transport(name).display)));
    grid.rows.extend(more_rows(left_out, grid.columns.len()));
    grid
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

/// Whether the flow opened after more than two round trips, or never, so that a reader has to know.
fn opens_late(cell: &CellView<'_>, name: &str) -> bool {
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
fn shares(found: &Clusters, text: impl Fn(f64) -> String) -> String {
    let share = (found.low_share * 100.0).round();
    format!("{} ({share} %), {} ({} %)", text(found.low), text(found.high), 100.0 - share)
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
        columns.add(Column::numbers(group, head, rank), move |name| {
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
    columns.add_figure(Column::numbers("", "busy %", 0), figure("utilisation"));
    columns.add_figure(Column::numbers("queue, packets", "mean", 0), figure("queue_packets.mean"));
    columns.add_figure(Column::numbers("queue, packets", "p99", 0), figure("queue_packets.p99"));
    columns.add_figure(Column::numbers("queue, packets", "max", 0), figure("queue_packets.max"));
    columns.add_figure(Column::numbers("queue, ms", "p50", 1), figure("queue_delay_ms.p50"));
    columns.add_figure(Column::numbers("queue, ms", "p95", 1), figure("queue_delay_ms.p95"));
    columns.add_figure(Column::numbers("queue, ms", "p99", 1), figure("queue_delay_ms.p99"));
    columns.add_figure(Column::numbers("packets", "forwarded", 1), figure("forwarded"));
    // Summaries of earlier versions have no drops by cause.
    columns.add(Column::numbers("dropped", "full", 0), |(_, link)| {
        count(link.dropped - link.dropped_by.aqm.min(link.dropped))
    });
    columns.add_figure(Column::numbers("dropped", "aqm", 0), figure("dropped_by.aqm"));
    columns.add_figure(Column::numbers("packets", "marked", 0), figure("marked"));
    columns.add_figure(Column::numbers("packets", "lost", 0), figure("lost"));
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
    columns.add_figure(Column::numbers("marked, packets", "out", 0), figure("ecn.marked_forward"));
    columns.add_figure(Column::numbers("marked, packets", "back", 0), figure("ecn.marked_return"));
    columns.add_figure(Column::numbers(ECHOED, "out", 0), figure("ecn.echoed_forward"));
    columns.add_figure(Column::numbers(ECHOED, "back", 0), figure("ecn.echoed_return"));
    Some(columns.grid(flows()))
}

/// When flows delivered nothing although they should have, in one repetition; `None` if that never was.
pub(crate) fn breaks(run: &RunSummary) -> Option<Grid> {
    let mut columns: Columns<'_, (&String, &BreakSummary)> = Columns::new();
    columns.add(Column::words("broken"), |(name, _)| short(name));
    columns.add(Column::numbers("s", "from", 1), |(_, it)| fixed(Some(it.from_s), 1));
    columns.add(Column::numbers("s", "to", 1), |(_, it)| {
        it.to_s.map_or_else(|| "end".to_owned(), |to| fixed(Some(to), 1))
    });
    columns.add(Column::words("what happened"), |(_, it)| it.why.clone());
    let breaks = run.flows.iter().flat_map(|(name, flow)| flow.breaks.iter().map(move |it| (name, it)));
    let grid = columns.grid(breaks);
    (!grid.rows.is_empty()).then_some(grid)
}

/// What the machine did to one repetition; `None` in `sim`.
pub(crate) fn machine(run: &RunSummary) -> Option<Grid> {
    let machine = run.machine.as_ref()?;
    let late = [
        ("emulator's writes", &machine.emulator_late_ms),
        ("emulator's backlog", &machine.emulator_backlog_ms),
        ("senders here", &machine.senders_late_ms),
        ("senders at the far host", &machine.far_senders_late_ms),
    ];
    let mut columns: Columns<'_, (String, [f64; 3])> = Columns::new();
    columns.add(Column::words("late on this machine"), |(name, _)| name.clone());
    columns.add(Column::numbers("ms", "p50", 0), |(_, [p50, ..])| fixed(Some(*p50), 3));
    columns.add(Column::numbers("ms", "p99", 0), |(_, [_, p99, _])| fixed(Some(*p99), 3));
    columns.add(Column::numbers("ms", "max", 0), |(_, [.., max])| fixed(Some(*max), 3));
    let rows = late.iter().filter_map(|(name, late)| {
        let late = late.as_ref()?;
        Some(((*name).to_owned(), [late.p50, late.p99, late.max]))
    });
    let turns = run.flows.iter().filter_map(|(name, flow)| {
        let turns = flow.turn_round_ms.as_ref()?;
        Some((format!("turn-round of {}", short(name)), [turns.p50, turns.p99, turns.max]))
    });
    let grid = columns.grid(rows.chain(turns));
    (!grid.rows.is_empty()).then_some(grid)
}

/// What else the machine did to one repetition, in a sentence.
pub(crate) fn machine_line(run: &RunSummary) -> Option<String> {
    let machine = run.machine.as_ref()?;
    let mut parts = Vec::new();
    if let Some(real_time) = machine.real_time {
        parts.push(if real_time { "real-time priority" } else { "no real-time priority" }.to_owned());
    }
    if machine.stolen_share.is_some_and(|share| share > 0.0) {
        parts.push(format!(
            "{} % of its processors' time taken by a hypervisor",
            percent(machine.stolen_share)
        ));
    }
    if let (Some(stops @ 1..), Some(longest)) = (machine.stops, machine.longest_stop_ms) {
        let times = if stops == 1 { "once".to_owned() } else { format!("{} times", count(stops)) };
        parts.push(format!("the path stood still {times}, {longest:.1} ms at most"));
    }
    if let Some(packets) = machine.packets {
        let share = percent(machine.emulator_cpu_share);
        parts.push(format!("{} packets through the emulator on {share} % of a processor", count(packets)));
    }
    if let Some(drops) = machine.device_drops {
        parts.push(format!("{} dropped by its devices", count(drops)));
    }
    if let Some(drops) = machine.socket_drops {
        parts.push(format!("{} dropped by receiving sockets", count(drops)));
    }
    let damaged = [(machine.checksum_errors, "here"), (machine.far_checksum_errors, "at the far host")];
    for (errors, place) in damaged {
        if let Some(errors @ 1..) = errors {
            parts.push(format!("{} UDP datagrams {place} with a wrong checksum", count(errors)));
        }
    }
    (!parts.is_empty()).then(|| format!("Machine: {}.", parts.join(", ")))
}

/// A name that leaves room for figures: names are anybody's text.
fn short(name: &str) -> String {
    let name = printable(name);
    match name.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name,
    }
}

/// Of several runs on a page the end of the name says which run it is.
fn row_name(cell: &CellView<'_>, label: &str) -> String {
    if cell.is_of_several() { printable(label) } else { short(label) }
}

/// Characters of a name that a table shows; chosen.
const MAX_NAME: usize = 32;

/// What the echoing host took of a round trip.
pub(crate) const TURN_ROUND: &str = "turn-round, ms";
/// Titles the column of the times to open, where one is long.
pub(crate) const OPENS: &str = "opens after,";

/// Decimals for each column: all milliseconds share theirs, so that delays can be compared across columns.
fn column_decimals(rows: &[Vec<Option<f64>>], scales: &[Scale]) -> Vec<usize> {
    let largest = |wanted: &dyn Fn(usize) -> bool| {
        let figures = rows.iter().flat_map(|row| row.iter().enumerate().filter(|(at, _)| wanted(*at)));
        figures.filter_map(|(_, figure)| *figure).fold(0.0, |a: f64, figure| a.max(figure.abs()))
    };
    let ms = decimals(largest(&|at| scales[at] == Scale::MS));
    scales.iter().map(|scale| scale.decimals.unwrap_or(ms)).collect()
}

#[cfg(test)]
mod tests;

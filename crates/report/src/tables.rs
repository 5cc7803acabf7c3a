//! Which figures stand in which column. The same grids become text and HTML.

use talkpath_measure::ranking::Standing;
use talkpath_measure::ranking::clusters::Clusters;
use talkpath_measure::summary::{EcnSummary, JudgedBy, LinkSummary, QueueDelayMs, RunSummary};

use crate::display::discipline;
use crate::grid::{Column, Grid, Role, Row, printable};
use crate::number::{UNKNOWN, count, decimals, fixed, percent};
use crate::usable::{Usable, UsableCall, with_both};
use crate::verdict::{self, Cause, IN_TIME_CLUSTER_GAP, MOS_CLUSTER_GAP, Verdict};
use crate::view::{CellView, Condition, Metric, Quantile};

/// How many flows beside the compared one get columns of their own.
const OTHER_FLOWS: usize = 2;

/// The comparison of transports: one row a cell. The columns of the answer stand first.
pub(crate) fn comparison(condition: &Condition<'_>, flow: &str, verdict: Option<&Verdict>) -> Grid {
    let kind = condition.delay_kind(flow);
    let others = condition.other_flows(flow);
    let others = &others[..others.len().min(OTHER_FLOWS)];
    let flow_of = |cell: &CellView<'_>, other: Option<&str>| match other {
        Some(other) => other.to_owned(),
        None => cell.resolve(flow).unwrap_or(flow).to_owned(),
    };
    let is_known =
        |metric| condition.cells.iter().any(|cell| cell.value(&flow_of(cell, None), metric).is_some());
    let is_call = is_known(Metric::NotPlayed);
    let delay = format!("{}, ms", kind.name());
    let mut columns: Vec<(Option<&str>, Metric, Scale, Column)> = Vec::new();
    let mut add = |metric, scale, group: &str, head: &str, keep| {
        columns.push((None, metric, scale, Column::numbers(group, head, keep)));
    };
    if condition.cells.iter().any(|cell| opens_late(cell, &flow_of(cell, None))) {
        add(Metric::Opening, Scale::Ms, OPENS, "ms", 0);
    }
    if is_call {
        add(Metric::MouthToEar50, Scale::Ms, "mouth to", "ear, ms", 0);
        add(Metric::NotPlayed, Scale::Percent, "late or", "missing %", 0);
    }
    let keep = if is_call { 5 } else { 0 };
    add(Metric::Delay(kind, Quantile::P50), Scale::Ms, &delay, "p50", keep);
    add(Metric::Delay(kind, Quantile::P90), Scale::Ms, &delay, "p90", keep);
    add(Metric::Delay(kind, Quantile::P99), Scale::Ms, &delay, "p99", keep);
    if is_known(Metric::TurnRound99) {
        add(Metric::TurnRound99, Scale::Ms, TURN_ROUND, "p99", 6);
    }
    add(Metric::Ipdv90, Scale::Ms, "jitter", "ms", 3);
    add(Metric::LossRate, Scale::Percent, "loss", "%", if is_call { 4 } else { 0 });
    if !is_call && verdict.is_none() && is_known(Metric::InTime) {
        add(Metric::InTime, Scale::Percent, IN_TIME, "%", 0);
    }
    if verdict.is_none_or(|verdict| verdict.by != JudgedBy::Goodput) {
        add(Metric::GoodputBps, Scale::Kbps, "goodput", "kb/s", 2);
    }
    for (index, other) in others.iter().enumerate() {
        let name = short(other);
        let keep = if index == 0 { 0 } else { 1 };
        let mut add = |metric, scale, head: &str, keep| {
            columns.push((Some(other), metric, scale, Column::numbers(&name, head, keep)));
        };
        // What the answer says of it.
        match condition.judged_by(other) {
            Some(JudgedBy::Mos) => add(Metric::Mos, Scale::Score, MOS, keep),
            Some(JudgedBy::InTime) => {
                let kind = condition.delay_kind(other);
                add(Metric::InTime, Scale::Percent, "in time %", keep);
                let p99 = format!("p99 {}, ms", kind.abbreviation());
                add(Metric::Delay(kind, Quantile::P99), Scale::Ms, &p99, keep);
            }
            Some(JudgedBy::Goodput) | None => {
                add(Metric::GoodputBps, Scale::Mbps, "Mb/s", keep);
                let keep = if index == 0 { 4 } else { 1 };
                add(Metric::RetransmitRate, Scale::Percent, "resent %", keep);
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
        let texts = texts.map(|((value, scale), decimals)| scale.text(*value, *decimals));
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
    let texts = |text: &dyn Fn(&Standing) -> String| -> Vec<String> {
        standings().map(|standing| standing.map_or_else(|| UNKNOWN.to_owned(), text)).collect()
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
        let usable = |standing: &Standing| {
            let Standing { mean, clusters, barred, .. } = *standing;
            Usable { mean, clusters, barred, floor: verdict.floor }.text()
        };
        let with =
            |standing: &Standing| with_both(&usable(standing), beside(standing).map(usable).as_deref());
        columns.push((Column::numbers("", USABLE, 0), texts(&with)));
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
pub(crate) const CLUSTERS: &str = "two outcomes";
pub(crate) const WAIT: &str = "wait in ";
pub(crate) const USABLE: &str = "usable";
/// Title the columns of a call's score with each of two receivers.
pub(crate) const OWN_RECEIVER: &str = "adaptive";
pub(crate) const OTHER_RECEIVER: &str = "60 ms";
/// Titles the columns of what was delivered under an echo of a mark.
pub(crate) const ECHOED: &str = "echoed, packets";

/// Every flow of one cell: with repetitions, their means and medians (`measure::statistic`).
pub(crate) fn flows(cell: &CellView<'_>) -> Grid {
    let mut columns = vec![
        Column::words("flow"),
        Column::words("transport"),
        Column::numbers("messages", "sent", 3),
        Column::numbers("messages", "lost", 2),
        Column::numbers("messages", "loss %", 0),
    ];
    let mut names: Vec<&String> = cell.names().collect();
    let left_out = names.len().saturating_sub(MAX_ROWS);
    names.truncate(MAX_ROWS);
    let is_call = |name: &str| cell.value(name, Metric::Mos).is_some();
    let in_time = |name: &str| cell.value(name, Metric::InTime).filter(|_| !is_call(name));
    let (has_calls, has_timed) =
        (names.iter().any(|name| is_call(name)), names.iter().any(|name| in_time(name).is_some()));
    let has_late = names.iter().any(|name| opens_late(cell, name));
    columns.extend(has_late.then(|| Column::numbers(OPENS, "ms", 0)));
    let has_others = names.iter().any(|name| cell.value(name, Metric::OtherMos).is_some());
    if has_calls {
        columns.push(Column::numbers(if has_others { OWN_RECEIVER } else { "" }, MOS, 0));
        columns.extend(has_others.then(|| Column::numbers(OTHER_RECEIVER, MOS, 8)));
        columns.push(Column::numbers("", USABLE, 7));
    }
    columns.extend(has_timed.then(|| Column::numbers(IN_TIME, "%", 0)));
    columns.extend([
        Column { group: "delay, ms".to_owned(), ..Column::words("of") },
        Column::numbers("delay, ms", "p50", 0),
        Column::numbers("delay, ms", "p90", 6),
        Column::numbers("delay, ms", "p99", 0),
        Column::numbers("jitter", "ms", 4),
        Column::numbers("goodput", "Mb/s", 0),
        Column::numbers("resent", "%", 5),
    ]);
    let values = names.iter().map(|name| {
        let kind = cell.delay_kind(name);
        [Quantile::P50, Quantile::P90, Quantile::P99]
            .map(|quantile| cell.value(name, Metric::Delay(kind, quantile)))
            .into_iter()
            .chain([Metric::Ipdv90, Metric::GoodputBps, Metric::RetransmitRate].map(|m| cell.value(name, m)))
            .collect::<Vec<_>>()
    });
    let values: Vec<Vec<Option<f64>>> = values.collect();
    let largest =
        values.iter().flat_map(|row| row[..4].iter().flatten()).fold(0.0, |a: f64, b| a.max(b.abs()));
    let digits = decimals(largest);
    let in_words = |name: &str| cell.flow(name).and_then(|flow| flow.verdict.as_deref());
    let has_words = names.iter().any(|name| in_words(name).is_some());
    if has_words {
        columns.push(Column { dispensable: 1, ..Column::words("in words") });
    }
    let messages = |name: &str, metric| {
        let value = cell.value(name, metric);
        // Of few lost messages the mean over the repetitions is no whole number.
        value.map_or_else(String::new, |mean| match mean {
            mean if mean < 10.0 && mean.fract() > 0.0 => fixed(Some(mean), 1),
            mean => count(mean.round() as u64),
        })
    };
    let mut grid = Grid { columns, rows: Vec::new() };
    for (name, values) in names.iter().zip(&values) {
        let transport = cell.transport(name);
        let known = values[0].is_some();
        let copies = cell.summed_up(name).map(|group| format!(", {} copies", count(group.flows)));
        let mut cells = vec![short(name) + &copies.unwrap_or_default(), short(&transport.label)];
        cells.extend([Metric::Sent, Metric::Lost].map(|metric| messages(name, metric)));
        cells.push(percent(cell.value(name, Metric::LossRate)));
        cells.extend(has_late.then(|| fixed(cell.value(name, Metric::Opening), 1)));
        let judged = |value: Option<f64>, metric, gap, text: &dyn Fn(f64) -> String| {
            let two = value.and_then(|_| cell.two_outcomes(name, metric, gap));
            two.map_or_else(|| value.map_or_else(String::new, text), |found| shares(&found, text))
        };
        let mos =
            |metric| judged(cell.value(name, metric), metric, MOS_CLUSTER_GAP, &|mos| format!("{mos:.2}"));
        if has_calls {
            cells.push(mos(Metric::Mos));
            cells.extend(has_others.then(|| mos(Metric::OtherMos)));
            cells.push(UsableCall::of(cell, name).map_or_else(String::new, |call| call.text()));
        }
        let share =
            || judged(in_time(name), Metric::InTime, IN_TIME_CLUSTER_GAP, &|share| percent(Some(share)));
        cells.extend(has_timed.then(share));
        cells.push(if known { cell.delay_kind(name).abbreviation().to_owned() } else { String::new() });
        cells.extend(values[..4].iter().map(|value| fixed(*value, digits)));
        cells.push(Scale::Mbps.text(values[4], 3));
        cells.push(percent(values[5]));
        if has_words {
            cells.push(in_words(name).map_or_else(String::new, short));
        }
        grid.rows.push(Row { cells, role: Role::Plain, display: Some(transport.display) });
    }
    grid.rows.extend(more_rows(left_out, grid.columns.len()));
    grid
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

/// Every group of copies of one repetition; `None` if there are none.
pub(crate) fn groups(run: &RunSummary) -> Option<Grid> {
    let columns = vec![
        Column::words("copies of"),
        Column::numbers("", "flows", 0),
        Column::numbers("messages", "sent", 2),
        Column::numbers("messages", "loss %", 0),
        Column::numbers("goodput, Mb/s", "all", 0),
        Column::numbers("goodput, Mb/s", "each", 0),
        Column::numbers("resent", "%", 1),
        Column::numbers("Jain's", "index", 0),
    ];
    let rows = run.groups.iter().map(|(name, group)| Row {
        cells: vec![
            short(name),
            count(group.flows),
            count(group.sent),
            percent(group.loss_rate),
            Scale::Mbps.text(group.goodput_bps, 3),
            Scale::Mbps.text(group.goodput_bps_mean, 3),
            percent(group.retransmit_rate),
            fixed(group.jain_index, 3),
        ],
        role: Role::Plain,
        display: None,
    });
    (!run.groups.is_empty()).then(|| Grid { columns, rows: rows.collect() })
}

/// Every link of one repetition; `None` if the arena does not own the path.
pub(crate) fn links(run: &RunSummary) -> Option<Grid> {
    let columns = vec![
        Column::words("link"),
        Column::words("queue"),
        Column::numbers("", "busy %", 0),
        Column::numbers("queue, packets", "mean", 0),
        Column::numbers("queue, packets", "p99", 0),
        Column::numbers("queue, packets", "max", 0),
        Column::numbers("queue, ms", "p50", 1),
        Column::numbers("queue, ms", "p95", 1),
        Column::numbers("queue, ms", "p99", 1),
        Column::numbers("packets", "forwarded", 1),
        Column::numbers("dropped", "full", 0),
        Column::numbers("dropped", "aqm", 0),
        Column::numbers("packets", "marked", 0),
        Column::numbers("packets", "lost", 0),
    ];
    let delay =
        |link: &LinkSummary, of: fn(&QueueDelayMs) -> f64| fixed(link.queue_delay_ms.as_ref().map(of), 1);
    let rows = run.links.iter().take(MAX_ROWS).map(|(name, link)| Row {
        cells: vec![
            short(name),
            discipline(&link.discipline).to_owned(),
            fixed(Some(link.utilisation * 100.0), 1),
            fixed(Some(link.queue_packets.mean), 1),
            count(link.queue_packets.p99),
            count(link.queue_packets.max),
            delay(link, |delay| delay.p50),
            delay(link, |delay| delay.p95),
            delay(link, |delay| delay.p99),
            count(link.forwarded),
            count(link.dropped - link.dropped_by.aqm.min(link.dropped)),
            count(link.dropped_by.aqm),
            count(link.marked),
            count(link.lost),
        ],
        role: Role::Plain,
        display: None,
    });
    let rows = rows.chain(more_rows(run.links.len().saturating_sub(MAX_ROWS), columns.len())).collect();
    (!run.links.is_empty()).then_some(Grid { columns, rows })
}

/// The marks of each flow that ECN was wanted for, in one repetition; `None` if nothing was marked.
pub(crate) fn marks(run: &RunSummary) -> Option<Grid> {
    let flows = || run.flows.iter().filter_map(|(name, flow)| Some((name, flow.ecn?)));
    let counts =
        |ecn: &EcnSummary| [ecn.marked_forward, ecn.marked_return, ecn.echoed_forward, ecn.echoed_return];
    if !flows().any(|(_, ecn)| counts(&ecn).into_iter().flatten().any(|packets| packets > 0)) {
        return None;
    }
    let columns = vec![
        Column::words("marks of"),
        Column::words("takes them"),
        Column::numbers("marked, packets", "out", 0),
        Column::numbers("marked, packets", "back", 0),
        Column::numbers(ECHOED, "out", 0),
        Column::numbers(ECHOED, "back", 0),
    ];
    let rows = flows().map(|(name, ecn)| {
        let takes = ecn.capable.map_or(UNKNOWN, |takes| if takes { "yes" } else { "no" });
        let counts = counts(&ecn).map(|packets| packets.map_or_else(|| UNKNOWN.to_owned(), count));
        Row {
            cells: [short(name), takes.to_owned()].into_iter().chain(counts).collect(),
            role: Role::Plain,
            display: None,
        }
    });
    Some(Grid { columns, rows: rows.collect() })
}

/// When flows delivered nothing although they should have, in one repetition; `None` if that never was.
pub(crate) fn breaks(run: &RunSummary) -> Option<Grid> {
    let columns = vec![
        Column::words("broken"),
        Column::numbers("s", "from", 1),
        Column::numbers("s", "to", 1),
        Column::words("what happened"),
    ];
    let breaks = run.flows.iter().flat_map(|(name, flow)| flow.breaks.iter().map(move |it| (name, it)));
    let rows: Vec<Row> = breaks
        .map(|(name, it)| Row {
            cells: vec![
                short(name),
                fixed(Some(it.from_s), 1),
                it.to_s.map_or_else(|| "end".to_owned(), |to| fixed(Some(to), 1)),
                it.why.clone(),
            ],
            role: Role::Plain,
            display: None,
        })
        .collect();
    (!rows.is_empty()).then_some(Grid { columns, rows })
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
    let columns = vec![
        Column::words("late on this machine"),
        Column::numbers("ms", "p50", 0),
        Column::numbers("ms", "p99", 0),
        Column::numbers("ms", "max", 0),
    ];
    let row = |name: &str, cells: [String; 3]| Row {
        cells: [name.to_owned()].into_iter().chain(cells).collect(),
        role: Role::Plain,
        display: None,
    };
    let rows = late.iter().filter_map(|(name, late)| {
        let late = late.as_ref()?;
        Some(row(name, [late.p50, late.p99, late.max].map(|ms| fixed(Some(ms), 3))))
    });
    let turns = run.flows.iter().filter_map(|(name, flow)| {
        let turns = flow.turn_round_ms.as_ref()?;
        let name = format!("turn-round of {}", short(name));
        Some(row(&name, [turns.p50, turns.p99, turns.max].map(|ms| fixed(Some(ms), 3))))
    });
    let grid = Grid { columns, rows: rows.chain(turns).collect() };
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

/// A column's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Ms,
    Percent,
    Kbps,
    Mbps,
    /// An opinion score.
    Score,
}

impl Scale {
    fn text(self, value: Option<f64>, decimals: usize) -> String {
        match self {
            Self::Ms | Self::Score => fixed(value, decimals),
            Self::Percent => percent(value),
            Self::Kbps => fixed(value.map(|bps| bps / 1e3), decimals),
            Self::Mbps => fixed(value.map(|bps| bps / 1e6), decimals),
        }
    }
}

/// Decimals for each column: all milliseconds share theirs, so that delays can be compared across columns.
fn column_decimals(rows: &[Vec<Option<f64>>], scales: &[Scale]) -> Vec<usize> {
    let largest = |wanted: &dyn Fn(usize) -> bool| {
        let figures = rows.iter().flat_map(|row| row.iter().enumerate().filter(|(at, _)| wanted(*at)));
        figures.filter_map(|(_, figure)| *figure).fold(0.0, |a: f64, figure| a.max(figure.abs()))
    };
    let ms = decimals(largest(&|at| scales[at] == Scale::Ms));
    let of = |(_, scale): (usize, &Scale)| match scale {
        Scale::Ms => ms,
        Scale::Percent | Scale::Score => 2,
        Scale::Kbps => 1,
        Scale::Mbps => 3,
    };
    scales.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests;

//! The page of a campaign: tables of the delay, jitter and loss between hosts, day by day and hour by hour.
//!
//! A *measurement* is a planned run between two hosts. A *measure* is a scenario that the campaign repeats.
//! An *estimate* is a median with its confidence interval. Every figure is in the [`Findings`]. This file
//! chooses and formats them.
//!
//! Begin to read with [`campaign_page`].

mod charts;

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use talkpath_campaign::{DayRow, Estimate, Findings, HourRow, MatrixRow, Missing};
use talkpath_measure::figures::{FLOW, Scale};
use talkpath_measure::summary::{JudgedBy, ThresholdOutcome};

use crate::columns::Columns;
use crate::display::{Display, display};
use crate::grid::{Column, Grid, Role, Row};
use crate::html::{Section, document, table_of_contents};
use crate::number::{UNKNOWN, counted, decimals, distinct, fixed};

/// Two opinion scores that differ by no more are alike, as in the answer of `compare`.
const ALIKE_MOS: f64 = 0.1;

/// Writes the page. It loads no other file.
pub fn campaign_page(findings: &Findings) -> String {
    let sections = [
        Section { id: "matrix", title: "Host by host", body: host_tables(findings) },
        Section { id: "days", title: "Day by day", body: day_tables(findings) },
        Section { id: "charts", title: "Pair by pair", body: pair_charts(findings) },
        Section { id: "hours", title: "Time of day", body: hour_table(findings) },
        Section { id: "thresholds", title: "Thresholds", body: thresholds(findings) },
        Section { id: "not-valid", title: "Not valid", body: not_valid(findings) },
        Section { id: "left-out", title: "Left out", body: left_out(findings) },
        Section { id: "missing", title: "Not measured", body: missing(findings) },
    ];
    let main = html! {
        (status(findings))
        (table_of_contents(sections.iter()))
        @for section in &sections { (section.html()) }
    };
    let about = format!(
        "{}, {} of {}; local times are those of {}",
        counted(findings.hosts.len() as u64, "host"),
        findings.done,
        counted(findings.planned, "measurement"),
        findings.zone
    );
    document(&findings.name, &about, &main, &findings.talkpath)
}

/// Sentences about measurements that are missing, due, not valid or left out.
fn status(findings: &Findings) -> Markup {
    html! {
        @let (missing, open, later) = (findings.missing.len(), findings.open, findings.later);
        @if missing > 0 {
            p.warning role="status" {
                (missing) " of " (findings.planned) " measurements were " a href="#missing" { "not made" } " and will not be."
            }
        }
        @if open > 0 || later > 0 {
            p role="status" {
                "The campaign goes on: " (open) " of " (findings.planned) " measurements are due and not made yet, "
                (later) " are not due yet. They are not in these tables."
            }
        }
        @if !findings.not_valid.is_empty() {
            p.warning role="status" {
                (findings.not_valid.len()) " of " (findings.done) " measurements are "
                a href="#not-valid" { "not valid" }
                ": their figures may be the machines', not the network's. They are in these tables."
            }
        }
        @if !findings.left_out.is_empty() {
            p role="status" {
                "A machine disturbed repetitions of " (counted(findings.left_out.len() as u64, "measurement"))
                ". They are " a href="#left-out" { "left out" } " of these tables."
            }
        }
    }
}

/// A table for each measure, with a row for each pair of hosts and transport. If measurements start at
/// several hosts, there is also a table of hosts against hosts.
fn host_tables(findings: &Findings) -> Markup {
    html! {
        @for measure in measures(findings) {
            @let rows: Vec<&MatrixRow> = findings.matrix.iter().filter(|row| row.measure == measure).collect();
            h3 { (measure) }
            @if has_several_starts(&rows) { (matrix_of_hosts(findings, measure, &rows)) }
            (table_of_pairs(&rows).html(
                "Medians over all repetitions of the campaign, with 95 % confidence intervals. Delay is that of the round trip unless a row says one way. \
                 A message that was still on its way at the end is unfinished. It counts as not in time, and neither in delay nor in loss; a column counts such messages if there are any. \
                 MOS is with the playout that the scenario names, else with the adaptive one alone. \
                 Valid: measurements of which no machine disturbed more than half of the repetitions. Clocks: those in which one-way figures could be trusted."
            ))
            (clock_reasons(&rows))
        }
    }
}

fn table_of_pairs(rows: &[&MatrixRow]) -> Grid {
    let is_call = rows.iter().any(|row| row.mos.is_some());
    let has_unfinished = rows.iter().any(|row| row.unfinished > 0);
    let delays = rows.iter().flat_map(|row| [&row.delay_ms_p50, &row.delay_ms_p95]);
    let digits = decimals(largest_median(delays.flatten()));
    let delay = EstimateStyle::of_figure("round_trip_delay_ms.p50").with_digits(digits);
    let loss = EstimateStyle::of_figure("loss_rate");
    let in_time = EstimateStyle::of_judged(JudgedBy::InTime);
    let share = |count: u64, all: u64| format!("{count} of {all}");
    let mut columns: Columns<'_, &MatrixRow> = Columns::new();
    columns.add(Column::words("hosts"), |row| {
        let is_one_way = !row.is_round_trip && row.delay_ms_p50.is_some();
        format!("{} → {}{}", row.near, row.far, if is_one_way { ", one way" } else { "" })
    });
    columns.add(Column::words("transport"), |row| row.transport.clone());
    columns.add(Column::numbers("", "n"), |row| {
        row.delay_ms_p50.map_or_else(|| UNKNOWN.to_owned(), |estimate| estimate.n.to_string())
    });
    columns.add(delay.column_of("delay", "median"), move |row| delay.text(row.delay_ms_p50.as_ref()));
    columns.add(delay.column_of("delay", "p95"), move |row| delay.text(row.delay_ms_p95.as_ref()));
    columns.add(loss.column("loss"), move |row| loss.scale.text(row.loss_rate));
    if has_unfinished {
        columns.add(Column::numbers("", "unfinished"), move |row| share(row.unfinished, row.sent));
    }
    if is_call {
        let mos = EstimateStyle::of_judged(JudgedBy::Mos);
        columns.add(mos.column("MOS"), move |row| mos.text(row.mos.as_ref()));
    } else {
        let goodput = EstimateStyle::of_judged(JudgedBy::Goodput);
        columns.add(goodput.column("goodput"), move |row| goodput.text(row.goodput_bps.as_ref()));
    }
    columns.add(in_time.column("in time"), move |row| in_time.text(row.in_time.as_ref()));
    columns.add(Column::numbers("", "valid"), move |row| share(row.valid, row.measurements));
    columns.add(Column::numbers("", "clocks"), move |row| share(row.clock_trusted, row.measurements));
    columns.grid_with(rows.iter().copied(), |row| row_style(&row.transport))
}

/// Hosts against hosts, with the best transports of each pair.
fn matrix_of_hosts(findings: &Findings, measure: &str, rows: &[&MatrixRow]) -> Markup {
    let is_measured = |host: &&String| rows.iter().any(|row| row.near == **host || row.far == **host);
    let hosts: Vec<&String> = findings.hosts.iter().filter(is_measured).collect();
    let mut columns = vec![Column::words("host")];
    columns.extend(hosts.iter().map(|host| Column::numbers("", host)));
    let mut grid_rows = Vec::new();
    for near in &hosts {
        let mut cells = vec![(*near).clone()];
        cells.extend(
            hosts.iter().map(|far| if near == far { String::new() } else { pair_cell(near, far, rows) }),
        );
        grid_rows.push(Row { cells, role: Role::Plain, display: None });
    }
    let grid = Grid { columns, rows: grid_rows };
    grid.html(&format!(
        "{measure}: the 95th percentile of delay over the transport with the highest MOS, or without calls the smallest delay. \
         Those within {ALIKE_MOS} MOS of it are named beside it."
    ))
}

/// The best transports between two hosts. The direction of a measurement does not matter.
fn pair_cell(near: &str, far: &str, rows: &[&MatrixRow]) -> String {
    let is_of_pair =
        |row: &&MatrixRow| (row.near == near && row.far == far) || (row.near == far && row.far == near);
    let rows = rows.iter().copied().filter(is_of_pair);
    best_transports(rows.filter(|row| row.delay_ms_p95.is_some()))
}

/// Writes the delay over the best transport of a pair, and the transports that are alike. A transport without
/// a valid measurement is not among them.
fn best_transports<'a>(rows: impl Iterator<Item = &'a MatrixRow>) -> String {
    let all: Vec<&MatrixRow> = rows.collect();
    let mut rows: Vec<&MatrixRow> = all.iter().copied().filter(|row| row.valid > 0).collect();
    let mos = |row: &MatrixRow| row.mos.map(|estimate| estimate.median);
    let delay = |row: &MatrixRow| row.delay_ms_p95.map_or(f64::INFINITY, |estimate| estimate.median);
    rows.sort_by(|a, b| {
        let by_mos = mos(b).unwrap_or(0.0).total_cmp(&mos(a).unwrap_or(0.0));
        by_mos.then(delay(a).total_cmp(&delay(b)))
    });
    let Some((best, others)) = rows.split_first() else {
        return if all.is_empty() { String::new() } else { "not valid".to_owned() };
    };
    let mut names = vec![best.transport.as_str()];
    for row in others {
        if let (Some(best_mos), Some(row_mos)) = (mos(best), mos(row))
            && best_mos - row_mos <= ALIKE_MOS
        {
            names.push(&row.transport);
        }
    }
    let score = mos(best).map_or_else(String::new, |mos| format!(", MOS {}", fixed(Some(mos), 2)));
    let best_delay = delay(best);
    format!("{} ms{score} ({})", fixed(Some(best_delay), decimals(best_delay)), names.join(", "))
}

fn has_several_starts(rows: &[&MatrixRow]) -> bool {
    rows.iter().any(|row| row.near != rows[0].near)
}

/// The reason why the clocks of a pair were not trusted, for each pair. Empty if all were trusted.
fn clock_reasons(rows: &[&MatrixRow]) -> Markup {
    let mut reasons: Vec<(String, &String)> = Vec::new();
    for row in rows {
        let pair = format!("{} → {}", row.near, row.far);
        if let Some(reason) = &row.clock_why
            && !reasons.iter().any(|(known, _)| *known == pair)
        {
            reasons.push((pair, reason));
        }
    }
    html! {
        @if !reasons.is_empty() {
            details {
                summary { "Why clocks were not trusted" }
                ul { @for (pair, reason) in &reasons { li { (pair) ": " (reason) } } }
            }
        }
    }
}

/// Columns of a table of days, one for each transport.
struct DayColumns {
    /// The title over the columns, before the unit of the figure.
    title: &'static str,
    /// The path of the figure in a flow's summary.
    path: &'static str,
    estimate: fn(&DayRow) -> Option<&Estimate>,
}

impl DayColumns {
    fn style(&self, digits: usize) -> EstimateStyle {
        EstimateStyle::of_figure(self.path).with_digits(digits)
    }
}

const DELAY_COLUMNS: [DayColumns; 2] = [
    DayColumns { title: "p90", path: "round_trip_delay_ms.p90", estimate: |row| row.delay_ms_p90.as_ref() },
    DayColumns { title: "p95", path: "round_trip_delay_ms.p95", estimate: |row| row.delay_ms_p95.as_ref() },
];
const JITTER_COLUMNS: [DayColumns; 2] = [
    DayColumns { title: "p90", path: "ipdv_ms.p90", estimate: |row| row.ipdv_ms_p90.as_ref() },
    DayColumns { title: "p95", path: "ipdv_ms.p95", estimate: |row| row.ipdv_ms_p95.as_ref() },
];

/// The hosts and the day of a row in a table of days.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct PairAndDay<'a> {
    near: &'a str,
    far: &'a str,
    day: u64,
}

/// Two tables for each measure, with a row for each pair of hosts and day.
fn day_tables(findings: &Findings) -> Markup {
    html! {
        @for measure in measures(findings) {
            h3 { (measure) }
            (day_table(findings, measure, &DELAY_COLUMNS).html(
                "Delay: percentiles of a repetition, medians over those of one day, with 95 % confidence intervals, which need 6."
            ))
            (day_table(findings, measure, &JITTER_COLUMNS).html(
                "Jitter: the same of the difference of consecutive delays (RFC 3393, unsigned)."
            ))
        }
    }
}

/// Charts for each measure, with two for each pair of hosts. Empty if nothing was measured.
fn pair_charts(findings: &Findings) -> Markup {
    if findings.days.is_empty() {
        return html! {};
    }
    html! {
        @for measure in measures(findings) {
            h3 { (measure) }
            (charts::charts_by_pair(findings, measure))
        }
    }
}

fn day_table(findings: &Findings, measure: &str, groups: &[DayColumns]) -> Grid {
    let rows: Vec<&DayRow> = findings.days.iter().filter(|row| row.measure == measure).collect();
    let transports = distinct(rows.iter().map(|row| &row.transport));
    let mut rows_by_day: BTreeMap<PairAndDay<'_>, Vec<&DayRow>> = BTreeMap::new();
    for row in &rows {
        let key = PairAndDay { near: &row.near, far: &row.far, day: row.day };
        rows_by_day.entry(key).or_default().push(row);
    }
    let estimates = rows.iter().flat_map(|row| groups.iter().filter_map(|group| (group.estimate)(row)));
    let digits = decimals(largest_median(estimates));
    let mut columns = vec![Column::words("hosts and day")];
    for group in groups {
        let style = group.style(digits);
        columns.extend(transports.iter().map(|transport| style.column_of(group.title, transport)));
    }
    let mut grid_rows = Vec::new();
    for (PairAndDay { near, far, day }, rows) in rows_by_day {
        let mut cells = vec![format!("{near} → {far}, day {day}")];
        for group in groups {
            let style = group.style(digits);
            for transport in &transports {
                let row = rows.iter().find(|row| row.transport == **transport);
                cells.push(style.text(row.and_then(|row| (group.estimate)(row))));
            }
        }
        grid_rows.push(Row { cells, role: Role::Plain, display: None });
    }
    Grid { columns, rows: grid_rows }
}

/// A row for each hour of the day, measure and transport. Empty if all measurements were in one hour.
fn hour_table(findings: &Findings) -> Markup {
    let hours: BTreeSet<u64> = findings.hours.iter().map(|row| row.hour).collect();
    if hours.len() < 2 {
        return html! {};
    }
    let mut columns: Columns<'_, &HourRow> = Columns::new();
    columns.add(Column::words("hour"), |row| format!("{:02}", row.hour));
    columns.add(Column::words("measure"), |row| row.measure.clone());
    columns.add(Column::words("transport"), |row| row.transport.clone());
    columns.add(Column::numbers("", "n"), |row| row.more_delay_ms_p50.n.to_string());
    let more = EstimateStyle::of_figure("round_trip_delay_ms.p50").with_digits(1);
    let loss = EstimateStyle::of_figure("loss_rate");
    columns.add(more.column_of("more delay", "median"), move |row| more.text(Some(&row.more_delay_ms_p50)));
    columns.add(more.column_of("more delay", "p95"), move |row| more.text(Some(&row.more_delay_ms_p95)));
    columns.add(loss.column("loss"), move |row| loss.scale.text(row.loss_rate));
    let grid = columns.grid_with(&findings.hours, |row| row_style(&row.transport));
    grid.html("How much later than the median of its own hosts and transport a repetition of this hour was; below 0 earlier.")
}

/// A row for each threshold of each pair. Empty if there are none.
fn thresholds(findings: &Findings) -> Markup {
    if findings.thresholds.is_empty() {
        return html! {};
    }
    let columns = ["hosts", "measure", "outcome", "threshold"].map(Column::words);
    let mut rows = Vec::new();
    for pair in &findings.thresholds {
        for threshold in &pair.thresholds {
            let outcome = match threshold.outcome {
                ThresholdOutcome::Holds => "holds",
                ThresholdOutcome::Fails | ThresholdOutcome::Unknown => "fails",
                ThresholdOutcome::Undecided => "undecided",
            };
            let cells = vec![
                format!("{} → {}", pair.near, pair.far),
                pair.measure.clone(),
                outcome.to_owned(),
                threshold.text.clone(),
            ];
            rows.push(Row { cells, role: Role::Plain, display: None });
        }
    }
    Grid { columns: columns.into(), rows }
        .html("What the figures must hold, over all valid measurements of a pair, each repetition as one.")
}

fn not_valid(findings: &Findings) -> Markup {
    table_of_reasons(
        &findings.not_valid,
        "What was measured while a machine disturbed more than half of its repetitions past its limits, with the first reason.",
    )
}

fn left_out(findings: &Findings) -> Markup {
    table_of_reasons(
        &findings.left_out,
        "Repetitions that a machine disturbed past its limits and that are in no table, with the first reason.",
    )
}

fn missing(findings: &Findings) -> Markup {
    table_of_reasons(&findings.missing, "What was planned and is not in the records, with its reason.")
}

/// A row for each of `measurements`, with its reason. Empty if there are none.
fn table_of_reasons(measurements: &[Missing], caption: &str) -> Markup {
    if measurements.is_empty() {
        return html! {};
    }
    let columns = ["time", "hosts and day", "measure", "why"].map(Column::words);
    let mut rows = Vec::new();
    for Missing { measurement, why } in measurements {
        let cells = vec![
            measurement.local.clone(),
            format!("{} → {}, day {}", measurement.near, measurement.far, measurement.day),
            measurement.measure.clone(),
            why.clone(),
        ];
        rows.push(Row { cells, role: Role::Plain, display: None });
    }
    Grid { columns: columns.into(), rows }.html(caption)
}

fn measures(findings: &Findings) -> Vec<&str> {
    distinct(findings.matrix.iter().map(|row| row.measure.as_str()))
}

/// A row has the colour of its transport. The options of the transport follow its name after a space.
fn row_style(transport: &str) -> (Role, Option<&'static Display>) {
    let kind = transport.split(' ').next().unwrap_or(transport);
    (Role::Plain, Some(display(kind)))
}

/// How the estimates of a figure are written, and the unit that stands above them.
#[derive(Clone, Copy)]
struct EstimateStyle {
    scale: Scale,
    /// The number of decimals.
    digits: usize,
}

impl EstimateStyle {
    /// The style of the figure at `path` of a flow's summary.
    fn of_figure(path: &str) -> Self {
        Self::of_scale(FLOW.row(path).scale())
    }

    /// The style of a judged figure, as in the tables that compare transports.
    fn of_judged(judged_by: JudgedBy) -> Self {
        Self::of_scale(judged_by.scale())
    }

    fn of_scale(scale: Scale) -> Self {
        Self { scale, digits: scale.decimals.unwrap_or(0) }
    }

    /// Sets the number of decimals. Columns that a reader compares have the same number.
    fn with_digits(self, digits: usize) -> Self {
        Self { digits, ..self }
    }

    /// A column with a title of its own, for example `loss` over `%`. A figure without a unit has its name
    /// alone.
    fn column(self, name: &str) -> Column {
        match self.scale.unit {
            "" => Column::numbers("", name),
            unit => Column::numbers(name, unit),
        }
    }

    /// One of several columns under a common title with the unit, for example `p95` under `delay, ms`.
    fn column_of(self, title: &str, head: &str) -> Column {
        Column::numbers(&format!("{title}, {}", self.scale.unit), head)
    }

    /// Writes the median with its confidence interval, for example `78.1 [77.0, 79.2]`.
    fn text(self, estimate: Option<&Estimate>) -> String {
        let Some(Estimate { median, ci95, .. }) = estimate else { return UNKNOWN.to_owned() };
        let number = |value: f64| fixed(Some(value * self.scale.factor), self.digits);
        match ci95 {
            Some((low, high)) => format!("{} [{}, {}]", number(*median), number(*low), number(*high)),
            None => number(*median),
        }
    }
}

/// The largest median, which decides how many digits a column has. Zero if there are no estimates.
fn largest_median<'a>(estimates: impl Iterator<Item = &'a Estimate>) -> f64 {
    estimates.map(|estimate| estimate.median).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(transport: &str, mos: f64, delay: f64, valid: u64) -> MatrixRow {
        let estimate = |median: f64| Some(Estimate { median, ci95: None, n: 3 });
        MatrixRow {
            near: "a".to_owned(),
            far: "b".to_owned(),
            measure: "call".to_owned(),
            transport: transport.to_owned(),
            measurements: 3,
            valid,
            clock_trusted: 3,
            clock_why: None,
            is_round_trip: true,
            delay_ms_p50: estimate(delay),
            delay_ms_p95: estimate(delay),
            loss_rate: Some(0.0),
            sent: 1500,
            unfinished: 0,
            mos: estimate(mos),
            in_time: None,
            goodput_bps: None,
        }
    }

    #[test]
    fn the_best_transports_of_a_pair_are_those_that_are_alike_and_all_have_a_valid_measurement() {
        let rows = [row("tcp", 4.3801, 90.0, 3), row("udp", 4.38, 20.0, 3), row("dccp", 4.2, 20.0, 3)];
        assert_eq!(best_transports(rows.iter()), "90.0 ms, MOS 4.38 (tcp, udp)");
        let rows = [row("tcp", 4.4, 90.0, 0), row("udp", 4.0, 20.0, 1)];
        assert_eq!(best_transports(rows.iter()), "20.0 ms, MOS 4.00 (udp)");
        assert_eq!(best_transports(rows[..1].iter()), "not valid");
        assert_eq!(best_transports([].into_iter()), "");
    }

    fn findings(matrix: Vec<MatrixRow>) -> Findings {
        Findings {
            name: "sites".to_owned(),
            zone: "UTC".to_owned(),
            talkpath: "0".to_owned(),
            hosts: vec!["a".to_owned(), "b".to_owned()],
            planned: 10,
            done: 3,
            open: 2,
            later: 5,
            matrix,
            days: Vec::new(),
            hours: Vec::new(),
            not_valid: Vec::new(),
            left_out: Vec::new(),
            missing: Vec::new(),
            thresholds: Vec::new(),
        }
    }

    #[test]
    fn each_pair_of_hosts_has_a_chart_of_delay_and_one_of_jitter_with_a_bar_for_each_transport_and_day() {
        let mut of_days = findings(vec![row("udp", 4.38, 20.0, 3)]);
        for (far, day, transport, delay) in
            [("b", 1, "udp", 20.0), ("b", 2, "udp", 21.0), ("b", 1, "tcp", 60.0), ("c", 1, "udp", 30.0)]
        {
            let estimate = |median: f64| Some(Estimate { median, ci95: None, n: 3 });
            of_days.days.push(DayRow {
                near: "a".to_owned(),
                far: far.to_owned(),
                measure: "call".to_owned(),
                transport: transport.to_owned(),
                day,
                is_round_trip: true,
                loss_rate: None,
                delay_ms_p90: estimate(delay),
                delay_ms_p95: None,
                ipdv_ms_p90: (far == "b").then(|| estimate(2.0)).flatten(),
                ipdv_ms_p95: None,
            });
        }
        let page = campaign_page(&of_days);
        for title in ["a → b: p90 of delay", "a → b: p90 of jitter", "a → c: p90 of delay"] {
            assert!(page.contains(title), "no {title}: {page}");
        }
        assert!(!page.contains("a → c: p90 of jitter"), "no jitter is known of that pair");
    }

    #[test]
    fn every_row_counts_unfinished_messages_if_any_row_has_some() {
        let whole = row("udp", 4.38, 20.0, 3);
        let broken = MatrixRow { unfinished: 1350, ..row("tcp", 4.38, 90.0, 3) };
        assert!(campaign_page(&findings(vec![whole.clone(), broken])).contains("1350 of 1500"));
        assert!(!campaign_page(&findings(vec![whole])).contains("0 of 1500"));
    }

    #[test]
    fn the_page_of_a_campaign_that_goes_on_counts_due_and_later_measurements_without_a_warning() {
        let page = campaign_page(&findings(Vec::new()));
        assert!(page.contains("2 of 10 measurements are due and not made yet, 5 are not due yet"), "{page}");
        assert!(!page.contains("class=\"warning\""), "{page}");
    }
}

//! The page of a campaign: who reaches whom how well, day by day and hour by hour.
//!
//! Every figure stands in the [`Findings`]; here they are chosen, formatted and drawn. Rows name hosts and
//! days, as `hk, day 3`.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use talkpath_campaign::{DayRow, Estimate, Findings, HourRow, MatrixRow, Missing};
use talkpath_measure::summary::JudgedBy;

use crate::columns::Columns;
use crate::display::{Display, display};
use crate::grid::{Column, Grid, Role, Row};
use crate::html::document;
use crate::number::{UNKNOWN, counted, decimals, fixed, percent};

/// The page, self-contained.
pub fn campaign_page(findings: &Findings) -> String {
    let sections = [
        ("matrix", "Host by host", matrix(findings)),
        ("days", "Day by day", days(findings)),
        ("hours", "Time of day", hours(findings)),
        ("not-valid", "Not valid", not_valid(findings)),
        ("left-out", "Left out", left_out(findings)),
        ("missing", "Not measured", missing(findings)),
    ];
    let sections: Vec<_> = sections.into_iter().filter(|(.., body)| !body.0.is_empty()).collect();
    let main = html! {
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
        nav.contents aria-label="Contents" {
            ul { @for (id, title, _) in &sections { li { a href={ "#" (id) } { (title) } } } }
        }
        @for (id, title, body) in &sections {
            section id=(id) { h2 { (title) } (body) }
        }
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

/// A table a measure with a row a pair and transport, and a grid of hosts if more than one starts.
fn matrix(findings: &Findings) -> Markup {
    html! {
        @for measure in measures(findings) {
            @let rows: Vec<&MatrixRow> = findings.matrix.iter().filter(|row| row.measure == measure).collect();
            h3 { (measure) }
            @if is_mesh(&rows) { (square(findings, measure, &rows)) }
            (matrix_rows(&rows).html(
                "Medians over all repetitions of the campaign, with 95 % confidence intervals. Delay is that of the round trip unless a row says one way. \
                 A message that was still on its way at the end is unfinished. It counts as not in time, and neither in delay nor in loss; a column counts such messages if there are any. \
                 MOS is with the playout that the scenario names, else with the adaptive one alone. \
                 Valid: measurements of which no machine disturbed more than half of the repetitions. Clocks: those in which one-way figures could be trusted."
            ))
            (untrusted(&rows))
        }
    }
}

fn matrix_rows(rows: &[&MatrixRow]) -> Grid {
    let is_call = rows.iter().any(|row| row.mos.is_some());
    let has_unfinished = rows.iter().any(|row| row.unfinished > 0);
    let places = places(rows.iter().flat_map(|row| [&row.delay_ms_p50, &row.delay_ms_p95]));
    let share = |count: u64, all: u64| format!("{count} of {all}");
    let mut columns: Columns<'_, &MatrixRow> = Columns::new();
    columns.add(Column::words("hosts"), |row| {
        let trip = if row.is_round_trip || row.delay_ms_p50.is_none() { "" } else { ", one way" };
        format!("{} → {}{trip}", row.near, row.far)
    });
    columns.add(Column::words("transport"), |row| row.transport.clone());
    columns.add(Column::numbers("", "n"), |row| {
        row.delay_ms_p50.map_or_else(|| UNKNOWN.to_owned(), |estimate| estimate.n.to_string())
    });
    columns.add(Column::numbers("delay, ms", "median"), move |row| shown(row.delay_ms_p50.as_ref(), places));
    columns.add(Column::numbers("delay, ms", "p95"), move |row| shown(row.delay_ms_p95.as_ref(), places));
    columns.add(Column::numbers("loss", "%"), |row| percent(row.loss_rate));
    if has_unfinished {
        columns.add(Column::numbers("", "unfinished"), move |row| share(row.unfinished, row.sent));
    }
    if is_call {
        columns.add(Column::numbers("", "MOS"), |row| judged(JudgedBy::Mos, row.mos));
    } else {
        columns.add(Column::numbers("goodput", "Mb/s"), |row| judged(JudgedBy::Goodput, row.goodput_bps));
    }
    columns.add(Column::numbers("in time", "%"), |row| judged(JudgedBy::InTime, row.in_time));
    columns.add(Column::numbers("", "valid"), move |row| share(row.valid, row.measurements));
    columns.add(Column::numbers("", "clocks"), move |row| share(row.clock_trusted, row.measurements));
    columns.grid_with(rows.iter().copied(), |row| look(&row.transport))
}

/// Hosts against hosts: for each pair the transports that serve it best.
fn square(findings: &Findings, measure: &str, rows: &[&MatrixRow]) -> Markup {
    let hosts: Vec<&String> = findings
        .hosts
        .iter()
        .filter(|host| rows.iter().any(|row| row.near == **host || row.far == **host))
        .collect();
    let cell = |near: &str, far: &str| {
        let found = rows
            .iter()
            .filter(|row| (row.near == near && row.far == far) || (row.near == far && row.far == near));
        best(found.copied().filter(|row| row.delay_ms_p95.is_some()))
    };
    let heads = hosts.iter().map(|host| Column::numbers("", host));
    let columns = core::iter::once(Column::words("host")).chain(heads).collect();
    let rows = hosts.iter().map(|near| {
        let cells = hosts.iter().map(|far| if near == far { String::new() } else { cell(near, far) });
        Row {
            cells: core::iter::once((*near).clone()).chain(cells).collect(),
            role: Role::Plain,
            display: None,
        }
    });
    let grid = Grid { columns, rows: rows.collect() };
    grid.html(&format!(
        "{measure}: the 95th percentile of delay over the transport with the highest MOS, or without calls the smallest delay. \
         Those within {ALIKE_MOS} MOS of it are named beside it."
    ))
}

/// The best of a pair's `rows` with its delay, and those that are as good; nobody is the best where no
/// measurement is valid.
fn best<'a>(rows: impl Iterator<Item = &'a MatrixRow>) -> String {
    let mut rows: Vec<&MatrixRow> = rows.collect();
    let mos = |row: &MatrixRow| row.mos.map(|estimate| estimate.median);
    let delay = |row: &MatrixRow| row.delay_ms_p95.map_or(f64::INFINITY, |estimate| estimate.median);
    let has_rows = !rows.is_empty();
    rows.retain(|row| row.valid > 0);
    rows.sort_by(|a, b| {
        mos(b).unwrap_or(0.0).total_cmp(&mos(a).unwrap_or(0.0)).then(delay(a).total_cmp(&delay(b)))
    });
    let Some((best, others)) = rows.split_first() else {
        return if has_rows { "not valid".to_owned() } else { String::new() };
    };
    let is_alike = |row: &&&MatrixRow| mos(best).zip(mos(row)).is_some_and(|(b, r)| b - r <= ALIKE_MOS);
    let names: Vec<&str> = core::iter::once(best)
        .chain(others.iter().filter(is_alike))
        .map(|row| row.transport.as_str())
        .collect();
    let score = mos(best).map_or_else(String::new, |mos| format!(", MOS {}", fixed(Some(mos), 2)));
    format!("{} ms{score} ({})", fixed(Some(delay(best)), decimals(delay(best))), names.join(", "))
}

/// As alike as in the answer of `compare`.
const ALIKE_MOS: f64 = 0.1;

/// Whether measurements start at more than one host.
fn is_mesh(rows: &[&MatrixRow]) -> bool {
    rows.iter().any(|row| row.near != rows[0].near)
}

fn untrusted(rows: &[&MatrixRow]) -> Markup {
    let mut reasons: Vec<(String, &String)> = Vec::new();
    for row in rows {
        let pair = format!("{} → {}", row.near, row.far);
        if let Some(why) = &row.clock_why
            && !reasons.iter().any(|(known, _)| *known == pair)
        {
            reasons.push((pair, why));
        }
    }
    html! {
        @if !reasons.is_empty() {
            details {
                summary { "Why clocks were not trusted" }
                ul { @for (pair, why) in &reasons { li { (pair) ": " (why) } } }
            }
        }
    }
}

/// A row a pair and day, columns by transport.
fn days(findings: &Findings) -> Markup {
    let delay: [DayColumns; 2] =
        [("p90, ms", |row| row.delay_ms_p90.as_ref()), ("p95, ms", |row| row.delay_ms_p95.as_ref())];
    let jitter: [DayColumns; 2] =
        [("p90, ms", |row| row.ipdv_ms_p90.as_ref()), ("p95, ms", |row| row.ipdv_ms_p95.as_ref())];
    html! {
        @for measure in measures(findings) {
            h3 { (measure) }
            (days_grid(findings, measure, &delay).html(
                "Delay: percentiles of a repetition, medians over those of one day, with 95 % confidence intervals, which need 6."
            ))
            (days_grid(findings, measure, &jitter).html(
                "Jitter: the same of the difference of consecutive delays (RFC 3393, unsigned)."
            ))
        }
    }
}

/// A group of columns, and what stands in them.
type DayColumns = (&'static str, fn(&DayRow) -> Option<&Estimate>);

fn days_grid(findings: &Findings, measure: &str, groups: &[DayColumns]) -> Grid {
    let of_measure = || findings.days.iter().filter(|row| row.measure == measure);
    let mut transports: Vec<&String> = Vec::new();
    let mut heads: BTreeMap<(&String, &String, u64), Vec<&DayRow>> = BTreeMap::new();
    for row in of_measure() {
        if !transports.contains(&&row.transport) {
            transports.push(&row.transport);
        }
        heads.entry((&row.near, &row.far, row.day)).or_default().push(row);
    }
    let largest = of_measure().flat_map(|row| groups.iter().filter_map(|(_, figure)| figure(row)));
    let places = decimals(largest.map(|estimate| estimate.median).fold(0.0, f64::max));
    let heading = groups
        .iter()
        .flat_map(|(group, _)| transports.iter().map(|transport| Column::numbers(group, transport)));
    let columns = core::iter::once(Column::words("hosts and day")).chain(heading).collect();
    let row = |((near, far, day), rows): (&(&String, &String, u64), &Vec<&DayRow>)| {
        let find = |transport: &String| rows.iter().find(|row| row.transport == *transport);
        let cells = groups.iter().flat_map(|&(_, figure)| {
            let find = &find;
            transports.iter().map(move |transport| shown(find(transport).and_then(|row| figure(row)), places))
        });
        let head = format!("{near} → {far}, day {day}");
        Row { cells: core::iter::once(head).chain(cells).collect(), role: Role::Plain, display: None }
    };
    Grid { columns, rows: heads.iter().map(row).collect() }
}

fn hours(findings: &Findings) -> Markup {
    let hours: BTreeSet<u64> = findings.hours.iter().map(|row| row.hour).collect();
    if hours.len() < 2 {
        return html! {};
    }
    let mut columns: Columns<'_, &HourRow> = Columns::new();
    columns.add(Column::words("hour"), |row| format!("{:02}", row.hour));
    columns.add(Column::words("measure"), |row| row.measure.clone());
    columns.add(Column::words("transport"), |row| row.transport.clone());
    columns.add(Column::numbers("", "n"), |row| row.more_delay_ms_p50.n.to_string());
    columns.add(Column::numbers("more delay, ms", "median"), |row| shown(Some(&row.more_delay_ms_p50), 1));
    columns.add(Column::numbers("more delay, ms", "p95"), |row| shown(Some(&row.more_delay_ms_p95), 1));
    columns.add(Column::numbers("loss", "%"), |row| percent(row.loss_rate));
    let grid = columns.grid_with(&findings.hours, |row| look(&row.transport));
    grid.html("How much later than the median of its own hosts and transport a repetition of this hour was; below 0 earlier.")
}

fn not_valid(findings: &Findings) -> Markup {
    reasons(
        &findings.not_valid,
        "What was measured while a machine disturbed more than half of its repetitions past its limits, with the first reason.",
    )
}

fn left_out(findings: &Findings) -> Markup {
    reasons(
        &findings.left_out,
        "Repetitions that a machine disturbed past its limits and that are in no table, with the first reason.",
    )
}

fn missing(findings: &Findings) -> Markup {
    reasons(&findings.missing, "What was planned and is not in the records, with its reason.")
}

/// A row for each of `measurements`, with its reason.
fn reasons(measurements: &[Missing], caption: &str) -> Markup {
    if measurements.is_empty() {
        return html! {};
    }
    let columns = vec![
        Column::words("time"),
        Column::words("hosts and day"),
        Column::words("measure"),
        Column::words("why"),
    ];
    let rows = measurements.iter().map(|missing| {
        let measurement = &missing.measurement;
        Row {
            cells: vec![
                measurement.local.clone(),
                format!("{} → {}, day {}", measurement.near, measurement.far, measurement.day),
                measurement.measure.clone(),
                missing.why.clone(),
            ],
            role: Role::Plain,
            display: None,
        }
    });
    Grid { columns, rows: rows.collect() }.html(caption)
}

/// Measures in the order of the tables.
fn measures(findings: &Findings) -> Vec<&str> {
    let mut measures: Vec<&str> = Vec::new();
    for row in &findings.matrix {
        if !measures.contains(&row.measure.as_str()) {
            measures.push(&row.measure);
        }
    }
    measures
}

/// How a row of this transport looks.
fn look(transport: &str) -> (Role, Option<&'static Display>) {
    let kind = transport.split(' ').next().unwrap_or(transport);
    (Role::Plain, Some(display(kind)))
}

fn scaled(estimate: Estimate, factor: f64) -> Estimate {
    Estimate {
        median: estimate.median * factor,
        ci95: estimate.ci95.map(|(low, high)| (low * factor, high * factor)),
        n: estimate.n,
    }
}

/// As [`shown`], in the scale in which transports are compared by it.
fn judged(by: JudgedBy, estimate: Option<Estimate>) -> String {
    let scale = by.scale();
    shown(estimate.map(|estimate| scaled(estimate, scale.factor)).as_ref(), scale.decimals.unwrap_or(0))
}

fn places<'a>(estimates: impl Iterator<Item = &'a Option<Estimate>>) -> usize {
    decimals(estimates.flatten().map(|estimate| estimate.median).fold(0.0, f64::max))
}

/// `78.1 [77.0, 79.2]`.
fn shown(estimate: Option<&Estimate>, places: usize) -> String {
    let Some(Estimate { median, ci95, .. }) = estimate else { return UNKNOWN.to_owned() };
    let number = |value: f64| fixed(Some(value), places);
    match ci95 {
        Some((low, high)) => format!("{} [{}, {}]", number(*median), number(*low), number(*high)),
        None => number(*median),
    }
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
    fn the_best_of_a_pair_stands_with_those_as_good_and_never_rests_on_runs_that_are_not_valid() {
        let rows = [row("tcp", 4.3801, 90.0, 3), row("udp", 4.38, 20.0, 3), row("dccp", 4.2, 20.0, 3)];
        assert_eq!(best(rows.iter()), "90.0 ms, MOS 4.38 (tcp, udp)");
        let rows = [row("tcp", 4.4, 90.0, 0), row("udp", 4.0, 20.0, 1)];
        assert_eq!(best(rows.iter()), "20.0 ms, MOS 4.00 (udp)");
        assert_eq!(best(rows[..1].iter()), "not valid");
        assert_eq!(best([].into_iter()), "");
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
        }
    }

    #[test]
    fn a_row_says_how_many_messages_were_unfinished_if_any_row_has_such() {
        let whole = row("udp", 4.38, 20.0, 3);
        let broken = MatrixRow { unfinished: 1350, ..row("tcp", 4.38, 90.0, 3) };
        assert!(campaign_page(&findings(vec![whole.clone(), broken])).contains("1350 of 1500"));
        assert!(!campaign_page(&findings(vec![whole])).contains("0 of 1500"));
    }

    #[test]
    fn half_way_the_page_says_what_is_due_and_what_is_not_due_yet_and_warns_of_neither() {
        let page = campaign_page(&findings(Vec::new()));
        assert!(page.contains("2 of 10 measurements are due and not made yet, 5 are not due yet"), "{page}");
        assert!(!page.contains("class=\"warning\""), "{page}");
    }
}

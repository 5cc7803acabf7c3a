//! The tables as `talkpath compare` and `talkpath run` print them: heading, what is wrong with the run, the table, who
//! won and why, and what the words mean.

use talkpath_measure::summary::Summary;

use crate::Style;
use crate::grid::{Grid, columns_of, paint, printable};
use crate::number::{UNKNOWN, counted};
use crate::tables;
use crate::verdict::{RULE, judge};
use crate::view::{CellView, DelayKind, TransportView, conditions, main_flow};

/// Cells whose tables `run_table` prints; the rest are in summary.json and the page.
const MAX_CELLS: usize = 40;

/// One row a transport for `flow`, the winner and why, and the definitions.
pub fn comparison_table(summary: &Summary, flow: &str, style: &Style) -> String {
    let mut out = heading(summary, style);
    let conditions = conditions(summary, flow);
    for condition in &conditions {
        let verdict = judge(condition, flow);
        let best = verdict.as_ref().map_or(&[][..], |verdict| &verdict.best);
        if !condition.label.is_empty() {
            out.push_str(&paint(&printable(&condition.label), "1", style.color));
            out.push_str("\n\n");
        }
        let grid = tables::comparison(condition, flow, best);
        print_grid(&mut out, &grid, style);
        match verdict {
            Some(verdict) => out.push_str(&wrap(&printable(&verdict.winner.sentence), style.width, "", "")),
            None => out.push_str(&wrap(
                "No winner: there are not two transports with figures.",
                style.width,
                "",
                "",
            )),
        }
        out.push('\n');
    }
    let views: Vec<TransportView> =
        conditions.iter().flat_map(|condition| &condition.cells).map(|cell| cell.transport(flow)).collect();
    let mut terms = transport_terms(&views);
    let kinds: Vec<DelayKind> = conditions.iter().map(|condition| condition.delay_kind(flow)).collect();
    terms.extend(definitions(summary, &kinds));
    let resent = ("resent", "data packets sent again / data packets sent".to_owned());
    if conditions.iter().any(|condition| !condition.other_flows(flow).is_empty()) {
        terms.push(resent);
    }
    terms.push(("ranking", RULE.to_owned()));
    notes(&mut terms, summary, &out);
    out.push_str(&glossary(&terms, style));
    out
}

/// Every flow, group and link of every cell.
pub fn run_table(summary: &Summary, style: &Style) -> String {
    let mut out = heading(summary, style);
    let cells = CellView::all(summary);
    for cell in cells.iter().take(MAX_CELLS) {
        if cells.len() > 1 {
            let label = format!("cell {}: {}", cell.cell.cell, cell.sweep_label(""));
            out.push_str(&wrap(&paint(&printable(&label), "1", style.color), style.width, "", "  "));
        }
        print_grid(&mut out, &tables::flows(cell), style);
        let Some(run) = cell.run else { continue };
        for grid in [tables::groups(run), tables::links(run)].into_iter().flatten() {
            print_grid(&mut out, &grid, style);
        }
    }
    if cells.len() > MAX_CELLS {
        let rest = format!("{} more cells are in summary.json and report.html.", cells.len() - MAX_CELLS);
        out.push_str(&wrap(&rest, style.width, "", ""));
        out.push('\n');
    }
    let flow = main_flow(summary);
    let several = conditions(summary, &flow).iter().any(|condition| judge(condition, &flow).is_some());
    if several {
        for condition in conditions(summary, &flow) {
            let Some(verdict) = judge(&condition, &flow) else { continue };
            let label = if condition.label.is_empty() {
                flow.clone()
            } else {
                format!("{flow}, {}", condition.label)
            };
            out.push_str(&wrap(
                &printable(&format!("{label}: {}", verdict.winner.sentence)),
                style.width,
                "",
                "",
            ));
        }
        out.push('\n');
    }
    let mut kinds: Vec<DelayKind> = cells
        .iter()
        .filter_map(|cell| cell.run.map(|run| (cell, run)))
        .flat_map(|(cell, run)| run.flows.keys().map(|flow| cell.delay_kind(flow)))
        .collect();
    kinds.sort();
    kinds.dedup();
    let mut terms = definitions(summary, &kinds);
    terms.push(("resent", "data packets sent again / data packets sent".to_owned()));
    if cells.iter().any(|cell| cell.cell.n > 1) {
        terms.push(("counts", "messages sent and lost, groups and links are repetition 0's".to_owned()));
    }
    notes(&mut terms, summary, &out);
    out.push_str(&glossary(&terms, style));
    out
}

/// The lines above the table: what ran, and loudly what is wrong with it.
fn heading(summary: &Summary, style: &Style) -> String {
    let mut out = wrap(&paint(&printable(&summary.name), "1", style.color), style.width, "", "");
    out.push_str(&wrap(&printable(&about_run(summary)), style.width, "", ""));
    if !summary.valid {
        let text = paint("INVALID RUN: do not trust these figures.", "1;31", style.color);
        out.push_str(&format!("\n{text}\n"));
    }
    for (index, warning) in summary.warnings.iter().enumerate() {
        if index == 0 && summary.valid {
            out.push('\n');
        }
        let text = wrap(&printable(&format!("warning: {warning}")), style.width, "", "  ");
        out.push_str(&paint(text.trim_end(), "33", style.color));
        out.push('\n');
    }
    out.push('\n');
    out
}

/// `sim, 5 repetitions, seeds from 1, exact percentiles`.
pub(crate) fn about_run(summary: &Summary) -> String {
    let n = summary.cells.iter().map(|cell| cell.n).max().unwrap_or(0);
    let first = summary.runs.iter().min_by_key(|run| (run.repetition, run.cell));
    let seed = match (first, n) {
        (None, _) => "no finished repetition".to_owned(),
        (Some(run), 0 | 1) => format!("1 repetition, seed {}", run.seed),
        (Some(run), n) => {
            format!(
                "{}, seeds derived from {}; medians with 95 % intervals",
                counted(n, "repetition"),
                run.seed
            )
        }
    };
    format!("{}, {seed}, percentiles {}", summary.arena, summary.percentiles)
}

/// What the words of the tables mean.
pub(crate) fn definitions(summary: &Summary, kinds: &[DelayKind]) -> Vec<(&'static str, String)> {
    let mut terms = Vec::new();
    if kinds.contains(&DelayKind::RoundTrip) {
        let text =
            "from the moment a message was due until its echo was read: a sender that had to wait counts";
        terms.push(("round trip", text.to_owned()));
    }
    if kinds.contains(&DelayKind::OneWay) {
        let text =
            "from the moment a message was due until the far end read it: a sender that had to wait counts";
        terms.push(("one way", text.to_owned()));
    }
    let jitter =
        "90th percentile of the unsigned IPDV |D(i) - D(i-1)| over consecutive delivered messages (RFC 3393)";
    terms.push(("jitter", jitter.to_owned()));
    terms.push(("loss", "missing / sent, by sequence number; unfinished ones left out".to_owned()));
    terms.push(("goodput", "payload delivered a second".to_owned()));
    if summary.cells.iter().any(|cell| cell.n > 1) {
        let text = "median over the repetitions; under it the 95 % interval of their mean (Student's t)";
        terms.push(("figures", text.to_owned()));
    }
    terms
}

/// Explains names that do not explain themselves.
pub(crate) fn transport_terms(views: &[TransportView]) -> Vec<(&'static str, String)> {
    let mut terms: Vec<(&'static str, String)> = Vec::new();
    for view in views.iter().filter(|view| !view.display.about.is_empty()) {
        if terms.iter().all(|(name, _)| *name != view.display.name) {
            terms.push((view.display.name, view.display.about.to_owned()));
        }
    }
    terms
}

/// Why figures are missing, where any are.
pub(crate) fn notes(terms: &mut Vec<(&'static str, String)>, summary: &Summary, shown: &str) {
    if shown.contains(UNKNOWN) {
        terms.push((
            UNKNOWN,
            "not known in this arena, or nothing to count (no arrival, no retransmission)".to_owned(),
        ));
    }
    if !summary.clock.trusted {
        terms.push(("clock", format!("one-way figures are left out: {}", printable(&summary.clock.why))));
    }
}

fn print_grid(out: &mut String, grid: &Grid, style: &Style) {
    let (text, left_out) = grid.text(style);
    out.push_str(&text);
    if !left_out.is_empty() {
        let note = format!("(left out at this width: {})", left_out.join(", "));
        out.push_str(&wrap(&note, style.width, "", " "));
    }
    out.push('\n');
}

/// Terms and their meanings with a hanging indent.
fn glossary(terms: &[(&'static str, String)], style: &Style) -> String {
    let widest = terms.iter().map(|(term, _)| columns_of(term)).max().unwrap_or(0);
    let mut out = String::new();
    for (term, meaning) in terms {
        let first = format!("{term}{}", " ".repeat(widest + 2 - columns_of(term)));
        let text = wrap(meaning, style.width, &first, &" ".repeat(widest + 2));
        out.push_str(&paint(text.trim_end(), "2", style.color));
        out.push('\n');
    }
    out
}

/// `text` broken at spaces into lines of at most `width` columns; a longer word gets a line of its own.
fn wrap(text: &str, width: usize, first: &str, rest: &str) -> String {
    let (mut out, mut line) = (String::new(), first.to_owned());
    let mut empty = true;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if !empty && columns_of(&line) + 1 + columns_of(word) > width {
            out.push_str(line.trim_end());
            out.push('\n');
            line = rest.to_owned();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
    out
}

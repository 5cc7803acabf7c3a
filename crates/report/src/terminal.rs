//! What `talkpath compare` and `talkpath run` print: a heading, what is wrong with the run, the answer and
//! its reasons, the table, and the meaning of the words. Over a sweep the answers are counted, and one table
//! shows the best transport of each combination.

use talkpath_measure::summary::Summary;
use talkpath_measure::warning;

use crate::Style;
use crate::condition::conditions;
use crate::grid::{Grid, GridText, columns_of, paint, printable, wrap};
use crate::html;
use crate::number::count;
use crate::receiver::receivers;
use crate::sweep::Sweep;
use crate::sweep::table::SweepTable;
use crate::tables::{self, ComparisonTables};
use crate::term::{Term, TermKind, Terms, add_new_terms};
use crate::terms::{self, ComparisonLegend, FlowMeanings, RunLegend};
use crate::usable::receivers_decide;
use crate::verdict::{ConditionAnswer, ConditionVerdict, FlowCells, JudgedFlow, Verdict, no_answer};
use crate::view::{CellView, is_copy};

/// [`run_table`] prints the tables of all flows if there are no more cells than this. Chosen: a comparison
/// has three transports, and the tables of more cells fill more than a screen.
const MAX_CELLS: usize = 3;

/// With more answers than this, the answers are only counted, and the table over the sweep shows each of
/// them; chosen.
const MAX_IN_FULL: usize = 3;

/// The most rows of all tables over a sweep together. Chosen: with the heads and the words they fill a screen
/// of 40 lines.
const MAX_ROWS: usize = 32;

/// Printed instead of the meanings of the columns.
const EXPLAINED: &str = "What the columns mean: add --explain, or open report.html.";

/// The least width of a line. A narrower terminal breaks the lines itself.
const MIN_WIDTH: usize = 60;

/// Writes the answer for `flow`, the table that compares its transports, and the meaning of the words. Over a
/// sweep the table has one row for each combination.
pub fn comparison_table(summary: &Summary, flow: &str, style: &Style) -> String {
    let style = &style.usable();
    let mut out = heading(summary, style);
    let flows = [FlowCells { flow: flow.to_owned(), conditions: conditions(summary, flow) }];
    let Compared { answers, mut tables, mut terms, is_swept } = compared(summary, &flows, style);
    if answers.is_empty() {
        let text = no_answer(&flows[0].conditions, flow);
        out.push_str(&wrap(&printable(&text), style.width, "", ""));
        out.push('\n');
        if !is_swept {
            let judged = flows[0].judge();
            tables.clear();
            let columns = print_comparisons(&mut tables, &judged, style);
            terms = ComparisonLegend { summary, judged: &judged, columns, shown: &tables }.terms();
        }
    }
    out.push_str(&answers);
    out.push_str(&losses(summary, style));
    out.push_str(&tables);
    out.push_str(&notes(summary, style));
    out.push_str(&glossary(&terms, style));
    out
}

/// Repeats the heading's lines on large losses and on fragments as a part of the answer. A user who meant per
/// cent sees the mistake here, and a user who takes the loss of fragments for the loss of a transport, too.
fn losses(summary: &Summary, style: &Style) -> String {
    let lines = summary.understood.losses.iter().chain(&summary.understood.fragments);
    let lines: String = lines.map(|line| wrap(&printable(line), style.width, "", "")).collect();
    if lines.is_empty() { lines } else { lines + "\n" }
}

/// The answers and their tables. Everything is empty if nothing is compared.
struct Compared {
    answers: String,
    tables: String,
    terms: Terms,
    /// Whether a table has more than one combination of the other swept keys.
    is_swept: bool,
}

/// Writes the answers for each flow, and the tables with their figures.
fn compared(summary: &Summary, flows: &[FlowCells<'_>], style: &Style) -> Compared {
    let mut out =
        Compared { answers: String::new(), tables: String::new(), terms: Terms::new(), is_swept: false };
    let rows = MAX_ROWS / flows.len().max(1);
    for cells in flows {
        let judged = cells.judge();
        let (flow, answers) = (judged.flow, judged.answers());
        let sweep = Sweep::beyond_answers(&judged);
        if let Some(sweep) = &sweep {
            out.is_swept = true;
            let headline = wrap(&printable(&sweep.headline()), style.width, "", "");
            out.answers.push_str(&paint(headline.trim_end(), "1", style.color));
            out.answers.push_str("\n\n");
        }
        let is_in_full = answers.len() <= MAX_IN_FULL;
        for ConditionAnswer { condition, verdict } in answers.iter().filter(|_| is_in_full) {
            let mut labels = Vec::new();
            if flows.len() > 1 {
                labels.push(flow);
            }
            if answers.len() > 1 && !condition.label.is_empty() {
                labels.push(condition.label.as_str());
            }
            out.answers.push_str(&answer_in_full(verdict, &labels.join(", "), style));
            out.answers.push('\n');
        }
        if let Some(sweep) = &sweep {
            let SweepTable { grid, note } = sweep.table_within(rows);
            if flows.len() > 1 {
                out.tables.push_str(&paint(&printable(flow), "1", style.color));
                out.tables.push('\n');
            }
            print_grid(&mut out.tables, &grid, style);
            if let Some(note) = note {
                out.tables.push_str(&wrap(&printable(&note), style.width, "", ""));
                out.tables.push('\n');
            }
            add_new_terms(&mut out.terms, terms::sweep_terms(sweep, &judged));
        }
        if is_in_full && !answers.is_empty() {
            let mut tables = String::new();
            let columns = print_comparisons(&mut tables, &judged, style);
            let legend = ComparisonLegend { summary, judged: &judged, columns, shown: &tables };
            add_new_terms(&mut out.terms, legend.terms());
            out.tables.push_str(&tables);
        }
    }
    out
}

/// Writes the table of each condition, with one row for each transport. Returns the words of the columns.
fn print_comparisons(out: &mut String, judged: &JudgedFlow<'_>, style: &Style) -> Terms {
    let tables = ComparisonTables::new(judged);
    let mut terms = Terms::new();
    for ConditionVerdict { condition, verdict } in &judged.conditions {
        if !condition.label.is_empty() {
            out.push_str(&paint(&printable(&condition.label), "1", style.color));
            out.push_str("\n\n");
        }
        terms.extend(print_grid(out, &tables.grid(condition, verdict.as_deref()), style));
    }
    terms
}

/// Writes the lines of an answer. `label` says what the answer is for, and stands before the first line.
fn answer_in_full(verdict: &Verdict, label: &str, style: &Style) -> String {
    let label = if label.is_empty() { String::new() } else { format!("{label}: ") };
    let mut out = String::new();
    for (number, line) in verdict.lines().into_iter().enumerate() {
        let text = if number == 0 { format!("{label}{line}") } else { line.to_owned() };
        let text = wrap(&printable(&text), style.width, "", "");
        let code = if number == 0 { "1" } else { "" };
        out.push_str(&paint(text.trim_end(), code, style.color));
        out.push('\n');
    }
    out
}

/// Writes the answers and their tables. If there are few cells, the tables of all flows, groups and links
/// follow.
pub fn run_table(summary: &Summary, style: &Style) -> String {
    let style = &style.usable();
    let mut out = heading(summary, style);
    let flows = FlowCells::all(summary);
    let Compared { answers, tables, mut terms, .. } = compared(summary, &flows, style);
    if !answers.is_empty() {
        out.push_str(&answers);
        out.push_str(&losses(summary, style));
    }
    out.push_str(&tables);
    let cells = CellView::all(summary);
    if cells.len() > MAX_CELLS {
        let text = format!(
            "Every flow and link of the {} cells is in summary.json{}.",
            count(cells.len() as u64),
            if cells.len() <= html::DETAILED_CELLS { ", and in report.html" } else { "" }
        );
        out.push_str(&wrap(&text, style.width, "", ""));
        out.push('\n');
    } else {
        out.push_str(&undecided_by_receivers(&cells, &flows, style));
        let mut tables_of_cells = String::new();
        let columns = print_cells(&mut tables_of_cells, &cells, style);
        // The terms of these tables come first, because their meanings hold for the comparisons as well.
        let terms_of_comparisons = terms;
        terms = RunLegend { summary, cells: &cells, columns, shown: &tables_of_cells }.terms();
        add_new_terms(&mut terms, terms_of_comparisons);
        out.push_str(&tables_of_cells);
    }
    out.push_str(&notes(summary, style));
    out.push_str(&glossary(&terms, style));
    out
}

/// Writes a sentence for each call of these cells that is usable with one of two receivers only. A call with
/// an answer is left out, because its answer says so.
fn undecided_by_receivers(cells: &[CellView<'_>], flows: &[FlowCells<'_>], style: &Style) -> String {
    let mut answered: Vec<&str> = Vec::new();
    for flow_cells in flows {
        if !flow_cells.judge().answers().is_empty() {
            answered.push(&flow_cells.flow);
        }
    }
    let is_answered = |name: &str| answered.iter().any(|flow| *flow == name || is_copy(name, flow));
    let mut out = String::new();
    for cell in cells {
        let label = cell.sweep_label(&[]);
        let label = if label.is_empty() { label } else { format!("{label}: ") };
        for sentence in receivers_decide(cell, is_answered) {
            let text = wrap(&printable(&format!("{label}{sentence}")), style.width, "", "");
            out.push_str(&paint(text.trim_end(), "1", style.color));
            out.push('\n');
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// Writes the tables of all flows, groups and links of these cells. Returns the words of the columns.
fn print_cells(out: &mut String, cells: &[CellView<'_>], style: &Style) -> Terms {
    let meanings = FlowMeanings::new(cells);
    let mut terms = Terms::new();
    for cell in cells {
        if cells.len() > 1 {
            let label = format!("cell {}: {}", cell.cell.cell, cell.sweep_label(&[]));
            out.push_str(&wrap(&paint(&printable(&label), "1", style.color), style.width, "", "  "));
        }
        terms.extend(print_grid(out, &tables::flows(cell, &meanings), style));
        let Some(run) = cell.run() else { continue };
        let grids = [
            tables::groups(cell),
            tables::links(run),
            tables::ecn_marks(run),
            tables::breaks(run),
            tables::machine(run),
        ];
        for grid in grids.into_iter().flatten() {
            terms.extend(print_grid(out, &grid, style));
        }
        if let Some(line) = tables::machine_line(run) {
            out.push_str(&wrap(&line, style.width, "", ""));
            out.push('\n');
        }
    }
    terms
}

impl Style {
    fn usable(self) -> Self {
        Self { width: self.width.max(MIN_WIDTH), ..self }
    }
}

/// Writes the lines above the table: what was run, and what is wrong with the run.
fn heading(summary: &Summary, style: &Style) -> String {
    let mut out = wrap(&paint(&printable(&summary.name), "1", style.color), style.width, "", "");
    out.push_str(&wrap(&printable(&terms::about_run(summary)), style.width, "", ""));
    if let Some(receivers) = receivers(summary) {
        out.push_str(&wrap(&receivers, style.width, "", "  "));
    }
    for line in summary.understood.lines() {
        out.push_str(&wrap(&printable(line), style.width, "", "  "));
    }
    if !summary.valid {
        let text = paint("INVALID RUN: do not trust these figures.", "1;31", style.color);
        out.push_str(&format!("\n{text}\n"));
    }
    let above = summary.warnings.iter().filter(|warning| !warning::is_note(warning));
    for (index, warning) in above.enumerate() {
        if index == 0 && summary.valid {
            out.push('\n');
        }
        let is_reason = warning::reason(warning).is_some();
        let text = if is_reason { warning.clone() } else { format!("warning: {warning}") };
        let text = wrap(&printable(&text), style.width, "", "  ");
        out.push_str(&paint(text.trim_end(), if is_reason { "31" } else { "33" }, style.color));
        out.push('\n');
    }
    out.push('\n');
    out
}

/// What helps to read the tables above.
fn notes(summary: &Summary, style: &Style) -> String {
    let notes = summary.warnings.iter().filter(|warning| warning::is_note(warning));
    notes.map(|note| wrap(&printable(note), style.width, "", "  ") + "\n").collect()
}

/// Writes a table, and names the columns that are left out. Returns the words of the columns that are shown.
fn print_grid(out: &mut String, grid: &Grid, style: &Style) -> Terms {
    let GridText { text, left_out, terms } = grid.text(style);
    out.push_str(&text);
    if !left_out.is_empty() {
        let note = format!("(left out at this width: {})", left_out.join("; "));
        out.push_str(&wrap(&note, style.width, "", " "));
    }
    out.push('\n');
    terms
}

/// Terms and their meanings with a hanging indent; without `--explain` only what is known of this run.
fn glossary(terms: &Terms, style: &Style) -> String {
    let is_printed = |term: &&Term| style.explain || term.kind == TermKind::Finding;
    let printed: Vec<&Term> = terms.iter().filter(is_printed).collect();
    let widest = printed.iter().map(|term| columns_of(term.name)).max().unwrap_or(0);
    let mut out = String::new();
    for Term { name, meaning, .. } in &printed {
        let first = format!("{name}{}", " ".repeat(widest + 2 - columns_of(name)));
        let text = wrap(&printable(meaning), style.width, &first, &" ".repeat(widest + 2));
        out.push_str(&paint(text.trim_end(), "2", style.color));
        out.push('\n');
    }
    if printed.len() < terms.len() {
        out.push_str(&wrap(EXPLAINED, style.width, "", ""));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use serde_json::Value;
    use talkpath_measure::summary::Ledger;

    const WIDE: Style = Style { width: 100, color: false, explain: true };

    #[test]
    fn the_comparison_reads_as_one_expects_and_its_numbers_are_the_summarys() {
        let summary = fixture::summary(1);
        let text = comparison_table(&summary, "call", &WIDE);
        for (name, run) in ["UDP", "TCP", "TCP_NODELAY"].iter().zip(&summary.runs) {
            let row = text.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap();
            let delay = run.flows["call"].round_trip_delay_ms.as_ref().unwrap();
            for figure in [delay.p50, delay.p90, delay.p99].map(|value| format!("{value:.1}")) {
                assert!(row.split_whitespace().any(|text| text == figure), "no {figure} in: {row}");
            }
        }
        insta::assert_snapshot!("comparison", text);
    }

    #[test]
    fn every_line_fits_its_width() {
        for n in [1, 5] {
            let summary = fixture::summary(n);
            for width in [72, 80, 100] {
                let style = Style { width, color: false, explain: true };
                let text = comparison_table(&summary, "call", &style) + &run_table(&summary, &style);
                let long: Vec<&str> = text.lines().filter(|line| columns_of(line) > width).collect();
                assert!(long.is_empty(), "{long:?}");
            }
        }
    }

    #[test]
    fn the_words_below_a_table_are_those_of_the_columns_that_it_has_at_its_width() {
        let summary = fixture::summary(5);
        let terms = |width| {
            let text = comparison_table(&summary, "call", &Style { width, color: false, explain: true });
            let has = |term: &str| text.lines().any(|line| line.starts_with(&format!("{term} ")));
            ["mouth to ear", "vs", "jitter", "resent"].map(has)
        };
        assert_eq!(terms(200), [true; 4]);
        // The note below the table names the columns that are left out, which does not explain them.
        assert_eq!(terms(72), [true, false, false, false]);
    }

    #[test]
    fn without_explain_no_column_is_defined_and_what_is_known_of_the_run_stays() {
        let mut summary = fixture::summary(5);
        summary.clock.trusted = false;
        summary.clock.why = "the hulls disagree in slope".to_owned();
        let explained = comparison_table(&summary, "call", &WIDE);
        assert!(explained.contains("mean opinion score") && !explained.contains(EXPLAINED), "{explained}");
        let style = Style { explain: false, ..WIDE };
        for short in [comparison_table(&summary, "call", &style), run_table(&summary, &style)] {
            assert!(!short.contains("mean opinion score") && !short.contains("\nranking "), "{short}");
            for known in ["\nclock ", "\nrepetitions ", EXPLAINED] {
                assert!(short.contains(known), "no {known} in {short}");
            }
        }
    }

    #[test]
    fn a_connection_that_did_not_open_has_a_dash_and_not_the_worst_score() {
        let mut summary = fixture::summary(5);
        for run in summary.runs.iter_mut().filter(|run| run.cell == 1) {
            let call = run.flows.get_mut("call").unwrap();
            let not_open = call.sent;
            (call.received, call.opening_ms) = (0, None);
            call.ledger = Some(Ledger { due: not_open, not_open, ..Ledger::default() });
            call.call.as_mut().unwrap().mos = 1.0;
        }
        fixture::refresh(&mut summary);
        let text = comparison_table(&summary, "call", &WIDE) + &run_table(&summary, &WIDE);
        assert!(text.contains("TCP did not open."), "{text}");
        let rows: Vec<_> = text.lines().filter(|line| line.contains("TCP ") && line.contains('–')).collect();
        assert!(rows.len() >= 2 && !rows.iter().any(|row| row.contains(" 1.00 ")), "{text}");
    }

    #[test]
    fn five_repetitions_read_as_one_expects() {
        let summary = fixture::summary(5);
        let text = comparison_table(&summary, "call", &Style { width: 80, color: false, explain: true });
        assert!(text.contains("5 repetitions") && text.contains("95 %"));
        insta::assert_snapshot!("comparison-five-repetitions", text);
    }

    #[test]
    fn the_run_table_has_every_flow_and_link() {
        let summary = fixture::summary(1);
        let text = run_table(&summary, &WIDE);
        for run in &summary.runs {
            let upload = &run.flows["upload"];
            assert!(text.contains(&format!("{:.3}", upload.goodput_bps.unwrap() / 1e6)));
        }
        assert_eq!(text.lines().filter(|line| line.starts_with("upload")).count(), 3);
        assert_eq!(text.lines().filter(|line| line.starts_with("up ")).count(), 3);
        insta::assert_snapshot!("run", text);
    }

    #[test]
    fn the_words_of_outcomes_are_explained_where_they_occur() {
        let (summary, _) = fixture::sweep_of_two(10, 3);
        let text = run_table(&summary, &WIDE);
        let (table, legend) = text.split_once("\nbest ").unwrap();
        let explained = legend.lines().position(|line| line.starts_with("outcome ")).unwrap();
        let legend = legend.lines().skip(explained).collect::<Vec<_>>().join(" ");
        for word in ["distinct", "alike", "undecided", "unusable"] {
            let occurs = table.split_whitespace().any(|it| it.trim_end_matches(',') == word);
            assert_eq!(legend.contains(&format!("{word}: ")), occurs, "{word}: {text}");
        }
        assert!(legend.contains("distinct: ") && !legend.contains("undecided: "), "{legend}");
    }

    #[test]
    fn a_note_stands_below_the_tables_and_a_warning_above_them() {
        let mut summary = fixture::summary(5);
        summary.warnings = vec!["slow".to_owned(), warning::note("the repetitions are the same")];
        for text in [run_table(&summary, &WIDE), comparison_table(&summary, "call", &WIDE)] {
            let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part} in {text}"));
            assert!(place("warning: slow") < place("transport "), "{text}");
            assert!(place("transport ") < place("\nnote: the repetitions are the same\n"), "{text}");
            assert!(place("note: ") < place("ranking "), "{text}");
        }
    }

    #[test]
    fn a_sweep_of_many_cells_prints_its_answers_and_one_screen() {
        for (losses, delays) in [(1, 30), (30, 1), (10, 17), (40, 40)] {
            let (summary, _) = fixture::sweep_of_two(losses, delays);
            let text = run_table(&summary, &WIDE);
            let lines = text.lines().count();
            assert!(lines <= 55, "{losses} x {delays}: {lines} lines\n{text}");
            let headline = text.lines().position(|line| line.starts_with("call over ")).unwrap();
            assert!(headline < text.lines().position(|line| line.contains("outcome")).unwrap());
            let (shown, all) = (32, losses * delays);
            if all > shown {
                let text = text.replace('\n', " ");
                let hidden =
                    format!(" of the {all} combinations are not shown one by one. All are in report.html");
                assert!(text.contains(&hidden), "{text}");
            }
        }
    }

    #[test]
    fn a_sweep_without_repetitions_says_how_to_get_an_answer() {
        let hint = "One repetition does not tell which is best; try --repeat 20.";
        let (mut summary, _) = fixture::sweep_of_two(2, 3);
        assert!(!run_table(&summary, &WIDE).replace('\n', " ").contains(hint));
        summary.runs.retain(|run| run.repetition == 0);
        fixture::refresh(&mut summary);
        let text = run_table(&summary, &WIDE).replace('\n', " ");
        assert!(text.contains("undecided in 6") && text.contains(hint), "{text}");
    }

    #[test]
    fn a_sweep_that_fits_has_a_row_for_each_combination_and_leaves_nothing_out() {
        let (summary, _) = fixture::sweep_of_two(5, 6);
        let text = run_table(&summary, &WIDE);
        let outcomes = ["distinct", "alike", "undecided", "unusable"];
        let is_row = |line: &&str| line.contains(" ms  ") && outcomes.iter().any(|word| line.ends_with(word));
        let rows = text.lines().filter(is_row);
        assert_eq!(rows.count(), 30, "{text}");
        assert!(!text.contains("are not shown"));
    }

    #[test]
    fn every_judged_flow_of_a_sweep_is_answered() {
        let (mut summary, _) = fixture::sweep_of_two(2, 2);
        for run in &mut summary.runs {
            let loss = run.sweep.remove("path.up.loss").unwrap();
            let upload = if loss == 0.0 { "tcp" } else { "tcp-nodelay" };
            run.sweep.insert("flow.upload.transport".to_owned(), Value::from(upload));
        }
        fixture::refresh(&mut summary);
        let flows: Vec<String> = crate::comparisons(&summary).into_iter().map(|it| it.flow).collect();
        assert!(flows.contains(&"call".to_owned()) && flows.contains(&"upload".to_owned()), "{flows:?}");
        let text = run_table(&summary, &WIDE);
        assert!(text.contains("call over ") && text.contains("upload over "), "{text}");
    }

    #[test]
    fn an_invalid_run_and_its_warnings_stand_above_the_table() {
        let mut summary = fixture::summary(1);
        summary.valid = false;
        summary.warnings = ["invalid: a device lost 3 packets", "the emulator was late by 12 ms at p99"]
            .map(str::to_owned)
            .to_vec();
        let text = comparison_table(&summary, "call", &WIDE);
        let table = text.find("round trip, ms").unwrap();
        assert!(text.find("INVALID RUN").unwrap() < table);
        assert!(text.contains("\ninvalid: a device lost 3 packets\nwarning: the emulator was late by 12 ms"));
        assert!(text.find("warning: the emulator was late").unwrap() < table);
        assert!(!comparison_table(&fixture::summary(1), "call", &WIDE).contains("INVALID"));
    }

    #[test]
    fn a_clock_that_is_not_trusted_leaves_a_dash_and_the_reason() {
        let mut summary = fixture::summary(1);
        summary.clock.trusted = false;
        summary.clock.why = "the hulls disagree in slope".to_owned();
        for run in &mut summary.runs {
            let call = run.flows.get_mut("call").unwrap();
            (call.round_trip_delay_ms, call.call, call.in_time) = (None, None, None);
            call.deadline_ms = Some(300.0);
        }
        let text = comparison_table(&summary, "call", &WIDE);
        assert!(text.contains('–') && text.contains("left out: the hulls disagree in slope"));
        assert!(text.contains("No answer"));
    }

    #[test]
    fn an_empty_summary_and_an_unknown_flow_still_print() {
        let mut summary = fixture::summary(1);
        assert!(comparison_table(&summary, "no-such-flow", &WIDE).contains("No answer"));
        summary.runs.clear();
        assert!(run_table(&summary, &WIDE).contains("no finished repetition"));
        summary.cells.clear();
        assert!(comparison_table(&summary, "call", &WIDE).contains("no finished repetition"));
    }

    #[test]
    fn a_hostile_name_reaches_the_terminal_without_its_escapes() {
        let mut summary = fixture::summary(1);
        summary.name = "evil\u{1b}[2J".to_owned();
        assert!(!comparison_table(&summary, "call", &WIDE).contains('\u{1b}'));
    }
}

//! The text that `talkpath compare` and `talkpath run` print.
//!
//! ```text
//! heading       the name of the run, what was run, and the warnings
//! answers       for each compared flow: which transport is best, and why
//! tables        for each answer the transports with their figures, or one table over the sweep
//! notes         what helps to read the tables
//! glossary      the words of the tables with their meanings
//! ```
//!
//! - A *cell* is one combination of swept values. A *condition* is the cells that differ in one flow's
//!   transport only, so that the transports can be compared.
//! - An *answer* names the best transport of a flow under one condition.
//! - A *sweep* is a flow under many conditions. Its headline counts the answers, and its table has the best
//!   transport of each condition.
//! - A *term* is a word of a table with its meaning (`crate::term`).
//!
//! Begin to read with [`comparison_table`] or with [`run_table`].

use talkpath_measure::summary::Summary;
use talkpath_measure::warning;

use crate::Style;
use crate::condition::conditions;
use crate::grid::{Grid, GridText, columns_of, paint, printable, wrap};
use crate::html;
use crate::number::count;
use crate::program::ProgramFigures;
use crate::rated::bursts_sentence;
use crate::receiver::receivers;
use crate::sweep::Sweep;
use crate::sweep::table::SweepTable;
use crate::tables::{self, ComparisonTables};
use crate::term::{Term, TermKind, Terms, add_new_terms};
use crate::terms::{self, ComparisonLegend, FlowMeanings, RunLegend};
use crate::usable::{conversations, receivers_decide};
use crate::verdict::{ConditionAnswer, ConditionVerdict, FlowCells, JudgedFlow, Verdict, no_answer};
use crate::view::{CellView, is_copy};

/// [`run_table`] prints the tables of every flow and link for at most 3 cells. We chose 3 because a
/// comparison has three transports, and the tables of more cells fill more than a screen.
const MAX_CELLS: usize = 3;
/// At most 3 answers of a flow are printed in full. If there are more, the headline of the sweep counts them,
/// and the table over the sweep has each of them.
const MAX_FULL_ANSWERS: usize = 3;
/// All tables over a sweep together have at most 32 rows. We chose 32 because the rows, the heading and the
/// glossary together then fill a screen of 40 lines.
const MAX_SWEEP_ROWS: usize = 32;
/// This line replaces the glossary without `--explain`.
const HOW_TO_EXPLAIN: &str = "What the columns mean: add --explain, or open report.html.";
/// Lines have room for at least 60 characters. A narrower terminal breaks the lines itself.
const MIN_WIDTH: usize = 60;

// The parameters of the SGR escape sequence (ECMA-48 §8.3.117).
const PLAIN: &str = "";
const BOLD: &str = "1";
const FAINT: &str = "2";
const RED: &str = "31";
const YELLOW: &str = "33";
const BOLD_RED: &str = "1;31";

/// Writes the answers for `flow`, the tables that compare its transports, and their glossary.
pub fn comparison_table(summary: &Summary, flow: &str, style: &Style) -> String {
    let style = style.with_usable_width();
    let flows = [FlowCells { flow: flow.to_owned(), conditions: conditions(summary, flow) }];
    let mut comparison = Comparison::new(summary, &flows, style);
    if comparison.answers.is_empty() {
        comparison.answers.add_paragraph(&no_answer(&flows[0].conditions, flow));
        comparison.answers.add_empty_line();
        comparison.add_tables(&flows[0].judge());
    }
    let Comparison { answers, tables, terms, .. } = comparison;
    let mut text = StyledText::new(style);
    text.add_heading(summary);
    text.append(&answers);
    text.add_losses(summary);
    text.add_bursts(summary);
    text.append(&tables);
    text.add_notes(summary);
    text.add_glossary(&terms);
    text.text
}

/// Writes the answers for all compared flows with their tables. The tables of all flows, groups and links
/// follow if there are few cells.
pub fn run_table(summary: &Summary, style: &Style) -> String {
    let style = style.with_usable_width();
    let flows = FlowCells::all(summary);
    let Comparison { answers, tables, mut terms, .. } = Comparison::new(summary, &flows, style);
    let mut text = StyledText::new(style);
    text.add_heading(summary);
    if !answers.is_empty() {
        text.append(&answers);
        text.add_losses(summary);
    }
    text.add_bursts(summary);
    text.append(&tables);
    if let Some(program) = ProgramFigures::new(summary) {
        let (grid, note) = program.table(MAX_SWEEP_ROWS);
        text.add_title("The program");
        text.add_grid(&grid);
        if let Some(note) = note {
            text.add_paragraph(&note);
            text.add_empty_line();
        }
    }
    let cells = CellView::all(summary);
    if cells.len() > MAX_CELLS {
        let page = if cells.len() <= html::DETAILED_CELLS { ", and in report.html" } else { "" };
        let cell_count = count(cells.len() as u64);
        text.add_paragraph(&format!(
            "Every flow and link of the {cell_count} cells is in summary.json{page}."
        ));
        text.add_empty_line();
    } else {
        text.add_receiver_sentences(&cells, &flows);
        let mut cell_tables = StyledText::new(style);
        let columns = cell_tables.add_tables_of_cells(&cells);
        // If both tables explain a word, the meaning in the tables of the cells is the more general one.
        let mut run_terms = RunLegend { summary, cells: &cells, columns, shown: &cell_tables.text }.terms();
        add_new_terms(&mut run_terms, terms);
        terms = run_terms;
        text.append(&cell_tables);
    }
    text.add_notes(summary);
    text.add_glossary(&terms);
    text.text
}

/// The answers for some flows, and their tables.
struct Comparison<'a> {
    summary: &'a Summary,
    /// Answers and tables name their flow if there are several flows.
    names_flows: bool,
    max_sweep_rows_of_flow: usize,
    /// The headlines and the answers. Empty if nothing is compared.
    answers: StyledText,
    tables: StyledText,
    /// The terms of the tables.
    terms: Terms,
}

impl<'a> Comparison<'a> {
    fn new(summary: &'a Summary, flows: &[FlowCells<'_>], style: Style) -> Self {
        let mut comparison = Self {
            summary,
            names_flows: flows.len() > 1,
            max_sweep_rows_of_flow: MAX_SWEEP_ROWS / flows.len().max(1),
            answers: StyledText::new(style),
            tables: StyledText::new(style),
            terms: Terms::new(),
        };
        for flow in flows {
            comparison.add_flow(&flow.judge());
        }
        comparison
    }

    fn add_flow(&mut self, judged: &JudgedFlow<'_>) {
        if let Some(sweep) = Sweep::beyond_answers(judged) {
            self.answers.add_painted(&sweep.headline(), BOLD);
            self.answers.add_empty_line();
            for choice in sweep.choices() {
                self.answers.add_paragraph(&choice);
                self.answers.add_empty_line();
            }
            self.add_sweep_table(&sweep, judged);
        }
        let answers = judged.answers();
        if !answers.is_empty() && answers.len() <= MAX_FULL_ANSWERS {
            self.add_answers(judged.flow, &answers);
            self.add_tables(judged);
        }
    }

    fn add_answers(&mut self, flow: &str, answers: &[ConditionAnswer<'_>]) {
        for ConditionAnswer { condition, verdict } in answers {
            let mut labels = Vec::new();
            if self.names_flows {
                labels.push(flow);
            }
            if answers.len() > 1 && !condition.label.is_empty() {
                labels.push(condition.label.as_str());
            }
            self.answers.add_answer(verdict, &labels.join(", "));
            self.answers.add_empty_line();
            if let Some(grid) = tables::changes_tried(verdict) {
                self.answers.add_title(tables::WHAT_WAS_TRIED);
                self.answers.add_grid(&grid);
            }
        }
    }

    fn add_sweep_table(&mut self, sweep: &Sweep<'_>, judged: &JudgedFlow<'_>) {
        let SweepTable { grid, note } = sweep.table_within(self.max_sweep_rows_of_flow);
        if self.names_flows {
            self.tables.add_title(judged.flow);
        }
        self.tables.add_grid(&grid);
        if let Some(note) = note {
            self.tables.add_paragraph(&note);
            self.tables.add_empty_line();
        }
        add_new_terms(&mut self.terms, terms::sweep_terms(sweep, judged));
    }

    /// Adds a table for each condition, with a row for each transport, and the terms of these tables.
    fn add_tables(&mut self, judged: &JudgedFlow<'_>) {
        let mut tables = StyledText::new(self.tables.style);
        let comparison_tables = ComparisonTables::new(judged);
        let mut columns = Terms::new();
        for ConditionVerdict { condition, verdict } in &judged.conditions {
            if !condition.label.is_empty() {
                tables.add_title(&condition.label);
                tables.add_empty_line();
            }
            columns.extend(tables.add_grid(&comparison_tables.grid(condition, verdict.as_deref())));
        }
        let legend = ComparisonLegend { summary: self.summary, judged, columns, shown: &tables.text };
        add_new_terms(&mut self.terms, legend.terms());
        self.tables.append(&tables);
    }
}

impl Style {
    fn with_usable_width(self) -> Self {
        Self { width: self.width.max(MIN_WIDTH), ..self }
    }
}

/// A text for a terminal, which grows paragraph by paragraph.
struct StyledText {
    style: Style,
    text: String,
}

impl StyledText {
    const fn new(style: Style) -> Self {
        Self { style, text: String::new() }
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    fn append(&mut self, other: &Self) {
        self.text.push_str(&other.text);
    }

    fn add_empty_line(&mut self) {
        self.text.push('\n');
    }

    /// Adds a paragraph, broken at the width of the terminal.
    fn add_paragraph(&mut self, text: &str) {
        self.add_painted(text, PLAIN);
    }

    /// Adds a paragraph whose second and further lines are indented.
    fn add_hanging_paragraph(&mut self, text: &str) {
        self.add_wrapped(text, "", "  ", PLAIN);
    }

    fn add_painted(&mut self, text: &str, sgr: &str) {
        self.add_wrapped(text, "", "", sgr);
    }

    /// Adds a painted paragraph, whose first line and other lines have these indents.
    fn add_wrapped(&mut self, text: &str, first_indent: &str, indent: &str, sgr: &str) {
        let wrapped = wrap(&printable(text), self.style.width, first_indent, indent);
        self.text.push_str(&paint(wrapped.trim_end(), sgr, self.style.color));
        self.text.push('\n');
    }

    fn add_title(&mut self, title: &str) {
        self.text.push_str(&paint(&printable(title), BOLD, self.style.color));
        self.text.push('\n');
    }

    /// Adds a table, and a note about columns that the width leaves out. Returns the terms of the other
    /// columns.
    fn add_grid(&mut self, grid: &Grid) -> Terms {
        let GridText { text, left_out, terms } = grid.text(&self.style);
        self.text.push_str(&text);
        if !left_out.is_empty() {
            let note = format!("(left out at this width: {})", left_out.join("; "));
            self.text.push_str(&wrap(&note, self.style.width, "", " "));
        }
        self.add_empty_line();
        terms
    }

    /// Adds the name of the run, what was run, and the warnings.
    fn add_heading(&mut self, summary: &Summary) {
        self.add_painted(&summary.name, BOLD);
        self.add_paragraph(&terms::about_run(summary));
        if let Some(receivers) = receivers(summary) {
            self.add_hanging_paragraph(&receivers);
        }
        for line in summary.understood.lines() {
            self.add_hanging_paragraph(line);
        }
        if !summary.valid {
            self.add_empty_line();
            self.add_painted("INVALID RUN: do not trust these figures.", BOLD_RED);
        }
        self.add_warnings(summary);
        self.add_empty_line();
    }

    fn add_warnings(&mut self, summary: &Summary) {
        let warnings: Vec<&String> =
            summary.warnings.iter().filter(|warning| !warning::is_note(warning)).collect();
        if !warnings.is_empty() && summary.valid {
            self.add_empty_line();
        }
        for warning in warnings {
            // The reason of an invalid run begins with `invalid:`.
            let (text, sgr) = match warning::reason(warning) {
                Some(_) => (warning.clone(), RED),
                None => (format!("warning: {warning}"), YELLOW),
            };
            self.add_wrapped(&text, "", "  ", sgr);
        }
    }

    /// Adds the lines of an answer. `label` says what the answer is for. It may be empty.
    fn add_answer(&mut self, verdict: &Verdict, label: &str) {
        for (index, line) in verdict.lines().into_iter().enumerate() {
            match index {
                0 if label.is_empty() => self.add_painted(line, BOLD),
                0 => self.add_painted(&format!("{label}: {line}"), BOLD),
                _ => self.add_paragraph(line),
            }
        }
    }

    /// Repeats the lines of the heading about large losses and about fragments. They follow the answers,
    /// where a user sees that a loss was not meant so, or that fragments explain the loss of a transport.
    fn add_losses(&mut self, summary: &Summary) {
        let lines: Vec<&String> =
            summary.understood.losses.iter().chain(&summary.understood.fragments).collect();
        for line in &lines {
            self.add_paragraph(line);
        }
        if !lines.is_empty() {
            self.add_empty_line();
        }
    }

    /// Adds the sentence about the scores of calls whose losses come in runs.
    fn add_bursts(&mut self, summary: &Summary) {
        if let Some(sentence) = bursts_sentence(summary) {
            self.add_paragraph(&sentence);
            self.add_empty_line();
        }
    }

    /// Adds a sentence for each call in two directions, and for each that is usable with one of its two
    /// receivers and not with the other. The answer of a judged flow says this itself, so such flows have no
    /// sentence here.
    fn add_receiver_sentences(&mut self, cells: &[CellView<'_>], flows: &[FlowCells<'_>]) {
        let has_answer = |cells: &&FlowCells<'_>| !cells.judge().answers().is_empty();
        let answered: Vec<&FlowCells<'_>> = flows.iter().filter(has_answer).collect();
        let is_answered =
            |name: &str| answered.iter().any(|cells| cells.flow == name || is_copy(name, &cells.flow));
        let mut has_sentences = false;
        for cell in cells {
            let label = cell.sweep_label(&[]);
            let label = if label.is_empty() { label } else { format!("{label}: ") };
            for sentence in
                conversations(cell, is_answered).into_iter().chain(receivers_decide(cell, is_answered))
            {
                self.add_painted(&format!("{label}{sentence}"), BOLD);
                has_sentences = true;
            }
        }
        if has_sentences {
            self.add_empty_line();
        }
    }

    /// Adds the tables of all flows, groups and links of these cells. Returns the terms of the columns.
    fn add_tables_of_cells(&mut self, cells: &[CellView<'_>]) -> Terms {
        let meanings = FlowMeanings::new(cells);
        let mut terms = Terms::new();
        for cell in cells {
            if cells.len() > 1 {
                let title = format!("cell {}: {}", cell.cell.cell, cell.sweep_label(&[]));
                self.add_wrapped(&title, "", "  ", BOLD);
            }
            if let Some(transfers) = tables::transfers(cell) {
                terms.extend(self.add_grid(&transfers));
            }
            terms.extend(self.add_grid(&tables::flows(cell, &meanings)));
            let Some(run) = cell.run() else { continue };
            let grids = [
                tables::groups(cell),
                tables::links(run),
                tables::ecn_marks(run),
                tables::breaks(run),
                tables::machine(run),
            ];
            for grid in grids.into_iter().flatten() {
                terms.extend(self.add_grid(&grid));
            }
            if let Some(line) = tables::machine_line(run) {
                self.add_paragraph(&line);
                self.add_empty_line();
            }
        }
        terms
    }

    /// Adds the notes of a run, which help to read the tables.
    fn add_notes(&mut self, summary: &Summary) {
        for note in summary.warnings.iter().filter(|warning| warning::is_note(warning)) {
            self.add_hanging_paragraph(note);
            self.add_empty_line();
        }
    }

    /// Adds the terms with their meanings in two columns. Without `--explain` only findings about this run
    /// are added.
    fn add_glossary(&mut self, terms: &Terms) {
        let is_shown = |term: &&Term| self.style.explain || term.kind == TermKind::Finding;
        let shown: Vec<&Term> = terms.iter().filter(is_shown).collect();
        let widest = shown.iter().map(|term| columns_of(term.name)).max().unwrap_or(0);
        for Term { name, meaning, .. } in &shown {
            let indent = widest + 2;
            let name_column = format!("{name}{}", " ".repeat(indent - columns_of(name)));
            self.add_wrapped(meaning, &name_column, &" ".repeat(indent), FAINT);
        }
        if shown.len() < terms.len() {
            self.add_paragraph(HOW_TO_EXPLAIN);
        }
    }
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
        assert!(
            explained.contains("mean opinion score") && !explained.contains(HOW_TO_EXPLAIN),
            "{explained}"
        );
        let style = Style { explain: false, ..WIDE };
        for short in [comparison_table(&summary, "call", &style), run_table(&summary, &style)] {
            assert!(!short.contains("mean opinion score") && !short.contains("\nranking "), "{short}");
            for known in ["\nclock ", "\nrepetitions ", HOW_TO_EXPLAIN] {
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
            call.call.as_mut().unwrap().mos = Some(1.0);
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

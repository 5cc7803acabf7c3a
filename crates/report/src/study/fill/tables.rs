//! The Markdown tables of a page: verdicts, printed values beside ours, medians of cells and of figures.

use talkpath_study::{
    ArenaName, ArenaVerdict, Drawing, FigureLine, FigureOutcome, Outcome, PublishedRow, Role, RowOutcome,
    TableOutcome, Verdict, deciding_figures_in_words, figures_in_words, format_number, unit_suffix,
};

use super::find::{find_cells, find_figure};
use super::options::Options;
use crate::number::{UNKNOWN, distinct, list};
use crate::study::published::{
    OurArenas, format_deviation, format_our_medians, format_our_values, format_published_numbers,
    format_published_values, has_columns, row_name,
};
use crate::study::words::{
    agreeing_seeds, claim_counts, medians_over, seeds_in_words, verdict_in_table, verdict_in_words,
};

/// A Markdown table under construction.
struct MarkdownTable {
    text: String,
}

impl MarkdownTable {
    fn new(heads: &[&str]) -> Self {
        let mut table = Self { text: String::new() };
        table.row(heads);
        table.text.push_str(&format!("|{}\n", "---|".repeat(heads.len())));
        table
    }

    fn row<T: AsRef<str>>(&mut self, cells: &[T]) {
        let cells: Vec<String> = cells.iter().map(|cell| cell.as_ref().replace('|', "\\|")).collect();
        self.text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }

    /// The table between two empty lines, as a page shows it.
    fn as_block(&self) -> String {
        format!("\n\n{}\n", self.text)
    }
}

/// The medians of `metrics`, with a row for each cell whose name matches `pattern`.
pub(super) fn table_of_cells(
    outcome: &Outcome,
    pattern: &str,
    metrics: &[&str],
    options: &Options,
) -> Result<String, String> {
    let mut table = MarkdownTable::new(&[&["cell"][..], metrics].concat());
    for cell in find_cells(outcome, pattern)? {
        let mut row = vec![cell.cell.clone()];
        for metric in metrics {
            let value = cell.metrics.get(*metric).ok_or_else(|| format!("{} has no {metric}", cell.cell))?;
            row.push(options.range(value.unit(), &[value.median])?);
        }
        table.row(&row);
    }
    Ok(table.as_block())
}

/// A column of the table of a chart: a place on its horizontal axis.
struct AxisPlace {
    x: f64,
    head: String,
}

/// The medians of a chart, with a row for each line and a column for each place on its horizontal axis.
pub(super) fn table_of_chart(outcome: &Outcome, number: &str, options: &Options) -> Result<String, String> {
    let figure = find_figure(outcome, number)?;
    let (places, lines) = match &figure.drawing {
        Drawing::Lines { lines } => (numbers_on_axis(lines), lines),
        Drawing::Groups { names, lines } => (names_on_axis(names), lines),
        _ => return Err(format!("figure {number} does not show medians over an axis")),
    };
    let axis_titles = join_axis_titles(figure);
    let mut heads = vec![axis_titles.as_str()];
    heads.extend(places.iter().map(|place| place.head.as_str()));
    let mut table = MarkdownTable::new(&heads);
    for line in lines {
        let mut row = vec![line.label.clone()];
        for place in &places {
            row.push(match line.points.iter().find(|point| point.x.total_cmp(&place.x).is_eq()) {
                Some(point) => options.range(None, &[point.median])?,
                None => UNKNOWN.to_owned(),
            });
        }
        table.row(&row);
    }
    Ok(table.as_block())
}

/// The head of the first column. It names the figures of the table with their unit: `MOS, by lost, %`.
fn join_axis_titles(figure: &FigureOutcome) -> String {
    match figure.x_title.as_str() {
        "" => figure.y_title.clone(),
        x_title => format!("{}, by {x_title}", figure.y_title),
    }
}

/// The numbers at which lines have points, ascending.
fn numbers_on_axis(lines: &[FigureLine]) -> Vec<AxisPlace> {
    let mut numbers: Vec<f64> = lines.iter().flat_map(|line| &line.points).map(|point| point.x).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    numbers.into_iter().map(|x| AxisPlace { x, head: format_number(None, x) }).collect()
}

fn names_on_axis(names: &[String]) -> Vec<AxisPlace> {
    let places = names.iter().enumerate();
    places.map(|(index, name)| AxisPlace { x: index as f64, head: name.clone() }).collect()
}

/// The verdicts of all claims. The results of other runs have tables of their own.
pub(super) fn tables_of_verdicts(outcome: &Outcome, other_runs: &[&Outcome]) -> String {
    let mut table = MarkdownTable::new(&["claim", "what it says", "published", "here", "verdict"]);
    for claim in &outcome.claims {
        let verdict = &claim.in_first_arena;
        let mut in_words = verdict_in_table(verdict);
        if is_across_arenas(verdict) {
            in_words.push_str(&format!(" (in {} together)", verdict.arena.replace(',', " and ")));
        }
        table.row(&[&claim.id, &claim.claim, &claim.published, &our_figures(verdict), &in_words]);
    }
    let mut text = table.as_block();
    text.push_str(&about_run(outcome));
    text.push_str(&about_seeds(outcome));
    text.push_str(ABOUT_WORDS);
    let claims = outcome.claims.iter().filter(|claim| is_across_arenas(&claim.in_first_arena));
    let judged_across: Vec<&str> = claims.map(|claim| claim.id.as_str()).collect();
    for other in other_runs {
        text.push_str(&table_of_other_run(other, outcome, &judged_across));
    }
    text.push('\n');
    text
}

/// What the words of a table of verdicts mean. It stands below the first table of a page.
const ABOUT_WORDS: &str = "\n*Fragile*: another set of assumptions, or seed, makes the claim fail. *Only-under*: it fails, and holds under another set. *Undecided*: the \
confidence intervals contain the other answer. *Open*: no other set decides. *(n of m hold)*: the others fail; without these words all hold. \
[What a verdict means](../reference/studies.md#what-a-verdict-means)\n";

/// The figures of a claim. A file of an earlier version has them only as it wrote them then.
fn our_figures(verdict: &ArenaVerdict) -> String {
    let figures = figures_in_words(verdict);
    if figures.is_empty() { verdict.reproduced.clone() } else { figures }
}

/// The figures of a claim by which its verdict is another than the first run's.
fn deciding_figures(verdict: &ArenaVerdict) -> String {
    let figures = deciding_figures_in_words(verdict);
    if figures.is_empty() { our_figures(verdict) } else { figures }
}

/// Whether a claim compares arenas and was judged by runs in both.
fn is_across_arenas(verdict: &ArenaVerdict) -> bool {
    verdict.arena.contains(',') && !verdict.left_out
}

/// The verdicts of a further run that are not those of the `first` run. The table of the first run has the
/// words of the claims, and the verdicts of those that compare arenas, `judged_across`.
fn table_of_other_run(outcome: &Outcome, first: &Outcome, judged_across: &[&str]) -> String {
    let heading = match outcome.arena {
        ArenaName::Sim => "In the simulator",
        ArenaName::Emu => "Over real sockets",
        ArenaName::Campaign => "Between hosts of a campaign",
    };
    let mut table = MarkdownTable::new(&["claim", &format!("in `{}`", outcome.arena), "verdict"]);
    let (mut left_out, mut alike) = (Vec::<String>::new(), Vec::<String>::new());
    for claim in &outcome.claims {
        let verdict = &claim.in_first_arena;
        let first_claim = first.claims.iter().find(|first_claim| first_claim.id == claim.id);
        let is_alike =
            first_claim.is_some_and(|first_claim| first_claim.in_first_arena.verdict == verdict.verdict);
        if !verdict.left_out && is_alike {
            alike.push(claim.id.clone());
        } else if !verdict.left_out {
            table.row(&[&claim.id, &deciding_figures(verdict), &verdict_in_words(verdict)]);
        } else if !judged_across.contains(&claim.id.as_str()) {
            left_out.push(claim.id.clone());
        }
    }
    let mut text = format!("\n**{heading}**{}{}", table.as_block(), about_run(outcome));
    if !alike.is_empty() {
        text.push_str(&format!("The same verdict as in `{}`: {}.\n", first.arena, list(&alike)));
    }
    if !left_out.is_empty() {
        text.push_str(&format!("Not part of this run: {}.\n", list(&left_out)));
    }
    text
}

/// The sentences about the run below a table of verdicts.
fn about_run(outcome: &Outcome) -> String {
    let length = if outcome.quick { " in the short form (`--quick`)" } else { "" };
    let counts = claim_counts(outcome);
    let medians = medians_over(outcome).replacen('m', "M", 1);
    format!(
        "{counts} {medians}{length} in `{}`; in brackets 95 % confidence intervals, from 6 repetitions on.{}\n",
        outcome.arena,
        about_day(outcome)
    )
}

/// The sentence about runs with other seeds. It is about the claims whose row names no other seed, and it
/// names the claims that did not run with all seeds. Empty if no claim ran with another seed.
fn about_seeds(outcome: &Outcome) -> String {
    let verdicts = || outcome.claims.iter().map(|claim| (&claim.id, &claim.in_first_arena));
    let seeds: Vec<Vec<u64>> = verdicts().map(|(_, verdict)| agreeing_seeds(verdict)).collect();
    let Some(most) = seeds.iter().max_by_key(|seeds| seeds.len()).filter(|most| !most.is_empty()) else {
        return String::new();
    };
    let lacks = |verdict: &ArenaVerdict| {
        let is_judged = !matches!(verdict.verdict, Verdict::NotTested | Verdict::Disturbed);
        is_judged && !is_across_arenas(verdict) && verdict.by_seed.len() < most.len()
    };
    let lacking: Vec<String> =
        verdicts().filter(|(_, verdict)| lacks(verdict)).map(|(id, _)| id.clone()).collect();
    let but = match lacking.as_slice() {
        [] => String::new(),
        claims => format!("; not run with all of them: {}", list(claims)),
    };
    format!("The same with {}, where a row says nothing else{but}.\n", seeds_in_words(most))
}

/// The sentences about a run in real time: its day, and the repetitions that the machine disturbed. Empty for
/// a simulation.
fn about_day(outcome: &Outcome) -> String {
    let Some(day) = &outcome.day else { return String::new() };
    let disturbed: u64 = outcome.cells.iter().map(|cell| cell.disturbed).sum();
    let left_out = match disturbed {
        0 => String::new(),
        1 => " 1 repetition is left out, because the machine disturbed it past the stated limits.".to_owned(),
        several => format!(
            " {several} repetitions are left out, because the machine disturbed them past the stated limits."
        ),
    };
    format!(
        " One run, of {day}: real sockets do not repeat themselves, and another run gives other figures.{left_out}"
    )
}

/// Writes the tables of the publication, with our values beside the published ones.
pub(super) fn tables_of_printed(outcome: &Outcome) -> String {
    let arenas = OurArenas::new(outcome);
    let mut text = String::from("\n\n");
    if outcome.tables.iter().any(has_columns) {
        text.push_str(
            "An entry is the printed figure, an arrow, ours, and by how many per cent ours is off. ",
        );
        text.push_str("Its role is that of its column, or stands after it.\n\n");
    }
    for table in &outcome.tables {
        let table_text =
            if has_columns(table) { published_grid(table, &arenas) } else { published_list(table, &arenas) };
        text.push_str(&format!("**{}**\n\n{table_text}\n", table.title));
    }
    text
}

/// A table whose rows name a column: a row for each name, and a column for each column.
fn published_grid(table: &TableOutcome, arenas: &OurArenas) -> String {
    let published_rows = || table.rows.iter().map(|row| &row.published_row);
    let columns: Vec<GridColumn<'_>> = distinct(published_rows().map(|row| row.column.as_str()))
        .into_iter()
        .map(|name| GridColumn::new(table, name))
        .collect();
    let mut heads = vec![String::new()];
    heads.extend(columns.iter().map(GridColumn::head));
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut markdown = MarkdownTable::new(&heads);
    for name in distinct(published_rows().map(|row| row.name.as_str())) {
        let mut cells = vec![name.to_owned()];
        cells.extend(columns.iter().map(|column| column.entry(name, arenas)));
        markdown.row(&cells);
    }
    let notes = grid_notes(table);
    if notes.is_empty() { markdown.text } else { format!("{}\n{notes}", markdown.text) }
}

/// A column of a grid.
struct GridColumn<'a> {
    name: &'a str,
    /// The role that most of its entries have.
    role: Role,
    /// The unit of its entries, after a comma. Empty if they have several, or none.
    unit: String,
    rows: Vec<&'a RowOutcome>,
}

impl<'a> GridColumn<'a> {
    fn new(table: &'a TableOutcome, name: &'a str) -> Self {
        let rows: Vec<&RowOutcome> =
            table.rows.iter().filter(|row| row.published_row.column == name).collect();
        let count = |role: &Role| rows.iter().filter(|row| row.published_row.role == *role).count();
        let roles = [Role::Exempt, Role::Fitted, Role::Assumed, Role::Predicted];
        let role = roles.into_iter().max_by_key(count).unwrap_or(Role::Predicted);
        let units = distinct(rows.iter().map(|row| unit_suffix(row.unit()).trim().to_owned()));
        let unit = match units.as_slice() {
            [unit] if unit == "ms" => format!(", {unit}"),
            _ => String::new(),
        };
        Self { name, role, unit, rows }
    }

    fn head(&self) -> String {
        format!("{}{} ({})", self.name, self.unit, self.role)
    }

    /// The entry of the row that is called `name`. It is empty if nothing was published there.
    fn entry(&self, name: &str, arenas: &OurArenas) -> String {
        let Some(row) = self.rows.iter().find(|row| row.published_row.name == name) else {
            return String::new();
        };
        let deviation = match format_deviation(row, arenas) {
            percent if percent.contains(" %") => percent.replace(" %", ""),
            none if none.is_empty() => none,
            // Of a count of 0 or 1 it is a difference.
            difference => format!("by {difference}"),
        };
        let role = row.published_row.role;
        let mut remarks = vec![deviation];
        if role != self.role {
            remarks.push(role.to_string());
        }
        remarks.retain(|remark| !remark.is_empty());
        let remarks = if remarks.is_empty() { String::new() } else { format!(" ({})", remarks.join(", ")) };
        let mut ours = format_our_medians(row, arenas);
        if !self.unit.is_empty() {
            ours = ours.replace(" ms", "");
        }
        format!("{}→{ours}{remarks}", format_published_numbers(row))
    }
}

/// The notes of a grid, each with the entries that have it.
fn grid_notes(table: &TableOutcome) -> String {
    let rows = || table.rows.iter().map(|row| &row.published_row).filter(|row| !row.note.is_empty());
    let mut text = String::new();
    for note in distinct(rows().map(|row| row.note.as_str())) {
        let noted: Vec<&PublishedRow> = rows().filter(|row| row.note == note).collect();
        let count = |is_there: &dyn Fn(&PublishedRow) -> bool| {
            table.rows.iter().filter(|row| is_there(&row.published_row)).count()
        };
        // A note of a whole row or of a whole column names that alone.
        let is_whole = |is_there: &dyn Fn(&PublishedRow) -> bool| {
            noted.iter().filter(|row| is_there(row)).count() == count(is_there)
        };
        let entry = |row: &&PublishedRow| {
            if is_whole(&|other| other.name == row.name) {
                row.name.clone()
            } else if is_whole(&|other| other.column == row.column) {
                row.column.clone()
            } else {
                format!("{} ({})", row.name, row.column)
            }
        };
        let entries: Vec<String> = distinct(noted.iter().map(entry));
        text.push_str(&format!("- {}: {note}\n", entries.join(", ")));
    }
    text
}

/// A table without columns: a row for each published value.
fn published_list(table: &TableOutcome, arenas: &OurArenas) -> String {
    let has_notes = table.rows.iter().any(|row| !row.published_row.note.is_empty());
    let mut heads = vec!["what", "printed", "here", "off by", "role"];
    if has_notes {
        heads.push("note");
    }
    let mut markdown = MarkdownTable::new(&heads);
    for row in &table.rows {
        let published_row = &row.published_row;
        let mut cells = vec![row_name(published_row)];
        cells.push(format_published_values(row));
        cells.push(format_our_values(row, arenas));
        cells.push(format_deviation(row, arenas));
        cells.push(published_row.role.to_string());
        if has_notes {
            cells.push(published_row.note.clone());
        }
        markdown.row(&cells);
    }
    markdown.text
}

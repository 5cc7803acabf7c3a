//! Tables, which become text for a terminal or HTML for a page. Both are made of the same strings, so a
//! number is the same in both.
//!
//! - A *group* of columns is neighbouring columns under one title. Each column has a *head* below the title.
//! - The *layout* of a table is the columns that fit the terminal, with their widths. The other columns are
//!   *left out*.
//! - A *term* is a word that a legend explains (`crate::term`).
//!
//! ```text
//!                round trip, ms           the title of a group
//! transport       p50    p90  loss %      the heads
//! UDP            62.1  182.4    0.00      a row, whose first cell has the colour of its transport
//! ```
//!
//! Begin to read with [`Grid`], then [`Grid::text`].

use std::cmp::Reverse;

use maud::{Markup, html};
use talkpath_units::is_printable;

use crate::display::Display;
use crate::number::{NO_BREAK, glued};
use crate::term::{Term, Terms};

/// How a table is shown on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// The width of the terminal in characters. If a table is wider, it leaves columns out. Text is wrapped.
    pub width: usize,
    /// Whether ANSI colours may be used. The caller has looked at the terminal and at `NO_COLOR`.
    pub color: bool,
    /// Whether the meaning of the columns is printed below the tables.
    pub explain: bool,
}

/// A table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grid {
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
}

/// A table as text.
pub(crate) struct GridText {
    pub text: String,
    /// The heads of the columns that were left out.
    pub left_out: Vec<String>,
    /// The terms of the other columns, from left to right.
    pub terms: Terms,
}

/// A column. Neighbouring columns with the same group share one title.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// The title over this column and its neighbours of the same group. Empty if there is no such title.
    pub group: String,
    /// The name or the unit of the figures in this column.
    pub head: String,
    pub align: Align,
    /// The order in which columns are left out if the terminal is too narrow. Columns with the smallest
    /// number are left out first. Of columns with the same number, the last one is left out first. A column
    /// with 0 is never left out.
    pub omit_order: u8,
    /// The terms that a legend explains if the table has this column.
    pub terms: Terms,
}

/// The alignment of a column: left for words, right for numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A row, with one text for each column.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub cells: Vec<String>,
    pub role: Role,
    /// The look of the row's transport, which colours the first cell.
    pub display: Option<&'static Display>,
}

/// How a row stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The row does not stand out.
    Plain,
    /// The row of a best transport.
    Best,
}

impl Grid {
    /// Writes the table as lines that fit `style.width`.
    pub(crate) fn text(&self, style: &Style) -> GridText {
        let mut layout = Layout::new(self, (0..self.columns.len()).collect());
        let mut left_out = Vec::new();
        while layout.width() > style.width
            && let Some(next) = layout.next_left_out()
        {
            left_out.push(self.columns[next].title());
            let remaining = layout.columns.into_iter().filter(|&column| column != next);
            layout = Layout::new(self, remaining.collect());
        }
        left_out.reverse();
        let mut text = String::new();
        for line in layout.header().iter().filter(|line| !line.trim().is_empty()) {
            text.push_str(&paint(line.trim_end(), "1", style.color));
            text.push('\n');
        }
        for row in &self.rows {
            text.push_str(&layout.line(row, style));
            text.push('\n');
        }
        let terms = layout.columns.iter().flat_map(|&column| self.columns[column].terms.clone());
        GridText { text, left_out, terms: terms.collect() }
    }

    /// The terms of all columns, from left to right.
    pub(crate) fn terms(&self) -> Terms {
        self.columns.iter().flat_map(|column| column.terms.clone()).collect()
    }

    pub(crate) fn html(&self, caption: &str) -> Markup {
        let groups = groups(self.columns.iter());
        html! {
            div.scroll {
                table {
                    caption { (caption) }
                    thead {
                        tr {
                            @for ColumnGroup { title, columns } in &groups {
                                @let scope = if *columns > 1 { "colgroup" } else { "col" };
                                th scope=(scope) colspan=(columns) { (title) }
                            }
                        }
                        tr {
                            @for column in &self.columns {
                                th scope="col" class=(column.class()) { (column.head) }
                            }
                        }
                    }
                    tbody {
                        @for row in &self.rows { (self.html_row(row)) }
                    }
                }
            }
        }
    }

    /// Writes a row as HTML. The first cell is the head of the row. The other cells carry the heads of their
    /// columns, which a narrow page shows in each cell.
    fn html_row(&self, row: &Row) -> Markup {
        let mut cells = row.cells.iter().zip(&self.columns);
        html! {
            tr class=(row.role.class()) {
                @if let Some((head, _)) = cells.next() {
                    th scope="row" class="left" { (row.swatch()) (head) }
                }
                @for (cell, column) in cells {
                    td class=(column.class()) data-head=(column.title()) { (cell) }
                }
            }
        }
    }
}

/// The columns of a table that fit a terminal.
struct Layout<'a> {
    grid: &'a Grid,
    /// The indices of the columns, in ascending order.
    columns: Vec<usize>,
    groups: Vec<ColumnGroup>,
    /// The width of each column. The last column of a group is so wide that the title of the group fits.
    widths: Vec<usize>,
}

/// The number of spaces between two columns of a group.
const GAP: usize = 2;
/// The number of spaces between two groups of columns.
const GROUP_GAP: usize = 3;

impl<'a> Layout<'a> {
    fn new(grid: &'a Grid, columns: Vec<usize>) -> Self {
        let mut widths = Vec::new();
        for &column in &columns {
            let cells = grid.rows.iter().filter_map(|row| row.cells.get(column));
            let widest_cell = cells.map(|cell| columns_of(cell)).max().unwrap_or(0);
            widths.push(widest_cell.max(columns_of(&grid.columns[column].head)));
        }
        let groups = groups(columns.iter().map(|&column| &grid.columns[column]));
        let mut first = 0;
        for group in &groups {
            let missing = columns_of(&group.title).saturating_sub(group.width(&widths[first..]));
            widths[first + group.columns - 1] += missing;
            first += group.columns;
        }
        Self { grid, columns, groups, widths }
    }

    fn width(&self) -> usize {
        let gaps = (0..self.columns.len()).map(|index| self.gap_before(index)).sum::<usize>();
        self.widths.iter().sum::<usize>() + gaps
    }

    /// The column that is left out next. `None` if every column must stay.
    fn next_left_out(&self) -> Option<usize> {
        let omit_order = |column: usize| self.grid.columns[column].omit_order;
        let candidates = self.columns.iter().copied().filter(|&column| omit_order(column) > 0);
        candidates.min_by_key(|&column| (omit_order(column), Reverse(column)))
    }

    fn column(&self, index: usize) -> &Column {
        &self.grid.columns[self.columns[index]]
    }

    /// The two header lines: the titles of the groups, and the heads of the columns.
    fn header(&self) -> [String; 2] {
        let (mut titles, mut heads) = (String::new(), String::new());
        let mut first = 0;
        for group in &self.groups {
            titles.push_str(&" ".repeat(self.gap_before(first)));
            titles.push_str(&pad(&group.title, group.width(&self.widths[first..]), self.column(first).align));
            for index in first..first + group.columns {
                let column = self.column(index);
                heads.push_str(&" ".repeat(self.gap_before(index)));
                heads.push_str(&pad(&column.head, self.widths[index], column.align));
            }
            first += group.columns;
        }
        [titles, heads]
    }

    fn line(&self, row: &Row, style: &Style) -> String {
        let mut line = String::new();
        for (index, &column) in self.columns.iter().enumerate() {
            let text = row.cells.get(column).map_or("", String::as_str);
            let cell = pad(text, self.widths[index], self.column(index).align);
            let ansi_code = match (index, row.display, row.role) {
                (0, Some(display), Role::Best) => format!("1;38;5;{}", display.ansi),
                (0, Some(display), Role::Plain) => format!("38;5;{}", display.ansi),
                (_, _, Role::Best) => "1".to_owned(),
                (_, _, Role::Plain) => String::new(),
            };
            line.push_str(&" ".repeat(self.gap_before(index)));
            line.push_str(&paint(&cell, &ansi_code, style.color));
        }
        line.trim_end().to_owned()
    }

    /// The number of spaces before a column.
    fn gap_before(&self, index: usize) -> usize {
        let Some(previous) = index.checked_sub(1) else { return 0 };
        let group = &self.column(index).group;
        if *group == self.column(previous).group && !group.is_empty() { GAP } else { GROUP_GAP }
    }
}

/// Neighbouring columns under one title.
struct ColumnGroup {
    /// Empty for a column without a group.
    title: String,
    columns: usize,
}

impl ColumnGroup {
    /// The width of the group with the gaps inside. `widths` begins with the widths of the group's columns.
    fn width(&self, widths: &[usize]) -> usize {
        widths[..self.columns].iter().sum::<usize>() + GAP * (self.columns - 1)
    }
}

/// Groups neighbouring columns of one title. A column without a title is a group of its own.
fn groups<'a>(columns: impl Iterator<Item = &'a Column>) -> Vec<ColumnGroup> {
    let mut groups: Vec<ColumnGroup> = Vec::new();
    for Column { group: title, .. } in columns {
        match groups.last_mut() {
            Some(last) if last.title == *title && !title.is_empty() => last.columns += 1,
            _ => groups.push(ColumnGroup { title: title.clone(), columns: 1 }),
        }
    }
    groups
}

impl Column {
    /// A column of words.
    pub(crate) fn words(head: &str) -> Self {
        Self { align: Align::Left, ..Self::numbers("", head) }
    }

    /// A column of numbers under the title of a group. Its [`Self::omit_order`] is 0.
    pub(crate) fn numbers(group: &str, head: &str) -> Self {
        Self {
            group: group.to_owned(),
            head: head.to_owned(),
            align: Align::Right,
            omit_order: 0,
            terms: Terms::new(),
        }
    }

    pub(crate) fn omit_order(self, omit_order: u8) -> Self {
        Self { omit_order, ..self }
    }

    /// Adds a term that a legend explains if the table has this column.
    pub(crate) fn explained(mut self, term: impl Into<Option<Term>>) -> Self {
        self.terms.extend(term.into());
        self
    }

    /// The title of the group and the head, in one line.
    pub(crate) fn title(&self) -> String {
        [self.group.as_str(), self.head.as_str()].join(" ").trim().to_owned()
    }

    fn class(&self) -> &'static str {
        match self.align {
            Align::Left => "left",
            Align::Right => "right",
        }
    }
}

impl Row {
    /// A square in the colour of the transport, beside its name.
    fn swatch(&self) -> Markup {
        html! {
            @if let Some(display) = self.display {
                span class="swatch" style={ "background:var(--t-" (display.kind) ")" } {}
            }
        }
    }
}

impl Role {
    fn class(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Best => "best",
        }
    }
}

/// Puts `text` between ANSI codes if `color` is true.
pub(crate) fn paint(text: &str, code: &str, color: bool) -> String {
    if color && !code.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// Replaces the characters of `text` that control a terminal or the direction of writing. Names come from
/// scenarios, which may be a stranger's.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if is_printable(c) { c } else { '\u{fffd}' }).collect()
}

/// Breaks `text` into lines of at most `width` columns. Lines break at spaces, but not before a unit. A
/// longer word has a line of its own. The first line begins with `first_indent`, and each other line with
/// `indent`.
pub(crate) fn wrap(text: &str, width: usize, first_indent: &str, indent: &str) -> String {
    let mut lines = String::new();
    let mut line = first_indent.to_owned();
    let mut has_words = false;
    for word in glued(text).split(' ').filter(|word| !word.is_empty()) {
        if has_words && columns_of(&line) + 1 + columns_of(word) > width {
            lines.push_str(line.trim_end());
            lines.push('\n');
            line = indent.to_owned();
            has_words = false;
        }
        if has_words {
            line.push(' ');
        }
        line.push_str(&word.replace(NO_BREAK, " "));
        has_words = true;
    }
    lines.push_str(line.trim_end());
    lines.push('\n');
    lines
}

/// The width of `text` on a terminal. Every character counts as one column, so a name in a script with wide
/// characters shifts the rest of its row.
pub(crate) fn columns_of(text: &str) -> usize {
    text.chars().count()
}

fn pad(text: &str, width: usize, align: Align) -> String {
    let space = " ".repeat(width.saturating_sub(columns_of(text)));
    match align {
        Align::Left => format!("{text}{space}"),
        Align::Right => format!("{space}{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let row = |name: &str, cells: [&str; 3]| Row {
            cells: [name].iter().chain(&cells).map(|cell| (*cell).to_owned()).collect(),
            role: Role::Plain,
            display: None,
        };
        Grid {
            columns: vec![
                Column::words("who"),
                Column::numbers("round trip, ms", "p50").omit_order(2),
                Column::numbers("round trip, ms", "p90"),
                Column::numbers("", "loss %").omit_order(1),
            ],
            rows: vec![row("UDP", ["62.1", "182.4", "0.00"]), row("TCP_NODELAY", ["7.0", "1420.5", "–"])],
        }
    }

    fn full_width(grid: &Grid) -> usize {
        Layout::new(grid, vec![0, 1, 2, 3]).width()
    }

    fn style(width: usize) -> Style {
        Style { width, color: false, explain: true }
    }

    #[test]
    fn numbers_end_under_the_end_of_their_head() {
        let GridText { text, left_out, .. } = grid().text(&style(100));
        let lines: Vec<&str> = text.lines().collect();
        let end = |line: &str, word: &str| line.find(word).map(|at| columns_of(&line[..at + word.len()]));
        assert_eq!(end(lines[2], "182.4"), end(lines[1], "p90"));
        assert_eq!(end(lines[3], "1420.5"), end(lines[1], "p90"));
        assert_eq!(end(lines[3], "–"), end(lines[1], "loss %"));
        assert!(left_out.is_empty());
    }

    #[test]
    fn a_narrow_terminal_leaves_columns_out_in_their_order_and_says_which() {
        let full = full_width(&grid());
        let GridText { text, left_out, .. } = grid().text(&style(full - 1));
        assert_eq!(left_out, ["loss %"]);
        assert!(text.lines().all(|line| columns_of(line) < full) && text.contains("p50"));
        let GridText { text, left_out, .. } = grid().text(&style(1));
        assert_eq!(left_out, ["round trip, ms p50", "loss %"]);
        assert!(text.contains("p90"));
    }

    #[test]
    fn of_columns_with_the_same_order_the_last_one_is_left_out_first() {
        let mut grid = grid();
        grid.columns[1].omit_order = 1;
        let full = full_width(&grid);
        assert_eq!(grid.text(&style(full - 1)).left_out, ["loss %"]);
        assert_eq!(grid.text(&style(1)).left_out, ["round trip, ms p50", "loss %"]);
        // The number decides before the place. The note names the columns that went first at its end.
        grid.columns[3].omit_order = 2;
        assert_eq!(grid.text(&style(1)).left_out, ["loss %", "round trip, ms p50"]);
    }

    #[test]
    fn a_column_that_is_left_out_has_no_word_in_the_legend() {
        let mut grid = grid();
        grid.columns[3].terms = vec![Term::new("loss", "lost / due")];
        let names = |terms: &Terms| terms.iter().map(|term| term.name).collect::<Vec<_>>();
        assert_eq!(names(&grid.text(&style(100)).terms), ["loss"]);
        assert_eq!(names(&grid.text(&style(1)).terms), [""; 0]);
        assert_eq!(names(&grid.terms()), ["loss"], "a page leaves out no column");
    }

    #[test]
    fn no_colour_unless_asked_for() {
        assert!(!grid().text(&style(100)).text.contains('\x1b'));
        assert!(grid().text(&Style { color: true, ..style(100) }).text.contains("\x1b[1m"));
    }

    #[test]
    fn a_name_cannot_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\n\u{202e}"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}");
    }
}

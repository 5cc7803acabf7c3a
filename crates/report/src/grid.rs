//! A table before it becomes text or HTML. Both outputs are made from the same strings, so a number is the
//! same in both.

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
    /// The words that the shown columns need in a legend, from left to right.
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
    /// with 0 always stays.
    pub omit_order: u8,
    /// The words that a legend explains if this column is shown.
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

/// The number of spaces between two columns.
const GAP: usize = 2;
/// The number of spaces between two groups of columns.
const GROUP_GAP: usize = 3;

impl Grid {
    /// Writes the table as lines that fit `style.width`.
    pub(crate) fn text(&self, style: &Style) -> GridText {
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let mut left_out = Vec::new();
        while self.width(&shown) > style.width {
            let candidates = shown.iter().copied().filter(|&column| self.columns[column].omit_order > 0);
            let next = candidates.min_by_key(|&column| (self.columns[column].omit_order, Reverse(column)));
            let Some(next) = next else { break };
            shown.retain(|&column| column != next);
            left_out.push(self.columns[next].title());
        }
        left_out.reverse();
        let mut text = String::new();
        for line in self.header(&shown).iter().filter(|line| !line.trim().is_empty()) {
            text.push_str(&paint(line.trim_end(), "1", style.color));
            text.push('\n');
        }
        let widths = self.widths(&shown);
        for row in &self.rows {
            text.push_str(&self.line(row, &shown, &widths, style));
            text.push('\n');
        }
        let terms = shown.iter().flat_map(|&column| self.columns[column].terms.clone()).collect();
        GridText { text, left_out, terms }
    }

    /// The words that the columns need in a legend, from left to right.
    pub(crate) fn terms(&self) -> Terms {
        self.columns.iter().flat_map(|column| column.terms.clone()).collect()
    }

    /// Writes the table as HTML.
    pub(crate) fn html(&self, caption: &str) -> Markup {
        let groups = self.groups(&(0..self.columns.len()).collect::<Vec<_>>());
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

    /// The groups of the columns `shown`, from left to right. A column without a group is a group of its own.
    fn groups(&self, shown: &[usize]) -> Vec<ColumnGroup> {
        let mut groups: Vec<ColumnGroup> = Vec::new();
        for &column in shown {
            let title = &self.columns[column].group;
            match groups.last_mut() {
                Some(last) if last.title == *title && !title.is_empty() => last.columns += 1,
                _ => groups.push(ColumnGroup { title: title.clone(), columns: 1 }),
            }
        }
        groups
    }

    /// The two header lines: the titles of the groups, and the heads of the columns.
    fn header(&self, shown: &[usize]) -> [String; 2] {
        let widths = self.widths(shown);
        let (mut titles, mut heads) = (String::new(), String::new());
        let mut first = 0;
        for group in self.groups(shown) {
            let align = self.columns[shown[first]].align;
            titles.push_str(&" ".repeat(self.gap_before(shown, first)));
            titles.push_str(&pad(&group.title, group.width(&widths[first..]), align));
            for index in first..first + group.columns {
                let column = &self.columns[shown[index]];
                heads.push_str(&" ".repeat(self.gap_before(shown, index)));
                heads.push_str(&pad(&column.head, widths[index], column.align));
            }
            first += group.columns;
        }
        [titles, heads]
    }

    /// Writes a row as text.
    fn line(&self, row: &Row, shown: &[usize], widths: &[usize], style: &Style) -> String {
        let mut line = String::new();
        for (index, &column) in shown.iter().enumerate() {
            let text = row.cells.get(column).map_or("", String::as_str);
            let cell = pad(text, widths[index], self.columns[column].align);
            let ansi_code = match (index, row.display, row.role) {
                (0, Some(display), Role::Best) => format!("1;38;5;{}", display.ansi),
                (0, Some(display), Role::Plain) => format!("38;5;{}", display.ansi),
                (_, _, Role::Best) => "1".to_owned(),
                (_, _, Role::Plain) => String::new(),
            };
            line.push_str(&" ".repeat(self.gap_before(shown, index)));
            line.push_str(&paint(&cell, &ansi_code, style.color));
        }
        line.trim_end().to_owned()
    }

    /// The number of spaces before the shown column with this index.
    fn gap_before(&self, shown: &[usize], index: usize) -> usize {
        let Some(previous) = index.checked_sub(1) else { return 0 };
        let group = &self.columns[shown[index]].group;
        let is_same_group = *group == self.columns[shown[previous]].group && !group.is_empty();
        if is_same_group { GAP } else { GROUP_GAP }
    }

    /// The width of each shown column. The last column of a group is widened until the title of the group
    /// fits.
    fn widths(&self, shown: &[usize]) -> Vec<usize> {
        let mut widths = Vec::new();
        for &column in shown {
            let cells = self.rows.iter().filter_map(|row| row.cells.get(column));
            let widest_cell = cells.map(|cell| columns_of(cell)).max().unwrap_or(0);
            widths.push(widest_cell.max(columns_of(&self.columns[column].head)));
        }
        let mut first = 0;
        for group in self.groups(shown) {
            let missing = columns_of(&group.title).saturating_sub(group.width(&widths[first..]));
            widths[first + group.columns - 1] += missing;
            first += group.columns;
        }
        widths
    }

    fn width(&self, shown: &[usize]) -> usize {
        let gaps = (0..shown.len()).map(|index| self.gap_before(shown, index)).sum::<usize>();
        self.widths(shown).iter().sum::<usize>() + gaps
    }
}

/// Neighbouring columns under one title.
struct ColumnGroup {
    /// Empty for a column without a group.
    title: String,
    /// The number of columns.
    columns: usize,
}

impl ColumnGroup {
    /// The width of the group with the gaps inside. `widths` begins with the widths of the group's columns.
    fn width(&self, widths: &[usize]) -> usize {
        widths[..self.columns].iter().sum::<usize>() + GAP * (self.columns - 1)
    }
}

impl Column {
    /// A column of words.
    pub(crate) fn words(head: &str) -> Self {
        Self { align: Align::Left, ..Self::numbers("", head) }
    }

    /// A column of numbers under the title of a group. Every table keeps it, unless it is given an
    /// [`Self::omit_order`].
    pub(crate) fn numbers(group: &str, head: &str) -> Self {
        Self {
            group: group.to_owned(),
            head: head.to_owned(),
            align: Align::Right,
            omit_order: 0,
            terms: Terms::new(),
        }
    }

    /// Sets [`Self::omit_order`].
    pub(crate) fn omit_order(self, omit_order: u8) -> Self {
        Self { omit_order, ..self }
    }

    /// Adds a word that a legend explains if this column is shown.
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
    /// A square in the colour of the transport, which stands beside the name.
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

/// Puts `text` between ANSI codes, if colours are wanted.
pub(crate) fn paint(text: &str, code: &str, color: bool) -> String {
    if color && !code.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// Replaces the characters of `text` that would control a terminal or turn the direction of writing. Users
/// choose the names in a scenario.
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
        let full = grid().width(&[0, 1, 2, 3]);
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
        let full = grid.width(&[0, 1, 2, 3]);
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

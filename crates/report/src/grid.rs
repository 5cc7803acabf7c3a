//! A table before it is text or HTML: columns in groups, rows of formatted cells. Both outputs are made from
//! the same strings, so a number cannot differ between them.

use maud::{Markup, html};
use talkpath_units::is_printable;

use crate::display::Display;
use crate::number::{NO_BREAK, glued};

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal; tables leave columns out below about 80, and text wraps.
    pub width: usize,
    /// Whether ANSI colours may be used; the caller knows the terminal and `NO_COLOR`.
    pub color: bool,
    /// Whether what the columns mean is printed below the tables.
    pub explain: bool,
}

/// Columns and rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grid {
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
}

/// A column. Neighbours of one group share a title.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// Title over this and its neighbours of the same group; empty for none.
    pub group: String,
    /// Name or unit.
    pub head: String,
    /// Words are aligned left, numbers right.
    pub align: Align,
    /// The rank by which it goes where the terminal is too narrow ([`Self::omit_order`]).
    pub omit_order: u8,
}

/// How a column's cells are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A row: one string a column.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub cells: Vec<String>,
    pub role: Role,
    /// Colours the first cell.
    pub display: Option<&'static Display>,
}

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Figures.
    Plain,
    /// The winner's figures.
    Best,
}

/// Space between columns.
const GAP: usize = 2;
/// Space between groups of columns.
const GROUP_GAP: usize = 3;

impl Grid {
    /// The table as lines that fit `style.width`, and the heads of the columns that had to go.
    pub(crate) fn text(&self, style: &Style) -> (String, Vec<String>) {
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let mut left_out = Vec::new();
        while self.width(&shown) > style.width {
            let next = shown.iter().copied().filter(|&at| self.columns[at].omit_order > 0);
            let Some(next) = next.min_by_key(|&at| self.columns[at].omit_order) else { break };
            shown.retain(|&at| at != next);
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
        (text, left_out)
    }

    /// The table as HTML.
    pub(crate) fn html(&self, caption: &str) -> Markup {
        let groups = self.groups(&(0..self.columns.len()).collect::<Vec<_>>());
        html! {
            div.scroll {
                table {
                    caption { (caption) }
                    thead {
                        tr {
                            @for (group, span) in &groups {
                                @let scope = if *span > 1 { "colgroup" } else { "col" };
                                th scope=(scope) colspan=(span) { (group) }
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

    /// The first cell is the row's head; on a narrow page the others carry their columns' heads.
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

    /// Group titles with the number of columns that each spans.
    fn groups(&self, shown: &[usize]) -> Vec<(String, usize)> {
        let mut groups: Vec<(String, usize)> = Vec::new();
        for &at in shown {
            let group = &self.columns[at].group;
            match groups.last_mut() {
                Some((last, span)) if last == group && !group.is_empty() => *span += 1,
                _ => groups.push((group.clone(), 1)),
            }
        }
        groups
    }

    /// The two header lines: group titles, then heads.
    fn header(&self, shown: &[usize]) -> [String; 2] {
        let widths = self.widths(shown);
        let (mut titles, mut heads, mut at) = (String::new(), String::new(), 0);
        for (group, span) in self.groups(shown) {
            let columns = at..at + span;
            let inside = widths[columns.clone()].iter().sum::<usize>() + GAP * (span - 1);
            let gap = self.gap(shown, at);
            titles.push_str(&" ".repeat(gap));
            titles.push_str(&pad(&group, inside, self.columns[shown[at]].align));
            for index in columns {
                let column = &self.columns[shown[index]];
                heads.push_str(&" ".repeat(self.gap(shown, index)));
                heads.push_str(&pad(&column.head, widths[index], column.align));
            }
            at += span;
        }
        [titles, heads]
    }

    /// One row as text.
    fn line(&self, row: &Row, shown: &[usize], widths: &[usize], style: &Style) -> String {
        let mut line = String::new();
        for (index, &at) in shown.iter().enumerate() {
            line.push_str(&" ".repeat(self.gap(shown, index)));
            let cell =
                pad(row.cells.get(at).map_or("", String::as_str), widths[index], self.columns[at].align);
            let code = match (index, row.display, row.role) {
                (0, Some(display), Role::Best) => format!("1;38;5;{}", display.ansi),
                (0, Some(display), Role::Plain) => format!("38;5;{}", display.ansi),
                (_, _, Role::Best) => "1".to_owned(),
                (_, _, Role::Plain) => String::new(),
            };
            line.push_str(&paint(&cell, &code, style.color));
        }
        line.trim_end().to_owned()
    }

    /// The space before a shown column.
    fn gap(&self, shown: &[usize], index: usize) -> usize {
        let Some(before) = index.checked_sub(1) else { return 0 };
        let (group, last) = (&self.columns[shown[index]].group, &self.columns[shown[before]].group);
        if group == last && !group.is_empty() { GAP } else { GROUP_GAP }
    }

    /// Width of each shown column; a group's last column widens until its title fits.
    fn widths(&self, shown: &[usize]) -> Vec<usize> {
        let cells =
            |at: usize| self.rows.iter().map(move |row| row.cells.get(at).map_or(0, |cell| columns_of(cell)));
        let mut widths: Vec<usize> = shown
            .iter()
            .map(|&at| cells(at).chain([columns_of(&self.columns[at].head)]).max().unwrap_or(0))
            .collect();
        let mut at = 0;
        for (group, span) in self.groups(shown) {
            let inside = widths[at..at + span].iter().sum::<usize>() + GAP * (span - 1);
            widths[at + span - 1] += columns_of(&group).saturating_sub(inside);
            at += span;
        }
        widths
    }

    fn width(&self, shown: &[usize]) -> usize {
        let gaps = (0..shown.len()).map(|index| self.gap(shown, index)).sum::<usize>();
        self.widths(shown).iter().sum::<usize>() + gaps
    }
}

impl Column {
    /// Words.
    pub(crate) fn words(head: &str) -> Self {
        Self { group: String::new(), head: head.to_owned(), align: Align::Left, omit_order: 0 }
    }

    /// Numbers, under a group's title. They stay in every table.
    pub(crate) fn numbers(group: &str, head: &str) -> Self {
        Self { group: group.to_owned(), head: head.to_owned(), align: Align::Right, omit_order: 0 }
    }

    /// The same column, which goes where a table is too wide: those of the smallest `rank` first. One of
    /// rank 0 stays.
    pub(crate) fn omit_order(self, rank: u8) -> Self {
        Self { omit_order: rank, ..self }
    }

    /// Group and head.
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
    /// The transport's colour beside its name.
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

/// `text` between ANSI codes, if colours are wanted.
pub(crate) fn paint(text: &str, code: &str, color: bool) -> String {
    if color && !code.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// `text` without what would steer a terminal or turn the direction of writing: scenario names are anybody's
/// text.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if is_printable(c) { c } else { '\u{fffd}' }).collect()
}

/// `text` broken at spaces, but not before a unit, into lines of at most `width` columns; a longer word gets
/// a line of its own.
pub(crate) fn wrap(text: &str, width: usize, first: &str, rest: &str) -> String {
    let (mut out, mut line) = (String::new(), first.to_owned());
    let mut empty = true;
    for word in glued(text).split(' ').filter(|word| !word.is_empty()) {
        if !empty && columns_of(&line) + 1 + columns_of(word) > width {
            out.push_str(line.trim_end());
            out.push('\n');
            line = rest.to_owned();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(&word.replace(NO_BREAK, " "));
        empty = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
    out
}

/// Terminal columns of `text`, counting every character as one: names in scripts of double width shift a row.
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

/// Begins the note that names the columns for which a table has no room.
pub(crate) const LEFT_OUT: &str = "(left out at this width: ";

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

    #[test]
    fn numbers_end_under_the_end_of_their_head() {
        let (text, left_out) = grid().text(&Style { width: 100, color: false, explain: true });
        let lines: Vec<&str> = text.lines().collect();
        let end = |line: &str, word: &str| line.find(word).map(|at| columns_of(&line[..at + word.len()]));
        assert_eq!(end(lines[2], "182.4"), end(lines[1], "p90"));
        assert_eq!(end(lines[3], "1420.5"), end(lines[1], "p90"));
        assert_eq!(end(lines[3], "–"), end(lines[1], "loss %"));
        assert!(left_out.is_empty());
    }

    #[test]
    fn a_narrow_terminal_loses_the_most_dispensable_columns_and_says_which() {
        let full = grid().width(&[0, 1, 2, 3]);
        let (text, left_out) = grid().text(&Style { width: full - 1, color: false, explain: true });
        assert_eq!(left_out, ["loss %"]);
        assert!(text.lines().all(|line| columns_of(line) < full) && text.contains("p50"));
        let (text, left_out) = grid().text(&Style { width: 1, color: false, explain: true });
        assert_eq!(left_out, ["round trip, ms p50", "loss %"]);
        assert!(text.contains("p90"));
    }

    #[test]
    fn no_colour_unless_asked_for() {
        assert!(!grid().text(&Style { width: 100, color: false, explain: true }).0.contains('\x1b'));
        assert!(grid().text(&Style { width: 100, color: true, explain: true }).0.contains("\x1b[1m"));
    }

    #[test]
    fn a_name_cannot_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\n\u{202e}"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}");
    }
}

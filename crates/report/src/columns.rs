//! A table by its columns: a column's head, its rank where there is little room, and its cells are defined
//! together.

use talkpath_measure::figures::Figure;

use crate::display::Display;
use crate::grid::{Column, Grid, Role, Row};

/// The columns of a table whose rows are each about an `R`.
pub(crate) struct Columns<'a, R> {
    heads: Vec<Column>,
    cells: Vec<Cell<'a, R>>,
}

type Cell<'a, R> = Box<dyn Fn(&R) -> String + 'a>;

impl<'a, R> Columns<'a, R> {
    pub(crate) const fn new() -> Self {
        Self { heads: Vec::new(), cells: Vec::new() }
    }

    /// One more column, on the right.
    pub(crate) fn add(&mut self, head: Column, cell: impl Fn(&R) -> String + 'a) {
        self.heads.push(head);
        self.cells.push(Box::new(cell));
    }

    /// The table with a row for each of `rows`.
    pub(crate) fn grid(self, rows: impl IntoIterator<Item = R>) -> Grid {
        self.grid_with(rows, |_| (Role::Plain, None))
    }

    /// The same, with what `look` says of a row.
    pub(crate) fn grid_with(
        self,
        rows: impl IntoIterator<Item = R>,
        look: impl Fn(&R) -> (Role, Option<&'static Display>),
    ) -> Grid {
        let Self { heads, cells } = self;
        let row = |of: R| {
            let (role, display) = look(&of);
            Row { cells: cells.iter().map(|cell| cell(&of)).collect(), role, display }
        };
        Grid { columns: heads, rows: rows.into_iter().map(row).collect() }
    }
}

impl<'a, T: 'static> Columns<'a, (&'a String, &'a T)> {
    /// Adds a column with `figure` of each row, in the unit that the figure has by itself.
    pub(crate) fn add_figure(&mut self, head: Column, figure: &'static Figure<T>) {
        self.add(head, move |(_, of)| figure.text(of));
    }
}

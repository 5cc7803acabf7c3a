//! Defines a table column by column, so that the head of a column and its cells are in one place.
//!
//! ```text
//! columns.add(Column::numbers("messages", "sent"), |flow| count(flow.sent));
//! ```

use talkpath_measure::figures::Figure;

use crate::display::Display;
use crate::grid::{Column, Grid, Role, Row};

/// The columns of a table. A row is made from an item of the type `R`, for example from the name of a flow.
pub(crate) struct Columns<'a, R> {
    heads: Vec<Column>,
    cells: Vec<Cell<'a, R>>,
}

/// Writes the cell of one column in the row of an item.
type Cell<'a, R> = Box<dyn Fn(&R) -> String + 'a>;

impl<'a, R> Columns<'a, R> {
    pub(crate) const fn new() -> Self {
        Self { heads: Vec::new(), cells: Vec::new() }
    }

    /// Adds a column on the right. `cell` writes the column's cell in the row of an item.
    pub(crate) fn add(&mut self, head: Column, cell: impl Fn(&R) -> String + 'a) {
        self.heads.push(head);
        self.cells.push(Box::new(cell));
    }

    /// Makes the table, with a row for each item.
    pub(crate) fn grid(self, items: impl IntoIterator<Item = R>) -> Grid {
        self.grid_with(items, |_| (Role::Plain, None))
    }

    /// Makes the table, with a row for each item. `look` says how the row of an item is shown.
    pub(crate) fn grid_with(
        self,
        items: impl IntoIterator<Item = R>,
        look: impl Fn(&R) -> (Role, Option<&'static Display>),
    ) -> Grid {
        let Self { heads, cells } = self;
        let row = |item: R| {
            let (role, display) = look(&item);
            Row { cells: cells.iter().map(|cell| cell(&item)).collect(), role, display }
        };
        Grid { columns: heads, rows: items.into_iter().map(row).collect() }
    }
}

impl<'a, T: 'static> Columns<'a, (&'a String, &'a T)> {
    /// Adds a column that shows `figure` of each item, in the figure's own unit.
    pub(crate) fn add_figure(&mut self, head: Column, figure: &'static Figure<T>) {
        self.add(head, move |(_, summary)| figure.text(summary));
    }
}

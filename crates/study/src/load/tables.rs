//! Reads the tables of printed figures, from CSV files in the folder of the study.

use toml::Spanned;

use super::Loader;
use super::lookup::{CellMetric, Lookup};
use crate::file::TableEntry;
use crate::mistakes::names_help;
use crate::table::{PublishedRow, PublishedTable};

impl Loader<'_, '_> {
    pub(super) fn table(&mut self, entry: &TableEntry, lookup: &Lookup<'_>) -> Option<PublishedTable> {
        let mut rows = self.published_rows(&entry.rows, "table.rows")?;
        if let Some(number) = &entry.number {
            rows.retain(|row| *number.get_ref() == row.table);
            if rows.is_empty() {
                let message =
                    format!("{} has no row of table \"{}\"", entry.rows.get_ref(), number.get_ref());
                self.mistakes.add(number.span(), "table.number", message);
            }
        }
        for PublishedRow { cell, metric, .. } in &rows {
            self.require_cell(cell, entry.rows.span(), "table.rows");
            self.require_metric(CellMetric { cell, metric }, entry.rows.span(), "table.rows", lookup);
        }
        Some(PublishedTable { title: entry.title.clone(), rows })
    }

    /// Reads the rows of the CSV file called `name`. Returns `None` if there is no such file.
    pub(super) fn published_rows(&mut self, name: &Spanned<String>, key: &str) -> Option<Vec<PublishedRow>> {
        let file_name = name.get_ref();
        let Some(source) = self.files.iter().find(|source| source.name == *file_name) else {
            let message = format!("there is no file \"{file_name}\" beside the study");
            let help = names_help(self.files.iter().map(|source| source.name.as_str()));
            self.mistakes.add_with_help(name.span(), key, message, help);
            return None;
        };
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .comment(Some(b'#'))
            .from_reader(source.text.as_bytes());
        let mut rows = Vec::new();
        for row in reader.deserialize::<PublishedRow>() {
            match row {
                Ok(row) => rows.push(row),
                Err(error) => self.mistakes.add(name.span(), key, format!("in {file_name}: {error}")),
            }
        }
        Some(rows)
    }
}

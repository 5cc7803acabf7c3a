//! Tables of printed figures, from CSV files beside the study.

use toml::Spanned;

use super::Loader;
use super::sense::Known;
use crate::file::TableEntry;
use crate::place::known as names;
use crate::table::{PublishedRow, PublishedTable};

impl Loader<'_, '_> {
    pub(super) fn table(&mut self, entry: &TableEntry, known: &Known<'_>) -> Option<PublishedTable> {
        let mut rows = self.rows(&entry.rows, "table.rows")?;
        if let Some(number) = &entry.number {
            rows.retain(|row| *number.get_ref() == row.table);
            if rows.is_empty() {
                let message =
                    format!("{} has no row of table \"{}\"", entry.rows.get_ref(), number.get_ref());
                self.mistakes.add(number.span(), "table.number", message, None);
            }
        }
        for row in &rows {
            self.known_cell(&row.cell, entry.rows.span(), "table.rows");
            self.known_metric(&row.cell, &row.metric, entry.rows.span(), "table.rows", known);
        }
        Some(PublishedTable { title: entry.title.clone(), rows })
    }

    /// The rows of the CSV file that `entry` names; `None` if there is none.
    pub(super) fn rows(&mut self, entry: &Spanned<String>, key: &str) -> Option<Vec<PublishedRow>> {
        let name = entry.get_ref();
        let Some(source) = self.files.iter().find(|source| source.name == *name) else {
            let message = format!("there is no file \"{name}\" beside the study");
            let known = names(self.files.iter().map(|source| source.name.as_str()));
            self.mistakes.add(entry.span(), key, message, known);
            return None;
        };
        let mut rows = Vec::new();
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .comment(Some(b'#'))
            .from_reader(source.text.as_bytes());
        for row in reader.deserialize::<PublishedRow>() {
            match row {
                Ok(row) => rows.push(row),
                Err(error) => {
                    self.mistakes.add(entry.span(), key, format!("in {name}: {error}"), None);
                }
            }
        }
        Some(rows)
    }
}

//! Tables of printed figures, from CSV files beside the study.

use super::Loader;
use crate::file::TableEntry;
use crate::place::known;
use crate::table::{PublishedRow, PublishedTable};

impl Loader<'_, '_> {
    pub(super) fn table(&mut self, entry: &TableEntry) -> Option<PublishedTable> {
        let name = entry.rows.get_ref();
        let Some(source) = self.files.iter().find(|source| source.name == *name) else {
            let message = format!("there is no file \"{name}\" beside the study");
            let known = known(self.files.iter().map(|source| source.name.as_str()));
            self.mistakes.add(entry.rows.span(), "table.rows", message, known);
            return None;
        };
        let mut rows = Vec::new();
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .comment(Some(b'#'))
            .from_reader(source.text.as_bytes());
        for row in reader.deserialize::<PublishedRow>() {
            match row {
                Ok(row) => {
                    self.known_cell(&row.cell, entry.rows.span(), "table.rows");
                    rows.push(row);
                }
                Err(error) => {
                    let message = format!("in {name}: {error}");
                    self.mistakes.add(entry.rows.span(), "table.rows", message, None);
                }
            }
        }
        Some(PublishedTable { title: entry.title.clone(), rows })
    }
}

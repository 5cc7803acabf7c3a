//! Tables of printed figures, from CSV files beside the study.

use super::Loader;
use super::sense::Known;
use crate::file::TableEntry;
use crate::metric::Metrics;
use crate::place::known as names;
use crate::table::{PublishedRow, PublishedTable};

impl Loader<'_, '_> {
    pub(super) fn table(
        &mut self,
        entry: &TableEntry,
        (known, derived): (&Known, &Metrics),
    ) -> Option<PublishedTable> {
        let name = entry.rows.get_ref();
        let Some(source) = self.files.iter().find(|source| source.name == *name) else {
            let message = format!("there is no file \"{name}\" beside the study");
            let known = names(self.files.iter().map(|source| source.name.as_str()));
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
                Ok(row) if entry.number.as_ref().is_some_and(|number| *number.get_ref() != row.table) => {}
                Ok(row) => {
                    let place = || (entry.rows.span(), "table.rows");
                    self.known_cell(&row.cell, place().0, place().1);
                    self.known_metric((&row.cell, &row.metric), place(), known, derived);
                    rows.push(row);
                }
                Err(error) => {
                    let message = format!("in {name}: {error}");
                    self.mistakes.add(entry.rows.span(), "table.rows", message, None);
                }
            }
        }
        if let Some(number) = entry.number.as_ref().filter(|_| rows.is_empty()) {
            let message = format!("{name} has no row of table \"{}\"", number.get_ref());
            self.mistakes.add(number.span(), "table.number", message, None);
        }
        Some(PublishedTable { title: entry.title.clone(), rows })
    }
}

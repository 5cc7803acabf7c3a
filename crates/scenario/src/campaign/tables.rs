//! Finds the named tables of a campaign file.

use crate::diagnostic::Place;
use crate::tree::Table;

/// One table `[KIND.NAME]`, for example `[host.berlin]`.
pub(super) struct NamedTable<'a> {
    pub(super) name: &'a str,
    pub(super) table: &'a Table,
    pub(super) place: &'a Place,
}

/// Returns the tables `[KIND.*]`, in the order of the file.
pub(super) fn named_tables<'a>(root: &'a Table, kind: &str) -> Vec<NamedTable<'a>> {
    let Some(tables) = root.get(kind).and_then(|node| node.as_table()) else { return Vec::new() };
    let mut named = Vec::new();
    for entry in &tables.entries {
        // A value that is no table is a mistake, which the key tables have found.
        if let Some(table) = entry.node.as_table() {
            named.push(NamedTable { name: &entry.name, table, place: &entry.place });
        }
    }
    named
}

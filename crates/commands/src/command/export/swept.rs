//! The swept keys of a run as columns. For example, `path.up.rate` with "2 Mbps" becomes 2000000 in the
//! column `path_up_rate_bps`.
//!
//! A quantity becomes a number in its SI unit, and the name of the column ends in the unit. A TOML table
//! becomes a column for each of its keys, but its `kind` has the name of the table. If a cell does not set a
//! key, the field is unknown.

use std::collections::BTreeMap;

use serde_json::Value;
use talkpath_measure::export::{Column, ColumnKind, Field};
use talkpath_scenario::si_amount;

/// The swept keys of a run as columns, and the fields of each cell.
pub(super) struct Swept {
    pub(super) columns: Vec<Column>,
    /// The fields of each cell, by the index of the cell.
    fields: BTreeMap<u64, Vec<Field>>,
    /// The fields of a cell that sets no key.
    unknown_fields: Vec<Field>,
}

impl Swept {
    /// Makes the columns. `cells` are the indices of the cells with their swept values by key.
    pub(super) fn new<'a>(cells: impl IntoIterator<Item = (u64, &'a BTreeMap<String, Value>)>) -> Self {
        let mut fields_by_name: BTreeMap<u64, BTreeMap<String, Field>> = BTreeMap::new();
        let mut kinds: BTreeMap<String, ColumnKind> = BTreeMap::new();
        for (cell, values) in cells {
            let mut fields = BTreeMap::new();
            for (key, value) in values {
                add_fields(key, value, &mut fields);
            }
            for (name, field) in &fields {
                if let Some(kind) = kind_of(field) {
                    let known_kind = kinds.entry(name.clone()).or_insert(kind);
                    *known_kind = common_kind(*known_kind, kind);
                }
            }
            fields_by_name.insert(cell, fields);
        }
        let mut columns: Vec<Column> = Vec::new();
        for (name, kind) in &kinds {
            let mut column = Column::new(name, *kind);
            // If two keys differ only in a hyphen, their columns would have the same name.
            while columns.iter().any(|other| other.name == column.name) {
                column.name.push('_');
            }
            columns.push(column);
        }
        let mut fields = BTreeMap::new();
        for (cell, by_name) in &fields_by_name {
            let field = |(name, kind): (&String, &ColumnKind)| {
                by_name.get(name).map_or(Field::Unknown, |field| convert(field, *kind))
            };
            fields.insert(*cell, kinds.iter().map(field).collect());
        }
        Self { unknown_fields: vec![Field::Unknown; columns.len()], columns, fields }
    }

    /// The fields of one cell.
    pub(super) fn fields(&self, cell: u64) -> &[Field] {
        self.fields.get(&cell).unwrap_or(&self.unknown_fields)
    }
}

/// Adds the fields of the swept `key` with its `value`, by the names of their columns.
fn add_fields(key: &str, value: &Value, fields: &mut BTreeMap<String, Field>) {
    let (name, field) = match value {
        Value::Null => return,
        Value::Bool(flag) => (key.to_owned(), Field::Flag(*flag)),
        Value::Number(number) => (key.to_owned(), number_field(number)),
        Value::String(text) => match si_amount(text) {
            // Seconds and hertz may have fractions. All other units are counted in whole numbers.
            Some(amount) if matches!(amount.unit, "s" | "hz") => {
                (format!("{key}_{}", amount.unit), Field::Number(amount.value))
            }
            Some(amount) => (format!("{key}_{}", amount.unit), Field::Integer(amount.value as i64)),
            None => (key.to_owned(), Field::text(text)),
        },
        Value::Array(list) => {
            let words = list.iter().map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned));
            (key.to_owned(), Field::text(&words.collect::<Vec<_>>().join(" ")))
        }
        Value::Object(keys) => {
            for (inner, value) in keys {
                let name = if inner == "kind" { key.to_owned() } else { format!("{key}.{inner}") };
                add_fields(&name, value, fields);
            }
            return;
        }
    };
    fields.insert(name, field);
}

/// The field of a JSON number. A whole number stays a whole number.
fn number_field(number: &serde_json::Number) -> Field {
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => Field::Integer(whole),
        (None, Some(number)) => Field::Number(number),
        (None, None) => Field::Unknown,
    }
}

/// The kind of column that the field needs, or `None` if the field is unknown.
pub(super) const fn kind_of(field: &Field) -> Option<ColumnKind> {
    match field {
        Field::Unknown => None,
        Field::Flag(_) => Some(ColumnKind::Flag),
        Field::Integer(_) => Some(ColumnKind::Integer),
        Field::Unsigned(_) => Some(ColumnKind::Unsigned),
        Field::Number(_) => Some(ColumnKind::Number),
        Field::Text(_) => Some(ColumnKind::Text),
    }
}

/// The kind of a column that can hold fields of both kinds.
pub(super) fn common_kind(a: ColumnKind, b: ColumnKind) -> ColumnKind {
    match (a.min(b), a.max(b)) {
        (a, b) if a == b => a,
        (ColumnKind::Integer, ColumnKind::Number) => ColumnKind::Number,
        _ => ColumnKind::Text,
    }
}

/// Converts a field to the kind of its column. In a column of text a number becomes text.
fn convert(field: &Field, kind: ColumnKind) -> Field {
    match (kind, field) {
        (ColumnKind::Text, Field::Integer(number)) => Field::text(&number.to_string()),
        (ColumnKind::Text, Field::Number(number)) => Field::text(&number.to_string()),
        (ColumnKind::Text, Field::Flag(flag)) => Field::text(&flag.to_string()),
        _ => field.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn swept(cells: &[Value]) -> (Vec<(String, ColumnKind)>, Vec<Vec<Field>>) {
        let cells: Vec<BTreeMap<String, Value>> =
            cells.iter().map(|cell| serde_json::from_value(cell.clone()).unwrap()).collect();
        let swept = Swept::new((0..).zip(&cells));
        let fields = (0..cells.len() as u64).map(|cell| swept.fields(cell).to_vec()).collect();
        (swept.columns.into_iter().map(|column| (column.name, column.kind)).collect(), fields)
    }

    #[test]
    fn quantities_are_numbers_in_the_unit_that_ends_their_column() {
        let (columns, fields) = swept(&[
            json!({ "path.up.rate": "1.5 Mbps", "path.up.delay": "20 ms", "path.up.queue.limit": "16 packets" }),
            json!({ "path.up.rate": "2 Mbps", "path.up.delay": "1 s", "path.up.queue.limit": "64 kB" }),
        ]);
        let named = |name: &str, kind| (name.to_owned(), kind);
        assert_eq!(
            columns,
            [
                named("path_up_delay_s", ColumnKind::Number),
                named("path_up_queue_limit_bytes", ColumnKind::Integer),
                named("path_up_queue_limit_packets", ColumnKind::Integer),
                named("path_up_rate_bps", ColumnKind::Integer),
            ]
        );
        use Field::{Integer, Number, Unknown};
        assert_eq!(fields[0], [Number(0.02), Unknown, Integer(16), Integer(1_500_000)]);
        assert_eq!(fields[1], [Number(1.0), Integer(64_000), Unknown, Integer(2_000_000)]);
    }

    #[test]
    fn a_table_is_a_column_a_key_and_a_column_has_one_type() {
        let (columns, fields) = swept(&[
            json!({ "flow.call.transport": "udp", "path.up.loss": 0, "flow.call.count": 3 }),
            json!({ "flow.call.transport": { "kind": "tcp", "cc": "reno", "sack": false }, "path.up.loss": 0.01 }),
        ]);
        let names: Vec<_> = columns.iter().map(|(name, kind)| format!("{name} {kind:?}")).collect();
        assert_eq!(
            names,
            [
                "flow_call_count Integer",
                "flow_call_transport Text",
                "flow_call_transport_cc Text",
                "flow_call_transport_sack Flag",
                "path_up_loss Number",
            ]
        );
        assert_eq!(fields[0][1..3], [Field::text("udp"), Field::Unknown]);
        assert_eq!(
            fields[1][..4],
            [Field::Unknown, Field::text("tcp"), Field::text("reno"), Field::Flag(false)]
        );
    }

    #[test]
    fn a_column_of_numbers_and_words_is_one_of_words() {
        let (columns, fields) = swept(&[json!({ "path.up.loss": 0.5 }), json!({ "path.up.loss": "none" })]);
        assert_eq!(columns, [("path_up_loss".to_owned(), ColumnKind::Text)]);
        assert_eq!(fields.concat(), [Field::text("0.5"), Field::text("none")]);
    }
}

//! Writes a table as a Parquet file.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::field::{Column, ColumnKind, Field};
use crate::record_file::RecordError;

/// The largest number of rows in a row group. We chose 65,536. A group of so many rows takes some megabytes
/// of memory.
pub(super) const GROUP_ROWS: usize = 1 << 16;

/// A Parquet file, and the rows of its current row group.
pub(super) struct ParquetTable<W: Write + Send> {
    columns: Vec<ColumnValues>,
    /// The number of rows in `columns`.
    rows: usize,
    file: SerializedFileWriter<W>,
}

/// The values of a column in the current row group.
struct ColumnValues {
    kind: ColumnKind,
    /// The values of the rows that have one.
    known: KnownValues,
    /// 1 for each row that has a value, and 0 for each other row. Parquet calls this the definition level.
    definition_levels: Vec<i16>,
}

enum KnownValues {
    Flags(Vec<bool>),
    Integers(Vec<i64>),
    Numbers(Vec<f64>),
    Texts(Vec<ByteArray>),
}

impl<W: Write + Send> ParquetTable<W> {
    pub(super) fn new(columns: &[Column], out: W) -> Result<Self, RecordError> {
        let schema = Arc::new(parse_message_type(&schema(columns))?);
        let file = SerializedFileWriter::new(out, schema, Arc::new(properties(columns)))?;
        let columns = columns.iter().map(|column| ColumnValues::new(column.kind)).collect();
        Ok(Self { columns, rows: 0, file })
    }

    /// Adds a row, and writes the row group if it is full.
    pub(super) fn push<'f>(&mut self, fields: impl Iterator<Item = &'f Field>) -> Result<(), RecordError> {
        for (column, field) in self.columns.iter_mut().zip(fields) {
            column.push(field);
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    /// Writes the last row group and the end of the file.
    pub(super) fn finish(mut self) -> Result<(), RecordError> {
        if self.rows > 0 {
            self.write_group()?;
        }
        self.file.close()?;
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), RecordError> {
        let mut group = self.file.next_row_group()?;
        for column in &mut self.columns {
            column.write(&mut group)?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

/// Returns the schema in Parquet's own language.
fn schema(columns: &[Column]) -> String {
    let mut schema = "message table {".to_owned();
    for Column { name, kind } in columns {
        let (physical_type, logical_type) = match kind {
            ColumnKind::Flag => ("BOOLEAN", ""),
            ColumnKind::Integer => ("INT64", ""),
            ColumnKind::Unsigned => ("INT64", " (INTEGER(64,false))"),
            ColumnKind::Number => ("DOUBLE", ""),
            ColumnKind::Text => ("BYTE_ARRAY", " (STRING)"),
        };
        schema.push_str(&format!(" OPTIONAL {physical_type} {name}{logical_type};"));
    }
    schema.push_str(" }");
    schema
}

/// Returns how the columns are encoded. An integer column stores the differences between rows instead of a
/// dictionary, because most integers here are times and numbers that grow from row to row.
fn properties(columns: &[Column]) -> WriterProperties {
    let created_by = concat!("talkpath version ", env!("CARGO_PKG_VERSION")).to_owned();
    let mut properties = WriterProperties::builder().set_created_by(created_by);
    for column in columns.iter().filter(|column| column.kind == ColumnKind::Integer) {
        let path = ColumnPath::from(column.name.as_str());
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}

impl ColumnValues {
    const fn new(kind: ColumnKind) -> Self {
        let known = match kind {
            ColumnKind::Flag => KnownValues::Flags(Vec::new()),
            ColumnKind::Integer | ColumnKind::Unsigned => KnownValues::Integers(Vec::new()),
            ColumnKind::Number => KnownValues::Numbers(Vec::new()),
            ColumnKind::Text => KnownValues::Texts(Vec::new()),
        };
        Self { kind, known, definition_levels: Vec::new() }
    }

    fn push(&mut self, field: &Field) {
        let field = field.if_of(self.kind);
        self.definition_levels.push(i16::from(field.is_some()));
        match (&mut self.known, field) {
            (KnownValues::Flags(values), Some(Field::Flag(value))) => values.push(*value),
            (KnownValues::Integers(values), Some(Field::Integer(value))) => values.push(*value),
            // The 64 bits stay the same. The schema says that they are an unsigned integer.
            (KnownValues::Integers(values), Some(Field::Unsigned(value))) => values.push(value.cast_signed()),
            (KnownValues::Numbers(values), Some(Field::Integer(value))) => values.push(*value as f64),
            (KnownValues::Numbers(values), Some(Field::Number(value))) => values.push(*value),
            (KnownValues::Texts(values), Some(Field::Text(text))) => {
                values.push(Bytes::from_owner(SharedText(Arc::clone(text))).into());
            }
            // `if_of` has refused every other pair, and an unknown field has no value.
            _ => {}
        }
    }

    /// Writes the values to `group` and removes them.
    fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), RecordError> {
        let levels = &self.definition_levels;
        match &mut self.known {
            KnownValues::Flags(values) => write_column::<BoolType, W>(values, levels, group)?,
            KnownValues::Integers(values) => write_column::<Int64Type, W>(values, levels, group)?,
            KnownValues::Numbers(values) => write_column::<DoubleType, W>(values, levels, group)?,
            KnownValues::Texts(values) => write_column::<ByteArrayType, W>(values, levels, group)?,
        }
        self.definition_levels.clear();
        Ok(())
    }
}

/// A text whose bytes Parquet reads without a copy for each row.
struct SharedText(Arc<str>);

impl AsRef<[u8]> for SharedText {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

fn write_column<T: DataType, W: Write + Send>(
    values: &mut Vec<T::T>,
    definition_levels: &[i16],
    group: &mut SerializedRowGroupWriter<'_, W>,
) -> Result<(), RecordError> {
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(values, Some(definition_levels), None)?;
        column.close()?;
    }
    values.clear();
    Ok(())
}

//! Flat tables for other tools: one header, one value in a field, no nesting. As CSV (RFC 4180), as JSON
//! lines, and as Parquet.
//!
//! A table is written row by row. CSV and JSON lines keep one row in memory, Parquet one row group.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use talkpath_units::{Instant, is_printable, printable};

use crate::record_file::{PacketRow, RecordError, SeriesRow};
use crate::{DropCause, Fate, Leg, SeriesKind};

/// A column: its name and what all of its fields hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Lower-case letters, digits and `_`: a name in any tool.
    pub name: String,
    /// What a field holds, if it is known.
    pub kind: ColumnKind,
}

/// What the fields of a column hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ColumnKind {
    /// `true` or `false`.
    Flag,
    /// A whole number of 64 bits, signed.
    Integer,
    /// A whole number of 64 bits without a sign, for what may have all of them set: a seed.
    Unsigned,
    /// A number of 64 bits.
    Number,
    /// Words.
    Text,
}

/// One field.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// Not known: empty in CSV, `null` elsewhere.
    Unknown,
    /// For a [`ColumnKind::Flag`].
    Flag(bool),
    /// For a [`ColumnKind::Integer`], or a number.
    Integer(i64),
    /// For a [`ColumnKind::Unsigned`].
    Unsigned(u64),
    /// For a [`ColumnKind::Number`].
    Number(f64),
    /// For a [`ColumnKind::Text`].
    Text(Arc<str>),
}

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// A header, then a line a row.
    Csv,
    /// A JSON object a row and line.
    Jsonl,
    /// Parquet, without compression.
    Parquet,
}

impl Column {
    /// A column whose name is `text` with `_` for all that is no letter or digit: `path.up.rate` becomes
    /// `path_up_rate`.
    pub fn new(text: &str, kind: ColumnKind) -> Self {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
        Self { name: text.chars().map(plain).collect(), kind }
    }
}

impl Field {
    /// A whole number; beyond 2⁶³ the largest.
    pub fn integer(value: u64) -> Self {
        Self::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }

    /// Words.
    pub fn text(text: &str) -> Self {
        Self::Text(text.into())
    }
}

/// A table on its way out.
pub struct TableWriter<W: Write + Send> {
    columns: Vec<Column>,
    sink: Sink<W>,
}

enum Sink<W: Write + Send> {
    Csv(W),
    /// With each column's name as JSON, and the colon.
    Jsonl(W, Vec<String>),
    Parquet(Box<Groups<W>>),
}

impl<W: Write + Send> TableWriter<W> {
    /// Begins a table, with its header if the format has one.
    ///
    /// # Errors
    /// [`RecordError::Io`] from `out`.
    pub fn new(columns: Vec<Column>, format: TableFormat, mut out: W) -> Result<Self, RecordError> {
        let sink = match format {
            TableFormat::Csv => {
                let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
                writeln!(out, "{}", names.join(","))?;
                Sink::Csv(out)
            }
            TableFormat::Jsonl => {
                let keys = columns.iter().map(|column| format!("\"{}\":", column.name)).collect();
                Sink::Jsonl(out, keys)
            }
            TableFormat::Parquet => Sink::Parquet(Box::new(Groups::new(&columns, out)?)),
        };
        Ok(Self { columns, sink })
    }

    /// Writes a row, a field for each column; what does not fit its column is written as unknown.
    ///
    /// # Errors
    /// [`RecordError::Io`] from the output.
    pub fn row(&mut self, fields: &[Field]) -> Result<(), RecordError> {
        let fields = self.columns.iter().zip(fields.iter().chain(core::iter::repeat(&Field::Unknown)));
        match &mut self.sink {
            Sink::Csv(out) => {
                for (number, (column, field)) in fields.enumerate() {
                    if number > 0 {
                        out.write_all(b",")?;
                    }
                    write_csv(column.kind, field, out)?;
                }
                out.write_all(b"\n")?;
            }
            Sink::Jsonl(out, keys) => {
                for (number, ((column, field), key)) in fields.zip(keys).enumerate() {
                    out.write_all(if number == 0 { b"{" } else { b"," })?;
                    out.write_all(key.as_bytes())?;
                    write_json(column.kind, field, out)?;
                }
                out.write_all(b"}\n")?;
            }
            Sink::Parquet(groups) => groups.push(fields.map(|(_, field)| field))?,
        }
        Ok(())
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// [`RecordError::Io`] from the output.
    pub fn finish(self) -> Result<(), RecordError> {
        match self.sink {
            Sink::Csv(mut out) | Sink::Jsonl(mut out, _) => out.flush()?,
            Sink::Parquet(groups) => groups.finish()?,
        }
        Ok(())
    }
}

/// The field as its column holds it.
fn fitting(kind: ColumnKind, field: &Field) -> Option<&Field> {
    let fits = match (kind, field) {
        (ColumnKind::Number, Field::Number(value)) => value.is_finite(),
        (ColumnKind::Flag, Field::Flag(_))
        | (ColumnKind::Integer | ColumnKind::Number, Field::Integer(_))
        | (ColumnKind::Unsigned, Field::Unsigned(_))
        | (ColumnKind::Text, Field::Text(_)) => true,
        _ => false,
    };
    fits.then_some(field)
}

fn write_csv(kind: ColumnKind, field: &Field, out: &mut impl Write) -> io::Result<()> {
    match fitting(kind, field) {
        Some(Field::Text(text)) => {
            let text = harmless(text);
            // RFC 4180 §2: what has a comma, a quote or a line break is put in quotes, its quotes doubled.
            match text.contains([',', '"', '\n']) {
                true => write!(out, "\"{}\"", text.replace('"', "\"\"")),
                false => out.write_all(text.as_bytes()),
            }
        }
        Some(field) => write_json(kind, field, out),
        None => Ok(()),
    }
}

/// `text` as no spreadsheet takes it for a formula and no terminal for a command: another host may have
/// written it. With a quote before it a spreadsheet takes it as text (OWASP, "CSV Injection"). What steers a
/// terminal is escaped, but for line feeds.
fn harmless(text: &str) -> Cow<'_, str> {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    if !is_formula && text.chars().all(is_printable) {
        return Cow::Borrowed(text);
    }
    let lines: Vec<_> = text.split('\n').map(|line| printable(line, usize::MAX)).collect();
    Cow::Owned(format!("{}{}", if is_formula { "'" } else { "" }, lines.join("\n")))
}

fn write_json(kind: ColumnKind, field: &Field, out: &mut impl Write) -> io::Result<()> {
    match fitting(kind, field) {
        Some(Field::Flag(flag)) => write!(out, "{flag}"),
        Some(Field::Integer(value)) if kind == ColumnKind::Number => {
            Ok(serde_json::to_writer(out, &(*value as f64))?)
        }
        Some(Field::Integer(value)) => write!(out, "{value}"),
        Some(Field::Unsigned(value)) => write!(out, "{value}"),
        Some(Field::Number(value)) => Ok(serde_json::to_writer(out, value)?),
        Some(Field::Text(text)) => Ok(serde_json::to_writer(out, &**text)?),
        Some(Field::Unknown) | None => out.write_all(b"null"),
    }
}

/// The rows of one group of a Parquet file, column by column, and the file.
struct Groups<W: Write + Send> {
    columns: Vec<Values>,
    rows: usize,
    file: SerializedFileWriter<W>,
}

/// The known values of a column, and which rows have one.
struct Values {
    kind: ColumnKind,
    known: Known,
    defined: Vec<i16>,
}

enum Known {
    Flags(Vec<bool>),
    Integers(Vec<i64>),
    Numbers(Vec<f64>),
    Texts(Vec<ByteArray>),
}

/// A text as bytes that are shared, and not copied for each row.
struct Shared(Arc<str>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl<W: Write + Send> Groups<W> {
    fn new(columns: &[Column], out: W) -> Result<Self, RecordError> {
        let mut schema = "message table {".to_owned();
        let created_by = concat!("talkpath version ", env!("CARGO_PKG_VERSION")).to_owned();
        let mut properties = WriterProperties::builder().set_created_by(created_by);
        for Column { name, kind } in columns {
            let (kind, meaning, encoding) = match kind {
                ColumnKind::Flag => ("BOOLEAN", "", None),
                ColumnKind::Integer => ("INT64", "", Some(Encoding::DELTA_BINARY_PACKED)),
                ColumnKind::Unsigned => ("INT64", " (INTEGER(64,false))", None),
                ColumnKind::Number => ("DOUBLE", "", None),
                ColumnKind::Text => ("BYTE_ARRAY", " (STRING)", None),
            };
            schema.push_str(&format!(" OPTIONAL {kind} {name}{meaning};"));
            if let Some(encoding) = encoding {
                let path = ColumnPath::from(name.as_str());
                properties = properties
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path, encoding);
            }
        }
        schema.push_str(" }");
        let schema = Arc::new(parse_message_type(&schema)?);
        let file = SerializedFileWriter::new(out, schema, Arc::new(properties.build()))?;
        let columns = columns.iter().map(|column| Values::new(column.kind)).collect();
        Ok(Self { columns, rows: 0, file })
    }

    fn push<'f>(&mut self, fields: impl Iterator<Item = &'f Field>) -> Result<(), RecordError> {
        for (column, field) in self.columns.iter_mut().zip(fields) {
            column.push(field);
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), RecordError> {
        let mut group = self.file.next_row_group()?;
        for column in &mut self.columns {
            column.write(&mut group)?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }

    fn finish(mut self) -> Result<(), RecordError> {
        if self.rows > 0 {
            self.write()?;
        }
        self.file.close()?;
        Ok(())
    }
}

impl Values {
    const fn new(kind: ColumnKind) -> Self {
        let known = match kind {
            ColumnKind::Flag => Known::Flags(Vec::new()),
            ColumnKind::Integer | ColumnKind::Unsigned => Known::Integers(Vec::new()),
            ColumnKind::Number => Known::Numbers(Vec::new()),
            ColumnKind::Text => Known::Texts(Vec::new()),
        };
        Self { kind, known, defined: Vec::new() }
    }

    fn push(&mut self, field: &Field) {
        let field = fitting(self.kind, field);
        self.defined.push(i16::from(field.is_some()));
        match (&mut self.known, field) {
            (Known::Flags(values), Some(Field::Flag(value))) => values.push(*value),
            (Known::Integers(values), Some(Field::Integer(value))) => values.push(*value),
            // The same 64 bits; the column's type says that there is no sign.
            (Known::Integers(values), Some(Field::Unsigned(value))) => values.push(value.cast_signed()),
            (Known::Numbers(values), Some(Field::Integer(value))) => values.push(*value as f64),
            (Known::Numbers(values), Some(Field::Number(value))) => values.push(*value),
            (Known::Texts(values), Some(Field::Text(text))) => {
                values.push(Bytes::from_owner(Shared(Arc::clone(text))).into());
            }
            _ => {}
        }
    }

    /// Writes the values, and holds none then.
    fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), RecordError> {
        match &mut self.known {
            Known::Flags(values) => write_column::<BoolType, W>(values, &self.defined, group)?,
            Known::Integers(values) => write_column::<Int64Type, W>(values, &self.defined, group)?,
            Known::Numbers(values) => write_column::<DoubleType, W>(values, &self.defined, group)?,
            Known::Texts(values) => write_column::<ByteArrayType, W>(values, &self.defined, group)?,
        }
        self.defined.clear();
        Ok(())
    }
}

fn write_column<T: DataType, W: Write + Send>(
    values: &mut Vec<T::T>,
    defined: &[i16],
    group: &mut SerializedRowGroupWriter<'_, W>,
) -> Result<(), RecordError> {
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(values, Some(defined), None)?;
        column.close()?;
    }
    values.clear();
    Ok(())
}

/// The columns of the table of messages, those of packets.parquet. What the sweep sets stands behind the
/// second.
pub fn message_columns(swept: &[Column]) -> Vec<Column> {
    let of = |names: &[(&str, ColumnKind)]| -> Vec<Column> {
        names.iter().map(|(name, kind)| Column::new(name, *kind)).collect()
    };
    let (integer, text) = (ColumnKind::Integer, ColumnKind::Text);
    let ids = of(&[("cell", integer), ("repetition", integer)]);
    let message = of(&[
        ("flow", text),
        ("leg", text),
        ("seq", integer),
        ("size", integer),
        ("due_ns", integer),
        ("sent_ns", integer),
        ("wire_ns", integer),
        ("received_ns", integer),
        ("fate", text),
        ("drop_cause", text),
        ("copies", integer),
        ("transmissions", integer),
    ]);
    [ids, swept.to_vec(), message].concat()
}

/// Puts one message into `row`, in the order of [`message_columns`].
pub fn message_row(packet: &PacketRow, swept: &[Field], row: &mut Vec<Field>) {
    let message = &packet.message;
    let instant = |at: Option<Instant>| at.map_or(Field::Unknown, |at| Field::integer(at.as_nanos()));
    row.clear();
    row.extend([Field::integer(packet.cell), Field::integer(packet.repetition)]);
    row.extend_from_slice(swept);
    row.extend([
        Field::Text(packet.flow.clone()),
        Field::text(Leg::name(packet.leg)),
        Field::integer(message.seq),
        Field::integer(message.size.get()),
        Field::integer(message.due.as_nanos()),
        instant(message.sent),
        instant(message.wire),
        instant(message.received),
        Field::text(Fate::name(message.fate)),
        message.drop_cause.map(DropCause::name).map_or(Field::Unknown, Field::text),
        Field::integer(message.copies.into()),
        Field::integer(message.transmissions.into()),
    ]);
}

/// The columns of the table of series, those of series.parquet. What the sweep sets stands behind the second.
pub fn series_columns(swept: &[Column]) -> Vec<Column> {
    let ids = [Column::new("cell", ColumnKind::Integer), Column::new("repetition", ColumnKind::Integer)];
    let point = [
        Column::new("entity", ColumnKind::Text),
        Column::new("kind", ColumnKind::Text),
        Column::new("time_ns", ColumnKind::Integer),
        Column::new("value", ColumnKind::Number),
    ];
    [&ids, swept, &point].concat()
}

/// Puts one point of a line into `row`, in the order of [`series_columns`].
pub fn series_row(point: &SeriesRow, swept: &[Field], row: &mut Vec<Field>) {
    row.clear();
    row.extend([Field::integer(point.cell), Field::integer(point.repetition)]);
    row.extend_from_slice(swept);
    row.extend([
        Field::Text(point.entity.clone()),
        Field::text(SeriesKind::name(point.kind)),
        Field::integer(point.at.as_nanos()),
        Field::Number(point.value),
    ]);
}

/// The most rows of a row group. Chosen: some megabytes at a time.
const GROUP_ROWS: usize = 1 << 16;

#[cfg(test)]
#[path = "export_tests.rs"]
mod tests;

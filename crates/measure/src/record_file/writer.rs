//! Writing one repetition's part, and merging parts into the run's file.

use std::io::{self, Write};

use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::ChunkReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use talkpath_units::Instant;

use super::RecordError;
use super::reader::check;
use super::rows::{Stretch, message_stretches, point_stretches};
use super::schema::{GROUP_ROWS, PACKETS, SERIES, Table};
use crate::{DropCause, MessageRecord, RunRecord};

/// Writes the messages of one repetition as a file of their own.
///
/// # Errors
/// [`RecordError::Io`] from `out`.
pub fn write_packets(record: &RunRecord, out: impl Write + Send) -> Result<(), RecordError> {
    write_table(&PACKETS, message_stretches(record), out, write_packet_group)
}

/// Writes the series of one repetition as a file of their own.
///
/// # Errors
/// [`RecordError::Io`] from `out`.
pub fn write_series(record: &RunRecord, out: impl Write + Send) -> Result<(), RecordError> {
    write_table(&SERIES, point_stretches(record), out, write_series_group)
}

/// Puts the row groups of `parts`, as they are and in that order, into one file. Each part is opened, copied
/// and let go before the next, so `parts` may open files as it goes.
///
/// # Errors
/// [`RecordError`] if a part is not a whole packets file of this version, or from `out`.
pub fn merge_packets<R: ChunkReader + 'static>(
    parts: impl IntoIterator<Item = io::Result<R>>,
    out: impl Write + Send,
) -> Result<(), RecordError> {
    merge(&PACKETS, parts, out)
}

/// As [`merge_packets`], for series.
///
/// # Errors
/// [`RecordError`] if a part is not a whole series file of this version, or from `out`.
pub fn merge_series<R: ChunkReader + 'static>(
    parts: impl IntoIterator<Item = io::Result<R>>,
    out: impl Write + Send,
) -> Result<(), RecordError> {
    merge(&SERIES, parts, out)
}

fn merge<R: ChunkReader + 'static>(
    table: &Table,
    parts: impl IntoIterator<Item = io::Result<R>>,
    out: impl Write + Send,
) -> Result<(), RecordError> {
    let schema = table.schema()?;
    let properties = table.properties(&schema);
    let mut file = SerializedFileWriter::new(out, schema, properties)?;
    for part in parts {
        let part = part?;
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&part)?;
        check(table, &metadata, part.len())?;
        copy_groups(&part, &metadata, &mut file)?;
    }
    file.close()?;
    Ok(())
}

fn copy_groups<R: ChunkReader, W: Write + Send>(
    part: &R,
    metadata: &ParquetMetaData,
    file: &mut SerializedFileWriter<W>,
) -> Result<(), RecordError> {
    for group in metadata.row_groups() {
        let mut copy = file.next_row_group()?;
        for column in group.columns() {
            let close = ColumnCloseResult {
                bytes_written: u64::try_from(column.compressed_size()).unwrap_or(0),
                rows_written: u64::try_from(group.num_rows()).unwrap_or(0),
                metadata: column.clone(),
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            };
            copy.append_column(part, close)?;
        }
        copy.close()?;
    }
    Ok(())
}

fn write_table<'r, Row: 'r, W: Write + Send>(
    table: &Table,
    stretches: impl Iterator<Item = Stretch<'r, Row>>,
    out: W,
    write_group: fn(&Rows<'_, Row>, &mut Group<'_, W>) -> Result<(), RecordError>,
) -> Result<(), RecordError> {
    let schema = table.schema()?;
    let properties = table.properties(&schema);
    let mut file = SerializedFileWriter::new(out, schema, properties)?;
    let mut rows = Rows { stretches: Vec::new(), count: 0 };
    for mut stretch in stretches {
        while !stretch.rows.is_empty() {
            rows.take_from(&mut stretch);
            if rows.count == GROUP_ROWS {
                rows.write(&mut file, write_group)?;
            }
        }
    }
    if rows.count > 0 {
        rows.write(&mut file, write_group)?;
    }
    file.close()?;
    Ok(())
}

/// Columns in the order of the schema.
fn write_packet_group<W: Write + Send>(
    rows: &Rows<'_, MessageRecord>,
    group: &mut Group<'_, W>,
) -> Result<(), RecordError> {
    rows.begin(group)?;
    group.integers(rows, |message| message.seq)?;
    group.integers(rows, |message| message.size.get())?;
    group.integers(rows, |message| message.due.as_nanos())?;
    group.optional_instants(rows, |message| message.sent)?;
    group.optional_instants(rows, |message| message.wire)?;
    group.optional_instants(rows, |message| message.received)?;
    group.texts(rows, |message| Some(message.fate.name()))?;
    group.optional_texts(rows, |message| message.drop_cause.map(DropCause::name))?;
    group.integers(rows, |message| message.copies.into())?;
    group.integers(rows, |message| message.transmissions.into())
}

/// Columns in the order of the schema.
fn write_series_group<W: Write + Send>(
    rows: &Rows<'_, (Instant, f64)>,
    group: &mut Group<'_, W>,
) -> Result<(), RecordError> {
    rows.begin(group)?;
    group.integers(rows, |(at, _)| at.as_nanos())?;
    let values: Vec<_> = rows.iter().map(|(_, value)| *value).collect();
    group.column::<DoubleType>(&values, None)
}

/// The rows of one group. What a stretch has in common is stored once.
struct Rows<'r, Row> {
    stretches: Vec<Stretch<'r, Row>>,
    count: usize,
}

impl<'r, Row> Rows<'r, Row> {
    /// Takes the first rows of `stretch`, as many as there is room for.
    fn take_from(&mut self, stretch: &mut Stretch<'r, Row>) {
        let count = stretch.rows.len().min(GROUP_ROWS - self.count);
        let (taken, left) = stretch.rows.split_at(count);
        self.stretches.push(Stretch { rows: taken, ..*stretch });
        stretch.rows = left;
        self.count += count;
    }

    /// Writes them as a group, and holds none then.
    fn write<W: Write + Send>(
        &mut self,
        file: &mut SerializedFileWriter<W>,
        write_group: fn(&Self, &mut Group<'_, W>) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        let mut group = Group { writer: file.next_row_group()? };
        write_group(self, &mut group)?;
        group.writer.close()?;
        self.stretches.clear();
        self.count = 0;
        Ok(())
    }

    /// Writes the columns that both tables begin with, each the same over a stretch.
    fn begin<W: Write + Send>(&self, group: &mut Group<'_, W>) -> Result<(), RecordError> {
        group.column::<Int64Type>(&self.in_common(|stretch| signed(stretch.cell)), None)?;
        group.column::<Int64Type>(&self.in_common(|stretch| signed(stretch.repetition)), None)?;
        group.column::<ByteArrayType>(&self.in_common(|stretch| ByteArray::from(stretch.name)), None)?;
        group.column::<ByteArrayType>(&self.in_common(|stretch| ByteArray::from(stretch.word)), None)
    }

    fn in_common<T: Clone>(&self, value: impl Fn(&Stretch<'r, Row>) -> T) -> Vec<T> {
        let mut values = Vec::with_capacity(self.count);
        for stretch in &self.stretches {
            values.resize(values.len() + stretch.rows.len(), value(stretch));
        }
        values
    }

    fn iter(&self) -> impl Iterator<Item = &'r Row> {
        self.stretches.iter().flat_map(|stretch| stretch.rows)
    }
}

/// A row group that takes its columns one after the other.
struct Group<'a, W: Write> {
    writer: SerializedRowGroupWriter<'a, W>,
}

impl<W: Write + Send> Group<'_, W> {
    fn integers<Row>(&mut self, rows: &Rows<'_, Row>, value: fn(&Row) -> u64) -> Result<(), RecordError> {
        let values: Vec<_> = rows.iter().map(|row| signed(value(row))).collect();
        self.column::<Int64Type>(&values, None)
    }

    fn optional_instants<Row>(
        &mut self,
        rows: &Rows<'_, Row>,
        value: fn(&Row) -> Option<Instant>,
    ) -> Result<(), RecordError> {
        let values: Vec<_> = rows.iter().filter_map(|row| Some(signed(value(row)?.as_nanos()))).collect();
        let defined: Vec<_> = rows.iter().map(|row| i16::from(value(row).is_some())).collect();
        self.column::<Int64Type>(&values, Some(&defined))
    }

    fn texts<Row>(
        &mut self,
        rows: &Rows<'_, Row>,
        value: fn(&Row) -> Option<&'static str>,
    ) -> Result<(), RecordError> {
        self.column::<ByteArrayType>(&byte_arrays(rows.iter().filter_map(value)), None)
    }

    fn optional_texts<Row>(
        &mut self,
        rows: &Rows<'_, Row>,
        value: fn(&Row) -> Option<&'static str>,
    ) -> Result<(), RecordError> {
        let defined: Vec<_> = rows.iter().map(|row| i16::from(value(row).is_some())).collect();
        self.column::<ByteArrayType>(&byte_arrays(rows.iter().filter_map(value)), Some(&defined))
    }

    fn column<T: DataType>(&mut self, values: &[T::T], defined: Option<&[i16]>) -> Result<(), RecordError> {
        let Some(mut column) = self.writer.next_column()? else {
            return Err(RecordError::Damaged {
                column: String::new(),
                what: "beyond the schema's last".to_owned(),
            });
        };
        column.typed::<T>().write_batch(values, defined, None)?;
        column.close()?;
        Ok(())
    }
}

/// Neighbouring rows mostly share their text, and then their bytes.
fn byte_arrays(texts: impl Iterator<Item = &'static str>) -> Vec<ByteArray> {
    let mut shared = ("", ByteArray::from(""));
    let share = |text| {
        if shared.0 != text {
            shared = (text, ByteArray::from(text));
        }
        shared.1.clone()
    };
    texts.map(share).collect()
}

/// Columns are signed, so that who subtracts two stamps gets a negative delay if there is one. No instant of
/// a run comes near 2⁶³ ns, which are 292 years.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

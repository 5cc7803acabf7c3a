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
use super::rows::{PacketRow, SeriesRow, packet_rows, series_rows};
use super::schema::{GROUP_ROWS, PACKETS, SERIES, Table};
use crate::{DropCause, RunRecord};

/// Writes the messages of one repetition as a file of their own.
///
/// # Errors
/// [`RecordError::Io`] from `out`.
pub fn write_packets(record: &RunRecord, out: impl Write + Send) -> Result<(), RecordError> {
    write_table(&PACKETS, packet_rows(record), out, write_packet_group)
}

/// Writes the series of one repetition as a file of their own.
///
/// # Errors
/// [`RecordError::Io`] from `out`.
pub fn write_series(record: &RunRecord, out: impl Write + Send) -> Result<(), RecordError> {
    write_table(&SERIES, series_rows(record), out, write_series_group)
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
    let mut file = SerializedFileWriter::new(out, table.schema()?, table.properties())?;
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

fn write_table<Row, W: Write + Send>(
    table: &Table,
    mut rows: impl Iterator<Item = Row>,
    out: W,
    write_group: fn(&[Row], &mut Group<'_, W>) -> Result<(), RecordError>,
) -> Result<(), RecordError> {
    let mut file = SerializedFileWriter::new(out, table.schema()?, table.properties())?;
    loop {
        let chunk: Vec<Row> = rows.by_ref().take(GROUP_ROWS).collect();
        if chunk.is_empty() {
            break;
        }
        let mut group = Group { writer: file.next_row_group()? };
        write_group(&chunk, &mut group)?;
        group.writer.close()?;
    }
    file.close()?;
    Ok(())
}

/// Columns in the order of the schema.
fn write_packet_group<W: Write + Send>(
    rows: &[PacketRow],
    group: &mut Group<'_, W>,
) -> Result<(), RecordError> {
    group.integers(rows, |row| row.cell)?;
    group.integers(rows, |row| row.repetition)?;
    group.texts(rows, |row| Some(&row.flow))?;
    group.texts(rows, |row| Some(row.leg.name()))?;
    group.integers(rows, |row| row.message.seq)?;
    group.integers(rows, |row| row.message.size.get())?;
    group.integers(rows, |row| row.message.due.as_nanos())?;
    group.optional_instants(rows, |row| row.message.sent)?;
    group.optional_instants(rows, |row| row.message.wire)?;
    group.optional_instants(rows, |row| row.message.received)?;
    group.texts(rows, |row| Some(row.message.fate.name()))?;
    group.optional_texts(rows, |row| row.message.drop_cause.map(DropCause::name))?;
    group.integers(rows, |row| row.message.copies.into())?;
    group.integers(rows, |row| row.message.transmissions.into())
}

/// Columns in the order of the schema.
fn write_series_group<W: Write + Send>(
    rows: &[SeriesRow],
    group: &mut Group<'_, W>,
) -> Result<(), RecordError> {
    group.integers(rows, |row| row.cell)?;
    group.integers(rows, |row| row.repetition)?;
    group.texts(rows, |row| Some(&row.entity))?;
    group.texts(rows, |row| Some(row.kind.name()))?;
    group.integers(rows, |row| row.at.as_nanos())?;
    let values: Vec<_> = rows.iter().map(|row| row.value).collect();
    group.column::<DoubleType>(&values, None)
}

/// A row group that takes its columns one after the other.
struct Group<'a, W: Write> {
    writer: SerializedRowGroupWriter<'a, W>,
}

impl<W: Write + Send> Group<'_, W> {
    fn integers<Row>(&mut self, rows: &[Row], value: impl Fn(&Row) -> u64) -> Result<(), RecordError> {
        let values: Vec<_> = rows.iter().map(|row| signed(value(row))).collect();
        self.column::<Int64Type>(&values, None)
    }

    fn optional_instants<Row>(
        &mut self,
        rows: &[Row],
        value: impl Fn(&Row) -> Option<Instant>,
    ) -> Result<(), RecordError> {
        let values: Vec<_> = rows.iter().filter_map(|row| Some(signed(value(row)?.as_nanos()))).collect();
        let defined: Vec<_> = rows.iter().map(|row| i16::from(value(row).is_some())).collect();
        self.column::<Int64Type>(&values, Some(&defined))
    }

    fn texts<'r, Row>(
        &mut self,
        rows: &'r [Row],
        value: impl Fn(&'r Row) -> Option<&'r str>,
    ) -> Result<(), RecordError> {
        self.column::<ByteArrayType>(&byte_arrays(rows, value), None)
    }

    fn optional_texts<'r, Row>(
        &mut self,
        rows: &'r [Row],
        value: impl Fn(&'r Row) -> Option<&'r str>,
    ) -> Result<(), RecordError> {
        let defined: Vec<_> = rows.iter().map(|row| i16::from(value(row).is_some())).collect();
        self.column::<ByteArrayType>(&byte_arrays(rows, value), Some(&defined))
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
fn byte_arrays<'r, Row>(rows: &'r [Row], value: impl Fn(&'r Row) -> Option<&'r str>) -> Vec<ByteArray> {
    let mut arrays = Vec::with_capacity(rows.len());
    let mut shared = ("", ByteArray::from(""));
    for text in rows.iter().filter_map(value) {
        if shared.0 != text {
            shared = (text, ByteArray::from(text));
        }
        arrays.push(shared.1.clone());
    }
    arrays
}

/// Columns are signed, so that who subtracts two stamps gets a negative delay if there is one. No instant of
/// a run comes near 2⁶³ ns, which are 292 years.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

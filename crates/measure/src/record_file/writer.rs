//! Writes the record files of one repetition, and merges the files of all repetitions.
//!
//! A *part* is the file of one repetition. A *stretch* is a sequence of rows with the same cell, repetition,
//! name and word.

use core::mem;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::ChunkReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::SchemaDescriptor;
use talkpath_units::Instant;

use super::chunk::Group;
use super::columns::{DefinitionLevels, DeltaIntegers, Dictionary, PlainDoubles};
use super::reader::metadata;
use super::rows::{Stretch, message_stretches, point_stretches};
use super::schema::{GROUP_ROWS, PACKETS, SERIES, Table};
use super::{MergeError, RecordError};
use crate::{MessageRecord, RunRecord};

/// Writes packets.parquet of one repetition.
///
/// # Errors
/// Returns [`RecordError::Io`] if `out` cannot be written.
pub fn write_packets(record: &RunRecord, out: impl Write + Send) -> Result<(), RecordError> {
    write_table::<PacketColumns<'_>, _>(&PACKETS, message_stretches(record), out)
}

/// Writes series.parquet of one repetition.
///
/// # Errors
/// Returns [`RecordError::Io`] if `out` cannot be written.
pub fn write_series(record: &RunRecord, out: impl Write + Send) -> Result<(), RecordError> {
    write_table::<SeriesColumns<'_>, _>(&SERIES, point_stretches(record), out)
}

/// Copies the row groups of `parts` into one file, in the order of the parts and without a change. A part is
/// closed before the iterator is asked for the next one, so only one file is open at a time.
///
/// # Errors
/// Returns [`MergeError`] if a part is not a complete packets file of this version, or if `out` cannot be
/// written.
pub fn merge_packets<R: ChunkReader + 'static>(
    parts: impl IntoIterator<Item = io::Result<R>>,
    out: impl Write + Send,
) -> Result<(), MergeError> {
    merge(&PACKETS, parts, out)
}

/// Copies the row groups of `parts` into one file of series, as [`merge_packets`] does.
///
/// # Errors
/// Returns [`MergeError`] if a part is not a complete series file of this version, or if `out` cannot be
/// written.
pub fn merge_series<R: ChunkReader + 'static>(
    parts: impl IntoIterator<Item = io::Result<R>>,
    out: impl Write + Send,
) -> Result<(), MergeError> {
    merge(&SERIES, parts, out)
}

fn merge<R: ChunkReader + 'static>(
    table: &Table,
    parts: impl IntoIterator<Item = io::Result<R>>,
    out: impl Write + Send,
) -> Result<(), MergeError> {
    let write_error = |why: ParquetError| MergeError::Out(why.into());
    let write_failed = AtomicBool::new(false);
    let out = FailureWatch { out, write_failed: &write_failed };
    let schema = table.schema().map_err(write_error)?;
    let mut file = SerializedFileWriter::new(out, schema, table.properties()).map_err(write_error)?;
    for (index, part) in parts.into_iter().enumerate() {
        let read_error = |why| MergeError::Part { index, why };
        let part = part.map_err(|why| read_error(why.into()))?;
        let metadata = metadata(table, &part).map_err(read_error)?;
        copy_groups(&part, &metadata, &mut file).map_err(|why| {
            if write_failed.load(Ordering::Relaxed) { MergeError::Out(why) } else { read_error(why) }
        })?;
    }
    file.close().map_err(write_error)?;
    Ok(())
}

/// Notes whether a write failed. The error of a copy does not say whether it came from the read or from the
/// write.
struct FailureWatch<'a, W> {
    out: W,
    write_failed: &'a AtomicBool,
}

impl<W: Write> Write for FailureWatch<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes).inspect_err(|_| self.write_failed.store(true, Ordering::Relaxed))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().inspect_err(|_| self.write_failed.store(true, Ordering::Relaxed))
    }
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

fn write_table<'r, Columns: TableColumns<'r>, W: Write + Send>(
    table: &Table,
    stretches: impl Iterator<Item = Stretch<'r, Columns::Row>>,
    out: W,
) -> Result<(), RecordError> {
    let schema = table.schema()?;
    let descriptors = SchemaDescriptor::new(Arc::clone(&schema));
    let mut file = SerializedFileWriter::new(out, schema, table.properties())?;
    let mut write_group = |columns: Columns, row_count| {
        let mut group = Group::new(file.next_row_group()?, descriptors.columns(), row_count);
        columns.write(&mut group)?;
        group.close()
    };
    let (mut columns, mut row_count) = (Columns::new(), 0);
    for mut stretch in stretches {
        while !stretch.rows.is_empty() {
            let room = GROUP_ROWS - row_count;
            let (for_this_group, for_next_group) = stretch.rows.split_at(stretch.rows.len().min(room));
            columns.add(&Stretch { rows: for_this_group, ..stretch });
            stretch.rows = for_next_group;
            row_count += for_this_group.len();
            if row_count == GROUP_ROWS {
                write_group(mem::replace(&mut columns, Columns::new()), mem::take(&mut row_count))?;
            }
        }
    }
    if row_count > 0 {
        write_group(columns, row_count)?;
    }
    file.close()?;
    Ok(())
}

/// The columns of the current row group of a table. They grow together, so that each row is read once.
trait TableColumns<'r> {
    /// A row, without the columns that are the same over a stretch.
    type Row: 'r;

    fn new() -> Self;

    fn add(&mut self, stretch: &Stretch<'r, Self::Row>);

    /// Writes the columns in the order of the schema.
    fn write<W: Write + Send>(self, group: &mut Group<'_, W>) -> Result<(), RecordError>;
}

/// The first four columns of both tables. They are the same over a stretch.
struct Common<'r> {
    cell: Dictionary<i64>,
    repetition: Dictionary<i64>,
    name: Dictionary<&'r str>,
    word: Dictionary<&'static str>,
}

impl<'r> Common<'r> {
    const fn new() -> Self {
        Self {
            cell: Dictionary::new(),
            repetition: Dictionary::new(),
            name: Dictionary::new(),
            word: Dictionary::new(),
        }
    }

    fn add<Row>(&mut self, stretch: &Stretch<'r, Row>) {
        let count = stretch.rows.len() as u64;
        self.cell.push(signed(stretch.cell), count);
        self.repetition.push(signed(stretch.repetition), count);
        self.name.push(stretch.name, count);
        self.word.push(stretch.word, count);
    }

    fn write<W: Write + Send>(self, group: &mut Group<'_, W>) -> Result<(), RecordError> {
        group.required(self.cell.finish())?;
        group.required(self.repetition.finish())?;
        group.required(self.name.finish())?;
        group.required(self.word.finish())
    }
}

/// The columns of `packets.parquet`.
struct PacketColumns<'r> {
    common: Common<'r>,
    seq: DeltaIntegers,
    size: DeltaIntegers,
    due: DeltaIntegers,
    sent: Instants,
    wire: Instants,
    received: Instants,
    fate: Dictionary<&'static str>,
    has_drop_cause: DefinitionLevels,
    drop_cause: Dictionary<&'static str>,
    copies: DeltaIntegers,
    transmissions: DeltaIntegers,
}

impl<'r> TableColumns<'r> for PacketColumns<'r> {
    type Row = MessageRecord;

    fn new() -> Self {
        Self {
            common: Common::new(),
            seq: DeltaIntegers::new(),
            size: DeltaIntegers::new(),
            due: DeltaIntegers::new(),
            sent: Instants::new(),
            wire: Instants::new(),
            received: Instants::new(),
            fate: Dictionary::new(),
            has_drop_cause: DefinitionLevels::new(),
            drop_cause: Dictionary::new(),
            copies: DeltaIntegers::new(),
            transmissions: DeltaIntegers::new(),
        }
    }

    fn add(&mut self, stretch: &Stretch<'r, MessageRecord>) {
        self.common.add(stretch);
        for rows in stretch.rows.chunks(ROWS_AT_ONCE) {
            rows.iter().for_each(|row| self.seq.push(signed(row.seq)));
            rows.iter().for_each(|row| self.size.push(signed(row.size.get())));
            rows.iter().for_each(|row| self.due.push(signed(row.due.as_nanos())));
            rows.iter().for_each(|row| self.sent.push(row.sent));
            rows.iter().for_each(|row| self.wire.push(row.wire));
            rows.iter().for_each(|row| self.received.push(row.received));
            for run in rows.chunk_by(|row, next| row.fate == next.fate) {
                self.fate.push(run[0].fate.name(), run.len() as u64);
            }
            for run in rows.chunk_by(|row, next| row.drop_cause == next.drop_cause) {
                let (cause, count) = (run[0].drop_cause, run.len() as u64);
                self.has_drop_cause.push(cause.is_some(), count);
                if let Some(cause) = cause {
                    self.drop_cause.push(cause.name(), count);
                }
            }
            rows.iter().for_each(|row| self.copies.push(row.copies.into()));
            rows.iter().for_each(|row| self.transmissions.push(row.transmissions.into()));
        }
    }

    fn write<W: Write + Send>(self, group: &mut Group<'_, W>) -> Result<(), RecordError> {
        self.common.write(group)?;
        group.required(self.seq.finish())?;
        group.required(self.size.finish())?;
        group.required(self.due.finish())?;
        self.sent.write(group)?;
        self.wire.write(group)?;
        self.received.write(group)?;
        group.required(self.fate.finish())?;
        group.optional(&self.has_drop_cause, self.drop_cause.finish())?;
        group.required(self.copies.finish())?;
        group.required(self.transmissions.finish())
    }
}

/// The columns of `series.parquet`.
struct SeriesColumns<'r> {
    common: Common<'r>,
    time: DeltaIntegers,
    value: PlainDoubles,
}

impl<'r> TableColumns<'r> for SeriesColumns<'r> {
    type Row = (Instant, f64);

    fn new() -> Self {
        Self { common: Common::new(), time: DeltaIntegers::new(), value: PlainDoubles::new() }
    }

    fn add(&mut self, stretch: &Stretch<'r, (Instant, f64)>) {
        self.common.add(stretch);
        for &(at, value) in stretch.rows {
            self.time.push(signed(at.as_nanos()));
            self.value.push(value);
        }
    }

    fn write<W: Write + Send>(self, group: &mut Group<'_, W>) -> Result<(), RecordError> {
        self.common.write(group)?;
        group.required(self.time.finish())?;
        group.required(self.value.finish())
    }
}

/// A column of instants, some of which may be unknown.
struct Instants {
    levels: DefinitionLevels,
    known: DeltaIntegers,
}

impl Instants {
    const fn new() -> Self {
        Self { levels: DefinitionLevels::new(), known: DeltaIntegers::new() }
    }

    #[inline]
    fn push(&mut self, at: Option<Instant>) {
        self.levels.push(at.is_some(), 1);
        if let Some(at) = at {
            self.known.push(signed(at.as_nanos()));
        }
    }

    fn write<W: Write + Send>(self, group: &mut Group<'_, W>) -> Result<(), RecordError> {
        group.optional(&self.levels, self.known.finish())
    }
}

/// How many rows are added to one column before the next column gets them. We chose 256, because so many rows
/// fit into a processor's first-level cache.
const ROWS_AT_ONCE: usize = 256;

/// Converts a value for a column. The columns are signed, so that a reader who subtracts two times can get a
/// negative delay. No time of a run comes near 2⁶³ ns, which is 292 years.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

//! Writing one repetition's part, and merging parts into the run's file.

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
use super::columns::{Dictionary, Differences, Doubles, Levels};
use super::reader::metadata;
use super::rows::{Stretch, message_stretches, point_stretches};
use super::schema::{GROUP_ROWS, PACKETS, SERIES, Table};
use super::{MergeError, RecordError};
use crate::{MessageRecord, RunRecord};

/// Writes the messages of one repetition as a file of their own.
///
/// # Errors
/// [`RecordError::Io`] from `out`.
pub fn write_packets(record: &RunRecord, out: impl Write + Send) -> Result<(), RecordError> {
    write_table::<PacketColumns<'_>, _>(&PACKETS, message_stretches(record), out)
}

/// Writes the series of one repetition as a file of their own.
///
/// # Errors
/// [`RecordError::Io`] from `out`.
pub fn write_series(record: &RunRecord, out: impl Write + Send) -> Result<(), RecordError> {
    write_table::<SeriesColumns<'_>, _>(&SERIES, point_stretches(record), out)
}

/// Puts the row groups of `parts`, as they are and in that order, into one file. Each part is opened, copied
/// and let go before the next, so `parts` may open files as it goes.
///
/// # Errors
/// [`MergeError`] if a part is not a whole packets file of this version, or from `out`.
pub fn merge_packets<R: ChunkReader + 'static>(
    parts: impl IntoIterator<Item = io::Result<R>>,
    out: impl Write + Send,
) -> Result<(), MergeError> {
    merge(&PACKETS, parts, out)
}

/// As [`merge_packets`], for series.
///
/// # Errors
/// [`MergeError`] if a part is not a whole series file of this version, or from `out`.
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
    let unwritten = |why: ParquetError| MergeError::Out(why.into());
    let has_failed = AtomicBool::new(false);
    let out = Watched { out, has_failed: &has_failed };
    let schema = table.schema().map_err(unwritten)?;
    let mut file = SerializedFileWriter::new(out, schema, table.properties()).map_err(unwritten)?;
    for (index, part) in parts.into_iter().enumerate() {
        let unread = |why| MergeError::Part { index, why };
        let part = part.map_err(|why| unread(why.into()))?;
        let metadata = metadata(table, &part).map_err(unread)?;
        copy_groups(&part, &metadata, &mut file).map_err(|why| match has_failed.load(Ordering::Relaxed) {
            true => MergeError::Out(why),
            false => unread(why),
        })?;
    }
    file.close().map_err(unwritten)?;
    Ok(())
}

/// Notes whether a write failed: a copy says what went wrong, but not at which of its ends.
struct Watched<'a, W> {
    out: W,
    has_failed: &'a AtomicBool,
}

impl<W: Write> Write for Watched<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes).inspect_err(|_| self.has_failed.store(true, Ordering::Relaxed))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().inspect_err(|_| self.has_failed.store(true, Ordering::Relaxed))
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
    let (mut columns, mut rows) = (Columns::new(), 0);
    let mut write = |columns: Columns, rows| {
        let mut group = Group::new(file.next_row_group()?, descriptors.columns(), rows);
        columns.write(&mut group)?;
        group.close()
    };
    for mut stretch in stretches {
        while !stretch.rows.is_empty() {
            let (taken, left) = stretch.rows.split_at(stretch.rows.len().min(GROUP_ROWS - rows));
            columns.add(&Stretch { rows: taken, ..stretch });
            stretch.rows = left;
            rows += taken.len();
            if rows == GROUP_ROWS {
                write(core::mem::replace(&mut columns, Columns::new()), core::mem::take(&mut rows))?;
            }
        }
    }
    if rows > 0 {
        write(columns, rows)?;
    }
    file.close()?;
    Ok(())
}

/// The open row group of a table. Its columns grow together, so that rows are read once.
trait TableColumns<'r> {
    /// What a row is made of, but for what a stretch has in common.
    type Row: 'r;

    fn new() -> Self;

    fn add(&mut self, stretch: &Stretch<'r, Self::Row>);

    /// Writes the columns in the order of the schema.
    fn write<W: Write + Send>(self, group: &mut Group<'_, W>) -> Result<(), RecordError>;
}

/// The columns that both tables begin with, each the same over a stretch.
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
    seq: Differences,
    size: Differences,
    due: Differences,
    sent: Instants,
    wire: Instants,
    received: Instants,
    fate: Dictionary<&'static str>,
    has_drop_cause: Levels,
    drop_cause: Dictionary<&'static str>,
    copies: Differences,
    transmissions: Differences,
}

impl<'r> TableColumns<'r> for PacketColumns<'r> {
    type Row = MessageRecord;

    fn new() -> Self {
        Self {
            common: Common::new(),
            seq: Differences::new(),
            size: Differences::new(),
            due: Differences::new(),
            sent: Instants::new(),
            wire: Instants::new(),
            received: Instants::new(),
            fate: Dictionary::new(),
            has_drop_cause: Levels::new(),
            drop_cause: Dictionary::new(),
            copies: Differences::new(),
            transmissions: Differences::new(),
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
    time: Differences,
    value: Doubles,
}

impl<'r> TableColumns<'r> for SeriesColumns<'r> {
    type Row = (Instant, f64);

    fn new() -> Self {
        Self { common: Common::new(), time: Differences::new(), value: Doubles::new() }
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

/// A column of stamps; some may be unknown.
struct Instants {
    levels: Levels,
    known: Differences,
}

impl Instants {
    const fn new() -> Self {
        Self { levels: Levels::new(), known: Differences::new() }
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

/// Rows that all columns take before the next rows. Chosen: they fit in a processor's first-level cache.
const ROWS_AT_ONCE: usize = 256;

/// Columns are signed, so that who subtracts two stamps gets a negative delay if there is one. No instant of
/// a run comes near 2⁶³ ns, which are 292 years.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

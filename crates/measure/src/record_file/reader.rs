//! Reads a record file, one row group at a time.
//!
//! The file may hold anything, so every value is checked. [`GROUP_ROWS`] bounds the memory, whatever the file
//! claims. The parquet library relies on some properties of a file, and `headers.rs` and `pages.rs` check
//! these before.

use std::collections::BTreeMap;
use std::sync::Arc;

use parquet::basic::CompressionCodec;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, FileReader, RowGroupReader, SerializedFileReader};
use talkpath_units::{Bytes, Instant};

use super::RecordError;
use super::headers::{check_footer, check_pages};
use super::pages::{CheckedPages, chunks_lie_within};
use super::rows::{PacketRow, SeriesRow};
use super::schema::{GROUP_ROWS, PACKETS, RECORD_VERSION, SERIES, TABLE_KEY, Table, VERSION_KEY};
use crate::{DropCause, Fate, Leg, MessageRecord, SeriesKind};

/// Opens `packets.parquet`, or the packets of one repetition.
///
/// # Errors
/// Returns [`RecordError`] if `file` is not a packets file of a known version. Later errors come with the
/// rows.
pub fn read_packets<R: ChunkReader + 'static>(file: R) -> Result<PacketRows<R>, RecordError> {
    Ok(PacketRows(Rows::open(&PACKETS, file, packet_group)?))
}

/// Opens `series.parquet`, or the series of one repetition.
///
/// # Errors
/// Returns [`RecordError`] if `file` is not a series file of a known version. Later errors come with the
/// rows.
pub fn read_series<R: ChunkReader + 'static>(file: R) -> Result<SeriesRows<R>, RecordError> {
    Ok(SeriesRows(Rows::open(&SERIES, file, series_group)?))
}

/// The rows of a packets file, in order. They end after an error.
pub struct PacketRows<R: ChunkReader + 'static>(Rows<R, PacketRow>);

impl<R: ChunkReader + 'static> Iterator for PacketRows<R> {
    type Item = Result<PacketRow, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

/// The rows of a series file, in order. They end after an error.
pub struct SeriesRows<R: ChunkReader + 'static>(Rows<R, SeriesRow>);

impl<R: ChunkReader + 'static> Iterator for SeriesRows<R> {
    type Item = Result<SeriesRow, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

/// Turns the columns of a row group into rows.
type ReadGroup<Row> = fn(&mut Columns<'_>) -> Result<Vec<Row>, RecordError>;

struct Rows<R: ChunkReader + 'static, Row> {
    file: SerializedFileReader<R>,
    read_group: ReadGroup<Row>,
    next_group: usize,
    /// The rows of the current group that have not been returned.
    current_rows: std::vec::IntoIter<Row>,
}

impl<R: ChunkReader + 'static, Row> Rows<R, Row> {
    fn open(table: &Table, file: R, read_group: ReadGroup<Row>) -> Result<Self, RecordError> {
        let metadata = metadata(table, &file)?;
        let file = SerializedFileReader::new(file)?;
        debug_assert_eq!(file.num_row_groups(), metadata.num_row_groups());
        Ok(Self { file, read_group, next_group: 0, current_rows: Vec::new().into_iter() })
    }

    fn next(&mut self) -> Option<Result<Row, RecordError>> {
        loop {
            if let Some(row) = self.current_rows.next() {
                return Some(Ok(row));
            }
            if self.next_group >= self.file.num_row_groups() {
                return None;
            }
            match self.load_group(self.next_group) {
                Ok(rows) => {
                    self.next_group += 1;
                    self.current_rows = rows.into_iter();
                }
                Err(error) => {
                    // No row follows an error.
                    self.next_group = usize::MAX;
                    return Some(Err(error));
                }
            }
        }
    }

    fn load_group(&self, group: usize) -> Result<Vec<Row>, RecordError> {
        let group = self.file.get_row_group(group)?;
        (self.read_group)(&mut Columns::new(group.as_ref())?)
    }
}

/// Returns the metadata of `file`. Checks that the file holds `table` in a known version, and that the
/// library can read its headers.
pub(super) fn metadata(table: &Table, file: &impl ChunkReader) -> Result<ParquetMetaData, RecordError> {
    check_footer(file)?;
    let metadata = ParquetMetaDataReader::new().parse_and_finish(file)?;
    check_table(table, &metadata, file.len())?;
    check_pages(file, &metadata)?;
    Ok(metadata)
}

/// Checks that `metadata` belongs to a file of `length` bytes that holds `table` in a known version.
fn check_table(table: &Table, metadata: &ParquetMetaData, length: u64) -> Result<(), RecordError> {
    let file = metadata.file_metadata();
    let value = |key: &str| {
        let entries = file.key_value_metadata()?;
        entries.iter().find(|entry| entry.key == key)?.value.as_deref()
    };
    let version = value(VERSION_KEY).ok_or(RecordError::NotARecord)?;
    if version.parse() != Ok(RECORD_VERSION) {
        return Err(RecordError::Version { found: version.to_owned() });
    }
    // Another program that writes the file again may give the root of the columns another name.
    let expected = table.schema()?;
    let (columns, expected) = (file.schema().get_fields(), expected.get_fields());
    if columns != expected {
        let names: Vec<_> = file.schema_descr().columns().iter().map(|column| column.name()).collect();
        let mut found = format!("table {} with {}", value(TABLE_KEY).unwrap_or("unnamed"), names.join(", "));
        let mut pairs = columns.iter().zip(expected);
        if let Some((column, _)) = pairs.find(|(column, expected)| column != expected) {
            found = format!("{found}; the first that differs, in its name or its type, is {}", column.name());
        }
        return Err(RecordError::Columns { expected: table.name, found });
    }
    if let Some((column, codec)) = first_compressed(metadata) {
        return Err(RecordError::Compressed { column, codec });
    }
    if !chunks_lie_within(metadata, length) {
        return Err(RecordError::Parquet(ParquetError::General(
            "a column reaches past the file's end".to_owned(),
        )));
    }
    Ok(())
}

/// Returns the first compressed column with the name of its compression.
fn first_compressed(metadata: &ParquetMetaData) -> Option<(String, String)> {
    let chunks = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    let mut compressed = chunks.filter(|chunk| chunk.compression_codec() != CompressionCodec::UNCOMPRESSED);
    let first = compressed.next()?;
    Some((first.column_descr().name().to_owned(), format!("{:?}", first.compression_codec())))
}

fn packet_group(columns: &mut Columns<'_>) -> Result<Vec<PacketRow>, RecordError> {
    let mut cell = columns.integers()?.into_iter();
    let mut repetition = columns.integers()?.into_iter();
    let mut flow = columns.shared_texts()?.into_iter();
    let mut leg = columns.words(Leg::from_name)?.into_iter();
    let mut seq = columns.integers()?.into_iter();
    let mut size = columns.integers()?.into_iter();
    let mut due = columns.integers()?.into_iter();
    let mut sent = columns.optional_instants()?.into_iter();
    let mut wire = columns.optional_instants()?.into_iter();
    let mut received = columns.optional_instants()?.into_iter();
    let mut fate = columns.words(Fate::from_name)?.into_iter();
    let mut drop_cause = columns.optional_words(DropCause::from_name)?.into_iter();
    let mut copies = columns.counts()?.into_iter();
    let mut transmissions = columns.counts()?.into_iter();
    // Every column has as many values as the group has rows, so all columns end together.
    let rows = core::iter::from_fn(|| {
        Some(PacketRow {
            cell: cell.next()?,
            repetition: repetition.next()?,
            flow: flow.next()?,
            leg: leg.next()?,
            message: MessageRecord {
                seq: seq.next()?,
                size: Bytes::new(size.next()?),
                due: Instant::from_nanos(due.next()?),
                sent: sent.next()?,
                wire: wire.next()?,
                received: received.next()?,
                fate: fate.next()?,
                drop_cause: drop_cause.next()?,
                copies: copies.next()?,
                transmissions: transmissions.next()?,
            },
        })
    });
    Ok(rows.collect())
}

fn series_group(columns: &mut Columns<'_>) -> Result<Vec<SeriesRow>, RecordError> {
    let mut cell = columns.integers()?.into_iter();
    let mut repetition = columns.integers()?.into_iter();
    let mut entity = columns.shared_texts()?.into_iter();
    let mut kind = columns.words(SeriesKind::from_name)?.into_iter();
    let mut time = columns.integers()?.into_iter();
    let mut value = columns.numbers()?.into_iter();
    let rows = core::iter::from_fn(|| {
        Some(SeriesRow {
            cell: cell.next()?,
            repetition: repetition.next()?,
            entity: entity.next()?,
            kind: kind.next()?,
            at: Instant::from_nanos(time.next()?),
            value: value.next()?,
        })
    });
    Ok(rows.collect())
}

/// Reads the columns of one row group, one after the other.
struct Columns<'a> {
    group: &'a dyn RowGroupReader,
    rows: usize,
    /// The index of the next column.
    next: usize,
}

impl<'a> Columns<'a> {
    fn new(group: &'a dyn RowGroupReader) -> Result<Self, RecordError> {
        let count = group.metadata().num_rows();
        match usize::try_from(count) {
            Ok(rows) if rows <= GROUP_ROWS => Ok(Self { group, rows, next: 0 }),
            _ => Err(RecordError::Damaged {
                column: group.metadata().schema_descr().name().to_owned(),
                what: format!(
                    "a row group of {count} rows; talkpath writes and reads at most {GROUP_ROWS} (in pyarrow `row_group_size`)"
                ),
            }),
        }
    }

    fn integers(&mut self) -> Result<Vec<u64>, RecordError> {
        let name = self.name();
        self.required::<Int64Type>()?.into_iter().map(|value| unsigned(&name, value)).collect()
    }

    fn counts(&mut self) -> Result<Vec<u32>, RecordError> {
        let name = self.name();
        let count = |value| u32::try_from(value).map_err(|_| damaged(&name, format!("{value} is no count")));
        self.required::<Int64Type>()?.into_iter().map(count).collect()
    }

    fn numbers(&mut self) -> Result<Vec<f64>, RecordError> {
        self.required::<DoubleType>()
    }

    fn optional_instants(&mut self) -> Result<Vec<Option<Instant>>, RecordError> {
        let name = self.name();
        let instant = |value: Option<i64>| {
            value.map(|value| unsigned(&name, value).map(Instant::from_nanos)).transpose()
        };
        self.optional::<Int64Type>()?.into_iter().map(instant).collect()
    }

    /// Reads texts. Equal texts share their memory, so they take no more memory than in the file.
    fn shared_texts(&mut self) -> Result<Vec<Arc<str>>, RecordError> {
        let name = self.name();
        let values = self.required::<ByteArrayType>()?;
        let mut different_texts: BTreeMap<&[u8], Arc<str>> = BTreeMap::new();
        let mut texts: Vec<Arc<str>> = Vec::with_capacity(values.len());
        for bytes in &values {
            // Most texts are equal to the text before, so the search is seldom necessary.
            let previous = texts.last().filter(|text| text.as_bytes() == bytes.data());
            let text = match previous.or_else(|| different_texts.get(bytes.data())) {
                Some(shared) => Arc::clone(shared),
                None => {
                    let text: Arc<str> = Arc::from(utf8(&name, bytes)?);
                    different_texts.insert(bytes.data(), Arc::clone(&text));
                    text
                }
            };
            texts.push(text);
        }
        Ok(texts)
    }

    fn words<T>(&mut self, parse: fn(&str) -> Option<T>) -> Result<Vec<T>, RecordError> {
        let name = self.name();
        self.required::<ByteArrayType>()?.iter().map(|bytes| word(&name, bytes, parse)).collect()
    }

    fn optional_words<T>(&mut self, parse: fn(&str) -> Option<T>) -> Result<Vec<Option<T>>, RecordError> {
        let name = self.name();
        let word = |bytes: Option<ByteArray>| bytes.map(|bytes| word(&name, &bytes, parse)).transpose();
        self.optional::<ByteArrayType>()?.into_iter().map(word).collect()
    }

    fn required<T: DataType>(&mut self) -> Result<Vec<T::T>, RecordError> {
        let name = self.name();
        let (values, _) = self.read::<T>()?;
        if values.len() == self.rows {
            Ok(values)
        } else {
            Err(damaged(&name, format!("{} values for {} rows", values.len(), self.rows)))
        }
    }

    fn optional<T: DataType>(&mut self) -> Result<Vec<Option<T::T>>, RecordError> {
        let name = self.name();
        let (values, levels) = self.read::<T>()?;
        let present = levels.iter().filter(|&&level| level == 1).count();
        if levels.len() != self.rows || values.len() != present {
            let what = format!("{} values, {present} of {} rows", values.len(), self.rows);
            return Err(damaged(&name, what));
        }
        let mut values = values.into_iter();
        Ok(levels.into_iter().map(|level| if level == 1 { values.next() } else { None }).collect())
    }

    /// Reads the values and the definition levels of the next column. Reads at most one row more than the
    /// group claims to have, so that the caller notices if there are too many.
    fn read<T: DataType>(&mut self) -> Result<(Vec<T::T>, Vec<i16>), RecordError> {
        let descriptor = self.group.metadata().column(self.next).column_descr_ptr();
        let pages = self.group.get_column_page_reader(self.next)?;
        let pages = CheckedPages::new(pages, Arc::clone(&descriptor), self.rows);
        let mut reader = ColumnReaderImpl::<T>::new(descriptor, Box::new(pages));
        self.next += 1;
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        let mut read = 0;
        while read <= self.rows {
            let limit = self.rows + 1 - read;
            let (new, _, _) = reader.read_records(limit, Some(&mut levels), None, &mut values)?;
            if new == 0 {
                break;
            }
            read += new;
        }
        Ok((values, levels))
    }

    fn name(&self) -> String {
        let schema = self.group.metadata().schema_descr();
        if self.next < schema.num_columns() {
            schema.column(self.next).name().to_owned()
        } else {
            String::new()
        }
    }
}

fn word<T>(column: &str, bytes: &ByteArray, parse: fn(&str) -> Option<T>) -> Result<T, RecordError> {
    let text = utf8(column, bytes)?;
    parse(text).ok_or_else(|| damaged(column, format!("unknown word `{text}`")))
}

fn utf8<'a>(column: &str, bytes: &'a ByteArray) -> Result<&'a str, RecordError> {
    core::str::from_utf8(bytes.data()).map_err(|error| damaged(column, error.to_string()))
}

fn unsigned(column: &str, value: i64) -> Result<u64, RecordError> {
    u64::try_from(value).map_err(|_| damaged(column, format!("{value} is negative")))
}

fn damaged(column: &str, what: String) -> RecordError {
    RecordError::Damaged { column: column.to_owned(), what }
}

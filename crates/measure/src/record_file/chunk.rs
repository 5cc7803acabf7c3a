//! Writes a column chunk: the pages of encoded values, and their description in the file's metadata.

use std::io::Write;

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::RecordError;
use super::columns::{DefinitionLevels, DictionaryPage, EncodedValues};

/// Enough bytes for the headers of both pages, and for the levels of a column that has a value in each row.
const HEADERS_SIZE: usize = 128;

/// A row group that is being written, column by column.
pub(super) struct Group<'a, W: Write> {
    writer: SerializedRowGroupWriter<'a, W>,
    /// The columns that have not been written.
    columns: std::slice::Iter<'a, ColumnDescPtr>,
    rows: u32,
}

impl<'a, W: Write + Send> Group<'a, W> {
    /// Begins a group of so many `rows`.
    pub(super) fn new(
        writer: SerializedRowGroupWriter<'a, W>,
        columns: &'a [ColumnDescPtr],
        rows: usize,
    ) -> Self {
        // A group has at most [`super::schema::GROUP_ROWS`] rows.
        Self { writer, columns: columns.iter(), rows: rows as u32 }
    }

    /// Writes the next column, in which every row has a value.
    pub(super) fn required(&mut self, values: EncodedValues) -> Result<(), RecordError> {
        self.write_column(None, values)
    }

    /// Writes the next column. `levels` says which rows have a value.
    pub(super) fn optional(
        &mut self,
        levels: &DefinitionLevels,
        values: EncodedValues,
    ) -> Result<(), RecordError> {
        self.write_column(Some(levels), values)
    }

    /// Ends the group after its last column.
    pub(super) fn close(self) -> Result<(), RecordError> {
        self.writer.close()?;
        Ok(())
    }

    fn write_column(
        &mut self,
        levels: Option<&DefinitionLevels>,
        values: EncodedValues,
    ) -> Result<(), RecordError> {
        let Some(column) = self.columns.next() else {
            return Err(RecordError::Damaged {
                column: String::new(),
                what: "beyond the schema's last".to_owned(),
            });
        };
        let EncodedValues { dictionary, encoding, bytes, bounds } = values;
        let mut encodings = vec![Encoding::RLE, encoding];
        if dictionary.is_some() {
            encodings.push(Encoding::PLAIN);
        }
        let nulls = levels.map_or(0, |levels| levels.nulls);
        let pages = write_pages(dictionary, data_page(self.rows, encoding, levels, bytes))?;

        let length = i64::try_from(pages.bytes.len()).unwrap_or(i64::MAX);
        let data_offset = i64::try_from(pages.data_offset).unwrap_or(i64::MAX);
        let has_dictionary = data_offset > 0;
        let mut metadata = ColumnChunkMetaData::builder(column.clone())
            .set_encodings(encodings)
            .set_num_values(self.rows.into())
            .set_total_compressed_size(length)
            .set_total_uncompressed_size(length)
            .set_data_page_offset(data_offset)
            .set_dictionary_page_offset(has_dictionary.then_some(0));
        if let Some(bounds) = bounds {
            metadata = metadata.set_statistics(bounds.statistics(nulls));
        }
        let close = ColumnCloseResult {
            bytes_written: length.unsigned_abs(),
            rows_written: self.rows.into(),
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        self.writer.append_column(&pages.bytes, close)?;
        Ok(())
    }
}

/// Makes a data page of so many `rows`. Its definition levels come before the values. A column in which every
/// row has a value has no levels.
fn data_page(rows: u32, encoding: Encoding, levels: Option<&DefinitionLevels>, values: Vec<u8>) -> Page {
    let bytes = match levels {
        None => values,
        Some(levels) => {
            let mut bytes = Vec::with_capacity(values.len() + HEADERS_SIZE);
            levels.write(&mut bytes);
            bytes.extend_from_slice(&values);
            bytes
        }
    };
    Page::DataPage {
        buf: Bytes::from(bytes),
        num_values: rows,
        encoding,
        def_level_encoding: Encoding::RLE,
        rep_level_encoding: Encoding::RLE,
        statistics: None,
    }
}

/// The pages of a column chunk with their headers.
struct WrittenPages {
    bytes: Bytes,
    /// The offset of the data page. It is 0 if there is no dictionary page before it.
    data_offset: u64,
}

fn write_pages(dictionary: Option<DictionaryPage>, data_page: Page) -> Result<WrittenPages, RecordError> {
    let capacity = data_page.buffer().len() + HEADERS_SIZE;
    let mut sink = TrackedWrite::new(Vec::with_capacity(capacity));
    let mut writer = SerializedPageWriter::new(&mut sink);
    let mut data_offset = 0;
    if let Some(DictionaryPage { bytes, value_count }) = dictionary {
        let page = Page::DictionaryPage {
            buf: Bytes::from(bytes),
            num_values: value_count,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        data_offset = writer.write_page(uncompressed(page))?.bytes_written;
    }
    writer.write_page(uncompressed(data_page))?;
    Ok(WrittenPages { bytes: Bytes::from(sink.into_inner()?), data_offset })
}

/// Wraps a page for the library without compressing it.
fn uncompressed(page: Page) -> CompressedPage {
    let size = page.buffer().len();
    CompressedPage::new(page, size)
}

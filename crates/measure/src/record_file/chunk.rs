//! A column chunk: the pages of encoded values, and what the file's metadata says about them.

use std::io::Write;

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::RecordError;
use super::columns::{Levels, Values};

/// A row group that takes its columns one after the other.
pub(super) struct Group<'a, W: Write> {
    writer: SerializedRowGroupWriter<'a, W>,
    columns: std::slice::Iter<'a, ColumnDescPtr>,
    rows: u32,
}

impl<'a, W: Write + Send> Group<'a, W> {
    /// A group of `rows` rows; all chunks are still to come.
    pub(super) fn new(
        writer: SerializedRowGroupWriter<'a, W>,
        columns: &'a [ColumnDescPtr],
        rows: usize,
    ) -> Self {
        // A group has at most [`super::schema::GROUP_ROWS`] rows.
        Self { writer, columns: columns.iter(), rows: rows as u32 }
    }

    /// The next column, in which every row has a value.
    pub(super) fn required(&mut self, values: Values) -> Result<(), RecordError> {
        self.put(None, values)
    }

    /// The next column, in which the rows have values as `levels` says.
    pub(super) fn optional(&mut self, levels: &Levels, values: Values) -> Result<(), RecordError> {
        self.put(Some(levels), values)
    }

    /// All columns are there.
    pub(super) fn close(self) -> Result<(), RecordError> {
        self.writer.close()?;
        Ok(())
    }

    fn put(&mut self, levels: Option<&Levels>, values: Values) -> Result<(), RecordError> {
        let Some(column) = self.columns.next() else {
            return Err(RecordError::Damaged {
                column: String::new(),
                what: "beyond the schema's last".to_owned(),
            });
        };
        let Values { dictionary, encoding, bytes, bounds } = values;
        let mut sink = TrackedWrite::new(Vec::with_capacity(bytes.len() + PAGE_HEADERS));
        let mut pages = SerializedPageWriter::new(&mut sink);
        let mut encodings = vec![Encoding::RLE, encoding];
        let mut data_offset = 0;
        if let Some((plain, num_values)) = dictionary {
            encodings.push(Encoding::PLAIN);
            let buf = Bytes::from(plain);
            let page = Page::DictionaryPage { buf, num_values, encoding: Encoding::PLAIN, is_sorted: false };
            data_offset = pages.write_page(as_it_is(page))?.bytes_written;
        }
        let buf = match levels {
            None => bytes,
            Some(levels) => {
                let mut page = Vec::with_capacity(bytes.len() + PAGE_HEADERS);
                levels.write(&mut page);
                page.extend_from_slice(&bytes);
                page
            }
        };
        pages.write_page(as_it_is(Page::DataPage {
            buf: Bytes::from(buf),
            num_values: self.rows,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        }))?;
        let bytes = Bytes::from(sink.into_inner()?);
        let length = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        let data_offset = i64::try_from(data_offset).unwrap_or(i64::MAX);
        let mut metadata = ColumnChunkMetaData::builder(column.clone())
            .set_encodings(encodings)
            .set_num_values(self.rows.into())
            .set_total_compressed_size(length)
            .set_total_uncompressed_size(length)
            .set_data_page_offset(data_offset)
            .set_dictionary_page_offset((data_offset > 0).then_some(0));
        if let Some(bounds) = bounds {
            metadata = metadata.set_statistics(bounds.statistics(levels.map_or(0, |levels| levels.nulls)));
        }
        let close = ColumnCloseResult {
            bytes_written: length.unsigned_abs(),
            rows_written: self.rows.into(),
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        self.writer.append_column(&bytes, close)?;
        Ok(())
    }
}

/// A page that is not compressed.
fn as_it_is(page: Page) -> CompressedPage {
    let size = page.buffer().len();
    CompressedPage::new(page, size)
}

/// Room for the headers of both pages and for the levels of a column that has a value in each row.
const PAGE_HEADERS: usize = 128;

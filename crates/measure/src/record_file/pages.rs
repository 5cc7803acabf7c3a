//! Checks each page of a file before the parquet library decodes it.
//!
//! The library returns an error for most kinds of damage. Its decoders (parquet 60.1) panic on the following:
//!
//! - an integer of more than ten bytes,
//! - the length of a text that the end of the page cuts off,
//! - differences without a value where the levels promise one,
//! - an index into a dictionary that the file does not have.
//!
//! The decoders also reserve memory for every value that a dictionary claims to have. So each page is walked
//! here first, and must hold what it claims. Only the form that talkpath writes is accepted: data pages of
//! version 1 in one of three encodings.
//!
//! Begin to read with [`CheckedPages`].

use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::schema::types::ColumnDescPtr;

/// Returns whether every column chunk lies within a file of `length` bytes.
pub(super) fn chunks_lie_within(metadata: &ParquetMetaData, length: u64) -> bool {
    let mut chunks = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    chunks.all(|chunk| {
        let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
        let end = start.checked_add(chunk.compressed_size());
        start >= 0 && chunk.compressed_size() >= 0 && end.is_some_and(|end| end.unsigned_abs() <= length)
    })
}

/// Reads the pages of one column chunk, and checks each of them.
pub(super) struct CheckedPages {
    pages: Box<dyn PageReader>,
    column: ColumnDescPtr,
    /// The number of rows in the chunk.
    rows: u64,
    /// The number of rows that are still to come.
    remaining_rows: u64,
    has_dictionary: bool,
}

impl CheckedPages {
    pub(super) fn new(pages: Box<dyn PageReader>, column: ColumnDescPtr, rows: usize) -> Self {
        Self { pages, column, rows: rows as u64, remaining_rows: rows as u64, has_dictionary: false }
    }

    fn check(&mut self, page: &Page) -> Result<()> {
        match page {
            Page::DictionaryPage { buf, num_values, .. } => self.check_dictionary(buf, (*num_values).into()),
            // A chunk has therefore no more pages than rows.
            Page::DataPage { num_values: 0, .. } => Err(general("a page without values")),
            Page::DataPage { buf, num_values, encoding, def_level_encoding, .. } => {
                self.check_data(buf, (*num_values).into(), *encoding, *def_level_encoding)
            }
            Page::DataPageV2 { .. } => Err(general("a data page of version 2; talkpath writes version 1")),
        }
    }

    fn check_dictionary(&mut self, bytes: &[u8], value_count: u64) -> Result<()> {
        if self.has_dictionary {
            return Err(general("a second dictionary"));
        }
        self.has_dictionary = true;
        let is_intact = match self.column.physical_type() {
            Type::BYTE_ARRAY => Walk(bytes).count_texts() == Some(value_count),
            _ => true,
        };
        if value_count <= self.rows && is_intact { Ok(()) } else { Err(wrong_length("a dictionary")) }
    }

    fn check_data(&mut self, bytes: &[u8], rows: u64, encoding: Encoding, levels: Encoding) -> Result<()> {
        let remaining = self.remaining_rows;
        self.remaining_rows = remaining
            .checked_sub(rows)
            .ok_or_else(|| general(&format!("{rows} values in a page, {remaining} to come")))?;
        let mut walk = Walk(bytes);
        let value_count = if self.column.max_def_level() == 0 {
            rows
        } else if levels == Encoding::RLE {
            walk.count_defined(rows).ok_or_else(|| wrong_length("a page's levels"))?
        } else {
            return Err(general(&format!("levels as {levels}")));
        };
        let is_intact = match (encoding, self.column.physical_type()) {
            (Encoding::PLAIN, Type::BYTE_ARRAY) => walk.count_texts() == Some(value_count),
            (Encoding::PLAIN, _) => true,
            (Encoding::DELTA_BINARY_PACKED, Type::INT64) => walk.count_differences() == Some(value_count),
            (Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY, _) if self.has_dictionary => {
                walk.has_whole_index_runs()
            }
            _ => return Err(general(&format!("unexpected encoding {encoding}"))),
        };
        if is_intact { Ok(()) } else { Err(wrong_length("a page")) }
    }
}

fn general(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}

fn wrong_length(what: &str) -> ParquetError {
    general(&format!("{what} of another length than it says"))
}

/// Walks through the unread bytes of a page. A step returns `None` if the page ends too early.
struct Walk<'a>(&'a [u8]);

/// A run of the RLE and bit-packing hybrid (Parquet's Encodings.md, "RLE").
enum Run<'a> {
    /// The same value so many times.
    Repeated { value: &'a [u8], count: u64 },
    /// Bit-packed values.
    Packed(&'a [u8]),
}

impl<'a> Walk<'a> {
    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (taken, unread) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = unread;
        Some(taken)
    }

    /// Reads a length, which has four bytes with the lowest first.
    fn length(&mut self) -> Option<u64> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?).into())
    }

    /// Reads an integer with seven bits in each byte, the lowest first. The last byte is below 128 (ULEB128).
    fn integer(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.take(1)?.first()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn run(&mut self, width: u64) -> Option<Run<'a>> {
        let header = self.integer()?;
        if header & 1 == 1 {
            Some(Run::Packed(self.take((header >> 1).checked_mul(width)?)?))
        } else {
            Some(Run::Repeated { value: self.take(width.div_ceil(8))?, count: header >> 1 })
        }
    }

    /// Reads the definition levels of so many rows, each 0 or 1. Returns how many of them are 1.
    fn count_defined(&mut self, rows: u64) -> Option<u64> {
        let length = self.length()?;
        let mut levels = Walk(self.take(length)?);
        let (mut remaining_rows, mut defined) = (rows, 0);
        while !levels.0.is_empty() {
            match levels.run(1)? {
                Run::Repeated { value, count } => {
                    let count = count.min(remaining_rows);
                    remaining_rows -= count;
                    defined += if value == [1] { count } else { 0 };
                }
                Run::Packed(bytes) => {
                    for &byte in bytes {
                        let bits = remaining_rows.min(8);
                        remaining_rows -= bits;
                        let levels_of_rows = u16::from(byte) & ((1 << bits) - 1);
                        defined += u64::from(levels_of_rows.count_ones());
                    }
                }
            }
        }
        (remaining_rows == 0).then_some(defined)
    }

    /// Reads indices into a dictionary (Encodings.md, "Dictionary Encoding"). Returns whether the last run
    /// ends with the page.
    fn has_whole_index_runs(&mut self) -> bool {
        let Some(&[width]) = self.take(1) else { return false };
        while !self.0.is_empty() {
            if self.run(width.into()).is_none() {
                return false;
            }
        }
        true
    }

    /// Reads texts, each of which comes after its length (Encodings.md, "Plain"). Returns how many there are.
    fn count_texts(&mut self) -> Option<u64> {
        let mut count = 0;
        while !self.0.is_empty() {
            let length = self.length()?;
            self.take(length)?;
            count += 1;
        }
        Some(count)
    }

    /// Reads integers as differences (Encodings.md, "Delta Encoding"). Returns how many there are.
    fn count_differences(&mut self) -> Option<u64> {
        let (block_size, miniblocks, count) = (self.integer()?, self.integer()?, self.integer()?);
        let _first_value = self.integer()?;
        let miniblock_size = block_size.checked_div(miniblocks)?;
        let mut remaining = count.saturating_sub(1);
        while remaining > 0 {
            let _smallest_difference = self.integer()?;
            for &width in self.take(miniblocks)? {
                // A miniblock behind the last value has a width, but no bytes.
                if remaining > 0 {
                    self.take(miniblock_size.checked_mul(width.into())? / 8)?;
                }
                remaining = remaining.saturating_sub(miniblock_size);
            }
        }
        Some(count)
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

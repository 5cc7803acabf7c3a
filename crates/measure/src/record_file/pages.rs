//! A guard between the file and the parquet library's decoders.
//!
//! The library gives errors for most damage. Its decoders panic on the rest (parquet 60.1): on an integer of
//! more than ten bytes, on a text's length cut off by the page's end, on differences that hold no value where
//! the levels promise one, and on places in a dictionary that never came. They also reserve memory for every
//! value that a dictionary claims. So each page is walked before they see it, and must hold what it says. Its
//! form is that which talkpath writes: a data page of version 1 in one of three encodings.

use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::schema::types::ColumnDescPtr;

/// Whether every column chunk lies within a file of `length` bytes.
pub(super) fn chunks_lie_within(metadata: &ParquetMetaData, length: u64) -> bool {
    let mut chunks = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    chunks.all(|chunk| {
        let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
        let end = start.checked_add(chunk.compressed_size());
        start >= 0 && chunk.compressed_size() >= 0 && end.is_some_and(|end| end.unsigned_abs() <= length)
    })
}

/// The pages of one column chunk of `rows` rows.
pub(super) struct CheckedPages {
    pages: Box<dyn PageReader>,
    column: ColumnDescPtr,
    /// Rows of the chunk.
    rows: u64,
    /// Rows that no page has had yet.
    left: u64,
    has_dictionary: bool,
}

impl CheckedPages {
    pub(super) fn new(pages: Box<dyn PageReader>, column: ColumnDescPtr, rows: usize) -> Self {
        Self { pages, column, rows: rows as u64, left: rows as u64, has_dictionary: false }
    }

    fn check(&mut self, page: &Page) -> Result<()> {
        let kind = self.column.physical_type();
        match page {
            Page::DictionaryPage { .. } if self.has_dictionary => {
                Err(ParquetError::General("a second dictionary".to_owned()))
            }
            Page::DictionaryPage { buf, num_values, .. } => {
                self.has_dictionary = true;
                let count = u64::from(*num_values);
                let is_sound = kind != Type::BYTE_ARRAY || Walk(buf).texts() == Some(count);
                if count <= self.rows && is_sound { Ok(()) } else { Err(damaged("a dictionary")) }
            }
            // So a chunk has no more pages than rows.
            Page::DataPage { num_values: 0, .. } => {
                Err(ParquetError::General("a page without values".to_owned()))
            }
            Page::DataPage { buf, num_values, encoding, def_level_encoding, .. } => {
                let rows = u64::from(*num_values);
                self.left = self.left.checked_sub(rows).ok_or_else(|| {
                    ParquetError::General(format!("{rows} values in a page, {} to come", self.left))
                })?;
                let mut walk = Walk(buf);
                let values = if self.column.max_def_level() == 0 {
                    rows
                } else if *def_level_encoding == Encoding::RLE {
                    walk.levels(rows).ok_or_else(|| damaged("a page's levels"))?
                } else {
                    return Err(ParquetError::General(format!("levels as {def_level_encoding}")));
                };
                let is_sound = match (*encoding, kind) {
                    (Encoding::PLAIN, Type::BYTE_ARRAY) => walk.texts() == Some(values),
                    (Encoding::PLAIN, _) => true,
                    (Encoding::DELTA_BINARY_PACKED, Type::INT64) => walk.differences() == Some(values),
                    (Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY, _) if self.has_dictionary => {
                        walk.indices().is_some()
                    }
                    _ => return Err(ParquetError::General(format!("unexpected encoding {encoding}"))),
                };
                if is_sound { Ok(()) } else { Err(damaged("a page")) }
            }
            Page::DataPageV2 { .. } => {
                Err(ParquetError::General("a data page of version 2; talkpath writes version 1".to_owned()))
            }
        }
    }
}

fn damaged(what: &str) -> ParquetError {
    ParquetError::General(format!("{what} of another length than it says"))
}

/// What is left of a page. Each step is `None` where the page ends before what it says it holds.
struct Walk<'a>(&'a [u8]);

/// A run of the RLE and bit-packing hybrid (Parquet's Encodings.md, "RLE").
enum Run<'a> {
    /// One value and how often.
    Same(&'a [u8], u64),
    Packed(&'a [u8]),
}

impl<'a> Walk<'a> {
    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (taken, left) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = left;
        Some(taken)
    }

    /// Four bytes, the lowest first.
    fn length(&mut self) -> Option<u64> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?).into())
    }

    /// Seven bits a byte, the lowest first, the last byte below 128 (ULEB128).
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
            Some(Run::Same(self.take(width.div_ceil(8))?, header >> 1))
        }
    }

    /// Definition levels of `rows` rows, 0 or 1 each: how many are 1.
    fn levels(&mut self, rows: u64) -> Option<u64> {
        let length = self.length()?;
        let mut runs = Walk(self.take(length)?);
        let (mut left, mut defined) = (rows, 0);
        while !runs.0.is_empty() {
            match runs.run(1)? {
                Run::Same(value, count) => {
                    let count = count.min(left);
                    left -= count;
                    defined += if value == [1] { count } else { 0 };
                }
                Run::Packed(bytes) => {
                    for &byte in bytes {
                        let bits = left.min(8);
                        left -= bits;
                        defined += u64::from((u16::from(byte) & ((1 << bits) - 1)).count_ones());
                    }
                }
            }
        }
        (left == 0).then_some(defined)
    }

    /// Places in a dictionary (Encodings.md, "Dictionary Encoding"): whether their runs end with the page.
    fn indices(&mut self) -> Option<()> {
        let width = u64::from(*self.take(1)?.first()?);
        while !self.0.is_empty() {
            self.run(width)?;
        }
        Some(())
    }

    /// Texts, each behind its length (Encodings.md, "Plain"): how many.
    fn texts(&mut self) -> Option<u64> {
        let mut count = 0;
        while !self.0.is_empty() {
            let length = self.length()?;
            self.take(length)?;
            count += 1;
        }
        Some(count)
    }

    /// Integers as differences (Encodings.md, "Delta Encoding"): how many.
    fn differences(&mut self) -> Option<u64> {
        let (block, parts, count) = (self.integer()?, self.integer()?, self.integer()?);
        let _first = self.integer()?;
        let part = block.checked_div(parts)?;
        let mut left = count.saturating_sub(1);
        while left > 0 {
            let _least = self.integer()?;
            for &width in self.take(parts)? {
                // Parts behind the last value have a width and no bytes.
                if left > 0 {
                    self.take(part.checked_mul(width.into())? / 8)?;
                }
                left = left.saturating_sub(part);
            }
        }
        Some(count)
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.as_ref().map_or(Ok(()), |page| self.check(page))?;
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

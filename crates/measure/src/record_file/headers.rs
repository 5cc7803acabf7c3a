//! A guard between the file and the parquet library's decoder of footers and page headers.
//!
//! Both are structs in Thrift's compact protocol (thrift-compact-protocol.md):
//!
//! ```text
//! struct   = { field } 0x00          field = delta and type in a byte [ id ] value
//! list     = count and type in a byte [ count ] { value }
//! integer  = ULEB128, zigzag         text  = length, bytes
//! ```
//!
//! The library (parquet 60.1) skips a field that it does not know value by value, and takes no byte from the
//! file for a boolean in a list. So ten bytes claim 2^31 values, a list of such lists that many times as
//! many, and the library counts them all. A field that it knows it reads by its number, whatever type the
//! file gives it. So each struct is walked here before the library sees it: a known field has the type of
//! parquet.thrift, and every value of a list takes a byte at least, which bounds the walk and the library by
//! the file's length.

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::ChunkReader;

/// Whether the library can decode the footer of `file`. What has none, the library refuses by itself.
pub(super) fn check_footer(file: &impl ChunkReader) -> Result<()> {
    let length = file.len();
    let Some(tail_at) = length.checked_sub(TAIL) else { return Ok(()) };
    let tail = file.get_bytes(tail_at, TAIL as usize)?;
    let Some(&[a, b, c, d]) = tail.first_chunk() else { return Ok(()) };
    let size = u32::from_le_bytes([a, b, c, d]);
    let Some(start) = tail_at.checked_sub(size.into()) else { return Ok(()) };
    let footer = file.get_bytes(start, size as usize)?;
    Walk { left: &footer, whole: footer.len() }
        .fields(FILE, Unknown::Walked, 0)
        .map_err(|what| ParquetError::General(format!("a footer that cannot be: {what}")))?;
    Ok(())
}

/// Whether the library can decode the header of each page in `file`, which has `metadata` and whose chunks
/// lie within it.
pub(super) fn check_pages(file: &impl ChunkReader, metadata: &ParquetMetaData) -> Result<()> {
    let chunks = || metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    let sum = chunks().map(|chunk| chunk.byte_range().1).fold(0, u64::saturating_add);
    if sum > file.len() {
        return Err(ParquetError::General(format!("columns of {sum} B in a file of {} B", file.len())));
    }
    chunks().try_for_each(|chunk| check_chunk(file, chunk))
}

fn check_chunk(file: &impl ChunkReader, chunk: &ColumnChunkMetaData) -> Result<()> {
    let (mut at, length) = chunk.byte_range();
    let end = at.saturating_add(length);
    let (mut window, mut window_at) = (Bytes::new(), at);
    while at < end {
        let ahead = |bytes: u64| bytes.min(end - at) as usize;
        let mut offset = (at - window_at) as usize;
        if window.len().saturating_sub(offset) < ahead(LONGEST_HEADER) {
            (window, window_at, offset) = (file.get_bytes(at, ahead(WINDOW))?, at, 0);
        }
        let header = window.get(offset..).unwrap_or_default();
        let header = header.get(..ahead(LONGEST_HEADER)).unwrap_or(header);
        let (length, page) = page_header(header).map_err(|what| {
            let column = chunk.column_descr().name();
            ParquetError::General(format!("column `{column}`: a page header that cannot be: {what}"))
        })?;
        at = at.saturating_add(length).saturating_add(page);
    }
    Ok(())
}

/// The lengths of the header that `bytes` begin with and of the page behind it.
fn page_header(bytes: &[u8]) -> core::result::Result<(u64, u64), String> {
    let mut walk = Walk { left: bytes, whole: bytes.len() };
    let numbers = walk.fields(PAGE, Unknown::Refused, 0)?;
    // Field 3 of PageHeader: compressed_page_size, an i32.
    let size = numbers[3].and_then(|size| u64::try_from(size).ok());
    let size = size.filter(|&size| size <= i32::MAX as u64).ok_or("a page without a length")?;
    Ok(((bytes.len() - walk.left.len()) as u64, size))
}

/// What a field of a struct holds.
enum Shape {
    Bool,
    /// `i8`: a byte as it is.
    Byte,
    /// `i16`, `i32` or `i64`: the same bytes for each.
    Integer,
    Double,
    Text,
    Struct(Fields),
    /// A list of at most this number of values of a shape.
    List(&'static Shape, usize),
}

/// The known fields of a struct, by their ids.
type Fields = &'static [(i16, Shape)];

/// What becomes of a field that no table names.
#[derive(Clone, Copy)]
enum Unknown {
    /// The library would skip it: so it is walked.
    Walked,
    Refused,
}

/// What is left of `whole` bytes.
struct Walk<'a> {
    left: &'a [u8],
    whole: usize,
}

/// What was found, in words.
type Found<T> = core::result::Result<T, String>;

impl Walk<'_> {
    /// A struct: the integers of its first fields, by their ids.
    fn fields(&mut self, known: Fields, unknown: Unknown, depth: usize) -> Found<[Option<i64>; 4]> {
        let (mut id, mut numbers) = (0_i16, [None; 4]);
        loop {
            let byte = self.byte()?;
            if byte & 0x0f == STOP {
                return Ok(numbers);
            }
            id = match byte >> 4 {
                0 => zigzag(self.varint()?) as i16,
                delta => id.checked_add(delta.into()).ok_or("a field without a number")?,
            };
            let kind = byte & 0x0f;
            match known.iter().find(|(number, _)| *number == id) {
                Some((_, shape)) => {
                    let number = self.value(shape, kind, unknown, depth)?;
                    let slot = usize::try_from(id).ok().and_then(|id| numbers.get_mut(id));
                    if let (Some(slot), Some(number)) = (slot, number) {
                        *slot = Some(number);
                    }
                }
                None if matches!(unknown, Unknown::Refused) => return Err(format!("an unknown field {id}")),
                None => self.anything(kind, depth)?,
            }
        }
    }

    /// A value of `shape`, which the file calls `kind`: its number if it is an integer.
    fn value(&mut self, shape: &Shape, kind: u8, unknown: Unknown, depth: usize) -> Found<Option<i64>> {
        match (shape, kind) {
            (Shape::Bool, TRUE | FALSE) => {}
            (Shape::Integer, I16..=I64) => return Ok(Some(zigzag(self.varint()?))),
            (Shape::Byte, BYTE) | (Shape::Double, DOUBLE) | (Shape::Text, BINARY) => {
                self.anything(kind, depth)?;
            }
            (Shape::Struct(fields), STRUCT) => {
                self.fields(fields, unknown, deeper(depth)?)?;
            }
            (Shape::List(of, most), LIST) => {
                let (count, kind) = self.list()?;
                if count > *most {
                    return Err(format!("a list of {count} values, where {most} can be"));
                }
                let depth = deeper(depth)?;
                for _ in 0..count {
                    self.value(of, kind, unknown, depth)?;
                }
            }
            _ => return Err(format!("a value of type {kind} where none is")),
        }
        Ok(None)
    }

    /// A value of type `kind`, whatever it means.
    fn anything(&mut self, kind: u8, depth: usize) -> Found<()> {
        match kind {
            TRUE | FALSE => {}
            BYTE => self.take(1)?,
            I16..=I64 => drop(self.varint()?),
            DOUBLE => self.take(8)?,
            UUID => self.take(16)?,
            BINARY => {
                let length = self.varint()?;
                self.take(length)?;
            }
            STRUCT => drop(self.fields(&[], Unknown::Walked, deeper(depth)?)?),
            LIST | SET => {
                let (count, kind) = self.list()?;
                let depth = deeper(depth)?;
                for _ in 0..count {
                    self.element(kind, depth)?;
                }
            }
            MAP => {
                let count = self.varint()?;
                let kinds = if count > 0 { self.byte()? } else { 0 };
                let count = self.bounded(count)?;
                let depth = deeper(depth)?;
                for _ in 0..count {
                    self.element(kinds >> 4, depth)?;
                    self.element(kinds & 0x0f, depth)?;
                }
            }
            _ => return Err(format!("an unknown type {kind}")),
        }
        Ok(())
    }

    /// A value within a list or map.
    fn element(&mut self, kind: u8, depth: usize) -> Found<()> {
        match kind {
            // The library takes no byte for it, and others take one: the two would read on at different
            // places.
            TRUE | FALSE => Err("a list of booleans".to_owned()),
            kind => self.anything(kind, depth),
        }
    }

    /// What a list begins with: how many values of which type.
    fn list(&mut self) -> Found<(usize, u8)> {
        let byte = self.byte()?;
        let count = match byte >> 4 {
            15 => self.varint()?,
            count => count.into(),
        };
        Ok((self.bounded(count)?, byte & 0x0f))
    }

    /// `count` values, each of a byte at least.
    fn bounded(&self, count: u64) -> Found<usize> {
        let left = self.left.len();
        let count = usize::try_from(count).ok().filter(|&count| count <= left);
        count.ok_or_else(|| format!("a list of more values than the {left} B behind it"))
    }

    /// ULEB128 of at most 64 bits.
    fn varint(&mut self) -> Found<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("an integer of more than 64 bits".to_owned())
    }

    fn byte(&mut self) -> Found<u8> {
        let (&byte, left) = self.left.split_first().ok_or_else(|| self.ends())?;
        self.left = left;
        Ok(byte)
    }

    fn take(&mut self, count: u64) -> Found<()> {
        let left = usize::try_from(count).ok().and_then(|count| self.left.get(count..));
        self.left = left.ok_or_else(|| self.ends())?;
        Ok(())
    }

    fn ends(&self) -> String {
        format!("it does not end within {} B", self.whole)
    }
}

fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn deeper(depth: usize) -> Found<usize> {
    if depth < DEEPEST { Ok(depth + 1) } else { Err(format!("more than {DEEPEST} structs in each other")) }
}

/// The types of the compact protocol. In a struct a boolean's value is its type.
const STOP: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// The footer's length and `PAR1`, behind the footer.
const TAIL: u64 = 8;

/// Chosen: what talkpath writes is below 64 B, and other writers add the smallest and the largest value.
const LONGEST_HEADER: u64 = 4096;

/// Bytes that are read at a time. Chosen: several headers, and less than most columns.
const WINDOW: u64 = 4 * LONGEST_HEADER;

/// Chosen: parquet.thrift needs 8. The library's own bound is 64.
const DEEPEST: usize = 16;

/// Chosen: the tables have 15 and 7. The library builds the tree of columns with a call of a function for
/// each level, and has no bound.
const MOST_COLUMNS: usize = 64;

/// No bound but the file's length.
const ANY: usize = usize::MAX;

// The structs of parquet.thrift, as far as the library knows their fields.

const PAGE: Fields = &[
    (1, Shape::Integer),
    (2, Shape::Integer),
    (3, Shape::Integer),
    (4, Shape::Integer),
    (5, Shape::Struct(DATA_PAGE)),
    (7, Shape::Struct(DICTIONARY_PAGE)),
];

const DATA_PAGE: Fields = &[
    (1, Shape::Integer),
    (2, Shape::Integer),
    (3, Shape::Integer),
    (4, Shape::Integer),
    (5, Shape::Struct(STATISTICS)),
];

const DICTIONARY_PAGE: Fields = &[(1, Shape::Integer), (2, Shape::Integer), (3, Shape::Bool)];

const STATISTICS: Fields = &[
    (1, Shape::Text),
    (2, Shape::Text),
    (3, Shape::Integer),
    (4, Shape::Integer),
    (5, Shape::Text),
    (6, Shape::Text),
    (7, Shape::Bool),
    (8, Shape::Bool),
    (9, Shape::Integer),
];

const FILE: Fields = &[
    (1, Shape::Integer),
    (2, Shape::List(&Shape::Struct(SCHEMA), MOST_COLUMNS)),
    (3, Shape::Integer),
    (4, Shape::List(&Shape::Struct(ROW_GROUP), ANY)),
    (5, Shape::List(&Shape::Struct(KEY_VALUE), ANY)),
    (6, Shape::Text),
    (7, Shape::List(&Shape::Struct(COLUMN_ORDER), MOST_COLUMNS)),
];

const SCHEMA: Fields = &[
    (1, Shape::Integer),
    (2, Shape::Integer),
    (3, Shape::Integer),
    (4, Shape::Text),
    (5, Shape::Integer),
    (6, Shape::Integer),
    (7, Shape::Integer),
    (8, Shape::Integer),
    (9, Shape::Integer),
    (10, Shape::Struct(LOGICAL_TYPE)),
];

/// A union: its variants without fields, and those with some.
const LOGICAL_TYPE: Fields = &[
    (1, Shape::Struct(&[])),
    (2, Shape::Struct(&[])),
    (3, Shape::Struct(&[])),
    (4, Shape::Struct(&[])),
    (5, Shape::Struct(&[(1, Shape::Integer), (2, Shape::Integer)])),
    (6, Shape::Struct(&[])),
    (7, Shape::Struct(TIME)),
    (8, Shape::Struct(TIME)),
    (10, Shape::Struct(&[(1, Shape::Byte), (2, Shape::Bool)])),
    (11, Shape::Struct(&[])),
    (12, Shape::Struct(&[])),
    (13, Shape::Struct(&[])),
    (14, Shape::Struct(&[])),
    (15, Shape::Struct(&[])),
    (16, Shape::Struct(&[(1, Shape::Byte)])),
    (17, Shape::Struct(&[(1, Shape::Text)])),
    (18, Shape::Struct(&[(1, Shape::Text), (2, Shape::Integer)])),
    (19, Shape::Struct(&[])),
];

const TIME: Fields = &[(1, Shape::Bool), (2, Shape::Struct(TIME_UNIT))];

const TIME_UNIT: Fields = &[(1, Shape::Struct(&[])), (2, Shape::Struct(&[])), (3, Shape::Struct(&[]))];

const COLUMN_ORDER: Fields = &[(1, Shape::Struct(&[])), (2, Shape::Struct(&[])), (3, Shape::Struct(&[]))];

const KEY_VALUE: Fields = &[(1, Shape::Text), (2, Shape::Text)];

const ROW_GROUP: Fields = &[
    (1, Shape::List(&Shape::Struct(COLUMN_CHUNK), MOST_COLUMNS)),
    (2, Shape::Integer),
    (3, Shape::Integer),
    (4, Shape::List(&Shape::Struct(SORTING_COLUMN), MOST_COLUMNS)),
    (5, Shape::Integer),
    (6, Shape::Integer),
    (7, Shape::Integer),
];

const SORTING_COLUMN: Fields = &[(1, Shape::Integer), (2, Shape::Bool), (3, Shape::Bool)];

const COLUMN_CHUNK: Fields = &[
    (1, Shape::Text),
    (2, Shape::Integer),
    (3, Shape::Struct(COLUMN)),
    (4, Shape::Integer),
    (5, Shape::Integer),
    (6, Shape::Integer),
    (7, Shape::Integer),
];

const COLUMN: Fields = &[
    (1, Shape::Integer),
    (2, Shape::List(&Shape::Integer, ANY)),
    (3, Shape::List(&Shape::Text, ANY)),
    (4, Shape::Integer),
    (5, Shape::Integer),
    (6, Shape::Integer),
    (7, Shape::Integer),
    (8, Shape::List(&Shape::Struct(KEY_VALUE), ANY)),
    (9, Shape::Integer),
    (10, Shape::Integer),
    (11, Shape::Integer),
    (12, Shape::Struct(STATISTICS)),
    (13, Shape::List(&Shape::Struct(ENCODING_STATS), ANY)),
    (14, Shape::Integer),
    (15, Shape::Integer),
    (16, Shape::Struct(SIZE_STATISTICS)),
    (17, Shape::Struct(&[(1, Shape::Struct(BOUNDING_BOX)), (2, Shape::List(&Shape::Integer, ANY))])),
];

const ENCODING_STATS: Fields = &[(1, Shape::Integer), (2, Shape::Integer), (3, Shape::Integer)];

const SIZE_STATISTICS: Fields =
    &[(1, Shape::Integer), (2, Shape::List(&Shape::Integer, ANY)), (3, Shape::List(&Shape::Integer, ANY))];

const BOUNDING_BOX: Fields = &[
    (1, Shape::Double),
    (2, Shape::Double),
    (3, Shape::Double),
    (4, Shape::Double),
    (5, Shape::Double),
    (6, Shape::Double),
    (7, Shape::Double),
    (8, Shape::Double),
];

#[cfg(test)]
#[path = "headers_tests.rs"]
mod tests;

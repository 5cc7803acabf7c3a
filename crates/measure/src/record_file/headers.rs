//! Checks the footer and the page headers of a file before the parquet library decodes them.
//!
//! Footers and page headers are structs in Thrift's compact protocol (thrift-compact-protocol.md):
//!
//! ```text
//! struct   = { field } 0x00          field = delta and type in a byte [ id ] value
//! list     = count and type in a byte [ count ] { value }
//! integer  = ULEB128, zigzag         text  = length, bytes
//! ```
//!
//! A damaged file could keep the library (parquet 60.1) busy for a very long time:
//!
//! - It skips an unknown field value by value, and a boolean in a list takes no byte of the file. So ten
//!   bytes can claim 2^31 values, and a list of such lists can claim many times as many.
//! - It reads a known field by its number, and ignores the type that the file gives.
//!
//! Therefore each struct is walked here first. A known field must have the type that parquet.thrift gives it.
//! Every value of a list must take at least one byte, so the length of the file bounds the work of this walk
//! and of the library.
//!
//! Begin to read with [`check_footer`] and [`check_pages`]. The known fields are in the tables at the end of
//! the file.

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::ChunkReader;

/// Checks that the library can decode the footer of `file`. The library itself refuses a file without a
/// footer.
pub(super) fn check_footer(file: &impl ChunkReader) -> Result<()> {
    let Some(tail_at) = file.len().checked_sub(TAIL) else { return Ok(()) };
    let tail = file.get_bytes(tail_at, TAIL as usize)?;
    let Some(&footer_size) = tail.first_chunk() else { return Ok(()) };
    let footer_size = u32::from_le_bytes(footer_size);
    let Some(footer_at) = tail_at.checked_sub(footer_size.into()) else { return Ok(()) };
    let footer = file.get_bytes(footer_at, footer_size as usize)?;
    let walked = Walk::new(&footer).walk_struct(FILE, UnknownField::Walked, 0);
    walked.map_err(|what| ParquetError::General(format!("a footer that cannot be: {what}")))?;
    Ok(())
}

/// Checks that the library can decode the header of each page in `file`. `metadata` is the metadata of the
/// file, and all its column chunks lie within the file.
pub(super) fn check_pages(file: &impl ChunkReader, metadata: &ParquetMetaData) -> Result<()> {
    let chunks = || metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    let total_size = chunks().map(|chunk| chunk.byte_range().1).fold(0, u64::saturating_add);
    if total_size > file.len() {
        let what = format!("columns of {total_size} B in a file of {} B", file.len());
        return Err(ParquetError::General(what));
    }
    chunks().try_for_each(|chunk| check_chunk(file, chunk))
}

/// Checks the header of each page of a column chunk.
fn check_chunk(file: &impl ChunkReader, chunk: &ColumnChunkMetaData) -> Result<()> {
    let (mut page_at, length) = chunk.byte_range();
    let end = page_at.saturating_add(length);
    // The file is read in windows, so that one read covers several headers.
    let (mut window, mut window_at) = (Bytes::new(), page_at);
    while page_at < end {
        let at_most = |bytes: u64| bytes.min(end - page_at) as usize;
        let mut offset = (page_at - window_at) as usize;
        if window.len().saturating_sub(offset) < at_most(MAX_HEADER) {
            (window, window_at, offset) = (file.get_bytes(page_at, at_most(WINDOW))?, page_at, 0);
        }
        let header = window.get(offset..).unwrap_or_default();
        let header = header.get(..at_most(MAX_HEADER)).unwrap_or(header);
        let page = page_size(header).map_err(|what| {
            let column = chunk.column_descr().name();
            ParquetError::General(format!("column `{column}`: a page header that cannot be: {what}"))
        })?;
        page_at = page_at.saturating_add(page.header).saturating_add(page.contents);
    }
    Ok(())
}

/// The sizes of a page, B.
#[derive(Debug, PartialEq, Eq)]
struct PageSize {
    header: u64,
    contents: u64,
}

/// Reads the page header at the beginning of `bytes`.
fn page_size(bytes: &[u8]) -> WalkResult<PageSize> {
    let mut walk = Walk::new(bytes);
    let numbers = walk.walk_struct(PAGE, UnknownField::Refused, 0)?;
    // Field 3 of PageHeader is compressed_page_size, an i32.
    let contents = numbers[3].and_then(|size| u64::try_from(size).ok());
    let contents = contents.filter(|&size| size <= i32::MAX as u64).ok_or("a page without a length")?;
    Ok(PageSize { header: (bytes.len() - walk.unread.len()) as u64, contents })
}

/// The type of a field.
enum FieldType {
    Bool,
    /// `i8`, which is one byte.
    Byte,
    /// `i16`, `i32` or `i64`, which have the same form.
    Integer,
    Double,
    Text,
    Struct(Fields),
    /// A list of values of a type, and the largest number of values.
    List(&'static FieldType, usize),
}

/// The known fields of a struct, each with its id and its type.
type Fields = &'static [(i16, FieldType)];

/// What the walk does with a field that is not known.
#[derive(Clone, Copy)]
enum UnknownField {
    /// The field is walked, because the library skips it.
    Walked,
    Refused,
}

/// Walks through the bytes of a struct.
struct Walk<'a> {
    unread: &'a [u8],
    /// The number of all bytes, for messages.
    total: usize,
}

/// An error is the reason in words.
type WalkResult<T> = core::result::Result<T, String>;

impl<'a> Walk<'a> {
    const fn new(bytes: &'a [u8]) -> Self {
        Self { unread: bytes, total: bytes.len() }
    }

    /// Walks through a struct. Returns the integers among the fields with the ids 0 to 3.
    fn walk_struct(
        &mut self,
        known: Fields,
        unknown: UnknownField,
        depth: usize,
    ) -> WalkResult<[Option<i64>; 4]> {
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
                Some((_, field_type)) => {
                    let number = self.walk_known(field_type, kind, unknown, depth)?;
                    let slot = usize::try_from(id).ok().and_then(|id| numbers.get_mut(id));
                    if let (Some(slot), Some(number)) = (slot, number) {
                        *slot = Some(number);
                    }
                }
                None if matches!(unknown, UnknownField::Refused) => {
                    return Err(format!("an unknown field {id}"));
                }
                None => self.walk_any(kind, depth)?,
            }
        }
    }

    /// Walks through a value that should be of `field_type`. `kind` is its type in the file. Returns the
    /// value if it is an integer.
    fn walk_known(
        &mut self,
        field_type: &FieldType,
        kind: u8,
        unknown: UnknownField,
        depth: usize,
    ) -> WalkResult<Option<i64>> {
        match (field_type, kind) {
            (FieldType::Bool, TRUE | FALSE) => {}
            (FieldType::Integer, I16..=I64) => return Ok(Some(zigzag(self.varint()?))),
            (FieldType::Byte, BYTE) | (FieldType::Double, DOUBLE) | (FieldType::Text, BINARY) => {
                self.walk_any(kind, depth)?;
            }
            (FieldType::Struct(fields), STRUCT) => {
                self.walk_struct(fields, unknown, deeper(depth)?)?;
            }
            (FieldType::List(element_type, max_count), LIST) => {
                let ListHeader { count, element_kind } = self.list_header()?;
                if count > *max_count {
                    return Err(format!("a list of {count} values, where {max_count} can be"));
                }
                let depth = deeper(depth)?;
                for _ in 0..count {
                    self.walk_known(element_type, element_kind, unknown, depth)?;
                }
            }
            _ => return Err(format!("a value of type {kind} where none is")),
        }
        Ok(None)
    }

    /// Walks through a value of type `kind` without regard to its meaning.
    fn walk_any(&mut self, kind: u8, depth: usize) -> WalkResult<()> {
        match kind {
            TRUE | FALSE => {}
            BYTE => self.skip(1)?,
            I16..=I64 => drop(self.varint()?),
            DOUBLE => self.skip(8)?,
            UUID => self.skip(16)?,
            BINARY => {
                let length = self.varint()?;
                self.skip(length)?;
            }
            STRUCT => drop(self.walk_struct(&[], UnknownField::Walked, deeper(depth)?)?),
            LIST | SET => {
                let ListHeader { count, element_kind } = self.list_header()?;
                let depth = deeper(depth)?;
                for _ in 0..count {
                    self.walk_element(element_kind, depth)?;
                }
            }
            MAP => {
                let count = self.varint()?;
                let kinds = if count > 0 { self.byte()? } else { 0 };
                let count = self.check_count(count)?;
                let (key_kind, value_kind) = (kinds >> 4, kinds & 0x0f);
                let depth = deeper(depth)?;
                for _ in 0..count {
                    self.walk_element(key_kind, depth)?;
                    self.walk_element(value_kind, depth)?;
                }
            }
            _ => return Err(format!("an unknown type {kind}")),
        }
        Ok(())
    }

    /// Walks through a value of a list or a map.
    fn walk_element(&mut self, kind: u8, depth: usize) -> WalkResult<()> {
        match kind {
            // The library takes no byte for a boolean in a list, but other readers take one. So the two would
            // read the following values at different places.
            TRUE | FALSE => Err("a list of booleans".to_owned()),
            kind => self.walk_any(kind, depth),
        }
    }

    /// Reads the beginning of a list.
    fn list_header(&mut self) -> WalkResult<ListHeader> {
        let byte = self.byte()?;
        let count = match byte >> 4 {
            15 => self.varint()?,
            count => count.into(),
        };
        Ok(ListHeader { count: self.check_count(count)?, element_kind: byte & 0x0f })
    }

    /// Checks that so many values can follow. Each of them takes at least one byte.
    fn check_count(&self, count: u64) -> WalkResult<usize> {
        let unread = self.unread.len();
        let count = usize::try_from(count).ok().filter(|&count| count <= unread);
        count.ok_or_else(|| format!("a list of more values than the {unread} B behind it"))
    }

    /// Reads an integer in the form ULEB128, of at most 64 bits.
    fn varint(&mut self) -> WalkResult<u64> {
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

    fn byte(&mut self) -> WalkResult<u8> {
        let (&byte, unread) = self.unread.split_first().ok_or_else(|| self.out_of_bytes())?;
        self.unread = unread;
        Ok(byte)
    }

    fn skip(&mut self, count: u64) -> WalkResult<()> {
        let unread = usize::try_from(count).ok().and_then(|count| self.unread.get(count..));
        self.unread = unread.ok_or_else(|| self.out_of_bytes())?;
        Ok(())
    }

    fn out_of_bytes(&self) -> String {
        format!("it does not end within {} B", self.total)
    }
}

/// The beginning of a list.
struct ListHeader {
    count: usize,
    /// The type of each value.
    element_kind: u8,
}

fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Returns the depth of a value within a struct or list at `depth`.
fn deeper(depth: usize) -> WalkResult<usize> {
    if depth < MAX_DEPTH {
        Ok(depth + 1)
    } else {
        Err(format!("more than {MAX_DEPTH} structs in each other"))
    }
}

/// The types of the compact protocol. In a struct the type of a boolean field is also its value.
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

/// The size of what follows the footer: the footer's length and `PAR1`.
const TAIL: u64 = 8;

/// The largest size of a page header, B. We chose 4096. The headers that talkpath writes take less than 64 B.
/// Other writers add the smallest and the largest value.
const MAX_HEADER: u64 = 4096;

/// How many bytes are read at a time. We chose room for several headers, which is less than most columns
/// take.
const WINDOW: u64 = 4 * MAX_HEADER;

/// How deep structs and lists may be nested. We chose 16. parquet.thrift needs 8, and the bound of the
/// library is 64.
const MAX_DEPTH: usize = 16;

/// The largest number of columns. We chose 64, because the tables have 15 and 7 entries. The library has no
/// bound, and builds the tree of columns with a function call for each level.
const MAX_COLUMNS: usize = 64;

/// A list without a bound other than the length of the file.
const ANY: usize = usize::MAX;

// The structs of parquet.thrift with the fields that the library knows.

const PAGE: Fields = &[
    (1, FieldType::Integer),
    (2, FieldType::Integer),
    (3, FieldType::Integer),
    (4, FieldType::Integer),
    (5, FieldType::Struct(DATA_PAGE)),
    (7, FieldType::Struct(DICTIONARY_PAGE)),
];

const DATA_PAGE: Fields = &[
    (1, FieldType::Integer),
    (2, FieldType::Integer),
    (3, FieldType::Integer),
    (4, FieldType::Integer),
    (5, FieldType::Struct(STATISTICS)),
];

const DICTIONARY_PAGE: Fields = &[(1, FieldType::Integer), (2, FieldType::Integer), (3, FieldType::Bool)];

const STATISTICS: Fields = &[
    (1, FieldType::Text),
    (2, FieldType::Text),
    (3, FieldType::Integer),
    (4, FieldType::Integer),
    (5, FieldType::Text),
    (6, FieldType::Text),
    (7, FieldType::Bool),
    (8, FieldType::Bool),
    (9, FieldType::Integer),
];

const FILE: Fields = &[
    (1, FieldType::Integer),
    (2, FieldType::List(&FieldType::Struct(SCHEMA), MAX_COLUMNS)),
    (3, FieldType::Integer),
    (4, FieldType::List(&FieldType::Struct(ROW_GROUP), ANY)),
    (5, FieldType::List(&FieldType::Struct(KEY_VALUE), ANY)),
    (6, FieldType::Text),
    (7, FieldType::List(&FieldType::Struct(COLUMN_ORDER), MAX_COLUMNS)),
];

const SCHEMA: Fields = &[
    (1, FieldType::Integer),
    (2, FieldType::Integer),
    (3, FieldType::Integer),
    (4, FieldType::Text),
    (5, FieldType::Integer),
    (6, FieldType::Integer),
    (7, FieldType::Integer),
    (8, FieldType::Integer),
    (9, FieldType::Integer),
    (10, FieldType::Struct(LOGICAL_TYPE)),
];

/// A union. Most variants have no fields.
const LOGICAL_TYPE: Fields = &[
    (1, FieldType::Struct(&[])),
    (2, FieldType::Struct(&[])),
    (3, FieldType::Struct(&[])),
    (4, FieldType::Struct(&[])),
    (5, FieldType::Struct(&[(1, FieldType::Integer), (2, FieldType::Integer)])),
    (6, FieldType::Struct(&[])),
    (7, FieldType::Struct(TIME)),
    (8, FieldType::Struct(TIME)),
    (10, FieldType::Struct(&[(1, FieldType::Byte), (2, FieldType::Bool)])),
    (11, FieldType::Struct(&[])),
    (12, FieldType::Struct(&[])),
    (13, FieldType::Struct(&[])),
    (14, FieldType::Struct(&[])),
    (15, FieldType::Struct(&[])),
    (16, FieldType::Struct(&[(1, FieldType::Byte)])),
    (17, FieldType::Struct(&[(1, FieldType::Text)])),
    (18, FieldType::Struct(&[(1, FieldType::Text), (2, FieldType::Integer)])),
    (19, FieldType::Struct(&[])),
];

const TIME: Fields = &[(1, FieldType::Bool), (2, FieldType::Struct(TIME_UNIT))];

const TIME_UNIT: Fields =
    &[(1, FieldType::Struct(&[])), (2, FieldType::Struct(&[])), (3, FieldType::Struct(&[]))];

const COLUMN_ORDER: Fields =
    &[(1, FieldType::Struct(&[])), (2, FieldType::Struct(&[])), (3, FieldType::Struct(&[]))];

const KEY_VALUE: Fields = &[(1, FieldType::Text), (2, FieldType::Text)];

const ROW_GROUP: Fields = &[
    (1, FieldType::List(&FieldType::Struct(COLUMN_CHUNK), MAX_COLUMNS)),
    (2, FieldType::Integer),
    (3, FieldType::Integer),
    (4, FieldType::List(&FieldType::Struct(SORTING_COLUMN), MAX_COLUMNS)),
    (5, FieldType::Integer),
    (6, FieldType::Integer),
    (7, FieldType::Integer),
];

const SORTING_COLUMN: Fields = &[(1, FieldType::Integer), (2, FieldType::Bool), (3, FieldType::Bool)];

const COLUMN_CHUNK: Fields = &[
    (1, FieldType::Text),
    (2, FieldType::Integer),
    (3, FieldType::Struct(COLUMN)),
    (4, FieldType::Integer),
    (5, FieldType::Integer),
    (6, FieldType::Integer),
    (7, FieldType::Integer),
];

const COLUMN: Fields = &[
    (1, FieldType::Integer),
    (2, FieldType::List(&FieldType::Integer, ANY)),
    (3, FieldType::List(&FieldType::Text, ANY)),
    (4, FieldType::Integer),
    (5, FieldType::Integer),
    (6, FieldType::Integer),
    (7, FieldType::Integer),
    (8, FieldType::List(&FieldType::Struct(KEY_VALUE), ANY)),
    (9, FieldType::Integer),
    (10, FieldType::Integer),
    (11, FieldType::Integer),
    (12, FieldType::Struct(STATISTICS)),
    (13, FieldType::List(&FieldType::Struct(ENCODING_STATS), ANY)),
    (14, FieldType::Integer),
    (15, FieldType::Integer),
    (16, FieldType::Struct(SIZE_STATISTICS)),
    (
        17,
        FieldType::Struct(&[
            (1, FieldType::Struct(BOUNDING_BOX)),
            (2, FieldType::List(&FieldType::Integer, ANY)),
        ]),
    ),
];

const ENCODING_STATS: Fields = &[(1, FieldType::Integer), (2, FieldType::Integer), (3, FieldType::Integer)];

const SIZE_STATISTICS: Fields = &[
    (1, FieldType::Integer),
    (2, FieldType::List(&FieldType::Integer, ANY)),
    (3, FieldType::List(&FieldType::Integer, ANY)),
];

const BOUNDING_BOX: Fields = &[
    (1, FieldType::Double),
    (2, FieldType::Double),
    (3, FieldType::Double),
    (4, FieldType::Double),
    (5, FieldType::Double),
    (6, FieldType::Double),
    (7, FieldType::Double),
    (8, FieldType::Double),
];

#[cfg(test)]
#[path = "headers_tests.rs"]
mod tests;

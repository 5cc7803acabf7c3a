//! Encodes the values of one column as the pages of a column chunk (Parquet's Encodings.md).
//!
//! ```text
//! integers, one by one ────► DeltaIntegers ┐
//! runs of the same value ──► Dictionary    ├─► EncodedValues ┐
//! doubles, one by one ─────► PlainDoubles  ┘                 ├─► a column chunk (`chunk.rs`)
//! whether rows have a value ► DefinitionLevels ──────────────┘
//! ```
//!
//! The rows come in an order in which neighbours are close or equal. So integers are stored as differences
//! between neighbours, and values that seldom change are stored as runs. A run takes the same number of
//! bytes, however long it is. There is no compression, there are no repetition levels, and the only types are
//! INT64, DOUBLE and texts.

use std::collections::BTreeMap;

use parquet::basic::Encoding;
use parquet::file::statistics::Statistics;

/// How many values a block of differences has. We chose 256 values in four miniblocks. A miniblock then has
/// 64 values, which fill whole 64-bit words at any bit width.
const BLOCK: usize = 256;
/// How many miniblocks a block has. Each has a bit width of its own.
const MINIBLOCKS: usize = 4;
const MINIBLOCK: usize = BLOCK / MINIBLOCKS;

/// How many values are bit-packed together (Encodings.md, "RLE").
const GROUP: usize = 8;

/// The encoded values of a column chunk, without the rows that have no value.
pub(super) struct EncodedValues {
    /// The dictionary page, if the encoding needs one.
    pub(super) dictionary: Option<DictionaryPage>,
    pub(super) encoding: Encoding,
    pub(super) bytes: Vec<u8>,
    /// The smallest and the largest value, if they are stored for this type.
    pub(super) bounds: Option<Bounds>,
}

/// The different values of a column, in the plain encoding.
pub(super) struct DictionaryPage {
    pub(super) bytes: Vec<u8>,
    pub(super) value_count: u32,
}

/// The smallest and the largest value. `None` if there is no value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bounds {
    Integers(Option<MinMax<i64>>),
    Doubles(Option<MinMax<f64>>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MinMax<T> {
    pub(super) min: T,
    pub(super) max: T,
}

impl Bounds {
    /// Returns the statistics of a column chunk with these bounds and so many rows without a value.
    pub(super) fn statistics(self, nulls: u64) -> Statistics {
        match self {
            Self::Integers(bounds) => {
                let (min, max) = (bounds.map(|bounds| bounds.min), bounds.map(|bounds| bounds.max));
                Statistics::int64(min, max, None, Some(nulls), false)
            }
            Self::Doubles(bounds) => {
                let (min, max) = (bounds.map(|bounds| bounds.min), bounds.map(|bounds| bounds.max));
                Statistics::double(min, max, None, Some(nulls), false)
            }
        }
    }
}

/// A column of integers, stored as differences between neighbours (Encodings.md, "Delta Encoding").
pub(super) struct DeltaIntegers {
    /// The first value, which is stored before all blocks.
    first: Option<i64>,
    /// The last value before the current block.
    previous: i64,
    /// The values of the current block.
    block: [i64; BLOCK],
    block_len: usize,
    /// How many values are in the packed blocks.
    packed_count: u64,
    packed_blocks: Vec<u8>,
    min: i64,
    max: i64,
}

impl DeltaIntegers {
    /// Begins a column.
    pub(super) const fn new() -> Self {
        Self {
            first: None,
            previous: 0,
            block: [0; BLOCK],
            block_len: 0,
            packed_count: 0,
            packed_blocks: Vec::new(),
            min: 0,
            max: 0,
        }
    }

    /// Adds a value.
    #[inline]
    pub(super) fn push(&mut self, value: i64) {
        if self.first.is_none() {
            self.first = Some(value);
            (self.previous, self.min, self.max) = (value, value, value);
            return;
        }
        self.block[self.block_len] = value;
        self.block_len += 1;
        if self.block_len == BLOCK {
            self.pack_block();
        }
    }

    /// Ends the column.
    pub(super) fn finish(mut self) -> EncodedValues {
        if self.block_len > 0 {
            self.pack_block();
        }
        let count = self.packed_count + u64::from(self.first.is_some());
        let header = [BLOCK as u64, MINIBLOCKS as u64, count, zigzag(self.first.unwrap_or(0))];
        let mut bytes = Vec::with_capacity(self.packed_blocks.len() + 32);
        for integer in header {
            put_uleb128(&mut bytes, integer);
        }
        bytes.extend_from_slice(&self.packed_blocks);
        let bounds = self.first.map(|_| MinMax { min: self.min, max: self.max });
        EncodedValues {
            dictionary: None,
            encoding: Encoding::DELTA_BINARY_PACKED,
            bytes,
            bounds: Some(Bounds::Integers(bounds)),
        }
    }

    /// Packs the current block, which is full or the last one.
    ///
    /// A packed block has the smallest difference, the bit width of each miniblock, and then the differences,
    /// from which the smallest one is subtracted.
    fn pack_block(&mut self) {
        let (mut previous, mut min, mut max) = (self.previous, self.min, self.max);
        let mut differences = [0; BLOCK];
        let mut smallest = i64::MAX;
        for (difference, &value) in differences.iter_mut().zip(&self.block[..self.block_len]) {
            *difference = value.wrapping_sub(previous);
            smallest = smallest.min(*difference);
            (min, max) = (min.min(value), max.max(value));
            previous = value;
        }
        (self.previous, self.min, self.max) = (previous, min, max);

        // The places behind the last value stay 0.
        let mut above_smallest = [0; BLOCK];
        for (above, difference) in above_smallest.iter_mut().zip(&differences[..self.block_len]) {
            *above = difference.wrapping_sub(smallest).cast_unsigned();
        }
        put_uleb128(&mut self.packed_blocks, zigzag(smallest));
        let widths_at = self.packed_blocks.len();
        self.packed_blocks.resize(widths_at + MINIBLOCKS, 0);
        let (miniblocks, _) = above_smallest.as_chunks::<MINIBLOCK>();
        let used_miniblocks = self.block_len.div_ceil(MINIBLOCK);
        for (index, miniblock) in miniblocks.iter().enumerate().take(used_miniblocks) {
            let used_bits = miniblock.iter().fold(0, |bits, value| bits | value);
            let width = u64::BITS - used_bits.leading_zeros();
            self.packed_blocks[widths_at + index] = width as u8;
            if width > 0 {
                pack_bits(miniblock, width, &mut self.packed_blocks);
            }
        }
        self.packed_count += self.block_len as u64;
        self.block_len = 0;
    }
}

/// Appends the lowest `width` bits of each value to `out`, without gaps and the lowest bits first.
fn pack_bits(values: &[u64; MINIBLOCK], width: u32, out: &mut Vec<u8>) {
    let (mut word, mut used_bits) = (0_u64, 0);
    out.reserve(width as usize * MINIBLOCK / 8);
    for &value in values {
        word |= value << used_bits;
        used_bits += width;
        if used_bits >= u64::BITS {
            out.extend_from_slice(&word.to_le_bytes());
            used_bits -= u64::BITS;
            // The next word begins with the bits of the value that did not fit.
            word = if used_bits == 0 { 0 } else { value >> (width - used_bits) };
        }
    }
}

/// A column of doubles in the plain encoding (Encodings.md, "Plain").
pub(super) struct PlainDoubles {
    bytes: Vec<u8>,
    bounds: Option<MinMax<f64>>,
}

impl PlainDoubles {
    /// Begins a column.
    pub(super) const fn new() -> Self {
        Self { bytes: Vec::new(), bounds: None }
    }

    /// Adds a value, which must not be NaN.
    #[inline]
    pub(super) fn push(&mut self, value: f64) {
        let MinMax { min, max } = self.bounds.unwrap_or(MinMax { min: value, max: value });
        self.bounds = Some(MinMax { min: min.min(value), max: max.max(value) });
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Ends the column.
    pub(super) fn finish(self) -> EncodedValues {
        // The bounds must include both zeros if one of them is zero (parquet.thrift, "ColumnOrder").
        let bounds = self.bounds.map(|MinMax { min, max }| MinMax {
            min: if min == 0.0 { -0.0 } else { min },
            max: if max == 0.0 { 0.0 } else { max },
        });
        EncodedValues {
            dictionary: None,
            encoding: Encoding::PLAIN,
            bytes: self.bytes,
            bounds: Some(Bounds::Doubles(bounds)),
        }
    }
}

/// A type of values that a dictionary can have.
pub(super) trait DictionaryValue: Ord + Copy {
    /// Appends the value to `out` in the plain encoding (Encodings.md, "Plain").
    fn put_plain(self, out: &mut Vec<u8>);

    /// Returns the bounds of `values`. Returns `None` if bounds are not stored for this type.
    fn bounds(values: &[Self]) -> Option<Bounds>;
}

impl DictionaryValue for i64 {
    fn put_plain(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn bounds(values: &[Self]) -> Option<Bounds> {
        let (min, max) = (values.iter().min(), values.iter().max());
        Some(Bounds::Integers(min.zip(max).map(|(&min, &max)| MinMax { min, max })))
    }
}

impl DictionaryValue for &str {
    fn put_plain(self, out: &mut Vec<u8>) {
        // A name is much shorter than 4 GiB.
        out.extend_from_slice(&u32::try_from(self.len()).unwrap_or(u32::MAX).to_le_bytes());
        out.extend_from_slice(self.as_bytes());
    }

    fn bounds(_: &[Self]) -> Option<Bounds> {
        None
    }
}

/// A column whose values seldom change: each different value once, and runs of its index (Encodings.md,
/// "Dictionary Encoding").
pub(super) struct Dictionary<T> {
    indices: BTreeMap<T, u32>,
    /// The different values in the order of their indices.
    values: Vec<T>,
    /// The value of the current run.
    current: Option<T>,
    runs: Runs,
}

impl<T: DictionaryValue> Dictionary<T> {
    /// Begins a column.
    pub(super) const fn new() -> Self {
        Self { indices: BTreeMap::new(), values: Vec::new(), current: None, runs: Runs::new() }
    }

    /// Adds `value` to so many rows.
    #[inline]
    pub(super) fn push(&mut self, value: T, count: u64) {
        if self.current == Some(value) {
            self.runs.lengthen_last(count);
        } else {
            self.begin_run(value, count);
        }
    }

    fn begin_run(&mut self, value: T, count: u64) {
        let values = &mut self.values;
        let index = *self.indices.entry(value).or_insert_with(|| {
            values.push(value);
            // A row group has fewer than 2^32 rows, and so fewer values.
            (values.len() - 1) as u32
        });
        self.current = Some(value);
        self.runs.push(index, count);
    }

    /// Ends the column.
    pub(super) fn finish(self) -> EncodedValues {
        let mut plain = Vec::new();
        for value in &self.values {
            value.put_plain(&mut plain);
        }
        let value_count = self.values.len() as u32;
        let largest_index = value_count.saturating_sub(1);
        let width = u32::BITS - largest_index.leading_zeros();
        let mut bytes = vec![width as u8];
        self.runs.write(width, &mut bytes);
        EncodedValues {
            dictionary: Some(DictionaryPage { bytes: plain, value_count }),
            encoding: Encoding::RLE_DICTIONARY,
            bytes,
            bounds: T::bounds(&self.values),
        }
    }
}

/// The definition levels of a column: 1 for each row that has a value, and 0 for each row that has none.
pub(super) struct DefinitionLevels {
    runs: Runs,
    current: Option<bool>,
    /// The number of rows without a value.
    pub(super) nulls: u64,
}

impl DefinitionLevels {
    /// Begins a column.
    pub(super) const fn new() -> Self {
        Self { runs: Runs::new(), current: None, nulls: 0 }
    }

    /// Adds so many rows, all with a value or all without one.
    #[inline]
    pub(super) fn push(&mut self, is_defined: bool, count: u64) {
        self.nulls += if is_defined { 0 } else { count };
        if self.current == Some(is_defined) {
            self.runs.lengthen_last(count);
        } else {
            self.current = Some(is_defined);
            self.runs.push(is_defined.into(), count);
        }
    }

    /// Appends the levels to `out`, as they stand at the beginning of a data page of version 1: their size,
    /// and then the runs.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let size_at = out.len();
        out.extend_from_slice(&[0; 4]);
        self.runs.write(1, out);
        // The levels of a row group take at most one byte for each row, so the size fits.
        let size = (out.len() - size_at - 4) as u32;
        out[size_at..size_at + 4].copy_from_slice(&size.to_le_bytes());
    }
}

/// Small integers as runs.
struct Runs(Vec<Run>);

struct Run {
    value: u32,
    count: u64,
}

impl Runs {
    const fn new() -> Self {
        Self(Vec::new())
    }

    fn push(&mut self, value: u32, count: u64) {
        self.0.push(Run { value, count });
    }

    #[inline]
    fn lengthen_last(&mut self, count: u64) {
        if let Some(last) = self.0.last_mut() {
            last.count += count;
        }
    }

    /// Appends the integers to `out`, in the hybrid of runs and bit-packed groups (Encodings.md, "RLE"). A
    /// value that occurs at least eight times in a row is written as a run. The other values are written in
    /// groups of eight, with `width` bits each.
    fn write(&self, width: u32, out: &mut Vec<u8>) {
        let mut ungrouped: Vec<u32> = Vec::new();
        for &Run { value, mut count } in &self.0 {
            // Only whole groups can be written before a run, so the current group takes values of the run.
            while count > 0 && !ungrouped.len().is_multiple_of(GROUP) {
                ungrouped.push(value);
                count -= 1;
            }
            if count >= GROUP as u64 {
                put_groups(&ungrouped, width, out);
                ungrouped.clear();
                // The lowest bit of the header is 0 for a run.
                put_uleb128(out, count << 1);
                out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
            } else {
                ungrouped.extend((0..count).map(|_| value));
            }
        }
        ungrouped.resize(ungrouped.len().next_multiple_of(GROUP), 0);
        put_groups(&ungrouped, width, out);
    }
}

/// Appends whole groups of eight values to `out`, bit-packed. Appends nothing if there is no group.
fn put_groups(values: &[u32], width: u32, out: &mut Vec<u8>) {
    let (groups, _) = values.as_chunks::<GROUP>();
    if groups.is_empty() {
        return;
    }
    // The lowest bit of the header is 1 for bit-packed groups.
    put_uleb128(out, ((groups.len() as u64) << 1) | 1);
    for group in groups {
        // Eight values of `width` bits fill `width` bytes, so no bits are left over.
        let (mut word, mut used_bits) = (0_u64, 0);
        for &value in group {
            word |= u64::from(value) << used_bits;
            used_bits += width;
            while used_bits >= 8 {
                out.push(word as u8);
                word >>= 8;
                used_bits -= 8;
            }
        }
    }
}

/// Appends an integer to `out` with seven bits in each byte, the lowest first. The last byte is below 128
/// (ULEB128).
fn put_uleb128(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Maps signed integers to unsigned ones, so that a small value of either sign stays small.
const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_those_of_the_format_s_first_example() {
        // Encodings.md: 1 to 5 are a first value and differences of 1, which need no bits above the smallest.
        let mut column = DeltaIntegers::new();
        (1..=5).for_each(|value| column.push(value));
        let values = column.finish();
        assert_eq!(values.bytes, [0x80, 0x02, 4, 5, 2, 2, 0, 0, 0, 0]);
        assert_eq!(values.bounds, Some(Bounds::Integers(Some(MinMax { min: 1, max: 5 }))));
    }

    #[test]
    fn bounds_of_doubles_are_the_smallest_and_the_largest_value_and_include_both_zeros() {
        let bounds = |values: &[f64]| {
            let mut column = PlainDoubles::new();
            values.iter().for_each(|&value| column.push(value));
            column.finish().bounds
        };
        assert_eq!(bounds(&[2.5, -1.0, 7.0]), Some(Bounds::Doubles(Some(MinMax { min: -1.0, max: 7.0 }))));
        let Some(Bounds::Doubles(Some(MinMax { min, max }))) = bounds(&[0.0]) else {
            panic!("a value has bounds")
        };
        assert!(min.is_sign_negative() && max.is_sign_positive());
        assert_eq!(bounds(&[]), Some(Bounds::Doubles(None)));
    }

    #[test]
    fn packed_values_have_no_gaps_and_the_lowest_bits_come_first() {
        // Encodings.md: 0 to 7 in three bits each.
        let mut values = [0; MINIBLOCK];
        (0..8).for_each(|value| values[value as usize] = value);
        let mut packed = Vec::new();
        pack_bits(&values, 3, &mut packed);
        assert_eq!(packed[..3], [0b1000_1000, 0b1100_0110, 0b1111_1010]);
        assert_eq!(packed.len(), 24);
        let mut groups = Vec::new();
        put_groups(&[0, 1, 2, 3, 4, 5, 6, 7], 3, &mut groups);
        assert_eq!(groups, [0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        // A width of all bits, and a width at which values cross the border of a word.
        for width in [64, 63] {
            let mut packed = Vec::new();
            pack_bits(&[u64::MAX >> (64 - width); MINIBLOCK], width, &mut packed);
            assert_eq!(packed, vec![0xff; width as usize * 8]);
        }
    }

    #[test]
    fn a_run_takes_about_the_same_bytes_at_any_length() {
        let length = |count| {
            let mut column = Dictionary::new();
            column.push("up", count);
            column.push("down", 9);
            column.finish().bytes.len()
        };
        assert_eq!((length(10), length(60)), (5, 5));
        assert_eq!(length(100_000), 7);
    }

    #[test]
    fn short_runs_share_groups_and_long_runs_are_written_as_runs() {
        let mut runs = Runs::new();
        // The third run gives two values to the group that the runs before it began, and keeps ten.
        [(1, 2), (0, 4), (1, 12), (0, 1)].into_iter().for_each(|(value, count)| runs.push(value, count));
        let mut bytes = Vec::new();
        runs.write(1, &mut bytes);
        assert_eq!(bytes, [0b11, 0b1100_0011, 10 << 1, 1, 0b11, 0]);
    }
}

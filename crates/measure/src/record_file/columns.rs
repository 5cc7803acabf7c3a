//! How the values of one column become the pages of a column chunk (Parquet's Encodings.md).
//!
//! ```text
//! integers, one by one ─► Differences ┐
//! runs of one value ────► Dictionary  ├─► Values ┐
//! numbers, one by one ──► Doubles     ┘          ├─► a column chunk (`chunk.rs`)
//! whether rows have one ► Levels ────────────────┘
//! ```
//!
//! Rows come in an order in which neighbours are close or equal. So integers are packed as differences of
//! neighbours, and what mostly stays the same is counted in runs: a run costs the same whatever its length.
//! Left out: compression, repetition levels, and all types but INT64, DOUBLE and texts.

use std::collections::BTreeMap;

use parquet::basic::Encoding;
use parquet::file::statistics::Statistics;

/// The encoded values of a column chunk, without its nulls.
pub(super) struct Values {
    /// The plain values of the dictionary page, if there is one, and how many.
    pub(super) dictionary: Option<(Vec<u8>, u32)>,
    pub(super) encoding: Encoding,
    pub(super) bytes: Vec<u8>,
    /// The smallest and the largest value, if they are kept.
    pub(super) bounds: Option<Bounds>,
}

/// The smallest and the largest value; `None` if there is no value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bounds {
    Integers(Option<(i64, i64)>),
    Doubles(Option<(f64, f64)>),
}

impl Bounds {
    /// As the metadata of a column chunk with this number of nulls has them.
    pub(super) fn statistics(self, nulls: u64) -> Statistics {
        match self {
            Self::Integers(bounds) => {
                let (least, most) = bounds.unzip();
                Statistics::int64(least, most, None, Some(nulls), false)
            }
            Self::Doubles(bounds) => {
                let (least, most) = bounds.unzip();
                Statistics::double(least, most, None, Some(nulls), false)
            }
        }
    }
}

/// Integers as differences of neighbours (Encodings.md, "Delta Encoding").
pub(super) struct Differences {
    /// The first value, which precedes all blocks.
    first: Option<i64>,
    /// The last value before the open block.
    before: i64,
    /// The values of the block that is being filled.
    open: [i64; BLOCK],
    filled: usize,
    /// How many values the packed blocks hold.
    packed: u64,
    blocks: Vec<u8>,
    least: i64,
    most: i64,
}

impl Differences {
    /// No value yet.
    pub(super) const fn new() -> Self {
        Self {
            first: None,
            before: 0,
            open: [0; BLOCK],
            filled: 0,
            packed: 0,
            blocks: Vec::new(),
            least: 0,
            most: 0,
        }
    }

    /// Adds a value.
    #[inline]
    pub(super) fn push(&mut self, value: i64) {
        if self.first.is_none() {
            self.first = Some(value);
            (self.before, self.least, self.most) = (value, value, value);
            return;
        }
        self.open[self.filled] = value;
        self.filled += 1;
        if self.filled == BLOCK {
            self.pack_block();
        }
    }

    /// Ends the column.
    pub(super) fn finish(mut self) -> Values {
        if self.filled > 0 {
            self.pack_block();
        }
        let count = self.packed + u64::from(self.first.is_some());
        let mut bytes = Vec::with_capacity(self.blocks.len() + 32);
        for integer in [BLOCK as u64, PARTS as u64, count, zigzag(self.first.unwrap_or(0))] {
            put_integer(&mut bytes, integer);
        }
        bytes.extend_from_slice(&self.blocks);
        let bounds = self.first.map(|_| (self.least, self.most));
        Values {
            dictionary: None,
            encoding: Encoding::DELTA_BINARY_PACKED,
            bytes,
            bounds: Some(Bounds::Integers(bounds)),
        }
    }

    /// Packs the open block. It is full, or the last.
    fn pack_block(&mut self) {
        let (mut before, mut least, mut most) = (self.before, self.least, self.most);
        let mut differences = [0; BLOCK];
        let mut smallest = i64::MAX;
        for (difference, &value) in differences.iter_mut().zip(&self.open[..self.filled]) {
            *difference = value.wrapping_sub(before);
            smallest = smallest.min(*difference);
            (least, most) = (least.min(value), most.max(value));
            before = value;
        }
        (self.before, self.least, self.most) = (before, least, most);
        // What lies behind the last value is packed as zeros.
        let mut above = [0; BLOCK];
        for (above, difference) in above.iter_mut().zip(&differences[..self.filled]) {
            *above = difference.wrapping_sub(smallest).cast_unsigned();
        }
        put_integer(&mut self.blocks, zigzag(smallest));
        let widths = self.blocks.len();
        self.blocks.resize(widths + PARTS, 0);
        let (parts, _) = above.as_chunks::<PART>();
        for (index, part) in parts.iter().enumerate().take(self.filled.div_ceil(PART)) {
            let width = u64::BITS - part.iter().fold(0, |bits, value| bits | value).leading_zeros();
            self.blocks[widths + index] = width as u8;
            if width > 0 {
                pack(part, width, &mut self.blocks);
            }
        }
        self.packed += self.filled as u64;
        self.filled = 0;
    }
}

/// The lowest `width` bits of each value, without gaps, the lowest first.
fn pack(values: &[u64; PART], width: u32, into: &mut Vec<u8>) {
    let (mut word, mut used) = (0_u64, 0);
    into.reserve(width as usize * PART / 8);
    for &value in values {
        word |= value << used;
        used += width;
        if used >= u64::BITS {
            into.extend_from_slice(&word.to_le_bytes());
            used -= u64::BITS;
            // What of the value did not fit.
            word = if used == 0 { 0 } else { value >> (width - used) };
        }
    }
}

/// Numbers as they are (Encodings.md, "Plain").
pub(super) struct Doubles {
    bytes: Vec<u8>,
    bounds: Option<(f64, f64)>,
}

impl Doubles {
    /// No value yet.
    pub(super) const fn new() -> Self {
        Self { bytes: Vec::new(), bounds: None }
    }

    /// One more value, which is defined.
    #[inline]
    pub(super) fn push(&mut self, value: f64) {
        let (least, most) = self.bounds.unwrap_or((value, value));
        self.bounds = Some((least.min(value), most.max(value)));
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Ends the column.
    pub(super) fn finish(self) -> Values {
        // A bound that is zero covers both zeros (parquet.thrift, "ColumnOrder").
        let bounds = self.bounds.map(|(least, most)| {
            (if least == 0.0 { -0.0 } else { least }, if most == 0.0 { 0.0 } else { most })
        });
        Values {
            dictionary: None,
            encoding: Encoding::PLAIN,
            bytes: self.bytes,
            bounds: Some(Bounds::Doubles(bounds)),
        }
    }
}

/// What a dictionary holds.
pub(super) trait Entry: Ord + Copy {
    /// Appends it as it is (Encodings.md, "Plain").
    fn put(self, into: &mut Vec<u8>);

    /// The bounds of `entries`, if bounds are kept for this type.
    fn bounds(entries: impl Iterator<Item = Self>) -> Option<Bounds>;
}

impl Entry for i64 {
    fn put(self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.to_le_bytes());
    }

    fn bounds(mut entries: impl Iterator<Item = Self>) -> Option<Bounds> {
        let bounds = entries.next().map(|first| {
            entries.fold((first, first), |(least, most), entry| (least.min(entry), most.max(entry)))
        });
        Some(Bounds::Integers(bounds))
    }
}

impl Entry for &str {
    fn put(self, into: &mut Vec<u8>) {
        // A name is much shorter than 4 GiB.
        into.extend_from_slice(&u32::try_from(self.len()).unwrap_or(u32::MAX).to_le_bytes());
        into.extend_from_slice(self.as_bytes());
    }

    fn bounds(_: impl Iterator<Item = Self>) -> Option<Bounds> {
        None
    }
}

/// Values that repeat, with neighbours mostly equal: each distinct one once, and runs of its place
/// (Encodings.md, "Dictionary Encoding").
pub(super) struct Dictionary<T> {
    places: BTreeMap<T, u32>,
    /// In the order of their places.
    entries: Vec<T>,
    /// The value of the open run.
    newest: Option<T>,
    runs: Runs,
}

impl<T: Entry> Dictionary<T> {
    /// No value yet.
    pub(super) const fn new() -> Self {
        Self { places: BTreeMap::new(), entries: Vec::new(), newest: None, runs: Runs::new() }
    }

    /// This value `count` times.
    #[inline]
    pub(super) fn push(&mut self, value: T, count: u64) {
        if self.newest == Some(value) {
            self.runs.lengthen(count);
        } else {
            self.begin(value, count);
        }
    }

    fn begin(&mut self, value: T, count: u64) {
        let entries = &mut self.entries;
        let place = *self.places.entry(value).or_insert_with(|| {
            entries.push(value);
            // A group has fewer rows than 2^32.
            (entries.len() - 1) as u32
        });
        self.newest = Some(value);
        self.runs.push(place, count);
    }

    /// Ends the column.
    pub(super) fn finish(self) -> Values {
        let mut plain = Vec::new();
        self.entries.iter().for_each(|entry| entry.put(&mut plain));
        let count = self.entries.len() as u32;
        let width = u32::BITS - count.saturating_sub(1).leading_zeros();
        let mut bytes = vec![width as u8];
        self.runs.write(width, &mut bytes);
        Values {
            dictionary: Some((plain, count)),
            encoding: Encoding::RLE_DICTIONARY,
            bytes,
            bounds: T::bounds(self.entries.iter().copied()),
        }
    }
}

/// Whether each row of a column has a value: definition levels, 1 or 0.
pub(super) struct Levels {
    runs: Runs,
    newest: Option<bool>,
    /// How many rows have none.
    pub(super) nulls: u64,
}

impl Levels {
    /// No row yet.
    pub(super) const fn new() -> Self {
        Self { runs: Runs::new(), newest: None, nulls: 0 }
    }

    /// This number of rows more, that all have a value or all have none.
    #[inline]
    pub(super) fn push(&mut self, is_defined: bool, count: u64) {
        self.nulls += if is_defined { 0 } else { count };
        if self.newest == Some(is_defined) {
            self.runs.lengthen(count);
        } else {
            self.newest = Some(is_defined);
            self.runs.push(is_defined.into(), count);
        }
    }

    /// As a data page of version 1 begins with them.
    pub(super) fn write(&self, into: &mut Vec<u8>) {
        let length = into.len();
        into.extend_from_slice(&[0; 4]);
        self.runs.write(1, into);
        // A group's levels take at most a byte a row.
        let written = (into.len() - length - 4) as u32;
        into[length..length + 4].copy_from_slice(&written.to_le_bytes());
    }
}

/// Small integers as runs, each with its length.
struct Runs(Vec<(u32, u64)>);

impl Runs {
    const fn new() -> Self {
        Self(Vec::new())
    }

    fn push(&mut self, value: u32, count: u64) {
        self.0.push((value, count));
    }

    #[inline]
    fn lengthen(&mut self, count: u64) {
        if let Some(newest) = self.0.last_mut() {
            newest.1 += count;
        }
    }

    /// Appends them in the hybrid of runs and bit-packed groups (Encodings.md, "RLE"): a value that comes at
    /// least eight times in succession as a run, other values in groups of eight, `width` bits each.
    fn write(&self, width: u32, into: &mut Vec<u8>) {
        let mut group: Vec<u32> = Vec::new();
        for &(value, mut count) in &self.0 {
            // A group that was begun is filled first.
            while count > 0 && !group.len().is_multiple_of(GROUP) {
                group.push(value);
                count -= 1;
            }
            if count >= GROUP as u64 {
                put_groups(&group, width, into);
                group.clear();
                put_integer(into, count << 1);
                into.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
            } else {
                group.extend((0..count).map(|_| value));
            }
        }
        group.resize(group.len().next_multiple_of(GROUP), 0);
        put_groups(&group, width, into);
    }
}

/// Appends whole groups of eight values, bit-packed, if there are any.
fn put_groups(values: &[u32], width: u32, into: &mut Vec<u8>) {
    let (groups, _) = values.as_chunks::<GROUP>();
    if groups.is_empty() {
        return;
    }
    put_integer(into, ((groups.len() as u64) << 1) | 1);
    for group in groups {
        // Eight values of `width` bits are `width` bytes.
        let (mut word, mut used) = (0_u64, 0);
        for &value in group {
            word |= u64::from(value) << used;
            used += width;
            while used >= 8 {
                into.push(word as u8);
                word >>= 8;
                used -= 8;
            }
        }
    }
}

/// Seven bits a byte, the lowest first, the last byte below 128 (ULEB128).
fn put_integer(into: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

/// Small numbers of either sign as small ones without sign.
const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// Values of a block, and of each of its parts, which have a width of their own. Chosen: a part of 64 values
/// fills whole words at any width.
const BLOCK: usize = 256;
const PARTS: usize = 4;
const PART: usize = BLOCK / PARTS;

/// Values that are packed together (Encodings.md, "RLE").
const GROUP: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_those_of_the_format_s_first_example() {
        // Encodings.md: 1 to 5 are a first value and differences of 1, which need no bits above the smallest.
        let mut column = Differences::new();
        (1..=5).for_each(|value| column.push(value));
        let values = column.finish();
        assert_eq!(values.bytes, [0x80, 0x02, 4, 5, 2, 2, 0, 0, 0, 0]);
        assert_eq!(values.bounds, Some(Bounds::Integers(Some((1, 5)))));
    }

    #[test]
    fn bounds_of_numbers_are_the_least_and_the_largest_and_a_zero_stands_for_both() {
        let bounds = |values: &[f64]| {
            let mut column = Doubles::new();
            values.iter().for_each(|&value| column.push(value));
            column.finish().bounds
        };
        assert_eq!(bounds(&[2.5, -1.0, 7.0]), Some(Bounds::Doubles(Some((-1.0, 7.0)))));
        let Some(Bounds::Doubles(Some((least, most)))) = bounds(&[0.0]) else { panic!("a value has bounds") };
        assert!(least.is_sign_negative() && most.is_sign_positive());
        assert_eq!(bounds(&[]), Some(Bounds::Doubles(None)));
    }

    #[test]
    fn packed_values_lie_without_gaps_the_lowest_first() {
        // Encodings.md: 0 to 7 in three bits each.
        let mut values = [0; PART];
        (0..8).for_each(|value| values[value as usize] = value);
        let mut packed = Vec::new();
        pack(&values, 3, &mut packed);
        assert_eq!(packed[..3], [0b1000_1000, 0b1100_0110, 0b1111_1010]);
        assert_eq!(packed.len(), 24);
        let mut groups = Vec::new();
        put_groups(&[0, 1, 2, 3, 4, 5, 6, 7], 3, &mut groups);
        assert_eq!(groups, [0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        // A width of all bits, and one that parts each word.
        for width in [64, 63] {
            let mut packed = Vec::new();
            pack(&[u64::MAX >> (64 - width); PART], width, &mut packed);
            assert_eq!(packed, vec![0xff; width as usize * 8]);
        }
    }

    #[test]
    fn a_run_costs_the_same_whatever_its_length() {
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
    fn short_runs_share_groups_and_long_ones_stand_alone() {
        let mut runs = Runs::new();
        // The third run gives two values to the group that the others began, and keeps ten.
        [(1, 2), (0, 4), (1, 12), (0, 1)].into_iter().for_each(|(value, count)| runs.push(value, count));
        let mut bytes = Vec::new();
        runs.write(1, &mut bytes);
        assert_eq!(bytes, [0b11, 0b1100_0011, 10 << 1, 1, 0b11, 0]);
    }
}

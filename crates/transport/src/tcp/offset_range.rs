//! A range of offsets in a stream: data that has arrived, or that a SACK block reports.

/// The offsets from `start` up to the last one before `end`. The range is empty unless `start` is below
/// `end`.
///
/// Ranges are ordered by their start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OffsetRange {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl OffsetRange {
    pub(super) const EMPTY: Self = Self::new(0, 0);

    #[inline]
    pub(super) const fn new(start: u64, end: u64) -> Self {
        Self { start, end }
    }

    #[inline]
    pub(super) const fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// True if all offsets of `inner` are in this range.
    #[inline]
    pub(super) const fn contains(self, inner: Self) -> bool {
        self.start <= inner.start && inner.end <= self.end
    }

    /// True if the two ranges overlap, or if one begins where the other ends.
    #[inline]
    pub(super) const fn touches(self, other: Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    /// The smallest range that contains both.
    #[inline]
    pub(super) fn span(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

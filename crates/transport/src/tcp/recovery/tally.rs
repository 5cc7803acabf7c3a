//! A number of segments with their bytes.

use super::SentSegment;

/// A number of segments, and the number of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tcp) struct Tally {
    pub(super) segments: u64,
    pub(super) bytes: u64,
}

impl Tally {
    pub(super) const fn add(&mut self, segment: &SentSegment) {
        self.segments += 1;
        self.bytes += segment.size();
    }

    pub(super) const fn remove(&mut self, segment: &SentSegment) {
        self.segments -= 1;
        self.bytes -= segment.size();
    }
}

//! Reassembly: which bytes have arrived, which were read, and what is missing between them
//! (RFC 9293 §3.10.7.4, seventh).
//!
//! ```text
//!           read_to         rcv_nxt
//!   read by    │ waits for    │ missing │ arrived │ missing │ arrived
//!   the app    │ the app      │  (gap)  │ (island)│
//! ─────────────┴──────────────┴─────────┴─────────┴─────────┴────────►
//! ```
//!
//! An *island* is a range of data beyond a gap. Only offsets are kept. They count the SYN as 0, so that data
//! begins at 1. The FIN takes the offset after the last byte.

use super::sack_report::SackReport;
use crate::tcp::offset_range::OffsetRange;

/// What a segment brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Nothing new, or nothing that fits into the window.
    Nothing,
    /// The next bytes, or the FIN. `filled_gap` is true if later data had arrived before.
    InOrder { filled_gap: bool },
    /// Data beyond a gap.
    OutOfOrder,
}

/// What has arrived at one end.
#[derive(Clone, Debug)]
pub(super) struct Reassembly {
    /// The next offset expected (RCV.NXT).
    rcv_nxt: u64,
    /// The next offset that the application reads.
    read_to: u64,
    /// The offset of the FIN. `None` before it arrives.
    fin: Option<u64>,
    /// The islands in order. There is a gap between any two.
    islands: Vec<OffsetRange>,
}

impl Reassembly {
    pub(super) const fn new() -> Self {
        Self { rcv_nxt: 0, read_to: 1, fin: None, islands: Vec::new() }
    }

    /// Takes note that the SYN has arrived.
    pub(super) const fn on_syn(&mut self) {
        self.rcv_nxt = 1;
    }

    #[inline]
    pub(super) const fn rcv_nxt(&self) -> u64 {
        self.rcv_nxt
    }

    #[inline]
    pub(super) const fn read_to(&self) -> u64 {
        self.read_to
    }

    /// The number of in-order bytes that the application has not read.
    #[inline]
    pub(super) fn unread(&self) -> u64 {
        // Before the SYN has arrived, RCV.NXT is 0 and `read_to` is 1, the offset of the first byte.
        self.rcv_nxt.saturating_sub(self.read_to + u64::from(self.fin_received()))
    }

    /// True if everything up to and including the FIN has arrived.
    #[inline]
    pub(super) fn fin_received(&self) -> bool {
        self.fin.is_some_and(|fin| self.rcv_nxt > fin)
    }

    /// True if there is data beyond a gap.
    #[inline]
    pub(super) const fn has_gap(&self) -> bool {
        !self.islands.is_empty()
    }

    /// True if the FIN has arrived, in order or not.
    #[inline]
    pub(super) const fn has_fin(&self) -> bool {
        self.fin.is_some()
    }

    /// The distance from RCV.NXT to the end of the last island, in bytes. Zero if there is no island.
    pub(super) fn span_beyond_gap(&self) -> u64 {
        self.islands.last().map_or(0, |island| island.end - self.rcv_nxt)
    }

    /// Takes `data` and a FIN after it, up to the window's `edge`. Notes in `report` what SACK has to report.
    #[inline]
    pub(super) fn on_segment(
        &mut self,
        data: OffsetRange,
        fin: bool,
        edge: u64,
        report: &mut SackReport,
    ) -> Arrival {
        if fin && data.end >= self.rcv_nxt && data.end <= edge {
            self.fin.get_or_insert(data.end);
        }
        let inside = OffsetRange::new(data.start, data.end.min(edge));
        // Nothing new: old data, no data at all, or a bare FIN. SACK reports old data alone as a duplicate.
        if inside.end <= self.rcv_nxt || data.is_empty() {
            if data.end <= self.rcv_nxt {
                report.on_duplicate(data);
            }
            let is_fin_next = self.take_fin();
            return if is_fin_next { Arrival::InOrder { filled_gap: false } } else { Arrival::Nothing };
        }
        // Data beyond a gap.
        if inside.start > self.rcv_nxt {
            if inside.is_empty() {
                return Arrival::Nothing;
            }
            report.on_out_of_order(inside);
            let is_new = self.insert(inside);
            if is_new {
                return Arrival::OutOfOrder;
            }
            report.on_duplicate(inside);
            return Arrival::Nothing;
        }
        // Data that begins at the gap or before it, so that the application can read on.
        let filled_gap = self.has_gap();
        self.rcv_nxt = inside.end;
        if filled_gap {
            self.join_islands();
            report.on_in_order(self.rcv_nxt);
        }
        self.take_fin();
        Arrival::InOrder { filled_gap }
    }

    /// Gives the application at most `limit` bytes, and returns their number.
    #[inline]
    pub(super) fn read(&mut self, limit: u64) -> u64 {
        let bytes = self.unread().min(limit);
        self.read_to += bytes;
        bytes
    }

    /// Moves RCV.NXT over the FIN if the FIN comes next. Returns true if it does.
    fn take_fin(&mut self) -> bool {
        let is_next = self.fin == Some(self.rcv_nxt);
        self.rcv_nxt += u64::from(is_next);
        is_next
    }

    /// Adds an island and merges it with the islands that it touches. Returns false if all its bytes had
    /// arrived before.
    fn insert(&mut self, data: OffsetRange) -> bool {
        // Most data beyond a gap extends the last island.
        if let Some(last) = self.islands.last_mut().filter(|last| last.end == data.start) {
            last.end = data.end;
            return true;
        }
        self.insert_among(data)
    }

    fn insert_among(&mut self, data: OffsetRange) -> bool {
        let first = self.islands.partition_point(|island| island.end < data.start);
        let after_last = self.islands.partition_point(|island| island.start <= data.end);
        if first == after_last {
            self.islands.insert(first, data);
            return true;
        }
        let touched = self.islands[first].span(self.islands[after_last - 1]);
        let fills_gap = after_last - first > 1;
        self.islands[first] = touched.span(data);
        self.islands.drain(first + 1..after_last);
        fills_gap || !touched.contains(data)
    }

    /// Moves RCV.NXT over the islands that it has reached.
    fn join_islands(&mut self) {
        let reached = self.islands.partition_point(|island| island.start <= self.rcv_nxt);
        for island in self.islands.drain(..reached) {
            self.rcv_nxt = self.rcv_nxt.max(island.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::SeqNum;

    use super::*;

    /// What has arrived, inside a window of 10,000 bytes.
    struct Inside {
        reassembly: Reassembly,
        report: SackReport,
    }

    impl Inside {
        fn on_segment(&mut self, start: u64, payload: u32, fin: bool) -> Arrival {
            let data = OffsetRange::new(start, start + u64::from(payload));
            self.reassembly.on_segment(data, fin, 10_001, &mut self.report)
        }
    }

    fn receiver() -> Inside {
        let mut reassembly = Reassembly::new();
        reassembly.on_syn();
        Inside { reassembly, report: SackReport::default() }
    }

    #[test]
    fn islands_merge_and_join_when_the_gap_is_filled() {
        let mut receiver = receiver();
        assert_eq!(receiver.on_segment(201, 100, false), Arrival::OutOfOrder);
        assert_eq!(receiver.on_segment(401, 100, false), Arrival::OutOfOrder);
        assert_eq!(receiver.on_segment(401, 100, false), Arrival::Nothing);
        assert_eq!(receiver.on_segment(301, 100, false), Arrival::OutOfOrder);
        assert_eq!(receiver.reassembly.islands, [OffsetRange::new(201, 501)]);
        assert_eq!(receiver.on_segment(1, 200, false), Arrival::InOrder { filled_gap: true });
        assert_eq!(
            (receiver.reassembly.rcv_nxt(), receiver.reassembly.unread(), receiver.reassembly.has_gap()),
            (501, 500, false)
        );
    }

    #[test]
    fn an_overlap_brings_only_what_is_new() {
        let mut receiver = receiver();
        receiver.on_segment(1, 100, false);
        assert_eq!(receiver.on_segment(51, 100, false), Arrival::InOrder { filled_gap: false });
        assert_eq!(receiver.reassembly.rcv_nxt(), 151);
        assert_eq!(receiver.on_segment(1, 150, false), Arrival::Nothing);
    }

    #[test]
    fn data_beyond_the_window_is_not_taken() {
        let mut receiver = receiver();
        receiver.on_segment(1, 20_000, false);
        assert_eq!(receiver.reassembly.rcv_nxt(), 10_001);
        assert_eq!(receiver.on_segment(10_001, 1, false), Arrival::Nothing);
    }

    #[test]
    fn the_fin_counts_once_all_before_it_is_here() {
        let mut receiver = receiver();
        assert_eq!(receiver.on_segment(101, 0, true), Arrival::Nothing);
        assert!(!receiver.reassembly.fin_received());
        receiver.on_segment(1, 100, false);
        assert!(receiver.reassembly.fin_received());
        assert_eq!((receiver.reassembly.rcv_nxt(), receiver.reassembly.unread()), (102, 100));
        assert_eq!(receiver.reassembly.read(60), 60);
        assert_eq!(receiver.reassembly.read(60), 40);
        assert_eq!(receiver.reassembly.read(60), 0);
    }

    /// RFC 2018 §8: nothing that has arrived is discarded, so each block shows what is held.
    #[test]
    fn every_byte_that_is_reported_is_held() {
        let mut receiver = receiver();
        for (start, payload) in
            [(801, 100), (201, 100), (9_501, 1000), (601, 150), (201, 50), (401, 100), (1, 100)]
        {
            receiver.on_segment(start, payload, false);
            let held = &receiver.reassembly.islands;
            let (blocks, count) = receiver.report.take(SeqNum::new(0), 40);
            for block in &blocks[..usize::from(count)] {
                let reported = OffsetRange::new(block.left.get().into(), block.right.get().into());
                assert!(held.iter().any(|island| island.contains(reported)), "{reported:?} of {held:?}");
            }
        }
    }
}

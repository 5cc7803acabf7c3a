//! Reassembly: which bytes have arrived, which were read, and what is missing between them
//! (RFC 9293 §3.10.7.4, seventh).
//!
//! ```text
//!             read          rcv_nxt
//!   read by    │ waits for    │ missing │ arrived │ missing │ arrived
//!   the app    │ the app      │  (gap)  │ (island)│
//! ─────────────┴──────────────┴─────────┴─────────┴─────────┴────────►
//! ```
//!
//! Only offsets are kept. They count the SYN as 0, so that data begins at 1. The FIN takes the offset after
//! the last byte.

use super::sack_report::SackReport;

/// What a segment brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Nothing new, or nothing that fits.
    Nothing,
    /// The next bytes, or the FIN. `filled_gap` if later data was here already.
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
    read: u64,
    /// The offset of the FIN, once seen.
    fin: Option<u64>,
    /// Data beyond `rcv_nxt`: separate ranges `start..end`, in order.
    islands: Vec<(u64, u64)>,
}

impl Reassembly {
    pub(super) const fn new() -> Self {
        Self { rcv_nxt: 0, read: 1, fin: None, islands: Vec::new() }
    }

    /// The SYN has arrived.
    pub(super) const fn on_syn(&mut self) {
        self.rcv_nxt = 1;
    }

    #[inline]
    pub(super) const fn rcv_nxt(&self) -> u64 {
        self.rcv_nxt
    }

    #[inline]
    pub(super) const fn read_to(&self) -> u64 {
        self.read
    }

    /// In-order bytes that the application has not read.
    #[inline]
    pub(super) fn unread(&self) -> u64 {
        // Before the SYN has arrived `read` is already the first byte.
        self.rcv_nxt.saturating_sub(self.read + u64::from(self.fin_received()))
    }

    /// True if everything up to and including the FIN is here.
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

    /// From RCV.NXT to the end of what has arrived beyond a gap, in bytes.
    pub(super) fn span_beyond_gap(&self) -> u64 {
        self.islands.last().map_or(0, |&(_, end)| end - self.rcv_nxt)
    }

    /// Takes the data `start..start + payload` and a FIN behind it, as far as the window's `edge` allows.
    /// Notes in `report` what SACK is to report.
    #[inline]
    pub(super) fn on_segment(
        &mut self,
        start: u64,
        payload: u32,
        fin: bool,
        edge: u64,
        report: &mut SackReport,
    ) -> Arrival {
        let data_end = start.saturating_add(u64::from(payload));
        if fin && data_end >= self.rcv_nxt && data_end <= edge {
            self.fin.get_or_insert(data_end);
        }
        let end = data_end.min(edge);
        if end <= self.rcv_nxt || payload == 0 {
            if data_end <= self.rcv_nxt {
                report.on_duplicate(start, data_end);
            }
            return if self.take_fin() { Arrival::InOrder { filled_gap: false } } else { Arrival::Nothing };
        }
        if start > self.rcv_nxt {
            if start >= end {
                return Arrival::Nothing;
            }
            report.on_out_of_order(start, end);
            if self.insert(start, end) {
                return Arrival::OutOfOrder;
            }
            report.on_duplicate(start, end);
            return Arrival::Nothing;
        }
        let filled_gap = self.has_gap();
        self.rcv_nxt = end;
        if filled_gap {
            self.join_islands();
            report.on_in_order(self.rcv_nxt);
        }
        self.take_fin();
        Arrival::InOrder { filled_gap }
    }

    /// The application reads at most `limit` bytes. Returns how many there were.
    #[inline]
    pub(super) fn read(&mut self, limit: u64) -> u64 {
        let bytes = self.unread().min(limit);
        self.read += bytes;
        bytes
    }

    fn take_fin(&mut self) -> bool {
        let here = self.fin == Some(self.rcv_nxt);
        self.rcv_nxt += u64::from(here);
        here
    }

    /// Adds an island and merges it with those that it touches. Returns false if every byte was here.
    fn insert(&mut self, start: u64, end: u64) -> bool {
        // Most data beyond a gap follows what came before it.
        if let Some(last) = self.islands.last_mut().filter(|last| last.1 == start) {
            last.1 = end;
            return true;
        }
        self.insert_among(start, end)
    }

    fn insert_among(&mut self, start: u64, end: u64) -> bool {
        let first = self.islands.partition_point(|&(_, island_end)| island_end < start);
        let behind = self.islands.partition_point(|&(island_start, _)| island_start <= end);
        if first == behind {
            self.islands.insert(first, (start, end));
            return true;
        }
        let (first_start, last_end) = (self.islands[first].0, self.islands[behind - 1].1);
        let new = behind - first > 1 || start < first_start || end > last_end;
        self.islands[first] = (start.min(first_start), end.max(last_end));
        self.islands.drain(first + 1..behind);
        new
    }

    fn join_islands(&mut self) {
        let reached = self.islands.partition_point(|&(start, _)| start <= self.rcv_nxt);
        for (_, end) in self.islands.drain(..reached) {
            self.rcv_nxt = self.rcv_nxt.max(end);
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
            self.reassembly.on_segment(start, payload, fin, 10_001, &mut self.report)
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
        assert_eq!(receiver.reassembly.islands, [(201, 501)]);
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
                let (left, right) = (u64::from(block.left.get()), u64::from(block.right.get()));
                assert!(
                    held.iter().any(|&(start, end)| start <= left && right <= end),
                    "{left}..{right} of {held:?}"
                );
            }
        }
    }
}

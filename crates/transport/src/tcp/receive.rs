//! The receive side: which bytes have arrived, which were read, and what is missing between them.
//!
//! Only offsets are kept. Stream offsets count the SYN as 0, so that data begins at 1; the FIN takes the offset
//! after the last byte.

use talkpath_units::{Bytes, Instant};

use super::sack::SackReport;
use super::window::{OfferRule, ReceiveWindow};

/// What a segment brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Nothing that was not here, or nothing that fits.
    Nothing,
    /// The next bytes, or the FIN; `filled_gap` where later data was here already.
    InOrder { filled_gap: bool },
    /// Data beyond a gap.
    OutOfOrder,
}

/// What has arrived at one end.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Receiver {
    /// The next offset expected (RCV.NXT).
    rcv_nxt: u64,
    /// The next offset that the application reads.
    read: u64,
    /// The offset of the FIN, once seen.
    fin: Option<u64>,
    /// Data beyond `rcv_nxt`: ranges `start..end`, apart from each other, in order.
    islands: Vec<(u64, u64)>,
    pub(crate) window: ReceiveWindow,
    /// What to tell of data beyond a gap; nobody asks where SACK was not agreed on.
    pub(crate) report: SackReport,
}

impl Receiver {
    pub(crate) fn new(rule: OfferRule, buffer: Bytes) -> Self {
        let window = ReceiveWindow::new(rule, buffer);
        Self { rcv_nxt: 0, read: 1, islands: Vec::new(), fin: None, window, report: SackReport::default() }
    }

    /// The SYN has arrived.
    pub(crate) const fn on_syn(&mut self) {
        self.rcv_nxt = 1;
    }

    pub(crate) const fn rcv_nxt(&self) -> u64 {
        self.rcv_nxt
    }

    pub(crate) const fn read_to(&self) -> u64 {
        self.read
    }

    /// In-order bytes that the application has not read.
    pub(crate) fn unread(&self) -> u64 {
        // Before the SYN has arrived `read` already stands at the first byte.
        self.rcv_nxt.saturating_sub(self.read + u64::from(self.fin_received()))
    }

    /// Whether everything up to and including the FIN is here.
    pub(crate) fn fin_received(&self) -> bool {
        self.fin.is_some_and(|fin| self.rcv_nxt > fin)
    }

    /// Whether there is data beyond a gap.
    pub(crate) const fn has_gap(&self) -> bool {
        !self.islands.is_empty()
    }

    /// Whether `start..start + payload` is the data expected next, inside the window, with none beyond a gap and no end known.
    #[inline]
    pub(crate) fn takes_whole(&self, start: u64, payload: u32) -> bool {
        start == self.rcv_nxt
            && !self.has_gap()
            && self.fin.is_none()
            && start + u64::from(payload) <= self.window.edge()
    }

    /// Takes data that [`Self::takes_whole`] has approved.
    #[inline]
    pub(crate) fn take_whole(&mut self, payload: u32) {
        self.rcv_nxt += u64::from(payload);
    }

    /// [`Self::on_segment`] of data beyond a gap that fits the window.
    #[inline]
    pub(crate) fn take_beyond(&mut self, start: u64, payload: u32) {
        let end = start + u64::from(payload);
        self.report.on_out_of_order(start, end);
        if !self.insert(start, end) {
            self.report.on_duplicate(start, end);
        }
    }

    /// Takes the data `start..start + payload` and a FIN behind it, as far as the window allows.
    pub(crate) fn on_segment(&mut self, start: u64, payload: u32, fin: bool) -> Arrival {
        let data_end = start.saturating_add(u64::from(payload));
        if fin && data_end >= self.rcv_nxt && data_end <= self.window.edge() {
            self.fin.get_or_insert(data_end);
        }
        let end = data_end.min(self.window.edge());
        if end <= self.rcv_nxt || payload == 0 {
            if data_end <= self.rcv_nxt {
                self.report.on_duplicate(start, data_end);
            }
            return if self.take_fin() { Arrival::InOrder { filled_gap: false } } else { Arrival::Nothing };
        }
        if start > self.rcv_nxt {
            if start >= end {
                return Arrival::Nothing;
            }
            self.report.on_out_of_order(start, end);
            if self.insert(start, end) {
                return Arrival::OutOfOrder;
            }
            self.report.on_duplicate(start, end);
            return Arrival::Nothing;
        }
        let filled_gap = self.has_gap();
        self.rcv_nxt = end;
        if filled_gap {
            self.join_islands();
            self.report.on_in_order(self.rcv_nxt);
        }
        self.take_fin();
        Arrival::InOrder { filled_gap }
    }

    /// The application reads at most `limit` bytes; returns how many there were.
    pub(crate) fn read(&mut self, limit: u64) -> u64 {
        let bytes = self.unread().min(limit);
        self.read += bytes;
        bytes
    }

    /// The application has read: the window may have to grow.
    #[inline]
    pub(crate) fn tune(&mut self, now: Instant) {
        if self.window.tuning.is_growing() {
            let missing = self.islands.last().map_or(0, |&(_, end)| end - self.rcv_nxt);
            self.window.tuning.on_read(self.read, missing, now);
        }
    }

    fn take_fin(&mut self) -> bool {
        let here = self.fin == Some(self.rcv_nxt);
        self.rcv_nxt += u64::from(here);
        here
    }

    /// Adds an island, merged with those that it touches; false where all of it was here.
    #[inline]
    fn insert(&mut self, start: u64, end: u64) -> bool {
        // Most of it follows the last one.
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
    use super::*;

    fn receiver() -> Receiver {
        let mut receiver = Receiver::new(OfferRule::Rfc9293, Bytes::new(10_000));
        receiver.on_syn();
        receiver.window.offer_on_syn(1);
        receiver
    }

    #[test]
    fn islands_merge_and_join_when_the_gap_is_filled() {
        let mut receiver = receiver();
        assert_eq!(receiver.on_segment(201, 100, false), Arrival::OutOfOrder);
        assert_eq!(receiver.on_segment(401, 100, false), Arrival::OutOfOrder);
        assert_eq!(receiver.on_segment(401, 100, false), Arrival::Nothing);
        assert_eq!(receiver.on_segment(301, 100, false), Arrival::OutOfOrder);
        assert_eq!(receiver.islands, [(201, 501)]);
        assert_eq!(receiver.on_segment(1, 200, false), Arrival::InOrder { filled_gap: true });
        assert_eq!((receiver.rcv_nxt(), receiver.unread(), receiver.has_gap()), (501, 500, false));
    }

    #[test]
    fn an_overlap_brings_only_what_is_new() {
        let mut receiver = receiver();
        receiver.on_segment(1, 100, false);
        assert_eq!(receiver.on_segment(51, 100, false), Arrival::InOrder { filled_gap: false });
        assert_eq!(receiver.rcv_nxt(), 151);
        assert_eq!(receiver.on_segment(1, 150, false), Arrival::Nothing);
    }

    #[test]
    fn data_beyond_the_window_is_not_taken() {
        let mut receiver = receiver();
        receiver.on_segment(1, 20_000, false);
        assert_eq!(receiver.rcv_nxt(), 10_001);
        assert_eq!(receiver.on_segment(10_001, 1, false), Arrival::Nothing);
    }

    #[test]
    fn the_fin_counts_once_all_before_it_is_here() {
        let mut receiver = receiver();
        assert_eq!(receiver.on_segment(101, 0, true), Arrival::Nothing);
        assert!(!receiver.fin_received());
        receiver.on_segment(1, 100, false);
        assert!(receiver.fin_received());
        assert_eq!((receiver.rcv_nxt(), receiver.unread()), (102, 100));
        assert_eq!(receiver.read(60), 60);
        assert_eq!(receiver.read(60), 40);
        assert_eq!(receiver.read(60), 0);
    }
}

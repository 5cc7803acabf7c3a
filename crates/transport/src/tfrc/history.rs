//! The receiver's record of what arrived and what is missing, as loss intervals (RFC 5348 §5.1 to §5.3,
//! RFC 4342 §6.1 and §10.2, RFC 5622 §8.7).
//!
//! ```text
//!         ┌── decided ──────────────────────┐ ┌ pending ┐
//!   ------*--*-*-------------------*--------·-·-·    *  lost   -  received   ·  a hole may still be filled
//!         └lossy┘└─── lossless ───┘└─ I_0 ──┘
//!         └──────── I_1 ──────────┘
//! ```
//!
//! A hole is lost once three packets above it have arrived. Two losses belong to one loss event while no
//! packet between them carries a window counter more than four past that of the packet before the first.

use std::collections::VecDeque;

use super::counter::steps;
use super::{INTERVALS, Interval};

/// A packet that arrived, as the loss history sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its number; all packets of the sender count, those without data too. Never wraps.
    pub seq: u64,
    /// The window counter of a data packet; `None` for a packet without data.
    pub counter: Option<u8>,
    /// How many packets without data were sent immediately before it (NDP Count, RFC 4340 §7.7); 0 if
    /// unknown.
    pub ndp: u64,
    /// Whether it carries an ECN mark.
    pub marked: bool,
}

/// A loss interval with everything that is reported about it (RFC 4342 §8.6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossInterval {
    /// The number that it begins with.
    pub first: u64,
    /// Packets of its lossy part.
    pub lossy: u64,
    /// Packets in all.
    pub length: u64,
    /// Data packets in all, lost ones included; the first interval's is 0 until the first loss, and made up
    /// from then on.
    pub data: u32,
    /// Lost or marked data packets.
    pub dropped: u32,
    /// By how much the window counter went on in it: eight quarters are two round trips.
    pub quarters: u32,
}

/// What an arrival changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Losses or marks were found.
    pub lost: bool,
    /// They are the connection's first.
    pub first: bool,
    /// The number of the first packet was the first to be lost: nothing arrived before it.
    pub from_the_start: bool,
}

/// The record.
#[derive(Clone, Debug)]
pub struct LossHistory {
    /// All numbers up to this one are decided.
    decided: u64,
    /// What arrived above the first hole, by number.
    pending: Vec<Arrival>,
    /// The window counter of the last decided data packet.
    counter: u8,
    /// C(X_prev): the counter before the current interval's first loss.
    base: u8,
    /// Whether a counter more than four past `base` was seen: the next loss begins a new event.
    event_over: bool,
    /// Whether any data packet was decided as received.
    any_received: bool,
    /// Newest first, as many as are reported.
    intervals: VecDeque<LossInterval>,
}

impl LossHistory {
    /// A history of the packets numbered above `before`.
    pub fn new(before: u64) -> Self {
        let mut intervals = VecDeque::with_capacity(REPORTED + 1);
        intervals.push_front(LossInterval { first: before.saturating_add(1), ..LossInterval::default() });
        Self {
            decided: before,
            pending: Vec::with_capacity(NDUPACK + 1),
            counter: 0,
            base: 0,
            event_over: false,
            any_received: false,
            intervals,
        }
    }

    /// Takes note of a packet. Old and repeated ones change nothing.
    pub fn on_arrival(&mut self, arrival: Arrival) -> Change {
        let mut change = Change { first: self.intervals.len() == 1, ..Change::default() };
        let Err(position) = self.pending.binary_search_by_key(&arrival.seq, |pending| pending.seq) else {
            return Change::default();
        };
        if arrival.seq <= self.decided {
            return Change::default();
        }
        self.pending.insert(position, arrival);
        // RFC 5348 §5.1: a mark is a congestion event at once, and so are the holes before it.
        let mut marked = self.pending.iter().filter(|pending| pending.marked).count();
        while let Some(&next) = self.pending.first() {
            let hole = next.seq - self.decided - 1;
            if hole > 0 {
                if self.pending.len() < NDUPACK && marked == 0 {
                    break;
                }
                change.from_the_start |= !self.any_received;
                change.lost |= self.lose(hole, next.ndp);
            }
            if next.marked {
                marked -= 1;
                change.from_the_start |= !self.any_received;
                self.congestion(1);
                change.lost = true;
            }
            self.receive(next);
            self.pending.remove(0);
        }
        change.first &= change.lost;
        change.from_the_start &= change.first;
        change
    }

    /// Gives the first interval the length that its rate would have taken (RFC 5348 §6.3.1).
    pub fn seed(&mut self, packets: u32) {
        if self.intervals.len() > 1
            && let Some(first) = self.intervals.back_mut()
        {
            first.data = packets;
        }
    }

    /// The loss intervals, newest first; one, without losses, before the first loss event.
    pub fn intervals(&self) -> impl ExactSizeIterator<Item = &LossInterval> {
        self.intervals.iter()
    }

    /// The highest number below which everything is decided: the end of the newest interval.
    pub const fn decided(&self) -> u64 {
        self.decided
    }

    fn receive(&mut self, arrival: Arrival) {
        self.decided = arrival.seq;
        let made_up = self.intervals.len() == 1;
        let interval = &mut self.intervals[0];
        // A marked packet was counted as a congestion event.
        if !arrival.marked {
            interval.length += 1;
        }
        let Some(counter) = arrival.counter else { return };
        if !arrival.marked && !made_up {
            interval.data = interval.data.saturating_add(1);
        }
        if self.any_received {
            interval.quarters = interval.quarters.saturating_add(u32::from(steps(self.counter, counter)));
        } else {
            self.base = counter;
        }
        self.any_received = true;
        self.counter = counter;
        self.event_over |= steps(self.base, counter) > SAME_EVENT;
    }

    /// The next `count` numbers are lost, and the last `ndp` carried no data. Returns whether data was.
    fn lose(&mut self, count: u64, ndp: u64) -> bool {
        let without_data = count.min(ndp);
        let data = count - without_data;
        if data > 0 {
            self.congestion(data);
        }
        self.intervals[0].length += without_data;
        self.decided += count;
        data > 0
    }

    /// `count` data packets from the next number on are lost, or one is marked.
    fn congestion(&mut self, count: u64) {
        if self.intervals.len() == 1 || self.event_over {
            let first = self.intervals[0].first + self.intervals[0].length;
            self.intervals.push_front(LossInterval { first, ..LossInterval::default() });
            self.intervals.truncate(REPORTED);
            self.base = self.counter;
            self.event_over = false;
        }
        let packets = u32::try_from(count).unwrap_or(u32::MAX);
        let interval = &mut self.intervals[0];
        interval.length += count;
        interval.lossy = interval.length;
        interval.data = interval.data.saturating_add(packets);
        interval.dropped = interval.dropped.saturating_add(packets);
    }
}

impl LossInterval {
    /// What its average takes; two round trips by the window counter are short (RFC 5622 §8.4).
    pub const fn for_average(&self) -> Interval {
        Interval {
            packets: self.data,
            dropped: self.dropped,
            short: self.dropped > 0 && self.quarters <= SHORT_QUARTERS,
            discount: 1.0,
        }
    }
}

/// NDUPACK (RFC 5348 §5.1).
pub const NDUPACK: usize = 3;
/// RFC 4342 §8.6.1: at least NINTERVAL + 1 are reported.
const REPORTED: usize = INTERVALS + 1;
/// RFC 4342 §10.2: quarters of a round trip within which losses are one event.
const SAME_EVENT: u8 = 4;
/// RFC 4828 §3: two round trips.
const SHORT_QUARTERS: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn data(seq: u64, counter: u8) -> Arrival {
        Arrival { seq, counter: Some(counter), ndp: 0, marked: false }
    }

    /// Receives `numbers`, the counter going on every `per_quarter` packets.
    fn receive(
        history: &mut LossHistory,
        numbers: impl IntoIterator<Item = u64>,
        per_quarter: u64,
    ) -> Change {
        let mut last = Change::default();
        for seq in numbers {
            last = history.on_arrival(data(seq, (seq / per_quarter % 16) as u8));
        }
        last
    }

    fn lengths(history: &LossHistory) -> Vec<(u64, u64, u64)> {
        history.intervals().map(|interval| (interval.first, interval.lossy, interval.length)).collect()
    }

    /// RFC 5348 §5.1, NDUPACK = 3.
    #[test]
    fn a_hole_is_lost_with_the_third_packet_above_it() {
        let mut history = LossHistory::new(0);
        receive(&mut history, 1..=10, 4);
        assert!(!receive(&mut history, [12, 13], 4).lost);
        let change = receive(&mut history, [14], 4);
        assert!(change.lost && change.first && !change.from_the_start);
        assert_eq!(lengths(&history), [(11, 1, 4), (1, 0, 10)]);
        assert_eq!(history.decided(), 14);
    }

    #[test]
    fn a_packet_that_arrives_before_the_third_fills_its_hole() {
        let mut history = LossHistory::new(0);
        receive(&mut history, (1..=10).chain([12, 13, 11, 14, 15]), 4);
        assert_eq!(lengths(&history), [(1, 0, 15)]);
        assert_eq!(
            receive(&mut history, [3, 15], 4),
            Change::default(),
            "old and repeated ones change nothing"
        );
    }

    /// RFC 4342 §8.6.2's picture: 10, 19 to 21, 23, 32 and 43 are lost of 0 to 44; a packet a quarter of a
    /// round trip divides them as it does. 43 is still a hole: Skip Length 2.
    #[test]
    fn losses_within_a_round_trip_are_one_interval() {
        let mut history = LossHistory::new(0);
        let lost = [11, 20, 21, 22, 24, 33, 44];
        // One number up, as ours begin at 1.
        receive(&mut history, (1..=45).filter(|seq| !lost.contains(seq)), 1);
        assert_eq!(lengths(&history), [(33, 1, 11), (20, 5, 13), (11, 1, 9), (1, 0, 10)]);
        assert_eq!(history.intervals().map(|interval| interval.dropped).collect::<Vec<_>>(), [1, 4, 1, 0]);
        assert_eq!(45 - history.decided(), 2);
    }

    /// RFC 4342 §10.2: what counts is a received packet more than four quarters past the one before the first
    /// loss.
    #[test]
    fn consecutive_losses_are_one_event_however_many() {
        let mut history = LossHistory::new(0);
        receive(&mut history, (1..=10).chain(51..=54), 2);
        assert_eq!(lengths(&history), [(11, 40, 44), (1, 0, 10)]);
    }

    /// RFC 4342 §6.1.1 with RFC 4340 §7.7: the two numbers before 14 were acknowledgements.
    #[test]
    fn lost_packets_without_data_are_no_losses() {
        let mut history = LossHistory::new(0);
        receive(&mut history, 1..=10, 4);
        let with_ndp = |seq, ndp| Arrival { ndp, ..data(seq, 3) };
        history.on_arrival(with_ndp(13, 2));
        history.on_arrival(with_ndp(14, 0));
        assert!(!history.on_arrival(with_ndp(15, 0)).lost);
        assert_eq!(lengths(&history), [(1, 0, 15)]);
        history.on_arrival(with_ndp(18, 1));
        history.on_arrival(with_ndp(19, 0));
        assert!(history.on_arrival(with_ndp(20, 0)).lost);
        let newest = history.intervals[0];
        assert_eq!(
            (newest.first, newest.lossy, newest.length, newest.data, newest.dropped),
            (16, 1, 5, 4, 1)
        );
    }

    /// RFC 5348 §5.1: with n-1 and n+1 received, a marked n+2 begins the event at n, and no third packet is
    /// waited for.
    #[test]
    fn a_mark_is_an_event_at_once_that_begins_with_the_hole_before_it() {
        let mut history = LossHistory::new(0);
        receive(&mut history, 1..=10, 4);
        receive(&mut history, [12], 4);
        let change = history.on_arrival(Arrival { marked: true, ..data(13, 3) });
        assert!(change.lost && change.first);
        assert_eq!(lengths(&history), [(11, 3, 3), (1, 0, 10)]);
        assert_eq!(history.intervals[0].dropped, 2);
    }

    #[test]
    fn losing_the_very_first_packet_is_told_apart() {
        let mut history = LossHistory::new(5);
        let change = receive(&mut history, [7, 8, 9], 4);
        assert!(change.first && change.from_the_start);
        assert_eq!(lengths(&history), [(6, 1, 4), (6, 0, 0)]);
    }

    #[test]
    fn no_more_intervals_are_kept_than_are_reported() {
        let mut history = LossHistory::new(0);
        receive(&mut history, (1..=2000).filter(|seq| seq % 100 != 0), 2);
        assert_eq!(history.intervals().len(), 9);
        assert!(history.intervals().skip(1).all(|interval| interval.length == 100 && interval.data == 100));
    }
}

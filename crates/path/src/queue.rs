//! Where packets wait: first in, first out, and an arrival that finds no room is dropped (drop-tail).
//!
//! The packets themselves are already on their way to the far end's ring (`pipe.rs`); here stand only the moments at
//! which the waiting ones go into service, in order. Whoever looks first lets those go whose moment has come.
//!
//! The queue guards waiting packets; an idle serialiser takes a packet whatever the limit is, so a limit of nothing
//! still passes traffic that never has to wait.

use talkpath_units::{Bytes, Instant, Packets};

use crate::config::QueueLimit;
use crate::occupancy::{Levels, Occupancy, Window};
use crate::ring::Ring;

/// A drop-tail queue.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct DropTail {
    /// Size of the packet that went into service last.
    serving: Bytes,
    /// In order of arrival, which is the order of service.
    waiting: Ring<Waiting>,
    /// Bytes of `waiting` in all.
    waiting_bytes: Bytes,
    occupancy: Occupancy,
    limit: QueueLimit,
    /// Whether the packet in service counts against `limit`.
    in_service: bool,
    mark_at: Option<Packets>,
}

/// A packet that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// When it goes into service.
    start: Instant,
    size: Bytes,
}

impl DropTail {
    /// An empty queue that measures the whole run.
    pub(crate) fn new(limit: QueueLimit, in_service: bool, mark_at: Option<Packets>) -> Self {
        Self {
            limit,
            in_service,
            mark_at,
            waiting: Ring::new(),
            waiting_bytes: Bytes::ZERO,
            serving: Bytes::ZERO,
            occupancy: Occupancy::default(),
        }
    }

    /// Measures in `window` from now on.
    pub(crate) fn measure(&mut self, window: Window) {
        self.occupancy = Occupancy::new(window);
    }

    /// Lets the packets go whose service has started by `now`.
    #[inline]
    pub(crate) fn settle(&mut self, now: Instant) {
        // Nothing waits on most links, most of the time.
        while let Some(&Waiting { start, size }) = self.waiting.front() {
            if start > now {
                break;
            }
            self.occupancy.hold(self.waiting.len(), start);
            self.waiting.pop_front();
            self.waiting_bytes -= size;
            self.serving = size;
        }
    }

    /// Whether a packet of `size` may wait behind a busy serialiser. The queue is settled.
    #[inline]
    pub(crate) fn has_room(&self, size: Bytes) -> bool {
        match self.limit {
            QueueLimit::Packets(limit) => {
                self.waiting.len() as u64 + u64::from(self.in_service) < limit.get()
            }
            QueueLimit::Bytes(limit) => {
                let serving = if self.in_service { self.serving } else { Bytes::ZERO };
                self.waiting_bytes.saturating_add(serving).saturating_add(size) <= limit
            }
        }
    }

    /// A packet of `size` goes into service without having waited. The queue is settled.
    #[inline]
    pub(crate) fn pass(&mut self, size: Bytes) {
        self.serving = size;
    }

    /// A packet of `size` came at `now` and waits until `start`. The queue is settled.
    #[inline]
    pub(crate) fn admit(&mut self, size: Bytes, start: Instant, now: Instant) {
        self.occupancy.hold(self.waiting.len(), now);
        self.waiting.push_back(Waiting { start, size });
        self.waiting_bytes += size;
    }

    /// Packets that wait at `now`, which is at or after the last settling.
    #[inline]
    pub(crate) fn waiting(&self, now: Instant) -> u64 {
        let started = match self.waiting.front() {
            Some(first) if first.start <= now => self.waiting.partition_point(|packet| packet.start <= now),
            _ => 0,
        };
        (self.waiting.len() - started) as u64
    }

    /// Whether an arrival at `now`, at or after the last settling, finds so many waiting that it is to be marked.
    #[inline]
    pub(crate) fn marks(&self, now: Instant) -> bool {
        self.mark_at.is_some_and(|least| self.waiting(now) >= least.get())
    }

    /// How many waited for how long, up to `now`. The queue is settled.
    pub(crate) fn levels(&mut self, now: Instant) -> Levels {
        self.occupancy.hold(self.waiting.len(), now);
        self.occupancy.levels()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[test]
    fn bytes_in_service_count_only_where_asked() {
        for in_service in [false, true] {
            let mut queue = DropTail::new(QueueLimit::Bytes(Bytes::new(1000)), in_service, None);
            queue.pass(Bytes::new(600));
            assert_eq!(queue.has_room(Bytes::new(1000)), !in_service);
            assert!(queue.has_room(Bytes::new(400)));
            queue.admit(Bytes::new(400), at(10), at(0));
            assert_eq!(queue.has_room(Bytes::new(1)), !in_service);
            // The first leaves, the second goes into service: 400 bytes there, none waiting.
            queue.settle(at(10));
            assert_eq!(queue.has_room(Bytes::new(601)), !in_service);
        }
    }

    #[test]
    fn a_packet_stops_waiting_at_the_instant_its_service_starts() {
        let mut queue = DropTail::new(QueueLimit::Packets(Packets::new(2)), false, None);
        for start in [10, 20] {
            queue.admit(Bytes::new(1), at(start), at(0));
        }
        assert!(!queue.has_room(Bytes::new(1)));
        assert_eq!([queue.waiting(at(9)), queue.waiting(at(10)), queue.waiting(at(25))], [2, 1, 0]);
        queue.settle(at(10));
        assert!(queue.has_room(Bytes::new(1)));
        assert_eq!(queue.waiting(at(10)), 1);
    }

    #[test]
    fn an_arrival_is_marked_from_the_stated_number_of_waiting_packets_on() {
        let mut queue = DropTail::new(QueueLimit::Packets(Packets::new(9)), false, Some(Packets::new(2)));
        for start in [10, 20] {
            assert!(!queue.marks(at(0)));
            queue.admit(Bytes::new(1), at(start), at(0));
        }
        assert_eq!([queue.marks(at(9)), queue.marks(at(10))], [true, false]);
    }
}

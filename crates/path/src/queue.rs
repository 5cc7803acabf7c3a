//! Where packets wait: first in, first out, and an arrival that finds no room is dropped (drop-tail).
//!
//! The packets themselves are already in the far end's pipe (`pipe.rs`), which knows when each is on the wire, whole: that is
//! when the one behind it goes into service. So the last so many of the pipe are the waiting ones, and whoever looks first lets
//! those go whose moment has come.
//!
//! The queue guards waiting packets; an idle serialiser takes a packet whatever the limit is, so a limit of nothing
//! still passes traffic that never has to wait.

use talkpath_units::{Bytes, Instant, Packets};

use crate::config::QueueLimit;
use crate::link::Carried;
use crate::occupancy::{Levels, Occupancy, Window};
use crate::pipe::Pipe;

/// A drop-tail queue.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct DropTail {
    /// How many packets wait: the last ones that entered the pipe.
    waiting: u32,
    /// Whether the packet in service counts against `limit`.
    in_service: bool,
    /// When the first of them goes into service; never where none waits.
    next_start: Instant,
    /// Bytes of those that wait.
    waiting_bytes: Bytes,
    /// Size of the packet that went into service last.
    serving: Bytes,
    occupancy: Occupancy,
    limit: QueueLimit,
    mark_at: Option<Packets>,
}

impl DropTail {
    /// An empty queue that measures the whole run.
    pub(crate) fn new(limit: QueueLimit, in_service: bool, mark_at: Option<Packets>) -> Self {
        Self {
            limit,
            in_service,
            mark_at,
            waiting: 0,
            next_start: Instant::MAX,
            waiting_bytes: Bytes::ZERO,
            serving: Bytes::ZERO,
            occupancy: Occupancy::default(),
        }
    }

    /// Measures in `window` from now on.
    pub(crate) fn measure(&mut self, window: Window) {
        self.occupancy = Occupancy::new(window);
    }

    /// Lets the packets go whose service has started by `now`. All of them are in `pipe`, in which none entered since.
    #[inline(always)]
    pub(crate) fn settle<T: Carried>(&mut self, pipe: &Pipe<T>, now: Instant) {
        // Nothing waits on most links, most of the time.
        while self.next_start <= now {
            let Some(left) = self.waiting.checked_sub(1) else { return };
            let Some((size, finish)) = pipe.entered(self.waiting) else { return };
            self.occupancy.hold(self.waiting, self.next_start);
            self.waiting = left;
            self.waiting_bytes -= size;
            self.serving = size;
            self.next_start = if left > 0 { finish } else { Instant::MAX };
        }
    }

    /// Whether a packet of `size` may wait behind a busy serialiser. The queue is settled.
    #[inline]
    pub(crate) fn has_room(&self, size: Bytes) -> bool {
        match self.limit {
            QueueLimit::Packets(limit) => u64::from(self.waiting) + u64::from(self.in_service) < limit.get(),
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
    #[inline(always)]
    pub(crate) fn admit(&mut self, size: Bytes, start: Instant, now: Instant) {
        self.occupancy.hold(self.waiting, now);
        if self.waiting == 0 {
            self.next_start = start;
        }
        self.waiting += 1;
        self.waiting_bytes += size;
    }

    /// Packets that wait at `now`, which is at or after the last settling.
    #[inline]
    pub(crate) fn waiting<T: Carried>(&self, pipe: &Pipe<T>, now: Instant) -> u64 {
        if self.next_start > now {
            return u64::from(self.waiting);
        }
        // One goes into service as the one before it leaves: those wait still before which one is not out.
        let (mut least, mut most) = (0, self.waiting - 1);
        while least < most {
            let middle = (least + most).div_ceil(2);
            match pipe.entered(middle + 1) {
                Some((_, finish)) if finish > now => least = middle,
                _ => most = middle - 1,
            }
        }
        u64::from(least)
    }

    /// Whether an arrival at `now`, at or after the last settling, finds so many waiting that it is to be marked.
    #[inline]
    pub(crate) fn marks<T: Carried>(&self, pipe: &Pipe<T>, now: Instant) -> bool {
        self.mark_at.is_some_and(|least| self.waiting(pipe, now) >= least.get())
    }

    /// How many waited for how long, up to `now`. The queue is settled.
    pub(crate) fn levels(&mut self, now: Instant) -> Levels {
        self.occupancy.hold(self.waiting, now);
        self.occupancy.levels()
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::Duration;

    use super::*;
    use crate::config::DelayVariation;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[derive(Clone, Copy)]
    struct Frame(u64);

    impl Carried for Frame {
        fn wire_size(&self) -> Bytes {
            Bytes::new(self.0)
        }
    }

    /// A queue with a packet in service until the first of `finishes`, and others that came at 0 and leave at the rest.
    fn busy(mut queue: DropTail, size: u64, finishes: &[u64]) -> (DropTail, Pipe<Frame>) {
        let stream = talkpath_units::Seed::new(1).stream("x");
        let mut pipe = Pipe::new(Duration::from_millis(1), &DelayVariation::None, stream);
        for (number, &finish) in finishes.iter().enumerate() {
            match number.checked_sub(1) {
                None => queue.pass(Bytes::new(size)),
                Some(before) => queue.admit(Bytes::new(size), at(finishes[before]), at(0)),
            }
            pipe.enter(Frame(size), false, at(finish), at(0));
        }
        (queue, pipe)
    }

    #[test]
    fn bytes_in_service_count_only_where_asked() {
        for in_service in [false, true] {
            let queue = DropTail::new(QueueLimit::Bytes(Bytes::new(1000)), in_service, None);
            let (queue, _) = busy(queue, 600, &[10]);
            assert_eq!(queue.has_room(Bytes::new(1000)), !in_service);
            assert!(queue.has_room(Bytes::new(400)));
            let (mut queue, pipe) = busy(queue, 400, &[10, 20]);
            assert!(!queue.has_room(Bytes::new(601)));
            assert_eq!(queue.has_room(Bytes::new(600)), !in_service);
            // The first leaves, the second goes into service: 400 bytes there, none waiting.
            queue.settle(&pipe, at(10));
            assert!(queue.has_room(Bytes::new(600)));
            assert_eq!(queue.has_room(Bytes::new(601)), !in_service);
        }
    }

    #[test]
    fn a_packet_stops_waiting_at_the_instant_its_service_starts() {
        let queue = DropTail::new(QueueLimit::Packets(Packets::new(2)), false, None);
        let (mut queue, pipe) = busy(queue, 1, &[10, 20, 30]);
        assert!(!queue.has_room(Bytes::new(1)));
        let waiting = [9, 10, 19, 20, 25].map(|ns| queue.waiting(&pipe, at(ns)));
        assert_eq!(waiting, [2, 1, 1, 0, 0]);
        queue.settle(&pipe, at(10));
        assert!(queue.has_room(Bytes::new(1)));
        assert_eq!([queue.waiting(&pipe, at(10)), queue.waiting(&pipe, at(20))], [1, 0]);
    }

    #[test]
    fn an_arrival_is_marked_from_the_stated_number_of_waiting_packets_on() {
        let queue = || DropTail::new(QueueLimit::Packets(Packets::new(9)), false, Some(Packets::new(2)));
        let (one, pipe) = busy(queue(), 1, &[10, 20]);
        assert!(!one.marks(&pipe, at(0)));
        let (two, pipe) = busy(queue(), 1, &[10, 20, 30]);
        assert_eq!([two.marks(&pipe, at(9)), two.marks(&pipe, at(10))], [true, false]);
    }
}

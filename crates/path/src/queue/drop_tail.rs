//! Drop-tail: first in, first out, and an arrival that finds no room is dropped.
//!
//! The queue guards waiting packets; an idle serialiser takes a packet whatever the limit is, so a limit of
//! nothing still passes traffic that never has to wait.
//!
//! With a threshold, an arrival that finds at least that number waiting is marked, if its transport takes
//! marks (RFC 3168 §5). A full queue drops it all the same.

use std::collections::VecDeque;

use talkpath_units::{Bytes, Instant, Packets};

use crate::carried::{Carried, DropCause};
use crate::queue::discipline::{Discipline, LinkFacts, Queued, Signals};
use crate::queue::limit::QueueLimit;

/// The configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropTail {
    /// How much may wait.
    pub limit: QueueLimit,
    /// Whether the packet in service counts against `limit`.
    pub in_service: bool,
    /// An arrival that finds this many waiting is marked, if its transport takes marks (RFC 3168 §5); `None`
    /// never marks.
    pub mark_at: Option<Packets>,
}

/// A drop-tail queue.
#[derive(Debug)]
pub(crate) struct DropTailQueue<T> {
    waiting: VecDeque<Queued<T>>,
    /// Bytes of those that wait.
    bytes: Bytes,
    limit: QueueLimit,
    /// Whether the packet in service counts against `limit`.
    counts_in_service: bool,
    mark_at: Option<Packets>,
}

impl<T: Carried> DropTailQueue<T> {
    /// An empty queue.
    pub(crate) fn new(config: &DropTail, _link: &LinkFacts) -> Self {
        let DropTail { limit, in_service, mark_at } = *config;
        Self { waiting: VecDeque::new(), bytes: Bytes::ZERO, limit, counts_in_service: in_service, mark_at }
    }

    /// Whether a packet of `size` may wait while `in_service` bytes are being sent.
    fn has_room(&self, size: Bytes, in_service: Bytes) -> bool {
        match self.limit {
            QueueLimit::Packets(limit) => {
                self.waiting.len() as u64 + u64::from(self.counts_in_service) < limit.get()
            }
            QueueLimit::Bytes(limit) => {
                let in_service = if self.counts_in_service { in_service } else { Bytes::ZERO };
                self.bytes.saturating_add(in_service).saturating_add(size) <= limit
            }
        }
    }

    /// Marks an arrival that finds a long queue.
    fn mark(&self, packet: &mut T, now: Instant, signals: &mut Signals<T>) {
        if self.mark_at.is_some_and(|threshold| self.waiting.len() as u64 >= threshold.get()) {
            signals.mark(packet, now);
        }
    }
}

impl<T: Carried> Discipline<T> for DropTailQueue<T> {
    #[inline(always)]
    fn enqueue(&mut self, mut packet: T, in_service: Bytes, now: Instant, signals: &mut Signals<T>) {
        let size = packet.wire_size();
        if !self.has_room(size, in_service) {
            return signals.drop(packet, DropCause::QueueFull, now);
        }
        self.mark(&mut packet, now, signals);
        self.bytes += size;
        self.waiting.push_back(Queued { packet, entered: now });
    }

    #[inline(always)]
    fn dequeue(&mut self, _now: Instant, _signals: &mut Signals<T>) -> Option<Queued<T>> {
        let queued = self.waiting.pop_front()?;
        self.bytes -= queued.packet.wire_size();
        Some(queued)
    }

    /// An idle serialiser takes the packet whatever the limit is.
    #[inline(always)]
    fn pass(&mut self, mut packet: T, now: Instant, signals: &mut Signals<T>) -> Option<T> {
        self.mark(&mut packet, now, signals);
        Some(packet)
    }

    #[inline(always)]
    fn len(&self) -> u32 {
        self.waiting.len() as u32
    }

    #[inline(always)]
    fn drops_at_dequeue(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::Ecn;

    use super::*;
    use crate::occupancy::Window;

    const NOW: Instant = Instant::ZERO;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Frame(u64, Ecn);

    impl Carried for Frame {
        fn wire_size(&self) -> Bytes {
            Bytes::new(self.0)
        }

        fn flow_id(&self) -> u32 {
            0
        }

        fn ecn(&self) -> Ecn {
            self.1
        }

        fn set_ce(&mut self) {
            self.1 = Ecn::Ce;
        }
    }

    fn signals() -> Signals<Frame> {
        Signals::new(Window::default())
    }

    fn drop_tail(limit: QueueLimit, in_service: bool, mark_at: Option<Packets>) -> DropTailQueue<Frame> {
        let link = LinkFacts { mtu: Bytes::new(1500), perturbation: 0 };
        DropTailQueue::new(&DropTail { limit, in_service, mark_at }, &link)
    }

    /// What becomes of packets of these sizes, while 600 bytes are being sent: true if the packet waits.
    fn offer(queue: &mut DropTailQueue<Frame>, sizes: &[u64]) -> Vec<bool> {
        let mut wait = Vec::new();
        for &size in sizes {
            let mut signals = signals();
            queue.enqueue(Frame(size, Ecn::NotEct), Bytes::new(600), NOW, &mut signals);
            wait.push(signals.drops() == 0);
        }
        wait
    }

    #[test]
    fn bytes_in_service_count_only_if_the_scenario_says_so() {
        for in_service in [false, true] {
            let limit = QueueLimit::Bytes(Bytes::new(1000));
            let mut queue = drop_tail(limit, in_service, None);
            assert_eq!(offer(&mut queue, &[1001, 401, 599]), [false, !in_service, !in_service]);
            let mut queue = drop_tail(limit, in_service, None);
            assert_eq!(offer(&mut queue, &[400, 1]), [true, !in_service]);
        }
    }

    #[test]
    fn the_packet_in_service_counts_as_one_only_if_the_scenario_says_so() {
        for in_service in [false, true] {
            let mut queue = drop_tail(QueueLimit::Packets(Packets::new(2)), in_service, None);
            assert_eq!(offer(&mut queue, &[1500, 1500, 1]), [true, !in_service, false]);
        }
    }

    #[test]
    fn packets_leave_in_the_order_in_which_they_came_and_free_their_room() {
        let mut queue = drop_tail(QueueLimit::Bytes(Bytes::new(1000)), false, None);
        assert_eq!(offer(&mut queue, &[300, 200, 500, 1]), [true, true, true, false]);
        let mut signals = signals();
        assert_eq!(queue.dequeue(NOW, &mut signals).unwrap().packet, Frame(300, Ecn::NotEct));
        assert_eq!(offer(&mut queue, &[301, 300]), [false, true]);
        let rest: Vec<_> =
            core::iter::from_fn(|| queue.dequeue(NOW, &mut signals)).map(|it| it.packet.0).collect();
        assert_eq!((rest, queue.len(), signals.drops()), (vec![200, 500, 300], 0, 0));
    }

    #[test]
    fn an_arrival_is_marked_from_the_stated_number_of_waiting_packets_on() {
        let limit = QueueLimit::Packets(Packets::new(9));
        let mut queue = drop_tail(limit, false, Some(Packets::new(2)));
        let mut signals = signals();
        for ecn in [Ecn::Ect0, Ecn::Ect0, Ecn::Ect0, Ecn::NotEct, Ecn::Ect1] {
            queue.enqueue(Frame(100, ecn), Bytes::ZERO, NOW, &mut signals);
        }
        let marks: Vec<_> =
            core::iter::from_fn(|| queue.dequeue(NOW, &mut signals)).map(|it| it.packet.1).collect();
        assert_eq!(marks, [Ecn::Ect0, Ecn::Ect0, Ecn::Ce, Ecn::NotEct, Ecn::Ce]);
        assert_eq!(signals.marked(), 2);
    }

    #[test]
    fn an_idle_serialiser_takes_a_packet_whatever_the_limit_is() {
        let mut queue = drop_tail(QueueLimit::Packets(Packets::new(0)), true, Some(Packets::new(0)));
        let passed = queue.pass(Frame(1500, Ecn::Ect0), NOW, &mut signals());
        assert_eq!(passed, Some(Frame(1500, Ecn::Ce)));
    }
}

//! Drop-tail: packets leave in the order in which they came, and a packet that finds no room is dropped.
//!
//! The limit applies to packets that have to wait. An idle serialiser takes a packet at once, so even a limit
//! of 0 packets passes traffic that never waits.
//!
//! With a marking threshold of `n`, a packet that finds at least `n` packets waiting is marked, if its
//! transport supports ECN (RFC 3168 §5). A packet that finds no room is dropped, whether it could be marked
//! or not.

use std::collections::VecDeque;

use talkpath_units::{Bytes, Instant, Packets};

use crate::carried::{Carried, DropCause};
use crate::queue::discipline::{Discipline, LinkFacts, Queued, Signals};
use crate::queue::limit::QueueLimit;

/// The configuration of a drop-tail queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropTail {
    /// How much may wait.
    pub limit: QueueLimit,
    /// True if the packet in service counts against `limit`, too.
    pub in_service: bool,
    /// The marking threshold: the number of waiting packets from which on an arriving packet is marked.
    /// `None` never marks.
    pub mark_at: Option<Packets>,
}

impl DropTail {
    /// Makes a queue in which this many packets may wait. The packet in service does not count, and no packet
    /// is marked.
    pub const fn of_packets(limit: Packets) -> Self {
        Self { limit: QueueLimit::Packets(limit), in_service: false, mark_at: None }
    }
}

/// A drop-tail queue.
#[derive(Debug)]
pub(crate) struct DropTailQueue<T> {
    waiting: VecDeque<Queued<T>>,
    /// The sum of the sizes of `waiting`.
    waiting_bytes: Bytes,
    limit: QueueLimit,
    /// True if the packet in service counts against `limit`, too.
    counts_in_service: bool,
    mark_at: Option<Packets>,
}

impl<T: Carried> DropTailQueue<T> {
    /// An empty queue.
    pub(crate) fn new(config: &DropTail, _link: &LinkFacts) -> Self {
        let DropTail { limit, in_service, mark_at } = *config;
        Self {
            waiting: VecDeque::new(),
            waiting_bytes: Bytes::ZERO,
            limit,
            counts_in_service: in_service,
            mark_at,
        }
    }

    /// True if a packet of `size` may wait while the serialiser is busy with a packet of `in_service` bytes.
    fn has_room(&self, size: Bytes, in_service: Bytes) -> bool {
        match self.limit {
            QueueLimit::Packets(limit) => {
                // A packet is in service whenever a packet arrives that may have to wait.
                let packets_in_service = u64::from(self.counts_in_service);
                self.waiting.len() as u64 + packets_in_service < limit.get()
            }
            QueueLimit::Bytes(limit) => {
                let in_service = if self.counts_in_service { in_service } else { Bytes::ZERO };
                self.waiting_bytes.saturating_add(in_service).saturating_add(size) <= limit
            }
        }
    }

    /// Marks an arriving packet if the queue has reached the marking threshold.
    fn mark_above_threshold(&self, packet: &mut T, now: Instant, signals: &mut Signals<T>) {
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
        self.mark_above_threshold(&mut packet, now, signals);
        self.waiting_bytes += size;
        self.waiting.push_back(Queued { packet, entered: now });
    }

    #[inline(always)]
    fn dequeue(&mut self, _now: Instant, _signals: &mut Signals<T>) -> Option<Queued<T>> {
        let queued = self.waiting.pop_front()?;
        self.waiting_bytes -= queued.packet.wire_size();
        Some(queued)
    }

    /// Passes the packet on, whatever the limit is. No packet waits now, so the packet is marked only by a
    /// threshold of 0.
    #[inline(always)]
    fn pass(&mut self, mut packet: T, now: Instant, signals: &mut Signals<T>) -> Option<T> {
        self.mark_above_threshold(&mut packet, now, signals);
        Some(packet)
    }

    /// Drops the packets that came last.
    fn set_limit(&mut self, limit: QueueLimit, in_service: Bytes, now: Instant, signals: &mut Signals<T>) {
        self.limit = limit;
        while let Some(queued) = self.waiting.pop_back() {
            let size = queued.packet.wire_size();
            self.waiting_bytes -= size;
            if self.has_room(size, in_service) {
                // The last packet fits, so all packets before it do.
                self.waiting_bytes += size;
                self.waiting.push_back(queued);
                return;
            }
            signals.drop(queued.packet, DropCause::QueueFull, now);
        }
    }

    #[inline(always)]
    fn len(&self) -> u32 {
        self.waiting.len() as u32
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

//! Fair queueing: each flow has a queue of its own, and they send in turn, byte by byte.
//!
//! The turns are those of deficit round robin (`turns`; Shreedhar and Varghese 1995). Without room, the
//! newest packet of the flow with the most bytes is dropped ("buffer stealing", §3 there), which may be the
//! one that came.
//!
//! No two flows share a queue. Nothing is dropped but for room, and nothing is marked.

use std::collections::VecDeque;

use talkpath_units::{Bytes, Instant};

use crate::carried::{Carried, DropCause};
use crate::queue::discipline::{Discipline, LinkFacts, Queued, Signals};
use crate::queue::limit::QueueLimit;
use crate::queue::turns::Turns;

/// The configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fq {
    /// How much may wait in all queues together.
    pub limit: QueueLimit,
    /// Bytes that a flow may send in its turn; at least 1. `None` is the link's MTU.
    pub quantum: Option<Bytes>,
}

/// The queues of one link under fair queueing.
#[derive(Debug)]
pub(crate) struct FqQueue<T> {
    /// In the order of flow numbers: each flow's number, and the index of its queue.
    flows: Vec<(u32, u32)>,
    queues: Vec<FlowQueue<T>>,
    turns: Turns,
    packets: u32,
    bytes: Bytes,
    limit: QueueLimit,
    quantum: Bytes,
}

/// The queue of one flow.
#[derive(Debug)]
struct FlowQueue<T> {
    waiting: VecDeque<Queued<T>>,
    bytes: Bytes,
}

impl<T: Carried> FqQueue<T> {
    /// Empty queues.
    pub(crate) fn new(config: &Fq, link: &LinkFacts) -> Self {
        Self {
            flows: Vec::new(),
            queues: Vec::new(),
            turns: Turns::default(),
            packets: 0,
            bytes: Bytes::ZERO,
            limit: config.limit,
            quantum: config.quantum.unwrap_or(link.mtu),
        }
    }

    /// The index of a flow's queue.
    fn classify(&mut self, flow: u32) -> u32 {
        match self.flows.binary_search_by_key(&flow, |known| known.0) {
            Ok(place) => self.flows[place].1,
            Err(place) => {
                let index = self.queues.len() as u32;
                self.flows.insert(place, (flow, index));
                self.queues.push(FlowQueue { waiting: VecDeque::new(), bytes: Bytes::ZERO });
                self.turns.add(self.quantum);
                index
            }
        }
    }

    /// Drops packets until no more wait than may.
    #[inline(always)]
    fn fit(&mut self, now: Instant, signals: &mut Signals<T>) {
        while self.packets > 0 && !self.limit.holds(u64::from(self.packets), self.bytes) {
            self.drop_from_longest(now, signals);
        }
    }

    /// Drops the newest packet of the flow with the most bytes.
    #[cold]
    fn drop_from_longest(&mut self, now: Instant, signals: &mut Signals<T>) {
        let longest = (0..self.queues.len()).rev().max_by_key(|&index| self.queues[index].bytes);
        let Some(queue) = longest.and_then(|index| self.queues.get_mut(index)) else { return };
        let Some(queued) = queue.waiting.pop_back() else { return };
        let size = queued.packet.wire_size();
        queue.bytes -= size;
        self.bytes -= size;
        self.packets -= 1;
        signals.drop(queued.packet, DropCause::QueueFull, now);
    }
}

impl<T: Carried> Discipline<T> for FqQueue<T> {
    #[inline(never)]
    fn enqueue(&mut self, packet: T, _in_service: Bytes, now: Instant, signals: &mut Signals<T>) {
        let (index, size) = (self.classify(packet.flow_id()), packet.wire_size());
        let queue = &mut self.queues[index as usize];
        self.turns.join(index);
        queue.waiting.push_back(Queued { packet, entered: now });
        queue.bytes += size;
        self.packets += 1;
        self.bytes += size;
        self.fit(now, signals);
    }

    #[inline(never)]
    fn dequeue(&mut self, _now: Instant, _signals: &mut Signals<T>) -> Option<Queued<T>> {
        let queues = &self.queues;
        let size = |index: u32| Some(queues[index as usize].waiting.front()?.packet.wire_size());
        let index = self.turns.next(size)?;
        let queue = &mut self.queues[index as usize];
        let queued = queue.waiting.pop_front()?;
        let size = queued.packet.wire_size();
        queue.bytes -= size;
        self.bytes -= size;
        self.packets -= 1;
        if queue.waiting.is_empty() {
            self.turns.leave();
        }
        Some(queued)
    }

    /// An idle serialiser takes the packet whatever the limit is.
    fn pass(&mut self, packet: T, _now: Instant, _signals: &mut Signals<T>) -> Option<T> {
        Some(packet)
    }

    /// Drops the newest packets of the longest flow.
    fn set_limit(&mut self, limit: QueueLimit, _in_service: Bytes, now: Instant, signals: &mut Signals<T>) {
        self.limit = limit;
        self.fit(now, signals);
    }

    fn len(&self) -> u32 {
        self.packets
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::Packets;

    use super::*;
    use crate::occupancy::Window;
    use crate::queue::test_disciplines::Frame;

    const NOW: Instant = Instant::ZERO;

    fn queue(limit: QueueLimit, quantum: u64) -> FqQueue<Frame> {
        let link = LinkFacts { mtu: Bytes::new(1500), perturbation: 0 };
        FqQueue::new(&Fq { limit, quantum: Some(Bytes::new(quantum)) }, &link)
    }

    /// Packets of `(flow, size)` that come all at once, numbered from 0; which of them leave, in order, and
    /// which are dropped.
    fn serve(queue: &mut FqQueue<Frame>, packets: &[(u32, u64)]) -> (Vec<u64>, Vec<u64>) {
        let mut signals = Signals::new(Window::default());
        for (&(flow, size), number) in packets.iter().zip(0..) {
            let packet = Frame { number, flow, ..Frame::of_size(size) };
            queue.enqueue(packet, Bytes::ZERO, NOW, &mut signals);
        }
        let sent = core::iter::from_fn(|| queue.dequeue(NOW, &mut signals));
        let sent = sent.map(|queued| queued.packet.number).collect();
        let dropped = core::iter::from_fn(|| signals.pop_drop()).map(|(_, it)| it.packet.number).collect();
        assert_eq!((queue.len(), queue.bytes, queue.turns.is_empty()), (0, Bytes::ZERO, true));
        (sent, dropped)
    }

    #[test]
    fn flows_share_the_link_by_bytes_whatever_their_packets_sizes() {
        let mut queue = queue(QueueLimit::Packets(Packets::new(100)), 500);
        // The figure of the paper's §3: quantum 500; flow 1 has 200, 750, 20; flow 2 500, 500; flow 3 200,
        // 600, 100.
        let packets = [(1, 200), (1, 750), (1, 20), (2, 500), (2, 500), (3, 200), (3, 600), (3, 100)];
        // Turn 1: 200 (300 left); 500; 200 (300 left). Turn 2: 750 (50 left), 20; 500; 600 (200 left), 100.
        assert_eq!(serve(&mut queue, &packets).0, [0, 3, 5, 1, 2, 4, 6, 7]);
    }

    #[test]
    fn a_packet_larger_than_the_quantum_waits_for_as_many_turns_as_it_takes() {
        let mut queue = queue(QueueLimit::Packets(Packets::new(100)), 300);
        let packets = [(1, 1000), (2, 300), (2, 300), (2, 300), (2, 300)];
        // Flow 1 has 300, 600 and 900 in its first turns, and sends in its fourth.
        assert_eq!(serve(&mut queue, &packets).0, [1, 2, 3, 0, 4]);
    }

    #[test]
    fn a_smaller_limit_drops_the_newest_packets_of_the_longest_flow() {
        let mut queue = queue(QueueLimit::Packets(Packets::new(9)), 1500);
        let mut signals = Signals::new(Window::default());
        for (flow, number) in [(1, 0), (1, 1), (1, 2), (2, 3)] {
            let packet = Frame { number, flow, ..Frame::of_size(1000) };
            queue.enqueue(packet, Bytes::ZERO, NOW, &mut signals);
        }
        queue.set_limit(QueueLimit::Packets(Packets::new(2)), Bytes::ZERO, NOW, &mut signals);
        let dropped: Vec<_> =
            core::iter::from_fn(|| signals.pop_drop()).map(|(_, it)| it.packet.number).collect();
        assert_eq!((dropped, queue.len()), (vec![2, 1], 2));
    }

    #[test]
    fn without_room_the_newest_packet_of_the_longest_flow_goes() {
        let mut queue = queue(QueueLimit::Packets(Packets::new(3)), 1500);
        let packets = [(1, 1000), (1, 1000), (1, 1000), (2, 100), (2, 100), (2, 100)];
        assert_eq!(serve(&mut queue, &packets), (vec![3, 4, 5], vec![2, 1, 0]));
        let mut queue = self::queue(QueueLimit::Bytes(Bytes::new(2000)), 1500);
        assert_eq!(serve(&mut queue, &packets), (vec![0, 3, 4, 5], vec![2, 1]));
    }
}

//! FQ-CoDel: flows in turn, byte by byte, those with little to send first, and each under a CoDel of its own
//! (RFC 8290).
//!
//! ```text
//!  arrival ─► hash of the flow ─► its queue ─┐ new queues: served first, one quantum each
//!                                            └ old queues: served in turn, one quantum each
//!  no room ─► drops from the head of the longest queue, until half of its bytes, or 64 packets, are gone
//! ```
//!
//! The steps are those of RFC 8290 §4.1 and §4.2. Where that text is open, Linux's sch_fq_codel decides: a
//! queue whose deficit is exactly zero has used its quantum; CoDel compares the bytes of all queues together
//! with the MTU; what is dropped for room counts in the CoDel of its queue.
//!
//! A link that becomes free dequeues, also if no packet waits. Such a dequeue takes the empty queues off the
//! lists (RFC 8290 §4.2), and ends their CoDels' intervals (RFC 8289 §5.6). Our link does not dequeue if no
//! packet waits. So this is done when the next packet comes (`pass`). The delay changes no decision, because
//! the steps for an empty queue do not depend on the time.
//!
//! Sizes are those of IP packets, as everywhere in a link. Linux counts 14 B of Ethernet header with each
//! packet, and has them in its quantum of 1514 B. So the quantum here is the link's MTU by default: one full
//! packet in both. `memory_limit` counts the packets' bytes; Linux counts the buffers that hold them, some
//! 2.3 kB for a full packet.
//!
//! A flow's hash depends on the link's random stream (RFC 8290 §4.1), so flows share a queue by chance, as
//! on a router. Fragments stay with their flow; a router puts all but the first elsewhere, since they have no
//! ports.

use std::collections::VecDeque;

use talkpath_units::{Bytes, Instant, Packets};

use crate::carried::{Carried, DropCause};
use crate::queue::codel::{Arithmetic, CodelParameters, Control, Exact, Taken};
use crate::queue::discipline::{Discipline, LinkFacts, Queued, Signals};
use crate::queue::limit::QueueLimit;

/// The configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCodel {
    /// How many packets may wait in all queues together.
    pub limit: Packets,
    /// How many bytes of packets may wait in all queues together.
    pub memory_limit: Bytes,
    /// Queues that flows are hashed to; at least 1.
    pub flows: u32,
    /// Bytes that a queue may send in its turn; at least 1. `None` is the link's MTU.
    pub quantum: Option<Bytes>,
    /// The control of each queue's delay.
    pub parameters: CodelParameters,
}

/// The queues of one link under FQ-CoDel.
#[derive(Debug)]
pub(crate) struct FqCodelQueue<T, A = Exact> {
    /// By hash: the index in `queues` of the queue for it, [`UNUSED`] if no flow with this hash has come yet.
    table: Box<[u32]>,
    queues: Vec<FlowQueue<T, A>>,
    /// RFC 8290 §4: the lists of active queues, by index in `queues`.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    /// Packets and bytes that wait in all queues together.
    packets: u32,
    bytes: Bytes,
    limit: Packets,
    memory_limit: Bytes,
    quantum: i64,
    parameters: CodelParameters,
    mtu: Bytes,
    perturbation: u64,
}

/// The queue of the flows with one hash.
#[derive(Debug)]
struct FlowQueue<T, A> {
    waiting: VecDeque<Queued<T>>,
    bytes: Bytes,
    /// Bytes that it may still send in this turn.
    deficit: i64,
    /// Whether it is in a list.
    active: bool,
    control: Control<A>,
}

impl<T: Carried, A: Arithmetic> FqCodelQueue<T, A> {
    /// Empty queues.
    pub(crate) fn new(config: &FqCodel, link: &LinkFacts) -> Self {
        let FqCodel { limit, memory_limit, flows, quantum, parameters } = *config;
        Self {
            table: vec![UNUSED; flows.max(1) as usize].into_boxed_slice(),
            queues: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: Bytes::ZERO,
            limit,
            memory_limit,
            quantum: signed(quantum.unwrap_or(link.mtu)).max(1),
            parameters,
            mtu: link.mtu,
            perturbation: link.perturbation,
        }
    }

    /// The index of the queue for a flow.
    #[inline]
    fn classify(&mut self, flow: u32) -> u32 {
        let place = self.place(flow);
        match self.table[place] {
            UNUSED => self.open(place),
            index => index,
        }
    }

    /// The place of a flow in the table.
    #[inline]
    fn place(&self, flow: u32) -> usize {
        let hash = mix(u64::from(flow) ^ self.perturbation);
        // The upper half of the hash, scaled to the table.
        (((hash >> 32) * self.table.len() as u64) >> 32) as usize
    }

    /// The first packet with this hash.
    #[cold]
    fn open(&mut self, place: usize) -> u32 {
        let index = self.queues.len() as u32;
        self.table[place] = index;
        self.queues.push(FlowQueue {
            waiting: VecDeque::new(),
            bytes: Bytes::ZERO,
            deficit: 0,
            active: false,
            control: Control::default(),
        });
        index
    }

    /// True if more waits than may.
    #[inline(always)]
    fn is_over_limit(&self) -> bool {
        u64::from(self.packets) > self.limit.get() || self.bytes > self.memory_limit
    }

    /// RFC 8290 §4.1: drops packets from the head of the queue with the most bytes, until at least half of
    /// its bytes, or a batch of packets, are gone.
    #[cold]
    fn drop_from_longest(&mut self, now: Instant, signals: &mut Signals<T>) {
        let mut longest = 0;
        for (index, queue) in self.queues.iter().enumerate() {
            if queue.bytes > self.queues[longest].bytes {
                longest = index;
            }
        }
        let queue = &mut self.queues[longest];
        let half = Bytes::new(queue.bytes.get() / 2);
        let (mut packets, mut bytes) = (0, Bytes::ZERO);
        while let Some(queued) = queue.waiting.pop_front() {
            packets += 1;
            bytes += queued.packet.wire_size();
            signals.drop(queued.packet, DropCause::QueueFull, now);
            if packets >= DROP_BATCH || bytes >= half {
                break;
            }
        }
        queue.bytes -= bytes;
        queue.control.on_overflow(packets);
        self.bytes -= bytes;
        self.packets -= packets;
    }
}

impl<T: Carried, A: Arithmetic> Discipline<T> for FqCodelQueue<T, A> {
    #[inline(never)]
    fn enqueue(&mut self, packet: T, _in_service: Bytes, now: Instant, signals: &mut Signals<T>) {
        let (index, size) = (self.classify(packet.flow_id()), packet.wire_size());
        let queue = &mut self.queues[index as usize];
        queue.waiting.push_back(Queued { packet, entered: now });
        queue.bytes += size;
        if !queue.active {
            queue.active = true;
            queue.deficit = self.quantum;
            self.new.push_back(index);
        }
        self.packets += 1;
        self.bytes += size;
        if self.is_over_limit() {
            self.drop_from_longest(now, signals);
        }
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Instant, signals: &mut Signals<T>) -> Option<Queued<T>> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let queue = &mut self.queues[index as usize];
            if queue.deficit <= 0 {
                queue.deficit += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let (packets, bytes) = (&mut self.packets, &mut self.bytes);
            let (waiting, its_bytes) = (&mut queue.waiting, &mut queue.bytes);
            let take = || {
                let queued = waiting.pop_front()?;
                let size = queued.packet.wire_size();
                *its_bytes -= size;
                *bytes -= size;
                *packets -= 1;
                Some(Taken { queued, behind: *bytes })
            };
            if let Some(queued) = queue.control.dequeue(&self.parameters, self.mtu, take, now, signals) {
                queue.deficit -= signed(queued.packet.wire_size());
                return Some(queued);
            }
            list.pop_front();
            // RFC 8290 §4.2: a new queue passes through the old ones, so that it cannot starve them by coming
            // back.
            if is_new && !self.old.is_empty() {
                self.old.push_back(index);
            } else {
                queue.active = false;
            }
        }
    }

    /// Takes a packet that comes to empty queues and an idle serialiser. The first `dequeue` is the one that
    /// found no packet when the serialiser became idle (see the module's text).
    fn pass(&mut self, packet: T, now: Instant, signals: &mut Signals<T>) -> Option<T> {
        let found = self.dequeue(now, signals);
        debug_assert!(found.is_none(), "a packet passes only if none waits");
        self.enqueue(packet, Bytes::ZERO, now, signals);
        self.dequeue(now, signals).map(|queued| queued.packet)
    }

    /// Drops from the heads of the longest queues (RFC 8290 §4.1).
    fn set_limit(&mut self, limit: QueueLimit, _in_service: Bytes, now: Instant, signals: &mut Signals<T>) {
        match limit {
            QueueLimit::Packets(limit) => self.limit = limit,
            QueueLimit::Bytes(limit) => self.memory_limit = limit,
        }
        let mut before = u32::MAX;
        // A packet of no bytes, which no host sends, would not be found.
        while self.packets < before && self.is_over_limit() {
            before = self.packets;
            self.drop_from_longest(now, signals);
        }
    }

    #[inline]
    fn len(&self) -> u32 {
        self.packets
    }

    fn drops_at_dequeue(&self) -> bool {
        true
    }
}

/// Bytes as deficits count them.
pub(super) fn signed(bytes: Bytes) -> i64 {
    i64::try_from(bytes.get()).unwrap_or(i64::MAX)
}

/// The output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): each bit of `x` changes half of
/// the bits.
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// No index: there are fewer queues.
const UNUSED: u32 = u32::MAX;
/// Linux's sch_fq_codel: `drop_batch` is 64 packets.
const DROP_BATCH: u32 = 64;

#[cfg(test)]
mod tests;

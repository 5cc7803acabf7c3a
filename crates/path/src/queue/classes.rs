//! Classes of packets by their DSCP (RFC 2474), and a queue for each class.
//!
//! A class is a set of codepoints. A packet whose codepoint is in no set belongs to one more class, the last:
//! best effort. In each queue packets leave in the order in which they came, and each queue has the limit of
//! the discipline to itself, so that no class takes the room of another. A packet that finds no room in its
//! queue is dropped.

use std::collections::VecDeque;

use talkpath_units::{Bytes, Instant};

use crate::carried::{Carried, DropCause};
use crate::dscp::Dscp;
use crate::queue::discipline::{Queued, Signals};
use crate::queue::limit::QueueLimit;

/// The number of codepoints: a DSCP has six bits (RFC 2474 §3).
const CODEPOINTS: usize = 64;

/// Tells to which class a packet belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    /// The class of each codepoint.
    of: [u8; CODEPOINTS],
    /// The number of classes, the last one included.
    count: u8,
}

impl Classes {
    /// Makes classes of these sets, in their order, and the last class. A codepoint that is in several sets
    /// belongs to the first of them. At most 64 sets count, because more would be empty.
    pub fn new(sets: &[Vec<Dscp>]) -> Self {
        let sets = &sets[..sets.len().min(CODEPOINTS)];
        let mut of = [sets.len() as u8; CODEPOINTS];
        for (class, set) in (0..sets.len() as u8).zip(sets).rev() {
            set.iter().for_each(|dscp| of[usize::from(dscp.number())] = class);
        }
        Self { of, count: sets.len() as u8 + 1 }
    }

    /// The number of classes, the last one included.
    pub const fn count(&self) -> u8 {
        self.count
    }

    /// The class of packets with this codepoint, from 0.
    pub fn of(&self, dscp: Dscp) -> u8 {
        self.of[usize::from(dscp.number())]
    }
}

/// The queues of all classes.
#[derive(Debug)]
pub(crate) struct ClassQueues<T> {
    classes: Classes,
    queues: Vec<ClassQueue<T>>,
    limit: QueueLimit,
    /// The number of packets in all queues.
    packets: u32,
}

/// The packets of one class that wait.
#[derive(Debug)]
struct ClassQueue<T> {
    waiting: VecDeque<Queued<T>>,
    bytes: Bytes,
}

impl<T: Carried> ClassQueues<T> {
    /// Empty queues, in each of which so much may wait as `limit` says.
    pub(crate) fn new(classes: &Classes, limit: QueueLimit) -> Self {
        let queue = |_| ClassQueue { waiting: VecDeque::new(), bytes: Bytes::ZERO };
        Self {
            queues: (0..classes.count()).map(queue).collect(),
            classes: classes.clone(),
            limit,
            packets: 0,
        }
    }

    /// Lets a packet wait in the queue of its class. Returns the class, or `None` if the packet was dropped.
    pub(crate) fn enqueue(&mut self, packet: T, now: Instant, signals: &mut Signals<T>) -> Option<u8> {
        let class = self.classes.of(packet.dscp());
        let queue = &mut self.queues[usize::from(class)];
        let size = packet.wire_size();
        if !self.limit.holds(queue.waiting.len() as u64 + 1, queue.bytes.saturating_add(size)) {
            signals.drop(packet, DropCause::QueueFull, now);
            return None;
        }
        queue.waiting.push_back(Queued { packet, entered: now });
        queue.bytes += size;
        self.packets += 1;
        Some(class)
    }

    /// Takes the first packet of a class.
    pub(crate) fn dequeue(&mut self, class: u8) -> Option<Queued<T>> {
        let queue = &mut self.queues[usize::from(class)];
        let queued = queue.waiting.pop_front()?;
        queue.bytes -= queued.packet.wire_size();
        self.packets -= 1;
        Some(queued)
    }

    /// The size of the first packet of a class. `None` if no packet of the class waits.
    pub(crate) fn next_size(&self, class: u8) -> Option<Bytes> {
        Some(self.queues[usize::from(class)].waiting.front()?.packet.wire_size())
    }

    /// Changes how much may wait in each queue. Drops the packets that came last.
    pub(crate) fn set_limit(&mut self, limit: QueueLimit, now: Instant, signals: &mut Signals<T>) {
        self.limit = limit;
        for queue in &mut self.queues {
            while !limit.holds(queue.waiting.len() as u64, queue.bytes)
                && let Some(queued) = queue.waiting.pop_back()
            {
                queue.bytes -= queued.packet.wire_size();
                self.packets -= 1;
                signals.drop(queued.packet, DropCause::QueueFull, now);
            }
        }
    }

    /// The number of packets in all queues.
    pub(crate) const fn len(&self) -> u32 {
        self.packets
    }

    /// The classes, in their order.
    pub(crate) const fn numbers(&self) -> core::ops::Range<u8> {
        0..self.classes.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_codepoint_of_no_set_belongs_to_the_last_class_and_one_of_two_sets_to_the_first() {
        let [ef, va, af41] = ["EF", "VA", "AF41"].map(|name| Dscp::named(name).unwrap());
        let classes = Classes::new(&[vec![ef, va], vec![af41, ef]]);
        assert_eq!((classes.count(), classes.of(ef), classes.of(va), classes.of(af41)), (3, 0, 0, 1));
        assert_eq!(classes.of(Dscp::default()), 2);
        assert_eq!(Classes::new(&[]).of(ef), 0, "without sets all packets are best effort");
    }
}

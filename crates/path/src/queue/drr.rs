//! Deficit round robin over classes by DSCP: each class has a quantum, and so its share of the link
//! (Shreedhar and Varghese 1995; Linux's sch_drr, and sch_ets with bandwidth-sharing bands).
//!
//! While all classes have packets to send, each has its quantum divided by the sum of all quanta as its share
//! of the bytes. What a class does not use goes to the others. The turns are in `turns`, as for `fq`, which
//! has a queue for each flow in place of one for each class.

use talkpath_units::{Bytes, Instant};

use crate::carried::Carried;
use crate::queue::classes::{ClassQueues, Classes};
use crate::queue::discipline::{Discipline, LinkFacts, Queued, Signals};
use crate::queue::limit::QueueLimit;
use crate::queue::turns::Turns;

/// The configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drr {
    /// The classes.
    pub classes: Classes,
    /// The bytes that each class may send in its turn, at least 1, in the order of the classes. `None`, and
    /// what is not there, is the link's MTU.
    pub quanta: Vec<Option<Bytes>>,
    /// How much may wait in each class.
    pub limit: QueueLimit,
}

/// The queues of one link under deficit round robin.
#[derive(Debug)]
pub(crate) struct DrrQueue<T> {
    queues: ClassQueues<T>,
    turns: Turns,
}

impl<T: Carried> DrrQueue<T> {
    /// Empty queues.
    pub(crate) fn new(config: &Drr, link: &LinkFacts) -> Self {
        let mut turns = Turns::default();
        for class in 0..config.classes.count() {
            let quantum = config.quanta.get(usize::from(class)).copied().flatten();
            turns.add(quantum.unwrap_or(link.mtu));
        }
        Self { queues: ClassQueues::new(&config.classes, config.limit), turns }
    }
}

impl<T: Carried> Discipline<T> for DrrQueue<T> {
    fn enqueue(&mut self, packet: T, _in_service: Bytes, now: Instant, signals: &mut Signals<T>) {
        if let Some(class) = self.queues.enqueue(packet, now, signals) {
            self.turns.join(u32::from(class));
        }
    }

    fn dequeue(&mut self, _now: Instant, _signals: &mut Signals<T>) -> Option<Queued<T>> {
        let queues = &self.queues;
        // Turns have the numbers of the classes, which fit into eight bits.
        let class = self.turns.next(|class| queues.next_size(class as u8))? as u8;
        let queued = self.queues.dequeue(class);
        if self.queues.next_size(class).is_none() {
            self.turns.leave();
        }
        queued
    }

    /// An idle serialiser takes the packet whatever the limit is.
    fn pass(&mut self, packet: T, _now: Instant, _signals: &mut Signals<T>) -> Option<T> {
        Some(packet)
    }

    /// Drops the newest packets of each class that has too many.
    fn set_limit(&mut self, limit: QueueLimit, _in_service: Bytes, now: Instant, signals: &mut Signals<T>) {
        self.queues.set_limit(limit, now, signals);
    }

    fn len(&self) -> u32 {
        self.queues.len()
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::Packets;

    use super::*;
    use crate::dscp::Dscp;
    use crate::occupancy::Window;
    use crate::queue::test_disciplines::Frame;

    fn queue(quanta: [u64; 3]) -> DrrQueue<Frame> {
        let set = |name| vec![Dscp::named(name).unwrap()];
        let config = Drr {
            classes: Classes::new(&[set("EF"), set("AF41")]),
            quanta: quanta.map(|quantum| Some(Bytes::new(quantum))).to_vec(),
            limit: QueueLimit::Packets(Packets::new(10_000)),
        };
        DrrQueue::new(&config, &LinkFacts { mtu: Bytes::new(1500), perturbation: 0 })
    }

    fn offer(queue: &mut DrrQueue<Frame>, name: &str, size: u64, signals: &mut Signals<Frame>) {
        let packet = Frame { dscp: Dscp::named(name).unwrap(), ..Frame::of_size(size) };
        queue.enqueue(packet, Bytes::ZERO, Instant::ZERO, signals);
    }

    #[test]
    fn classes_that_always_send_share_the_bytes_as_their_quanta_do_whatever_their_sizes() {
        let mut queue = queue([3000, 1500, 500]);
        let mut signals = Signals::new(Window::default());
        for _ in 0..4000 {
            offer(&mut queue, "EF", 200, &mut signals);
            offer(&mut queue, "AF41", 1500, &mut signals);
            offer(&mut queue, "CS0", 333, &mut signals);
        }
        let mut bytes = [0_u64; 3];
        for _ in 0..2000 {
            let sent = queue.dequeue(Instant::ZERO, &mut signals).unwrap().packet;
            let class = match sent.dscp.to_string().as_str() {
                "EF" => 0,
                "AF41" => 1,
                _ => 2,
            };
            bytes[class] += sent.wire_size().get();
        }
        // §4 of the paper: after n turns a class has sent n quanta, less than one packet and one quantum off.
        let turns = bytes[1] as f64 / 1500.0;
        for (sent, (quantum, largest)) in
            bytes.into_iter().zip([(3000.0, 200.0), (1500.0, 1500.0), (500.0, 333.0)])
        {
            assert!((sent as f64 - turns * quantum).abs() <= quantum + largest, "{bytes:?}");
        }
    }

    #[test]
    fn a_class_without_packets_leaves_its_share_to_the_others() {
        let mut queue = queue([3000, 1500, 500]);
        let mut signals = Signals::new(Window::default());
        (0..5).for_each(|_| offer(&mut queue, "CS0", 1500, &mut signals));
        let sent = core::iter::from_fn(|| queue.dequeue(Instant::ZERO, &mut signals)).count();
        assert_eq!((sent, queue.turns.is_empty(), queue.len()), (5, true, 0));
    }
}

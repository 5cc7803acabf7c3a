//! Strict priority: the first class that holds packets sends, and the others wait (Linux's sch_prio, and
//! sch_ets with strict bands).
//!
//! A packet in service is not interrupted. So a packet of the first class waits for packets of its own class
//! and for the rest of one service. A class that always has packets to send starves all classes behind it.

use talkpath_units::{Bytes, Instant};

use crate::carried::Carried;
use crate::queue::classes::{ClassQueues, Classes};
use crate::queue::discipline::{Discipline, LinkFacts, Queued, Signals};
use crate::queue::limit::QueueLimit;

/// The configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Priority {
    /// The classes, the most important one first.
    pub classes: Classes,
    /// How much may wait in each class.
    pub limit: QueueLimit,
}

/// The queues of one link under strict priority.
#[derive(Debug)]
pub(crate) struct PriorityQueue<T> {
    queues: ClassQueues<T>,
}

impl<T: Carried> PriorityQueue<T> {
    /// Empty queues.
    pub(crate) fn new(config: &Priority, _link: &LinkFacts) -> Self {
        Self { queues: ClassQueues::new(&config.classes, config.limit) }
    }
}

impl<T: Carried> Discipline<T> for PriorityQueue<T> {
    fn enqueue(&mut self, packet: T, _in_service: Bytes, now: Instant, signals: &mut Signals<T>) {
        self.queues.enqueue(packet, now, signals);
    }

    fn dequeue(&mut self, _now: Instant, _signals: &mut Signals<T>) -> Option<Queued<T>> {
        self.queues.numbers().find_map(|class| self.queues.dequeue(class))
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

    fn named(name: &str) -> Dscp {
        Dscp::named(name).unwrap()
    }

    /// Packets of these codepoints that come all at once, numbered from 0; which of them leave, in order, and
    /// which are dropped.
    fn serve(limit: QueueLimit, codepoints: &[&str]) -> (Vec<u64>, Vec<u64>) {
        let classes = Classes::new(&[vec![named("EF"), named("VA")], vec![named("AF41")]]);
        let link = LinkFacts { mtu: Bytes::new(1500), perturbation: 0 };
        let mut queue = PriorityQueue::new(&Priority { classes, limit }, &link);
        let mut signals = Signals::new(Window::default());
        for (&name, number) in codepoints.iter().zip(0..) {
            let packet = Frame { number, dscp: named(name), ..Frame::of_size(100) };
            queue.enqueue(packet, Bytes::ZERO, Instant::ZERO, &mut signals);
        }
        let sent = core::iter::from_fn(|| queue.dequeue(Instant::ZERO, &mut signals));
        let sent = sent.map(|queued| queued.packet.number).collect();
        let dropped = core::iter::from_fn(|| signals.pop_drop()).map(|(_, it)| it.packet.number).collect();
        assert_eq!(queue.len(), 0);
        (sent, dropped)
    }

    #[test]
    fn the_first_class_with_packets_sends_and_each_class_keeps_its_order() {
        let packets = ["CS0", "AF41", "EF", "CS0", "VA", "AF41", "EF"];
        let (sent, dropped) = serve(QueueLimit::Packets(Packets::new(9)), &packets);
        assert_eq!((sent, dropped), (vec![2, 4, 6, 1, 5, 0, 3], vec![]));
    }

    #[test]
    fn a_full_class_drops_its_own_arrivals_and_takes_no_room_of_another() {
        let packets = ["CS0", "CS0", "CS0", "EF", "AF41", "CS0"];
        let (sent, dropped) = serve(QueueLimit::Packets(Packets::new(2)), &packets);
        assert_eq!((sent, dropped), (vec![3, 4, 0, 1], vec![2, 5]));
        let (sent, dropped) = serve(QueueLimit::Bytes(Bytes::new(199)), &packets);
        assert_eq!((sent, dropped), (vec![3, 4, 0], vec![1, 2, 5]));
    }
}

//! The event queue: when each entity (a link, an endpoint) wants to be woken.
//!
//! An entity has at most one live entry. Arming it for a later time than it is armed for does nothing: it is woken at
//! the earlier one, finds nothing due and arms itself again. A retransmission timer that every ACK pushes back thus
//! costs nothing per ACK. Ties are broken by insertion number, so a run is the same on every machine.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use talkpath_units::Instant;

/// Index of a link or an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entity(pub(crate) u32);

/// Who is woken when.
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<Entry>>,
    /// By entity: the time of its live entry, `Instant::MAX` where it has none.
    armed: Vec<Instant>,
    insertions: u64,
}

/// Ordered by time, then by insertion number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at: Instant,
    /// Insertion number in the upper 40 bits, entity in the lower 24: one comparison, 16 bytes an entry.
    order: u64,
}

/// Bits of [`Entry::order`] that hold the entity: 16 million links and endpoints.
const ENTITY_BITS: u32 = 24;

impl EventQueue {
    /// A queue for `entities` entities, none of them armed.
    pub(crate) fn new(entities: usize) -> Self {
        assert!(entities < 1 << ENTITY_BITS, "a scenario has fewer than 2^24 links and endpoints");
        Self { heap: BinaryHeap::new(), armed: vec![Instant::MAX; entities], insertions: 0 }
    }

    /// Wakes `entity` at `at` or before.
    pub(crate) fn arm(&mut self, entity: Entity, at: Instant) {
        let armed = &mut self.armed[entity.0 as usize];
        if at >= *armed {
            return;
        }
        *armed = at;
        let order = self.insertions << ENTITY_BITS | u64::from(entity.0);
        self.insertions += 1;
        self.heap.push(Reverse(Entry { at, order }));
    }

    /// The next entity to wake and the time; it is disarmed by this.
    pub(crate) fn pop(&mut self) -> Option<(Instant, Entity)> {
        while let Some(Reverse(entry)) = self.heap.pop() {
            let entity = Entity((entry.order & ((1 << ENTITY_BITS) - 1)) as u32);
            let armed = &mut self.armed[entity.0 as usize];
            // An entry that was superseded by an earlier one is stale.
            if *armed == entry.at {
                *armed = Instant::MAX;
                return Some((entry.at, entity));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn entities_wake_in_time_order_and_ties_in_order_of_arming() {
        let mut queue = EventQueue::new(3);
        queue.arm(Entity(2), at(5));
        queue.arm(Entity(1), at(5));
        queue.arm(Entity(0), at(1));
        let order: Vec<_> = core::iter::from_fn(|| queue.pop()).map(|(_, entity)| entity.0).collect();
        assert_eq!(order, [0, 2, 1]);
    }

    #[test]
    fn an_earlier_wake_supersedes_and_a_later_one_is_lazy() {
        let mut queue = EventQueue::new(1);
        queue.arm(Entity(0), at(9));
        queue.arm(Entity(0), at(4));
        queue.arm(Entity(0), at(7));
        assert_eq!(queue.pop(), Some((at(4), Entity(0))));
        assert_eq!(queue.pop(), None, "the entry at 9 is stale");
    }
}

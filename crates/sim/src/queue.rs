//! The event queue: when each entity (a link, an endpoint) wants to be woken.
//!
//! Each entity has at most one entry, so the queue is as large as the number of entities that wait for something, not
//! of packets under way.
//!
//! ```text
//!  level 2   . . X . . . .    64 slots of 4 ms        The level is the highest of time's digits (base 64, in ticks of
//!  level 1   . . . . X X .    64 slots of 66 us       1,024 ns) in which an entry differs from the present, the slot
//!  level 0   . X . X . . .    64 slots of 1 us        is that digit: all of a level comes before all of the next.
//! ```
//!
//! It is a hierarchical timing wheel (Varghese and Lauck, "Hashed and hierarchical timing wheels", 1987, scheme 7) that
//! never ticks: a bit for each level and slot that holds something leads to the next entry at once. What else is in its
//! slot then moves down to where its next digit says. The cost of an entry thus depends on how close events follow each
//! other and not on how many wait. Slots are lists through the entities themselves: nothing is allocated.
//!
//! Arming an entity for a later time than it is armed for does nothing: it is woken at the earlier one, finds nothing
//! due and arms itself again. A retransmission timer that every ACK pushes back thus costs nothing per ACK. Ties are
//! broken by insertion number, whatever slots and lists look like, so a run is the same on every machine.

use talkpath_units::Instant;

/// Index of a link or an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entity(pub(crate) u32);

/// Who is woken when.
pub(crate) struct EventQueue {
    /// The latest wake, in nanoseconds; no entry is earlier.
    now: u64,
    insertions: u64,
    /// A bit for each level that holds something, and for each such slot of a level.
    levels: u32,
    slots: [u64; LEVELS],
    /// By level and slot: the first entity of its list.
    heads: [u32; LEVELS * SLOTS],
    /// By entity.
    entries: Vec<Entry>,
}

/// When an entity is woken, and its place in a list.
#[derive(Clone, Copy)]
struct Entry {
    /// Nanoseconds; [`UNARMED`] where it is not armed.
    at: u64,
    insertion: u64,
    /// The next entity of the list.
    next: u32,
    /// Which list: level and slot.
    place: u32,
}

/// Nanoseconds in a tick, as a power of two. Chosen: of the order of the time between two events of a fast link, so that
/// a slot of the lowest level rarely holds two.
const TICK_BITS: u32 = 10;
/// Slots of a level, as a power of two: as many as a machine word has bits.
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// Enough for all 64 bits of a time.
const LEVELS: usize = (u64::BITS - TICK_BITS).div_ceil(SLOT_BITS) as usize;
/// The end of a list.
const NOBODY: u32 = u32::MAX;
const UNARMED: u64 = u64::MAX;

impl EventQueue {
    /// A queue for `entities` entities, none of them armed.
    pub(crate) fn new(entities: usize) -> Self {
        assert!(entities < NOBODY as usize, "a scenario has fewer than 2^32 links and endpoints");
        let entry = Entry { at: UNARMED, insertion: 0, next: NOBODY, place: 0 };
        Self {
            now: 0,
            insertions: 0,
            levels: 0,
            slots: [0; LEVELS],
            heads: [NOBODY; LEVELS * SLOTS],
            entries: vec![entry; entities],
        }
    }

    /// The next entity to wake and the time. [`EventQueue::settle`] must follow its waking; until then it counts as armed
    /// for this time.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<(Instant, Entity)> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        let slot = self.slots[level].trailing_zeros() as usize;
        let place = level * SLOTS + slot;
        let first = self.heads[place];
        let entry = self.entries[first as usize];
        if entry.next == NOBODY {
            self.empty(place);
            self.now = entry.at;
            return Some((Instant::from_nanos(entry.at), Entity(first)));
        }
        Some(self.next_of_several(place))
    }

    /// Wakes `entity` at `at` or before.
    #[inline]
    pub(crate) fn arm(&mut self, entity: Entity, at: Instant) {
        let armed = self.entries[entity.0 as usize].at;
        if at.as_nanos() < armed {
            if armed != UNARMED {
                self.unlink(entity.0);
            }
            self.insert(entity.0, at.as_nanos());
        }
    }

    /// The entity that `next` named was woken: it wants to be woken again at `at`, or not.
    #[inline]
    pub(crate) fn settle(&mut self, entity: Entity, at: Option<Instant>) {
        match at {
            Some(at) => self.insert(entity.0, at.as_nanos()),
            None => self.entries[entity.0 as usize].at = UNARMED,
        }
    }

    #[inline]
    fn insert(&mut self, entity: u32, at: u64) {
        self.insertions += 1;
        let entry = &mut self.entries[entity as usize];
        entry.at = at;
        entry.insertion = self.insertions;
        self.link(entity);
    }

    /// Puts an entity that is armed into the list where its time belongs.
    #[inline]
    fn link(&mut self, entity: u32) {
        let entry = &mut self.entries[entity as usize];
        debug_assert!(entry.at >= self.now, "time went back");
        // The lowest bit of the difference changes no level and spares a case.
        let level = (((entry.at ^ self.now) >> TICK_BITS) | 1).ilog2() / SLOT_BITS;
        let slot = (entry.at >> (TICK_BITS + level * SLOT_BITS)) as usize % SLOTS;
        let place = level as usize * SLOTS + slot;
        entry.place = place as u32;
        entry.next = core::mem::replace(&mut self.heads[place], entity);
        self.slots[level as usize] |= 1 << slot;
        self.levels |= 1 << level;
    }

    /// Takes all out of a list.
    #[inline]
    fn empty(&mut self, place: usize) {
        self.heads[place] = NOBODY;
        let slots = &mut self.slots[place / SLOTS];
        *slots &= !(1 << (place % SLOTS));
        if *slots == 0 {
            self.levels &= !(1 << (place / SLOTS));
        }
    }

    /// Takes `entity` out of its list.
    fn unlink(&mut self, entity: u32) {
        let Entry { next, place, .. } = self.entries[entity as usize];
        let place = place as usize;
        let mut before = self.heads[place];
        if before != entity {
            while self.entries[before as usize].next != entity {
                before = self.entries[before as usize].next;
            }
            self.entries[before as usize].next = next;
        } else if next == NOBODY {
            self.empty(place);
        } else {
            self.heads[place] = next;
        }
    }

    /// As `next`, from a list of more than one.
    fn next_of_several(&mut self, place: usize) -> (Instant, Entity) {
        let mut foremost = self.heads[place];
        let mut key = self.key(foremost);
        let mut entity = self.entries[foremost as usize].next;
        while entity != NOBODY {
            if self.key(entity) < key {
                (foremost, key) = (entity, self.key(entity));
            }
            entity = self.entries[entity as usize].next;
        }
        self.unlink(foremost);
        self.now = key.0;
        if place >= SLOTS {
            // The present is in this slot now: what is left differs from it in a lower digit.
            let mut left = self.heads[place];
            self.empty(place);
            while left != NOBODY {
                let next = self.entries[left as usize].next;
                self.link(left);
                left = next;
            }
        }
        (Instant::from_nanos(key.0), Entity(foremost))
    }

    fn key(&self, entity: u32) -> (u64, u64) {
        let Entry { at, insertion, .. } = self.entries[entity as usize];
        (at, insertion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// Takes the foremost entry out.
    fn pop(queue: &mut EventQueue) -> Option<(Instant, Entity)> {
        let (at, entity) = queue.next()?;
        queue.settle(entity, None);
        Some((at, entity))
    }

    #[test]
    fn entities_wake_in_time_order_and_ties_in_order_of_arming() {
        let mut queue = EventQueue::new(3);
        queue.arm(Entity(2), at(5));
        queue.arm(Entity(1), at(5));
        queue.arm(Entity(0), at(1));
        let order: Vec<_> = core::iter::from_fn(|| pop(&mut queue)).map(|(_, entity)| entity.0).collect();
        assert_eq!(order, [0, 2, 1]);
    }

    #[test]
    fn an_earlier_wake_supersedes_and_a_later_one_is_lazy() {
        let mut queue = EventQueue::new(1);
        queue.arm(Entity(0), at(9));
        queue.arm(Entity(0), at(4));
        queue.arm(Entity(0), at(7));
        assert_eq!(pop(&mut queue), Some((at(4), Entity(0))));
        assert_eq!(pop(&mut queue), None);
    }

    #[test]
    fn the_end_of_time_can_be_waited_for() {
        let mut queue = EventQueue::new(2);
        let late = Instant::from_nanos(u64::MAX - 1);
        queue.arm(Entity(0), late);
        queue.arm(Entity(1), Instant::from_nanos(1));
        assert_eq!(pop(&mut queue), Some((Instant::from_nanos(1), Entity(1))));
        assert_eq!(pop(&mut queue), Some((late, Entity(0))));
    }

    proptest! {
        /// The same wakes as a sorted list of (time, insertion number) would give.
        #[test]
        fn it_wakes_as_a_sorted_list_would(steps in proptest::collection::vec((0_u32..20, 0_u64..50, 0_u32..40, any::<bool>()), 1..300)) {
            let mut queue = EventQueue::new(20);
            let mut list: Vec<(Instant, u64, Entity)> = Vec::new();
            let mut now = 0;
            for (number, (entity, later, scale, wake)) in steps.into_iter().enumerate() {
                let entity = Entity(entity);
                // From ties to days.
                let later = later << scale;
                if wake {
                    list.sort();
                    let expected = (!list.is_empty()).then(|| list.remove(0)).map(|(at, _, entity)| (at, entity));
                    prop_assert_eq!(queue.next(), expected);
                    let Some((woken, entity)) = expected else { continue };
                    now = woken.as_nanos();
                    let again = number % 2 == 0;
                    let next = Instant::from_nanos(now + later);
                    queue.settle(entity, again.then_some(next));
                    if again {
                        list.push((next, number as u64, entity));
                    }
                } else {
                    let next = Instant::from_nanos(now + later);
                    queue.arm(entity, next);
                    let armed = list.iter().position(|&(_, _, other)| other == entity);
                    if armed.is_none_or(|index| next < list[index].0) {
                        if let Some(index) = armed {
                            list.remove(index);
                        }
                        list.push((next, number as u64, entity));
                    }
                }
            }
        }
    }
}

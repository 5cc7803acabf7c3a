//! The event queue: when each entity (a link, an endpoint) wants to be woken.
//!
//! Each entity has at most one entry, so the queue is as large as the number of entities that wait for something, not
//! of packets under way.
//!
//! ```text
//!  level 2   . . X . . . .    4,096 slots of 17 s     The level is the highest of time's digits (base 4,096, in ticks, here of
//!  level 1   . . . . X X .    4,096 slots of 4 ms     1,024 ns) in which an entry differs from the present, the slot
//!  level 0   . X . X . . .    4,096 slots of 1 us     is that digit: all of a level comes before all of the next.
//! ```
//!
//! It is a hierarchical timing wheel (Varghese and Lauck, "Hashed and hierarchical timing wheels", 1987, scheme 7) that
//! never ticks: a bit for each slot that holds something, and one for each 64 of those, lead to the next entry at once.
//! A slot that is reached in a higher level moves down to where its entries' next digits say, which an entry pays for once
//! in most runs. The cost of an entry thus depends on how close events follow each
//! other and not on how many wait. Slots are lists through the entities themselves: nothing is allocated.
//!
//! Arming an entity for a later time than it is armed for does nothing: it is woken at the earlier one, finds nothing
//! due and arms itself again. A retransmission timer that every ACK pushes back thus costs nothing per ACK.
//!
//! Ties are broken by the order of insertion, so a run is the same on every machine. No number is kept for it: a list holds the
//! latest first, since what is inserted goes to its front, and what moves down does so in that order into lists that are
//! empty. (Once a slot's entries have moved down, nothing is inserted above them for a time within that slot.)

use talkpath_units::{Duration, Instant};

/// Index of a link or an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entity(pub(crate) u32);

/// Who is woken when.
pub(crate) struct EventQueue {
    /// The latest wake, in nanoseconds, or the beginning of the slot that was moved down last; no entry is earlier.
    now: u64,
    /// Nanoseconds in a tick, as a power of two.
    tick_bits: u32,
    /// A bit for each level that holds something, but for the lowest.
    levels: u32,
    occupied: [Occupied; LEVELS],
    /// By level and slot: the first entity of its list, which is the latest inserted.
    heads: Box<[[u32; SLOTS]; LEVELS]>,
    /// By entity.
    entries: Vec<Entry>,
}

/// Which slots of a level hold something: a bit for each, and one for each word of those.
#[derive(Clone, Copy)]
struct Occupied {
    words: u64,
    slots: [u64; WORDS],
}

/// When an entity is woken, and its place in a list.
#[derive(Clone, Copy)]
struct Entry {
    /// Nanoseconds; [`UNARMED`] where it is not armed.
    at: u64,
    /// The next entity of the list, inserted before this one.
    next: u32,
    /// Which list: level and slot.
    place: u32,
}

/// A tick is as long as events are apart, halved so many times and rounded down to a power of two. Chosen by measurement: a slot
/// of the lowest level then rarely holds two, and most of what is armed is on that level.
const TICK_SHIFT: u32 = 3;
/// The bounds of a tick, as powers of two of nanoseconds: 256 ns and 1 ms.
const TICK_BITS: (u32, u32) = (8, 20);
/// Slots of a level, as a power of two: as many as two machine words' bits lead to.
const SLOT_BITS: u32 = 12;
const SLOTS: usize = 1 << SLOT_BITS;
const WORD_BITS: u32 = u64::BITS.ilog2();
const WORDS: usize = SLOTS >> WORD_BITS;
/// Enough for all 64 bits of a time.
const LEVELS: usize = (u64::BITS - TICK_BITS.0).div_ceil(SLOT_BITS) as usize;
/// The end of a list.
const NOBODY: u32 = u32::MAX;
const UNARMED: u64 = u64::MAX;

impl Occupied {
    /// The first slot that holds something; some slot does.
    #[inline]
    fn first(&self) -> usize {
        let word = self.words.trailing_zeros() as usize % WORDS;
        (word << WORD_BITS | self.slots[word].trailing_zeros() as usize) % SLOTS
    }

    /// Takes out `slot`, which is the first.
    #[inline]
    fn remove_first(&mut self, slot: usize) {
        let slots = &mut self.slots[slot >> WORD_BITS];
        *slots &= slots.wrapping_sub(1);
        if *slots == 0 {
            self.words &= self.words.wrapping_sub(1);
        }
    }

    #[inline]
    fn add(&mut self, slot: usize) {
        self.slots[slot >> WORD_BITS] |= 1 << (slot % (1 << WORD_BITS));
        self.words |= 1 << (slot >> WORD_BITS);
    }

    /// Returns whether that was the last one.
    #[inline]
    fn remove(&mut self, slot: usize) -> bool {
        let slots = &mut self.slots[slot >> WORD_BITS];
        *slots &= !(1 << (slot % (1 << WORD_BITS)));
        if *slots == 0 {
            self.words &= !(1 << (slot >> WORD_BITS));
        }
        self.words == 0
    }
}

impl EventQueue {
    /// A queue for `entities` entities, none of them armed, whose events are about `apart` from each other.
    pub(crate) fn new(entities: usize, apart: Duration) -> Self {
        assert!(entities < NOBODY as usize, "a scenario has fewer than 2^32 links and endpoints");
        let entry = Entry { at: UNARMED, next: NOBODY, place: 0 };
        Self {
            now: 0,
            tick_bits: (apart.as_nanos() >> TICK_SHIFT).max(1).ilog2().clamp(TICK_BITS.0, TICK_BITS.1),
            levels: 0,
            occupied: [Occupied { words: 0, slots: [0; WORDS] }; LEVELS],
            heads: Box::new([[NOBODY; SLOTS]; LEVELS]),
            entries: vec![entry; entities],
        }
    }

    /// The next entity to wake and the time. [`EventQueue::settle`] must follow its waking; until then it counts as armed
    /// for this time.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<(Instant, Entity)> {
        // Most of what comes next is on the lowest level.
        if self.occupied[0].words == 0
            && let Some(found) = self.next_from_above()
        {
            return found;
        }
        let slot = self.occupied[0].first();
        let first = self.heads[0][slot];
        let Entry { at, next, .. } = self.entries[first as usize];
        if next != NOBODY {
            return Some(self.next_of_several(slot));
        }
        self.heads[0][slot] = NOBODY;
        self.occupied[0].remove_first(slot);
        self.now = at;
        Some((Instant::from_nanos(at), Entity(first)))
    }

    /// As `next`, where nothing is on the lowest level; `None` where something is now.
    #[inline(never)]
    fn next_from_above(&mut self) -> Option<Option<(Instant, Entity)>> {
        while self.occupied[0].words == 0 {
            if self.levels == 0 {
                return Some(None);
            }
            let level = self.levels.trailing_zeros() as usize % LEVELS;
            let slot = self.occupied[level].first();
            let first = self.heads[level][slot];
            let Entry { at, next, .. } = self.entries[first as usize];
            if next == NOBODY {
                self.empty(level, slot);
                self.now = at;
                return Some(Some((Instant::from_nanos(at), Entity(first))));
            }
            self.move_down(level, slot);
        }
        None
    }

    /// Wakes `entity` at `at` or before.
    #[inline(always)]
    pub(crate) fn arm(&mut self, entity: Entity, at: Instant) {
        let armed = self.entries[entity.0 as usize].at;
        if at.as_nanos() < armed {
            if armed != UNARMED {
                self.unlink(entity.0);
            }
            self.insert(entity.0, at.as_nanos());
        }
    }

    /// The entity that `next` named was woken: it wants to be woken again at `at`, or not ([`Instant::MAX`]).
    #[inline(always)]
    pub(crate) fn settle(&mut self, entity: Entity, at: Instant) {
        match at {
            Instant::MAX => self.entries[entity.0 as usize].at = UNARMED,
            at => self.insert(entity.0, at.as_nanos()),
        }
    }

    #[inline(always)]
    fn insert(&mut self, entity: u32, at: u64) {
        debug_assert!(at >= self.now, "time went back");
        let differs = (at ^ self.now) >> self.tick_bits;
        // Told apart so that the usual case, the next milliseconds, is all constants.
        if differs < SLOTS as u64 {
            self.put(entity, 0, at);
        } else {
            self.put_above(entity, (differs.ilog2() / SLOT_BITS) as usize, at);
        }
    }

    #[inline(never)]
    fn put_above(&mut self, entity: u32, level: usize, at: u64) {
        self.levels |= 1 << level;
        self.put(entity, level, at);
    }

    #[inline(always)]
    fn put(&mut self, entity: u32, level: usize, at: u64) {
        let slot = (at >> (self.tick_bits + level as u32 * SLOT_BITS)) as usize % SLOTS;
        let next = core::mem::replace(&mut self.heads[level][slot], entity);
        self.entries[entity as usize] = Entry { at, next, place: (level * SLOTS + slot) as u32 };
        self.occupied[level].add(slot);
    }

    /// Takes all out of a list.
    #[inline]
    fn empty(&mut self, level: usize, slot: usize) {
        self.heads[level][slot] = NOBODY;
        if self.occupied[level].remove(slot) {
            self.levels &= !(1 << level);
        }
    }

    /// Takes `entity` out of its list.
    #[inline(never)]
    fn unlink(&mut self, entity: u32) {
        let Entry { next, place, .. } = self.entries[entity as usize];
        let (level, slot) = (place as usize / SLOTS, place as usize % SLOTS);
        let mut before = self.heads[level][slot];
        if before != entity {
            while self.entries[before as usize].next != entity {
                before = self.entries[before as usize].next;
            }
            self.entries[before as usize].next = next;
        } else if next == NOBODY {
            self.empty(level, slot);
        } else {
            self.heads[level][slot] = next;
        }
    }

    /// As `next`, from a list of more than one on the lowest level.
    #[inline(never)]
    fn next_of_several(&mut self, slot: usize) -> (Instant, Entity) {
        let mut entity = self.heads[0][slot];
        let (mut foremost, mut earliest) = (entity, UNARMED);
        while entity != NOBODY {
            let Entry { at, next, .. } = self.entries[entity as usize];
            // Of two at one time the later in the list was inserted first.
            if at <= earliest {
                (foremost, earliest) = (entity, at);
            }
            entity = next;
        }
        self.unlink(foremost);
        self.now = earliest;
        (Instant::from_nanos(earliest), Entity(foremost))
    }

    /// Nothing is left before this list of a higher level: the present moves to where its slot begins, and what is in it
    /// differs from that in a lower digit.
    fn move_down(&mut self, level: usize, slot: usize) {
        let mut entity = self.heads[level][slot];
        self.empty(level, slot);
        let within = self.tick_bits + level as u32 * SLOT_BITS;
        self.now = self.entries[entity as usize].at >> within << within;
        let mut oldest = NOBODY;
        while entity != NOBODY {
            let next = core::mem::replace(&mut self.entries[entity as usize].next, oldest);
            oldest = core::mem::replace(&mut entity, next);
        }
        while oldest != NOBODY {
            let Entry { at, next, .. } = self.entries[oldest as usize];
            self.insert(oldest, at);
            oldest = next;
        }
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
        queue.settle(entity, Instant::MAX);
        Some((at, entity))
    }

    #[test]
    fn entities_wake_in_time_order_and_ties_in_order_of_arming() {
        let mut queue = EventQueue::new(3, Duration::from_micros(8));
        queue.arm(Entity(2), at(5));
        queue.arm(Entity(1), at(5));
        queue.arm(Entity(0), at(1));
        let order: Vec<_> = core::iter::from_fn(|| pop(&mut queue)).map(|(_, entity)| entity.0).collect();
        assert_eq!(order, [0, 2, 1]);
    }

    #[test]
    fn an_earlier_wake_supersedes_and_a_later_one_is_lazy() {
        let mut queue = EventQueue::new(1, Duration::from_micros(8));
        queue.arm(Entity(0), at(9));
        queue.arm(Entity(0), at(4));
        queue.arm(Entity(0), at(7));
        assert_eq!(pop(&mut queue), Some((at(4), Entity(0))));
        assert_eq!(pop(&mut queue), None);
    }

    #[test]
    fn the_end_of_time_can_be_waited_for() {
        let mut queue = EventQueue::new(2, Duration::from_micros(8));
        let late = Instant::from_nanos(u64::MAX - 1);
        queue.arm(Entity(0), late);
        queue.arm(Entity(1), Instant::from_nanos(1));
        assert_eq!(pop(&mut queue), Some((Instant::from_nanos(1), Entity(1))));
        assert_eq!(pop(&mut queue), Some((late, Entity(0))));
    }

    proptest! {
        /// The same wakes as a sorted list of (time, insertion number) would give.
        #[test]
        fn it_wakes_as_a_sorted_list_would(steps in proptest::collection::vec((0_u32..20, 0_u64..50, 0_u32..40, any::<bool>()), 1..300), apart in 0_u32..40) {
            let mut queue = EventQueue::new(20, Duration::from_nanos(1 << apart));
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
                    queue.settle(entity, if again { next } else { Instant::MAX });
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

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
//! other and not on how many wait. A slot of the lowest level, which most entries meet alone, holds its one entry itself; more
//! than one, and those of higher levels, are lists through the entities. Nothing is allocated.
//!
//! A link is scheduled when it has something to come out ([`EventQueue::schedule`]). An endpoint is armed: for a later time than it
//! is armed for does nothing ([`EventQueue::arm`]); it is woken at the earlier one, finds nothing due and is armed again. A
//! retransmission timer that every ACK pushes back thus costs nothing per ACK.
//!
//! Ties are broken by the order of insertion, so a run is the same on every machine. No number is kept for it: a list holds the
//! latest first, since what is inserted goes to its front, and what moves down does so in that order into lists that are
//! empty. (Once a slot's entries have moved down, nothing is inserted above them for a time within that slot.)

use core::num::NonZeroU64;

use talkpath_units::{Duration, Instant};

use crate::prefetch;

/// Index of a link or an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entity(pub(crate) u32);

impl Entity {
    /// None of them.
    pub(crate) const NONE: Self = Self(NOBODY);
}

/// Who is woken when.
pub(crate) struct EventQueue {
    /// Where the lowest level begins, in nanoseconds: the present in its higher digits, which change only as something is taken from a
    /// higher level. No entry is earlier.
    base: u64,
    /// Nanoseconds in a tick, as a power of two.
    tick_bits: u32,
    /// A bit for each level that holds something, but for the lowest.
    levels: u32,
    occupied: [Occupied; LEVELS],
    /// The lowest level, by slot; stale where nothing is in it.
    near: Box<[Near; SLOTS]>,
    /// The other levels, by level and slot: the first entity of its list, which is the latest inserted.
    far: Box<[[u32; SLOTS]; LEVELS - 1]>,
    /// By entity, for those in a list.
    entries: Vec<Entry>,
    /// By entity, for those that are armed: when, in nanoseconds; [`UNARMED`] where it is not.
    armed: Vec<u64>,
}

/// Which slots of a level hold something: a bit for each, and one for each word of those.
#[derive(Clone, Copy)]
struct Occupied {
    words: u64,
    slots: [u64; WORDS],
}

/// What a slot of the lowest level holds: one entry, as the entity and how long after the level's beginning it is woken, which is less
/// than 2^32 ns, or the first entity of a list.
#[derive(Clone, Copy)]
struct Near(u64);

/// When an entity in a list is woken, in nanoseconds, and its neighbours there: the next one was inserted before this one, the
/// previous one after it. With both it is taken out without a walk, of which each step would wait for memory.
#[derive(Clone, Copy)]
struct Entry {
    at: u64,
    next: u32,
    previous: u32,
}

/// A tick is as long as events are apart, halved so many times and rounded down to a power of two. Chosen by measurement: a slot
/// of the lowest level then rarely holds two, and most of what is armed is on that level.
const TICK_SHIFT: u32 = 3;
/// The bounds of a tick, as powers of two of nanoseconds: 256 ns and 1 ms. With the latter the lowest level spans all that
/// half of a [`Near`] can tell.
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
const _: () = assert!(TICK_BITS.1 + SLOT_BITS <= u32::BITS, "the lowest level lies within half of a time");

impl Near {
    /// Set where this is a list: the sign of the lower half.
    const SEVERAL: u64 = 1 << 31;

    #[inline(always)]
    const fn one(entity: u32, after_base: u64) -> Self {
        Self(after_base << 32 | entity as u64)
    }

    const fn list(first: u32) -> Self {
        Self(Self::SEVERAL | first as u64)
    }

    #[inline(always)]
    const fn is_list(self) -> bool {
        (self.0 as u32).cast_signed() < 0
    }

    /// The entity, or the first of the list.
    #[inline(always)]
    const fn entity(self) -> u32 {
        (self.0 & (Self::SEVERAL - 1)) as u32
    }

    /// When the one entry is woken.
    #[inline(always)]
    const fn at(self, base: u64) -> u64 {
        base + (self.0 >> 32)
    }
}

impl Occupied {
    /// The first slot that holds something.
    #[inline(always)]
    fn first(&self) -> Option<usize> {
        let word = NonZeroU64::new(self.words)?.trailing_zeros() as usize % WORDS;
        Some((word << WORD_BITS | self.slots[word].trailing_zeros() as usize) % SLOTS)
    }

    /// The slot after `first`, which is the first.
    #[inline(always)]
    fn after(&self, first: usize) -> Option<usize> {
        let word = first >> WORD_BITS;
        let rest = self.slots[word] & self.slots[word].wrapping_sub(1);
        if rest != 0 {
            return Some((word << WORD_BITS | rest.trailing_zeros() as usize) % SLOTS);
        }
        let words = NonZeroU64::new(self.words & self.words.wrapping_sub(1))?;
        let word = words.trailing_zeros() as usize % WORDS;
        Some((word << WORD_BITS | self.slots[word].trailing_zeros() as usize) % SLOTS)
    }

    /// Takes out `slot`, which is the first.
    #[inline(always)]
    fn remove_first(&mut self, slot: usize) {
        let slots = &mut self.slots[slot >> WORD_BITS];
        *slots &= slots.wrapping_sub(1);
        if *slots == 0 {
            self.words &= self.words.wrapping_sub(1);
        }
    }

    /// Returns whether it was in already.
    #[inline(always)]
    fn add(&mut self, slot: usize) -> bool {
        let bit = 1 << (slot % (1 << WORD_BITS));
        let slots = &mut self.slots[slot >> WORD_BITS];
        let before = *slots;
        *slots = before | bit;
        self.words |= 1 << (slot >> WORD_BITS);
        before & bit != 0
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
    /// A queue for `entities` entities that waits for none of them, and whose events are about `apart` from each other.
    pub(crate) fn new(entities: usize, apart: Duration) -> Self {
        assert!(entities < Near::SEVERAL as usize, "a scenario has fewer than 2^31 links and endpoints");
        Self {
            base: 0,
            tick_bits: (apart.as_nanos() >> TICK_SHIFT).max(1).ilog2().clamp(TICK_BITS.0, TICK_BITS.1),
            levels: 0,
            occupied: [Occupied { words: 0, slots: [0; WORDS] }; LEVELS],
            near: Box::new([Near(0); SLOTS]),
            far: Box::new([[NOBODY; SLOTS]; LEVELS - 1]),
            entries: vec![Entry { at: 0, next: NOBODY, previous: NOBODY }; entities],
            armed: vec![UNARMED; entities],
        }
    }

    /// The first entity to wake and the time; [`Entity::NONE`] where nothing is waited for. [`EventQueue::settle`] must follow its
    /// waking.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> (Instant, Entity) {
        // Most of what comes next is on the lowest level.
        let Some(slot) = self.occupied[0].first() else { return self.next_from_above() };
        let held = self.near[slot];
        if held.is_list() {
            return self.next_of_several(slot);
        }
        self.occupied[0].remove_first(slot);
        (Instant::from_nanos(held.at(self.base)), Entity(held.entity()))
    }

    /// Who is woken next and after that, as far as that is known without a search: of those that share a slot one is told, and none
    /// of higher levels.
    #[inline(always)]
    pub(crate) fn peek(&self) -> [Option<Entity>; 2] {
        let entity = |slot: usize| Entity(self.near[slot].entity());
        let occupied = &self.occupied[0];
        let Some(first) = occupied.first() else { return [None; 2] };
        [Some(entity(first)), occupied.after(first).map(entity)]
    }

    /// Asks memory for when `entity` is armed.
    #[inline(always)]
    pub(crate) fn ask_for(&self, entity: Entity) {
        if let Some(armed) = self.armed.get(entity.0 as usize) {
            prefetch::ask_for_first(armed);
        }
    }

    /// The entity that was woken last wants to be woken again at `again`, or not ([`Instant::MAX`]). Returns the next one to
    /// wake and the time, as [`Self::next`] would: that one itself where nothing comes up to then.
    #[inline(always)]
    pub(crate) fn settle(&mut self, entity: Entity, again: Instant) -> (Instant, Entity) {
        let Some(slot) = self.occupied[0].first() else { return self.settle_at_length(entity, again) };
        let held = self.near[slot];
        if held.is_list() {
            return self.settle_at_length(entity, again);
        }
        let at = held.at(self.base);
        if again.as_nanos() < at {
            return (again, entity);
        }
        self.occupied[0].remove_first(slot);
        self.schedule(entity, again);
        (Instant::from_nanos(at), Entity(held.entity()))
    }

    /// As `settle`, whatever comes next.
    #[cold]
    #[inline(never)]
    fn settle_at_length(&mut self, entity: Entity, again: Instant) -> (Instant, Entity) {
        self.schedule(entity, again);
        self.next()
    }

    /// As `next`, where nothing is on the lowest level.
    #[inline(never)]
    fn next_from_above(&mut self) -> (Instant, Entity) {
        while self.occupied[0].words == 0 {
            // Where none holds anything the highest does not either.
            let level = (self.levels.trailing_zeros() as usize).clamp(1, LEVELS - 1);
            let Some(slot) = self.occupied[level].first() else { return (Instant::MAX, Entity::NONE) };
            let first = self.far[level - 1][slot];
            let Entry { at, next, .. } = self.entries[first as usize];
            if next == NOBODY {
                self.empty(level, slot);
                self.base = self.span_begin(at, 1);
                return (Instant::from_nanos(at), Entity(first));
            }
            self.move_down(level, slot);
        }
        self.next()
    }

    /// Wakes `entity` at `at` or before.
    #[inline(always)]
    pub(crate) fn arm(&mut self, entity: Entity, at: Instant) {
        let armed = self.armed[entity.0 as usize];
        if at.as_nanos() < armed {
            self.arm_earlier(entity, at);
        }
    }

    #[cold]
    #[inline(never)]
    fn arm_earlier(&mut self, entity: Entity, at: Instant) {
        let armed = core::mem::replace(&mut self.armed[entity.0 as usize], at.as_nanos());
        if armed != UNARMED {
            self.unlink(entity.0, armed);
        }
        self.insert(entity.0, at.as_nanos());
    }

    /// The armed `entity` was woken and will want to be woken again at `again`, or not, as [`EventQueue::settle`] will be told.
    #[inline]
    pub(crate) fn arm_again(&mut self, entity: Entity, again: Instant) {
        self.armed[entity.0 as usize] = again.as_nanos();
    }

    /// Wakes `entity` at `at` ([`Instant::MAX`] is never). It is never armed, waits for nothing, and is not the one that was woken
    /// last, unless that is settled.
    #[inline(always)]
    pub(crate) fn schedule(&mut self, entity: Entity, at: Instant) {
        if at < Instant::MAX {
            self.insert(entity.0, at.as_nanos());
        }
    }

    /// Wakes `entity`, which was scheduled for `before`, at the earlier time `at`.
    #[cold]
    pub(crate) fn reschedule(&mut self, entity: Entity, before: Instant, at: Instant) {
        self.unlink(entity.0, before.as_nanos());
        self.insert(entity.0, at.as_nanos());
    }

    #[inline(always)]
    fn insert(&mut self, entity: u32, at: u64) {
        debug_assert!(at >= self.base, "time went back");
        // Told apart so that the usual case, the next milliseconds, is all constants.
        let after_base = at - self.base;
        let slot = after_base >> self.tick_bits;
        if slot >= SLOTS as u64 {
            return self.insert_above(entity, at);
        }
        let slot = slot as usize;
        if self.occupied[0].add(slot) {
            return self.insert_beside(entity, at, slot);
        }
        self.near[slot] = Near::one(entity, after_base);
    }

    #[cold]
    #[inline(never)]
    fn insert_above(&mut self, entity: u32, at: u64) {
        // Most that are not on the lowest level are on the next one, which is told apart as well.
        let within = self.tick_bits + SLOT_BITS;
        if (at ^ self.base) >> within < SLOTS as u64 {
            return self.insert_on(1, (at >> within) as usize % SLOTS, entity, at);
        }
        let (level, slot) = self.place(at);
        self.insert_on(level, slot, entity, at);
    }

    #[inline(always)]
    fn insert_on(&mut self, level: usize, slot: usize, entity: u32, at: u64) {
        self.levels |= 1 << level;
        let next = core::mem::replace(&mut self.far[level - 1][slot], entity);
        self.put_first(entity, at, next);
        self.occupied[level].add(slot);
    }

    /// Into a slot of the lowest level that holds something.
    #[cold]
    #[inline(never)]
    fn insert_beside(&mut self, entity: u32, at: u64, slot: usize) {
        let held = self.near[slot];
        if !held.is_list() {
            self.entries[held.entity() as usize] =
                Entry { at: held.at(self.base), next: NOBODY, previous: NOBODY };
        }
        self.put_first(entity, at, held.entity());
        self.near[slot] = Near::list(entity);
    }

    /// `entity` comes first in a list that began with `next`.
    #[inline(always)]
    fn put_first(&mut self, entity: u32, at: u64, next: u32) {
        self.entries[entity as usize] = Entry { at, next, previous: NOBODY };
        if next != NOBODY {
            self.entries[next as usize].previous = entity;
        }
    }

    /// The level and the slot of what is to be woken at `at`: as the present goes on, these stay the same until the slot moves down.
    fn place(&self, at: u64) -> (usize, usize) {
        let differs = (at ^ self.base) >> self.tick_bits;
        let level = (differs | 1).ilog2() / SLOT_BITS;
        (level as usize, (at >> (self.tick_bits + level * SLOT_BITS)) as usize % SLOTS)
    }

    /// Where that slot of `level` begins in which `at` lies.
    #[inline]
    const fn span_begin(&self, at: u64, level: u32) -> u64 {
        let within = self.tick_bits + level * SLOT_BITS;
        at >> within << within
    }

    /// Takes all out of a list of a higher level.
    #[inline]
    fn empty(&mut self, level: usize, slot: usize) {
        self.far[level - 1][slot] = NOBODY;
        if self.occupied[level].remove(slot) {
            self.levels &= !(1 << level);
        }
    }

    /// Takes out `entity`, which waits for `at`.
    #[inline(never)]
    fn unlink(&mut self, entity: u32, at: u64) {
        let (level, slot) = self.place(at);
        if level == 0 {
            return self.unlink_near(entity, slot);
        }
        match self.take_out(entity, self.far[level - 1][slot]) {
            NOBODY => self.empty(level, slot),
            first => self.far[level - 1][slot] = first,
        }
    }

    /// As `unlink`, from the lowest level.
    fn unlink_near(&mut self, entity: u32, slot: usize) {
        let held = self.near[slot];
        if !held.is_list() {
            self.occupied[0].remove(slot);
            return;
        }
        let first = self.take_out(entity, held.entity());
        let Entry { at, next, .. } = self.entries[first as usize];
        self.near[slot] = if next == NOBODY { Near::one(first, at - self.base) } else { Near::list(first) };
    }

    /// Takes `entity` out of the list that begins with `first`; returns what it begins with then.
    #[inline(always)]
    fn take_out(&mut self, entity: u32, first: u32) -> u32 {
        let Entry { next, previous, .. } = self.entries[entity as usize];
        if next != NOBODY {
            self.entries[next as usize].previous = previous;
        }
        if previous == NOBODY {
            return next;
        }
        self.entries[previous as usize].next = next;
        first
    }

    /// As `next`, from a list on the lowest level.
    #[inline(never)]
    fn next_of_several(&mut self, slot: usize) -> (Instant, Entity) {
        let mut entity = self.near[slot].entity();
        let (mut foremost, mut earliest) = (entity, UNARMED);
        while entity != NOBODY {
            let Entry { at, next, .. } = self.entries[entity as usize];
            // Of two at one time the later in the list was inserted first.
            if at <= earliest {
                (foremost, earliest) = (entity, at);
            }
            entity = next;
        }
        self.unlink_near(foremost, slot);
        (Instant::from_nanos(earliest), Entity(foremost))
    }

    /// Nothing is left before this list of a higher level: the present moves to where its slot begins, and what is in it
    /// differs from that in a lower digit.
    fn move_down(&mut self, level: usize, slot: usize) {
        let mut entity = self.far[level - 1][slot];
        self.empty(level, slot);
        self.base = self.span_begin(self.entries[entity as usize].at, level as u32);
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
mod tests;

//! A timing wheel: which of many keys is to be woken first, and when. It does not know what a key means to
//! its owner.
//!
//! Each key has at most one entry, so the wheel is as large as the number of keys that wait for something: of
//! links and endpoints, say, and not of packets under way.
//!
//! ```text
//!  level 2   . . X . . . .    4,096 slots of 17 s     The level is the highest of time's digits (base 4,096,
//!  level 1   . . . . X X .    4,096 slots of 4 ms     in ticks, here of 1,024 ns) in which an entry differs
//!  level 0   . X . X . . .    4,096 slots of 1 us     from the present, the slot is that digit: all of a
//!                                                     level comes before all of the next.
//! ```
//!
//! It is hierarchical (Varghese and Lauck, "Hashed and hierarchical timing wheels", 1987, scheme 7) and never
//! ticks: a bit for each slot that holds something, and a bit for each 64 such bits, lead to the next entry
//! at once. A slot that is reached in a higher level moves down to where its entries' next digits say, which
//! an entry pays for once in most runs. The cost of an entry thus depends on how close events follow each
//! other and not on how many wait. A slot of the lowest level, which most entries meet alone, holds its one
//! entry itself; more than one, and those of higher levels, are lists through the keys. Nothing is allocated
//! after it is made.
//!
//! A key is **armed** ([`Wheel::arm`]) to be woken at a time or before: to arm it for a later time than it is
//! armed for does nothing; it is woken at the earlier one, its owner finds nothing due and arms it again. A
//! retransmission timer that every ACK pushes back thus costs nothing per ACK. A key that is armed for an
//! earlier time is inserted anew.
//!
//! Ties are broken by the order of insertion, so a run is the same on every machine. No number is kept for
//! it: a list holds the latest first, since what is inserted goes to its front, and what moves down does so
//! in that order into lists that are empty. (Once a slot's entries have moved down, nothing is inserted above
//! them for a time within that slot.)

use core::num::NonZeroU64;

use crate::{Duration, Instant};

/// Who is woken: an index from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(pub u32);

/// Which key is woken when.
#[derive(Debug)]
pub struct Wheel {
    /// Where the lowest level begins, in nanoseconds: the present in its higher digits, which change only as
    /// something is taken from a higher level. No entry is earlier.
    base: u64,
    /// Nanoseconds in a tick, as a power of two.
    tick_bits: u32,
    /// A bit for each level that holds something, but for the lowest.
    levels: u32,
    occupied: [Occupied; LEVELS],
    /// The lowest level, by slot; stale if nothing is in it.
    near: Box<[Near; SLOTS]>,
    /// The other levels, by level and slot: the first key of its list, which is the latest inserted.
    far: Box<[[u32; SLOTS]; LEVELS - 1]>,
    /// By key, for those in a list.
    entries: Vec<Entry>,
    /// By key: when it is woken, in nanoseconds; [`UNARMED`] if it is not.
    armed: Vec<u64>,
}

/// Which slots of a level hold something: a bit for each slot, and a bit for each word of such bits.
#[derive(Clone, Copy, Debug)]
struct Occupied {
    words: u64,
    slots: [u64; WORDS],
}

/// What a slot of the lowest level holds: one entry, as the key and how long after the level's beginning it
/// is woken, which is less than 2^32 ns, or the first key of a list.
#[derive(Clone, Copy, Debug)]
struct Near(u64);

/// When an key in a list is woken, in nanoseconds, and its neighbours there: the next one was inserted before
/// this one, the previous one after it. With both it is taken out without a walk along the list, whose every
/// step would wait for memory.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u64,
    next: u32,
    previous: u32,
}

/// A tick is the time between events, halved this many times and rounded down to a power of two. Chosen by
/// measurement: a slot of the lowest level then rarely holds two, and most of what is armed is on that level.
const TICK_SHIFT: u32 = 3;
/// The bounds of a tick, as powers of two of nanoseconds: 256 ns and 1 ms. With the latter the lowest level
/// spans every time that half of a [`Near`] can hold.
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
    /// Set if this is a list: the sign of the lower half.
    const SEVERAL: u64 = 1 << 31;

    #[inline(always)]
    const fn one(key: u32, after_base: u64) -> Self {
        Self(after_base << 32 | key as u64)
    }

    const fn list(first: u32) -> Self {
        Self(Self::SEVERAL | first as u64)
    }

    #[inline(always)]
    const fn is_list(self) -> bool {
        (self.0 as u32).cast_signed() < 0
    }

    /// The key, or the first of the list.
    #[inline(always)]
    const fn key(self) -> u32 {
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

impl Wheel {
    /// A wheel for `keys` keys that waits for none, and whose events follow each other after about `apart`.
    pub fn new(keys: usize, apart: Duration) -> Self {
        assert!(keys < Near::SEVERAL as usize, "a wheel has fewer than 2^31 keys");
        Self {
            base: 0,
            tick_bits: (apart.as_nanos() >> TICK_SHIFT).max(1).ilog2().clamp(TICK_BITS.0, TICK_BITS.1),
            levels: 0,
            occupied: [Occupied { words: 0, slots: [0; WORDS] }; LEVELS],
            near: Box::new([Near(0); SLOTS]),
            far: Box::new([[NOBODY; SLOTS]; LEVELS - 1]),
            entries: vec![Entry { at: 0, next: NOBODY, previous: NOBODY }; keys],
            armed: vec![UNARMED; keys],
        }
    }

    /// Takes out the first key that is woken by `until`, and when it is. It waits for nothing until it is
    /// armed again.
    #[inline(always)]
    pub fn pop(&mut self, until: Instant) -> Option<(Instant, Key)> {
        // Most of what comes next is on the lowest level.
        let Some(slot) = self.occupied[0].first() else { return self.pop_from_above(until) };
        let held = self.near[slot];
        if held.is_list() {
            return self.pop_of_several(slot, until);
        }
        let at = Instant::from_nanos(held.at(self.base));
        if at > until {
            return None;
        }
        self.occupied[0].remove_first(slot);
        self.armed[held.key() as usize] = UNARMED;
        Some((at, Key(held.key())))
    }

    /// Arms `key`, which waits for nothing, at `at`; then does what [`Wheel::pop`] does. Often the key comes
    /// first itself: then nothing is put in or taken out.
    #[inline(always)]
    pub fn arm_and_pop(&mut self, key: Key, at: Instant, until: Instant) -> Option<(Instant, Key)> {
        if let Some(slot) = self.occupied[0].first() {
            let held = self.near[slot];
            let first = Instant::from_nanos(held.at(self.base));
            if !held.is_list() && at.min(first) <= until {
                if at < first {
                    return Some((at, key));
                }
                self.occupied[0].remove_first(slot);
                self.armed[held.key() as usize] = UNARMED;
                self.arm(key, at);
                return Some((first, Key(held.key())));
            }
        }
        self.arm(key, at);
        self.pop(until)
    }

    /// When the first key is woken, if any is.
    pub fn next(&self) -> Option<Instant> {
        if let Some(slot) = self.occupied[0].first() {
            let held = self.near[slot];
            let at = if held.is_list() { self.first_of_several(held.key()).0 } else { held.at(self.base) };
            return Some(Instant::from_nanos(at));
        }
        let (level, slot) = self.first_above()?;
        Some(Instant::from_nanos(self.first_of_several(self.far[level - 1][slot]).0))
    }

    /// The first slot above the lowest level that holds something.
    fn first_above(&self) -> Option<(usize, usize)> {
        // If no level holds anything, the highest one does not either.
        let level = (self.levels.trailing_zeros() as usize).clamp(1, LEVELS - 1);
        Some((level, self.occupied[level].first()?))
    }

    /// As `pop`, if nothing is on the lowest level.
    fn pop_from_above(&mut self, until: Instant) -> Option<(Instant, Key)> {
        while self.occupied[0].words == 0 {
            let (level, slot) = self.first_above()?;
            let first = self.far[level - 1][slot];
            let Entry { at, next, .. } = self.entries[first as usize];
            // The present must not move beyond `until`: entries before that may still come.
            let (is_alone, begins) = (next == NOBODY, self.span_begin(at, level as u32));
            if (if is_alone { at } else { begins }) > until.as_nanos() {
                return None;
            }
            if is_alone {
                self.empty(level, slot);
                self.armed[first as usize] = UNARMED;
                self.base = self.span_begin(at, 1);
                return Some((Instant::from_nanos(at), Key(first)));
            }
            self.move_down(level, slot);
        }
        self.pop(until)
    }

    /// Wakes `key` at `at` or before; [`Instant::MAX`] is never.
    #[inline(always)]
    pub fn arm(&mut self, key: Key, at: Instant) {
        let armed = self.armed[key.0 as usize];
        if at.as_nanos() >= armed {
            return;
        }
        self.armed[key.0 as usize] = at.as_nanos();
        if armed != UNARMED {
            self.unlink(key.0, armed);
        }
        self.insert(key.0, at.as_nanos());
    }

    #[inline(always)]
    fn insert(&mut self, key: u32, at: u64) {
        debug_assert!(at >= self.base, "time went back");
        // A separate path, so that the usual case, the next milliseconds, uses constants only.
        let after_base = at - self.base;
        let slot = after_base >> self.tick_bits;
        if slot >= SLOTS as u64 {
            return self.insert_above(key, at);
        }
        let slot = slot as usize;
        if self.occupied[0].add(slot) {
            return self.insert_beside(key, at, slot);
        }
        self.near[slot] = Near::one(key, after_base);
    }

    #[cold]
    #[inline(never)]
    fn insert_above(&mut self, key: u32, at: u64) {
        // Most entries that are not on the lowest level are on the next one, which has a path of its own too.
        let within = self.tick_bits + SLOT_BITS;
        if (at ^ self.base) >> within < SLOTS as u64 {
            return self.insert_on(1, (at >> within) as usize % SLOTS, key, at);
        }
        let (level, slot) = self.place(at);
        self.insert_on(level, slot, key, at);
    }

    #[inline(always)]
    fn insert_on(&mut self, level: usize, slot: usize, key: u32, at: u64) {
        self.levels |= 1 << level;
        let next = core::mem::replace(&mut self.far[level - 1][slot], key);
        self.put_first(key, at, next);
        self.occupied[level].add(slot);
    }

    /// Into a slot of the lowest level that holds something.
    #[cold]
    #[inline(never)]
    fn insert_beside(&mut self, key: u32, at: u64, slot: usize) {
        let held = self.near[slot];
        if !held.is_list() {
            self.entries[held.key() as usize] =
                Entry { at: held.at(self.base), next: NOBODY, previous: NOBODY };
        }
        self.put_first(key, at, held.key());
        self.near[slot] = Near::list(key);
    }

    /// `key` comes first in a list that began with `next`.
    #[inline(always)]
    fn put_first(&mut self, key: u32, at: u64, next: u32) {
        self.entries[key as usize] = Entry { at, next, previous: NOBODY };
        if next != NOBODY {
            self.entries[next as usize].previous = key;
        }
    }

    /// The level and the slot of what is to be woken at `at`: as the present advances, these stay the same
    /// until the slot moves down.
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

    /// Takes out `key`, which waits for `at`.
    #[cold]
    fn unlink(&mut self, key: u32, at: u64) {
        let (level, slot) = self.place(at);
        if level == 0 {
            return self.unlink_near(key, slot);
        }
        match self.take_out(key, self.far[level - 1][slot]) {
            NOBODY => self.empty(level, slot),
            first => self.far[level - 1][slot] = first,
        }
    }

    /// As `unlink`, from the lowest level.
    fn unlink_near(&mut self, key: u32, slot: usize) {
        let held = self.near[slot];
        if !held.is_list() {
            self.occupied[0].remove(slot);
            return;
        }
        let first = self.take_out(key, held.key());
        let Entry { at, next, .. } = self.entries[first as usize];
        self.near[slot] = if next == NOBODY { Near::one(first, at - self.base) } else { Near::list(first) };
    }

    /// Takes `key` out of the list that begins with `first`; returns what it begins with then.
    #[inline(always)]
    fn take_out(&mut self, key: u32, first: u32) -> u32 {
        let Entry { next, previous, .. } = self.entries[key as usize];
        if next != NOBODY {
            self.entries[next as usize].previous = previous;
        }
        if previous == NOBODY {
            return next;
        }
        self.entries[previous as usize].next = next;
        first
    }

    /// As `pop`, from a list on the lowest level.
    fn pop_of_several(&mut self, slot: usize, until: Instant) -> Option<(Instant, Key)> {
        let (at, foremost) = self.first_of_several(self.near[slot].key());
        if at > until.as_nanos() {
            return None;
        }
        self.unlink_near(foremost, slot);
        self.armed[foremost as usize] = UNARMED;
        Some((Instant::from_nanos(at), Key(foremost)))
    }

    /// The first to be woken of the list that begins with `key`, and when.
    fn first_of_several(&self, mut key: u32) -> (u64, u32) {
        let mut first = (UNARMED, key);
        while key != NOBODY {
            let Entry { at, next, .. } = self.entries[key as usize];
            // Of two at one time the later in the list was inserted first.
            if at <= first.0 {
                first = (at, key);
            }
            key = next;
        }
        first
    }

    /// Nothing is left before this list of a higher level: the present moves to where its slot begins, and
    /// what is in it differs from that in a lower digit.
    fn move_down(&mut self, level: usize, slot: usize) {
        let mut key = self.far[level - 1][slot];
        self.empty(level, slot);
        self.base = self.span_begin(self.entries[key as usize].at, level as u32);
        let mut oldest = NOBODY;
        while key != NOBODY {
            let next = core::mem::replace(&mut self.entries[key as usize].next, oldest);
            oldest = core::mem::replace(&mut key, next);
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

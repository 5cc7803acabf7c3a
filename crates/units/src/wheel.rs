//! A timing wheel: it says which of many keys is woken next, and when.
//!
//! - A *key* stands for something that waits, such as a link or an endpoint. The wheel does not know what a
//!   key means to its owner.
//! - A key is *armed* if it is to be woken at a time. It is armed for one time at most, so the wheel is as
//!   large as the number of keys. Packets under way take no memory in it.
//! - An *entry* is an armed key with its time. A *tick* is the width of a slot on level 0.
//! - The *base* is the present time, rounded down. Every entry is at the base or later.
//!
//! ```text
//!  level 2   . . X . . . .    4,096 slots of 17 s     Times are numbers in base 4,096, counted in ticks (here
//!  level 1   . . . . X X .    4,096 slots of 4 ms     of 1,024 ns). The level of an entry is the highest digit
//!  level 0   . X . X . . .    4,096 slots of 1 us     in which its time differs from the base. Its slot is that
//!                                                     digit. All entries of a level come before the next level.
//! ```
//!
//! The wheel is hierarchical (Varghese and Lauck, "Hashed and hierarchical timing wheels", 1987, scheme 7),
//! but it does not step through empty slots. One bit for each occupied slot, and one bit for each 64 of those
//! bits, lead to the next entry at once. When the base reaches a slot of a higher level, its entries move
//! down to the slots of their next digits. In most runs an entry moves down once at most, so the cost of an
//! entry depends on the time between events and not on the number of keys.
//!
//! Most entries are alone in a slot of level 0, which holds such an entry itself. Several entries of a slot,
//! and all entries of higher levels, are linked lists. All memory is allocated by [`Wheel::new`].
//!
//! A key that is armed again for a later time stays armed for the earlier time. Its owner is woken early,
//! finds nothing to do, and arms the key again. A retransmission timer that every ACK delays therefore costs
//! nothing for each ACK. A key that is armed again for an earlier time moves there.
//!
//! Keys of the same time are woken in the order in which they were armed, so a run is the same on every
//! machine. The lists need no sequence numbers for this order. A new entry goes to the front of its list, so
//! a list is sorted from the newest to the oldest entry. Entries move down from the oldest to the newest,
//! into empty lists. After that no new entry goes to the slot above, because the base lies within that slot.
//!
//! Begin to read with [`Wheel::arm`], then [`Wheel::pop`].

use core::num::NonZeroU64;

use crate::{Duration, Instant};

/// Stands for something that can be woken. Keys count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(pub u32);

/// Wakes keys in the order of their times.
#[derive(Debug)]
pub struct Wheel {
    /// The beginning of level 0 in nanoseconds. It changes only when an entry is taken from a higher level.
    /// No entry is earlier.
    base: u64,
    /// A tick is 2 to this power, in nanoseconds.
    tick_bits: u32,
    /// Bit N is set if level N has an entry. Bit 0 is not used.
    levels: u32,
    occupied: [Occupied; LEVELS],
    /// The slots of level 0. The value of an empty slot has no meaning.
    near: Box<[Near; SLOTS]>,
    /// The first key in the list of each slot, for level 1 and above. It is the newest entry of the slot.
    far: Box<[[u32; SLOTS]; LEVELS - 1]>,
    /// The entry of each key. It has a meaning only while the key is in a list.
    entries: Vec<Entry>,
    /// The time in nanoseconds at which each key is woken, or [`UNARMED`].
    armed: Vec<u64>,
}

/// The occupied slots of a level.
#[derive(Clone, Copy, Debug)]
struct Occupied {
    /// A bit for each word of `slots` that is not zero.
    words: u64,
    /// A bit for each occupied slot.
    slots: [u64; WORDS],
}

/// The value of a slot of level 0: one entry, or the first key of a list. The lower half is the key. The
/// upper half of an entry is its time after the base, which is less than 2^32 ns.
#[derive(Clone, Copy, Debug)]
struct Near(u64);

/// An entry in a list. With both neighbours it is unlinked without a walk along the list, in which every step
/// would wait for memory.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The time in nanoseconds.
    at: u64,
    /// The next older entry, or [`NOBODY`].
    next: u32,
    /// The next newer entry, or [`NOBODY`].
    previous: u32,
}

/// A tick is an eighth of the usual time between events, rounded down to a power of two. We chose an eighth
/// by measurement: a slot of level 0 then rarely has two entries, and most entries are on level 0.
const TICK_SHIFT: u32 = 3;
/// The smallest and the largest tick, as powers of two: 256 ns and 1 ms. Level 0 with the largest tick covers
/// 2^32 ns, which is the range of the times in a [`Near`].
const TICK_BITS: (u32, u32) = (8, 20);
/// A level has 2^12 slots, because a word of 64 bits, each for a word of 64 slots, finds one of 2^12.
const SLOT_BITS: u32 = 12;
const SLOTS: usize = 1 << SLOT_BITS;
const WORD_BITS: u32 = u64::BITS.ilog2();
const WORDS: usize = SLOTS >> WORD_BITS;
/// The number of levels with which every time of 64 bits has a slot.
const LEVELS: usize = (u64::BITS - TICK_BITS.0).div_ceil(SLOT_BITS) as usize;
/// Stands for no key, at the end of a list.
const NOBODY: u32 = u32::MAX;
const UNARMED: u64 = u64::MAX;
const _: () = assert!(TICK_BITS.1 + SLOT_BITS <= u32::BITS, "a time on level 0 fits into half of a `Near`");

impl Near {
    /// The bit of a list. It is the sign bit of the lower half.
    const LIST: u64 = 1 << 31;

    #[inline(always)]
    const fn entry(key: u32, after_base: u64) -> Self {
        Self(after_base << 32 | key as u64)
    }

    const fn list(first: u32) -> Self {
        Self(Self::LIST | first as u64)
    }

    #[inline(always)]
    const fn is_list(self) -> bool {
        (self.0 as u32).cast_signed() < 0
    }

    /// Returns the key of the entry, or the first key of the list.
    #[inline(always)]
    const fn key(self) -> u32 {
        (self.0 & (Self::LIST - 1)) as u32
    }

    /// Returns the time of the entry.
    #[inline(always)]
    const fn at(self, base: u64) -> u64 {
        base + (self.0 >> 32)
    }
}

impl Occupied {
    /// Returns the first occupied slot.
    #[inline(always)]
    fn first(&self) -> Option<usize> {
        let word = NonZeroU64::new(self.words)?.trailing_zeros() as usize % WORDS;
        Some((word << WORD_BITS | self.slots[word].trailing_zeros() as usize) % SLOTS)
    }

    /// Removes `slot`, which must be the first occupied slot.
    #[inline(always)]
    fn remove_first(&mut self, slot: usize) {
        let slots = &mut self.slots[slot >> WORD_BITS];
        *slots &= slots.wrapping_sub(1);
        if *slots == 0 {
            self.words &= self.words.wrapping_sub(1);
        }
    }

    /// Adds `slot`. Returns true if it was occupied before.
    #[inline(always)]
    fn add(&mut self, slot: usize) -> bool {
        let bit = 1 << (slot % (1 << WORD_BITS));
        let slots = &mut self.slots[slot >> WORD_BITS];
        let before = *slots;
        *slots = before | bit;
        self.words |= 1 << (slot >> WORD_BITS);
        before & bit != 0
    }

    /// Removes `slot`. Returns true if no slot is occupied any more.
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
    /// Makes a wheel for the keys below `keys`, none of which is armed. `gap` is the usual time between
    /// events, which determines the tick.
    ///
    /// # Panics
    /// Panics if `keys` is 2^31 or more.
    pub fn new(keys: usize, gap: Duration) -> Self {
        assert!(keys < Near::LIST as usize, "a wheel has fewer than 2^31 keys");
        Self {
            base: 0,
            tick_bits: (gap.as_nanos() >> TICK_SHIFT).max(1).ilog2().clamp(TICK_BITS.0, TICK_BITS.1),
            levels: 0,
            occupied: [Occupied { words: 0, slots: [0; WORDS] }; LEVELS],
            near: Box::new([Near(0); SLOTS]),
            far: Box::new([[NOBODY; SLOTS]; LEVELS - 1]),
            entries: vec![Entry { at: 0, next: NOBODY, previous: NOBODY }; keys],
            armed: vec![UNARMED; keys],
        }
    }

    /// Removes the next key whose time is not after `until`, and returns it with its time. The key is not
    /// woken again until its owner arms it.
    #[inline(always)]
    pub fn pop(&mut self, until: Instant) -> Option<(Instant, Key)> {
        // The next entry is on level 0 in most cases.
        let Some(slot) = self.occupied[0].first() else { return self.pop_from_above(until) };
        let held = self.near[slot];
        if held.is_list() {
            return self.pop_from_list(slot, until);
        }
        let at = Instant::from_nanos(held.at(self.base));
        if at > until {
            return None;
        }
        self.occupied[0].remove_first(slot);
        self.armed[held.key() as usize] = UNARMED;
        Some((at, Key(held.key())))
    }

    /// Arms `key`, which must not be armed, at `at`, and then removes the next key as [`Wheel::pop`] does. If
    /// `key` itself is next, which is frequent, the wheel does not change.
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

    /// Returns the time of the next key, or `None` if no key is armed.
    pub fn next(&self) -> Option<Instant> {
        if let Some(slot) = self.occupied[0].first() {
            let held = self.near[slot];
            let at = if held.is_list() { self.earliest_in_list(held.key()).0 } else { held.at(self.base) };
            return Some(Instant::from_nanos(at));
        }
        let (level, slot) = self.first_above()?;
        Some(Instant::from_nanos(self.earliest_in_list(self.far[level - 1][slot]).0))
    }

    /// Returns the level and the number of the first occupied slot above level 0.
    fn first_above(&self) -> Option<(usize, usize)> {
        // If no level has an entry, the search in the highest level finds none.
        let level = (self.levels.trailing_zeros() as usize).clamp(1, LEVELS - 1);
        Some((level, self.occupied[level].first()?))
    }

    /// Does what `pop` does while level 0 is empty.
    fn pop_from_above(&mut self, until: Instant) -> Option<(Instant, Key)> {
        while self.occupied[0].words == 0 {
            let (level, slot) = self.first_above()?;
            let first = self.far[level - 1][slot];
            let Entry { at, next, .. } = self.entries[first as usize];
            // The base must not pass `until`, because keys may still be armed for times before `until`.
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

    /// Arms `key`, so that it is woken at `at` or earlier. [`Instant::MAX`] means never.
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
        // Level 0 has a path of its own, which uses constants only, because most entries go there.
        let after_base = at - self.base;
        let slot = after_base >> self.tick_bits;
        if slot >= SLOTS as u64 {
            return self.insert_above(key, at);
        }
        let slot = slot as usize;
        if self.occupied[0].add(slot) {
            return self.insert_beside(key, at, slot);
        }
        self.near[slot] = Near::entry(key, after_base);
    }

    #[cold]
    #[inline(never)]
    fn insert_above(&mut self, key: u32, at: u64) {
        // Level 1 has a path of its own as well, because most entries above level 0 go there.
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

    /// Inserts an entry into an occupied slot of level 0.
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

    /// Puts `key` at the front of the list that began with `next`.
    #[inline(always)]
    fn put_first(&mut self, key: u32, at: u64, next: u32) {
        self.entries[key as usize] = Entry { at, next, previous: NOBODY };
        if next != NOBODY {
            self.entries[next as usize].previous = key;
        }
    }

    /// Returns the level and the slot for the time `at`. They stay the same until the slot moves down.
    fn place(&self, at: u64) -> (usize, usize) {
        let differs = (at ^ self.base) >> self.tick_bits;
        let level = (differs | 1).ilog2() / SLOT_BITS;
        (level as usize, (at >> (self.tick_bits + level * SLOT_BITS)) as usize % SLOTS)
    }

    /// Returns the time at which the slot of `level` begins that contains `at`.
    #[inline]
    const fn span_begin(&self, at: u64, level: u32) -> u64 {
        let within = self.tick_bits + level * SLOT_BITS;
        at >> within << within
    }

    /// Removes the list of a slot above level 0.
    #[inline]
    fn empty(&mut self, level: usize, slot: usize) {
        self.far[level - 1][slot] = NOBODY;
        if self.occupied[level].remove(slot) {
            self.levels &= !(1 << level);
        }
    }

    /// Removes `key`, which is armed for `at`.
    #[cold]
    fn unlink(&mut self, key: u32, at: u64) {
        let (level, slot) = self.place(at);
        if level == 0 {
            return self.unlink_near(key, slot);
        }
        match self.remove_from_list(key, self.far[level - 1][slot]) {
            NOBODY => self.empty(level, slot),
            first => self.far[level - 1][slot] = first,
        }
    }

    /// Removes `key` from a slot of level 0.
    fn unlink_near(&mut self, key: u32, slot: usize) {
        let held = self.near[slot];
        if !held.is_list() {
            self.occupied[0].remove(slot);
            return;
        }
        let first = self.remove_from_list(key, held.key());
        let Entry { at, next, .. } = self.entries[first as usize];
        self.near[slot] = if next == NOBODY { Near::entry(first, at - self.base) } else { Near::list(first) };
    }

    /// Removes `key` from the list that begins with `first`. Returns the first key that the list has then.
    #[inline(always)]
    fn remove_from_list(&mut self, key: u32, first: u32) -> u32 {
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

    /// Does what `pop` does for a list on level 0.
    fn pop_from_list(&mut self, slot: usize, until: Instant) -> Option<(Instant, Key)> {
        let (at, foremost) = self.earliest_in_list(self.near[slot].key());
        if at > until.as_nanos() {
            return None;
        }
        self.unlink_near(foremost, slot);
        self.armed[foremost as usize] = UNARMED;
        Some((Instant::from_nanos(at), Key(foremost)))
    }

    /// Returns the earliest time in the list that begins with `key`, and the key of this time.
    fn earliest_in_list(&self, mut key: u32) -> (u64, u32) {
        let mut first = (UNARMED, key);
        while key != NOBODY {
            let Entry { at, next, .. } = self.entries[key as usize];
            // Of two entries with the same time, the later one in the list is older.
            if at <= first.0 {
                first = (at, key);
            }
            key = next;
        }
        first
    }

    /// Moves the base to the beginning of a slot above level 0, and the entries of the slot to lower levels.
    /// No entry is earlier than the slot.
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

//! A bounded number of places for connections that wait. Many addresses are preferred to many connections of
//! one address.
//!
//! If all places are taken and one more connection comes, the address with the most connections loses one of
//! its connections, drawn at random. If several addresses have the most, the connection is drawn from all of
//! theirs. So an address that opens connections without end pushes out only its own connections. With fewer
//! addresses than places, an address with a single connection keeps this connection. With more addresses than
//! places, all connections but the newest have the same chance to be pushed out. (sshd's MaxStartups turns
//! away the newest connection instead, sshd_config(5).)

use std::collections::BTreeMap;

use talkpath_kernel::random::random;

use super::origin::Origin;

/// The places, and the items that wait in them.
pub(super) struct Places<T> {
    capacity: usize,
    /// Each item by the number that it was inserted under.
    waiting: BTreeMap<u64, (Origin, T)>,
    /// The numbers of each origin's items.
    by_origin: BTreeMap<Origin, Vec<u64>>,
}

impl<T> Places<T> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), waiting: BTreeMap::new(), by_origin: BTreeMap::new() }
    }

    /// Gives `item` of `origin` a place under `number`. If that pushes out an item, returns the item that was
    /// pushed out. The new item is never the one that is pushed out, so each item is read at least once.
    pub(super) fn insert(&mut self, number: u64, origin: Origin, item: T) -> Option<T> {
        self.waiting.insert(number, (origin, item));
        self.by_origin.entry(origin).or_default().push(number);
        if self.waiting.len() <= self.capacity {
            return None;
        }
        let most = self.by_origin.values().map(Vec::len).max()?;
        let candidates = self.by_origin.values().filter(|numbers| numbers.len() == most).flatten();
        let candidates: Vec<u64> = candidates.copied().filter(|candidate| *candidate != number).collect();
        // If the system gives no random number, the choice does not vary.
        let drawn = random::<8>().map_or(usize::MAX, |bytes| u64::from_le_bytes(bytes) as usize);
        self.remove(*candidates.get(drawn % candidates.len().max(1))?)
    }

    /// Returns the number of free places.
    pub(super) fn free(&self) -> usize {
        self.capacity.saturating_sub(self.waiting.len())
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<T> {
        let (origin, item) = self.waiting.remove(&number)?;
        if let Some(numbers) = self.by_origin.get_mut(&origin) {
            numbers.retain(|waiting| *waiting != number);
            if numbers.is_empty() {
                self.by_origin.remove(&origin);
            }
        }
        Some(item)
    }

    /// Removes each item for which `is_over` returns true.
    pub(super) fn sweep(&mut self, is_over: impl Fn(&T) -> bool) {
        let over: Vec<u64> =
            self.waiting.iter().filter(|(_, (_, item))| is_over(item)).map(|(number, _)| *number).collect();
        for number in over {
            self.remove(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    fn origin(number: u32) -> Origin {
        Origin::of(IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number)))
    }

    #[test]
    fn an_address_with_many_loses_its_own() {
        let mut places = Places::new(8);
        assert_eq!(places.insert(0, origin(1), 0), None);
        for number in 1..1500 {
            let lost = places.insert(number, origin(2), number);
            assert_eq!(lost.is_some(), number >= 8);
            assert_ne!(lost, Some(0));
        }
        assert_eq!(places.remove(0), Some(0));
        assert_eq!((places.waiting.len(), places.by_origin.len()), (7, 1));
    }

    #[test]
    fn addresses_fewer_than_places_do_not_push_out_who_has_one() {
        let mut places = Places::new(1024);
        places.insert(u64::MAX, origin(0), 0);
        for number in 0..20_000_u32 {
            let lost = places.insert(number.into(), origin(1 + number % 1000), 1);
            assert_ne!(lost, Some(0), "after {number}");
        }
    }

    /// 4,000 newcomers at 1,000 places, an address each: the first keeps its place with (1 - 1/1000)^4000,
    /// 1.8 %. The newest one stays.
    #[test]
    fn addresses_more_than_places_lose_by_lot() {
        let mut places = Places::new(1000);
        let lost: Vec<u32> =
            (0..5000).filter_map(|number| places.insert(number.into(), origin(number), number)).collect();
        assert_eq!(lost.len(), 4000);
        assert!((1000..).zip(&lost).all(|(newest, lost)| newest != *lost));
        let kept = places.waiting.len();
        let old = places.waiting.values().filter(|(_, number)| *number < 1000).count();
        assert_eq!(kept, 1000);
        assert!((1..60).contains(&old), "{old} of the first thousand");
    }

    #[test]
    fn what_is_over_is_swept_with_its_address() {
        let mut places = Places::new(8);
        for number in 0..6 {
            places.insert(number, origin(number as u32 % 2), number);
        }
        places.sweep(|number| number % 2 == 0);
        assert_eq!((places.waiting.len(), places.by_origin.len()), (3, 1));
    }
}

//! Whose a connection is: what one client has is bounded by its address.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

/// An IPv4 address, or the /64 of an IPv6 address: a host may take any address of its subnet (RFC 4291
/// §2.5.1, RFC 8981), so the subnet is what it cannot choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Origin(IpAddr);

impl Origin {
    pub(crate) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
            v4 @ IpAddr::V4(_) => v4,
        })
    }
}

/// What sessions share: places, or bytes of memory. One address has at most half, so that no single one can
/// hold the server (chosen).
pub(super) struct Shares {
    /// The whole amount that is shared out.
    all: u64,
    taken: Mutex<BTreeMap<Origin, u64>>,
}

/// One session's share, given back when dropped.
pub(super) struct Share<'a> {
    of: &'a Shares,
    origin: Origin,
    amount: u64,
}

/// Why there is no share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// One address may never have so much.
    Ever,
    /// Too little is left: all addresses together have this much.
    OfAll(u64),
    /// The address would have more than its half: it has this much.
    OfAddress(u64),
}

impl Shares {
    pub(super) fn new(all: u64) -> Self {
        Self { all, taken: Mutex::default() }
    }

    /// The whole amount that is shared out.
    pub(super) const fn all(&self) -> u64 {
        self.all
    }

    /// The most that one address has.
    pub(super) const fn of_address(&self) -> u64 {
        self.all.div_ceil(2)
    }

    /// So much for `origin`.
    ///
    /// # Errors
    /// What is lacking.
    pub(super) fn take(&self, origin: Origin, amount: u64) -> Result<Share<'_>, Lack> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if amount > self.of_address() {
            return Err(Lack::Ever);
        }
        let together = taken.values().copied().fold(0, u64::saturating_add);
        if amount > self.all.saturating_sub(together) {
            return Err(Lack::OfAll(together));
        }
        let own = taken.get(&origin).copied().unwrap_or(0);
        if amount > self.of_address().saturating_sub(own) {
            return Err(Lack::OfAddress(own));
        }
        taken.insert(origin, own + amount);
        Ok(Share { of: self, origin, amount })
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let mut taken = self.of.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = taken.get_mut(&self.origin) {
            *own -= self.amount;
            if *own == 0 {
                taken.remove(&self.origin);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(text: &str) -> Origin {
        Origin::of(text.parse().unwrap())
    }

    #[test]
    fn one_address_takes_half_and_all_together_take_all() {
        let shares = Shares::new(8);
        let take = |address: &str, amount| shares.take(origin(address), amount);
        let first = [1, 3].map(|amount| take("192.0.2.1", amount).unwrap());
        assert_eq!(take("::ffff:192.0.2.1", 1).err(), Some(Lack::OfAddress(4)));
        let _second = take("192.0.2.2", 3).unwrap();
        assert_eq!(take("192.0.2.3", 2).err(), Some(Lack::OfAll(7)));
        assert_eq!(take("192.0.2.3", 5).err(), Some(Lack::Ever));
        let _nothing = take("192.0.2.1", 0).unwrap();
        drop(first);
        assert!(take("192.0.2.1", 4).is_ok());
        assert_eq!(shares.taken.lock().unwrap().values().sum::<u64>(), 3);
    }

    #[test]
    fn a_subnet_of_ipv6_is_one_origin() {
        assert_eq!(origin("2001:db8::1"), origin("2001:db8::ffff:1"));
        assert_ne!(origin("2001:db8::1"), origin("2001:db8:0:1::1"));
    }
}

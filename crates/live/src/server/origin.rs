//! The origin of a connection. The server bounds what a client may have by the client's address.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

/// The origin of a client: its IPv4 address, or the /64 of its IPv6 address. A host may take any IPv6 address
/// of its subnet (RFC 4291 §2.5.1, RFC 8981), but it cannot choose the subnet.
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

/// An amount that the sessions share: seats, or bytes of memory. One address has at most half of the amount,
/// because a single address must not take the whole server. We chose a half.
pub(super) struct Shares {
    /// The whole amount.
    all: u64,
    /// The amount that each origin has.
    taken: Mutex<BTreeMap<Origin, u64>>,
}

/// The share of one session. It is given back when it is dropped.
pub(super) struct Share<'a> {
    shares: &'a Shares,
    origin: Origin,
    amount: u64,
}

/// The reason why a session gets no share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// The session wants more than one address may ever have.
    TooMuch,
    /// Too little is left. All addresses together have this amount.
    AllTaken(u64),
    /// The address would have more than half. It already has this amount.
    AddressFull(u64),
}

impl Shares {
    pub(super) fn new(all: u64) -> Self {
        Self { all, taken: Mutex::default() }
    }

    pub(super) const fn all(&self) -> u64 {
        self.all
    }

    /// Returns the largest amount that one address may have.
    pub(super) const fn most_per_address(&self) -> u64 {
        self.all.div_ceil(2)
    }

    /// Takes `amount` for a session of `origin`.
    ///
    /// # Errors
    /// Returns [`Lack`] if one address may not have so much, or if too little is left.
    pub(super) fn take(&self, origin: Origin, amount: u64) -> Result<Share<'_>, Lack> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if amount > self.most_per_address() {
            return Err(Lack::TooMuch);
        }
        let together = taken.values().copied().fold(0, u64::saturating_add);
        if amount > self.all.saturating_sub(together) {
            return Err(Lack::AllTaken(together));
        }
        let own = taken.get(&origin).copied().unwrap_or(0);
        if amount > self.most_per_address().saturating_sub(own) {
            return Err(Lack::AddressFull(own));
        }
        taken.insert(origin, own + amount);
        Ok(Share { shares: self, origin, amount })
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let mut taken = self.shares.taken.lock().unwrap_or_else(PoisonError::into_inner);
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
        assert_eq!(take("::ffff:192.0.2.1", 1).err(), Some(Lack::AddressFull(4)));
        let _second = take("192.0.2.2", 3).unwrap();
        assert_eq!(take("192.0.2.3", 2).err(), Some(Lack::AllTaken(7)));
        assert_eq!(take("192.0.2.3", 5).err(), Some(Lack::TooMuch));
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

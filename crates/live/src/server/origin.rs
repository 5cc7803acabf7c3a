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

/// The places of sessions.
pub(super) struct Seats {
    /// How many there are.
    count: usize,
    taken: Mutex<BTreeMap<Origin, usize>>,
}

/// One session's place, given back when dropped.
pub(super) struct Seat<'a> {
    seats: &'a Seats,
    origin: Origin,
}

impl Seats {
    pub(super) fn new(count: usize) -> Self {
        Self { count, taken: Mutex::default() }
    }

    /// A place for `origin`.
    ///
    /// # Errors
    /// All are taken, or as many as one address may have: half of them, so that no single address can hold
    /// the server (chosen).
    pub(super) fn take(&self, origin: Origin) -> Result<Seat<'_>, String> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.values().sum::<usize>() >= self.count {
            return Err(format!("all its {} sessions are taken; try again later", self.count));
        }
        let share = self.count.div_ceil(2);
        let own = taken.entry(origin).or_default();
        if *own >= share {
            return Err(format!(
                "your address has {share} sessions, which is half of all; end one, or try again later"
            ));
        }
        *own += 1;
        Ok(Seat { seats: self, origin })
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut taken = self.seats.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = taken.get_mut(&self.origin) {
            *own -= 1;
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
    fn one_address_takes_half_of_the_seats_and_all_together_take_all() {
        let seats = Seats::new(4);
        let first: Vec<_> = (0..2).map(|_| seats.take(origin("192.0.2.1")).unwrap()).collect();
        assert!(seats.take(origin("::ffff:192.0.2.1")).is_err_and(|why| why.contains("your address")));
        let _others = [(); 2].map(|()| seats.take(origin("192.0.2.2")).unwrap());
        assert!(seats.take(origin("192.0.2.3")).is_err_and(|why| why.contains("all its 4")));
        drop(first);
        assert!(seats.take(origin("192.0.2.1")).is_ok());
    }

    #[test]
    fn a_subnet_of_ipv6_is_one_origin() {
        assert_eq!(origin("2001:db8::1"), origin("2001:db8::ffff:1"));
        assert_ne!(origin("2001:db8::1"), origin("2001:db8:0:1::1"));
    }
}

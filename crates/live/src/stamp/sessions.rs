//! The sessions of a stateful reflector. A session numbers its answers from 0 on (RFC 8762 §4).
//!
//! The number of sessions is limited. If a new session would exceed the limit, it replaces another session of
//! the address with the most sessions: a session that is over, or else the one with the fewest packets. A
//! flood of forged packets makes many sessions with few packets each, so it replaces its own sessions and not
//! those of a measurement.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use talkpath_kernel::random::random;

use crate::server::origin::Origin;

/// The time without a packet after which a session is over, ns (RFC 5357 §4.2: REFWAIT, 900 s).
pub(super) const REFWAIT_NS: i64 = 900 * SECOND_NS;
/// The number of intervals without a packet after which a session is over. We chose 8. On a path that loses a
/// third of the packets, eight losses in a row have a probability of 1 in 6,500.
const PATIENCE_INTERVALS: i64 = 8;
/// If there are many sessions, one part in this many is removed at once. So a flood does not cause a search
/// through all sessions for each packet. We chose 1024: a new session then costs a search through about 1024
/// sessions on average.
const REMOVED_PARTS: usize = 1024;
const SECOND_NS: i64 = 1_000_000_000;

/// The key of a session. The order is used only to sort sessions that are equal in all else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SessionKey {
    pub(super) sender: SocketAddr,
    pub(super) ssid: u16,
}

impl SessionKey {
    fn origin(&self) -> Origin {
        Origin::of(self.sender.ip())
    }
}

/// The sessions of a reflector.
pub(super) struct Sessions {
    limit: usize,
    sessions: BTreeMap<SessionKey, Session>,
    /// The keys of the sessions of each address.
    by_origin: BTreeMap<Origin, Vec<SessionKey>>,
}

/// A session.
struct Session {
    next_number: u32,
    packets: u32,
    first_packet_ns: i64,
    last_packet_ns: i64,
}

impl Sessions {
    /// Makes an empty table for at most `limit` sessions. One session is always allowed.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), sessions: BTreeMap::new(), by_origin: BTreeMap::new() }
    }

    /// Returns the number of the next answer in the session `key`. Begins the session if there is none.
    pub(super) fn next_number(&mut self, key: SessionKey, now_ns: i64) -> u32 {
        if !self.sessions.contains_key(&key) {
            self.make_room(key.origin(), now_ns);
            self.by_origin.entry(key.origin()).or_default().push(key);
        }
        let session = self.sessions.entry(key).or_insert(Session {
            next_number: 0,
            packets: 0,
            first_packet_ns: now_ns,
            last_packet_ns: now_ns,
        });
        if now_ns - session.last_packet_ns >= REFWAIT_NS {
            session.next_number = 0;
        }
        let number = session.next_number;
        session.next_number = number.wrapping_add(1);
        session.packets = session.packets.saturating_add(1);
        session.last_packet_ns = now_ns;
        number
    }

    /// Removes sessions if one more session of `origin` would exceed a limit.
    fn make_room(&mut self, origin: Origin, now_ns: i64) {
        let mut candidates = self.candidates(origin);
        if candidates.is_empty() {
            return;
        }
        let count = (self.limit / REMOVED_PARTS).min(candidates.len() / 2).max(1);
        candidates.sort_by_cached_key(|key| {
            let rank = self.sessions.get(key).map(|session| {
                // Sessions that are over come first, then those with few packets. Chance decides between
                // equals.
                (Reverse(session.is_over(now_ns)), session.packets, random_number())
            });
            (rank, *key)
        });
        for key in candidates.into_iter().take(count) {
            self.remove(&key);
        }
    }

    /// Returns the sessions of which some have to be removed before a new session of `origin`. An address
    /// that has half of all sessions loses sessions of its own. If all sessions are taken, the addresses with
    /// the most sessions lose some. Otherwise no session has to be removed.
    fn candidates(&self, origin: Origin) -> Vec<SessionKey> {
        let own = self.by_origin.get(&origin).map_or(&[][..], Vec::as_slice);
        if own.len() >= self.limit.div_ceil(2) {
            return own.to_vec();
        }
        if self.sessions.len() < self.limit {
            return Vec::new();
        }
        let most = self.by_origin.values().map(Vec::len).max().unwrap_or(0);
        self.by_origin.values().filter(|keys| keys.len() == most).flatten().copied().collect()
    }

    fn remove(&mut self, key: &SessionKey) {
        self.sessions.remove(key);
        let origin = key.origin();
        if let Some(keys) = self.by_origin.get_mut(&origin) {
            keys.retain(|other| other != key);
            if keys.is_empty() {
                self.by_origin.remove(&origin);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    #[cfg(test)]
    pub(super) fn contains(&self, key: SessionKey) -> bool {
        self.sessions.contains_key(&key)
    }
}

impl Session {
    /// Returns true if no more packets of this session are expected, judged by the interval of its packets so
    /// far.
    const fn is_over(&self, now_ns: i64) -> bool {
        let interval_ns = match self.packets {
            0 | 1 => SECOND_NS,
            packets => (self.last_packet_ns - self.first_packet_ns) / (packets as i64 - 1),
        };
        let patience_ns = interval_ns.saturating_mul(PATIENCE_INTERVALS);
        let patience_ns = if patience_ns < SECOND_NS { SECOND_NS } else { patience_ns };
        let silent_ns = now_ns - self.last_packet_ns;
        silent_ns >= patience_ns || silent_ns >= REFWAIT_NS
    }
}

/// Returns a random number. If the kernel has none, the number is 0.
fn random_number() -> u64 {
    random::<8>().map_or(0, u64::from_le_bytes)
}

//! The rules by which a reflector answers packets, and the sequence numbers of its answers. The answers of a
//! second and the sessions are shared among the senders' addresses, which may be forged.
//!
//! ```text
//! a second:   half for the addresses of the second before, in equal parts
//!             half for everybody; an address has at most 1 / (n + 1) of this half, with n addresses before
//! sessions:   if all are taken, a new one replaces a session of the address that has the most:
//!             a session that is over, or else the one whose packets are rarest
//! ```
//!
//! So a flood from few forged addresses cannot take the answers for new senders. If a flood has more
//! addresses than there are sessions or answers in a second, a new sender is answered only by chance. But a
//! sender that was answered in the second before still gets its answers, and a session with more packets than
//! the flood's sessions is kept.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use talkpath_kernel::random::random;

use super::codec::SenderPacket;
use crate::server::origin::Origin;

/// The bounds of a reflector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Whether the reflector numbers each session's packets.
    pub(super) is_stateful: bool,
    /// The largest number of packets that are answered within a second.
    pub(super) packets_per_s: u32,
    /// The largest number of concurrent sessions.
    pub(super) sessions: usize,
}

/// The state by which a reflector decides whether to answer a packet, and with which number.
pub(super) struct Rules {
    bounds: Bounds,
    second: Second,
    sessions: BTreeMap<SessionKey, Session>,
    /// The sessions of each address.
    by_origin: BTreeMap<Origin, Vec<SessionKey>>,
}

/// The counts of the current second. Each map has at most as many entries as packets may be answered.
struct Second {
    /// CLOCK_MONOTONIC at the beginning of the second, ns.
    begun_ns: i64,
    /// The number of packets of each address that were answered in this second.
    by_address: BTreeMap<Origin, u32>,
    /// The number of packets of each address that were answered in the second before.
    before: BTreeMap<Origin, u32>,
    /// The number of answers from the half for the addresses of the second before.
    from_known_half: u32,
    /// The number of answers from the half for everybody.
    from_open_half: u32,
}

/// The key of a session: the sender's address and port, and the SSID.
type SessionKey = (SocketAddr, u16);

/// A session of a stateful reflector.
struct Session {
    /// The number of the next answer.
    next: u32,
    packets: u32,
    begun_ns: i64,
    heard_ns: i64,
}

impl Rules {
    pub(super) fn new(bounds: Bounds) -> Self {
        let second = Second {
            begun_ns: i64::MIN / 2,
            by_address: BTreeMap::new(),
            before: BTreeMap::new(),
            from_known_half: 0,
            from_open_half: 0,
        };
        Self { bounds, second, sessions: BTreeMap::new(), by_origin: BTreeMap::new() }
    }

    /// Returns the sequence number of the answer to `packet`, or `None` if a bound is reached.
    pub(super) fn admit(&mut self, from: SocketAddr, packet: SenderPacket, now_ns: i64) -> Option<u32> {
        let origin = Origin::of(from.ip());
        if !self.second.admits(origin, self.bounds.packets_per_s, now_ns) {
            return None;
        }
        if self.bounds.is_stateful {
            Some(self.number((from, packet.ssid), origin, now_ns))
        } else {
            Some(packet.sequence)
        }
    }

    /// Returns the number of the next answer in the session `key`. Begins the session if there is none.
    fn number(&mut self, key: SessionKey, origin: Origin, now_ns: i64) -> u32 {
        if !self.sessions.contains_key(&key) {
            self.make_room(origin, now_ns);
            self.by_origin.entry(origin).or_default().push(key);
        }
        let new = Session { next: 0, packets: 0, begun_ns: now_ns, heard_ns: now_ns };
        let session = self.sessions.entry(key).or_insert(new);
        if now_ns - session.heard_ns >= REFWAIT_NS {
            session.next = 0;
        }
        let sequence = session.next;
        session.next = sequence.wrapping_add(1);
        session.packets = session.packets.saturating_add(1);
        session.heard_ns = now_ns;
        sequence
    }

    /// Removes sessions if one more session of `origin` would exceed a bound. An address that has its half
    /// loses sessions of its own. If all sessions are taken, the addresses with the most sessions lose some.
    fn make_room(&mut self, origin: Origin, now_ns: i64) {
        let all = self.bounds.sessions.max(1);
        let own = self.by_origin.get(&origin).map_or(0, Vec::len);
        let candidates: Vec<SessionKey> = if own >= all.div_ceil(2) {
            self.by_origin.get(&origin).cloned().unwrap_or_default()
        } else if self.sessions.len() >= all {
            let most = self.by_origin.values().map(Vec::len).max().unwrap_or(0);
            self.by_origin.values().filter(|keys| keys.len() == most).flatten().copied().collect()
        } else {
            return;
        };
        // If there are many sessions, several are removed at once, so that a flood does not cause a search
        // through all sessions for each packet.
        let count = (all / AT_ONCE).min(candidates.len() / 2).max(1);
        let mut ranked: Vec<_> = candidates
            .into_iter()
            .filter_map(|key| {
                let session = self.sessions.get(&key)?;
                Some((Reverse(session.is_over(now_ns)), session.packets, drawn(), key))
            })
            .collect();
        ranked.sort_unstable();
        for (_, _, _, key) in ranked.into_iter().take(count) {
            self.remove(&key);
        }
    }

    fn remove(&mut self, key: &SessionKey) {
        self.sessions.remove(key);
        let origin = Origin::of(key.0.ip());
        if let Some(keys) = self.by_origin.get_mut(&origin) {
            keys.retain(|other| other != key);
            if keys.is_empty() {
                self.by_origin.remove(&origin);
            }
        }
    }
}

impl Second {
    /// Whether one more packet of `origin` is within the bound of `all` packets a second. A packet that is
    /// within the bound is counted.
    fn admits(&mut self, origin: Origin, all: u32, now_ns: i64) -> bool {
        if now_ns - self.begun_ns >= SECOND_NS {
            let is_next = now_ns - self.begun_ns < 2 * SECOND_NS;
            let over = std::mem::take(&mut self.by_address);
            self.before = if is_next { over } else { BTreeMap::new() };
            (self.begun_ns, self.from_known_half, self.from_open_half) = (now_ns, 0, 0);
        }
        let addresses = self.before.len() as u32;
        // If no address was answered in the second before, everything is for everybody.
        let part = (all / 2).checked_div(addresses);
        let for_known = part.map_or(0, |part| if part > 0 { part * addresses } else { all / 2 });
        let for_everybody = all - for_known;
        let count = self.by_address.get(&origin).copied().unwrap_or(0);
        // If the half has less than one packet for each known address, an address may have twice as many
        // packets as before. So a packet that was not answered in the second before can be made up for.
        let own = self
            .before
            .get(&origin)
            .map_or(0, |before| part.filter(|part| *part > 0).unwrap_or(before.saturating_mul(2)));
        if count < own && self.from_known_half < for_known {
            self.from_known_half += 1;
        } else {
            let most = own + (for_everybody / (addresses + 1)).max(1);
            if count >= all.div_ceil(2).min(most) || self.from_open_half >= for_everybody {
                return false;
            }
            self.from_open_half += 1;
        }
        self.by_address.insert(origin, count + 1);
        true
    }
}

impl Session {
    /// Whether no more packets of this session are expected, according to the rate of its packets so far.
    const fn is_over(&self, now_ns: i64) -> bool {
        let interval_ns = match self.packets {
            0 | 1 => SECOND_NS,
            packets => (self.heard_ns - self.begun_ns) / (packets as i64 - 1),
        };
        let patience_ns = interval_ns.saturating_mul(PATIENCE);
        let patience_ns = if patience_ns < SECOND_NS { SECOND_NS } else { patience_ns };
        let silent_ns = now_ns - self.heard_ns;
        silent_ns >= patience_ns || silent_ns >= REFWAIT_NS
    }
}

/// Draws a random number. If the system gives none, the number is always 0.
fn drawn() -> u64 {
    random::<8>().map_or(0, u64::from_le_bytes)
}

const SECOND_NS: i64 = 1_000_000_000;
/// After this long without a packet a session is over (RFC 5357 §4.2: REFWAIT, 900 s).
const REFWAIT_NS: i64 = 900 * SECOND_NS;
/// The number of intervals without a packet after which a session is over. Chosen: on a path that loses a
/// third of the packets, eight losses in a row have a probability of one in 6,500.
const PATIENCE: i64 = 8;
/// The share of the sessions that are removed at once: one in this number. So a new session costs a search
/// through about this many sessions on average, even if there are many more (chosen).
const AT_ONCE: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(is_stateful: bool, packets_per_s: u32, sessions: usize) -> Rules {
        Rules::new(Bounds { is_stateful, packets_per_s, sessions })
    }

    fn address(host: u32, port: u16) -> SocketAddr {
        (std::net::Ipv4Addr::from_bits(0x0a00_0000 + host), port).into()
    }

    #[test]
    fn a_second_has_a_bound_and_one_address_half_of_it() {
        let mut rules = rules(false, 12, 1);
        let mut admitted = |from: &str, now_ns: i64| {
            let packet = SenderPacket { sequence: 4, ..SenderPacket::default() };
            (0..20).filter(|_| rules.admit(from.parse().unwrap(), packet, now_ns) == Some(4)).count()
        };
        assert_eq!(admitted("192.0.2.1:1", 0), 6);
        assert_eq!(admitted("192.0.2.1:2", 1), 0, "another port is the same address");
        assert_eq!(admitted("[2001:db8::1]:1", 2), 6);
        assert_eq!(admitted("[2001:db8::2]:1", 3), 0, "the /64 has had its half, and all theirs");
        assert_eq!(admitted("192.0.2.9:1", 4), 0);
        // The next second: two addresses have 3 of one half each, and all that come 2 of the other.
        assert_eq!(admitted("192.0.2.9:1", SECOND_NS), 2);
        assert_eq!(admitted("192.0.2.1:1", SECOND_NS), 5);
        assert_eq!(admitted("[2001:db8::1]:1", SECOND_NS), 5);
        assert!(rules.second.by_address.len() <= 12);
    }

    /// 12,000 packets a second of three false addresses spent the 10,000 of each second, and who asked once a
    /// second was not answered.
    #[test]
    fn who_asks_beside_a_flood_from_few_addresses_is_answered() {
        let mut rules = rules(false, 10_000, 1);
        let (mut asked, mut answered) = (0, 0);
        for at in 0..60_000_i64 {
            let now_ns = at * SECOND_NS / 12_000;
            rules.admit(address(at as u32 % 3, 5000), SenderPacket::default(), now_ns);
            // Ten a second, and first in the midst of a second.
            if at >= 18_000 && at % 1200 == 0 {
                asked += 1;
                answered +=
                    u32::from(rules.admit(address(9, 5000), SenderPacket::default(), now_ns).is_some());
            }
        }
        assert_eq!((asked, answered), (35, 35));
    }

    /// A flood with a new address a packet leaves a newcomer a lottery, and who was there its part.
    #[test]
    fn who_was_answered_before_is_answered_beside_a_flood_from_any_addresses() {
        let mut rules = rules(false, 10_000, 1);
        let mut answered = 0;
        for at in 0..60_000_i64 {
            let now_ns = SECOND_NS / 2 + at * SECOND_NS / 12_000;
            if at % 1200 == 0 {
                answered +=
                    u32::from(rules.admit(address(0, 5000), SenderPacket::default(), now_ns).is_some());
            }
            rules.admit(address(1 + at as u32, 5000), SenderPacket::default(), now_ns);
        }
        // Nobody was known in the first second, whose end the flood had.
        assert_eq!(answered, 49);
    }

    #[test]
    fn a_stateful_reflector_numbers_each_sessions_packets() {
        let mut rules = rules(true, 100, 4);
        let mut numbered = |port: u16, sequence: u32, ssid: u16, now_ns: i64| {
            let packet = SenderPacket { sequence, ssid, ..SenderPacket::default() };
            rules.admit(address(1, port), packet, now_ns).unwrap()
        };
        // Packet 1 was lost on its way here.
        assert_eq!([numbered(1, 0, 0, 0), numbered(1, 2, 0, 1)], [0, 1]);
        assert_eq!(numbered(1, 0, 7, 2), 0, "another SSID is another session");
        // The address has its half: its third session takes the place of the one that was heard least often.
        assert_eq!(numbered(2, 0, 0, 3), 0);
        assert_eq!(numbered(1, 3, 0, 4), 2);
        assert_eq!(numbered(1, 9, 0, REFWAIT_NS + 4), 0, "one that was silent for long begins anew");
        assert_eq!(rules.sessions.len(), 2);
    }

    /// 1,560 packets of three false addresses filled the table, and nobody new was answered for 15 minutes.
    #[test]
    fn a_flood_from_few_addresses_takes_the_place_of_its_own_sessions() {
        let mut rules = rules(true, 1_000_000, 1024);
        let own = |rules: &mut Rules, host: u32, now_ns: i64| {
            rules.admit(address(host, 5000), SenderPacket::default(), now_ns)
        };
        assert_eq!(own(&mut rules, 8, 0), Some(0));
        for number in 0..6000_u32 {
            let from = address(number % 3, 1000 + (number / 3) as u16);
            assert!(rules.admit(from, SenderPacket::default(), number.into()).is_some());
        }
        assert_eq!(rules.sessions.len(), 1024);
        assert_eq!(own(&mut rules, 8, 6000), Some(1), "who was there");
        let newcomer: Vec<_> = (0..20).map(|at| own(&mut rules, 9, 6001 + at)).collect();
        assert_eq!(newcomer, (0..20).map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn a_session_that_was_heard_more_often_than_a_floods_keeps_its_place_whatever_the_addresses_are() {
        let mut rules = rules(true, 1_000_000, 64);
        for at in 0..20_000 {
            let now_ns = at * SECOND_NS / 10_000;
            // Ten a second; the flood begins after the second one.
            if at % 1000 == 0 {
                let number = rules.admit(address(1, 5000), SenderPacket::default(), now_ns);
                assert_eq!(number, Some((at / 1000) as u32));
            }
            if at > 1000 {
                rules.admit(address(10 + at as u32, 5000), SenderPacket::default(), now_ns);
            }
        }
    }

    #[test]
    fn of_the_sessions_of_the_address_with_the_most_one_that_is_over_goes_first() {
        let mut rules = rules(true, 1000, 4);
        let mut ask =
            |port: u16, now_ns: i64| rules.admit(address(port.into(), port), SenderPacket::default(), now_ns);
        for at in 0..5 {
            ask(1, at * SECOND_NS / 10);
        }
        let later_ns = 3 * SECOND_NS;
        for port in 2..=4 {
            ask(port, later_ns);
        }
        // 1 was heard each 100 ms and then not for 2.6 s: it is over, though it was heard most often.
        ask(5, later_ns);
        assert!(!rules.sessions.contains_key(&(address(1, 1), 0)));
        assert_eq!(rules.sessions.len(), 4);
    }
}

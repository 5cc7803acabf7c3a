//! The admission control of a reflector. It decides whether a packet gets an answer, and numbers the answers.
//!
//! A reflector answers a limited number of packets in each second, and a stateful reflector keeps a limited
//! number of sessions. Anybody can forge the sender's address, so a flood of forged packets must not take
//! everything:
//!
//! ```text
//!  answers of a second:   known half   for the n addresses that had an answer in the second before, each 1 / n
//!                         open half    for all addresses, each at most 1 / (n + 1)
//!  sessions:              see `sessions.rs`
//! ```
//!
//! So a flood from few forged addresses cannot take the answers for new senders. If a flood has more
//! addresses than there are answers in a second, a new sender is answered only by chance. But a sender that
//! had an answer in the second before still gets its answers.
//!
//! - *address*: an IPv4 address, or the /64 of an IPv6 address ([`Origin`]).

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::codec::SenderPacket;
use super::sessions::{SessionKey, Sessions};
use crate::server::origin::Origin;

/// The length of the time for which the answers are limited, ns.
const QUOTA_TIME_NS: i64 = 1_000_000_000;

/// The limits of a reflector.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReflectorLimits {
    /// True if the reflector numbers the answers of each session itself.
    pub(super) is_stateful: bool,
    /// The largest number of packets that are answered within a second.
    pub(super) packets_per_s: u32,
    /// The largest number of concurrent sessions.
    pub(super) sessions: usize,
}

/// The admission control of one reflector.
pub(super) struct AdmissionControl {
    limits: ReflectorLimits,
    quota: AnswerQuota,
    sessions: Sessions,
}

impl AdmissionControl {
    pub(super) fn new(limits: ReflectorLimits) -> Self {
        let quota = AnswerQuota::new(limits.packets_per_s);
        Self { limits, quota, sessions: Sessions::new(limits.sessions) }
    }

    /// Returns the sequence number of the answer to `packet`. Returns `None` if the packet gets no answer,
    /// because a limit is reached.
    pub(super) fn admit(&mut self, sender: SocketAddr, packet: SenderPacket, now_ns: i64) -> Option<u32> {
        if !self.quota.take(Origin::of(sender.ip()), now_ns) {
            return None;
        }
        if !self.limits.is_stateful {
            return Some(packet.sequence);
        }
        Some(self.sessions.next_number(SessionKey { sender, ssid: packet.ssid }, now_ns))
    }
}

/// The answers of the current second. Each map has at most as many entries as there are answers in a second.
struct AnswerQuota {
    /// The largest number of answers in a second.
    limit: u32,
    /// CLOCK_MONOTONIC at the beginning of the second, ns.
    begin_ns: i64,
    /// The number of answers that each address has had in this second.
    answered: BTreeMap<Origin, u32>,
    /// The number of answers that each address had in the second before. These addresses are known.
    answered_before: BTreeMap<Origin, u32>,
    /// The number of answers from the known half.
    known_half_used: u32,
    /// The number of answers from the open half.
    open_half_used: u32,
}

/// The sizes of both halves.
struct Halves {
    known: u32,
    open: u32,
    /// The part of each known address in the known half. It is 0 if there are more known addresses than
    /// answers.
    part: u32,
}

impl AnswerQuota {
    const fn new(limit: u32) -> Self {
        Self {
            limit,
            // The first packet begins a new second, whatever the clock reads.
            begin_ns: i64::MIN / 2,
            answered: BTreeMap::new(),
            answered_before: BTreeMap::new(),
            known_half_used: 0,
            open_half_used: 0,
        }
    }

    /// Takes one answer for `origin`. Returns false if none is left for it.
    fn take(&mut self, origin: Origin, now_ns: i64) -> bool {
        self.begin_second_if_due(now_ns);
        let halves = self.halves();
        let reserved = self.reserved_for(origin, halves.part);
        let answered = self.answered.get(&origin).copied().unwrap_or(0);
        if answered < reserved && self.known_half_used < halves.known {
            self.known_half_used += 1;
        } else {
            let known_addresses = self.answered_before.len() as u32;
            let most = reserved + (halves.open / (known_addresses + 1)).max(1);
            // No address has more than half of all answers.
            let most = most.min(self.limit.div_ceil(2));
            if answered >= most || self.open_half_used >= halves.open {
                return false;
            }
            self.open_half_used += 1;
        }
        self.answered.insert(origin, answered + 1);
        true
    }

    fn begin_second_if_due(&mut self, now_ns: i64) {
        let elapsed_ns = now_ns - self.begin_ns;
        if elapsed_ns < QUOTA_TIME_NS {
            return;
        }
        let answered = std::mem::take(&mut self.answered);
        // If no packet came for a whole second, no address is known.
        self.answered_before = if elapsed_ns < 2 * QUOTA_TIME_NS { answered } else { BTreeMap::new() };
        (self.begin_ns, self.known_half_used, self.open_half_used) = (now_ns, 0, 0);
    }

    /// Returns the sizes of both halves. If no address is known, all answers are in the open half.
    fn halves(&self) -> Halves {
        let half = self.limit / 2;
        let known_addresses = self.answered_before.len() as u32;
        let (known, part) = match half.checked_div(known_addresses) {
            None => (0, 0),
            Some(0) => (half, 0),
            Some(part) => (part * known_addresses, part),
        };
        Halves { known, open: self.limit - known, part }
    }

    /// Returns the number of answers in the known half that are reserved for `origin`.
    fn reserved_for(&self, origin: Origin, part: u32) -> u32 {
        match self.answered_before.get(&origin) {
            None => 0,
            Some(_) if part > 0 => part,
            // If there are more known addresses than answers, an address may have twice as many answers as
            // before. So it can catch up on a packet that had no answer in the second before.
            Some(before) => before.saturating_mul(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sessions::{REFWAIT_NS, SessionKey};
    use super::*;

    fn admission(is_stateful: bool, packets_per_s: u32, sessions: usize) -> AdmissionControl {
        AdmissionControl::new(ReflectorLimits { is_stateful, packets_per_s, sessions })
    }

    const SECOND_NS: i64 = 1_000_000_000;

    fn address(host: u32, port: u16) -> SocketAddr {
        (std::net::Ipv4Addr::from_bits(0x0a00_0000 + host), port).into()
    }

    #[test]
    fn a_second_has_a_bound_and_one_address_half_of_it() {
        let mut admission = admission(false, 12, 1);
        let mut admitted = |from: &str, now_ns: i64| {
            let packet = SenderPacket { sequence: 4, ..SenderPacket::default() };
            (0..20).filter(|_| admission.admit(from.parse().unwrap(), packet, now_ns) == Some(4)).count()
        };
        assert_eq!(admitted("192.0.2.1:1", 0), 6);
        assert_eq!(admitted("192.0.2.1:2", 1), 0, "another port is the same address");
        assert_eq!(admitted("[2001:db8::1]:1", 2), 6);
        assert_eq!(admitted("[2001:db8::2]:1", 3), 0, "the /64 has had its half, and no answer is left");
        assert_eq!(admitted("192.0.2.9:1", 4), 0);
        // In the next second two addresses are known. Each has 3 answers of the known half and 2 of the open
        // half. A new address has 2 of the open half.
        assert_eq!(admitted("192.0.2.9:1", SECOND_NS), 2);
        assert_eq!(admitted("192.0.2.1:1", SECOND_NS), 5);
        assert_eq!(admitted("[2001:db8::1]:1", SECOND_NS), 5);
        assert!(admission.quota.answered.len() <= 12);
    }

    /// 12,000 packets a second from three forged addresses once took all 10,000 answers of each second.
    #[test]
    fn a_sender_is_answered_during_a_flood_from_few_addresses() {
        let mut admission = admission(false, 10_000, 1);
        let (mut asked, mut answered) = (0, 0);
        for at in 0..60_000_i64 {
            let now_ns = at * SECOND_NS / 12_000;
            admission.admit(address(at as u32 % 3, 5000), SenderPacket::default(), now_ns);
            // A sender asks ten times a second. It begins in the middle of a second.
            if at >= 18_000 && at % 1200 == 0 {
                asked += 1;
                answered +=
                    u32::from(admission.admit(address(9, 5000), SenderPacket::default(), now_ns).is_some());
            }
        }
        assert_eq!((asked, answered), (35, 35));
    }

    /// In a flood, each packet has a new address. A new sender is answered only by chance, but a known sender
    /// has its part.
    #[test]
    fn a_known_sender_is_answered_during_a_flood_from_many_addresses() {
        let mut admission = admission(false, 10_000, 1);
        let mut answered = 0;
        for at in 0..60_000_i64 {
            let now_ns = SECOND_NS / 2 + at * SECOND_NS / 12_000;
            if at % 1200 == 0 {
                answered +=
                    u32::from(admission.admit(address(0, 5000), SenderPacket::default(), now_ns).is_some());
            }
            admission.admit(address(1 + at as u32, 5000), SenderPacket::default(), now_ns);
        }
        // In the first second no address is known, and the flood takes the last answers.
        assert_eq!(answered, 49);
    }

    #[test]
    fn a_stateful_reflector_numbers_each_sessions_packets() {
        let mut admission = admission(true, 100, 4);
        let mut numbered = |port: u16, sequence: u32, ssid: u16, now_ns: i64| {
            let packet = SenderPacket { sequence, ssid, ..SenderPacket::default() };
            admission.admit(address(1, port), packet, now_ns).unwrap()
        };
        // Packet 1 was lost on its way to the reflector.
        assert_eq!([numbered(1, 0, 0, 0), numbered(1, 2, 0, 1)], [0, 1]);
        assert_eq!(numbered(1, 0, 7, 2), 0, "another SSID is another session");
        // The address has its half of the sessions, so its third session replaces the one with the fewest
        // packets.
        assert_eq!(numbered(2, 0, 0, 3), 0);
        assert_eq!(numbered(1, 3, 0, 4), 2);
        assert_eq!(numbered(1, 9, 0, REFWAIT_NS + 4), 0, "a session that was silent for long starts at 0");
        assert_eq!(admission.sessions.len(), 2);
    }

    /// 1,560 packets from three forged addresses once filled the table, and no new sender was answered for 15
    /// minutes.
    #[test]
    fn a_flood_from_few_addresses_replaces_its_own_sessions() {
        let mut admission = admission(true, 1_000_000, 1024);
        let ask = |admission: &mut AdmissionControl, host: u32, now_ns: i64| {
            admission.admit(address(host, 5000), SenderPacket::default(), now_ns)
        };
        assert_eq!(ask(&mut admission, 8, 0), Some(0));
        for number in 0..6000_u32 {
            let from = address(number % 3, 1000 + (number / 3) as u16);
            assert!(admission.admit(from, SenderPacket::default(), number.into()).is_some());
        }
        assert_eq!(admission.sessions.len(), 1024);
        assert_eq!(ask(&mut admission, 8, 6000), Some(1), "the session from before the flood");
        let newcomer: Vec<_> = (0..20).map(|at| ask(&mut admission, 9, 6001 + at)).collect();
        assert_eq!(newcomer, (0..20).map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn a_session_with_more_packets_than_those_of_a_flood_stays() {
        let mut admission = admission(true, 1_000_000, 64);
        for at in 0..20_000 {
            let now_ns = at * SECOND_NS / 10_000;
            // The session has ten packets a second. The flood begins after its second packet.
            if at % 1000 == 0 {
                let number = admission.admit(address(1, 5000), SenderPacket::default(), now_ns);
                assert_eq!(number, Some((at / 1000) as u32));
            }
            if at > 1000 {
                admission.admit(address(10 + at as u32, 5000), SenderPacket::default(), now_ns);
            }
        }
    }

    #[test]
    fn a_session_that_is_over_is_removed_first() {
        let mut admission = admission(true, 1000, 4);
        let mut ask = |port: u16, now_ns: i64| {
            admission.admit(address(port.into(), port), SenderPacket::default(), now_ns)
        };
        for at in 0..5 {
            ask(1, at * SECOND_NS / 10);
        }
        let later_ns = 3 * SECOND_NS;
        for port in 2..=4 {
            ask(port, later_ns);
        }
        // The session of host 1 had a packet each 100 ms, and then none for 2.6 s. So it is over, although it
        // has the most packets.
        ask(5, later_ns);
        assert!(!admission.sessions.contains(SessionKey { sender: address(1, 1), ssid: 0 }));
        assert_eq!(admission.sessions.len(), 4);
    }
}

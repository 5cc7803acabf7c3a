//! The session-reflector of STAMP (RFC 8762 §4.3): `talkpath stamp --reflect`.
//!
//! It promises what `serve` promises strangers: no answer is longer than what it answers, nobody is answered
//! who did not ask, and there is a bound for what all together may have answered within a second, and one
//! address half of that. The packet of a reflector is never answered, so that two of them cannot be made to
//! answer each other for ever: a sender's has zeros where a reflector's has stamps. A stateful reflector has
//! a bound for sessions, too, and one address half of that.
//!
//! Left out: authenticated mode; TWAMP Light senders that fill those zeros with padding (RFC 8762 §4.6). Who
//! may reach the port is a firewall's affair.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use talkpath_kernel::clock::{monotonic, wall};
use talkpath_kernel::sys::{ReceiveBatch, Received, Unconnected, clock_error, send_with};

use super::PORT;
use super::codec::{
    BASE, ClassOfService, ErrorEstimate, ReflectorPacket, SenderPacket, Timestamp, reflect_tlvs,
};
use crate::server::bind::{DatagramSocket, datagrams};
use crate::server::origin::Origin;

/// How to reflect.
#[derive(Clone, Copy, Debug)]
pub struct ReflectOptions {
    /// Where to listen; port 0 lets the system choose.
    pub bind: SocketAddr,
    /// Whether each session's packets are numbered here, so that its sender knows which way a packet was lost
    /// (RFC 8762 §4).
    pub is_stateful: bool,
    /// Packets that are answered within a second; one address has half of them.
    pub packets_per_s: u32,
    /// Sessions of a stateful reflector at a time: an address, a port and an SSID. One address has half of
    /// them. One that was silent for 15 min makes room.
    pub sessions: usize,
}

/// What a reflector did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reflected {
    /// Packets answered.
    pub answered: u64,
    /// Packets that are no sender's, or come from a port where something answers.
    pub ignored: u64,
    /// Packets beyond a bound.
    pub beyond: u64,
}

/// A bound reflector; [`Reflector::run`] reflects.
pub struct Reflector {
    socket: Arc<UdpSocket>,
    is_v6: bool,
    port: u16,
    rules: Rules,
}

impl Reflector {
    /// Opens the port.
    ///
    /// # Errors
    /// The system's.
    pub fn bind(options: ReflectOptions) -> io::Result<Self> {
        let DatagramSocket { socket, is_v6 } = datagrams(options.bind)?;
        let port = socket.local_addr()?.port();
        Ok(Self { socket, is_v6, port, rules: Rules::new(options) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Reflects until `stop`.
    pub fn run(&mut self, stop: &AtomicBool) -> Reflected {
        let mut batch = ReceiveBatch::default();
        let mut done = Reflected::default();
        while !stop.load(Ordering::Relaxed) {
            let timeout = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            let _ = poll(&mut [PollFd::new(&*self.socket, PollFlags::IN)], Some(&timeout));
            let (socket, is_v6, port, rules) = (&self.socket, self.is_v6, self.port, &mut self.rules);
            // What fails here is news of something sent before: it says nothing of what arrives.
            let _ = batch.receive(socket.as_fd(), |datagram| {
                match reflect(&datagram, port, rules) {
                    Ok((answer, class, to)) => {
                        let from = datagram.to.unwrap_or(unspecified(is_v6));
                        let to = Unconnected { from, to, is_v6, tos: Some(class) };
                        // An answer that the socket does not take is lost, as on the path.
                        let _ = send_with(socket.as_fd(), &answer, Some(to), None);
                        done.answered += 1;
                    }
                    Err(Refusal::Ignored) => done.ignored += 1,
                    Err(Refusal::Beyond) => done.beyond += 1,
                }
            });
        }
        done
    }
}

/// Why a packet is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    Ignored,
    Beyond,
}

/// The answer, with which traffic class it leaves, and to whom.
fn reflect(
    datagram: &Received<'_>,
    own_port: u16,
    rules: &mut Rules,
) -> Result<(Vec<u8>, u8, SocketAddr), Refusal> {
    let from = datagram.from.ok_or(Refusal::Ignored)?;
    let packet = SenderPacket::parse(datagram.payload).ok_or(Refusal::Ignored)?;
    if UNANSWERED.contains(&from.port()) || from.port() == own_port {
        return Err(Refusal::Ignored);
    }
    let now_ns = monotonic();
    let sequence = rules.admit(from, packet, now_ns).ok_or(Refusal::Beyond)?;
    let came = datagram.tos.unwrap_or(0);
    // The sender's own, unless it asks for another (RFC 8972 §4.4). An answer is not ECN-capable.
    let mut class = came & !ECN_MASK;
    let mut answer = vec![0; datagram.payload.len()];
    answer[BASE..].copy_from_slice(&datagram.payload[BASE..]);
    reflect_tlvs(&mut answer[BASE..], |asked| {
        class = asked.dscp1 << 2;
        ClassOfService { dscp2: came >> 2, ecn: came & ECN_MASK, reverse_path: 0, ..asked }
    });
    let (is_synchronised, error_ns) = clock_error();
    let error = ErrorEstimate::new(error_ns, is_synchronised);
    let read_ns = wall();
    let reply = ReflectorPacket {
        sequence,
        received: Timestamp::from_unix_ns(datagram.stamp_ns.unwrap_or(read_ns)),
        timestamp: Timestamp::from_unix_ns(wall()),
        error,
        ssid: packet.ssid,
        sender_sequence: packet.sequence,
        sender_timestamp: packet.timestamp,
        sender_error: packet.error,
        // 255 if it is not known, as RFC 5357 §4.2.1 has it.
        sender_ttl: datagram.ttl.unwrap_or(u8::MAX),
    };
    answer[..BASE].copy_from_slice(&reply.write());
    Ok((answer, class, from))
}

/// Who is answered, and with which number.
struct Rules {
    options: ReflectOptions,
    /// CLOCK_MONOTONIC at the beginning of the present second, ns, and what was answered in it, or refused
    /// for want of a session: in all, and by address. So it has no more entries than the bound.
    second_ns: i64,
    answered: u32,
    by_address: BTreeMap<Origin, u32>,
    sessions: BTreeMap<(SocketAddr, u16), Session>,
    /// How many of `sessions` an address has.
    held: BTreeMap<Origin, usize>,
    /// When sessions that are over were last taken away, ns of CLOCK_MONOTONIC.
    swept_ns: i64,
}

/// A session of a stateful reflector.
struct Session {
    /// Of its next packet.
    next: u32,
    heard_ns: i64,
}

impl Rules {
    fn new(options: ReflectOptions) -> Self {
        let (by_address, sessions, held) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let never_ns = i64::MIN / 2;
        Self { options, second_ns: never_ns, answered: 0, by_address, sessions, held, swept_ns: never_ns }
    }

    /// The number of the answer to `packet`; `None` if that is beyond a bound.
    fn admit(&mut self, from: SocketAddr, packet: SenderPacket, now_ns: i64) -> Option<u32> {
        if now_ns - self.second_ns >= SECOND_NS {
            (self.second_ns, self.answered) = (now_ns, 0);
            self.by_address.clear();
        }
        let of_address = self.by_address.get(&Origin::of(from.ip())).copied().unwrap_or(0);
        if self.answered >= self.options.packets_per_s || of_address >= self.options.packets_per_s.div_ceil(2)
        {
            return None;
        }
        // What is refused below costs its work, too.
        self.answered += 1;
        self.by_address.insert(Origin::of(from.ip()), of_address + 1);
        match self.options.is_stateful {
            true => self.number(from, packet.ssid, now_ns),
            false => Some(packet.sequence),
        }
    }

    fn number(&mut self, from: SocketAddr, ssid: u16, now_ns: i64) -> Option<u32> {
        let key = (from, ssid);
        if !self.sessions.contains_key(&key) {
            if !self.has_room(from) {
                self.sweep(now_ns);
            }
            if !self.has_room(from) {
                return None;
            }
            *self.held.entry(Origin::of(from.ip())).or_insert(0) += 1;
        }
        let session = self.sessions.entry(key).or_insert(Session { next: 0, heard_ns: now_ns });
        if now_ns - session.heard_ns >= REFWAIT_NS {
            session.next = 0;
        }
        let sequence = session.next;
        *session = Session { next: sequence.wrapping_add(1), heard_ns: now_ns };
        Some(sequence)
    }

    /// Whether one more session of `from` is within the bounds.
    fn has_room(&self, from: SocketAddr) -> bool {
        let of_address = self.held.get(&Origin::of(from.ip())).copied().unwrap_or(0);
        self.sessions.len() < self.options.sessions && of_address < self.options.sessions.div_ceil(2)
    }

    /// Takes sessions away that are over: it looks at all, so not more often than once a second.
    fn sweep(&mut self, now_ns: i64) {
        if now_ns - self.swept_ns < SECOND_NS {
            return;
        }
        self.swept_ns = now_ns;
        self.sessions.retain(|_, session| now_ns - session.heard_ns < REFWAIT_NS);
        self.held.clear();
        for (from, _) in self.sessions.keys() {
            *self.held.entry(Origin::of(from.ip())).or_insert(0) += 1;
        }
    }
}

const fn unspecified(is_v6: bool) -> IpAddr {
    if is_v6 { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED) }
}

/// Source ports that no sender has: none at all, reflectors, and services that answer whatever comes (echo,
/// RFC 862; chargen, RFC 864).
const UNANSWERED: [u16; 4] = [0, 7, 19, PORT];
/// RFC 3168 §5.
const ECN_MASK: u8 = 0b11;
const SECOND_NS: i64 = 1_000_000_000;
/// After this long without a packet a session is over (RFC 5357 §4.2: REFWAIT, 900 s).
const REFWAIT_NS: i64 = 900 * SECOND_NS;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::codec::put_tlv;

    fn options(is_stateful: bool) -> ReflectOptions {
        let bind = SocketAddr::from(([127, 0, 0, 1], 0));
        ReflectOptions { bind, is_stateful, packets_per_s: 10, sessions: 2 }
    }

    fn datagram<'a>(from: &str, payload: &'a [u8]) -> Received<'a> {
        Received {
            from: Some(from.parse().unwrap()),
            to: None,
            stamp_ns: Some(7),
            tos: Some(46 << 2 | 1),
            ttl: Some(63),
            payload,
        }
    }

    #[test]
    fn an_answer_is_as_long_as_its_question_and_has_its_fields() {
        let packet = SenderPacket { sequence: 9, timestamp: Timestamp(5), error: ErrorEstimate(1), ssid: 3 };
        let mut question = packet.write().to_vec();
        let asked = ClassOfService { dscp1: 10, ..ClassOfService::default() };
        put_tlv(&mut question, super::super::codec::CLASS_OF_SERVICE, &asked.write());
        put_tlv(&mut question, super::super::codec::EXTRA_PADDING, &[1; 100]);
        let mut rules = Rules::new(options(false));
        let datagram = datagram("192.0.2.1:5000", &question);
        let (answer, class, to) = reflect(&datagram, 999, &mut rules).unwrap();
        assert_eq!((answer.len(), class, to.port()), (question.len(), 10 << 2, 5000));
        let reply = ReflectorPacket::parse(&answer).unwrap();
        assert_eq!((reply.sequence, reply.sender_sequence, reply.ssid, reply.sender_ttl), (9, 9, 3, 63));
        assert_eq!((reply.sender_timestamp, reply.received), (Timestamp(5), Timestamp::from_unix_ns(7)));
        let class = super::super::codec::class_of_service(&answer[BASE..]).unwrap();
        assert_eq!((class.dscp1, class.dscp2, class.ecn), (10, 46, 1));
        assert_eq!(answer[BASE + 12..], question[BASE + 12..], "padding as it was");
    }

    #[test]
    fn what_is_no_question_has_no_answer() {
        let packet = SenderPacket::default().write();
        let mut rules = Rules::new(options(false));
        let mut refused =
            |from: &str, payload: &[u8]| reflect(&datagram(from, payload), 999, &mut rules).unwrap_err();
        assert_eq!(refused("192.0.2.1:5000", &packet[..43]), Refusal::Ignored, "too short");
        assert_eq!(refused("192.0.2.1:862", &packet), Refusal::Ignored, "another reflector");
        assert_eq!(refused("192.0.2.1:999", &packet), Refusal::Ignored, "one like this");
        assert_eq!(refused("192.0.2.1:0", &packet), Refusal::Ignored, "no answer can come there");
        assert_eq!(refused("192.0.2.1:7", &packet), Refusal::Ignored, "an echo service");
        assert_eq!(refused("192.0.2.1:19", &packet), Refusal::Ignored, "a chargen service");
    }

    #[test]
    fn two_reflectors_do_not_answer_each_other_whatever_their_ports_are() {
        let mut pair = [options(false), options(true)].map(|options| Reflector::bind(options).unwrap());
        // As if the first one had asked: what a false sender's address does.
        let to = pair[1].local_addr().unwrap();
        pair[0].socket.send_to(&SenderPacket::default().write(), to).unwrap();
        let stop = AtomicBool::new(false);
        let done = std::thread::scope(|scope| {
            let stop = &stop;
            let running = pair.each_mut().map(|one| scope.spawn(move || one.run(stop)));
            std::thread::sleep(std::time::Duration::from_millis(300));
            stop.store(true, Ordering::Relaxed);
            running.map(|thread| thread.join().unwrap())
        });
        assert_eq!(done[1], Reflected { answered: 1, ..Reflected::default() });
        assert_eq!(done[0], Reflected { ignored: 1, ..Reflected::default() });
    }

    #[test]
    fn a_second_has_a_bound_and_one_address_half_of_it() {
        let mut rules = Rules::new(options(false));
        let mut admitted = |from: &str, now_ns: i64| {
            let packet = SenderPacket { sequence: 4, ..SenderPacket::default() };
            (0..20).filter(|_| rules.admit(from.parse().unwrap(), packet, now_ns) == Some(4)).count()
        };
        assert_eq!(admitted("192.0.2.1:1", 0), 5);
        assert_eq!(admitted("192.0.2.1:2", 1), 0, "another port is the same address");
        assert_eq!(admitted("[2001:db8::1]:1", 2), 5);
        assert_eq!(admitted("[2001:db8::2]:1", 3), 0, "the /64 has had its half, and all theirs");
        assert_eq!(admitted("192.0.2.1:1", SECOND_NS), 5, "the next second");
        assert_eq!(admitted("192.0.2.9:1", SECOND_NS), 5);
        assert!(rules.by_address.len() <= 10);
    }

    #[test]
    fn a_stateful_reflector_numbers_each_sessions_packets_and_holds_few_sessions() {
        let mut rules = Rules::new(ReflectOptions { sessions: 3, ..options(true) });
        let mut numbered = |port: u16, sequence: u32, ssid: u16, now_ns: i64| {
            let from = SocketAddr::from(([192, 0, 2, 1], port));
            rules.admit(from, SenderPacket { sequence, ssid, ..SenderPacket::default() }, now_ns)
        };
        // Packet 1 was lost on its way here.
        assert_eq!([numbered(1, 0, 0, 0), numbered(1, 2, 0, 1)], [Some(0), Some(1)]);
        assert_eq!(numbered(1, 0, 7, 2), Some(0), "another SSID is another session");
        assert_eq!(numbered(2, 0, 0, 3), None, "there is no room for a third");
        assert_eq!(numbered(2, 0, 0, REFWAIT_NS + 2), Some(0), "until one was silent for long");
        assert_eq!(numbered(1, 9, 0, REFWAIT_NS + 3), Some(0), "which begins anew");
    }

    #[test]
    fn one_address_has_half_of_the_sessions_and_refusals_count() {
        let bounds = ReflectOptions { sessions: 4, packets_per_s: 20, ..options(true) };
        let mut rules = Rules::new(bounds);
        let mut begun = |host: u8, now_ns: i64| {
            let ports = 1_000..1_020;
            let from = |port| SocketAddr::from(([192, 0, 2, host], port));
            ports.filter(|&port| rules.admit(from(port), SenderPacket::default(), now_ns).is_some()).count()
        };
        assert_eq!(begun(1, 0), 2, "half of the table");
        assert_eq!(begun(2, 1), 2, "the other half");
        assert_eq!(begun(3, 2), 0, "the second is spent by what was refused");
        assert_eq!((rules.answered, rules.sessions.len()), (20, 4));
        assert_eq!(rules.swept_ns, 0, "all sessions are looked at once a second at most");
    }
}

//! The session-reflector of STAMP (RFC 8762 §4.3): `talkpath stamp --reflect`.
//!
//! A reflector cannot be misused for attacks on other hosts. No answer is longer than its question, and there
//! is no answer without a question. The answers within a second and the sessions of a stateful reflector are
//! limited (`rules.rs` shares both among the senders). A reflector does not answer the packet of a reflector,
//! so nobody can make two reflectors answer each other for ever. It knows such a packet by its time stamps,
//! because a sender's packet has zeros there.
//!
//! Left out: authenticated mode, and TWAMP Light senders, which may fill these zeros with padding (RFC 8762
//! §4.6). A firewall decides who may reach the port.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use talkpath_kernel::clock::{monotonic, wall};
use talkpath_kernel::sys::{ReceiveBatch, Received, Unconnected, Unreported, clock_error, send_with};

use super::PORT;
use super::codec::{
    BASE, ClassOfService, DSCP_SHIFT, ErrorEstimate, ReflectorPacket, SenderPacket, Timestamp, reflect_tlvs,
};
use super::rules::{Bounds, Rules};
use crate::server::bind::{DatagramSocket, datagrams};

/// The options of a reflector.
#[derive(Clone, Copy, Debug)]
pub struct ReflectOptions {
    /// The address to listen on. Port 0 lets the system choose a port.
    pub bind: SocketAddr,
    /// Whether the reflector numbers the packets of each session. The sender then knows in which direction a
    /// packet was lost (RFC 8762 §4).
    pub is_stateful: bool,
    /// The number of packets that are answered within a second. One address has at most half of the answers.
    pub packets_per_s: u32,
    /// The number of concurrent sessions of a stateful reflector. A session is an address, a port and an
    /// SSID. One address has at most half of the sessions. If all sessions are taken, a new session replaces
    /// another.
    pub sessions: usize,
}

impl ReflectOptions {
    fn rules(&self) -> Rules {
        let Self { is_stateful, packets_per_s, sessions, .. } = *self;
        Rules::new(Bounds { is_stateful, packets_per_s, sessions })
    }
}

/// The counts of a reflector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reflected {
    /// The number of packets that were answered.
    pub answered: u64,
    /// The number of packets that no sender has sent, or that came from a port where a service answers.
    pub ignored: u64,
    /// The number of packets that were not answered because a limit was reached.
    pub beyond: u64,
}

/// A reflector whose socket is bound. [`Reflector::run`] answers packets.
pub struct Reflector {
    socket: Arc<UdpSocket>,
    is_v6: bool,
    port: u16,
    rules: Rules,
    unreported: Vec<Unreported>,
}

impl Reflector {
    /// Binds the socket.
    ///
    /// # Errors
    /// Returns the system's error if the socket cannot be bound.
    pub fn bind(options: ReflectOptions) -> io::Result<Self> {
        let DatagramSocket { socket, is_v6, unreported } = datagrams(options.bind)?;
        let port = socket.local_addr()?.port();
        Ok(Self { socket, is_v6, port, rules: options.rules(), unreported })
    }

    /// Returns the facts about packets that this kernel does not report. The answers have default values in
    /// their place, or the time at which the packet was read.
    pub fn unreported(&self) -> &[Unreported] {
        &self.unreported
    }

    /// Returns the address that the reflector listens on.
    ///
    /// # Errors
    /// Returns the system's error if the socket has no address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Answers packets until `stop` is set. Returns the counts.
    pub fn run(&mut self, stop: &AtomicBool) -> Reflected {
        let mut batch = ReceiveBatch::default();
        let mut done = Reflected::default();
        while !stop.load(Ordering::Relaxed) {
            let timeout = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            let _ = poll(&mut [PollFd::new(&*self.socket, PollFlags::IN)], Some(&timeout));
            let (socket, is_v6, port, rules) = (&self.socket, self.is_v6, self.port, &mut self.rules);
            // An error here is a report about a packet that was sent before. It says nothing about the
            // packets that arrive.
            let _ = batch.receive(socket.as_fd(), |datagram| {
                match reflect(&datagram, port, rules) {
                    Ok(Reflection { packet, class, to }) => {
                        let from = datagram.to.unwrap_or(unspecified(is_v6));
                        let to = Unconnected { from, to, is_v6, tos: Some(class), is_whole: false };
                        // If the socket does not take the answer, the answer is lost, as if the path had lost
                        // it.
                        let _ = send_with(socket.as_fd(), &packet, Some(to), None);
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

/// The reason why a packet is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    Ignored,
    Beyond,
}

/// An answer to a packet.
#[derive(Debug, PartialEq, Eq)]
struct Reflection {
    packet: Vec<u8>,
    /// The traffic class of the answer.
    class: u8,
    to: SocketAddr,
}

/// Makes the answer to `datagram`.
fn reflect(datagram: &Received<'_>, own_port: u16, rules: &mut Rules) -> Result<Reflection, Refusal> {
    let from = datagram.from.ok_or(Refusal::Ignored)?;
    let packet = SenderPacket::parse(datagram.payload).ok_or(Refusal::Ignored)?;
    if UNANSWERED.contains(&from.port()) || from.port() == own_port {
        return Err(Refusal::Ignored);
    }
    let now_ns = monotonic();
    let sequence = rules.admit(from, packet, now_ns).ok_or(Refusal::Beyond)?;
    let received_class = datagram.tos.unwrap_or(0);
    // The answer has the sender's DSCP, unless the sender asks for another DSCP (RFC 8972 §4.4). An answer is
    // not ECN-capable.
    let mut class = received_class & !ECN_MASK;
    let mut answer = vec![0; datagram.payload.len()];
    answer[BASE..].copy_from_slice(&datagram.payload[BASE..]);
    reflect_tlvs(&mut answer[BASE..], |asked| {
        class = asked.dscp1 << DSCP_SHIFT;
        let (dscp2, ecn) = (received_class >> DSCP_SHIFT, received_class & ECN_MASK);
        ClassOfService { dscp2, ecn, reverse_path: 0, ..asked }
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
        // An unknown TTL is 255 (RFC 5357 §4.2.1).
        sender_ttl: datagram.ttl.unwrap_or(u8::MAX),
    };
    answer[..BASE].copy_from_slice(&reply.write());
    Ok(Reflection { packet: answer, class, to: from })
}

const fn unspecified(is_v6: bool) -> IpAddr {
    if is_v6 { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED) }
}

/// The source ports that are not answered, because no sender has them: port 0, the port of reflectors, and
/// the ports of services that answer every packet (echo, RFC 862; chargen, RFC 864).
const UNANSWERED: [u16; 4] = [0, 7, 19, PORT];
/// The bits of the ECN field in a traffic class (RFC 3168 §5).
const ECN_MASK: u8 = 0b11;

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
        let mut rules = options(false).rules();
        let datagram = datagram("192.0.2.1:5000", &question);
        let Reflection { packet: answer, class, to } = reflect(&datagram, 999, &mut rules).unwrap();
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
        let mut rules = options(false).rules();
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
}

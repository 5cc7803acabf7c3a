//! The session-reflector of STAMP (RFC 8762 §4.3): `talkpath stamp --reflect`.
//!
//! A reflector cannot be misused for attacks on other hosts:
//!
//! - No answer is longer than its packet, and there is no answer without a packet.
//! - The answers in a second are limited, and so are the sessions (`admission.rs`).
//! - It does not answer the packet of a reflector, so two reflectors cannot answer each other for ever. A
//!   sender's packet has zeros where a reflector's packet has its time stamps.
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
use super::admission::{AdmissionControl, ReflectorLimits};
use super::codec::{
    BASE, ClassOfService, DSCP_SHIFT, ErrorEstimate, ReflectorPacket, SenderPacket, Timestamp, reflect_tlvs,
};
use crate::server::bind::{DatagramSocket, datagrams};

/// The source ports that are not answered, because no sender has them: port 0, the port of reflectors, and
/// the ports of services that answer each packet (echo, RFC 862; chargen, RFC 864).
const UNANSWERED_PORTS: [u16; 4] = [0, 7, 19, PORT];
/// The bits of the ECN field in the byte that it shares with the DSCP (RFC 3168 §5).
const ECN_MASK: u8 = 0b11;
/// The longest time in which the reflector does not check whether it has to stop: 20 ms.
const STOP_CHECK_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// The options of a reflector.
#[derive(Clone, Copy, Debug)]
pub struct ReflectOptions {
    /// The address to listen on. Port 0 lets the system choose a port.
    pub bind: SocketAddr,
    /// True if the reflector numbers the answers of each session itself. The sender then knows in which
    /// direction a packet was lost (RFC 8762 §4).
    pub is_stateful: bool,
    /// The number of packets that are answered within a second. One address has at most half of the answers.
    pub packets_per_s: u32,
    /// The number of concurrent sessions of a stateful reflector. A session is an address, a port and an
    /// SSID. One address has at most half of the sessions. If all sessions are taken, a new session replaces
    /// another.
    pub sessions: usize,
}

impl ReflectOptions {
    fn admission_control(&self) -> AdmissionControl {
        let Self { is_stateful, packets_per_s, sessions, .. } = *self;
        AdmissionControl::new(ReflectorLimits { is_stateful, packets_per_s, sessions })
    }
}

/// The packets that a reflector has received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReflectorCounts {
    /// The number of packets that were answered.
    pub answered: u64,
    /// The number of packets that are not a sender's, or that came from a port where a service answers.
    pub ignored: u64,
    /// The number of packets that were not answered because a limit was reached.
    pub over_limit: u64,
}

/// A reflector whose socket is bound. [`Reflector::run`] answers packets.
pub struct Reflector {
    socket: Arc<UdpSocket>,
    is_v6: bool,
    port: u16,
    admission: AdmissionControl,
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
        Ok(Self { socket, is_v6, port, admission: options.admission_control(), unreported })
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

    /// Answers packets until `stop` is set.
    pub fn run(&mut self, stop: &AtomicBool) -> ReflectorCounts {
        let mut batch = ReceiveBatch::default();
        let mut counts = ReflectorCounts::default();
        let (socket, is_v6, port) = (&self.socket, self.is_v6, self.port);
        let admission = &mut self.admission;
        while !stop.load(Ordering::Relaxed) {
            let _ = poll(&mut [PollFd::new(&**socket, PollFlags::IN)], Some(&STOP_CHECK_INTERVAL));
            // An error is a report about an answer that was sent earlier. It says nothing about the packets
            // that arrive.
            let _ = batch.receive(socket.as_fd(), |datagram| {
                match make_answer(&datagram, port, admission) {
                    Ok(answer) => {
                        let from = datagram.to.unwrap_or(unspecified(is_v6));
                        let route = Unconnected {
                            from,
                            to: answer.to,
                            is_v6,
                            tos: Some(answer.tos),
                            is_whole: false,
                        };
                        // If the socket refuses the answer, the sender sees a loss.
                        let _ = send_with(socket.as_fd(), &answer.packet, Some(route), None);
                        counts.answered += 1;
                    }
                    Err(Unanswered::NotForReflector) => counts.ignored += 1,
                    Err(Unanswered::OverLimit) => counts.over_limit += 1,
                }
            });
        }
        counts
    }
}

/// The reason why a packet is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unanswered {
    /// The packet is not a sender's, or it came from a port where a service answers.
    NotForReflector,
    OverLimit,
}

/// An answer to a packet.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    packet: Vec<u8>,
    /// The byte of the IP header with DSCP and ECN field.
    tos: u8,
    to: SocketAddr,
}

/// Makes the answer to `datagram`.
fn make_answer(
    datagram: &Received<'_>,
    own_port: u16,
    admission: &mut AdmissionControl,
) -> Result<Answer, Unanswered> {
    let from = datagram.from.ok_or(Unanswered::NotForReflector)?;
    let packet = SenderPacket::parse(datagram.payload).ok_or(Unanswered::NotForReflector)?;
    if UNANSWERED_PORTS.contains(&from.port()) || from.port() == own_port {
        return Err(Unanswered::NotForReflector);
    }
    let sequence = admission.admit(from, packet, monotonic()).ok_or(Unanswered::OverLimit)?;
    let mut answer = vec![0; datagram.payload.len()];
    answer[BASE..].copy_from_slice(&datagram.payload[BASE..]);
    let tos = fill_tlvs(&mut answer[BASE..], datagram.tos.unwrap_or(0));
    let (is_synchronised, error_ns) = clock_error();
    let error = ErrorEstimate::new(error_ns, is_synchronised);
    let read_ns = wall();
    let base = ReflectorPacket {
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
    answer[..BASE].copy_from_slice(&base.write());
    Ok(Answer { packet: answer, tos, to: from })
}

/// Fills in the TLVs of an answer. `received_tos` is the byte of the packet's IP header with DSCP and ECN
/// field. Returns the byte for the answer. The answer has the DSCP of the packet, unless the sender requests
/// another one (RFC 8972 §4.4). The answer is not ECN-capable.
fn fill_tlvs(tlvs: &mut [u8], received_tos: u8) -> u8 {
    let mut tos = received_tos & !ECN_MASK;
    reflect_tlvs(tlvs, |requested| {
        tos = requested.dscp1 << DSCP_SHIFT;
        let (dscp2, ecn) = (received_tos >> DSCP_SHIFT, received_tos & ECN_MASK);
        ClassOfService { dscp2, ecn, reverse_path: 0, ..requested }
    });
    tos
}

const fn unspecified(is_v6: bool) -> IpAddr {
    if is_v6 { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED) }
}

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
    fn an_answer_is_as_long_as_its_packet_and_repeats_its_fields() {
        let packet = SenderPacket { sequence: 9, timestamp: Timestamp(5), error: ErrorEstimate(1), ssid: 3 };
        let mut question = packet.write().to_vec();
        let asked = ClassOfService { dscp1: 10, ..ClassOfService::default() };
        put_tlv(&mut question, super::super::codec::CLASS_OF_SERVICE, &asked.write());
        put_tlv(&mut question, super::super::codec::EXTRA_PADDING, &[1; 100]);
        let mut admission = options(false).admission_control();
        let datagram = datagram("192.0.2.1:5000", &question);
        let Answer { packet: answer, tos, to } = make_answer(&datagram, 999, &mut admission).unwrap();
        assert_eq!((answer.len(), tos, to.port()), (question.len(), 10 << 2, 5000));
        let reply = ReflectorPacket::parse(&answer).unwrap();
        assert_eq!((reply.sequence, reply.sender_sequence, reply.ssid, reply.sender_ttl), (9, 9, 3, 63));
        assert_eq!((reply.sender_timestamp, reply.received), (Timestamp(5), Timestamp::from_unix_ns(7)));
        let class = super::super::codec::class_of_service(&answer[BASE..]).unwrap();
        assert_eq!((class.dscp1, class.dscp2, class.ecn), (10, 46, 1));
        assert_eq!(answer[BASE + 12..], question[BASE + 12..], "the padding does not change");
    }

    #[test]
    fn a_packet_that_is_not_a_senders_has_no_answer() {
        let packet = SenderPacket::default().write();
        let mut admission = options(false).admission_control();
        let mut reason = |from: &str, payload: &[u8]| {
            make_answer(&datagram(from, payload), 999, &mut admission).unwrap_err()
        };
        assert_eq!(reason("192.0.2.1:5000", &packet[..43]), Unanswered::NotForReflector, "too short");
        assert_eq!(reason("192.0.2.1:862", &packet), Unanswered::NotForReflector, "another reflector");
        assert_eq!(
            reason("192.0.2.1:999", &packet),
            Unanswered::NotForReflector,
            "a reflector on the same port"
        );
        assert_eq!(reason("192.0.2.1:0", &packet), Unanswered::NotForReflector, "no answer can come there");
        assert_eq!(reason("192.0.2.1:7", &packet), Unanswered::NotForReflector, "an echo service");
        assert_eq!(reason("192.0.2.1:19", &packet), Unanswered::NotForReflector, "a chargen service");
    }

    #[test]
    fn two_reflectors_do_not_answer_each_other_whatever_their_ports_are() {
        let mut pair = [options(false), options(true)].map(|options| Reflector::bind(options).unwrap());
        // The first reflector sends a packet, as a forged address would make it do.
        let to = pair[1].local_addr().unwrap();
        pair[0].socket.send_to(&SenderPacket::default().write(), to).unwrap();
        let stop = AtomicBool::new(false);
        let done = std::thread::scope(|scope| {
            let stop = &stop;
            let running = pair.each_mut().map(|reflector| scope.spawn(move || reflector.run(stop)));
            std::thread::sleep(std::time::Duration::from_millis(300));
            stop.store(true, Ordering::Relaxed);
            running.map(|thread| thread.join().unwrap())
        });
        assert_eq!(done[1], ReflectorCounts { answered: 1, ..ReflectorCounts::default() });
        assert_eq!(done[0], ReflectorCounts { ignored: 1, ..ReflectorCounts::default() });
    }
}

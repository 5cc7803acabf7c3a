//! The session-sender of STAMP (RFC 8762 §4.2), for the command `talkpath stamp --to HOST`.
//!
//! ```text
//!  this host                        reflector
//!   T1 ────── packet k, T1 ─────────► T2          forward delay:  T2 - T1
//!                                     │ turn-round: T3 - T2
//!   T4 ◄───── k, T1, T2, T3 ───────── T3          round trip:     T4 - T1 - (T3 - T2)
//! ```
//!
//! T1 is read just before the packet is given to the kernel. T4 is the kernel's receive time stamp. The
//! reflector has read T2 and T3 from its own clock. So the forward delay needs the offset between both
//! clocks, which `talkpath_arena::offset` computes from all answers, as in a live run.
//!
//! - *sequence number*: the number of a packet, counted from 0. An answer repeats it.
//! - *SSID*: a random number that identifies the session (RFC 8972 §3).
//! - *base*: the first 44 bytes of a packet. TLVs follow (RFC 8972 §4).
//!
//! Begin to read with [`send`]. `losses.rs` finds out in which direction packets were lost. `record.rs` turns
//! the packets into the record of one flow, so that its figures are computed like those of every other flow.
//!
//! Left out: authenticated mode. If somebody sets the wall clock of this host during a run, the result looks
//! as if the reflector's clock had been set.

#[cfg(any(test, feature = "fuzzing"))]
pub(super) mod fuzzing;
mod losses;
mod packet_row;
mod record;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use talkpath_arena::ArenaError;
use talkpath_arena::offset::{Offset, Probe};
use talkpath_kernel::clock::{HostClock, RunClock};
use talkpath_kernel::end::UdpRoute;
use talkpath_kernel::random::random;
use talkpath_kernel::sys::{ReceiveBatch, Received, Unreported, clock_error, report_arrivals, set_tos};
use talkpath_kernel::udp_drops::DropCount;
use talkpath_measure::RunRecord;
use talkpath_model::IpVersion;
use talkpath_units::{Bytes, Duration, Histogram, Instant, counted};

pub use self::losses::DirectionLosses;
use self::losses::LossAnalysis;
use self::packet_row::{Answer, PacketRow};
use super::PORT;
use super::codec::{
    BASE, CLASS_OF_SERVICE, ClassOfService, DSCP_SHIFT, EXTRA_PADDING, ErrorEstimate, ReflectorPacket,
    SenderPacket, TLV_HEADER, Timestamp, class_of_service, put_tlv,
};
use crate::client::address;

/// The time from the opening of the socket to the first packet, ns. We chose 10 ms.
const LEAD_NS: i64 = 10_000_000;
/// The time before a packet is due at which the wait for answers ends and the precise sleep begins. It is the
/// time that [`RunClock::sleep_until`] spins.
const SPIN: Duration = Duration::from_micros(60);
/// The longest time in which a wait does not check whether it has to end.
const MAX_WAIT: Duration = Duration::from_millis(20);

/// The options of a measurement.
#[derive(Clone, Debug)]
pub struct StampOptions {
    /// The reflector: `HOST` or `HOST:PORT`. The default port is 862.
    pub host: String,
    /// The version of IP to reach the reflector over. `None` if the system's first address is taken.
    pub ip: Option<IpVersion>,
    /// The time from one packet to the next.
    pub interval: Duration,
    /// The number of packets.
    pub count: u32,
    /// The UDP payload of each packet. It is at least [`StampOptions::min_size`]. The bytes beyond the
    /// minimum are Extra Padding.
    pub size: Bytes,
    /// If there are DSCPs, each packet has a Class of Service TLV.
    pub dscps: Option<Dscps>,
    /// True if the user states that the reflector is stateful ([`StampRun::is_stateful`]).
    pub is_stateful: bool,
    /// True if the user states that both clocks show the same time.
    pub clocks_synchronised: bool,
    /// The time to wait for answers after the last packet.
    pub wait: Duration,
}

/// The DSCPs of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dscps {
    /// The DSCP of the packets.
    pub packets: u8,
    /// The DSCP that the reflector is asked to give to the answers.
    pub answers: u8,
}

/// The result of a measurement.
#[derive(Clone, Debug)]
pub struct StampRun {
    /// The record of one flow with an echo. The flow is called `stamp`.
    pub record: RunRecord,
    /// True if the reflector is known to be stateful: it numbers its answers itself, instead of copying the
    /// numbers of the packets. If nothing was lost, the answers of both kinds of reflectors look the same.
    pub is_stateful: bool,
    /// The losses of each direction. `None` if only their sum is known.
    pub losses: Option<DirectionLosses>,
    /// The facts that the answers contain.
    pub reflector: ReflectorFacts,
    /// The number of received datagrams that are not answers to a packet of this session.
    pub unmatched_answers: u64,
}

/// The facts about the reflector, and about the packets that arrived there. Each is `None` until an answer
/// contains it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReflectorFacts {
    /// The clock, as the last answer describes it.
    pub clock: Option<ReflectorClock>,
    /// The TTLs (or hop limits) with which packets arrived at the reflector.
    pub ttl: Option<TtlRange>,
    /// The Class of Service TLV of the last answer that has one.
    pub class_of_service: Option<ReportedClass>,
}

/// The reflector's description of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReflectorClock {
    /// True if the clock is synchronised to UTC.
    pub is_synchronised: bool,
    /// The largest error of the clock, ns. `None` if the reflector states no valid error.
    pub max_error_ns: Option<u64>,
}

/// The smallest and the largest TTL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct TtlRange {
    pub min: u8,
    pub max: u8,
}

/// The class of service with which a packet arrived at the reflector, and its answer at this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedClass {
    /// The DSCP with which the packet arrived at the reflector.
    pub packet_dscp: u8,
    /// The ECN field with which the packet arrived at the reflector.
    pub packet_ecn: u8,
    /// True if the reflector refused to send with the requested DSCP.
    pub is_refused: bool,
    /// The DSCP with which the answer arrived at this host. `None` if this host's kernel does not report it.
    pub answer_dscp: Option<u8>,
}

impl StampOptions {
    /// Returns the size of the smallest packet: the base, and the Class of Service TLV if there are DSCPs.
    pub const fn min_size(dscps: Option<Dscps>) -> u64 {
        let tlv = if dscps.is_some() { TLV_HEADER + ClassOfService::SIZE } else { 0 };
        (BASE + tlv) as u64
    }

    /// Makes the TLVs of each packet.
    fn tlvs(&self) -> Vec<u8> {
        let mut tlvs = Vec::new();
        if let Some(dscps) = self.dscps {
            let class = ClassOfService { dscp1: dscps.answers, ..ClassOfService::default() };
            put_tlv(&mut tlvs, CLASS_OF_SERVICE, &class.write());
        }
        let size = usize::try_from(self.size.get()).unwrap_or(usize::MAX);
        let remaining = size.saturating_sub(BASE + tlvs.len());
        // If fewer bytes remain than a TLV's header has, the packet gets no padding and is smaller than
        // `size`.
        if let Some(length) = remaining.checked_sub(TLV_HEADER) {
            put_tlv(&mut tlvs, EXTRA_PADDING, &make_padding(length));
        }
        tlvs
    }
}

/// Makes pseudo-random bytes, which no link can compress (RFC 8972 §4.1). They are the same in each run.
fn make_padding(length: usize) -> Vec<u8> {
    let mut stream = talkpath_units::Seed::new(8972).stream("stamp/padding");
    (0..length).map(|_| (stream.bits() >> 56) as u8).collect()
}

/// Sends `options.count` packets, and waits for the answers. If the user interrupts the run, it sends no more
/// packets, and waits for the answers to those that were sent.
///
/// # Errors
/// Returns [`ArenaError::FarEnd`] if the host has no address, or if no answer arrived. Returns
/// [`ArenaError::Unavailable`] if the socket cannot be opened. Returns [`ArenaError::Interrupted`] if the
/// user interrupts the run before the first packet.
pub fn send(options: &StampOptions, interrupt: &AtomicBool) -> Result<StampRun, ArenaError> {
    let (name, addresses) =
        address::resolve_at(&options.host, PORT, options.ip).map_err(ArenaError::far_end)?;
    let Some(&reflector) = addresses.first() else {
        return Err(ArenaError::far_end(format!("no such host: {name}")));
    };
    let mut sender = Sender::open(reflector, options).map_err(|why| ArenaError::Unavailable {
        what: format!("cannot open a UDP socket to {reflector}: {why}"),
        how: "see the route to that address, and the limit of open files (ulimit -n)".to_owned(),
    })?;
    let mut batch = ReceiveBatch::default();
    sender.send_packets(options, interrupt, &mut batch);
    sender.wait_for_last_answers(options.wait, &mut batch);
    if sender.packets.is_empty() && interrupt.load(Ordering::Relaxed) {
        return Err(ArenaError::Interrupted { partial: None });
    }
    if sender.answered == 0 {
        return Err(ArenaError::far_end(format!(
            "{name} answered none of {}; does a STAMP reflector run there (`talkpath stamp --reflect`), and does a \
             firewall let UDP through to this port?",
            counted(sender.packets.len(), "packet")
        )));
    }
    sender
        .finish(options)
        .ok_or_else(|| ArenaError::far_end(format!("the clocks of {name} could not be compared")))
}

/// A session-sender during a session.
struct Sender {
    route: UdpRoute,
    clock: RunClock,
    /// The time at which `clock` reads zero, ns since 1970.
    start_ns: i64,
    ssid: u16,
    /// The bytes of the next packet. The base changes with each packet, and the TLVs stay the same.
    packet: Vec<u8>,
    /// The packets so far, by sequence number.
    packets: Vec<PacketRow>,
    /// The number of packets that have an answer.
    answered: usize,
    /// The sequence number of each answer, in the order of arrival. Duplicates of answers are included.
    arrivals: Vec<u64>,
    reflector: ReflectorFacts,
    unmatched_answers: u64,
    /// The time from when each packet was due to when it was sent.
    lateness: Histogram,
    /// The facts about answers that this host's kernel does not report.
    unreported: Vec<Unreported>,
    /// Counts the datagrams that the socket drops.
    drops: DropCount,
}

impl Sender {
    fn open(reflector: SocketAddr, options: &StampOptions) -> io::Result<Self> {
        let is_v6 = reflector.is_ipv6();
        let socket = UdpSocket::bind(if is_v6 { "[::]:0" } else { "0.0.0.0:0" })?;
        socket.connect(reflector)?;
        socket.set_nonblocking(true)?;
        // The run goes on without the facts that this kernel does not report. For example, if the kernel
        // writes no time stamps, T4 is the time at which this thread reads the answer.
        let unreported = report_arrivals(socket.as_fd(), is_v6);
        if let Some(dscps) = options.dscps {
            set_tos(socket.as_fd(), is_v6, dscps.packets << DSCP_SHIFT)?;
        }
        let drops = DropCount::start(std::iter::once(socket.as_fd()));
        let host = HostClock::anchor();
        let start_ns = host.now_ns() + LEAD_NS;
        Ok(Self {
            route: UdpRoute { socket: Arc::new(socket), unconnected: None },
            clock: host.run_from(start_ns),
            start_ns,
            // Zero would mean that the packet has no SSID (RFC 8972 §3).
            ssid: u16::from_be_bytes(random::<2>()?).max(1),
            packet: [&[0; BASE][..], &options.tlvs()].concat(),
            packets: Vec::new(),
            answered: 0,
            arrivals: Vec::new(),
            reflector: ReflectorFacts::default(),
            unmatched_answers: 0,
            lateness: Histogram::new(),
            unreported,
            drops,
        })
    }

    /// Sends a packet at each multiple of the interval, and receives answers between the packets. Returns
    /// early if the user interrupts the run.
    fn send_packets(&mut self, options: &StampOptions, interrupt: &AtomicBool, batch: &mut ReceiveBatch) {
        self.packets.reserve(options.count as usize);
        for sequence in 0..options.count {
            let due = Instant::ZERO.saturating_add(options.interval.saturating_mul(sequence.into()));
            while self.clock.now().saturating_add(SPIN) < due && !interrupt.load(Ordering::Relaxed) {
                let left = due.since(self.clock.now().saturating_add(SPIN));
                self.receive_answers(batch, left.min(MAX_WAIT));
            }
            if interrupt.load(Ordering::Relaxed) {
                return;
            }
            self.clock.sleep_until(due, MAX_WAIT);
            let t1 = self.clock.now();
            self.lateness.record_unsigned(t1.since(due));
            self.send_packet(sequence, t1);
        }
    }

    /// Waits for `time` after the last packet, or until each packet has an answer. After an interrupt it
    /// waits too, because answers that are still on the path would count as lost.
    fn wait_for_last_answers(&mut self, time: Duration, batch: &mut ReceiveBatch) {
        let end = self.clock.now().saturating_add(time);
        while self.clock.now() < end && self.answered < self.packets.len() {
            self.receive_answers(batch, MAX_WAIT);
        }
    }

    /// Sends the packet with the number `sequence` and the time stamp `t1`.
    fn send_packet(&mut self, sequence: u32, t1: Instant) {
        let (is_synchronised, error_ns) = clock_error();
        let base = SenderPacket {
            sequence,
            timestamp: self.timestamp(t1),
            error: ErrorEstimate::new(error_ns, is_synchronised),
            ssid: self.ssid,
        };
        self.packet[..BASE].copy_from_slice(&base.write());
        let is_sent = self.route.send(&self.packet).is_ok();
        self.packets.push(PacketRow { t1: is_sent.then_some(t1), ..PacketRow::default() });
    }

    /// Waits until datagrams arrive, for at most `timeout`, and handles them.
    fn receive_answers(&mut self, batch: &mut ReceiveBatch, timeout: Duration) {
        let timeout = Timespec { tv_sec: 0, tv_nsec: timeout.as_nanos().min(999_999_999) as i64 };
        let socket = Arc::clone(&self.route.socket);
        // An error of the wait or of the socket ends this call. The callers call again until their deadline.
        let _ = poll(&mut [PollFd::new(&*socket, PollFlags::IN)], Some(&timeout));
        let _ = batch.receive(socket.as_fd(), |datagram| self.handle_datagram(&datagram));
    }

    fn handle_datagram(&mut self, datagram: &Received<'_>) {
        let t4 = self.clock.stamped(datagram.stamp_ns);
        match self.parse_answer(datagram.payload) {
            Some(answer) => self.record_answer(&answer, t4, datagram),
            None => self.unmatched_answers += 1,
        }
    }

    /// Parses an answer. Returns `None` if it is not the answer to a packet of this session.
    fn parse_answer(&self, payload: &[u8]) -> Option<ReflectorPacket> {
        let answer = ReflectorPacket::parse(payload)?;
        let t1 = self.packets.get(answer.sender_sequence as usize)?.t1?;
        // Only a host that has received the packet knows its T1, so an answer with another T1 is forged or
        // belongs to another session. A reflector without RFC 8972 sends zeros in place of the SSID.
        let is_ours = answer.sender_timestamp == self.timestamp(t1) && [0, self.ssid].contains(&answer.ssid);
        is_ours.then_some(answer)
    }

    /// Records an answer to a packet of this session. `datagram` arrived at `t4`.
    fn record_answer(&mut self, answer: &ReflectorPacket, t4: Instant, datagram: &Received<'_>) {
        let t4_ns = self.unix_ns(t4);
        let row = &mut self.packets[answer.sender_sequence as usize];
        if row.answer.is_none() {
            self.answered += 1;
            row.answer = Some(Answer {
                reflector_sequence: answer.sequence,
                t2_ns: answer.received.to_unix_ns(answer.error, t4_ns),
                t3_ns: answer.timestamp.to_unix_ns(answer.error, t4_ns),
                t4,
            });
        }
        row.copies += 1;
        self.arrivals.push(answer.sender_sequence.into());
        self.reflector.update(answer, datagram);
    }

    /// Returns the time stamp for `time`.
    fn timestamp(&self, time: Instant) -> Timestamp {
        Timestamp::from_unix_ns(self.unix_ns(time))
    }

    /// Converts a time of the run's clock to ns since 1970.
    fn unix_ns(&self, time: Instant) -> i64 {
        self.start_ns.saturating_add_unsigned(time.as_nanos())
    }

    /// Computes the result. Returns `None` if there is no answer to compare the clocks with.
    fn finish(self, options: &StampOptions) -> Option<StampRun> {
        let probes: Vec<Probe> = self.packets.iter().filter_map(|row| self.probe(row)).collect();
        let mut offset = Offset::throughout(&probes)?;
        if options.clocks_synchronised {
            offset = offset.synchronised();
        }
        let LossAnalysis { is_stateful, losses } = LossAnalysis::new(&self.packets, options.is_stateful);
        Some(StampRun {
            record: self.make_record(options, offset),
            is_stateful,
            losses,
            reflector: self.reflector,
            unmatched_answers: self.unmatched_answers,
        })
    }

    /// Makes a probe of the reflector's clock from a packet with an answer.
    fn probe(&self, row: &PacketRow) -> Option<Probe> {
        let (t1, answer) = (row.t1?, row.answer?);
        Some(Probe {
            sent: self.unix_ns(t1),
            far_received: answer.t2_ns,
            far_sent: answer.t3_ns,
            received: self.unix_ns(answer.t4),
        })
    }
}

impl ReflectorFacts {
    /// Adds the facts of `answer`, which arrived in `datagram`.
    fn update(&mut self, answer: &ReflectorPacket, datagram: &Received<'_>) {
        self.clock = Some(ReflectorClock {
            is_synchronised: answer.error.is_synchronised(),
            max_error_ns: answer.error.error_ns(),
        });
        let ttl = answer.sender_ttl;
        self.ttl = Some(match self.ttl {
            None => TtlRange { min: ttl, max: ttl },
            Some(range) => TtlRange { min: range.min.min(ttl), max: range.max.max(ttl) },
        });
        if let Some(class) = class_of_service(&datagram.payload[BASE..]) {
            self.class_of_service = Some(ReportedClass {
                packet_dscp: class.dscp2,
                packet_ecn: class.ecn,
                is_refused: class.reverse_path != 0,
                answer_dscp: datagram.tos.map(|tos| tos >> DSCP_SHIFT),
            });
        }
    }
}

#[cfg(test)]
mod tests;

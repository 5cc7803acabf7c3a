//! The session-sender of STAMP (RFC 8762 §4.2): `talkpath stamp --to HOST`.
//!
//! ```text
//!      here                          reflector
//!   T1 ────── packet k, T1 ─────────► T2          forward delay   T2 - T1, the clocks compared
//!                                     │ turn-round T3 - T2
//!   T4 ◄───── k, T1, T2, T3 ───────── T3          round trip      T4 - T1 without it
//! ```
//!
//! Each answer is a probe of the far clock, and the clocks are compared as in a live run (`arena::offset`).
//! The packets become the record of one flow, so its figures are computed like those of all flows. T1 is read
//! just before the packet is given to the kernel. T4 is the kernel's stamp.
//!
//! Left out: authenticated mode. If the wall clock of this host is set during a run, it looks as if the far
//! clock was set.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use talkpath_arena::ArenaError;
use talkpath_arena::offset::{Offset, Probe, withdraw_trust_in_impossible_delays};
use talkpath_kernel::clock::{HostClock, RunClock};
use talkpath_kernel::end::UdpRoute;
use talkpath_kernel::random::random;
use talkpath_kernel::sys::{ReceiveBatch, Received, Unreported, clock_error, report_arrivals, set_tos};
use talkpath_measure::{Fate, FlowInfo, FlowRecord, LegRecord, MessageRecord, RunRecord};
use talkpath_units::{Bytes, Duration, Histogram, Instant, counted};

use super::PORT;
use super::codec::{
    BASE, CLASS_OF_SERVICE, ClassOfService, EXTRA_PADDING, ErrorEstimate, ReflectorPacket, SenderPacket,
    TLV_HEADER, Timestamp, class_of_service, put_tlv,
};
use crate::client::address;

/// The options of a measurement.
#[derive(Clone, Debug)]
pub struct StampOptions {
    /// The reflector: `HOST` or `HOST:PORT`. The default port is 862.
    pub host: String,
    /// The time from one packet to the next.
    pub interval: Duration,
    /// The number of packets.
    pub count: u32,
    /// The UDP payload of each packet, at least [`StampOptions::min_size`]. The bytes beyond this size are
    /// Extra Padding.
    pub size: Bytes,
    /// The DSCP of the packets, and the DSCP that the answers are to have. With `Some`, each packet has a
    /// Class of Service TLV.
    pub dscp: Option<(u8, u8)>,
    /// Whether the user knows that the reflector numbers its own packets.
    pub is_stateful: bool,
    /// Whether the user vouches that both clocks show the same time.
    pub clocks_synchronised: bool,
    /// The time to wait for answers after the last packet.
    pub wait: Duration,
}

/// The result of a measurement.
#[derive(Clone, Debug)]
pub struct StampRun {
    /// The record of one flow with an echo. The flow is called `stamp`.
    pub record: RunRecord,
    /// Whether the reflector numbers its own packets; `None` if the answers do not show it.
    pub is_stateful: Option<bool>,
    /// The packets that were lost in the direction to the reflector, and those that were lost in the
    /// direction back. `None` if only their sum is known.
    pub lost_each_way: Option<(u64, u64)>,
    /// Whether the reflector says that its clock is synchronised, and the largest error that it states, ns.
    pub far_clock: Option<(bool, Option<u64>)>,
    /// The smallest and the largest TTL (or hop limit) with which packets arrived at the reflector.
    pub ttl: Option<(u8, u8)>,
    /// The Class of Service TLV of the last answer, with the DSCP with which the answer arrived.
    pub class: Option<ClassSeen>,
    /// The number of answers that are malformed, or that do not belong to a packet of this session.
    pub odd: u64,
}

/// See [`StampRun::class`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ClassSeen {
    pub dscp_there: u8,
    pub ecn_there: u8,
    pub is_refused: bool,
    pub dscp_back: Option<u8>,
}

impl StampOptions {
    /// Returns the smallest payload that has room for the fields of a packet and its Class of Service, bytes.
    pub const fn min_size(dscp: Option<(u8, u8)>) -> u64 {
        BASE as u64 + if dscp.is_some() { TLV_HEADER as u64 + 4 } else { 0 }
    }

    /// Makes the TLVs, which follow the base of each packet.
    fn tlvs(&self) -> Vec<u8> {
        let mut tlvs = Vec::new();
        if let Some((_, dscp1)) = self.dscp {
            put_tlv(&mut tlvs, CLASS_OF_SERVICE, &ClassOfService { dscp1, ..Default::default() }.write());
        }
        let size = usize::try_from(self.size.get()).unwrap_or(usize::MAX);
        let left = size.saturating_sub(BASE + tlvs.len());
        // If the rest has no room for the header of a TLV, the packet has no padding.
        if let Some(length) = left.checked_sub(TLV_HEADER) {
            put_tlv(&mut tlvs, EXTRA_PADDING, &padding(length));
        }
        tlvs
    }
}

/// Makes pseudo-random bytes, which no link can compress (RFC 8972 §4.1). They are the same each time.
fn padding(length: usize) -> Vec<u8> {
    let mut stream = talkpath_units::Seed::new(8972).stream("stamp/padding");
    (0..length).map(|_| (stream.bits() >> 56) as u8).collect()
}

/// A packet and its first answer, with times on this host's clock of the run.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    sent: Option<Instant>,
    /// The first answer.
    answer: Option<Answer>,
    copies: u32,
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    /// The number that the reflector gave to the packet.
    sequence: u32,
    /// T2, ns since 1970 on the far clock.
    received_ns: i64,
    /// T3, ns since 1970 on the far clock.
    sent_ns: i64,
    /// T4, on this host's clock of the run.
    back: Instant,
}

/// A measurement that runs.
struct Sender {
    route: UdpRoute,
    /// The bytes of a packet. Only the base changes from packet to packet.
    packet: Vec<u8>,
    clock: RunClock,
    /// The beginning of the run on the host's clock, ns since 1970.
    start_ns: i64,
    ssid: u16,
    rows: Vec<Row>,
    /// The numbers of the packets, in the order in which their answers arrived. Copies of an answer are
    /// included.
    arrivals: Vec<u64>,
    /// The number of rows with an answer.
    answered: usize,
    far_clock: Option<(bool, Option<u64>)>,
    ttl: Option<(u8, u8)>,
    class: Option<ClassSeen>,
    odd: u64,
    lateness: Histogram,
    /// The facts about answers that this host's kernel does not report.
    unreported: Vec<Unreported>,
}

/// Sends the packets until the user interrupts the sender, and waits for the answers to the packets that were
/// sent.
///
/// # Errors
/// Returns [`ArenaError::FarEnd`] if the host has no address, or if nothing came back. Returns
/// [`ArenaError::Unavailable`] if the socket cannot be made. Returns [`ArenaError::Interrupted`] if the user
/// interrupts the sender before the first packet.
pub fn send(options: &StampOptions, interrupt: &AtomicBool) -> Result<StampRun, ArenaError> {
    let (name, addresses) = address::resolve_at(&options.host, PORT).map_err(ArenaError::far_end)?;
    let to =
        addresses.first().copied().ok_or_else(|| ArenaError::far_end(format!("no such host: {name}")))?;
    let mut sender = Sender::open(to, options).map_err(|why| ArenaError::Unavailable {
        what: format!("no socket to {to}: {why}"),
        how: "see the route to that address, and the limit of open files (ulimit -n)".to_owned(),
    })?;
    sender.send_all(options, interrupt);
    if sender.rows.is_empty() && interrupt.load(Ordering::Relaxed) {
        return Err(ArenaError::Interrupted { partial: None });
    }
    if sender.rows.iter().all(|row| row.answer.is_none()) {
        return Err(ArenaError::far_end(format!(
            "{name} answered none of {}; does a STAMP reflector run there (`talkpath stamp --reflect`), and does a \
             firewall let UDP through to this port?",
            counted(sender.rows.len(), "packet")
        )));
    }
    sender
        .finish(options)
        .ok_or_else(|| ArenaError::far_end(format!("the clocks of {name} could not be compared")))
}

impl Sender {
    fn open(to: SocketAddr, options: &StampOptions) -> io::Result<Self> {
        let any = if to.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
        let socket = UdpSocket::bind(any)?;
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        // Facts that the kernel does not report are unknown in the figures. Without the kernel's stamps, the
        // time at which an answer is read counts.
        let unreported = report_arrivals(socket.as_fd(), to.is_ipv6());
        if let Some((dscp, _)) = options.dscp {
            set_tos(socket.as_fd(), to.is_ipv6(), dscp << 2)?;
        }
        let host = HostClock::anchor();
        let start_ns = host.now_ns() + LEAD_NS;
        let ssid = u16::from_be_bytes(random::<2>()?).max(1);
        Ok(Self {
            route: UdpRoute { socket: Arc::new(socket), unconnected: None },
            packet: [&[0; BASE][..], &options.tlvs()].concat(),
            clock: host.run_from(start_ns),
            start_ns,
            ssid,
            rows: Vec::new(),
            arrivals: Vec::new(),
            answered: 0,
            far_clock: None,
            ttl: None,
            class: None,
            odd: 0,
            lateness: Histogram::new(),
            unreported,
        })
    }

    /// Sends all packets and collects the answers, as [`send`] describes.
    fn send_all(&mut self, options: &StampOptions, interrupt: &AtomicBool) {
        let mut batch = ReceiveBatch::default();
        self.rows.reserve(options.count as usize);
        for sequence in 0..options.count {
            let due = Instant::ZERO.saturating_add(options.interval.saturating_mul(sequence.into()));
            while self.clock.now().saturating_add(SPIN) < due && !interrupt.load(Ordering::Relaxed) {
                let left = due.since(self.clock.now().saturating_add(SPIN));
                self.wait(&mut batch, left.min(SLICE));
            }
            if interrupt.load(Ordering::Relaxed) {
                break;
            }
            self.clock.sleep_until(due, SLICE);
            let sent = self.clock.now();
            self.lateness.record_unsigned(sent.since(due));
            self.send_one(sequence, sent);
        }
        // Also after an interrupt, the sender waits for the answers that are on the path, so that they do not
        // count as lost.
        let end = self.clock.now().saturating_add(options.wait);
        while self.clock.now() < end && self.answered < self.rows.len() {
            self.wait(&mut batch, SLICE);
        }
    }

    /// Sends the packet with the number `sequence`. If the socket does not take the packet, its row has no
    /// time of sending.
    fn send_one(&mut self, sequence: u32, sent: Instant) {
        let (is_synchronised, error_ns) = clock_error();
        let packet = SenderPacket {
            sequence,
            timestamp: Timestamp::from_unix_ns(self.on_host(sent)),
            error: ErrorEstimate::new(error_ns, is_synchronised),
            ssid: self.ssid,
        };
        self.packet[..BASE].copy_from_slice(&packet.write());
        let taken = self.route.send(&self.packet);
        self.rows.push(Row { sent: taken.is_ok().then_some(sent), ..Row::default() });
    }

    /// Waits for at most `time` until answers arrive, and takes them.
    fn wait(&mut self, batch: &mut ReceiveBatch, time: Duration) {
        let timeout = Timespec { tv_sec: 0, tv_nsec: time.as_nanos().min(999_999_999) as i64 };
        let socket = Arc::clone(&self.route.socket);
        let _ = poll(&mut [PollFd::new(&*socket, PollFlags::IN)], Some(&timeout));
        let _ = batch.receive(socket.as_fd(), |datagram| {
            if self.take(&datagram).is_none() {
                self.odd += 1;
            }
        });
    }

    /// Takes an answer. Returns `None` if it is not an answer to a packet of this session.
    fn take(&mut self, datagram: &Received<'_>) -> Option<()> {
        let packet = ReflectorPacket::parse(datagram.payload)?;
        let back = self.clock.stamped(datagram.stamp_ns);
        let sent = self.rows.get(packet.sender_sequence as usize)?.sent?;
        // The reflector sends T1 back. A host that does not know T1 has not seen the packet. A reflector
        // without RFC 8972 has zeros in place of the SSID.
        let is_ours = packet.sender_timestamp == Timestamp::from_unix_ns(self.on_host(sent))
            && [0, self.ssid].contains(&packet.ssid);
        if !is_ours {
            return None;
        }
        let near_ns = self.on_host(back);
        let answer = Answer {
            sequence: packet.sequence,
            received_ns: packet.received.to_unix_ns(packet.error, near_ns),
            sent_ns: packet.timestamp.to_unix_ns(packet.error, near_ns),
            back,
        };
        let row = &mut self.rows[packet.sender_sequence as usize];
        self.answered += usize::from(row.answer.is_none());
        row.copies += 1;
        row.answer.get_or_insert(answer);
        self.arrivals.push(packet.sender_sequence.into());
        self.far_clock = Some((packet.error.is_synchronised(), packet.error.error_ns()));
        let (least, most) = self.ttl.unwrap_or((u8::MAX, 0));
        self.ttl = Some((least.min(packet.sender_ttl), most.max(packet.sender_ttl)));
        if let Some(class) = class_of_service(&datagram.payload[BASE..]) {
            self.class = Some(ClassSeen {
                dscp_there: class.dscp2,
                ecn_there: class.ecn,
                is_refused: class.reverse_path != 0,
                dscp_back: datagram.tos.map(|class| class >> 2),
            });
        }
        Some(())
    }

    /// ns since 1970 on this host's clock.
    fn on_host(&self, at: Instant) -> i64 {
        self.start_ns.saturating_add_unsigned(at.as_nanos())
    }

    fn finish(self, options: &StampOptions) -> Option<StampRun> {
        let probes: Vec<Probe> = self.rows.iter().filter_map(|row| self.probe(row)).collect();
        let offset = Offset::throughout(&probes)
            .map(|offset| if options.clocks_synchronised { offset.synchronised() } else { offset })?;
        let (is_stateful, lost_each_way) = self.losses(options.is_stateful);
        let record = self.record(options, offset);
        let Self { far_clock, ttl, class, odd, .. } = self;
        Some(StampRun { record, is_stateful, lost_each_way, far_clock, ttl, class, odd })
    }

    fn probe(&self, row: &Row) -> Option<Probe> {
        let (sent, answer) = (row.sent?, row.answer?);
        let (far_received, far_sent) = (answer.received_ns, answer.sent_ns);
        Some(Probe { sent: self.on_host(sent), far_received, far_sent, received: self.on_host(answer.back) })
    }

    /// Returns whether the reflector numbers its own packets, and the losses in each direction.
    fn losses(&self, is_said_stateful: bool) -> (Option<bool>, Option<(u64, u64)>) {
        losses(&self.rows, is_said_stateful)
    }

    fn record(&self, options: &StampOptions, offset: Offset) -> RunRecord {
        let clock = offset.record();
        let size = options.size;
        let ours = |far_ns: i64| {
            let ns = offset.to_ours(far_ns).saturating_sub(self.start_ns);
            Instant::from_nanos(u64::try_from(ns).unwrap_or(0))
        };
        let (mut forward, mut echo) = (LegRecord::default(), LegRecord::default());
        for (seq, row) in (0_u64..).zip(&self.rows) {
            let (due, answer) = (row.sent.unwrap_or(Instant::ZERO), row.answer);
            let missing = if row.sent.is_some() { Fate::Missing } else { Fate::Refused };
            let there = MessageRecord {
                seq,
                size,
                due,
                sent: row.sent,
                wire: None,
                received: answer.map(|answer| ours(answer.received_ns)),
                fate: if answer.is_some() { Fate::Delivered } else { missing },
                drop_cause: None,
                copies: u32::from(answer.is_some()),
                transmissions: 0,
            };
            forward.messages.push(there);
            let Some(answer) = answer else { continue };
            forward.arrivals.push(seq);
            let (due, back) = (ours(answer.sent_ns), Some(answer.back));
            echo.messages.push(MessageRecord {
                due,
                sent: Some(due),
                received: back,
                copies: row.copies,
                ..there
            });
        }
        // The order of the arrivals at the reflector is only known from the reflector's stamps.
        forward.arrivals.sort_by_key(|&seq| self.rows[seq as usize].answer.map(|answer| answer.received_ns));
        echo.arrivals.clone_from(&self.arrivals);
        let info = FlowInfo { clock_trusted: clock.trusted, ..FlowInfo::on_a_clock(FLOW) };
        let flow = FlowRecord { forward, echo: Some(echo), ..FlowRecord::new(info) };
        let end = options.interval.saturating_mul(self.rows.len() as u64);
        // The window has to include a last packet that was sent late.
        let last = self.rows.iter().filter_map(|row| row.sent).max().unwrap_or(Instant::ZERO);
        let window_end = Instant::ZERO.saturating_add(end).max(last.saturating_add(Duration::from_nanos(1)));
        let mut record = RunRecord {
            window_end,
            flows: vec![flow],
            drain: options.wait,
            clock,
            valid: true,
            ..RunRecord::default()
        };
        if let Some([p99]) = self.lateness.quantiles([0.99]).map(|[p99]| [p99.as_millis_f64()])
            && p99 > LATE_MS
        {
            record.warnings.push(format!("this host sent packets late: p99 {p99:.3} ms"));
        }
        record.warnings.extend(self.unreported.iter().map(|what| format!("this host's kernel {what}")));
        withdraw_trust_in_impossible_delays(&mut record);
        record
    }
}

/// Gives `answers` to a sender that has sent four packets. The format of `answers` is described at
/// `fuzzing::stamp_answers`.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn take_answers(mut answers: &[u8]) {
    let options = StampOptions {
        host: String::new(),
        interval: Duration::from_millis(1),
        count: 4,
        size: Bytes::new(60),
        dscp: Some((46, 0)),
        is_stateful: false,
        clocks_synchronised: false,
        wait: Duration::ZERO,
    };
    // The sender needs a socket, but nothing is sent.
    let Ok(mut sender) = Sender::open(SocketAddr::from(([127, 0, 0, 1], PORT)), &options) else { return };
    for number in 0..4 {
        let sent = Some(Instant::from_millis(number));
        sender.rows.push(Row { sent, ..Row::default() });
    }
    while let Some((&length, more)) = answers.split_first() {
        let (said, rest) = more.split_at(more.len().min(usize::from(length)));
        answers = rest;
        let mut payload = said.to_vec();
        if length % 2 == 1 && payload.len() >= BASE {
            let number = payload[27] % 4;
            payload[24..28].copy_from_slice(&u32::from(number).to_be_bytes());
            let sent = sender.on_host(Instant::from_millis(number.into()));
            payload[28..36].copy_from_slice(&Timestamp::from_unix_ns(sent).0.to_be_bytes());
            payload[14..16].fill(0);
        }
        let (tos, ttl) = (Some(length), Some(length));
        let datagram = Received { from: None, to: None, stamp_ns: None, tos, ttl, payload: &payload };
        let _ = sender.take(&datagram);
    }
    assert!(sender.answered <= sender.rows.len());
    if let Some(run) = sender.finish(&options) {
        let (there, back) = run.lost_each_way.unwrap_or((0, 0));
        assert!(there + back <= 4, "{there} and {back} of 4");
    }
}

/// Returns whether the reflector numbers its own packets, and the losses in each direction (to the reflector,
/// back).
///
/// The numbers of a stateful reflector are below those of the sender, by the number of packets that were lost
/// before they arrived at the reflector. So different numbers show that a reflector is stateful. The highest
/// number shows how many packets arrived there. It does not if an answer came twice: the copy may have been
/// made in either direction, and the reflector numbers only copies of packets. Packets after the last answer
/// may have been lost in either direction. They count as lost in the direction to the reflector.
fn losses(rows: &[Row], is_said_stateful: bool) -> (Option<bool>, Option<(u64, u64)>) {
    let sent = rows.iter().filter(|row| row.sent.is_some()).count() as u64;
    let answered = || (0_u64..).zip(rows).filter_map(|(seq, row)| Some((seq, row.answer?)));
    let received = answered().count() as u64;
    let differs = answered().any(|(seq, answer)| u64::from(answer.sequence) != seq);
    let is_stateful = match (differs || is_said_stateful, received == sent) {
        (true, _) => Some(true),
        (false, _) => None,
    };
    if received == sent {
        return (is_stateful, Some((0, 0)));
    }
    let highest = answered().map(|(_, answer)| u64::from(answer.sequence)).max();
    let there = highest.map(|highest| (highest + 1).clamp(received, sent));
    let is_counted =
        is_stateful == Some(true) && rows.iter().all(|row| row.copies < 2) && !is_begun_anew(rows);
    let each_way = there.filter(|_| is_counted).map(|there| (sent - there, there - received));
    (is_stateful, each_way)
}

/// Whether the reflector gave up the session during the measurement and began it again at 0. A reflector does
/// so if it has too many sessions, or if no packet came for long. Its numbers then do not show how many
/// packets arrived.
fn is_begun_anew(rows: &[Row]) -> bool {
    let mut numbers: Vec<u32> = rows.iter().filter_map(|row| Some(row.answer?.sequence)).collect();
    let has_zero_later = numbers.iter().skip(1).any(|number| *number == 0);
    numbers.sort_unstable();
    has_zero_later || numbers.windows(2).any(|pair| pair[0] == pair[1])
}

/// The name of the flow.
const FLOW: &str = "stamp";
/// The time from the opening of the socket to the first packet (chosen).
const LEAD_NS: i64 = 10_000_000;
/// How long before a deadline the wait ends and the spin begins, as in the kernel crate's clock.
const SPIN: Duration = Duration::from_micros(60);
/// How often a wait checks whether it has to end.
const SLICE: Duration = Duration::from_millis(20);
/// The p99 of the lateness above which the user is warned, as in a live run.
const LATE_MS: f64 = 1.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of packets whose answers have these numbers, or none.
    fn rows(answers: &[Option<u32>]) -> Vec<Row> {
        let row = |sequence: &Option<u32>| {
            let of = |sequence| Answer { sequence, received_ns: 0, sent_ns: 0, back: Instant::ZERO };
            Row { sent: Some(Instant::ZERO), answer: sequence.map(of), ..Row::default() }
        };
        answers.iter().map(row).collect()
    }

    #[test]
    fn a_stateful_reflectors_numbers_say_which_way_lost_a_packet() {
        // 1 was lost on the way there, and the answer to 3, its number 2, on the way back.
        let mixed = rows(&[Some(0), None, Some(1), None, Some(3)]);
        assert_eq!(losses(&mixed, false), (Some(true), Some((1, 1))));
        // Lost on the way back alone: nothing shows that the numbers are its own.
        let back = rows(&[Some(0), None, Some(2)]);
        assert_eq!(losses(&back, false), (None, None));
        assert_eq!(losses(&back, true), (Some(true), Some((0, 1))));
        assert_eq!(losses(&rows(&[Some(0), Some(1)]), false), (None, Some((0, 0))));
        // Behind the last answer.
        assert_eq!(losses(&rows(&[Some(0), None, None]), true), (Some(true), Some((2, 0))));
        // Numbers that lie do not give more losses than there are.
        assert_eq!(losses(&rows(&[Some(9_000), None]), false), (Some(true), Some((0, 1))));
    }

    #[test]
    fn a_session_that_the_reflector_began_anew_says_nothing_of_the_ways() {
        let anew = rows(&[Some(0), Some(1), None, Some(0), Some(1)]);
        assert_eq!(losses(&anew, true), (Some(true), None));
        let anew = rows(&[None, Some(1), None, Some(0)]);
        assert_eq!(losses(&anew, true), (Some(true), None));
    }

    #[test]
    fn with_duplicates_a_stateful_reflectors_numbers_say_nothing() {
        // 0 came there twice, and 1 was lost on the way there.
        let mut twice = rows(&[Some(0), None, Some(2)]);
        twice[0].copies = 2;
        assert_eq!(losses(&twice, true), (Some(true), None));
        assert_eq!(losses(&twice[..1], true), (Some(true), Some((0, 0))), "nothing is lost");
    }

    fn options(size: u64, dscp: Option<(u8, u8)>) -> StampOptions {
        StampOptions {
            host: String::new(),
            interval: Duration::ZERO,
            count: 1,
            size: Bytes::new(size),
            dscp,
            is_stateful: false,
            clocks_synchronised: false,
            wait: Duration::ZERO,
        }
    }

    /// What a reflector answers to the next packet that comes to `far`, and to whom.
    fn answer(far: &UdpSocket) -> Option<(Vec<u8>, SocketAddr)> {
        let mut question = [0; BASE];
        let (_, from) = far.recv_from(&mut question).ok()?;
        let packet = SenderPacket::parse(&question)?;
        let answer = ReflectorPacket {
            sequence: packet.sequence,
            timestamp: packet.timestamp,
            error: packet.error,
            received: packet.timestamp,
            sender_sequence: packet.sequence,
            sender_timestamp: packet.timestamp,
            ..ReflectorPacket::default()
        };
        Some((answer.write().to_vec(), from))
    }

    #[test]
    fn who_stops_it_still_has_the_answers_to_what_was_sent() {
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        far.set_read_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
        let host = far.local_addr().unwrap().to_string();
        let (interval, wait) = (Duration::from_millis(10), Duration::from_secs(20));
        let asked = StampOptions { host, interval, count: 5_000, wait, ..options(44, None) };
        let interrupt = AtomicBool::new(false);
        let run = std::thread::scope(|scope| {
            scope.spawn(|| {
                let first = answer(&far).unwrap();
                interrupt.store(true, Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(200));
                for (answer, from) in std::iter::once(first).chain(std::iter::from_fn(|| answer(&far))) {
                    far.send_to(&answer, from).unwrap();
                }
            });
            send(&asked, &interrupt).unwrap()
        });
        let forward = &run.record.flows[0].forward.messages;
        assert!(forward.len() < 1_000, "{} were sent", forward.len());
        assert!(forward.iter().all(|message| message.fate == Fate::Delivered), "{forward:?}");
    }

    #[test]
    fn a_stop_before_the_first_packet_says_nothing_of_the_reflector() {
        let host = "127.0.0.1:9".to_owned();
        let stopped = send(&StampOptions { host, ..options(44, None) }, &AtomicBool::new(true));
        assert!(matches!(stopped, Err(ArenaError::Interrupted { partial: None })), "{stopped:?}");
    }

    #[test]
    fn an_answer_that_came_twice_does_not_end_the_wait_for_another() {
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        let host = far.local_addr().unwrap().to_string();
        let asked = StampOptions { host, count: 2, wait: Duration::from_secs(5), ..options(44, None) };
        let run = std::thread::scope(|scope| {
            scope.spawn(|| {
                for late_ms in [0, 300] {
                    let (answer, from) = answer(&far).unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(late_ms));
                    for _ in 0..2 {
                        far.send_to(&answer, from).unwrap();
                    }
                }
            });
            send(&asked, &AtomicBool::new(false)).unwrap()
        });
        let forward = &run.record.flows[0].forward.messages;
        assert!(forward.iter().all(|message| message.fate == Fate::Delivered), "{forward:?}");
        assert_eq!(run.lost_each_way, Some((0, 0)));
    }

    #[test]
    fn few_packets_compare_the_clocks_at_both_ends_of_the_run() {
        for (count, is_trusted) in [(1, false), (2, true), (8, true)] {
            let far = UdpSocket::bind("127.0.0.1:0").unwrap();
            let host = far.local_addr().unwrap().to_string();
            let interval = Duration::from_millis(5);
            let asked =
                StampOptions { host, count, interval, wait: Duration::from_secs(5), ..options(44, None) };
            let run = std::thread::scope(|scope| {
                scope.spawn(|| {
                    for _ in 0..count {
                        let (answer, from) = answer(&far).unwrap();
                        far.send_to(&answer, from).unwrap();
                    }
                });
                send(&asked, &AtomicBool::new(false)).unwrap()
            });
            let clock = &run.record.clock;
            assert_eq!(clock.trusted, is_trusted, "{count} packets: {}", clock.why);
        }
    }

    #[test]
    fn a_packet_is_as_large_as_it_is_set_to_be() {
        for (size, dscp, expected) in [
            (44, None, 44),
            (48, None, 48),
            (1400, None, 1400),
            (52, Some((46, 46)), 52),
            (100, Some((0, 1)), 100),
        ] {
            assert_eq!(BASE + options(size, dscp).tlvs().len(), expected);
        }
        assert_eq!((StampOptions::min_size(None), StampOptions::min_size(Some((1, 1)))), (44, 52));
        assert_eq!(BASE + options(46, None).tlvs().len(), 44, "less than a TLV's header stays out");
    }
}

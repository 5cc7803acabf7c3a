//! The record of one repetition of one cell. Every arena writes the same record.
//!
//! A *cell* is one combination of swept values, a *repetition* is one run of a cell, and the *window* is the
//! part of the run in which messages count. Begin to read with [`RunRecord`] and [`FlowRecord`].

use core::fmt;
use core::ops::Range;
use std::collections::BTreeMap;

use talkpath_units::{Bytes, Duration, Instant};

use crate::metrics::settling::Seconds;
use crate::metrics::trip::{Trip, each_one_way, each_round_trip};
use crate::summary::{IpSummary, LegsSummary, MultipathSummary, PathSummary, Settling};
use crate::{FlowInfo, FlowTally, LateFlow, LegRecord};

/// Everything that one repetition of one cell left behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunRecord {
    /// The index of the cell in the sweep, from 0.
    pub cell: u64,
    /// The number of the repetition, from 0.
    pub repetition: u64,
    /// The seed of the repetition's random numbers.
    pub seed: u64,
    /// The start of the window (`warm_up`). Messages that are due before it do not count.
    pub window_start: Instant,
    /// The end of the window (`duration`). A message that is due before it counts as delivered even if it
    /// arrives later.
    pub window_end: Instant,
    /// One entry for each flow, in the order of the scenario.
    pub flows: Vec<FlowRecord>,
    /// One entry for each link, in the order of the scenario. Empty if the arena does not own the path.
    pub links: Vec<LinkRecord>,
    /// States over time, with an entry at each change.
    pub series: Vec<Series>,
    /// How long the receivers wait for messages after `window_end`.
    pub drain: Duration,
    /// How the machine disturbed a run in real time. `None` in a simulation.
    pub machine: Option<MachineRecord>,
    /// What the path did to probes before the run. `None` unless the run is live and the probes were
    /// answered.
    pub path: Option<Box<PathSummary>>,
    /// What came of the program of the user. `None` if no program ran, or if its end is not a result.
    pub program: Option<ProgramOutcome>,
    /// How the clocks of the two hosts compare.
    pub clock: ClockRecord,
    /// False if the machine disturbed a run in real time beyond the stated limits.
    pub valid: bool,
    /// What disturbed or distorted this run, in words for the user.
    pub warnings: Vec<String>,
}

/// What came of a program of the user that ran on the path.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramOutcome {
    /// Why the repetition has failed, as a sentence about the program without a full stop: `it ended with
    /// exit code 3`. `None` if the program ended with exit code 0 and printed all figures.
    pub failure: Option<String>,
    /// How long the command ran, s.
    pub seconds: f64,
    /// The figures in its output, by their names. `None` if it has failed.
    pub figures: BTreeMap<String, Option<f64>>,
    /// The end of what it printed, for a person.
    pub output: String,
}

/// What is known about the clock of the far host.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockRecord {
    /// The time of the far clock minus the time of the clock here, ms.
    pub offset_ms: Option<f64>,
    /// The drift of the far clock against the clock here, parts per million.
    pub skew_ppm: Option<f64>,
    /// Half of the smallest round trip, ms. The offset can be wrong by this much in either direction if the
    /// path is asymmetric.
    pub uncertainty_ms: Option<f64>,
    /// By how much more the offset can be wrong in either direction, because the drift of the far clock may
    /// have changed during the run, ms.
    pub change_uncertainty_ms: Option<f64>,
    /// Whether the user vouches that both hosts show the same time. Times are then not corrected.
    pub synchronised: bool,
    /// Whether one-way figures may be shown.
    pub trusted: bool,
    /// Why one-way figures may be shown, or why not.
    pub why: String,
}

impl Default for ClockRecord {
    /// Returns the comparison for two ends that read the same clock.
    fn default() -> Self {
        Self {
            offset_ms: Some(0.0),
            skew_ppm: Some(0.0),
            uncertainty_ms: Some(0.0),
            change_uncertainty_ms: Some(0.0),
            synchronised: false,
            trusted: true,
            why: "both ends read one clock".to_owned(),
        }
    }
}

/// The messages of one flow in both directions, and what the transport counted.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRecord {
    /// The name, the transport and the terms of the flow.
    pub info: FlowInfo,
    /// The messages from the sender to the receiver.
    pub forward: LegRecord,
    /// The echoes, with the numbers of their messages. `None` if the flow has no echo.
    pub echo: Option<LegRecord>,
    /// What the transport counted.
    pub counters: FlowCounters,
    /// The ECN marks of the flow. `None` if the scenario does not ask for ECN and the hosts did not agree on
    /// it by themselves.
    pub ecn: Option<EcnRecord>,
    /// The file that the flow carried, if the arena carries files.
    pub file: Option<FileRecord>,
    /// The figures of the messages if no rows were kept. Both legs are then empty.
    pub tally: Option<Box<FlowTally>>,
}

impl FlowRecord {
    /// Makes the record of a flow that sent nothing.
    pub fn new(info: FlowInfo) -> Self {
        Self {
            info,
            forward: LegRecord::default(),
            echo: None,
            counters: FlowCounters::default(),
            ecn: None,
            file: None,
            tally: None,
        }
    }

    /// Returns the trips of the messages that were due within `window`, in the order of `seq`. They are round
    /// trips if the flow has an echo.
    pub fn trips(&self, window: &Range<Instant>) -> Vec<Trip> {
        let mut trips = Vec::with_capacity(self.forward.messages.len());
        self.each_trip(window, |trip| trips.push(trip));
        trips
    }

    /// Calls `visit` with each trip that [`FlowRecord::trips`] returns.
    pub(crate) fn each_trip(&self, window: &Range<Instant>, visit: impl FnMut(Trip)) {
        match &self.echo {
            None => each_one_way(&self.forward, window).for_each(visit),
            Some(echo) => each_round_trip(&self.forward, echo, window).for_each(visit),
        }
    }

    /// Returns whether the arrivals at the end of each trip are known. A trip ends at the receiver, or at the
    /// sender if the flow has an echo.
    pub(crate) const fn end_is_known(&self) -> bool {
        match &self.echo {
            Some(echo) => !echo.arrivals_unknown,
            None => !self.forward.arrivals_unknown,
        }
    }

    /// Compares the deliveries with the offered messages, second by second. Returns `None` if the messages of
    /// the flow are not due on a clock, if nobody knows what arrived, or if the window has no whole second or
    /// more than a million.
    pub fn settling(&self, window: &Range<Instant>) -> Option<Settling> {
        if !self.info.clocked || self.forward.arrivals_unknown {
            return None;
        }
        let mut seconds = Seconds::new(window.clone());
        seconds.begin(self.forward.messages.iter().map(|row| row.due));
        for row in &self.forward.messages {
            seconds.offer(row.due, row.size);
        }
        for (at, bytes) in self.forward.deliveries() {
            seconds.deliver(at, Bytes::new(bytes));
        }
        seconds.settling()
    }
}

/// A file that a flow carried, as its receiver found it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileRecord {
    /// The name of the file at the sender.
    pub name: String,
    /// The size of the file.
    pub bytes: Bytes,
    /// The SHA-256 of the file at the sender, in hexadecimal.
    pub sha256: String,
    /// How many different bytes of the file arrived. `None` if the receiver went away.
    pub received: Option<Bytes>,
    /// Whether all bytes arrived and the SHA-256 is the same at both ends. `None` if the receiver went away.
    pub intact: Option<bool>,
    /// The first hundred ranges of bytes that did not arrive, each with its first byte and the byte after its
    /// last.
    pub missing: Vec<(u64, u64)>,
    /// The number of all ranges of bytes that did not arrive.
    pub missing_ranges: u64,
    /// The name under which the receiver saved the file, if the receiver saves files.
    pub kept_as: Option<String>,
}

/// How the machine disturbed a run in real time. A field is `None` if the arena cannot know it, or if nothing
/// was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineRecord {
    /// The time from the departure that the path model gives a packet to the emulator's write.
    pub emulator_late: Option<LatenessRecord>,
    /// By how much later than the kernel's time stamp a packet counts as arrived.
    pub emulator_backlog: Option<LatenessRecord>,
    /// The time from the moment when a clocked message was due to its hand-over to the socket, on this host.
    pub senders_late: Option<LatenessRecord>,
    /// The same time on the far host.
    pub far_senders_late: Option<LatenessRecord>,
    /// Packets that the emulator carried.
    pub packets: Option<u64>,
    /// Packets that were dropped because a device had no room, or the emulator no memory.
    pub device_drops: Option<u64>,
    /// A lower bound of the datagrams that were dropped because the buffer of a socket had no room. Only
    /// sockets whose buffer size the scenario leaves open count.
    pub socket_drops: Option<u64>,
    /// UDP datagrams with a wrong checksum, at all sockets of this host, or of both emulated hosts.
    pub checksum_errors: Option<u64>,
    /// UDP datagrams with a wrong checksum at the far host.
    pub far_checksum_errors: Option<u64>,
    /// The share of one processor that the emulator's thread used, 0 to 1.
    pub emulator_cpu_share: Option<f64>,
    /// Whether the timed threads had real-time priority.
    pub real_time: Option<bool>,
    /// The share of the time of all processors that a hypervisor gave to other machines during the run, 0 to
    /// 1 (proc_stat(5), "steal").
    pub stolen_share: Option<f64>,
    /// How often the emulator's thread did not run for more than a millisecond. The whole path stops during
    /// this time.
    pub stops: Option<u64>,
    /// The longest of these stops.
    pub longest_stop: Option<Duration>,
    /// How long hosts held messages before they echoed them, with one entry for each flow that has an echo.
    pub turn_rounds: Vec<TurnRoundRecord>,
    /// The flows whose figures do not describe the path, because the machine made their packets late. The
    /// list is empty if the run is valid, or if it is invalid for another reason, too.
    pub late_flows: Vec<LateFlow>,
}

/// How long a host held the messages of a flow before it echoed them. The time begins with the kernel's
/// receive time stamp, and ends when the echo is offered to the transport.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnRoundRecord {
    /// The flow's name.
    pub flow: String,
    /// The number of echoes.
    pub count: u64,
    /// Half of the messages were held for longer than this.
    pub p50: Duration,
    /// One message in ten was held for longer than this.
    pub p90: Duration,
    /// One message in a hundred was held for longer than this.
    pub p99: Duration,
    /// The longest time.
    pub max: Duration,
    /// How many messages were held for longer than the limit that also applies to a sender.
    pub too_long: u64,
}

/// From this share on, a run says how much time a hypervisor took. One packet in a hundred meets the
/// hypervisor then, so it shows in a 99th percentile.
pub const STOLEN_SHARE_TOLD: f64 = 0.01;

impl MachineRecord {
    /// Returns whether a hypervisor took so much time that it alone may explain a 99th percentile of
    /// lateness.
    pub fn is_stolen_from(&self) -> bool {
        self.stolen_share.is_some_and(|share| share >= STOLEN_SHARE_TOLD)
    }
}

/// Percentiles of a lateness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatenessRecord {
    /// The median.
    pub p50: Duration,
    /// The 99th percentile.
    pub p99: Duration,
    /// The largest value.
    pub max: Duration,
}

impl LatenessRecord {
    /// Makes the record from the median, the 99th percentile and the largest value, ns.
    pub fn from_ns(figures: [u64; 3]) -> Self {
        let [p50, p99, max] = figures.map(Duration::from_nanos);
        Self { p50, p99, max }
    }
}

impl fmt::Display for LatenessRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p99, max] = [self.p50, self.p99, self.max].map(Duration::as_millis_f64);
        write!(f, "p50 {p50:.3} ms, p99 {p99:.3} ms, at most {max:.3} ms")
    }
}

/// What the transport of a flow counted at both ends. A field is `None` if the arena cannot know it.
///
/// Several flows may share a QUIC connection. The windows are then those of the connection. `data_packets`
/// and `retransmissions` are counted for each flow, and a packet with data of several flows counts for each
/// of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowCounters {
    /// Packets with application data that left the sender, retransmissions included.
    pub data_packets: Option<u64>,
    /// How many of these packets were retransmissions.
    pub retransmissions: Option<u64>,
    /// The number of retransmission timeouts.
    pub timeouts: Option<u64>,
    /// The mean of cwnd over the window, weighted by time, in packets.
    pub cwnd_packets_mean: Option<f64>,
    /// The mean over the window of how much might be in flight, weighted by time, in packets. This is cwnd,
    /// or the receiver's window if that was smaller.
    pub window_packets_mean: Option<f64>,
    /// The mean size of the send buffer over the window, weighted by time, in bytes.
    pub send_buffer_mean: Option<f64>,
    /// The largest size of the send buffer in the window, in bytes.
    pub send_buffer_max: Option<u64>,
    /// The time in the window during which the workload had a message to send and the transport took none.
    pub blocked: Option<Duration>,
    /// The times in which the flow delivered nothing although it should have, in order. The simulator reports
    /// only the time before the connection was open.
    pub breaks: Vec<BreakRecord>,
    /// What became of the messages of the window in each direction. `None` in the simulator.
    pub legs: Option<LegsSummary>,
    /// What the IP headers of the packets carried. `None` in the simulator.
    pub ip: Option<IpSummary>,
    /// What is known about the paths of the flow, if the scenario asks for several.
    pub multipath: Option<MultipathSummary>,
    /// How the flow opened.
    pub opening: OpeningRecord,
    /// The number of echoes that came before their message was sent, by the sender's clock. They do not count
    /// as echoes.
    pub early_echoes: u64,
    /// How long the sending transport held unsent data back, over the whole run.
    pub held: HeldRecord,
}

/// How long each cause held unsent data back at the sender. A time is zero if the cause never did, or if that
/// is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldRecord {
    /// The congestion window had no room.
    pub congestion_window: Duration,
    /// The far end's receive window had no room.
    pub receiver_window: Duration,
    /// Nagle's algorithm waited for an acknowledgement (RFC 9293 §3.7.4).
    pub nagle: Duration,
    /// The pause between two paced packets was not over, or a rate allowed no packet yet.
    pub pacing: Duration,
}

/// How a flow opened, in parts. A time is `None` if it is unknown, if it never ended, or if the transport or
/// the arena has no such part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpeningRecord {
    /// The time from the start of the flow until its sender could send messages.
    pub open: Option<Duration>,
    /// The time that the resolver took for the name of the far host, before the run.
    pub name: Option<Duration>,
    /// The time that the kernel took to make the socket and to set its options.
    pub socket: Option<Duration>,
    /// The time from the first packet of the handshake until it was over at the client.
    pub handshake: Option<Duration>,
    /// The time from the start of the flow until the first message came to its end: with an echo, back to the
    /// sender.
    pub first_delivered: Option<Duration>,
}

/// A time in which a flow delivered nothing although it should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakRecord {
    /// The time at which the first message was due that had to wait or was lost, or the end of the
    /// connection.
    pub from: Instant,
    /// The time of the next delivery. `None` if there was none before the run ended.
    pub to: Option<Instant>,
    /// What happened, in words for the user.
    pub why: String,
}

/// Explicit congestion notification of one flow (RFC 3168), over the whole run. A field is `None` if the
/// arena or the far host does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnRecord {
    /// Whether routers may mark the packets of the flow, because both ends of a connection agreed on ECN, or
    /// because the sender of datagrams sets the codepoint.
    pub capable: Option<bool>,
    /// Packets that arrived at the receiver with a mark. For UDP these are the datagrams for which its socket
    /// had room.
    pub marked_forward: Option<u64>,
    /// Packets that arrived at the sender with a mark, if the flow has an echo.
    pub marked_return: Option<u64>,
    /// TCP packets that were acknowledged by a packet with the ECE flag (`tcpi_delivered_ce`). The receiver
    /// sets the flag until it hears the sender's answer (RFC 3168 §6.1.3), so these are more packets than
    /// were marked.
    pub echoed_forward: Option<u64>,
    /// The same count for the way back, if the flow has an echo.
    pub echoed_return: Option<u64>,
}

/// What one link did with its packets.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkRecord {
    /// The link's name in the scenario.
    pub name: String,
    /// The queueing discipline of the link, as the scenario names it.
    pub discipline: &'static str,
    /// The mean number of waiting packets over the window, weighted by time.
    pub queue_packets_mean: f64,
    /// The number of waiting packets that was not exceeded for 99 % of the window.
    pub queue_packets_p99: u64,
    /// The largest number of waiting packets in the window.
    pub queue_packets_max: u64,
    /// How long packets waited, from their entry into the queue to the start of their service.
    pub queue_delay: QueueDelayRecord,
    /// Packets that arrived at the far end within the window, copies included.
    pub forwarded: u64,
    /// Packets that the queue dropped, within the window.
    pub dropped: u64,
    /// How many of these packets the discipline dropped to signal congestion. For the others there was no
    /// room.
    pub dropped_by_aqm: u64,
    /// Packets that the queue marked (RFC 3168 §5), within the window.
    pub marked: u64,
    /// Packets that the wire lost, within the window.
    pub lost: u64,
    /// Copies that the wire made, within the window.
    pub repeated: u64,
    /// Packets that the wire damaged, within the window. Those that the link noticed are among `lost`.
    pub damaged: u64,
    /// The share of the window during which the link was sending, 0 to 1.
    pub utilisation: f64,
}

/// Queueing delays of the packets whose service began within the window. The percentiles are nearest ranks
/// with an error of at most 0.4 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueDelayRecord {
    /// The mean over packets.
    pub mean: Duration,
    /// The median.
    pub p50: Duration,
    /// The 95th percentile.
    pub p95: Duration,
    /// The 99th percentile.
    pub p99: Duration,
}

/// One quantity of one flow or link over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The name of the flow or link.
    pub entity: String,
    /// The quantity.
    pub kind: SeriesKind,
    /// The time and the new value of each change, in the order of time. The value holds until the next
    /// change.
    pub points: Vec<(Instant, f64)>,
}

/// The quantity of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SeriesKind {
    /// Congestion window, packets.
    Cwnd,
    /// Slow start threshold, packets. It has no value while it is unlimited.
    Ssthresh,
    /// Smoothed round-trip time, milliseconds.
    Srtt,
    /// Retransmission timeout, milliseconds.
    Rto,
    /// Packets waiting at a link.
    Queue,
    /// The time that a packet waited at a link until its service starts, milliseconds.
    QueueDelay,
    /// Bytes that were written and are not acknowledged.
    SendBuffer,
    /// The rate at which a paced sender sends, bits per second.
    PacingRate,
    /// The rate of the bottleneck as the congestion control estimates it, bits per second.
    BottleneckRate,
    /// QUIC's probe timeout before any backoff (RFC 9002 §6.2.1), milliseconds.
    Pto,
    /// Bytes of QUIC packets that were sent and are neither acknowledged nor declared lost.
    BytesInFlight,
    /// QUIC packets that were declared lost since the start.
    LostPackets,
}

impl SeriesKind {
    const ALL: [Self; 12] = [
        Self::Cwnd,
        Self::Ssthresh,
        Self::Srtt,
        Self::Rto,
        Self::Queue,
        Self::QueueDelay,
        Self::SendBuffer,
        Self::PacingRate,
        Self::BottleneckRate,
        Self::Pto,
        Self::BytesInFlight,
        Self::LostPackets,
    ];

    /// Returns the word for the quantity in the record files and in [`crate::chart_data::StepLine::kind`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cwnd => "cwnd",
            Self::Ssthresh => "ssthresh",
            Self::Srtt => "srtt",
            Self::Rto => "rto",
            Self::Queue => "queue",
            Self::QueueDelay => "queue_delay",
            Self::SendBuffer => "send_buffer",
            Self::PacingRate => "pacing_rate",
            Self::BottleneckRate => "bottleneck_rate",
            Self::Pto => "pto",
            Self::BytesInFlight => "bytes_in_flight",
            Self::LostPackets => "lost_packets",
        }
    }

    /// Returns the quantity with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

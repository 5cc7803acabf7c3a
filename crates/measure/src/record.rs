//! The record of one repetition of one cell, as every arena writes it.

use core::ops::Range;

use talkpath_units::{Bytes, Duration, Instant};

use crate::metrics::percentile::PerMille;
use crate::metrics::settling::Seconds;
use crate::metrics::trip::{Trip, each_one_way, each_round_trip};
use crate::summary::{IpSummary, LegsSummary, MultipathSummary, Settling};
use crate::{FlowInfo, FlowTally, LegRecord};

/// Everything that one repetition of one cell left behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunRecord {
    /// Index of the cell in the sweep, from 0.
    pub cell: u64,
    /// Repetition, from 0.
    pub repetition: u64,
    /// The seed that this repetition ran with.
    pub seed: u64,
    /// From here (`warm_up`) the figures count ...
    pub window_start: Instant,
    /// ... to here (`duration`); what was due before but arrives while the run drains still counts as
    /// delivered.
    pub window_end: Instant,
    /// One entry a flow, in the scenario's order.
    pub flows: Vec<FlowRecord>,
    /// One entry a link, in the scenario's order; empty if the arena does not own the path.
    pub links: Vec<LinkRecord>,
    /// State over time, sampled on change.
    pub series: Vec<Series>,
    /// How long the run waits for deliveries after `window_end`: the receivers' timeout.
    pub drain: Duration,
    /// What the machine did to it, in a real-time arena.
    pub machine: Option<MachineRecord>,
    /// Two hosts' clocks; one clock is trusted and has offset 0.
    pub clock: ClockRecord,
    /// False if the machine disturbed a real-time run past its stated limits.
    pub valid: bool,
    /// What disturbed or bent this run, in words for a person.
    pub warnings: Vec<String>,
}

/// What is known of the far host's clock.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockRecord {
    /// Far clock minus ours, milliseconds.
    pub offset_ms: Option<f64>,
    /// Drift of the far clock against ours, parts per million.
    pub skew_ppm: Option<f64>,
    /// Half the smallest round trip: how far an asymmetry of the path can put the offset off, milliseconds
    /// either way.
    pub uncertainty_ms: Option<f64>,
    /// How far the far clock can have left its straight line during the run, beyond that, milliseconds either
    /// way.
    pub change_uncertainty_ms: Option<f64>,
    /// The user vouches that both hosts read one time, and stamps are not corrected.
    pub synchronised: bool,
    /// Whether one-way figures may be shown.
    pub trusted: bool,
    /// Why, or why not.
    pub why: String,
}

impl Default for ClockRecord {
    /// One clock for both ends.
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

/// One flow's messages, both legs, and what the transport counted.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRecord {
    /// Who the flow is.
    pub info: FlowInfo,
    /// From the sender to the receiver.
    pub forward: LegRecord,
    /// The echo, if the flow has one; same sequence numbers.
    pub echo: Option<LegRecord>,
    /// What the transport counted.
    pub counters: FlowCounters,
    /// Its marks; `None` if the scenario wants no ECN for it and its hosts did not agree on ECN by
    /// themselves.
    pub ecn: Option<EcnRecord>,
    /// The file that it carried, if the arena carries files.
    pub file: Option<FileRecord>,
    /// What the messages came to, if no rows were kept: then both legs are empty.
    pub tally: Option<Box<FlowTally>>,
}

impl FlowRecord {
    /// A flow without records.
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

    /// The trips of messages that were due within `window`, in order of `seq`: round trips if the flow has an
    /// echo.
    pub fn trips(&self, window: &Range<Instant>) -> Vec<Trip> {
        let mut trips = Vec::with_capacity(self.forward.messages.len());
        self.each_trip(window, |trip| trips.push(trip));
        trips
    }

    /// Calls `see` for each of [`FlowRecord::trips`].
    pub(crate) fn each_trip(&self, window: &Range<Instant>, see: impl FnMut(Trip)) {
        match &self.echo {
            None => each_one_way(&self.forward, window).for_each(see),
            Some(echo) => each_round_trip(&self.forward, echo, window).for_each(see),
        }
    }

    /// Whether it is known what came to the end of its way: the receiver, or with an echo back to the sender.
    pub(crate) const fn end_is_known(&self) -> bool {
        match &self.echo {
            Some(echo) => !echo.arrivals_unknown,
            None => !self.forward.arrivals_unknown,
        }
    }

    /// How the deliveries compare with what was offered, second by second; `None` for a flow without a clock,
    /// if no whole second passed, and if nobody knows what arrived.
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

/// What came of a file that a flow carried, as its receiver found it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileRecord {
    /// The file's own name.
    pub name: String,
    /// Its size.
    pub bytes: Bytes,
    /// The sender's SHA-256, in hexadecimal.
    pub sha256: String,
    /// How much of it arrived, each byte counted once; `None` if the receiver went away.
    pub received: Option<Bytes>,
    /// Whether all of it arrived and the receiver's SHA-256 is the sender's; `None` if the receiver went
    /// away.
    pub intact: Option<bool>,
    /// Byte ranges that did not arrive, from and to (exclusive): the first hundred.
    pub missing: Vec<(u64, u64)>,
    /// How many such ranges there are in all.
    pub missing_ranges: u64,
    /// Under which name the receiver kept it, if it was set to keep it.
    pub kept_as: Option<String>,
}

/// What a machine did to a real-time run; `None` if the arena cannot know, or nothing was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineRecord {
    /// From a packet's promised departure to the emulator's write.
    pub emulator_late: Option<LatenessRecord>,
    /// By how much packets count as arriving later than the kernel stamped them.
    pub emulator_backlog: Option<LatenessRecord>,
    /// From a clocked message's due time to its hand-over to the socket, on this host.
    pub senders_late: Option<LatenessRecord>,
    /// The same on the far host.
    pub far_senders_late: Option<LatenessRecord>,
    /// Packets that the emulator carried.
    pub packets: Option<u64>,
    /// Packets that a device had no room for, or the emulator no memory.
    pub device_drops: Option<u64>,
    /// Lower bound of the datagrams that found no room in a socket whose buffer the scenario leaves to the
    /// tool.
    pub socket_drops: Option<u64>,
    /// UDP datagrams with a wrong checksum, of all sockets of this host (of both emulated hosts).
    pub checksum_errors: Option<u64>,
    /// The same of the far host.
    pub far_checksum_errors: Option<u64>,
    /// Share of one processor that the emulator's thread took, 0 to 1.
    pub emulator_cpu_share: Option<f64>,
    /// Whether the timed threads had real-time priority.
    pub real_time: Option<bool>,
    /// Share of all processors' time that a hypervisor gave to others during the run, 0 to 1 (proc_stat(5),
    /// "steal").
    pub stolen_share: Option<f64>,
    /// How often the emulator's thread did not run for more than a millisecond: the whole path stood still.
    pub stops: Option<u64>,
    /// For how long at most.
    pub longest_stop: Option<Duration>,
    /// How long echoing hosts held messages, one entry a flow that was echoed.
    pub turn_rounds: Vec<TurnRoundRecord>,
    /// The flows with figures that are not the path's, because the machine made their packets late. Empty
    /// unless the run is invalid for nothing but this.
    pub late_flows: Vec<LateFlow>,
}

/// A flow whose packets the machine made late.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LateFlow {
    /// The flow's name.
    pub name: String,
    /// Its messages that were due.
    pub messages: u64,
    /// How many of its packets were late past the limit: each packet of a message counts.
    pub late: u64,
}

impl LateFlow {
    /// Whether the `quantile` of its delays is the path's: at most a quarter of the messages that lie beyond
    /// it were late (chosen: three quarters of those messages are then the path's).
    pub const fn bears(&self, quantile: PerMille) -> bool {
        let beyond = 1000_u64.saturating_sub(quantile.0 as u64);
        self.late.saturating_mul(4000) <= self.messages.saturating_mul(beyond)
    }
}

/// How long an echoing host held a flow's messages: from the kernel's receive stamp to the offer of the echo
/// to the transport.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnRoundRecord {
    /// The flow's name.
    pub flow: String,
    /// Echoes.
    pub count: u64,
    /// Half were held for longer.
    pub p50: Duration,
    /// One in ten was.
    pub p90: Duration,
    /// One in a hundred was.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
    /// How many were held past the limit of a late sender.
    pub too_long: u64,
}

/// From this on a run says how much a hypervisor took: one packet in a hundred meets it, so it is seen in a
/// 99th percentile.
pub const STOLEN_SHARE_TOLD: f64 = 0.01;

impl MachineRecord {
    /// Whether a hypervisor took so much that a 99th percentile of lateness may be its doing alone.
    pub fn is_stolen_from(&self) -> bool {
        self.stolen_share.is_some_and(|share| share >= STOLEN_SHARE_TOLD)
    }
}

/// How late something was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatenessRecord {
    /// Half were later.
    pub p50: Duration,
    /// One in a hundred was later.
    pub p99: Duration,
    /// The latest.
    pub max: Duration,
}

/// What a flow's transport counted, both ends together; `None` if the arena cannot know. Of flows that share
/// a QUIC connection `data_packets` and `retransmissions` are the flow's own, a packet with data of several
/// flows counting for each; windows are the connection's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowCounters {
    /// Packets with application data put on the wire by the sender, retransmissions included.
    pub data_packets: Option<u64>,
    /// Of these, retransmissions.
    pub retransmissions: Option<u64>,
    /// Retransmission timeouts.
    pub timeouts: Option<u64>,
    /// Time-weighted mean of cwnd over the window, in packets.
    pub cwnd_packets_mean: Option<f64>,
    /// Time-weighted mean over the window of what might be in flight: cwnd, or the receiver's window if that
    /// was smaller, in packets.
    pub window_packets_mean: Option<f64>,
    /// Time-weighted mean of the send buffer over the window, in bytes.
    pub send_buffer_mean: Option<f64>,
    /// Largest send buffer in the window, in bytes.
    pub send_buffer_max: Option<u64>,
    /// Time in the window during which the workload had a message to send and the transport was not writable.
    pub blocked: Option<Duration>,
    /// When it delivered nothing although it should have, in order of time; in the simulator only before the
    /// connection was open.
    pub breaks: Vec<BreakRecord>,
    /// What became of the messages of the window in each direction, over real sockets.
    pub legs: Option<LegsSummary>,
    /// What the packets' IP headers carried, over real sockets.
    pub ip: Option<IpSummary>,
    /// What was seen of its paths, if the scenario wants several.
    pub multipath: Option<MultipathSummary>,
    /// From the flow's start to the moment from which its sender could let a message leave; `None` if that
    /// never came, or is not known.
    pub opening: Option<Duration>,
    /// Echoes that came before their message was sent, by the sender's clock: they are none.
    pub early_echoes: u64,
}

/// A time in which a flow delivered nothing although it should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakRecord {
    /// When the first message was due that had to wait or was lost, or when the connection ended.
    pub from: Instant,
    /// When something was delivered again; `None` if nothing was before the run ended.
    pub to: Option<Instant>,
    /// What happened, in words for a person.
    pub why: String,
}

/// Explicit congestion notification of one flow (RFC 3168), over the whole run. `None` if the arena, or the
/// far host, does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnRecord {
    /// Whether its packets take marks: both ends of a connection agreed on it, or the sender of datagrams
    /// sets the codepoint.
    pub capable: Option<bool>,
    /// Packets that came to the receiver marked. Of UDP: datagrams for which its socket had room.
    pub marked_forward: Option<u64>,
    /// Packets that came back to the sender marked, for flows with an echo.
    pub marked_return: Option<u64>,
    /// Packets of TCP that were delivered as acknowledgements with an echo of a mark said
    /// (`tcpi_delivered_ce`). The receiver echoes a mark until it hears of the sender's answer (RFC 3168
    /// §6.1.3): these are more than were marked.
    pub echoed_forward: Option<u64>,
    /// The same of the way back, for flows with an echo.
    pub echoed_return: Option<u64>,
}

/// What one link did.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkRecord {
    /// The link's name in the scenario.
    pub name: String,
    /// The discipline of its queue, by the word in the scenario.
    pub discipline: &'static str,
    /// Time-weighted mean of waiting packets over the window.
    pub queue_packets_mean: f64,
    /// The number of waiting packets that was not exceeded for 99 % of the window.
    pub queue_packets_p99: u64,
    /// Most waiting packets in the window.
    pub queue_packets_max: u64,
    /// How long packets waited, from their entry into the queue to the begin of their service.
    pub queue_delay: QueueDelayRecord,
    /// Packets that arrived at the far end within the window.
    pub forwarded: u64,
    /// Packets that the queue dropped, within the window.
    pub dropped: u64,
    /// Of these, those that the discipline dropped to signal congestion; the others found no room.
    pub dropped_by_aqm: u64,
    /// Packets that the queue marked (RFC 3168 §5), within the window.
    pub marked: u64,
    /// Packets that the wire ate, within the window.
    pub lost: u64,
    /// Share of the window during which the serialiser was busy, 0 to 1.
    pub utilisation: f64,
}

/// Queueing delays of the packets whose service began within the window. The percentiles are nearest ranks,
/// right to 0.4 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueDelayRecord {
    /// Mean over packets.
    pub mean: Duration,
    /// Median.
    pub p50: Duration,
    /// 95th percentile.
    pub p95: Duration,
    /// 99th percentile.
    pub p99: Duration,
}

/// One quantity of one flow or link over time: the value holds from each instant to the next.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name of the flow or link.
    pub entity: String,
    /// What it is.
    pub kind: SeriesKind,
    /// Changes, in order of time; bounded by the recorder.
    pub points: Vec<(Instant, f64)>,
}

/// What a series shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SeriesKind {
    /// Congestion window, packets.
    Cwnd,
    /// Slow start threshold, packets; absent while unlimited.
    Ssthresh,
    /// Smoothed round-trip time, milliseconds.
    Srtt,
    /// Retransmission timeout, milliseconds.
    Rto,
    /// Packets waiting at a link.
    Queue,
    /// How long the packet waited that goes into service at a link, milliseconds.
    QueueDelay,
    /// Written, unacknowledged bytes.
    SendBuffer,
    /// Rate at which a paced sender sends, bits a second.
    PacingRate,
    /// The bottleneck's rate as the congestion control sees it, bits a second.
    BottleneckRate,
    /// QUIC's probe timeout before any backoff (RFC 9002 §6.2.1), milliseconds.
    Pto,
    /// Bytes of QUIC packets that were sent and are neither acknowledged nor declared lost.
    BytesInFlight,
    /// QUIC packets that were declared lost since the beginning.
    LostPackets,
}

impl SeriesKind {
    /// The word in the record files and in [`crate::chart_data::StepLine::kind`].
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

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let kinds = [
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
        kinds.into_iter().find(|it| it.name() == name)
    }
}

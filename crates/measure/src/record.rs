//! The record of one repetition of one cell, as every arena writes it.

use talkpath_units::{Bytes, Duration, Instant};

use crate::FlowTally;

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
    /// ... to here (`duration`); what was due before but arrives while the run drains still counts as delivered.
    pub window_end: Instant,
    /// One entry a flow, in the scenario's order.
    pub flows: Vec<FlowRecord>,
    /// One entry a link, in the scenario's order; empty where the arena does not own the path.
    pub links: Vec<LinkRecord>,
    /// State over time, sampled on change.
    pub series: Vec<Series>,
    /// How long the run waits for deliveries after `window_end`: the receivers' timeout.
    pub drain: Duration,
    /// What the machine did to it, in a real-time arena.
    pub machine: Option<MachineRecord>,
    /// Two hosts' clocks; one clock is trusted and has offset 0.
    pub clock: ClockRecord,
    /// False where the machine disturbed a real-time run past its stated limits.
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
    /// How far the offset can be off, milliseconds either way.
    pub uncertainty_ms: Option<f64>,
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
    /// The echo, where the flow has one; same sequence numbers.
    pub echo: Option<LegRecord>,
    /// What the transport counted.
    pub counters: FlowCounters,
    /// The file that it carried, where the arena carries files.
    pub file: Option<FileRecord>,
    /// What the messages came to, where no rows were kept: then both legs are empty.
    pub tally: Option<Box<FlowTally>>,
}

/// Who a flow is; enough to read its records without the scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowInfo {
    /// Name in the summary.
    pub name: String,
    /// Name shared by a flow's copies.
    pub group: String,
    /// Transport as the user wrote it: `udp`, `tcp`, `tcp-nodelay`.
    pub transport: String,
    /// Congestion control that ran, where there is one.
    pub cc: Option<String>,
    /// When the connection was to open.
    pub start: Instant,
    /// Whether messages come on a clock (voice, cbr) or as room allows (bulk, burst).
    pub clocked: bool,
    /// Whether the workload has an end of its own (burst, bulk with `bytes`): goodput then runs to the last delivery.
    pub bounded: bool,
    /// Whether one-way figures can be trusted: one clock, or two that were corrected.
    pub clock_trusted: bool,
}

/// The messages of one direction. An echo leg has only the messages that the far application wrote back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LegRecord {
    /// One entry a message, in order of `seq`.
    pub messages: Vec<MessageRecord>,
    /// The order in which copies reached the far application: `seq` of each arrival, duplicates included.
    pub arrivals: Vec<u64>,
    /// Stream bytes that the far application read, with the time of each read, where the transport is a stream: a
    /// message counts as delivered when its last byte is read, goodput counts bytes.
    pub reads: Vec<(Instant, Bytes)>,
}

/// One message on one leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRecord {
    /// Number within the flow, from 0.
    pub seq: u64,
    /// Payload bytes.
    pub size: Bytes,
    /// When the workload wanted it sent; for an echo, when the far application read the original.
    pub due: Instant,
    /// When the transport took it; `None` where it was refused or never offered.
    pub sent: Option<Instant>,
    /// When its first byte left the host; `None` where unknown.
    pub wire: Option<Instant>,
    /// When the far application read its last byte, the first time, on the sender's clock.
    pub received: Option<Instant>,
    /// What became of it.
    pub fate: Fate,
    /// Why it did not arrive, where that is known.
    pub drop_cause: Option<DropCause>,
    /// How many times it reached the far application.
    pub copies: u32,
    /// How many times its first byte was put on the wire; 0 where unknown or never.
    pub transmissions: u32,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The far application read it.
    Delivered,
    /// It never arrived.
    Missing,
    /// It was still queued or in flight when the run ended.
    Unfinished,
    /// The transport would not take it.
    Refused,
}

/// Where a message was dropped or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// A queue had no room.
    Queue,
    /// The wire ate it.
    Loss,
    /// Another fragment of it was dropped or lost, so it could not be put together.
    Fragment,
    /// The receiving socket's buffer had no room.
    SocketBuffer,
    /// The sender's own queue had no room for it any more.
    SendQueue,
}

/// Which way a message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leg {
    /// From the sender to the receiver.
    Forward,
    /// The echo.
    Return,
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
    /// How much of it arrived, each byte counted once; `None` where the receiver went away.
    pub received: Option<Bytes>,
    /// Whether all of it arrived and the receiver's SHA-256 is the sender's; `None` where the receiver went away.
    pub intact: Option<bool>,
    /// Byte ranges that did not arrive, from and to (exclusive): the first hundred.
    pub missing: Vec<(u64, u64)>,
    /// How many such ranges there are in all.
    pub missing_ranges: u64,
    /// Under which name the receiver kept it, where it was asked to.
    pub kept_as: Option<String>,
}

/// What a machine did to a real-time run; `None` where the arena cannot know, or nothing was measured.
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
    /// Datagrams that found no room in a socket whose buffer the scenario leaves to the tool.
    pub socket_drops: Option<u64>,
    /// Share of one processor that the emulator's thread took, 0 to 1.
    pub emulator_cpu_share: Option<f64>,
    /// Whether the timed threads had real-time priority.
    pub real_time: Option<bool>,
    /// Share of all processors' time that a hypervisor gave to others during the run, 0 to 1 (proc_stat(5), "steal").
    pub stolen_share: Option<f64>,
}

/// From this on a run says how much a hypervisor took: one packet in a hundred meets it, so it is seen in a 99th percentile.
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

/// What a flow's transport counted, both ends together; `None` where the arena cannot know.
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
    /// Time-weighted mean over the window of what might be in flight: cwnd, or the receiver's window where that was
    /// smaller, in packets.
    pub window_packets_mean: Option<f64>,
    /// Time-weighted mean of the send buffer over the window, in bytes.
    pub send_buffer_mean: Option<f64>,
    /// Largest send buffer in the window, in bytes.
    pub send_buffer_max: Option<u64>,
    /// Time in the window during which the workload had a message to send and the transport was not writable.
    pub blocked: Option<Duration>,
}

/// What one link did.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkRecord {
    /// The link's name in the scenario.
    pub name: String,
    /// Time-weighted mean of waiting packets over the window.
    pub queue_packets_mean: f64,
    /// The number of waiting packets that was not exceeded for 99 % of the window.
    pub queue_packets_p99: u64,
    /// Most waiting packets in the window.
    pub queue_packets_max: u64,
    /// Packets that arrived at the far end within the window.
    pub forwarded: u64,
    /// Packets that the queue had no room for, within the window.
    pub dropped: u64,
    /// Packets that the wire ate, within the window.
    pub lost: u64,
    /// Share of the window during which the serialiser was busy, 0 to 1.
    pub utilisation: f64,
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
    /// Written, unacknowledged bytes.
    SendBuffer,
    /// Rate at which a paced sender sends, bits a second.
    PacingRate,
    /// The bottleneck's rate as the congestion control sees it, bits a second.
    BottleneckRate,
}

impl Fate {
    /// The word in the record files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Missing => "missing",
            Self::Unfinished => "unfinished",
            Self::Refused => "refused",
        }
    }

    /// The fate of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Delivered, Self::Missing, Self::Unfinished, Self::Refused]
            .into_iter()
            .find(|it| it.name() == name)
    }
}

impl DropCause {
    /// The word in the record files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Loss => "loss",
            Self::Fragment => "fragment",
            Self::SocketBuffer => "socket-buffer",
            Self::SendQueue => "send-queue",
        }
    }

    /// The cause of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Queue, Self::Loss, Self::Fragment, Self::SocketBuffer, Self::SendQueue]
            .into_iter()
            .find(|it| it.name() == name)
    }
}

impl Leg {
    /// The word in the record files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Return => "return",
        }
    }

    /// The leg of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Forward, Self::Return].into_iter().find(|it| it.name() == name)
    }
}

impl SeriesKind {
    /// The word in the record files and in [`crate::figures::StepLine::kind`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cwnd => "cwnd",
            Self::Ssthresh => "ssthresh",
            Self::Srtt => "srtt",
            Self::Rto => "rto",
            Self::Queue => "queue",
            Self::SendBuffer => "send_buffer",
            Self::PacingRate => "pacing_rate",
            Self::BottleneckRate => "bottleneck_rate",
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
            Self::SendBuffer,
            Self::PacingRate,
            Self::BottleneckRate,
        ];
        kinds.into_iter().find(|it| it.name() == name)
    }
}

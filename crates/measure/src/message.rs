//! The messages of a flow, as every arena records them.

use talkpath_config::Codec;
use talkpath_units::{Bytes, Duration, Instant};

/// Who a flow is; enough to read its records without the scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowInfo {
    /// Name in the summary.
    pub name: String,
    /// Name shared by a flow's copies.
    pub group: String,
    /// Transport as the user wrote it: `udp`, `tcp`, `tcp-nodelay`.
    pub transport: String,
    /// Congestion control that ran, if there is one.
    pub cc: Option<String>,
    /// When the connection was to open.
    pub start: Instant,
    /// Whether messages come on a clock (voice, cbr) or as room allows (bulk, burst).
    pub clocked: bool,
    /// Whether the workload has an end of its own (burst, bulk with `bytes`): goodput then runs to the last
    /// delivery.
    pub bounded: bool,
    /// Whether the workload sends bursts, the traffic that Foderaro's words were made for.
    pub burst: bool,
    /// What it is judged by.
    pub terms: Terms,
    /// Whether one-way figures can be trusted: one clock, or two that were corrected.
    pub clock_trusted: bool,
}

impl FlowInfo {
    /// A flow of UDP of this name whose messages come on a clock, without an end; judged by nothing. Its
    /// one-way figures can be trusted.
    pub fn on_a_clock(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            group: name.to_owned(),
            transport: "udp".to_owned(),
            cc: None,
            start: Instant::ZERO,
            clocked: true,
            bounded: false,
            burst: false,
            terms: Terms::default(),
            clock_trusted: true,
        }
    }
}

/// What a flow is judged by, as its scenario has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Terms {
    /// Until when a message is in time, from its due time; with an echo, until the echo is read. `None` if
    /// the flow has no such time.
    pub deadline: Option<Duration>,
    /// How the receiver of a call plays it; `None` if the workload is no voice.
    pub call: Option<CallTerms>,
    /// Whether each message replaces those before it.
    pub is_state: bool,
    /// The least opinion score of a usable call, or share in time of any other usable flow; `None` if
    /// neither is known.
    pub floor: Option<f64>,
}

/// How the receiver of a call plays it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTerms {
    /// What its speech is coded by.
    pub codec: Codec,
    /// Time between frames.
    pub frame: Duration,
    /// How it chooses its playout delay.
    pub playout: PlayoutRule,
    /// Whether it conceals missing frames as its codec does, instead of playing silence.
    pub is_concealed: bool,
    /// If the scenario names no playout: how long beyond the smallest delay of the call a second receiver
    /// waits, with which the call is rated, too.
    pub other_wait: Option<Duration>,
}

/// How a receiver chooses its playout delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlayoutRule {
    /// It follows the network's delay (`metrics/playout.rs`).
    Adaptive,
    /// The first frame that comes waits this long, and the playout delay stays.
    Fixed(Duration),
}

/// The messages of one direction. An echo leg has only the messages that the far application wrote back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LegRecord {
    /// One entry a message, in order of `seq`.
    pub messages: Vec<MessageRecord>,
    /// The order in which copies reached the far application: `seq` of each arrival, duplicates included.
    pub arrivals: Vec<u64>,
    /// Stream bytes that the far application read, with the time of each read, if the transport is a stream:
    /// a message counts as delivered when its last byte is read, goodput counts bytes.
    pub reads: Vec<(Instant, Bytes)>,
    /// Nobody knows what arrived and when: an end went away with its half.
    pub arrivals_unknown: bool,
}

impl LegRecord {
    /// When the far application read how many bytes for the first time.
    pub(crate) fn deliveries(&self) -> impl Iterator<Item = (Instant, u64)> + '_ {
        let reads = self.reads.iter().map(|&(at, bytes)| (at, bytes.get()));
        // A stream has reads and counts those; otherwise whole messages.
        let whole = if self.reads.is_empty() { &self.messages[..] } else { &[] };
        let messages = whole
            .iter()
            .filter(|row| row.fate == Fate::Delivered)
            .filter_map(|row| Some((row.received?, row.size.get())));
        reads.chain(messages)
    }
}

/// One message on one leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRecord {
    /// Number within the flow, from 0.
    pub seq: u64,
    /// Payload bytes.
    pub size: Bytes,
    /// When the workload wanted it sent; for an echo, when the far application offered it to its transport.
    pub due: Instant,
    /// When the transport took it; `None` if it was refused or never offered.
    pub sent: Option<Instant>,
    /// When its first byte left the host; `None` if unknown.
    pub wire: Option<Instant>,
    /// When the far application read its last byte, the first time, on the sender's clock.
    pub received: Option<Instant>,
    /// How it ended.
    pub fate: Fate,
    /// Why it did not arrive, if that is known.
    pub drop_cause: Option<DropCause>,
    /// How many times it reached the far application.
    pub copies: u32,
    /// How many times its first byte was put on the wire; 0 if unknown or never.
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
    /// It was of no use any more before it had left, or before it had arrived whole, and the sender gave it
    /// up.
    Expired,
    /// Its host had no network for it, or was not allowed to send it: it never left.
    NoNetwork,
    /// It was due while the connection was not open, not yet or not any more: it was never sent.
    NotOpen,
}

/// Where a message was dropped or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// A queue had no room.
    Queue,
    /// A queue with room dropped it to signal congestion (active queue management, RFC 7567).
    Aqm,
    /// The wire ate it.
    Loss,
    /// Another fragment of the message was dropped or lost, so the message could not be put together.
    Fragment,
    /// The receiving socket's buffer had no room.
    SocketBuffer,
    /// The receiving QUIC end had no keys yet to decrypt its packet (RFC 9001 §5.7).
    NoKeys,
    /// The sender's own queue had no room for it any more.
    SendQueue,
    /// The receiver stopped the QUIC stream that it had for itself (STOP_SENDING, RFC 9000 §3.5).
    Stopped,
}

/// Which way a message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leg {
    /// From the sender to the receiver.
    Forward,
    /// The echo.
    Return,
}

impl Fate {
    /// The word in the record files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Missing => "missing",
            Self::Unfinished => "unfinished",
            Self::Refused => "refused",
            Self::Expired => "expired",
            Self::NoNetwork => "no_network",
            Self::NotOpen => "not_open",
        }
    }

    /// The fate of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let fates = [
            Self::Delivered,
            Self::Missing,
            Self::Unfinished,
            Self::Refused,
            Self::Expired,
            Self::NoNetwork,
            Self::NotOpen,
        ];
        fates.into_iter().find(|it| it.name() == name)
    }
}

impl DropCause {
    /// The word in the record files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Aqm => "aqm",
            Self::Loss => "loss",
            Self::Fragment => "fragment",
            Self::SocketBuffer => "socket-buffer",
            Self::NoKeys => "no-keys",
            Self::SendQueue => "send-queue",
            Self::Stopped => "stopped",
        }
    }

    /// The cause of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let causes = [
            Self::Queue,
            Self::Aqm,
            Self::Loss,
            Self::Fragment,
            Self::SocketBuffer,
            Self::NoKeys,
            Self::SendQueue,
            Self::Stopped,
        ];
        causes.into_iter().find(|it| it.name() == name)
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

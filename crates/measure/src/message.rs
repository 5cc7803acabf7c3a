//! The messages of a flow, as every arena records them.
//!
//! A *leg* is one direction of a flow: the way of the messages, or the way back of their echoes. A leg has a
//! record of each message. Begin to read with [`MessageRecord`] and [`Fate`].

use std::collections::BTreeMap;

use talkpath_config::{Codec, Rated};
use talkpath_units::{Bytes, Duration, Instant};

/// What a reader of a flow's records must know about the flow. The scenario is not needed.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowInfo {
    /// The flow's name in the summary.
    pub name: String,
    /// The flow's name in the scenario file. All copies of a flow share it.
    pub group: String,
    /// The transport as the user wrote it: `udp`, `tcp`, `tcp-nodelay`.
    pub transport: String,
    /// The congestion control that ran, if the transport has one.
    pub cc: Option<String>,
    /// The time at which the connection should open.
    pub start: Instant,
    /// Whether a clock decides when messages are due (voice, cbr). Otherwise the transport decides, which
    /// takes the next message when it has room (bulk, burst).
    pub clocked: bool,
    /// Whether the workload ends by itself (burst, bulk with `bytes`). Its goodput is measured up to the last
    /// delivery.
    pub bounded: bool,
    /// Whether the workload sends bursts, for which Foderaro defined the time to receive.
    pub burst: bool,
    /// The terms by which the flow is judged.
    pub terms: Terms,
    /// Whether one-way figures can be trusted, because both ends read the same clock or two clocks that were
    /// corrected.
    pub clock_trusted: bool,
}

impl FlowInfo {
    /// Makes a flow over UDP whose messages are due on a clock, without an end and without terms. Its one-way
    /// figures can be trusted.
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

/// The terms by which a flow is judged. They come from the scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Terms {
    /// The longest time from a message's due time until it is received, or until its echo is received if the
    /// flow has an echo. A message that takes longer is not in time. `None` if the flow has no deadline.
    pub deadline: Option<Duration>,
    /// How the receiver plays a call. `None` if the workload is not voice.
    pub call: Option<CallTerms>,
    /// Whether each message is a state that replaces the states before it.
    pub is_state: bool,
    /// The lowest value with which the flow is usable: the opinion score of a call, or the share of messages
    /// in time of any other flow. `None` if the scenario does not say.
    pub floor: Option<f64>,
    /// Whether the path changes during the run, so that it matters when messages were lost.
    pub path_changes: bool,
}

/// How the receiver plays a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallTerms {
    /// The codec of the speech.
    pub codec: Codec,
    /// The constants of the speech in the E-model. `None` if nobody published them for this coding.
    pub rated: Option<Rated>,
    /// The time between two packets. The receiver takes the speech of a packet as one frame.
    pub frame: Duration,
    /// In how many packets the sender sends the speech.
    pub carriage: Carriage,
    /// How the receiver chooses its playout delay.
    pub playout: PlayoutRule,
    /// Whether the receiver conceals missing frames as the codec does. Otherwise it plays silence.
    pub is_concealed: bool,
    /// Whether the call is also rated with the receivers of
    /// [`OTHER_WAITS`](crate::metrics::playout::OTHER_WAITS).
    pub others: bool,
}

/// In how many packets a sender sends the speech of a frame. A frame has arrived as soon as one of them has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carriage {
    /// The number of times that each packet is sent, at least 1.
    pub copies: u8,
    /// The number of earlier frames that each packet also has, by RED (RFC 2198) or by in-band FEC.
    pub earlier: u8,
}

impl Default for Carriage {
    /// Each frame is in one packet.
    fn default() -> Self {
        Self { copies: 1, earlier: 0 }
    }
}

/// How a receiver chooses its playout delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlayoutRule {
    /// The jitter buffer of browsers, which changes its delay within speech (`metrics/adaptive/mod.rs`).
    Adaptive,
    /// The playout delay follows the network's delay from talkspurt to talkspurt (Ramjee et al. 1994).
    /// The call is rated as a whole, and not in windows, so that studies keep their results.
    Ramjee,
    /// The first frame that arrives waits for this time, and the playout delay stays the same afterwards.
    Fixed(Duration),
}

/// The messages of one direction. An echo leg has only the messages that the far application wrote back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LegRecord {
    /// One entry for each message, in the order of `seq`.
    pub messages: Vec<MessageRecord>,
    /// The number of each message that reached the far application, in the order of arrival. A duplicate has
    /// an entry of its own.
    pub arrivals: Vec<u64>,
    /// The time and the number of bytes of each read by the far application, if the transport is a stream. A
    /// message counts as delivered when its last byte is read, but goodput counts the bytes of each read.
    pub reads: Vec<(Instant, Bytes)>,
    /// The messages whose speech a later message also brought, and when that message arrived. A capture shows
    /// them, because each packet says which earlier speech it has. In a run [`Carriage`] says it.
    pub brought_later: BTreeMap<u64, Instant>,
    /// True if nobody knows what arrived and when, because the receiving host went away with its half of the
    /// record.
    pub arrivals_unknown: bool,
}

impl PlayoutRule {
    /// Returns the receiver in the words of `call.playout`.
    pub fn words(self) -> String {
        match self {
            Self::Adaptive => "adaptive".to_owned(),
            Self::Ramjee => "ramjee".to_owned(),
            Self::Fixed(wait) => format!("fixed {wait}"),
        }
    }

    /// Whether the call is rated in windows (`metrics/windows.rs`).
    pub(crate) fn has_windows(self) -> bool {
        self != Self::Ramjee
    }
}

impl LegRecord {
    /// Returns a message as its listener gets it: its speech arrives with the first packet that has it.
    pub(crate) fn with_speech(&self, message: &MessageRecord) -> MessageRecord {
        match self.brought_later.get(&message.seq) {
            Some(at) if message.received.is_none_or(|received| received > *at) => {
                MessageRecord { received: Some(*at), fate: Fate::Delivered, ..*message }
            }
            _ => *message,
        }
    }

    /// Returns the number of messages that ended as `fate`.
    pub fn count(&self, fate: Fate) -> usize {
        self.messages.iter().filter(|row| row.fate == fate).count()
    }

    /// Returns the time and the number of bytes of each delivery. Duplicates do not count.
    pub(crate) fn deliveries(&self) -> impl Iterator<Item = (Instant, u64)> + '_ {
        let reads = self.reads.iter().map(|&(at, bytes)| (at, bytes.get()));
        // The messages of a stream would count the bytes of the reads a second time.
        let whole_messages = if self.reads.is_empty() { &self.messages[..] } else { &[] };
        let delivered = whole_messages.iter().filter(|row| row.fate == Fate::Delivered);
        reads.chain(delivered.filter_map(|row| Some((row.received?, row.size.get()))))
    }
}

/// What happened to one message on one leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRecord {
    /// The number of the message in the flow, from 0.
    pub seq: u64,
    /// The size of the payload.
    pub size: Bytes,
    /// The time at which the workload wanted to send the message. For an echo it is the time at which the far
    /// application offered the echo to its transport.
    pub due: Instant,
    /// The time at which the transport took the message. `None` if the transport refused it, or if it was
    /// never offered.
    pub sent: Option<Instant>,
    /// The time at which the first byte of the message left the host. `None` if it is unknown.
    pub wire: Option<Instant>,
    /// The time at which the far application read the last byte of the message for the first time, by the
    /// sender's clock.
    pub received: Option<Instant>,
    /// What became of the message.
    pub fate: Fate,
    /// Why the message did not arrive, if the reason is known.
    pub drop_cause: Option<DropCause>,
    /// How many times the message reached the far application.
    pub copies: u32,
    /// How many times the first byte of the message left the host. 0 if it never did, or if this is unknown.
    pub transmissions: u32,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The far application read the message.
    Delivered,
    /// The message never arrived. The cause may be unknown.
    Missing,
    /// The message was still queued or in flight when the run ended.
    Unfinished,
    /// The transport would not take the message.
    Refused,
    /// The sender gave the message up, because it was of no use any more before all of it had arrived.
    Expired,
    /// The message never left, because its host had no network or was not allowed to send it.
    NoNetwork,
    /// The message was never sent, because the connection was not open yet, or not any more, when it was due.
    NotOpen,
}

/// Where a message was dropped or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// A queue had no room for the message.
    Queue,
    /// A queue that had room dropped the message to signal congestion (active queue management, RFC 7567).
    Aqm,
    /// The wire lost the message.
    Loss,
    /// The wire damaged the packet of the message, and the receiving host's checksum noticed it.
    Damage,
    /// Another fragment of the message was dropped or lost, so the message could not be put together.
    Fragment,
    /// The receiving socket's buffer had no room.
    SocketBuffer,
    /// The receiving QUIC end had no keys yet to decrypt the packet of the message (RFC 9001 §5.7).
    NoKeys,
    /// The sender's own queue had no room for the message any more.
    SendQueue,
    /// The message had a QUIC stream of its own, and the receiver stopped the stream (STOP_SENDING, RFC 9000
    /// §3.5).
    Stopped,
}

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leg {
    /// From the sender to the receiver.
    Forward,
    /// The echo.
    Return,
}

impl Fate {
    const ALL: [Self; 7] = [
        Self::Delivered,
        Self::Missing,
        Self::Unfinished,
        Self::Refused,
        Self::Expired,
        Self::NoNetwork,
        Self::NotOpen,
    ];

    /// Returns the word for the fate in the record files.
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

    /// Returns the fate with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fate| fate.name() == name)
    }
}

impl DropCause {
    const ALL: [Self; 9] = [
        Self::Queue,
        Self::Aqm,
        Self::Loss,
        Self::Damage,
        Self::Fragment,
        Self::SocketBuffer,
        Self::NoKeys,
        Self::SendQueue,
        Self::Stopped,
    ];

    /// Returns the word for the cause in the record files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Aqm => "aqm",
            Self::Loss => "loss",
            Self::Damage => "damage",
            Self::Fragment => "fragment",
            Self::SocketBuffer => "socket-buffer",
            Self::NoKeys => "no-keys",
            Self::SendQueue => "send-queue",
            Self::Stopped => "stopped",
        }
    }

    /// Returns the cause with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.name() == name)
    }
}

impl Leg {
    /// Returns the word for the leg in the record files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Return => "return",
        }
    }

    /// Returns the leg with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Forward, Self::Return].into_iter().find(|leg| leg.name() == name)
    }
}

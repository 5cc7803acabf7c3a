//! A log, or a piece of a log, in its form on the control connection.

use serde::{Deserialize, Serialize};
use talkpath_measure::{DropCause, Fate, LegTap, MessageRecord};
use talkpath_units::{Bytes, Instant};

use super::samples::{RecoverySample, StateSample};
use super::totals::EndTotals;
use super::tuple_form::tuple_form;
use crate::spec::FlowSpec;

/// The largest number of rows of one kind in a piece. The JSON of a piece is then smaller than half a
/// megabyte, even if each number has all its digits.
const PIECE_ROWS: usize = 1000;

/// Rows of a flow's log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// The messages that the end wanted to send.
    pub(crate) sent: Vec<SentRow>,
    /// The messages that arrived at the end.
    pub(crate) arrivals: Vec<TimedMessage>,
    /// The end's reads from a stream.
    pub(crate) reads: Vec<ReadRow>,
    /// The transmissions of messages: when the host gave a packet with the message to its device.
    pub(crate) wires: Vec<TimedMessage>,
    /// The messages that the end's host dropped.
    pub(crate) drops: Vec<HostDrop>,
    pub(crate) samples: Vec<StateSample>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) recovery: Vec<RecoverySample>,
    /// The counts of the whole run. Only the last piece of a log has them.
    pub totals: Option<EndTotals>,
}

/// A message that the end wanted to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SentTuple", into = "SentTuple")]
pub(crate) struct SentRow {
    /// The message's number.
    pub(crate) seq: u64,
    /// The message's size in bytes, at most `u32::MAX`.
    pub(crate) size: u32,
    /// When the message was due, ns.
    pub(crate) due_ns: u64,
    /// When the transport accepted the message, ns. `None` if it did not accept the message.
    pub(crate) sent_ns: Option<u64>,
    /// The reason why the transport did not accept the message. `None` if it did, or if the message still
    /// waits.
    pub(crate) not_taken: Option<NotTaken>,
}

type SentTuple = (u64, u32, u64, Option<u64>, Option<NotTaken>);
tuple_form!(SentRow as SentTuple { seq, size, due_ns, sent_ns, not_taken });

/// The reason why the transport did not accept a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NotTaken {
    /// The transport had no room for the message, or could not carry it.
    Refused,
    /// The host had no network for the message.
    NoNetwork,
    /// The connection was not open.
    NotOpen,
}

/// A message, and the time at which it arrived or left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "TimedTuple", into = "TimedTuple")]
pub(crate) struct TimedMessage {
    pub(crate) seq: u64,
    pub(crate) at_ns: u64,
}

type TimedTuple = (u64, u64);
tuple_form!(TimedMessage as TimedTuple { seq, at_ns });

/// A read from a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ReadTuple", into = "ReadTuple")]
pub(crate) struct ReadRow {
    pub(crate) at_ns: u64,
    pub(crate) bytes: u64,
}

type ReadTuple = (u64, u64);
tuple_form!(ReadRow as ReadTuple { at_ns, bytes });

/// A message that the end's host dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "DropTuple", into = "DropTuple")]
pub(crate) struct HostDrop {
    pub(crate) seq: u64,
    pub(crate) place: DropPlace,
}

type DropTuple = (u64, DropPlace);
tuple_form!(HostDrop as DropTuple { seq, place });

/// The place in which the end's host dropped a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DropPlace {
    /// The transport's own send queue, after the transport had accepted the message.
    SendQueue,
    /// The kernel, which refused the packet.
    Kernel,
    /// The kernel, which had no network for the packet.
    NoNetwork,
    /// The receive buffer, which was full because the application had not read enough.
    Inbox,
    /// The end itself, because the message had waited for too long, before or after the transport accepted
    /// it.
    Expired,
    /// The end itself, because the far end stopped the message's QUIC stream.
    Stopped,
}

impl Chunk {
    /// Returns the number of rows about messages that the end wanted to send.
    pub fn sent_rows(&self) -> usize {
        self.sent.len()
    }

    /// Returns the number of rows of all kinds.
    pub fn row_count(&self) -> u64 {
        self.lengths().iter().sum::<usize>() as u64
    }

    /// Returns the number of rows of each kind.
    fn lengths(&self) -> [usize; 7] {
        [
            self.sent.len(),
            self.arrivals.len(),
            self.reads.len(),
            self.wires.len(),
            self.drops.len(),
            self.samples.len(),
            self.recovery.len(),
        ]
    }

    /// Appends the rows of the `next` piece.
    pub fn extend(&mut self, next: Self) {
        self.sent.extend(next.sent);
        self.arrivals.extend(next.arrivals);
        self.reads.extend(next.reads);
        self.wires.extend(next.wires);
        self.drops.extend(next.drops);
        self.samples.extend(next.samples);
        self.recovery.extend(next.recovery);
        self.totals = next.totals.or(self.totals.take());
    }

    /// Cuts a log into pieces of at most [`PIECE_ROWS`] rows of each kind. There is at least one piece.
    pub(super) fn into_pieces(self) -> impl Iterator<Item = Self> {
        let longest = self.lengths().into_iter().max().unwrap_or(0);
        let count = longest.div_ceil(PIECE_ROWS).max(1);
        (0..count).map(move |index| Self {
            sent: piece(&self.sent, index),
            arrivals: piece(&self.arrivals, index),
            reads: piece(&self.reads, index),
            wires: piece(&self.wires, index),
            drops: piece(&self.drops, index),
            samples: piece(&self.samples, index),
            recovery: piece(&self.recovery, index),
            totals: if index + 1 == count { self.totals.clone() } else { None },
        })
    }

    /// Adds the rows about the messages that the end wanted to send.
    pub(super) fn add_sent(&mut self, tap: &LegTap) {
        for message in tap.rows() {
            let seq = message.seq;
            self.sent.push(SentRow {
                seq,
                size: u32::try_from(message.size.get()).unwrap_or(u32::MAX),
                due_ns: message.due.as_nanos(),
                sent_ns: message.sent.map(Instant::as_nanos),
                not_taken: not_taken(message),
            });
            if let Some(wire) = message.wire {
                let row = TimedMessage { seq, at_ns: wire.as_nanos() };
                self.wires.extend((0..message.transmissions).map(|_| row));
            }
            self.drops.extend(drop_place(message).map(|place| HostDrop { seq, place }));
        }
    }

    /// Adds the rows about the messages that the end received.
    pub(super) fn add_received(&mut self, tap: &LegTap) {
        self.arrivals =
            tap.arrival_times().map(|(seq, at)| TimedMessage { seq, at_ns: at.as_nanos() }).collect();
        self.reads = tap
            .reads()
            .iter()
            .map(|&(at, bytes)| ReadRow { at_ns: at.as_nanos(), bytes: bytes.get() })
            .collect();
        let dropped = tap.dropped_on_arrival().iter();
        self.drops.extend(dropped.map(|&seq| HostDrop { seq, place: DropPlace::Inbox }));
    }

    /// Fills `tap` with the messages that the end wanted to send. Leaves out each message whose number is not
    /// below `message_bound`.
    pub(super) fn fill_sent(
        &self,
        tap: &mut LegTap,
        keeps_messages: bool,
        message_bound: u64,
        to_our_clock: &dyn Fn(u64) -> Instant,
    ) {
        // The messages, by number, that have a row with a send time.
        let mut is_sent = vec![false; usize::try_from(message_bound).unwrap_or(0)];
        for row in &self.sent {
            let Some(is_sent) = usize::try_from(row.seq).ok().and_then(|seq| is_sent.get_mut(seq)) else {
                continue;
            };
            tap.on_due(row.seq, Bytes::new(row.size.into()), to_our_clock(row.due_ns));
            if *is_sent {
                // The far end has sent a second row of this message. The first row with a send time counts.
                continue;
            }
            match (row.sent_ns, row.not_taken) {
                (Some(sent_ns), _) => {
                    *is_sent = true;
                    if keeps_messages {
                        tap.on_sent(row.seq, to_our_clock(sent_ns));
                    } else {
                        tap.on_sent_stream(row.seq, to_our_clock(sent_ns));
                    }
                }
                (None, Some(NotTaken::Refused)) => tap.on_refused(row.seq),
                (None, Some(NotTaken::NoNetwork)) => tap.on_no_network(row.seq),
                (None, Some(NotTaken::NotOpen)) => tap.on_not_open(row.seq),
                (None, None) => {}
            }
        }
        for row in &self.wires {
            if usize::try_from(row.seq).is_ok_and(|seq| is_sent.get(seq) == Some(&true)) {
                tap.on_wire(row.seq, to_our_clock(row.at_ns));
            }
        }
        for &HostDrop { seq, place } in &self.drops {
            match place {
                DropPlace::SendQueue => tap.on_dropped(seq, DropCause::SendQueue),
                DropPlace::Kernel => tap.on_unsent(seq),
                DropPlace::NoNetwork => tap.on_no_network(seq),
                DropPlace::Expired => tap.on_expired(seq),
                DropPlace::Stopped => tap.on_dropped(seq, DropCause::Stopped),
                // `fill_received` uses these rows.
                DropPlace::Inbox => {}
            }
        }
    }

    /// Fills `tap` with what the end received.
    pub(super) fn fill_received(
        &self,
        tap: &mut LegTap,
        spec: &FlowSpec,
        to_our_clock: &dyn Fn(u64) -> Instant,
    ) {
        if !spec.features().keeps_messages {
            for row in &self.reads {
                let bytes = row.bytes.min(u64::from(u32::MAX));
                tap.on_read(Bytes::new(bytes), to_our_clock(row.at_ns));
            }
        }
        // The arrivals of a stream follow from its reads, unless its messages carry their numbers.
        if !spec.names_messages() {
            return;
        }
        for row in &self.arrivals {
            tap.on_received(row.seq, to_our_clock(row.at_ns));
        }
        for row in &self.drops {
            if row.place == DropPlace::Inbox {
                tap.on_dropped(row.seq, DropCause::SocketBuffer);
            }
        }
    }
}

/// Returns the reason why the transport did not accept `message`, if it did not.
fn not_taken(message: &MessageRecord) -> Option<NotTaken> {
    match message.fate {
        Fate::Refused => Some(NotTaken::Refused),
        Fate::NoNetwork if message.sent.is_none() => Some(NotTaken::NoNetwork),
        Fate::NotOpen => Some(NotTaken::NotOpen),
        _ => None,
    }
}

/// Returns the place in which the end's host dropped `message`, if it did.
fn drop_place(message: &MessageRecord) -> Option<DropPlace> {
    match (message.fate, message.drop_cause) {
        (_, Some(DropCause::Stopped)) => Some(DropPlace::Stopped),
        (_, Some(_)) => Some(DropPlace::SendQueue),
        (Fate::Expired, None) => Some(DropPlace::Expired),
        (Fate::Missing, None) => Some(DropPlace::Kernel),
        (Fate::NoNetwork, None) if message.sent.is_some() => Some(DropPlace::NoNetwork),
        _ => None,
    }
}

/// Returns the rows of piece number `index`.
fn piece<T: Copy>(rows: &[T], index: usize) -> Vec<T> {
    rows.chunks(PIECE_ROWS).nth(index).unwrap_or_default().to_vec()
}

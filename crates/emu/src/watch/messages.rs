//! The messages that a watch has observed, and the fate of those that did not arrive.

use talkpath_measure::{DropCause, Fate, MessageRecord};
use talkpath_units::Instant;

use crate::packet::UDP_HEADER;

/// The largest number of messages, packets or segments that are watched in one direction of a connection. We
/// chose 2^24, which take half a gigabyte.
pub(super) const MAX_WATCHED: usize = 1 << 24;

/// The observations of one message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ObservedMessage {
    /// When the message left its host for the first time. `None` if the message did not come to the emulator.
    pub(super) first_sent: Option<Instant>,
    pub(super) transmissions: u32,
    drop_cause: Option<DropCause>,
    /// The number of bytes after the IP header that were handed to the far host, in all pieces.
    handed_over: u64,
}

/// The datagrams that a socket has not handed to its end when the run is over.
#[derive(Clone, Debug)]
pub(crate) struct DrainedSocket {
    /// The number of datagrams that the socket dropped. `None` if the kernel does not report it.
    pub(crate) drops: Option<u32>,
    /// The numbers of the messages that wait in the socket.
    pub(crate) unread: Vec<u64>,
}

/// The state of the receiving end when the run is over.
#[derive(Clone, Copy)]
pub(super) struct ReceiverState<'a> {
    /// `None` if another program has the socket, or if the socket takes no datagrams.
    pub(super) socket: Option<&'a DrainedSocket>,
    /// True if the receiver had time to read all messages.
    pub(super) is_drained: bool,
}

impl ObservedMessage {
    /// Records that the message left its host, for the first time or again.
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.first_sent.get_or_insert(now);
        self.transmissions = self.transmissions.saturating_add(1);
    }

    /// Records that a piece of the message was dropped or lost. Returns true if it is the first piece.
    pub(super) fn on_dropped(&mut self, cause: DropCause) -> bool {
        let is_first = self.drop_cause.is_none();
        self.drop_cause.get_or_insert(cause);
        is_first
    }

    pub(super) fn on_departed(&mut self, bytes: u64) {
        self.handed_over += bytes;
    }

    /// Sets the fate of a message that was sent and did not arrive. Its transport does not send it again.
    pub(super) fn set_fate(&self, message: &mut MessageRecord, receiver: ReceiverState<'_>) {
        let has_fate =
            matches!(message.fate, Fate::Delivered | Fate::Refused | Fate::NoNetwork | Fate::NotOpen);
        if has_fate || message.drop_cause.is_some() || message.sent.is_none() {
            return;
        }
        (message.fate, message.drop_cause) = self.fate(message, receiver);
    }

    fn fate(&self, message: &MessageRecord, receiver: ReceiverState<'_>) -> (Fate, Option<DropCause>) {
        if let Some(cause) = self.drop_cause {
            return (Fate::Missing, Some(cause));
        }
        if receiver.socket.is_some_and(|socket| socket.unread.contains(&message.seq)) {
            return (Fate::Unfinished, None);
        }
        let is_handed_over = self.handed_over >= message.size.get() + UDP_HEADER as u64;
        if !is_handed_over {
            // If the message did not come to the emulator, its host's device had no room. The run has a
            // warning about it.
            let fate = if self.first_sent.is_none() { Fate::Missing } else { Fate::Unfinished };
            return (fate, None);
        }
        if receiver.socket.is_some_and(|socket| socket.drops > Some(0)) {
            return (Fate::Missing, Some(DropCause::SocketBuffer));
        }
        // The far host has the message, and its socket dropped nothing. Either the receiver had no time to
        // read it, or a QUIC end discarded the packet because it had no keys for it (RFC 9001 §5.7). Nobody
        // reports the latter.
        let fate = if receiver.is_drained { Fate::Missing } else { Fate::Unfinished };
        (fate, None)
    }
}

/// The messages of one flow in one direction, by their numbers.
#[derive(Debug)]
pub(super) struct ObservedMessages(Vec<ObservedMessage>);

impl ObservedMessages {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns the observations of a message, which are empty if it was not observed.
    pub(super) fn get(&self, seq: u64) -> ObservedMessage {
        let index = usize::try_from(seq).unwrap_or(usize::MAX);
        self.0.get(index).copied().unwrap_or_default()
    }

    /// Returns the observations of a message that was observed, or of one with a smaller number.
    pub(super) fn get_mut(&mut self, seq: u64) -> Option<&mut ObservedMessage> {
        self.0.get_mut(usize::try_from(seq).ok()?)
    }

    /// Returns the observations of a message, which may be its first. Returns `None` if the number is beyond
    /// [`MAX_WATCHED`].
    pub(super) fn entry(&mut self, seq: u64) -> Option<&mut ObservedMessage> {
        let index = usize::try_from(seq).ok().filter(|&index| index < MAX_WATCHED)?;
        if self.0.len() <= index {
            self.0.resize(index + 1, ObservedMessage::default());
        }
        self.0.get_mut(index)
    }
}

//! The watch of encrypted packets. A packet may carry messages of several flows.

use std::sync::Arc;

use talkpath_kernel::end::PacketNotes;
use talkpath_measure::{DropCause, LegRecord};
use talkpath_units::Instant;

use super::messages::{MAX_WATCHED, ObservedMessage, ObservedMessages, ReceiverState};

/// The watch of the encrypted packets of a connection.
#[derive(Debug)]
pub(crate) struct PacketWatch {
    /// The sender's notes about the messages in its packets.
    notes: Arc<PacketNotes>,
    /// The messages in each packet. The number of a packet is its index.
    packets: Vec<Vec<MessageId>>,
    flows: Vec<WatchedFlow>,
}

/// A message in a packet, as the sender notes it: the index of the flow in the connection, and the number of
/// the message.
type MessageId = (u32, u64);

/// One flow of the connection.
#[derive(Debug)]
struct WatchedFlow {
    /// True if the flow's messages are sent again. Then the path does not decide their fate.
    is_reliable: bool,
    messages: ObservedMessages,
}

impl PacketWatch {
    pub(super) fn new(notes: Arc<PacketNotes>, are_reliable: Vec<bool>) -> Self {
        let watched = |is_reliable| WatchedFlow { is_reliable, messages: ObservedMessages::new() };
        Self { notes, packets: Vec::new(), flows: are_reliable.into_iter().map(watched).collect() }
    }

    /// Records that a packet leaves its host. Returns the number of the packet, or `None` if it has no
    /// messages.
    pub(super) fn on_packet(&mut self, payload: &[u8], now: Instant) -> Option<u64> {
        let messages = self.notes.take(payload)?;
        if self.packets.len() >= MAX_WATCHED {
            return None;
        }
        let number = self.packets.len() as u64;
        self.packets.push(messages);
        self.for_each_message(number, |_, message| message.on_sent(now));
        Some(number)
    }

    pub(super) fn on_dropped(&mut self, number: u64, cause: DropCause, mut lost: impl FnMut(usize)) {
        self.for_each_message(number, |flow, message| {
            if message.on_dropped(cause) {
                lost(flow);
            }
        });
    }

    pub(super) fn on_departed(&mut self, number: u64, bytes: u64) {
        self.for_each_message(number, |_, message| message.on_departed(bytes));
    }

    /// Calls `apply` for each message in packet `number`, with the index of the message's flow.
    fn for_each_message(&mut self, number: u64, mut apply: impl FnMut(usize, &mut ObservedMessage)) {
        let Ok(index) = usize::try_from(number) else { return };
        for &(flow, seq) in self.packets.get(index).into_iter().flatten() {
            let flow = flow as usize;
            let message = self.flows.get_mut(flow).and_then(|watched| watched.messages.entry(seq));
            if let Some(message) = message {
                apply(flow, message);
            }
        }
    }

    pub(super) fn complete(&self, flow: usize, leg: &mut LegRecord, receiver: ReceiverState<'_>) {
        let Some(WatchedFlow { is_reliable: false, messages }) = self.flows.get(flow) else { return };
        for message in &mut leg.messages {
            // A message without a wire time has not entered the path. It waits in its sender's own queue, or
            // has expired there.
            if message.wire.is_none() {
                continue;
            }
            let observed = messages.get(message.seq);
            (message.wire, message.transmissions) = (observed.first_sent, observed.transmissions);
            observed.set_fate(message, receiver);
        }
    }
}

//! The watch of datagrams that carry one message each.

use talkpath_config::TransportKind;
use talkpath_kernel::end::message_in;
use talkpath_kernel::wire::read_header;
use talkpath_measure::{DropCause, LegRecord};
use talkpath_units::Instant;

use super::messages::{ObservedMessages, ReceiverState};

/// The watch of datagrams of UDP, or of a protocol of talkpath in UDP.
#[derive(Debug)]
pub(crate) struct DatagramWatch {
    /// The number in each message that shows that it belongs to the flow.
    token: u32,
    transport: TransportKind,
    /// True if messages wait in their sender's own queue before they leave.
    is_queued: bool,
    /// True if the transport sends a message again that the path has dropped. Then the path does not decide
    /// the fate of the message.
    pub(super) is_reliable: bool,
    /// The number that the next message probably has. A short message has only a part of its number.
    expected: u64,
    messages: ObservedMessages,
}

impl DatagramWatch {
    pub(super) const fn new(token: u32, transport: TransportKind, is_queued: bool) -> Self {
        let is_reliable = transport.features().is_reliable;
        Self { token, transport, is_queued, is_reliable, expected: 0, messages: ObservedMessages::new() }
    }

    /// Records that a datagram leaves its host. Returns the number of its message.
    pub(super) fn on_datagram(&mut self, payload: &[u8], now: Instant) -> Option<u64> {
        let seq = read_header(message_in(self.transport, payload)?, self.token, self.expected)?;
        self.messages.entry(seq)?.on_sent(now);
        self.expected = self.expected.max(seq + 1);
        Some(seq)
    }

    pub(super) fn on_dropped(&mut self, seq: u64, cause: DropCause, mut lost: impl FnMut(usize)) {
        if self.is_reliable {
            return;
        }
        if self.messages.get_mut(seq).is_some_and(|message| message.on_dropped(cause)) {
            lost(0);
        }
    }

    pub(super) fn on_departed(&mut self, seq: u64, bytes: u64) {
        if let Some(message) = self.messages.get_mut(seq) {
            message.on_departed(bytes);
        }
    }

    pub(super) fn complete(&self, leg: &mut LegRecord, receiver: ReceiverState<'_>) {
        for message in &mut leg.messages {
            // A message that waits in its sender's own queue has not entered the path.
            if self.is_queued && message.wire.is_none() {
                continue;
            }
            let observed = self.messages.get(message.seq);
            (message.wire, message.transmissions) = (observed.first_sent, observed.transmissions);
            if !self.is_reliable {
                observed.set_fate(message, receiver);
            }
        }
    }
}

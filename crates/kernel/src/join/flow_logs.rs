//! What a join is made from.

use crate::log::EndLog;
use crate::spec::FlowSpec;

/// How a run ended. The fate of messages that have not arrived depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The run waited for deliveries to its end. A datagram that has not arrived by then never will.
    Drained,
    /// The run was cut short. The last messages may still be on their way.
    Cut,
}

/// The logs of both ends of a flow.
#[derive(Clone, Copy)]
pub(super) struct FlowLogs<'a> {
    pub(super) spec: &'a FlowSpec,
    /// The log of the end that sends the messages. `None` if that end went away.
    pub(super) sender: Option<&'a EndLog>,
    /// The log of the end that receives the messages. `None` if that end went away.
    pub(super) receiver: Option<&'a EndLog>,
    pub(super) run_end: RunEnd,
}

impl<'a> FlowLogs<'a> {
    /// Returns the logs that are present.
    pub(super) fn present(self) -> impl Iterator<Item = &'a EndLog> {
        [self.sender, self.receiver].into_iter().flatten()
    }

    /// Returns true if the receiver echoes the messages.
    pub(super) const fn has_echo(self) -> bool {
        self.spec.has_echo()
    }

    /// Returns true if the connection has ended early.
    pub(super) fn has_failed(self) -> bool {
        self.present().any(|log| log.totals.failure.is_some())
    }
}

//! The ledger of a flow: what became of each message that was due.

use serde::{Deserialize, Serialize};

/// What became of the messages that were due in the window, or of their round trips if the flow has an echo.
/// The sum of all other fields is `due`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Messages that the workload wanted to send.
    pub due: u64,
    /// Messages that arrived, in time or late. In an echo flow their echo arrived.
    pub delivered: u64,
    /// Messages that their sender, or the sender of their echo, gave up because they were too old.
    pub expired: u64,
    /// Messages that the transport refused, because it had no room for them or could not carry them.
    pub refused: u64,
    /// Messages that were never sent, because their host had no network or was not allowed to send.
    pub no_network: u64,
    /// Messages that were never sent, because the connection was not open yet or not any more.
    pub not_open: u64,
    /// Messages that were sent and never delivered.
    pub missing: u64,
    /// Messages that were still queued or in flight when the run ended.
    pub unfinished: u64,
}

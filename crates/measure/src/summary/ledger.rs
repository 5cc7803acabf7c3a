//! What became of each message that was due.

use serde::{Deserialize, Serialize};

/// What became of each message that was due in the window, of an echo flow there and back. All but `due` add
/// up to `due`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Messages that the workload wanted sent.
    pub due: u64,
    /// Came to their end, in time or late.
    pub delivered: u64,
    /// Given up by their sender, or their echo's, as too old.
    pub expired: u64,
    /// Not taken by the transport, which had no room for them or could not carry them.
    pub refused: u64,
    /// Never sent: their host had no network, or no right to send.
    pub no_network: u64,
    /// Never sent: the connection was not open, not yet or not any more.
    pub not_open: u64,
    /// Sent and never delivered.
    pub missing: u64,
    /// Still queued or in flight when the run ended.
    pub unfinished: u64,
}

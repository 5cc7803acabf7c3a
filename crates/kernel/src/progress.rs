//! The progress of a flow.

use serde::{Deserialize, Serialize};

/// The progress of one end of a flow. Datagram flows count messages, and stream flows count bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndProgress {
    /// True if the end will send nothing more unless something arrives.
    pub is_done: bool,
    /// The messages or bytes that the transport has taken.
    pub sent: u64,
    /// The messages or bytes that have arrived, without duplicates.
    pub received: u64,
}

//! How far a flow is.

use serde::{Deserialize, Serialize};

/// How far one end of a flow is. Datagram flows count messages, stream flows bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndProgress {
    /// Nothing more will be sent unless something arrives.
    pub is_done: bool,
    /// Taken by the transport.
    pub sent: u64,
    /// Arrived, duplicates left out.
    pub received: u64,
}

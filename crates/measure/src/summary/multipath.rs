//! The figures of a connection that may use several paths.

use serde::{Deserialize, Serialize};

/// A Multipath TCP connection (RFC 8684), as the kernels at both ends report it. The scenario asks for it
/// with its key `multipath`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MultipathSummary {
    /// Whether the connection fell back to plain TCP, because the far host or a device on the path does not
    /// support Multipath TCP. `None` if the connection never opened.
    pub fell_back: Option<bool>,
    /// The largest number of subflows, which are TCP connections, at the same time. `None` if the connection
    /// never opened.
    pub subflows_max: Option<u32>,
}

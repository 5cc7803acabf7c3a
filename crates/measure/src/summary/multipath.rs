//! What was seen of a connection that may use several paths.

use serde::{Deserialize, Serialize};

/// A connection of Multipath TCP (RFC 8684), as both ends' kernels saw it. The scenario wants it: see
/// `multipath` there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MultipathSummary {
    /// Whether it was plain TCP all the same, because the far host or something on the path does not speak
    /// Multipath TCP; `None` if it never opened.
    pub fell_back: Option<bool>,
    /// The most subflows, connections of TCP, that it had at a time; `None` if it never opened.
    pub subflows_max: Option<u32>,
}

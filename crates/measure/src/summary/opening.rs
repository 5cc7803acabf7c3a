//! How a flow opened, in parts.

use serde::{Deserialize, Serialize};

/// The parts of a flow's opening, ms. A part is `None` if it is unknown, if it never ended, or if the
/// transport or the arena has no such part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpeningSummary {
    /// The time that the resolver took for the name of the far host, once before the run.
    pub name_ms: Option<f64>,
    /// The time that the kernel took to make the socket and to set its options.
    pub socket_ms: Option<f64>,
    /// The time from the first packet of the handshake until it was over at the client. With 0-RTT it is
    /// longer than the time until a message could leave.
    pub handshake_ms: Option<f64>,
    /// The time from the start of the flow until the first message came to its end: with an echo, back to the
    /// sender.
    pub first_delivered_ms: Option<f64>,
}

//! What the channel over real sockets needs to know of a protocol of ours besides the contract.

use talkpath_units::Duration;

use crate::Transport;

/// The state machine of a protocol of ours that real hosts carry in UDP datagrams.
pub trait Machine: Transport {
    /// Whether no connection is left, or none was opened: the far end has heard of its end, or is not to hear
    /// of it.
    fn is_over(&self) -> bool;
    /// How the connection ended; `None` until it has.
    fn ending(&self) -> Option<Ending>;
    /// What a client makes of a server that does not answer.
    fn silence(&self) -> Silence;
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// One of the ends closed it, in order.
    pub is_close: bool,
    /// The same as a failure, in words.
    pub why: String,
}

/// What a client makes of a server that does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// A client that has waited for less cannot say that there is no answer.
    pub patience: Duration,
    /// The failure then, in words.
    pub why: &'static str,
}

//! Reordering by share and distance: some packets take longer, and the packets behind them overtake them.
//!
//! Each packet is held back with the stated probability, independently of the others, for the stated time
//! after its arrival. A packet that is not held back keeps its place among those that are not (RFC 4737 §3:
//! a reordered packet is one that arrives after a packet that was sent later). netem's `reorder` is the other
//! way round: there the stated share is not delayed, and overtakes the delayed rest.

use talkpath_units::{Duration, Stream};

/// Which packets are held back, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reordering {
    /// The probability that a packet is held back, in [0, 1].
    pub share: f64,
    /// How long it is held back.
    pub by: Duration,
}

/// A reordering with its stream.
#[derive(Debug)]
pub(crate) struct Reorderer {
    config: Reordering,
    stream: Stream,
}

impl Reorderer {
    /// `config`, with draws from `stream`.
    pub(crate) const fn new(config: Reordering, stream: Stream) -> Self {
        Self { config, stream }
    }

    /// Draws for the next packet: for how long it is held back, if it is.
    pub(crate) fn hold_back(&mut self) -> Option<Duration> {
        self.stream.chance(self.config.share).then_some(self.config.by)
    }
}

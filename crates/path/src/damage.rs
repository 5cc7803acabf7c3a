//! Damage: packets of which the wire changes bits.
//!
//! Each packet is damaged with the stated probability, independently of the others. What becomes of it
//! depends on who checks:
//!
//! - A *frame check* is that of the link (IEEE 802.3 §3.2.9). The far end of the link discards the packet, so
//!   that it is lost there.
//! - A *checksum* is that of the transport (RFC 768, RFC 9293 §3.1). The packet goes on to its destination,
//!   and takes its place in the queues on the way. The host discards it, unless the checksum leaves out the
//!   part that is damaged (RFC 4340 §9.2).
//!
//! Left out: damage that grows with the size of the packet, and damage that no check notices.

use talkpath_units::Stream;

/// Which packets the wire damages, and who notices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Damage {
    /// The probability that a packet is damaged, in [0, 1].
    pub share: f64,
    /// Who notices.
    pub check: Check,
}

/// Who notices that a packet is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The far end of the link.
    Frame,
    /// The host at the end of the packet's way.
    Checksum,
}

/// A damage with its stream.
#[derive(Debug)]
pub(crate) struct Damager {
    config: Damage,
    stream: Stream,
}

impl Damager {
    /// `config`, with draws from `stream`.
    pub(crate) const fn new(config: Damage, stream: Stream) -> Self {
        Self { config, stream }
    }

    /// Draws for the next packet: who notices its damage. `None` if it is not damaged.
    pub(crate) fn damages_next(&mut self) -> Option<Check> {
        self.stream.chance(self.config.share).then_some(self.config.check)
    }
}

//! Repeated packets: the far end of a link gets a packet twice. A link layer does so that sends a frame again
//! although it has arrived, because the acknowledgement was lost.
//!
//! Each packet that arrives is repeated with the stated probability, independently of the others. The copy
//! arrives right behind the packet and then goes its own way: a later link may drop or lose one of the two.
//! The copy takes no time of the serialiser, and a packet that the wire loses has no copy. netem is different
//! in both: its copy waits in the queue and takes its time on the wire, and a packet that is chosen to be
//! repeated and to be lost arrives once.

use talkpath_units::Stream;

/// A probability with its stream.
#[derive(Debug)]
pub(crate) struct Repeater {
    /// The probability that a packet is repeated, in [0, 1].
    share: f64,
    stream: Stream,
}

impl Repeater {
    /// Repeats this share of the packets, drawn from `stream`.
    pub(crate) const fn new(share: f64, stream: Stream) -> Self {
        Self { share, stream }
    }

    /// Draws whether the next packet is repeated.
    pub(crate) fn repeats_next(&mut self) -> bool {
        self.stream.chance(self.share)
    }
}

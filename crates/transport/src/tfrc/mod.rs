//! TCP-friendly rate control: a rate that follows TCP's throughput without its sawtooth.
//!
//! Models RFC 5348, on request RFC 3448, which it obsoletes, and the small-packet variant TFRC-SP of
//! RFC 4828. Pure machines that know no packet format: DCCP's CCID 3 (RFC 4342) and CCID 4 (RFC 5622) carry
//! what they say.
//!
//! ```text
//!   Sender                                            Receiver
//!     window counter  ── data: number, counter ─►       loss history ─► intervals ─► p
//!     schedule                                          receive rate
//!     X from p, R and X_recv  ◄─ feedback: intervals, X_recv, elapsed time ──
//! ```
//!
//! What the two revisions do differently, all in [`Sender`] but the last:
//!
//! | | RFC 3448 | RFC 5348 |
//! | --- | --- | --- |
//! | rate before the first feedback | 1 packet/s | the same, or `W_init / R` if the handshake gave R (§4.2) |
//! | rate after it | one packet a round trip (§4.3) | `W_init / R`, 2 to 4 packets (§4.2) |
//! | floor in slow start | one packet a round trip | `W_init / R` |
//! | receive rate bounding X | the last one | the largest of the last 2 round trips, none at first (§4.3) |
//! | data-limited intervals | bound X as others do | keep the larger earlier rate; a loss lowers it (§4.3) |
//! | a slow receiver (RFC 4342 §5.2) | bounds X as others do | bounds X alone, until the next feedback |
//! | nofeedback timer while idle | spares a rate below 4 packets/R (§4.4) | spares the initial rate (§4.4) |
//! | credit for times not used | none (§4.6) | up to a round trip (§4.6) |
//! | first loss interval (§6.3.1) | from the last receive rate | from the largest, at least half a packet/R |
//!
//! History discounting (§5.5) is optional and off unless configured; the rate is then the sender's, which
//! averages the intervals that the receiver reports. Left out: packets that arrive after they were taken for
//! lost (§5.1 lets them fill the hole), feedback more than once a round trip (§6, optional), and the feedback
//! timer, whose place the window counter takes (§6.3, RFC 4342 §10.3). RFC 4342's own initial rate of two to
//! four packets is RFC 5348's; RFC 3448 is taken to the letter.

mod counter;
mod equation;
mod history;
mod intervals;
mod limited;
mod receive_rate;
mod receiver;
mod sender;

pub use counter::{CounterClock, WindowCounter, steps};
pub use equation::{loss_event_rate, throughput};
pub use history::{Arrival, LossHistory, LossInterval, NDUPACK};
pub use intervals::{INTERVALS, Interval, general_discount, mean_interval};
pub use receiver::{Receiver, Report};
pub use sender::{Feedback, Sender};

pub use talkpath_config::Revision;
use talkpath_units::{Bytes, Duration};

/// Whether the rate is worked out for packets of their own size or for small ones among large ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// TFRC: as a TCP with segments of this flow's size.
    Standard,
    /// TFRC-SP (RFC 4828): as a TCP with large segments, headers charged, at most a packet every 10 ms.
    SmallPackets,
}

/// TFRC's options, the same at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TfrcConfig {
    /// Which specification.
    pub revision: Revision,
    /// TFRC or TFRC-SP.
    pub variant: Variant,
    /// Segment size `s`; `None` takes the mean of what is sent (TFRC), or `nominal_size` in the equation
    /// (TFRC-SP).
    pub segment_size: Option<Bytes>,
    /// What TFRC-SP takes for a TCP's segment: 1460 bytes, or what the path holds (RFC 4828 §3).
    pub nominal_size: Bytes,
    /// Whether the rate gives way at once to a round trip above the mean (§4.5).
    pub oscillation_prevention: bool,
    /// Whether a long current loss interval makes the older ones count for less (§5.5).
    pub history_discounting: bool,
}

impl TfrcConfig {
    /// What RFC 5348 and RFC 3448 take if nothing else is configured.
    pub const fn new(revision: Revision, variant: Variant) -> Self {
        Self {
            revision,
            variant,
            segment_size: None,
            nominal_size: NOMINAL_SIZE,
            oscillation_prevention: true,
            history_discounting: false,
        }
    }

    /// The same on a path of this MTU: TCP's segments are no larger than it, less its headers.
    #[must_use]
    pub const fn on_path(self, mtu: Bytes) -> Self {
        let mss = mtu.saturating_sub(TCP_HEADERS);
        Self { nominal_size: if mss.get() < NOMINAL_SIZE.get() { mss } else { NOMINAL_SIZE }, ..self }
    }

    /// `s` in the throughput equation, in bytes, if packets carry `mean` bytes of payload.
    fn equation_size(&self, mean: f64) -> f64 {
        match (self.segment_size, self.variant) {
            (Some(size), _) => size.get() as f64,
            (None, Variant::Standard) => mean,
            (None, Variant::SmallPackets) => self.nominal_size.get() as f64,
        }
    }

    /// `s` elsewhere: in the schedule, in the initial and in the least rate. TFRC-SP's nominal size is the
    /// equation's alone.
    fn packet_size(&self, mean: f64) -> f64 {
        match self.variant {
            Variant::Standard => self.equation_size(mean),
            Variant::SmallPackets => mean,
        }
    }

    /// The share of the equation's rate that is payload (RFC 4828 §3, RFC 5622 §5).
    fn payload_share(&self, mean: f64) -> f64 {
        match self.variant {
            Variant::Standard => 1.0,
            Variant::SmallPackets => mean / (mean + HEADER),
        }
    }
}

/// RFC 4828 §3: the nominal segment size.
const NOMINAL_SIZE: Bytes = Bytes::new(1460);
/// IPv4 and TCP without options (RFC 4828 §3: the resulting MSS).
const TCP_HEADERS: Bytes = Bytes::new(40);
/// RFC 5622 §5: 20 bytes of IPv4 and 16 of DCCP-Data with 48-bit sequence numbers.
const HEADER: f64 = 36.0;
/// RFC 4340 §3.4: the round-trip time if none was measured.
pub(crate) const DEFAULT_RTT: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests;

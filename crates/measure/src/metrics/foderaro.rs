//! The figures of Sean Foderaro's comparison of TCP and UDP (5 May 1995, comp.sys.cu-seeme's list, "Re: Melting the
//! Internet?"): times to receive, net and error-adjusted rate, and the real-time performance in a word.
//!
//! His definitions: net transmission rate is packets received / seconds between the first and the last one received; error
//! adjusted rate is the net rate times the share of the packets sent that were received. Two of his ten printed
//! error-adjusted rates do not follow from that; docs/metrics.md shows which, and a test holds the other eight.

use talkpath_units::{Duration, Instant};

use super::loss::LossCounts;
use super::trip::Trip;
use crate::summary::DelayMs;

/// When a window's messages were sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// The first time that the transport took a message.
    pub first_sent: Option<Instant>,
    /// The first arrival.
    pub first_received: Option<Instant>,
    /// The last arrival.
    pub last_received: Option<Instant>,
}

impl Stamps {
    /// The stamps of `trips`.
    pub fn of(trips: &[Trip]) -> Self {
        Self {
            first_sent: trips.iter().filter_map(|trip| trip.sent).min(),
            first_received: trips.iter().filter_map(Trip::received).min(),
            last_received: trips.iter().filter_map(Trip::received).max(),
        }
    }

    /// His "time to receive": between the first packet received and the last one.
    pub fn first_to_last_received(&self) -> Option<Duration> {
        Some(self.last_received?.since(self.first_received?))
    }

    /// From the first send to the last arrival, in nanoseconds; negative only where two clocks disagree.
    pub fn first_sent_to_last_received_ns(&self) -> Option<i64> {
        Some(self.last_received?.signed_since(self.first_sent?).as_nanos())
    }
}

/// received / time to receive, messages a second; `None` where all arrived at one instant.
pub fn net_rate_pps(received: u64, time_to_receive: Duration) -> Option<f64> {
    (!time_to_receive.is_zero()).then(|| received as f64 / time_to_receive.as_secs_f64())
}

/// net rate × received / sent, messages a second: what is left when each lost message must be sent again.
pub fn error_adjusted_rate_pps(net_rate_pps: f64, counts: &LossCounts) -> Option<f64> {
    super::loss::rate(counts.received, counts.sent).map(|share| net_rate_pps * share)
}

/// "How I'd describe the real-time performance of the link based mainly on the average packet delay."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Prompt throughout.
    Great,
    /// Prompt on average, with stalls.
    Good,
    /// Seconds late.
    Bad,
    /// Way out of date.
    Horrible,
    /// Nothing arrived.
    Nothing,
    /// No delay can be told: the clock is not trusted.
    Unknown,
}

impl Verdict {
    /// Judges a mean and a maximum delay in milliseconds.
    pub fn of_delay(mean_ms: f64, max_ms: f64) -> Self {
        if mean_ms >= HORRIBLE_FROM_MEAN_MS {
            Self::Horrible
        } else if mean_ms >= BAD_FROM_MEAN_MS {
            Self::Bad
        } else if mean_ms >= GOOD_FROM_MEAN_MS || max_ms >= GOOD_FROM_MAX_MS {
            Self::Good
        } else {
            Self::Great
        }
    }

    /// Judges a flow by its one-way delay, or by half its round trip where only that is known.
    pub fn of_flow(received: u64, one_way: Option<&DelayMs>, round_trip: Option<&DelayMs>) -> Self {
        match (one_way, round_trip) {
            _ if received == 0 => Self::Nothing,
            (Some(delay), _) => Self::of_delay(delay.mean, delay.max),
            (None, Some(delay)) => Self::of_delay(delay.mean / 2.0, delay.max / 2.0),
            (None, None) => Self::Unknown,
        }
    }

    /// The word in tables and in summary.json.
    pub fn word(self) -> &'static str {
        match self {
            Self::Great => "great",
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Horrible => "horrible",
            Self::Nothing => "nothing arrived",
            Self::Unknown => "unknown",
        }
    }
}

/// How a one-way delay reads for a voice call, after ITU-T G.114 (05/2003) §4: up to 150 ms most users notice nothing,
/// up to 400 ms is acceptable with its effect in mind, and more is unacceptable for planning. `p99_ms` is the delay that
/// a playout buffer would have to cover; codec and playout come on top.
pub fn reads_for_a_call(p99_ms: f64) -> &'static str {
    if p99_ms <= CALL_UNNOTICED_MS {
        "unnoticed in a call"
    } else if p99_ms <= CALL_ACCEPTABLE_MS {
        "noticed in a call"
    } else {
        "no conversation"
    }
}

// Foderaro prints whole seconds, rounded down, and gives no thresholds. Each one here is the geometric mean of the two
// values that it has to part, rounded to a whole second.

/// Parts good (mean below 1 s) from bad (8 s): sqrt(1 × 8) = 2.8.
const BAD_FROM_MEAN_MS: f64 = 3_000.0;
/// Parts bad (8 s, that is below 9 s) from horrible (65 s): sqrt(9 × 65) = 24.2.
const HORRIBLE_FROM_MEAN_MS: f64 = 24_000.0;
/// His "0": every mean that he calls great is below a second.
const GOOD_FROM_MEAN_MS: f64 = 1_000.0;
/// Parts great (largest maximum 2 s) from good (8 s): sqrt(2 × 8) = 4.
const GOOD_FROM_MAX_MS: f64 = 4_000.0;
/// ITU-T G.114 §4.
const CALL_UNNOTICED_MS: f64 = 150.0;
/// ITU-T G.114 §4.
const CALL_ACCEPTABLE_MS: f64 = 400.0;

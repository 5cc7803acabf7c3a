//! SRTT and RTTVAR, and the RTO that follows from them, by the rules of three stacks.
//!
//! ```text
//!   first sample R    SRTT = R                     RTTVAR = R / 2                           (RFC 6298 §2.2)
//!   later sample R    SRTT = 7/8 SRTT + 1/8 R      RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - R|     (RFC 6298 §2.3)
//!
//!   rule        unit          RTO                               differs by
//!   Rfc6298     nanoseconds   SRTT + max(4 RTTVAR, G)           -
//!   Ticks       whole ticks   SRTT + 4 RTTVAR                   each division truncates; no G
//!   Linux       nanoseconds   SRTT + 4 RTTVAR                   RTTVAR is a maximum over a round trip
//! ```
//!
//! The code holds 8 SRTT and 4 RTTVAR, because 1/8 and 1/4 are the weights of a sample. So no sample has to
//! be divided.

use talkpath_config::Stack;
use talkpath_units::Duration;

use crate::tcp::clock::whole_ticks;

/// SRTT and RTTVAR of one connection.
#[derive(Clone, Debug)]
pub(super) enum Estimate {
    Rfc6298(Rfc6298),
    Ticks(Ticks),
    Linux(Linux),
}

impl Estimate {
    /// The estimate that `stack` makes. Without ticks BSD's rule is the RFC's.
    pub(super) const fn new(stack: Stack, tick: Duration, min_rto: Duration) -> Self {
        match stack {
            Stack::Linux => Self::Linux(Linux { smoothed: None, deviation: Deviation::NONE, min_rto }),
            Stack::BsdReno if !tick.is_zero() => {
                Self::Ticks(Ticks { smoothed: None, tick: tick.as_nanos(), min_rto })
            }
            Stack::BsdReno | Stack::Rfc => {
                Self::Rfc6298(Rfc6298 { smoothed: None, granularity: tick, min_rto })
            }
        }
    }

    /// SRTT. `None` before the first sample.
    #[inline]
    pub(super) fn srtt(&self) -> Option<Duration> {
        let srtt_x8_ns = match self {
            Self::Rfc6298(Rfc6298 { smoothed, .. }) | Self::Linux(Linux { smoothed, .. }) => {
                smoothed.as_ref()?.srtt_x8
            }
            Self::Ticks(ticks) => ticks.smoothed.as_ref()?.srtt_x8.saturating_mul(ticks.tick),
        };
        Some(Duration::from_nanos(srtt_x8_ns / 8))
    }

    /// Takes a round-trip sample, and returns the RTO before back-off. A sample counts as 1 ns at least, so
    /// that SRTT is never zero.
    #[inline]
    pub(super) fn on_sample(&mut self, rtt: Duration, snd_una: u64, snd_nxt: u64) -> Duration {
        let rtt_ns = rtt.as_nanos().max(1);
        match self {
            Self::Rfc6298(rule) => rule.on_sample(rtt_ns),
            Self::Ticks(rule) => rule.on_sample(rtt_ns),
            Self::Linux(rule) => rule.on_sample(rtt_ns, snd_una, snd_nxt),
        }
    }
}

/// 8 SRTT and 4 RTTVAR, in the unit of the rule.
#[derive(Clone, Copy, Debug)]
struct Smoothed {
    srtt_x8: u64,
    rttvar_x4: u64,
}

impl Smoothed {
    /// The first sample (RFC 6298 §2.2).
    const fn first(sample: u64) -> Self {
        Self { srtt_x8: sample.saturating_mul(8), rttvar_x4: sample.saturating_mul(2) }
    }

    /// A later sample (RFC 6298 §2.3). RTTVAR takes its distance from SRTT as it was before the sample.
    const fn later(self, sample: u64) -> Self {
        let error = self.srtt().abs_diff(sample);
        Self { srtt_x8: smooth(self.srtt_x8, 8, sample), rttvar_x4: smooth(self.rttvar_x4, 4, error) }
    }

    const fn srtt(self) -> u64 {
        self.srtt_x8 / 8
    }
}

/// The rule of RFC 6298 §2, in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Rfc6298 {
    smoothed: Option<Smoothed>,
    /// G, the tick of the host's clock.
    granularity: Duration,
    min_rto: Duration,
}

impl Rfc6298 {
    fn on_sample(&mut self, rtt_ns: u64) -> Duration {
        let smoothed = match self.smoothed {
            None => Smoothed::first(rtt_ns),
            Some(smoothed) => smoothed.later(rtt_ns),
        };
        self.smoothed = Some(smoothed);
        let margin = smoothed.rttvar_x4.max(self.granularity.as_nanos());
        Duration::from_nanos(smoothed.srtt().saturating_add(margin)).max(self.min_rto)
    }
}

/// The rule of 4.3BSD-Reno (tcp_xmit_timer): the RFC's equations without G, in whole ticks.
///
/// A quarter of less than four ticks is truncated to nothing. So round trips below a tick cannot bring
/// 4 RTTVAR below two or three ticks. The RTO stays at three to five ticks, and never reaches its minimum of
/// two.
#[derive(Clone, Debug)]
pub(super) struct Ticks {
    smoothed: Option<Smoothed>,
    /// The length of a tick in nanoseconds, more than zero.
    tick: u64,
    min_rto: Duration,
}

impl Ticks {
    fn on_sample(&mut self, rtt_ns: u64) -> Duration {
        let sample = whole_ticks(rtt_ns, self.tick);
        let smoothed = match self.smoothed {
            // BSD's counter of ticks begins at 1, and its code subtracts that 1 from all samples except the
            // first.
            None => Smoothed::first(sample + 1),
            Some(smoothed) => {
                let Smoothed { srtt_x8, rttvar_x4 } = smoothed.later(sample);
                // BSD sets a sum of zero to 1, since zero means "no sample".
                Smoothed { srtt_x8: srtt_x8.max(1), rttvar_x4: rttvar_x4.max(1) }
            }
        };
        self.smoothed = Some(smoothed);
        let rto_ticks = smoothed.srtt() + smoothed.rttvar_x4;
        Duration::from_nanos(self.tick.saturating_mul(rto_ticks)).max(self.min_rto)
    }
}

/// Linux's rule (tcp_rtt_estimator, tcp_set_rto), in nanoseconds.
///
/// SRTT moves as in RFC 6298. RTTVAR is not smoothed with each sample, but follows the maximum that the mean
/// deviation has in a round trip:
///
/// - RTTVAR rises to this maximum at once.
/// - RTTVAR falls only at the end of a round trip, by a quarter of its distance from the maximum.
/// - At the beginning of a round trip, 4 times the maximum is `min_rto`. So 4 RTTVAR never falls below
///   `min_rto`.
#[derive(Clone, Debug)]
pub(super) struct Linux {
    smoothed: Option<Smoothed>,
    deviation: Deviation,
    min_rto: Duration,
}

/// The deviation of the samples from SRTT.
#[derive(Clone, Copy, Debug)]
struct Deviation {
    /// 4 times the mean deviation, in nanoseconds (mdev_us).
    mean_x4: u64,
    /// The maximum of `mean_x4` over the current round trip, but at least `min_rto` (mdev_max_us).
    round_max_x4: u64,
    /// The current round trip ends when this offset is acknowledged (rtt_seq).
    round_end: u64,
}

impl Linux {
    #[inline]
    fn on_sample(&mut self, rtt_ns: u64, snd_una: u64, snd_nxt: u64) -> Duration {
        let smoothed = match self.smoothed {
            None => self.first(rtt_ns, snd_nxt),
            Some(smoothed) => self.later(smoothed, rtt_ns, snd_una, snd_nxt),
        };
        self.smoothed = Some(smoothed);
        Duration::from_nanos(smoothed.srtt().saturating_add(smoothed.rttvar_x4))
    }

    fn first(&mut self, rtt_ns: u64, snd_nxt: u64) -> Smoothed {
        let Smoothed { srtt_x8, rttvar_x4: mean_x4 } = Smoothed::first(rtt_ns);
        let rttvar_x4 = mean_x4.max(self.min_rto.as_nanos());
        self.deviation = Deviation { mean_x4, round_max_x4: rttvar_x4, round_end: snd_nxt };
        Smoothed { srtt_x8, rttvar_x4 }
    }

    #[inline]
    fn later(&mut self, smoothed: Smoothed, rtt_ns: u64, snd_una: u64, snd_nxt: u64) -> Smoothed {
        let deviation = &mut self.deviation;
        deviation.on_sample(rtt_ns, smoothed.srtt());
        let mut rttvar_x4 = smoothed.rttvar_x4;
        if deviation.mean_x4 > deviation.round_max_x4 {
            deviation.round_max_x4 = deviation.mean_x4;
            rttvar_x4 = rttvar_x4.max(deviation.round_max_x4);
        }
        // A round trip is over when the first byte that was sent after its beginning is acknowledged.
        if snd_una > deviation.round_end {
            rttvar_x4 -= rttvar_x4.saturating_sub(deviation.round_max_x4) / 4;
            deviation.round_end = snd_nxt;
            deviation.round_max_x4 = self.min_rto.as_nanos();
        }
        Smoothed { srtt_x8: smooth(smoothed.srtt_x8, 8, rtt_ns), rttvar_x4 }
    }
}

impl Deviation {
    /// Before the first sample.
    const NONE: Self = Self { mean_x4: 0, round_max_x4: 0, round_end: 0 };

    /// Moves the mean deviation towards the deviation of this sample from `srtt_ns`, by a quarter of the
    /// difference. So 4 times the mean moves by the whole difference.
    ///
    /// If the sample is shorter than SRTT and raises the mean, the mean moves by only an eighth of the
    /// difference: a shorter round trip is no reason for a longer timeout.
    fn on_sample(&mut self, rtt_ns: u64, srtt_ns: u64) {
        let error = srtt_ns.abs_diff(rtt_ns);
        let mean = self.mean_x4 / 4;
        if error <= mean {
            self.mean_x4 -= mean - error;
        } else if rtt_ns < srtt_ns {
            self.mean_x4 += (error - mean) / 8;
        } else {
            self.mean_x4 += error - mean;
        }
    }
}

/// Takes `sample` into a mean in which a sample weighs 1/`n`. The mean is given and returned `n` times as
/// large, so `mean = (n - 1)/n mean + 1/n sample` becomes `scaled = scaled - scaled / n + sample`.
#[inline(always)]
const fn smooth(scaled_mean: u64, n: u64, sample: u64) -> u64 {
    scaled_mean - scaled_mean / n + sample
}

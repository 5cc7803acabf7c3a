//! HyStart: leaving slow start before it overshoots, as Linux's CUBIC has it (hystart_update in tcp_cubic.c;
//! Ha and Rhee, "Taming the elephants", 2011).
//!
//! ```text
//!   ACK train   ACKs at most 2 ms apart for longer than (delay_min + 1 ms) / 2 since the round began
//!               (paced: delay_min + 1 ms)                              the window fills the path
//!   delay       shortest round trip of this round                      a queue has begun
//!                 > delay_min + delay_min / 8, the eighth within 4..16 ms
//! ```
//!
//! Either condition ends slow start. `delay_min` is the shortest round trip of the connection so far. A round
//! ends when everything that was sent at its beginning is acknowledged. The train of a paced sender has to be
//! twice as long, because pacing spreads a round's segments over half a round trip.
//!
//! RFC 9406's HyStart++ has the delay condition alone, and then grows slowly for some rounds. Linux 6.x does
//! not have HyStart++, and we model Linux.

use talkpath_units::{Duration, Instant};

/// The state of one slow start.
#[derive(Clone, Debug, Default)]
pub(super) struct HyStart {
    /// True if the transport paces segments.
    is_paced: bool,
    /// True once a condition was met.
    should_end: bool,
    round_start: Instant,
    /// The round ends when an offset above this one is acknowledged.
    round_end: u64,
    /// When the last ACK of the train arrived.
    last_ack: Instant,
    /// The shortest round trip of this round. `None` before the round's first sample.
    round_min_rtt: Option<Duration>,
    /// The number of samples in this round, up to [`MIN_SAMPLES`].
    round_samples: u32,
}

impl HyStart {
    /// Begins a slow start.
    pub(super) fn new(is_paced: bool) -> Self {
        Self { is_paced, ..Self::default() }
    }

    pub(super) const fn is_paced(&self) -> bool {
        self.is_paced
    }

    /// Processes a round trip of `rtt` that was measured in slow start, with a window of `cwnd` packets.
    /// Returns true, once, if slow start should end.
    pub(super) fn on_sample(
        &mut self,
        cwnd: u64,
        rtt: Duration,
        delay_min: Duration,
        sample: super::RttSample,
    ) -> bool {
        if self.should_end {
            return false;
        }
        if sample.snd_una > self.round_end {
            self.round_start = sample.now;
            self.last_ack = sample.now;
            self.round_end = sample.snd_max;
            self.round_min_rtt = None;
            self.round_samples = 0;
        }
        if cwnd < LOW_WINDOW {
            return false;
        }
        // Both conditions keep a state, so both see each sample.
        let train_is_long = self.extend_train(delay_min, sample.now);
        let delay_grew = self.compare_delay(rtt, delay_min);
        self.should_end = train_is_long || delay_grew;
        self.should_end
    }

    /// Adds an ACK to the train if it came soon after the last one. Returns true if the train is long enough.
    fn extend_train(&mut self, delay_min: Duration, now: Instant) -> bool {
        if now.since(self.last_ack) > ACK_SPACING {
            return false;
        }
        self.last_ack = now;
        let round_trip = delay_min + ACK_DELAY;
        let threshold = if self.is_paced { round_trip } else { round_trip / 2 };
        now.since(self.round_start) > threshold
    }

    /// Records a round trip. Returns true if this round's shortest is too long, after enough samples.
    fn compare_delay(&mut self, rtt: Duration, delay_min: Duration) -> bool {
        let round_min_rtt = self.round_min_rtt.map_or(rtt, |shortest| shortest.min(rtt));
        self.round_min_rtt = Some(round_min_rtt);
        if self.round_samples < MIN_SAMPLES {
            self.round_samples += 1;
            return false;
        }
        round_min_rtt > delay_min + (delay_min / 8).max(DELAY_MIN).min(DELAY_MAX)
    }
}

/// HyStart leaves windows below this many packets alone (Linux: hystart_low_window).
const LOW_WINDOW: u64 = 16;
/// The delay is compared after this number of samples in a round (Linux: HYSTART_MIN_SAMPLES).
const MIN_SAMPLES: u32 = 8;
/// The longest time between two ACKs of a train (Linux: hystart_ack_delta_us).
const ACK_SPACING: Duration = Duration::from_millis(2);
/// The time that Linux allows for aggregation of ACKs. It is less from 2 Gbit/s of pacing rate on, which we
/// leave out (Linux: hystart_ack_delay).
const ACK_DELAY: Duration = Duration::from_millis(1);
/// The smallest and the largest growth of the delay that ends slow start (Linux: HYSTART_DELAY_MIN,
/// HYSTART_DELAY_MAX).
const DELAY_MIN: Duration = Duration::from_millis(4);
const DELAY_MAX: Duration = Duration::from_millis(16);

#[cfg(test)]
mod tests {
    use super::super::RttSample;
    use super::*;

    const DELAY: Duration = Duration::from_millis(40);

    fn sample(us: u64, snd_una: u64, snd_max: u64) -> RttSample {
        RttSample { now: Instant::from_micros(us), snd_una, snd_max }
    }

    #[test]
    fn a_train_of_half_the_round_trip_ends_slow_start() {
        let mut hystart = HyStart::default();
        let mut ended = None;
        for ms in 0..40 {
            if hystart.on_sample(20, DELAY, DELAY, sample(1000 * ms, 1, 100)) {
                ended = Some(ms);
                break;
            }
        }
        // More than (40 + 1) / 2 ms.
        assert_eq!(ended, Some(21));
    }

    #[test]
    fn a_gap_breaks_the_train() {
        let mut hystart = HyStart::default();
        for ms in (0..40).step_by(3) {
            assert!(!hystart.on_sample(20, DELAY, DELAY, sample(1000 * ms, 1, 100)));
        }
    }

    #[test]
    fn the_ninth_sample_of_a_slower_round_ends_slow_start() {
        let slower = Duration::from_millis(46);
        let mut hystart = HyStart::default();
        for us in 0..8 {
            assert!(!hystart.on_sample(20, slower, DELAY, sample(us, 1, 100)));
        }
        assert!(hystart.on_sample(20, slower, DELAY, sample(9, 1, 100)));
        let mut near = HyStart::default();
        for us in 0..20 {
            assert!(!near.on_sample(20, Duration::from_millis(45), DELAY, sample(us, 1, 100)));
        }
    }

    #[test]
    fn small_windows_are_left_alone() {
        let mut hystart = HyStart::default();
        for ms in 0..40 {
            assert!(!hystart.on_sample(15, DELAY, DELAY, sample(1000 * ms, 1, 100)));
        }
    }
}

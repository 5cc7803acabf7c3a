//! HyStart: leaving slow start before it overshoots, as Linux's CUBIC has it (hystart_update in tcp_cubic.c;
//! Ha and Rhee, "Taming the elephants", 2011).
//!
//! Two signs end slow start. *ACK train*: acknowledgements have followed each other closely for half of the
//! shortest round trip since the round began, so that the window already fills the path. If segments are
//! paced, the train has to last a whole round trip, because pacing spreads a round over half of one.
//! *Delay*: the shortest of a round's first samples is longer than the shortest ever by an eighth (4 to
//! 16 ms), so that a queue has begun.
//!
//! RFC 9406's HyStart++ has the second sign alone, and then grows slowly for some rounds. Linux 6.x does not
//! have it, and Linux's behaviour is what is modelled.

use talkpath_units::{Duration, Instant};

/// The state of one slow start.
#[derive(Clone, Debug, Default)]
pub(super) struct HyStart {
    /// True if the transport paces segments.
    is_paced: bool,
    /// Slow start should have ended.
    found: bool,
    round_start: Instant,
    /// The round ends when more than this is acknowledged.
    round_end: u64,
    last_ack: Instant,
    shortest: Option<Duration>,
    samples: u32,
}

impl HyStart {
    /// A slow start begins.
    pub(super) fn new(is_paced: bool) -> Self {
        Self { is_paced, ..Self::default() }
    }

    pub(super) const fn is_paced(&self) -> bool {
        self.is_paced
    }

    /// A round trip of `rtt` was measured in slow start with `cwnd` packets. `delay_min` is the
    /// shortest so far. Returns whether slow start should end.
    pub(super) fn on_sample(
        &mut self,
        cwnd: u64,
        rtt: Duration,
        delay_min: Duration,
        sample: super::RttSample,
    ) -> bool {
        if self.found {
            return false;
        }
        if sample.snd_una > self.round_end {
            self.round_start = sample.now;
            self.last_ack = sample.now;
            self.round_end = sample.snd_max;
            self.shortest = None;
            self.samples = 0;
        }
        if cwnd < LOW_WINDOW {
            return false;
        }
        self.found = self.train_is_long(delay_min, sample.now) | self.delay_grew(rtt, delay_min);
        self.found
    }

    fn train_is_long(&mut self, delay_min: Duration, now: Instant) -> bool {
        if now.since(self.last_ack) > ACK_SPACING {
            return false;
        }
        self.last_ack = now;
        // In slow start pacing spreads the segments of a round over half a round trip.
        let whole = delay_min + ACK_DELAY;
        let threshold = if self.is_paced { whole } else { whole / 2 };
        now.since(self.round_start) > threshold
    }

    fn delay_grew(&mut self, rtt: Duration, delay_min: Duration) -> bool {
        let shortest = self.shortest.map_or(rtt, |shortest| shortest.min(rtt));
        self.shortest = Some(shortest);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        shortest > delay_min + (delay_min / 8).max(DELAY_MIN).min(DELAY_MAX)
    }
}

/// hystart_low_window.
const LOW_WINDOW: u64 = 16;
/// HYSTART_MIN_SAMPLES.
const MIN_SAMPLES: u32 = 8;
/// hystart_ack_delta_us.
const ACK_SPACING: Duration = Duration::from_millis(2);
/// hystart_ack_delay, below 2 Gbit/s of pacing rate, at which it is at its bound.
const ACK_DELAY: Duration = Duration::from_millis(1);
/// HYSTART_DELAY_MIN.
const DELAY_MIN: Duration = Duration::from_millis(4);
/// HYSTART_DELAY_MAX.
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

//! The target for packets in order: the delay that covers 95 % of the recent half seconds.
//!
//! ```text
//!  delays of packets ──► largest of each 500 ms ──► histogram ──► quantile 0.95 ──► target
//!    0, 10, 40, 0 ms              40 ms             100 x 20 ms     bucket 2         60 ms
//! ```
//!
//! The target is the upper end of the bucket in which the quantile lies.

/// The number of buckets (NetEq, `underrun_optimizer.cc`).
pub(super) const BUCKETS: usize = 100;
/// The width of a bucket in ms (NetEq, `underrun_optimizer.cc`).
pub(super) const BUCKET_MS: u32 = 20;
/// The sum of all shares. NetEq counts shares in units of 2^-30, too.
pub(super) const WHOLE: u64 = 1 << 30;

/// The quantile of the half seconds that the target covers (NetEq, `delay_manager.h`: 0.95).
const UNCOVERED: u64 = WHOLE - (WHOLE as f64 * 0.95) as u64;
/// The share of the histogram that stays when a delay is added: 0.983, in units of 2^-15 (NetEq,
/// `delay_manager.h`).
const KEPT: u64 = ((1 << 15) as f64 * 0.983) as u64;
/// The weight of a new delay at the start, in times of an even mean (NetEq, `delay_manager.h`).
const START_WEIGHT: f64 = 2.0;
/// The time of which the largest delay is taken, in ms (NetEq, `delay_manager.h`).
const INTERVAL_MS: i64 = 500;

/// The shares of delays in buckets of [`BUCKET_MS`]. Old delays are forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DelayHistogram {
    /// The shares, whose sum is [`WHOLE`] after the first delay.
    shares: [u64; BUCKETS],
    /// The share of the histogram that stays when the next delay is added, in units of 2^-15.
    kept: u64,
    /// `kept` in the long run.
    kept_at_last: u64,
    added: u64,
}

impl DelayHistogram {
    /// Makes an empty histogram of which the share `kept_at_last` stays when a delay is added, in units of
    /// 2^-15.
    pub(super) const fn new(kept_at_last: u64) -> Self {
        Self { shares: [0; BUCKETS], kept: 0, kept_at_last, added: 0 }
    }

    /// Adds a delay. A delay beyond the last bucket is not counted, as in NetEq.
    pub(super) fn add(&mut self, delay_ms: u32) {
        let bucket = (delay_ms / BUCKET_MS) as usize;
        if bucket >= BUCKETS {
            return;
        }
        // Nothing changes if the histogram has this bucket alone.
        if self.shares[bucket] < WHOLE {
            let mut rest = WHOLE;
            for share in &mut self.shares {
                *share = (*share * self.kept) >> 15;
                rest -= *share;
            }
            self.shares[bucket] += rest;
        }
        self.added += 1;
        if self.kept != self.kept_at_last {
            // The conversion drops the fraction, and a negative number becomes 0.
            let kept = (f64::from(1 << 15) * (1.0 - START_WEIGHT / (self.added + 1) as f64)) as u64;
            self.kept = kept.min(self.kept_at_last);
        }
    }

    pub(super) const fn shares(&self) -> &[u64; BUCKETS] {
        &self.shares
    }

    /// Returns the first bucket beyond which at most the share `uncovered` lies.
    fn first_bucket_that_leaves(&self, uncovered: u64) -> usize {
        let mut beyond = WHOLE;
        for (bucket, share) in self.shares.iter().enumerate() {
            beyond -= share;
            if beyond <= uncovered {
                return bucket;
            }
        }
        BUCKETS - 1
    }
}

/// The target for packets in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DelayTarget {
    histogram: DelayHistogram,
    /// The time in ms at which the current half second began. `None` before the first packet.
    interval_began_ms: Option<i64>,
    largest_ms: u32,
    /// `None` in the first half second.
    target_ms: Option<u32>,
}

impl DelayTarget {
    pub(super) const fn new() -> Self {
        Self { histogram: DelayHistogram::new(KEPT), interval_began_ms: None, largest_ms: 0, target_ms: None }
    }

    /// Takes the relative delay of a packet that came at `now_ms`.
    pub(super) fn update(&mut self, now_ms: i64, delay_ms: u32) {
        let began_ms = *self.interval_began_ms.get_or_insert(now_ms);
        if now_ms - began_ms > INTERVAL_MS {
            self.histogram.add(self.largest_ms);
            let bucket = self.histogram.first_bucket_that_leaves(UNCOVERED);
            self.target_ms = Some((bucket as u32 + 1) * BUCKET_MS);
            (self.interval_began_ms, self.largest_ms) = (Some(now_ms), 0);
        }
        self.largest_ms = self.largest_ms.max(delay_ms);
    }

    pub(super) const fn target_ms(&self) -> Option<u32> {
        self.target_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The target after packets every 20 ms with these relative delays.
    fn target(delays: impl IntoIterator<Item = u32>) -> u32 {
        let mut target = DelayTarget::new();
        for (number, delay_ms) in (0..).zip(delays) {
            target.update(20 * number, delay_ms);
        }
        target.target_ms().unwrap()
    }

    #[test]
    fn a_constant_delay_has_the_first_bucket_as_target() {
        assert_eq!(target([0; 1_000]), 20);
        assert_eq!(target([19; 1_000]), 20);
    }

    #[test]
    fn the_target_is_the_end_of_the_bucket_of_the_largest_delay() {
        // Every half second has a packet of each delay, so the smaller delay does not count.
        assert_eq!(target((0..1_000).map(|number| number % 2 * 45)), 60);
        assert_eq!(target((0..1_000).map(|number| u32::from(number % 25 == 0) * 45)), 60);
    }

    #[test]
    fn a_tenth_of_the_half_seconds_counts_and_one_in_forty_does_not() {
        // An interval ends with the first packet after 500 ms, so it has 26 packets.
        let late_every = |intervals: u32| {
            target((0..26 * 400).map(|number| u32::from(number % (26 * intervals) == 13) * 130))
        };
        assert_eq!(late_every(10), 140);
        assert_eq!(late_every(40), 20);
    }

    #[test]
    fn one_late_packet_is_forgotten() {
        let mut delay_target = DelayTarget::new();
        let mut targets = Vec::new();
        for number in 0..5_000 {
            delay_target.update(20 * number, u32::from(number == 100) * 500);
            targets.extend(delay_target.target_ms());
        }
        // It is among the first 20 half seconds, so it is more than 5 % of them.
        assert_eq!(targets.iter().max(), Some(&520));
        assert_eq!(targets.last(), Some(&20));
    }

    #[test]
    fn the_first_delays_weigh_more_and_the_shares_stay_whole() {
        let mut histogram = DelayHistogram::new(KEPT);
        histogram.add(0);
        histogram.add(30);
        // The factor is 1 - 2 / 2 = 0 after the first delay.
        assert_eq!(histogram.shares[..3], [0, WHOLE, 0]);
        histogram.add(0);
        // And 1 - 2 / 3 after the second.
        assert!(histogram.shares[1].abs_diff(WHOLE / 3) < WHOLE >> 14);
        (0..1_000).for_each(|number| histogram.add(number % 7 * 25));
        assert_eq!(histogram.shares.iter().sum::<u64>(), WHOLE);
        assert_eq!(histogram.kept, KEPT);
    }
}

//! The average loss interval (RFC 5348 §5.4), with TFRC-SP's treatment of short ones (RFC 4828 §3).

use super::Variant;

/// One loss interval, as far as its average needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Data packets, lost ones included.
    pub packets: u32,
    /// Of these, lost or marked.
    pub dropped: u32,
    /// Whether it lasted two round trips at most.
    pub short: bool,
}

/// The average of `intervals`, newest (the current one) first, in packets; `None` before the first loss event, which is
/// when there are two. The loss event rate is its inverse.
pub fn mean_interval(intervals: &[Interval], variant: Variant) -> Option<f64> {
    let k = intervals.len().checked_sub(1)?.min(INTERVALS);
    if k == 0 {
        return None;
    }
    let length = |interval: &Interval| interval.length(variant);
    let weigh = |intervals: &[Interval]| -> f64 {
        intervals.iter().zip(WEIGHTS).map(|(interval, weight)| length(interval) * weight).sum()
    };
    let with_current = weigh(&intervals[..k]);
    let without_current = weigh(&intervals[1..=k]);
    let weights: f64 = WEIGHTS[..k].iter().sum();
    // The current interval counts only where it makes the average longer; a short one of TFRC-SP never does.
    let current_is_short = variant == Variant::SmallPackets && intervals[0].short;
    let total = if current_is_short { without_current } else { with_current.max(without_current) };
    Some((total / weights).max(1.0))
}

impl Interval {
    /// RFC 4828 §4.4: N / K where it was short, else N.
    fn length(&self, variant: Variant) -> f64 {
        let packets = f64::from(self.packets);
        match variant {
            Variant::SmallPackets if self.short => packets / f64::from(self.dropped.max(1)),
            Variant::SmallPackets | Variant::Standard => packets,
        }
    }
}

/// n, NINTERVAL: how many intervals the average covers (RFC 5348 §5.4).
pub const INTERVALS: usize = 8;
/// w_0 to w_7 (RFC 5348 §5.4).
const WEIGHTS: [f64; INTERVALS] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

#[cfg(test)]
mod tests {
    use super::*;

    fn long(packets: u32) -> Interval {
        Interval { packets, dropped: 1, short: false }
    }

    fn close(mean: Option<f64>, expected: f64) -> bool {
        mean.is_some_and(|mean| (mean - expected).abs() < 1e-9)
    }

    #[test]
    fn there_is_no_average_before_the_first_loss_event() {
        assert_eq!(mean_interval(&[], Variant::Standard), None);
        assert_eq!(mean_interval(&[long(50)], Variant::Standard), None);
    }

    /// RFC 5348 §5.4 with n = 8: I_0 = 30 and I_1 to I_8 = 100, 110, 90, 100, 120, 80, 100, 50. Weights sum to 6.
    /// I_tot0 = 30 + 100 + 110 + 90 + 0.8 x 100 + 0.6 x 120 + 0.4 x 80 + 0.2 x 100 = 534;
    /// I_tot1 = 100 + 110 + 90 + 100 + 0.8 x 120 + 0.6 x 80 + 0.4 x 100 + 0.2 x 50 = 594; I_mean = 594 / 6 = 99.
    #[test]
    fn a_short_current_interval_is_left_out_of_the_average() {
        let intervals = [30, 100, 110, 90, 100, 120, 80, 100, 50].map(long);
        assert!(close(mean_interval(&intervals, Variant::Standard), 99.0));
    }

    /// The same with I_0 = 300: I_tot0 = 300 + 504 = 804, I_mean = 134.
    #[test]
    fn a_long_current_interval_raises_the_average() {
        let intervals = [300, 100, 110, 90, 100, 120, 80, 100, 50].map(long);
        assert!(close(mean_interval(&intervals, Variant::Standard), 134.0));
    }

    /// k = 2: I_0 = 5, I_1 = 40, I_2 = 20; I_tot0 = 45, I_tot1 = 60, weights 2.
    #[test]
    fn a_young_history_is_averaged_over_what_there_is() {
        assert!(close(mean_interval(&[5, 40, 20].map(long), Variant::Standard), 30.0));
        assert!(close(mean_interval(&[5, 40].map(long), Variant::Standard), 40.0));
    }

    /// RFC 4828 §4.4: eight short intervals of N = 12 packets with K = 3 losses make K / N = 1/4, and 1/12 in plain TFRC.
    /// The current one, short as well, is left out: with its 12 / 1 it would raise the average.
    #[test]
    fn short_intervals_of_small_packets_count_every_loss() {
        let short = |packets, dropped| Interval { packets, dropped, short: true };
        let mut intervals = [short(12, 3); 9];
        intervals[0] = short(12, 1);
        assert!(close(mean_interval(&intervals, Variant::SmallPackets), 4.0));
        assert!(close(mean_interval(&intervals, Variant::Standard), 12.0));
    }
}

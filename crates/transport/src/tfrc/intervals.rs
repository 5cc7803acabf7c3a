//! The average loss interval (RFC 5348 §5.4), with TFRC-SP's treatment of short ones (RFC 4828 §3).

use super::Variant;

/// One loss interval, as far as its average needs it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Data packets, lost ones included.
    pub packets: u32,
    /// Packets that were lost or marked.
    pub dropped: u32,
    /// Whether it lasted two round trips at most.
    pub short: bool,
    /// DF_i: the share of its weight that history discounting has left (RFC 5348 §5.5).
    pub discount: f64,
}

/// The average of `intervals`, newest (the current one) first, in packets; `None` before the first loss
/// event, which is when there are two. The loss event rate is its inverse. `general` is DF of RFC 5348 §5.5:
/// by it, for now, all but the current interval are discounted; 1 if nothing is.
pub fn mean_interval(intervals: &[Interval], variant: Variant, general: f64) -> Option<f64> {
    let k = intervals.len().checked_sub(1)?.min(INTERVALS);
    if k == 0 {
        return None;
    }
    let without_current = weigh(&intervals[1..=k], variant, 1.0);
    // The current interval counts only if it makes the average longer; a short one of TFRC-SP never does.
    let current_is_short = variant == Variant::SmallPackets && intervals[0].short;
    let mean = if current_is_short {
        without_current
    } else {
        weigh(&intervals[..k], variant, general).max(without_current)
    };
    Some(mean.max(1.0))
}

/// DF of RFC 5348 §5.5: how far a current interval of more than twice the average takes the older ones'
/// weight down.
pub fn general_discount(intervals: &[Interval], variant: Variant) -> f64 {
    let Some((current, older)) = intervals.split_first().filter(|(_, older)| !older.is_empty()) else {
        return 1.0;
    };
    let mean = weigh(&older[..older.len().min(INTERVALS)], variant, 1.0);
    let current = current.length(variant);
    if current > 2.0 * mean { (2.0 * mean / current).max(THRESHOLD) } else { 1.0 }
}

/// The weighted mean of RFC 5348 §5.4 and §5.5; `general` discounts all but the first.
fn weigh(intervals: &[Interval], variant: Variant, general: f64) -> f64 {
    let (mut total, mut weights) = (0.0, 0.0);
    for (place, (interval, weight)) in intervals.iter().zip(WEIGHTS).enumerate() {
        let weight = weight * interval.discount * if place == 0 { 1.0 } else { general };
        total += interval.length(variant) * weight;
        weights += weight;
    }
    total / weights
}

impl Interval {
    /// No packets.
    pub const EMPTY: Self = Self { packets: 0, dropped: 0, short: false, discount: 1.0 };

    /// RFC 4828 §4.4: N / K if it was short, else N.
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
/// THRESHOLD (RFC 5348 §5.5).
const THRESHOLD: f64 = 0.25;

#[cfg(test)]
mod tests {
    use super::*;

    fn long(packets: u32) -> Interval {
        Interval { packets, dropped: 1, ..Interval::EMPTY }
    }

    fn close(mean: Option<f64>, expected: f64) -> bool {
        mean.is_some_and(|mean| (mean - expected).abs() < 1e-9)
    }

    #[test]
    fn there_is_no_average_before_the_first_loss_event() {
        assert_eq!(mean_interval(&[], Variant::Standard, 1.0), None);
        assert_eq!(mean_interval(&[long(50)], Variant::Standard, 1.0), None);
    }

    /// RFC 5348 §5.4 with n = 8: I_0 = 30 and I_1 to I_8 = 100, 110, 90, 100, 120, 80, 100, 50. Weights sum
    /// to 6. I_tot0 = 30 + 100 + 110 + 90 + 0.8 x 100 + 0.6 x 120 + 0.4 x 80 + 0.2 x 100 = 534;
    /// I_tot1 = 100 + 110 + 90 + 100 + 0.8 x 120 + 0.6 x 80 + 0.4 x 100 + 0.2 x 50 = 594;
    /// I_mean = 594 / 6 = 99.
    #[test]
    fn a_short_current_interval_is_left_out_of_the_average() {
        let intervals = [30, 100, 110, 90, 100, 120, 80, 100, 50].map(long);
        assert!(close(mean_interval(&intervals, Variant::Standard, 1.0), 99.0));
    }

    /// The same with I_0 = 300: I_tot0 = 300 + 504 = 804, I_mean = 134.
    #[test]
    fn a_long_current_interval_raises_the_average() {
        let intervals = [300, 100, 110, 90, 100, 120, 80, 100, 50].map(long);
        assert!(close(mean_interval(&intervals, Variant::Standard, 1.0), 134.0));
    }

    /// k = 2: I_0 = 5, I_1 = 40, I_2 = 20; I_tot0 = 45, I_tot1 = 60, weights 2.
    #[test]
    fn a_young_history_is_averaged_over_what_there_is() {
        assert!(close(mean_interval(&[5, 40, 20].map(long), Variant::Standard, 1.0), 30.0));
        assert!(close(mean_interval(&[5, 40].map(long), Variant::Standard, 1.0), 40.0));
    }

    /// RFC 4828 §4.4: eight short intervals of N = 12 packets with K = 3 losses make K / N = 1/4, and 1/12 in
    /// plain TFRC. The current one, short as well, is left out: with its 12 / 1 it would raise the average.
    #[test]
    fn short_intervals_of_small_packets_count_every_loss() {
        let short = |packets, dropped| Interval { packets, dropped, short: true, ..Interval::EMPTY };
        let mut intervals = [short(12, 3); 9];
        intervals[0] = short(12, 1);
        assert!(close(mean_interval(&intervals, Variant::SmallPackets, 1.0), 4.0));
        assert!(close(mean_interval(&intervals, Variant::Standard, 1.0), 12.0));
    }

    /// RFC 5348 §5.5 by hand: I_1 to I_8 = 100 make I_mean = 100, so that I_0 = 400 > 200 gives DF = 200 /
    /// 400 = 0.5. I_tot0 = 400 + 0.5 x 100 x (3 + 0.8 + 0.6 + 0.4 + 0.2) = 650, W_tot0 = 1 + 2.5 = 3.5:
    /// 185.71 packets, and (400 + 500) / 6 = 150 without. I_0 = 1000 would give 0.2, which the threshold
    /// holds at 0.25.
    #[test]
    fn a_long_interval_without_loss_takes_weight_from_the_older_ones() {
        let with = |current| {
            let mut intervals = [long(100); 9];
            intervals[0] = long(current);
            intervals
        };
        let discount = |current| general_discount(&with(current), Variant::Standard);
        assert_eq!([discount(200), discount(400), discount(1000)], [1.0, 0.5, 0.25]);
        assert!(close(mean_interval(&with(400), Variant::Standard, 0.5), 650.0 / 3.5));
        assert!(close(mean_interval(&with(400), Variant::Standard, 1.0), 150.0));
        assert_eq!(general_discount(&[long(1000)], Variant::Standard), 1.0);
    }

    /// What was discounted once stays so: with DF_2 to DF_8 = 0.5, I_1 = 400 and the rest 100,
    /// I_tot1 = 400 + 0.5 x 500 = 650 again, over W_tot1 = 1 + 0.5 x 5 = 3.5.
    #[test]
    fn a_discount_stays_with_its_interval() {
        let mut intervals = [Interval { discount: 0.5, ..long(100) }; 9];
        intervals[0] = long(5);
        intervals[1] = long(400);
        assert!(close(mean_interval(&intervals, Variant::Standard, 1.0), 650.0 / 3.5));
    }
}

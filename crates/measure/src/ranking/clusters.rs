//! Finds out whether the repetitions of a cell fall into two clusters.
//!
//! The test is the dip test of J. A. and P. M. Hartigan (*The Dip Test of Unimodality*, The Annals of
//! Statistics 13, 1985, pp. 70-84). The *dip* is the largest distance between the distribution function of
//! the sample and the nearest unimodal one. A sample has two modes if its dip is larger than that of all but
//! 1 % of samples from the uniform distribution, which is the unimodal distribution that dips most. The two
//! clusters are then those of 2-means. In one dimension 2-means is the best of all cuts of the sorted sample.
//!
//! Two clusters that nobody could distinguish do not count, so their means must differ by a given gap.
//!
//! Begin to read with [`clusters`].

/// The dip that 1 % of uniform samples of a size exceed.
struct CriticalDip {
    sample_size: f64,
    dip: f64,
}

/// The critical dips by sample size. Each was computed by [`dip`] from 200,000 uniform samples.
const CRITICAL_DIPS: [CriticalDip; 8] = [
    CriticalDip { sample_size: 8.0, dip: 0.173_27 },
    CriticalDip { sample_size: 10.0, dip: 0.159_75 },
    CriticalDip { sample_size: 15.0, dip: 0.135_90 },
    CriticalDip { sample_size: 20.0, dip: 0.120_52 },
    CriticalDip { sample_size: 30.0, dip: 0.101_49 },
    CriticalDip { sample_size: 50.0, dip: 0.081_08 },
    CriticalDip { sample_size: 100.0, dip: 0.059_03 },
    CriticalDip { sample_size: 200.0, dip: 0.042_65 },
];

/// The smallest sample size in the table.
const MIN_SAMPLE: usize = 8;

/// The two clusters of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clusters {
    /// The mean of the lower cluster.
    pub low: f64,
    /// The mean of the higher cluster.
    pub high: f64,
    /// The share of the sample in the lower cluster, 0 to 1.
    pub low_share: f64,
}

/// Returns the two clusters of `values`, which must be finite. Returns `None` if the sample has one mode, or
/// if the means of the clusters differ by less than `min_gap`.
pub fn clusters(values: &[f64], min_gap: f64) -> Option<Clusters> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    if sorted.len() < MIN_SAMPLE || dip(&sorted) <= critical_dip(sorted.len()) {
        return None;
    }
    let clusters = two_means(&sorted);
    (clusters.high - clusters.low >= min_gap).then_some(clusters)
}

/// Cuts a sorted sample of at least two values where the sum of squares around the two means is smallest
/// (2-means; Fisher, *On Grouping for Maximum Homogeneity*, 1958).
fn two_means(sorted: &[f64]) -> Clusters {
    let n = sorted.len() as f64;
    let total: f64 = sorted.iter().sum();
    let mut best = Clusters { low: total / n, high: total / n, low_share: 1.0 };
    let mut best_between = f64::NEG_INFINITY;
    let mut low_sum = 0.0;
    for (index, value) in sorted[..sorted.len() - 1].iter().enumerate() {
        low_sum += value;
        let low_count = (index + 1) as f64;
        let (low, high) = (low_sum / low_count, (total - low_sum) / (n - low_count));
        // The sum of squares between the means. The total sum is constant, so the sum around the means is
        // smallest where this one is largest.
        let between = low_count * (n - low_count) * (high - low) * (high - low);
        if between > best_between {
            best_between = between;
            best = Clusters { low, high, low_share: low_count / n };
        }
    }
    best
}

/// Returns the dip of a sorted sample by the algorithm of Hartigan and Hartigan (1985, §3).
///
/// The algorithm draws two curves through points of the distribution function: the greatest convex minorant,
/// which lies below it, and the least concave majorant, which lies above it. It does so on an interval that
/// shrinks to the mode.
fn dip(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    let (mut low, mut high) = (0, n.saturating_sub(1));
    // Twice the dip, in steps of the distribution function. The dip of a sample is at least half a step.
    let mut twice_dip = 1.0_f64;
    while low < high && sorted[low] < sorted[high] {
        let minorant = hull(sorted, low, high, |left_slope, right_slope| left_slope < right_slope);
        let majorant = hull(sorted, low, high, |left_slope, right_slope| left_slope > right_slope);
        let Gap { width, minorant_point, majorant_point } = widest_gap(sorted, &minorant, &majorant);
        if width <= twice_dip {
            break;
        }
        // The mode lies between the two points of the gap. Left of it the nearest unimodal distribution
        // follows the minorant, and right of it the majorant.
        let left = &minorant[..minorant.partition_point(|&point| point <= minorant_point)];
        let right = &majorant[majorant.partition_point(|&point| point < majorant_point)..];
        for part in HullPart::all_of(left) {
            twice_dip = twice_dip.max(part.distance_above(sorted));
        }
        for part in HullPart::all_of(right) {
            twice_dip = twice_dip.max(part.distance_below(sorted));
        }
        if (minorant_point, majorant_point) == (low, high) {
            break;
        }
        (low, high) = (minorant_point, majorant_point);
    }
    twice_dip / (2.0 * n.max(1) as f64)
}

/// Returns the indices of the points that form the convex minorant or the concave majorant of the points
/// (value, index), from `low` to `high`. `keeps_bend` says whether a bend between two slopes is kept.
fn hull(sorted: &[f64], low: usize, high: usize, keeps_bend: impl Fn(f64, f64) -> bool) -> Vec<usize> {
    let mut hull: Vec<usize> = Vec::with_capacity(high - low + 1);
    for point in low..=high {
        while let [.., before_last, last] = hull[..] {
            // Each slope is multiplied by both widths, so that equal values need no division.
            let left_slope = (last - before_last) as f64 * (sorted[point] - sorted[last]);
            let right_slope = (point - last) as f64 * (sorted[last] - sorted[before_last]);
            if keeps_bend(left_slope, right_slope) {
                break;
            }
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

/// The distance between the minorant and the majorant at a point, and the interval around the mode that it
/// leaves.
struct Gap {
    /// The distance in steps.
    width: f64,
    /// The beginning of the interval, which is a point of the minorant.
    minorant_point: usize,
    /// The end of the interval, which is a point of the majorant.
    majorant_point: usize,
}

/// Returns the largest distance between the minorant and the majorant.
fn widest_gap(sorted: &[f64], minorant: &[usize], majorant: &[usize]) -> Gap {
    let mut widest =
        Gap { width: 1.0, minorant_point: minorant[0], majorant_point: minorant[minorant.len() - 1] };
    for &point in minorant {
        let Some(part) = HullPart::around(point, majorant) else { continue };
        let width = part.height_at(sorted, point) - point as f64 + 1.0;
        if width > widest.width {
            widest = Gap { width, minorant_point: point, majorant_point: part.to };
        }
    }
    for &point in majorant {
        let Some(part) = HullPart::around(point, minorant) else { continue };
        let width = point as f64 - part.height_at(sorted, point) + 1.0;
        if width > widest.width {
            widest = Gap { width, minorant_point: part.from, majorant_point: point };
        }
    }
    widest
}

/// A straight part of a hull, between two neighbouring points.
#[derive(Clone, Copy)]
struct HullPart {
    from: usize,
    to: usize,
}

impl HullPart {
    fn all_of(hull: &[usize]) -> impl Iterator<Item = Self> {
        hull.windows(2).map(|points| Self { from: points[0], to: points[1] })
    }

    /// Returns the part of `hull` that has `point` between its ends, or at both ends if the point is in the
    /// hull.
    fn around(point: usize, hull: &[usize]) -> Option<Self> {
        let following = hull.partition_point(|&hull_point| hull_point < point);
        let to = *hull.get(following)?;
        let from = if to == point { point } else { *hull.get(following.checked_sub(1)?)? };
        Some(Self { from, to })
    }

    /// Returns the height of the line at `point`, in steps.
    fn height_at(self, sorted: &[f64], point: usize) -> f64 {
        let Self { from, to } = self;
        let width = sorted[to] - sorted[from];
        if width <= 0.0 {
            return to as f64;
        }
        from as f64 + (sorted[point] - sorted[from]) * (to - from) as f64 / width
    }

    /// Returns how far the distribution function rises above the line of a minorant, in steps. Returns at
    /// least 1.
    fn distance_above(self, sorted: &[f64]) -> f64 {
        self.largest_distance(sorted, |point, height| point as f64 - height + 1.0)
    }

    /// Returns how far the distribution function falls below the line of a majorant, in steps. Returns at
    /// least 1.
    fn distance_below(self, sorted: &[f64]) -> f64 {
        self.largest_distance(sorted, |point, height| height - point as f64 + 1.0)
    }

    fn largest_distance(self, sorted: &[f64], distance: impl Fn(usize, f64) -> f64) -> f64 {
        let Self { from, to } = self;
        if to - from < 2 || sorted[to] <= sorted[from] {
            return 1.0;
        }
        let distances = (from..=to).map(|point| distance(point, self.height_at(sorted, point)));
        distances.fold(1.0, f64::max)
    }
}

/// Returns the dip that 1 % of uniform samples of size `n` exceed. Between two sizes of the table √n times
/// the dip is interpolated, as Hartigan and Hartigan do (1985, §5).
fn critical_dip(n: usize) -> f64 {
    let n = n as f64;
    let scaled = |critical: &CriticalDip| critical.dip * libm::sqrt(critical.sample_size);
    let following = CRITICAL_DIPS.partition_point(|critical| critical.sample_size < n);
    let smaller = following.checked_sub(1).and_then(|index| CRITICAL_DIPS.get(index));
    let interpolated = match (smaller, CRITICAL_DIPS.get(following)) {
        (Some(smaller), Some(larger)) => {
            let offset = n - smaller.sample_size;
            let distance = larger.sample_size - smaller.sample_size;
            scaled(smaller) + (scaled(larger) - scaled(smaller)) * offset / distance
        }
        (Some(nearest), None) | (None, Some(nearest)) => scaled(nearest),
        (None, None) => f64::INFINITY,
    };
    interpolated / libm::sqrt(n)
}

#[cfg(test)]
mod tests {
    use talkpath_units::{Seed, Stream};

    use super::*;

    fn sample(n: usize, draw: impl FnMut() -> f64) -> Vec<f64> {
        let mut sample: Vec<f64> = core::iter::repeat_with(draw).take(n).collect();
        sample.sort_unstable_by(f64::total_cmp);
        sample
    }

    /// The expected dips come from version 0.12 of the Python package diptest, which contains Maechler's
    /// correction of the published program.
    #[test]
    fn dips_equal_those_of_another_program() {
        let six = [1.0, 2.0, 3.0, 10.0, 11.0, 12.0];
        assert!((dip(&six) - 7.0 / 36.0).abs() < 1e-12, "{}", dip(&six));
        // Hartigan and Hartigan 1985, figure 1, without its largest value.
        let faculties = [
            30, 33, 35, 36, 37, 37, 39, 39, 39, 39, 39, 40, 40, 40, 40, 41, 42, 43, 43, 43, 44, 44, 45, 45,
            46, 47, 47, 48, 48, 48, 49, 50, 50, 51, 52, 52, 53, 53, 53, 53, 53, 54, 54, 57, 57, 59, 60, 60,
            60, 61, 61, 61, 61, 62, 62, 62, 62, 63, 66, 70, 72, 72,
        ];
        let faculties = faculties.map(f64::from);
        assert!((dip(&faculties) - 0.060_483_870_967_742).abs() < 1e-12, "{}", dip(&faculties));
    }

    #[test]
    fn two_points_dip_by_half_the_lesser_share() {
        for lesser in [5, 10] {
            let of_twenty = sample(20, {
                let mut at = 0;
                move || {
                    at += 1;
                    f64::from(u8::from(at > lesser))
                }
            });
            assert!((dip(&of_twenty) - f64::from(lesser) / 40.0).abs() < 1e-12, "{lesser}");
        }
        assert!((dip(&[3.0; 20]) - 1.0 / 40.0).abs() < 1e-12, "the least that a sample of 20 can have");
    }

    #[test]
    fn one_of_a_hundred_uniform_samples_is_taken_for_two_modes() {
        let mut stream = Seed::new(7).stream("uniform");
        for n in [12, 40] {
            let exceeding =
                (0..2_000).filter(|_| dip(&sample(n, || stream.unit())) > critical_dip(n)).count();
            // 20 expected; the standard deviation is 4.5.
            assert!((7..=36).contains(&exceeding), "n = {n}: {exceeding} of 2000");
        }
    }

    #[test]
    fn samples_with_one_mode_have_no_clusters() {
        let mut stream = Seed::new(1).stream("one mode");
        let draws: [fn(&mut Stream) -> f64; 4] = [
            |stream| 4.0 + 0.3 * stream.normal(),
            |stream| 1.0 + 3.0 * stream.unit(),
            |stream| 4.4 - 0.5 * stream.exponential(),
            |_| 4.38,
        ];
        let mut found = 0;
        for n in [20, 200] {
            for draw in draws {
                found +=
                    (0..100).filter(|_| clusters(&sample(n, || draw(&mut stream)), 0.5).is_some()).count();
            }
        }
        assert!(found <= 4, "{found} of 800 samples; uniform ones alone may have 1 in 100");
    }

    #[test]
    fn samples_of_two_clusters_are_found_with_their_shares() {
        let mut stream = Seed::new(1).stream("two modes");
        for (n, share) in [(20, 0.5), (20, 0.3), (200, 0.15)] {
            let mut drawn = 0.0;
            let values = sample(n, || {
                drawn += 1.0;
                let is_low = drawn <= share * n as f64;
                if is_low { 1.7 + 0.1 * stream.normal() } else { 3.9 + 0.1 * stream.normal() }
            });
            let found = clusters(&values, 0.5).unwrap();
            assert!((found.low_share - share).abs() < 1e-9, "{found:?}");
            assert!((found.low - 1.7).abs() < 0.15 && (found.high - 3.9).abs() < 0.15, "{found:?}");
        }
    }

    #[test]
    fn clusters_closer_than_the_gap_are_none() {
        let mut values = vec![4.0; 10];
        values.extend([4.4; 10]);
        assert!(clusters(&values, 0.5).is_none());
        assert_eq!(clusters(&values, 0.3).map(|found| found.low_share), Some(0.5));
        assert!(clusters(&values[8..12], 0.3).is_none(), "four are too few");
    }
}

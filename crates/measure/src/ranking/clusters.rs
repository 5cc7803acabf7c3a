//! Whether repetitions fall into two clusters, and which.
//!
//! The test is J. A. and P. M. Hartigan's (*The Dip Test of Unimodality*, The Annals of Statistics 13, 1985,
//! pp. 70-84). The dip is the largest distance between the sample's distribution function and the unimodal
//! one that is nearest to it; a sample is said to have two modes if its dip is larger than that of all but 1
//! % of samples from the uniform distribution, the unimodal one that dips most. Where it does, the two
//! clusters are those of 2-means, which in one dimension is the best of all cuts of the sorted sample.
//!
//! Two clusters that nobody could distinguish are none: their means have to differ by a given gap.

/// Two clusters of one sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clusters {
    /// Mean of the lower one.
    pub low: f64,
    /// Mean of the higher one.
    pub high: f64,
    /// Share of the sample in the lower one, 0 to 1.
    pub low_share: f64,
}

/// The two clusters of `values`, which must be finite, if their dip and a gap of at least `min_gap` between
/// their means say that there are two.
pub fn clusters(values: &[f64], min_gap: f64) -> Option<Clusters> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    if n < MIN_SAMPLE || dip(&sorted) <= critical_dip(n) {
        return None;
    }
    let found = two_means(&sorted);
    (found.high - found.low >= min_gap).then_some(found)
}

/// The cut of a sorted sample of at least two that leaves the least sum of squares around the two means
/// (2-means; Fisher, *On Grouping for Maximum Homogeneity*, 1958).
fn two_means(sorted: &[f64]) -> Clusters {
    let n = sorted.len() as f64;
    let total: f64 = sorted.iter().sum();
    let (mut below, mut best, mut found) = (0.0, f64::NEG_INFINITY, None);
    for (at, value) in sorted[..sorted.len() - 1].iter().enumerate() {
        below += value;
        let size = (at + 1) as f64;
        let (low, high) = (below / size, (total - below) / (n - size));
        // The sum of squares between the means: the larger it is, the less is left around the means.
        let between = size * (n - size) * (high - low) * (high - low);
        if between > best {
            best = between;
            found = Some(Clusters { low, high, low_share: size / n });
        }
    }
    let same = Clusters { low: total / n, high: total / n, low_share: 1.0 };
    found.unwrap_or(same)
}

/// Hartigan and Hartigan's dip of a sorted sample, by their algorithm (1985, §3): the greatest convex
/// minorant and the least concave majorant of the distribution function, on an interval that shrinks to the
/// mode.
fn dip(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    let (mut low, mut high) = (0, n.saturating_sub(1));
    // Twice the dip, in steps of the distribution function: a sample's is at least half a step.
    let mut twice = 1.0_f64;
    while low < high && sorted[low] < sorted[high] {
        let minorant = hull(sorted, low, high, |left, right| left < right);
        let majorant = hull(sorted, low, high, |left, right| left > right);
        let Gap { width, from, to } = widest_gap(sorted, &minorant, &majorant);
        if width <= twice {
            break;
        }
        // What the minorant misses left of the new interval, and the majorant right of it.
        let misses = |hull: &[usize], is_majorant: bool| {
            let parts = hull.windows(2).map(|part| miss(sorted, part[0], part[1], is_majorant));
            parts.fold(1.0, f64::max)
        };
        let left: Vec<usize> = minorant.iter().copied().take_while(|&at| at <= from).collect();
        let right: Vec<usize> = majorant.iter().copied().skip_while(|&at| at < to).collect();
        twice = twice.max(misses(&left, false)).max(misses(&right, true));
        if (from, to) == (low, high) {
            break;
        }
        (low, high) = (from, to);
    }
    twice / (2.0 * n.max(1) as f64)
}

/// Points of the convex minorant (or the concave majorant) of the points (value, index), from `low` to
/// `high`; `bends` says which bend between two slopes is kept.
fn hull(sorted: &[f64], low: usize, high: usize, bends: impl Fn(f64, f64) -> bool) -> Vec<usize> {
    let mut hull: Vec<usize> = Vec::with_capacity(high - low + 1);
    for at in low..=high {
        while let [.., before, last] = hull[..] {
            // The slopes' cross product, so that equal values need no division.
            let left = (last - before) as f64 * (sorted[at] - sorted[last]);
            let right = (at - last) as f64 * (sorted[last] - sorted[before]);
            if bends(left, right) {
                break;
            }
            hull.pop();
        }
        hull.push(at);
    }
    hull
}

/// A distance between minorant and majorant, and the mode's interval that it leaves.
struct Gap {
    /// In steps.
    width: f64,
    /// A point of the minorant.
    from: usize,
    /// A point of the majorant.
    to: usize,
}

/// The largest distance between minorant and majorant.
fn widest_gap(sorted: &[f64], minorant: &[usize], majorant: &[usize]) -> Gap {
    let mut widest = Gap { width: 1.0, from: minorant[0], to: minorant[minorant.len() - 1] };
    for &at in minorant {
        let Some(Part { from, to }) = part_around(majorant, at) else { continue };
        let width = line(sorted, from, to, at) - at as f64 + 1.0;
        if width > widest.width {
            widest = Gap { width, from: at, to };
        }
    }
    for &at in majorant {
        let Some(Part { from, to }) = part_around(minorant, at) else { continue };
        let width = at as f64 - line(sorted, from, to, at) + 1.0;
        if width > widest.width {
            widest = Gap { width, from, to: at };
        }
    }
    widest
}

/// Two neighbours in a hull.
struct Part {
    from: usize,
    to: usize,
}

/// The neighbours in `hull` between which `at` lies.
fn part_around(hull: &[usize], at: usize) -> Option<Part> {
    let after = hull.partition_point(|&point| point < at);
    let to = *hull.get(after)?;
    let from = if to == at { at } else { *hull.get(after.checked_sub(1)?)? };
    Some(Part { from, to })
}

/// Height above `at` of the line between the points `from` and `to`.
fn line(sorted: &[f64], from: usize, to: usize, at: usize) -> f64 {
    let width = sorted[to] - sorted[from];
    if width <= 0.0 {
        return to as f64;
    }
    from as f64 + (sorted[at] - sorted[from]) * (to - from) as f64 / width
}

/// How far the distribution function is from the line between `from` and `to`, in steps: above a minorant's,
/// below a majorant's.
fn miss(sorted: &[f64], from: usize, to: usize, is_majorant: bool) -> f64 {
    if to - from < 2 || sorted[to] <= sorted[from] {
        return 1.0;
    }
    let distance = |at: usize| {
        let line = line(sorted, from, to, at);
        if is_majorant { line - at as f64 + 1.0 } else { at as f64 - line + 1.0 }
    };
    (from..=to).map(distance).fold(1.0, f64::max)
}

/// The dip that 1 % of uniform samples of this size exceed: between the table's sizes √n times the dip is
/// interpolated, as Hartigan and Hartigan do (1985, §5).
fn critical_dip(n: usize) -> f64 {
    let size = n as f64;
    let scaled = |(n, dip): (f64, f64)| dip * libm::sqrt(n);
    let after = CRITICAL.partition_point(|&(n, _)| n < size);
    let at = match (after.checked_sub(1).and_then(|at| CRITICAL.get(at)), CRITICAL.get(after)) {
        (Some(&left), Some(&right)) => {
            scaled(left) + (scaled(right) - scaled(left)) * (size - left.0) / (right.0 - left.0)
        }
        (Some(&only), None) | (None, Some(&only)) => scaled(only),
        (None, None) => f64::INFINITY,
    };
    at / libm::sqrt(size)
}

/// (n, the dip that 1 % of uniform samples of n exceed), of 200,000 samples each, by [`dip`].
const CRITICAL: [(f64, f64); 8] = [
    (8.0, 0.173_27),
    (10.0, 0.159_75),
    (15.0, 0.135_90),
    (20.0, 0.120_52),
    (30.0, 0.101_49),
    (50.0, 0.081_08),
    (100.0, 0.059_03),
    (200.0, 0.042_65),
];
/// The smallest size in the table.
const MIN_SAMPLE: usize = 8;

#[cfg(test)]
mod tests {
    use talkpath_units::{Seed, Stream};

    use super::*;

    fn sample(n: usize, draw: impl FnMut() -> f64) -> Vec<f64> {
        let mut sample: Vec<f64> = core::iter::repeat_with(draw).take(n).collect();
        sample.sort_unstable_by(f64::total_cmp);
        sample
    }

    /// The dips are those that version 0.12 of the Python package diptest computes, which wraps Maechler's
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
            |it| 4.0 + 0.3 * it.normal(),
            |it| 1.0 + 3.0 * it.unit(),
            |it| 4.4 - 0.5 * it.exponential(),
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

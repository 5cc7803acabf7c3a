//! Exact percentiles by nearest rank. The 90th percentile is the smallest value for which at least 90 % of
//! all values are not larger. RFC 2330 §11.3 defines the percentiles of an empirical distribution in the same
//! way.

/// A share in thousandths: `PerMille(999)` is the 99.9th percentile. It is a whole number, so that ranks are
/// exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerMille(pub u16);

/// Returns the value of rank ⌈n × share⌉, at least 1 and at most n, among `sorted` values in ascending order.
/// Returns `None` if there is no value.
pub fn nearest_rank<T: Copy>(sorted: &[T], share: PerMille) -> Option<T> {
    let rank = (sorted.len() as u128 * u128::from(share.0)).div_ceil(1_000);
    let last_index = sorted.len().checked_sub(1)?;
    let index = usize::try_from(rank).unwrap_or(usize::MAX).saturating_sub(1);
    sorted.get(index.min(last_index)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(sorted: &[u32], per_mille: u16) -> Option<u32> {
        nearest_rank(sorted, PerMille(per_mille))
    }

    #[test]
    fn a_single_value_is_every_percentile() {
        for per_mille in [0, 1, 500, 999, 1_000] {
            assert_eq!(at(&[7], per_mille), Some(7));
        }
    }

    #[test]
    fn the_whole_is_the_maximum_and_nothing_is_the_minimum() {
        assert_eq!(at(&[1, 2, 3], 1_000), Some(3));
        assert_eq!(at(&[1, 2, 3], 0), Some(1));
        assert_eq!(at(&[], 500), None);
    }

    #[test]
    fn the_rank_is_rounded_up() {
        // Ranks ⌈5 × 0.3⌉ = 2, ⌈5 × 0.4⌉ = 2, ⌈5 × 0.5⌉ = 3 of the textbook list.
        let list = [15, 20, 35, 40, 50];
        assert_eq!([at(&list, 300), at(&list, 400), at(&list, 500)], [Some(20), Some(20), Some(35)]);
        let thousand: Vec<u32> = (1..=1_000).collect();
        assert_eq!(at(&thousand, 999), Some(999));
        // ⌈1,001 × 0.9⌉ = 901, where 0.9 in floating point would be just above or below.
        let more: Vec<u32> = (1..=1_001).collect();
        assert_eq!(at(&more, 900), Some(901));
    }
}

//! Exact percentiles by nearest rank: the smallest value that at least the wanted share of all values does not exceed.
//! RFC 2330 §11.3 defines percentiles of an empirical distribution in the same way.

/// A share in thousandths: `PerMille(999)` is the 99.9th percentile. Whole numbers, so that ranks are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerMille(pub u16);

/// The value of rank ⌈n × share⌉ (at least 1, at most n) of `sorted`, which ascends; `None` where there is none.
pub fn nearest_rank<T: Copy>(sorted: &[T], share: PerMille) -> Option<T> {
    let scaled = (sorted.len() as u128 * u128::from(share.0)).div_ceil(1_000);
    let last = sorted.len().checked_sub(1)?;
    let index = usize::try_from(scaled).unwrap_or(usize::MAX).saturating_sub(1);
    sorted.get(index.min(last)).copied()
}

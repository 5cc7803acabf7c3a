//! How late a host handed messages over, each from its due time to the moment the transport got it.

use talkpath_units::Histogram;

/// p50, p99 and maximum in ns of what was late; `None` where nothing was paced.
pub fn lateness_ns(late: &Histogram) -> Option<[u64; 3]> {
    Some(late.quantiles([0.5, 0.99, 1.0])?.map(|late| late.abs().as_nanos()))
}

#[cfg(test)]
mod tests {
    use talkpath_units::Duration;

    use super::*;

    #[test]
    fn percentiles_are_nearest_rank_to_the_microsecond() {
        let mut late = Histogram::new();
        assert_eq!(lateness_ns(&late), None);
        for us in 1..=100 {
            late.record_unsigned(Duration::from_micros(us));
        }
        late.record_unsigned(Duration::from_millis(90));
        let [p50, p99, max] = lateness_ns(&late).unwrap();
        assert!((51_000..52_000).contains(&p50) && (100_000..101_000).contains(&p99), "{p50}, {p99}");
        assert_eq!(max, 90_000_000);
    }
}

//! The largest value of a window of rounds, from three samples (lib/win_minmax.c, after Kathleen Nichols).
//!
//! The filter keeps the largest sample, the largest after it, and the largest after that. When the first
//! sample grows too old, the second takes its place. If no larger sample came for a quarter of the window,
//! the newest sample becomes the second; after half of the window, the third. So smaller values are known
//! when the first sample expires.

/// A value, and the time at which it was measured, in rounds.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    time: u64,
    value: u64,
}

/// A windowed maximum.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxFilter {
    /// The time (round) and the value of each sample: the largest first, and none earlier than the one
    /// before.
    best: [Sample; 3],
}

impl MaxFilter {
    pub(super) const fn get(&self) -> u64 {
        self.best[0].value
    }

    /// Adds a sample of `value` at `time`. Samples older than `window` are forgotten.
    pub(super) fn update(&mut self, window: u64, time: u64, value: u64) {
        let sample = Sample { time, value };
        let [largest, second, third] = self.best;
        if value >= largest.value || time - third.time > window {
            self.best = [sample; 3];
            return;
        }
        if value >= second.value {
            self.best = [largest, sample, sample];
        } else if value >= third.value {
            self.best = [largest, second, sample];
        }
        self.age(window, sample);
    }

    /// Replaces samples that are too old.
    fn age(&mut self, window: u64, sample: Sample) {
        let [largest, second, third] = self.best;
        let age = sample.time - largest.time;
        if age > window {
            let is_second_too_old = sample.time - second.time > window;
            self.best = if is_second_too_old { [third, sample, sample] } else { [second, third, sample] };
        } else if second.time == largest.time && age > window / 4 {
            self.best = [largest, sample, sample];
        } else if third.time == second.time && age > window / 2 {
            self.best = [largest, second, sample];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_holds_for_its_window_and_then_the_next() {
        let mut filter = MaxFilter::default();
        filter.update(10, 0, 50);
        filter.update(10, 3, 20);
        filter.update(10, 6, 40);
        filter.update(10, 10, 10);
        assert_eq!(filter.get(), 50);
        filter.update(10, 11, 10);
        assert_eq!(filter.get(), 40);
        filter.update(10, 17, 10);
        assert_eq!(filter.get(), 10);
    }

    #[test]
    fn a_falling_rate_is_known_once_its_window_ends() {
        let mut filter = MaxFilter::default();
        for time in 0..=10 {
            filter.update(10, time, 100 - time);
        }
        assert_eq!(filter.get(), 100);
        filter.update(10, 11, 80);
        // The first quarter's successor.
        assert_eq!(filter.get(), 97);
    }

    #[test]
    fn a_larger_sample_replaces_all() {
        let mut filter = MaxFilter::default();
        filter.update(10, 0, 5);
        filter.update(10, 1, 9);
        assert_eq!(filter.get(), 9);
        filter.update(10, 30, 2);
        assert_eq!(filter.get(), 2);
    }
}

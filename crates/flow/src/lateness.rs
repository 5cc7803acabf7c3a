//! How late a host handed messages over: a histogram of 1 us steps, so that an hour of messages takes no more
//! room than a second.

/// Lateness of clocked messages, from their due time to the moment they were handed to the transport.
#[derive(Clone, Debug)]
pub struct Lateness {
    /// Messages per microsecond of lateness; the last counts all beyond.
    steps: Vec<u32>,
    count: u64,
    max_ns: u64,
}

impl Lateness {
    /// Nothing was handed over yet.
    pub fn new() -> Self {
        Self { steps: vec![0; STEPS], count: 0, max_ns: 0 }
    }

    /// A message was handed over `late_ns` after it was due.
    pub fn on_sent(&mut self, late_ns: u64) {
        let step = usize::try_from(late_ns / 1000).unwrap_or(STEPS).min(STEPS - 1);
        self.steps[step] = self.steps[step].saturating_add(1);
        self.count += 1;
        self.max_ns = self.max_ns.max(late_ns);
    }

    /// Adds what another end counted.
    pub fn merge(&mut self, other: &Self) {
        for (step, more) in self.steps.iter_mut().zip(&other.steps) {
            *step = step.saturating_add(*more);
        }
        self.count += other.count;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// p50, p99 and maximum in ns, percentiles rounded up to the microsecond; `None` where nothing was paced.
    pub fn figures(&self) -> Option<[u64; 3]> {
        (self.count > 0).then(|| [self.percentile(50), self.percentile(99), self.max_ns])
    }

    /// Nearest rank, in ns; the maximum where it lies beyond the last step.
    fn percentile(&self, percent: u64) -> u64 {
        let rank = (self.count * percent).div_ceil(100).max(1);
        let mut seen = 0;
        for (step, &count) in self.steps.iter().enumerate().take(STEPS - 1) {
            seen += u64::from(count);
            if seen >= rank {
                return ((step as u64 + 1) * 1000).min(self.max_ns);
            }
        }
        self.max_ns
    }
}

impl Default for Lateness {
    fn default() -> Self {
        Self::new()
    }
}

/// Up to 20 ms, four times what makes a run invalid.
const STEPS: usize = 20_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank_to_the_microsecond() {
        let mut lateness = Lateness::new();
        assert_eq!(lateness.figures(), None);
        for us in 1..=100 {
            lateness.on_sent(us * 1000);
        }
        lateness.on_sent(90_000_000);
        assert_eq!(lateness.figures(), Some([52_000, 101_000, 90_000_000]));
    }
}

//! How long packets waited: each one's time from its entry into the queue to the begin of its service.
//!
//! The delays go into a histogram whose steps are 1/128 of a power of two, so it is bounded, and a percentile
//! is right to 0.4 %. The mean is exact. A packet counts if its service begins within the measuring window.

use std::collections::VecDeque;

use talkpath_units::{Duration, Instant};

use crate::occupancy::Window;

/// Queueing delays of the packets that went into service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueDelay {
    /// Mean over packets, rounded down to the nanosecond.
    pub mean: Duration,
    /// Median; nearest rank, to 0.4 %, as all percentiles here.
    pub p50: Duration,
    /// 95th percentile.
    pub p95: Duration,
    /// 99th percentile.
    pub p99: Duration,
}

/// The delays of one queue.
#[derive(Debug, Default)]
pub(crate) struct Sojourns {
    window: Window,
    /// Packets that found the serialiser idle.
    undelayed: u64,
    /// Of the others: how many in each step, and the sum in nanoseconds.
    counts: Vec<u64>,
    sum_ns: u128,
    /// If observed: when each service began, and how long its packet had waited.
    services: Option<VecDeque<(Instant, Duration)>>,
}

impl Sojourns {
    /// None so far; those that end within `window` are counted.
    pub(crate) fn new(window: Window) -> Self {
        Self { window, ..Self::default() }
    }

    /// From now on keeps each service for [`Sojourns::pop_service`].
    pub(crate) fn observe(&mut self) {
        self.services = Some(VecDeque::new());
    }

    /// A packet goes into service at once.
    #[inline(always)]
    pub(crate) fn on_undelayed(&mut self, now: Instant) {
        self.undelayed += u64::from(self.window.contains(now));
        if self.services.is_some() {
            self.keep(now, Duration::ZERO);
        }
    }

    /// A packet goes into service that came at `entered`.
    #[inline(always)]
    pub(crate) fn on_service(&mut self, entered: Instant, now: Instant) {
        let delay = now.since(entered);
        if self.window.contains(now) {
            self.sum_ns += u128::from(delay.as_nanos());
            match self.counts.get_mut(step_of(delay.as_nanos())) {
                Some(count) => *count += 1,
                None => self.open(delay.as_nanos()),
            }
        }
        if self.services.is_some() {
            self.keep(now, delay);
        }
    }

    /// The first service that was kept and not taken: when it began, and how long its packet had waited.
    pub(crate) fn pop_service(&mut self) -> Option<(Instant, Duration)> {
        self.services.as_mut()?.pop_front()
    }

    /// The figures so far.
    pub(crate) fn figures(&self) -> QueueDelay {
        let delayed: u64 = self.counts.iter().sum();
        let total = self.undelayed + delayed;
        if total == 0 {
            return QueueDelay::default();
        }
        let percentile = |percent: u64| {
            // Nearest rank: the least delay that this share of the packets did not exceed.
            let rank = (u128::from(total) * u128::from(percent)).div_ceil(100) as u64;
            let mut below = self.undelayed;
            if below >= rank {
                return Duration::ZERO;
            }
            let step = self.counts.iter().position(|count| {
                below += count;
                below >= rank
            });
            step.map_or(Duration::ZERO, |step| Duration::from_nanos(middle_of(step)))
        };
        QueueDelay {
            // A mean is no larger than the largest delay, which has 64 bits.
            mean: Duration::from_nanos((self.sum_ns / u128::from(total)) as u64),
            p50: percentile(50),
            p95: percentile(95),
            p99: percentile(99),
        }
    }

    /// The first delay in a step that is higher than all before.
    #[cold]
    fn open(&mut self, delay_ns: u64) {
        let step = step_of(delay_ns);
        self.counts.resize(step + 1, 0);
        self.counts[step] = 1;
    }

    #[cold]
    fn keep(&mut self, now: Instant, delay: Duration) {
        if let Some(services) = &mut self.services {
            services.push_back((now, delay));
        }
    }
}

/// The step for a delay: one a nanosecond at first, then [`STEPS`] for each power of two.
#[inline(always)]
fn step_of(ns: u64) -> usize {
    let shift = (63 - (ns | STEPS).leading_zeros()) - STEPS.trailing_zeros();
    (u64::from(shift) * STEPS + (ns >> shift)) as usize
}

/// The delay in the middle of a step, in nanoseconds.
fn middle_of(step: usize) -> u64 {
    let step = step as u64;
    if step < 2 * STEPS {
        return step;
    }
    let shift = step / STEPS - 1;
    let least = (step - shift * STEPS) << shift;
    least + (1 << shift) / 2
}

/// Chosen: 128 steps for each power of two give 0.4 %, in 27 kB for delays up to 10 s.
const STEPS: u64 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_holds_delays_that_differ_by_less_than_a_hundred_and_twenty_eighth() {
        for ns in (0..1000).chain([4_999_999, 5_000_000, 123_456_789_012, u64::MAX / 3, u64::MAX]) {
            let middle = middle_of(step_of(ns));
            assert!(middle.abs_diff(ns) <= ns / 256, "{ns} ns are shown as {middle}");
        }
        let steps: Vec<_> = (0..100_000).map(step_of).collect();
        assert!(steps.windows(2).all(|two| two[1] == two[0] || two[1] == two[0] + 1));
    }

    #[test]
    fn percentiles_are_nearest_ranks_and_the_mean_is_exact() {
        let mut sojourns = Sojourns::default();
        for delay in 1..=100_u64 {
            sojourns.on_service(Instant::from_nanos(1000 - delay), Instant::from_nanos(1000));
        }
        let ns = Duration::from_nanos;
        assert_eq!(sojourns.figures(), QueueDelay { mean: ns(50), p50: ns(50), p95: ns(95), p99: ns(99) });
        (0..100).for_each(|_| sojourns.on_undelayed(Instant::from_nanos(1000)));
        assert_eq!(sojourns.figures(), QueueDelay { mean: ns(25), p50: ns(0), p95: ns(90), p99: ns(98) });
    }

    #[test]
    fn a_packet_counts_if_its_service_begins_within_the_window() {
        let mut sojourns = Sojourns::new(Window::new(Instant::from_nanos(100), Instant::from_nanos(200)));
        for at in [99, 100, 199, 200] {
            sojourns.on_service(Instant::from_nanos(at - 40), Instant::from_nanos(at));
            sojourns.on_undelayed(Instant::from_nanos(at));
        }
        assert_eq!(sojourns.figures().mean, Duration::from_nanos(20));
        assert_eq!(Sojourns::default().figures(), QueueDelay::default());
    }
}

//! How long packets waited: each one's time from its entry into the queue to the begin of its service.
//!
//! A percentile is right to 0.1 % or half a microsecond, the mean is exact. A packet counts if its service
//! begins within the measuring window.

use talkpath_units::{Duration, Histogram, Instant};

use crate::occupancy::Window;

/// Queueing delays of the packets that went into service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueDelay {
    /// Mean over packets, rounded down to the nanosecond.
    pub mean: Duration,
    /// Median; nearest rank, to 0.1 % or 0.5 us, as all percentiles here.
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
    /// How long the others waited. In a box, since on most links no packet ever waits, and a link should be
    /// small.
    delayed: Box<Histogram>,
}

impl Sojourns {
    /// None so far; those that end within `window` are counted.
    pub(crate) fn new(window: Window) -> Self {
        Self { window, ..Self::default() }
    }

    /// A packet goes into service at once.
    #[inline(always)]
    pub(crate) fn on_undelayed(&mut self, now: Instant) {
        self.undelayed += u64::from(self.window.contains(now));
    }

    /// A packet goes into service that came at `entered`.
    #[inline(always)]
    pub(crate) fn on_service(&mut self, entered: Instant, now: Instant) {
        let delay = now.since(entered);
        if self.window.contains(now) {
            self.delayed.record_unsigned(delay);
        }
    }

    /// The figures so far.
    pub(crate) fn figures(&self) -> QueueDelay {
        let delayed = self.delayed.count();
        let total = self.undelayed + delayed;
        if total == 0 {
            return QueueDelay::default();
        }
        let percentile = |percent: u64| {
            // Nearest rank: the least delay that this share of the packets did not exceed.
            let rank = (total * percent).div_ceil(100);
            let Some(rank) = rank.checked_sub(self.undelayed).filter(|&rank| rank > 0) else {
                return Duration::ZERO;
            };
            self.delayed.at_ranks([rank]).map_or(Duration::ZERO, |[delay]| delay.abs())
        };
        let sum_ns = self.delayed.mean_ns().unwrap_or(0.0) * delayed as f64;
        QueueDelay {
            mean: Duration::from_nanos((sum_ns / total as f64) as u64),
            p50: percentile(50),
            p95: percentile(95),
            p99: percentile(99),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks_of_all_packets_and_the_mean_is_exact() {
        let mut sojourns = Sojourns::default();
        for delay in 1..=100 {
            sojourns.on_service(Instant::from_millis(1000 - delay), Instant::from_millis(1000));
        }
        let holds = |found: QueueDelay, mean_us: u64, ms: [u64; 3]| {
            assert_eq!(found.mean, Duration::from_micros(mean_us));
            for (found, ms) in [found.p50, found.p95, found.p99].into_iter().zip(ms) {
                let exact = Duration::from_millis(ms);
                assert!(exact <= found && found <= exact.saturating_add(exact / 1000), "{found} for {exact}");
            }
        };
        holds(sojourns.figures(), 50_500, [50, 95, 99]);
        (0..100).for_each(|_| sojourns.on_undelayed(Instant::from_millis(1000)));
        holds(sojourns.figures(), 25_250, [0, 90, 98]);
    }

    /// 7 of 100 as a share is 0.07, which a float holds as slightly more: times 100 it is above 7.
    #[test]
    fn a_rank_among_the_delayed_packets_is_no_share_of_them() {
        let mut sojourns = Sojourns::default();
        let now = Instant::from_millis(1000);
        (0..1760).for_each(|_| sojourns.on_undelayed(now));
        (1..=100).for_each(|delay| sojourns.on_service(Instant::from_millis(1000 - delay), now));
        // 95 % of 1860 packets are 1767: the 7th of those that waited.
        let (found, exact) = (sojourns.figures().p95, Duration::from_millis(7));
        assert!(exact <= found && found <= exact.saturating_add(exact / 1000), "{found}");
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

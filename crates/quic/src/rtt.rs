//! The variance of the round trip (RFC 9002 §5.3), which the engine keeps to itself: it follows from how the
//! smoothed round trip moves.

use talkpath_units::Duration;

/// `rttvar`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RttVariance {
    smoothed: Option<Duration>,
    variance: Duration,
}

impl RttVariance {
    /// The engine's smoothed round trip is `smoothed` now.
    pub(crate) fn on_rtt(&mut self, smoothed: Duration) {
        if self.smoothed.is_none() && smoothed == GUESS {
            return;
        }
        let Some(before) = self.smoothed.replace(smoothed) else {
            self.variance = smoothed / 2;
            return;
        };
        if before == smoothed {
            return;
        }
        // smoothed = 7/8 before + 1/8 sample, so |before - sample| = 8 |before - smoothed|.
        let moved = before.saturating_sub(smoothed).max(smoothed.saturating_sub(before)).saturating_mul(8);
        self.variance = (self.variance.saturating_mul(3) + moved) / 4;
    }

    /// Whether there was a sample.
    pub(crate) fn is_known(&self) -> bool {
        self.smoothed.is_some()
    }

    /// What a probe timeout adds to the round trip (RFC 9002 §6.2.1).
    pub(crate) fn allowance(&self) -> Duration {
        self.variance.saturating_mul(4).max(GRANULARITY)
    }
}

/// The round trip before any sample (RFC 9002 §6.2.2), as quinn has it.
const GUESS: Duration = Duration::from_millis(333);

/// RFC 9002 §6.1.2.
const GRANULARITY: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variance_follows_from_the_smoothed_round_trip() {
        let mut rtt = RttVariance::default();
        rtt.on_rtt(GUESS);
        assert!(!rtt.is_known());
        rtt.on_rtt(Duration::from_millis(80));
        assert_eq!(rtt.allowance(), Duration::from_millis(160));
        // A sample of 120 ms: smoothed 85 ms, rttvar 3/4 40 + 1/4 40.
        rtt.on_rtt(Duration::from_millis(85));
        assert_eq!(rtt.allowance(), Duration::from_millis(160));
        // A sample of 85 ms moves nothing that can be seen; one of 93 ms does: 86 ms, 3/4 40 + 1/4 8.
        rtt.on_rtt(Duration::from_millis(86));
        assert_eq!(rtt.allowance(), Duration::from_millis(128));
    }
}

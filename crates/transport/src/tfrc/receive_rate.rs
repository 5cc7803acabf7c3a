//! X_recv: what arrived in the last round trip, per second (RFC 5348 §6.2, RFC 4342 §8.3).

use std::collections::VecDeque;

use talkpath_units::{Bytes, Duration, Instant};

/// Payload counted as it arrives, and the reports on it.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceiveRate {
    received: u64,
    /// When reports were made and what had arrived by then, oldest first: back to the last that is a round
    /// trip old.
    reports: VecDeque<(Instant, u64)>,
}

impl ReceiveRate {
    pub(super) fn on_received(&mut self, size: Bytes) {
        self.received = self.received.saturating_add(size.get());
    }

    /// Bytes per second since the last report, or over `rtt` if that is longer.
    ///
    /// Right after a report it looks back to the latest one that is at least a round trip old (RFC 5348 §6.2
    /// step 2). The first, which has nothing to look back to, says zero (§6.3).
    pub(super) fn measure(&self, rtt: Duration, now: Instant) -> f64 {
        if self.reports.is_empty() {
            return 0.0;
        }
        let (bytes, span) = match self.reports.iter().rfind(|(time, _)| now.since(*time) >= rtt) {
            Some(&(time, received)) => (self.received - received, now.since(time)),
            // Less than a round trip of data in all.
            None => (self.received, rtt),
        };
        bytes as f64 / span.as_secs_f64().max(LEAST_SPAN)
    }

    /// As [`Self::measure`], for a report that leaves now.
    pub(super) fn report(&mut self, rtt: Duration, now: Instant) -> f64 {
        let rate = self.measure(rtt, now);
        let useful = self.reports.iter().rposition(|(time, _)| now.since(*time) >= rtt);
        self.reports.drain(..useful.unwrap_or(0));
        if self.reports.len() == KEPT {
            // Early reports come with loss events, at most one a round trip: an honest path has fewer.
            self.reports.remove(KEPT / 2);
        }
        self.reports.push_back((now, self.received));
        rate
    }
}

/// Chosen: more than two round trips of reports, early ones included.
const KEPT: usize = 16;
/// A nanosecond: two packets can arrive at one instant.
const LEAST_SPAN: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn the_rate_covers_a_round_trip_at_least() {
        let mut rate = ReceiveRate::default();
        let at = Instant::from_millis;
        rate.on_received(Bytes::new(1000));
        assert_eq!(rate.report(RTT, at(0)), 0.0);
        for _ in 0..5 {
            rate.on_received(Bytes::new(1000));
        }
        assert_eq!(rate.report(RTT, at(100)), 50_000.0, "five packets since the last report");
        rate.on_received(Bytes::new(1000));
        assert_eq!(
            rate.report(RTT, at(120)),
            50_000.0,
            "early: six packets in the 120 ms from the first report"
        );
        rate.on_received(Bytes::new(1000));
        assert_eq!(rate.report(RTT, at(520)), 2_500.0, "one packet in 400 ms");
    }

    #[test]
    fn an_early_report_of_a_young_connection_counts_all_over_a_round_trip() {
        let mut rate = ReceiveRate::default();
        rate.on_received(Bytes::new(500));
        let _ = rate.report(RTT, Instant::ZERO);
        rate.on_received(Bytes::new(500));
        assert_eq!(rate.report(RTT, Instant::from_millis(30)), 10_000.0);
    }
}

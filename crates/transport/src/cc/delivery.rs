//! How fast the network delivers: a sample for each acknowledgement
//! (draft-cheng-iccrg-delivery-rate-estimation-00; net/ipv4/tcp_rate.c).
//!
//! ```text
//!   sent:    first_sent ........ newest sent            send phase
//!   delivered:    delivered_at ........ now             ack phase
//!   rate = segments delivered in the ack phase / length of the longer phase
//! ```
//!
//! When a segment leaves, it remembers how much was delivered until then, and when. Of the segments that an
//! acknowledgement reports, the one that was sent last gives the sample. Neither a burst of acknowledgements
//! nor a burst of segments can make the rate too high, because the longer phase counts. A sample is
//! *application-limited* if the application had too little data at some time during the sample. Its rate is
//! then only a lower bound.
//!
//! Amounts are in segments, and times in whole microseconds since the run began, as in Linux.

use std::collections::VecDeque;

use talkpath_units::{Duration, Instant};

/// The rate estimator of one sender.
#[derive(Clone, Debug)]
pub(super) struct DeliveryRate {
    /// Segments delivered so far, the SYN among them (C.delivered).
    delivered: u64,
    /// When `delivered` last grew (C.delivered_time).
    delivered_at: u64,
    /// When the first segment of the current send phase left (C.first_sent_time).
    first_sent: u64,
    /// Segments that leave are application-limited until `delivered` exceeds this amount. `None` if they are
    /// not (C.app_limited).
    limited_until: Option<u64>,
    /// What each unacknowledged segment remembers, in order of the segments' offsets.
    flight: VecDeque<Departure>,
}

/// The state of [`DeliveryRate`] when a segment was last sent (draft §3.1.2).
#[derive(Clone, Copy, Debug)]
struct Departure {
    /// The offset one past the segment's last one.
    end: u64,
    /// When the segment was last sent.
    sent: u64,
    first_sent: u64,
    delivered: u64,
    delivered_at: u64,
    is_app_limited: bool,
}

/// The delivery rate that an acknowledgement measures (draft §3.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RateSample {
    /// The number of segments that were delivered during the sample.
    pub(super) delivered: u64,
    /// The length of the sample, at least 1 µs.
    pub(super) interval_us: u64,
    /// The number of segments that were delivered before the sample began (RS.prior_delivered).
    pub(super) prior_delivered: u64,
    pub(super) is_app_limited: bool,
}

impl DeliveryRate {
    pub(super) const fn new() -> Self {
        Self { delivered: 1, delivered_at: 0, first_sent: 0, limited_until: None, flight: VecDeque::new() }
    }

    /// The number of segments delivered so far.
    pub(super) const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// When an acknowledgement last reported a delivery, in microseconds.
    pub(super) const fn delivered_at(&self) -> u64 {
        self.delivered_at
    }

    pub(super) const fn is_app_limited(&self) -> bool {
        self.limited_until.is_some()
    }

    /// Marks the samples as application-limited until all of `in_flight` is delivered (draft §3.3).
    pub(super) const fn limit(&mut self, in_flight: u64) {
        self.limited_until = Some(self.delivered + in_flight);
    }

    /// When the unacknowledged segment that ends at `end` was last sent, in microseconds.
    #[cfg(test)]
    pub(super) fn sent_at(&self, end: u64) -> Option<u64> {
        let index = self.flight.binary_search_by_key(&end, |departure| departure.end).ok()?;
        self.flight.get(index).map(|departure| departure.sent)
    }

    /// The segment that ends at `end` leaves. If no other segment is unacknowledged (`is_alone`), both phases
    /// begin now.
    pub(super) fn on_sent(&mut self, end: u64, is_alone: bool, now: Instant) {
        let sent = micros(now);
        if is_alone {
            (self.first_sent, self.delivered_at) = (sent, sent);
        }
        let departure = Departure {
            end,
            sent,
            first_sent: self.first_sent,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            is_app_limited: self.limited_until.is_some(),
        };
        if self.flight.back().is_none_or(|last| last.end < end) {
            self.flight.push_back(departure);
        } else if let Ok(index) = self.flight.binary_search_by_key(&end, |departure| departure.end) {
            self.flight[index] = departure;
        }
    }

    /// Takes the sample of an acknowledgement that reported `delivered` more segments. Of them the segment
    /// that ends at `newest` was sent last. Everything before `snd_una` has arrived.
    ///
    /// Returns `None` if `newest` is none, or if the sample is shorter than `min_rtt`. The latter comes from
    /// a segment that was sent again needlessly.
    pub(super) fn on_ack(
        &mut self,
        delivered: u64,
        newest: Option<u64>,
        snd_una: u64,
        min_rtt: Duration,
        now: Instant,
    ) -> Option<RateSample> {
        self.delivered += delivered;
        if self.limited_until.is_some_and(|until| self.delivered > until) {
            self.limited_until = None;
        }
        let now = micros(now);
        let newest_departure = newest.and_then(|end| {
            let index = self.flight.binary_search_by_key(&end, |departure| departure.end).ok()?;
            self.flight.get(index).copied()
        });
        while self.flight.front().is_some_and(|departure| departure.end <= snd_una) {
            self.flight.pop_front();
        }
        if delivered > 0 {
            self.delivered_at = now;
        }
        let departure = newest_departure?;
        self.first_sent = departure.sent;
        let send_phase = departure.sent.saturating_sub(departure.first_sent);
        let ack_phase = now.saturating_sub(departure.delivered_at);
        let interval_us = send_phase.max(ack_phase);
        (interval_us >= (min_rtt.as_nanos() / 1000).max(1)).then_some(RateSample {
            delivered: self.delivered - departure.delivered,
            interval_us,
            prior_delivered: departure.delivered,
            is_app_limited: departure.is_app_limited,
        })
    }
}

/// Microseconds since the run began.
pub(super) const fn micros(at: Instant) -> u64 {
    at.as_nanos() / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Instant = Instant::from_micros;
    const MIN_RTT: Duration = Duration::from_millis(1);

    fn sample(rate: &mut DeliveryRate, delivered: u64, newest: u64, at: u64) -> Option<RateSample> {
        rate.on_ack(delivered, Some(newest), newest, MIN_RTT, AT(at))
    }

    /// Four segments at once over 10 ms and a bottleneck of one a millisecond: the acknowledgements' pace is
    /// the rate.
    #[test]
    fn acknowledgements_of_a_burst_come_at_the_bottlenecks_rate() {
        let mut rate = DeliveryRate::new();
        for end in 1..=4 {
            rate.on_sent(end, end == 1, AT(0));
        }
        for (end, delivered) in (1..=4).zip(1..) {
            let sample = sample(&mut rate, 1, end, 10_000 + 1000 * end).unwrap();
            assert_eq!((sample.delivered, sample.interval_us), (delivered, 10_000 + 1000 * end));
        }
        // From here on each departure knows of deliveries, and the round trip is no part of the interval any
        // more.
        for end in 5..=12 {
            rate.on_sent(end, end == 5, AT(20_000));
        }
        sample(&mut rate, 4, 8, 40_000);
        rate.on_sent(13, false, AT(40_000));
        let last = sample(&mut rate, 5, 13, 60_000).unwrap();
        assert_eq!((last.delivered, last.interval_us, last.prior_delivered), (5, 20_000, 9));
    }

    /// Draft §2.2: if acknowledgements come in one burst, the send phase is the longer one.
    #[test]
    fn a_burst_of_acknowledgements_counts_at_the_sending_rate() {
        let mut rate = DeliveryRate::new();
        for end in 1..=5 {
            rate.on_sent(end, end == 1, AT(5000 * (end - 1)));
        }
        rate.on_ack(1, Some(1), 1, MIN_RTT, AT(21_000));
        rate.on_sent(6, false, AT(21_000));
        // The rest in one burst, half a millisecond later: from the first segment's departure to the last
        // one's.
        let burst = rate.on_ack(5, Some(6), 6, Duration::ZERO, AT(21_500)).unwrap();
        assert_eq!((burst.delivered, burst.interval_us), (5, 21_000));
    }

    /// Draft §3.3.
    #[test]
    fn a_sample_is_limited_until_what_was_in_flight_is_delivered() {
        let mut rate = DeliveryRate::new();
        rate.limit(0);
        rate.on_sent(1, true, AT(0));
        rate.on_sent(2, false, AT(0));
        assert!(sample(&mut rate, 1, 1, 10_000).unwrap().is_app_limited);
        assert!(!rate.is_app_limited());
        rate.on_sent(3, false, AT(10_000));
        assert!(sample(&mut rate, 1, 2, 10_000).unwrap().is_app_limited);
        assert!(!sample(&mut rate, 1, 3, 20_000).unwrap().is_app_limited);
    }

    /// A segment sent again whose first copy arrives at once.
    #[test]
    fn a_sample_faster_than_the_shortest_round_trip_is_none() {
        let mut rate = DeliveryRate::new();
        rate.on_sent(1, true, AT(0));
        rate.on_sent(2, false, AT(0));
        let min_rtt = Duration::from_millis(20);
        rate.on_ack(1, Some(1), 1, min_rtt, AT(20_000));
        rate.on_sent(2, false, AT(19_900));
        assert_eq!(rate.on_ack(1, Some(2), 2, min_rtt, AT(20_100)), None);
    }
}

//! The times at which the first and the last message were sent and received, and the rates that follow. The
//! definitions are from Sean Foderaro's comparison of TCP and UDP (5 May 1995, comp.sys.cu-seeme's list, "Re:
//! Melting the Internet?").
//!
//! ```text
//!  time to receive      = last received - first received
//!  net rate             = received / time to receive
//!  error adjusted rate  = net rate x received / sent
//! ```
//!
//! Foderaro printed ten error-adjusted rates, and two of them do not follow from this definition.
//! docs/studies/foderaro-1995.md shows which. A test checks the other eight.

use talkpath_units::{Duration, Instant};

use super::loss::LossCounts;
use super::trip::Trip;

/// The times at which the messages of a window were sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// The time at which the transport took the first message.
    pub first_sent: Option<Instant>,
    /// The time of the first arrival.
    pub first_received: Option<Instant>,
    /// The time of the last arrival.
    pub last_received: Option<Instant>,
}

impl Stamps {
    /// Adds a trip.
    #[inline]
    pub fn add(&mut self, trip: &Trip) {
        move_to_earlier(&mut self.first_sent, trip.sent);
        move_to_earlier(&mut self.first_received, trip.received());
        self.last_received = self.last_received.max(trip.received());
    }

    /// Returns the times of `trips`.
    pub fn of(trips: &[Trip]) -> Self {
        Self {
            first_sent: trips.iter().filter_map(|trip| trip.sent).min(),
            first_received: trips.iter().filter_map(Trip::received).min(),
            last_received: trips.iter().filter_map(Trip::received).max(),
        }
    }

    /// Returns Foderaro's "time to receive": the time between the first and the last arrival.
    pub fn first_to_last_received(&self) -> Option<Duration> {
        Some(self.last_received?.since(self.first_received?))
    }

    /// Returns the time from the first send to the last arrival, in ns. It is negative only if two clocks
    /// disagree.
    pub fn first_sent_to_last_received_ns(&self) -> Option<i64> {
        Some(self.last_received?.signed_since(self.first_sent?).as_nanos())
    }
}

/// Sets `earliest` to `time` if there is no earlier time.
#[inline]
fn move_to_earlier(earliest: &mut Option<Instant>, time: Option<Instant>) {
    if let Some(time) = time
        && earliest.is_none_or(|earliest| time < earliest)
    {
        *earliest = Some(time);
    }
}

/// Returns received / time to receive, in messages per second. Returns `None` if all messages arrived at the
/// same time.
pub fn net_rate_pps(received: u64, time_to_receive: Duration) -> Option<f64> {
    (!time_to_receive.is_zero()).then(|| received as f64 / time_to_receive.as_secs_f64())
}

/// Returns net rate × received / sent, in messages per second. This rate is left if each lost message is sent
/// again.
pub fn error_adjusted_rate_pps(net_rate_pps: f64, counts: &LossCounts) -> Option<f64> {
    super::loss::rate(counts.received, counts.sent).map(|share| net_rate_pps * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{flow, ms};

    /// A row of Foderaro's tables, in their order and with UDP before TCP.
    struct Printed {
        /// The number of lost packets, of 10,000.
        lost: u64,
        time_to_receive_s: u64,
        net_pps: f64,
        adjusted_pps: f64,
    }

    const fn printed(lost: u64, time_to_receive_s: u64, net_pps: f64, adjusted_pps: f64) -> Printed {
        Printed { lost, time_to_receive_s, net_pps, adjusted_pps }
    }

    const TABLE: [Printed; 10] = [
        printed(7, 8, 1_249.0, 1_236.0),
        printed(0, 6, 1_666.0, 1_666.0),
        printed(6_668, 5, 666.0, 444.0),
        printed(0, 5, 2_000.0, 2_000.0),
        printed(6, 139, 72.0, 72.0),
        printed(0, 112, 89.0, 89.0),
        printed(9_602, 20, 20.0, 0.8),
        printed(0, 497, 20.0, 20.0),
        printed(5_556, 6, 740.0, 328.0),
        printed(0, 63, 158.0, 158.0),
    ];

    fn counts(lost: u64) -> LossCounts {
        LossCounts { sent: 10_000, received: 10_000 - lost, lost_forward: lost, ..LossCounts::default() }
    }

    /// Returns whether `value` is `printed` if it is rounded down, or to the nearest, with the precision of
    /// `printed`.
    fn prints_as(value: f64, printed: f64) -> bool {
        let unit = if printed < 1.0 { 0.1 } else { 1.0 };
        let steps = value / unit;
        let printed = (printed / unit).round();
        steps.floor() == printed || steps.round() == printed
    }

    #[test]
    fn every_printed_net_rate_follows_from_its_definition() {
        for Printed { lost, time_to_receive_s, net_pps, .. } in TABLE {
            let rate = net_rate_pps(10_000 - lost, Duration::from_secs(time_to_receive_s)).unwrap();
            assert!(prints_as(rate, net_pps), "{rate} is printed as {net_pps}");
        }
    }

    #[test]
    fn two_printed_error_adjusted_rates_do_not_follow_from_their_definition() {
        let computed = |index: usize| {
            let Printed { lost, net_pps, .. } = TABLE[index];
            error_adjusted_rate_pps(net_pps, &counts(lost)).unwrap()
        };
        let odd: Vec<_> =
            (0..10).filter(|&index| !prints_as(computed(index), TABLE[index].adjusted_pps)).collect();
        assert_eq!(odd, [0, 2]);
        // 1,249 × 0.9993, printed 1,236, which is 1,249 × 0.99.
        assert!(prints_as(computed(0), 1_248.0) && prints_as(1_249.0 * 0.99, 1_236.0));
        // 666 × 0.3332, printed 444, which is 666 times the share that was lost.
        assert!(prints_as(computed(2), 221.0) && prints_as(666.0 * 0.6668, 444.0));
    }

    #[test]
    fn times_run_between_the_first_and_the_last_of_each() {
        // Sent at 0, 20 and 40 ms; read at 100, never and 70 ms.
        let stamps = Stamps::of(&flow(&[Some(100), None, Some(30)]).trips(&(ms(0)..ms(60))));
        assert_eq!(stamps.first_to_last_received(), Some(Duration::from_millis(30)));
        assert_eq!(stamps.first_sent_to_last_received_ns(), Some(100_000_000));
        assert_eq!(net_rate_pps(2, Duration::from_millis(30)), Some(2.0 / 0.03));
        assert_eq!(net_rate_pps(1, Duration::ZERO), None);
    }
}

//! The figures of Sean Foderaro's comparison of TCP and UDP (5 May 1995, comp.sys.cu-seeme's list, "Re:
//! Melting the Internet?"): times to receive, net and error-adjusted rate, and the real-time performance in a
//! word.
//!
//! His definitions: net transmission rate is packets received / seconds between the first and the last one
//! received; error adjusted rate is the net rate times the share of the packets sent that were received. Two
//! of his ten printed error-adjusted rates do not follow from that. docs/studies/foderaro-1995.md shows
//! which, and a test holds the other eight.

use talkpath_units::{Duration, Instant};

use super::loss::LossCounts;
use super::trip::Trip;
use crate::summary::DelayMs;

/// When a window's messages were sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// The first time that the transport took a message.
    pub first_sent: Option<Instant>,
    /// The first arrival.
    pub first_received: Option<Instant>,
    /// The last arrival.
    pub last_received: Option<Instant>,
}

impl Stamps {
    /// One more trip.
    #[inline]
    pub fn add(&mut self, trip: &Trip) {
        earliest(&mut self.first_sent, trip.sent);
        earliest(&mut self.first_received, trip.received());
        self.last_received = self.last_received.max(trip.received());
    }

    /// The stamps of `trips`.
    pub fn of(trips: &[Trip]) -> Self {
        Self {
            first_sent: trips.iter().filter_map(|trip| trip.sent).min(),
            first_received: trips.iter().filter_map(Trip::received).min(),
            last_received: trips.iter().filter_map(Trip::received).max(),
        }
    }

    /// His "time to receive": between the first packet received and the last one.
    pub fn first_to_last_received(&self) -> Option<Duration> {
        Some(self.last_received?.since(self.first_received?))
    }

    /// From the first send to the last arrival, in nanoseconds; negative only if two clocks disagree.
    pub fn first_sent_to_last_received_ns(&self) -> Option<i64> {
        Some(self.last_received?.signed_since(self.first_sent?).as_nanos())
    }
}

/// Moves `stamp` to `at` if that is earlier.
#[inline]
fn earliest(stamp: &mut Option<Instant>, at: Option<Instant>) {
    if let Some(at) = at
        && stamp.is_none_or(|stamp| at < stamp)
    {
        *stamp = Some(at);
    }
}

/// received / time to receive, messages a second; `None` if all arrived at one instant.
pub fn net_rate_pps(received: u64, time_to_receive: Duration) -> Option<f64> {
    (!time_to_receive.is_zero()).then(|| received as f64 / time_to_receive.as_secs_f64())
}

/// net rate × received / sent, messages a second: what is left when each lost message must be sent again.
pub fn error_adjusted_rate_pps(net_rate_pps: f64, counts: &LossCounts) -> Option<f64> {
    super::loss::rate(counts.received, counts.sent).map(|share| net_rate_pps * share)
}

/// "How I'd describe the real-time performance of the link based mainly on the average packet delay."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Prompt throughout.
    Great,
    /// Prompt on average, with stalls.
    Good,
    /// Seconds late.
    Bad,
    /// Way out of date.
    Horrible,
    /// Nothing arrived.
    Nothing,
    /// The delay is unknown, because the clock is not trusted.
    Unknown,
}

impl Verdict {
    /// Judges a mean and a maximum delay in milliseconds.
    pub fn of_delay(mean_ms: f64, max_ms: f64) -> Self {
        if mean_ms >= HORRIBLE_FROM_MEAN_MS {
            Self::Horrible
        } else if mean_ms >= BAD_FROM_MEAN_MS {
            Self::Bad
        } else if mean_ms >= GOOD_FROM_MEAN_MS || max_ms >= GOOD_FROM_MAX_MS {
            Self::Good
        } else {
            Self::Great
        }
    }

    /// Judges a flow by its one-way delay, or by half its round trip if only that is known.
    pub fn of_flow(received: u64, one_way: Option<&DelayMs>, round_trip: Option<&DelayMs>) -> Self {
        match (one_way, round_trip) {
            _ if received == 0 => Self::Nothing,
            (Some(delay), _) => Self::of_delay(delay.mean, delay.max),
            (None, Some(delay)) => Self::of_delay(delay.mean / 2.0, delay.max / 2.0),
            (None, None) => Self::Unknown,
        }
    }

    /// The word in tables and in summary.json.
    pub fn word(self) -> &'static str {
        match self {
            Self::Great => "great",
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Horrible => "horrible",
            Self::Nothing => "nothing arrived",
            Self::Unknown => "unknown",
        }
    }
}

/// How a one-way delay reads for a voice call, after ITU-T G.114 (05/2003): up to 150 ms most users notice
/// nothing, up to 400 ms is acceptable with its effect in mind, and more is unacceptable for planning.
/// `p99_ms` is the delay that a playout buffer would have to cover; codec and playout come on top.
pub fn reads_for_a_call(p99_ms: f64) -> &'static str {
    if p99_ms <= CALL_UNNOTICED_MS {
        "unnoticed in a call"
    } else if p99_ms <= CALL_ACCEPTABLE_MS {
        "noticed in a call"
    } else {
        "no conversation"
    }
}

// Foderaro prints whole seconds, rounded down, and gives no thresholds. Each one here is the geometric mean
// of the two values that it has to part, rounded to a whole second.

/// Parts good (mean below 1 s) from bad (8 s): sqrt(1 × 8) = 2.8.
const BAD_FROM_MEAN_MS: f64 = 3_000.0;
/// Parts bad (8 s, that is below 9 s) from horrible (65 s): sqrt(9 × 65) = 24.2.
const HORRIBLE_FROM_MEAN_MS: f64 = 24_000.0;
/// His "0": every mean that he calls great is below a second.
const GOOD_FROM_MEAN_MS: f64 = 1_000.0;
/// Parts great (largest maximum 2 s) from good (8 s): sqrt(2 × 8) = 4.
const GOOD_FROM_MAX_MS: f64 = 4_000.0;
/// ITU-T G.114 (05/2003).
const CALL_UNNOTICED_MS: f64 = 150.0;
/// ITU-T G.114 (05/2003).
const CALL_ACCEPTABLE_MS: f64 = 400.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{flow, ms};

    type Row = (u64, u64, Option<f64>, f64, f64, f64, &'static str);

    /// His tables in order, UDP before TCP: packets lost of 10,000, time to receive, average and maximum
    /// delay in seconds, net and error-adjusted rate, verdict. The first average is blank in the print.
    const TABLE: [Row; 10] = [
        (7, 8, None, 1.0, 1_249.0, 1_236.0, "great"),
        (0, 6, None, 1.0, 1_666.0, 1_666.0, "great"),
        (6_668, 5, Some(0.0), 1.0, 666.0, 444.0, "great"),
        (0, 5, Some(0.0), 1.0, 2_000.0, 2_000.0, "great"),
        (6, 139, Some(65.0), 132.0, 72.0, 72.0, "horrible"),
        (0, 112, Some(0.0), 1.0, 89.0, 89.0, "great"),
        (9_602, 20, Some(8.0), 15.0, 20.0, 0.8, "bad"),
        (0, 497, Some(0.0), 8.0, 20.0, 20.0, "good"),
        (5_556, 6, Some(0.0), 1.0, 740.0, 328.0, "great"),
        (0, 63, Some(0.0), 2.0, 158.0, 158.0, "great"),
    ];

    fn counts(lost: u64) -> LossCounts {
        LossCounts { sent: 10_000, received: 10_000 - lost, lost_forward: lost, ..LossCounts::default() }
    }

    /// Whether `value`, rounded down or to the nearest at the precision of `printed`, is `printed`.
    fn prints_as(value: f64, printed: f64) -> bool {
        let unit = if printed < 1.0 { 0.1 } else { 1.0 };
        let steps = value / unit;
        let printed = (printed / unit).round();
        steps.floor() == printed || steps.round() == printed
    }

    #[test]
    fn every_printed_net_rate_follows_from_its_definition() {
        for (lost, seconds, _, _, net, _, _) in TABLE {
            let rate = net_rate_pps(10_000 - lost, Duration::from_secs(seconds)).unwrap();
            assert!(prints_as(rate, net), "{rate} is printed as {net}");
        }
    }

    #[test]
    fn two_printed_error_adjusted_rates_do_not_follow_from_their_definition() {
        let computed = |index: usize| {
            let (lost, _, _, _, net, _, _) = TABLE[index];
            error_adjusted_rate_pps(net, &counts(lost)).unwrap()
        };
        let odd: Vec<_> = (0..10).filter(|&index| !prints_as(computed(index), TABLE[index].5)).collect();
        assert_eq!(odd, [0, 2]);
        // 1,249 × 0.9993, printed 1,236, which is 1,249 × 0.99.
        assert!(prints_as(computed(0), 1_248.0) && prints_as(1_249.0 * 0.99, 1_236.0));
        // 666 × 0.3332, printed 444, which is 666 times the share that was lost.
        assert!(prints_as(computed(2), 221.0) && prints_as(666.0 * 0.6668, 444.0));
    }

    #[test]
    fn the_verdicts_are_his() {
        for (_, _, average, max, _, _, verdict) in TABLE {
            // He prints whole seconds, rounded down: the verdict holds at both ends of what he may have
            // measured.
            let average = average.unwrap_or(0.0);
            for (mean, max) in [(average, max), (average + 0.99, max + 0.99)] {
                assert_eq!(
                    Verdict::of_delay(1e3 * mean, 1e3 * max.max(mean)).word(),
                    verdict,
                    "{mean} s, {max} s"
                );
            }
        }
    }

    #[test]
    fn a_flow_is_judged_by_half_its_round_trip_where_one_way_is_unknown() {
        let delay =
            |ms: f64| DelayMs { min: ms, mean: ms, p50: ms, p90: ms, p95: ms, p99: ms, p999: ms, max: ms };
        assert_eq!(Verdict::of_flow(1, None, Some(&delay(4_000.0))), Verdict::Good);
        assert_eq!(Verdict::of_flow(1, Some(&delay(4_000.0)), Some(&delay(4_000.0))), Verdict::Bad);
        assert_eq!(Verdict::of_flow(1, None, None), Verdict::Unknown);
        assert_eq!(Verdict::of_flow(0, None, None), Verdict::Nothing);
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

    #[test]
    fn a_call_reads_by_g114() {
        let readings = [20.0, 150.0, 151.0, 400.0, 401.0].map(reads_for_a_call);
        let [unnoticed, noticed, none] = ["unnoticed in a call", "noticed in a call", "no conversation"];
        assert_eq!(readings, [unnoticed, unnoticed, noticed, noticed, none]);
    }
}

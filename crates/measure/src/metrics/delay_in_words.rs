//! The real-time performance of a flow in a word, by its delay: after Sean Foderaro's comparison of TCP and
//! UDP (5 May 1995, comp.sys.cu-seeme's list, "Re: Melting the Internet?").

use crate::summary::DelayMs;

/// "How I'd describe the real-time performance of the link based mainly on the average packet delay."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayInWords {
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

impl DelayInWords {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Of his tables in order, UDP before TCP: average and largest delay in seconds, and his word. The first
    /// average is blank in the print.
    const TABLE: [(Option<f64>, f64, &str); 10] = [
        (None, 1.0, "great"),
        (None, 1.0, "great"),
        (Some(0.0), 1.0, "great"),
        (Some(0.0), 1.0, "great"),
        (Some(65.0), 132.0, "horrible"),
        (Some(0.0), 1.0, "great"),
        (Some(8.0), 15.0, "bad"),
        (Some(0.0), 8.0, "good"),
        (Some(0.0), 1.0, "great"),
        (Some(0.0), 2.0, "great"),
    ];

    #[test]
    fn the_verdicts_are_his() {
        for (average, max, verdict) in TABLE {
            // He prints whole seconds, rounded down: the verdict holds at both ends of what he may have
            // measured.
            let average = average.unwrap_or(0.0);
            for (mean, max) in [(average, max), (average + 0.99, max + 0.99)] {
                assert_eq!(
                    DelayInWords::of_delay(1e3 * mean, 1e3 * max.max(mean)).word(),
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
        assert_eq!(DelayInWords::of_flow(1, None, Some(&delay(4_000.0))), DelayInWords::Good);
        assert_eq!(DelayInWords::of_flow(1, Some(&delay(4_000.0)), Some(&delay(4_000.0))), DelayInWords::Bad);
        assert_eq!(DelayInWords::of_flow(1, None, None), DelayInWords::Unknown);
        assert_eq!(DelayInWords::of_flow(0, None, None), DelayInWords::Nothing);
    }
}

//! The real-time performance of a flow in a word, by its delay. The words are those of Sean Foderaro's
//! comparison of TCP and UDP (5 May 1995, comp.sys.cu-seeme's list, "Re: Melting the Internet?").

use crate::summary::DelayMs;

// Foderaro prints whole seconds, rounded down, and gives no thresholds. Each threshold here is the geometric
// mean of the two values that it separates, rounded to a whole second.

/// Separates good (a mean below 1 s) from bad (8 s): sqrt(1 × 8) = 2.8.
const BAD_FROM_MEAN_MS: f64 = 3_000.0;
/// Separates bad (8 s, so below 9 s) from horrible (65 s): sqrt(9 × 65) = 24.2.
const HORRIBLE_FROM_MEAN_MS: f64 = 24_000.0;
/// Every mean that Foderaro calls great is printed as "0", so it is below 1 s.
const GOOD_FROM_MEAN_MS: f64 = 1_000.0;
/// Separates great (a maximum of at most 2 s) from good (8 s): sqrt(2 × 8) = 4.
const GOOD_FROM_MAX_MS: f64 = 4_000.0;

/// A word for a delay. Foderaro: "How I'd describe the real-time performance of the link based mainly on the
/// average packet delay."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayInWords {
    /// All messages are prompt.
    Great,
    /// Messages are prompt on average, but there are stalls.
    Good,
    /// Messages are seconds late.
    Bad,
    /// Messages are far out of date.
    Horrible,
    /// Nothing arrived.
    Nothing,
    /// The delay is unknown, because the clock is not trusted.
    Unknown,
}

impl DelayInWords {
    /// Returns the word for a mean and a maximum delay in milliseconds.
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

    /// Returns the word for a flow with so many messages `received`. It depends on the one-way delay, or on
    /// half of the round trip if only that is known.
    pub fn of_flow(received: u64, one_way: Option<&DelayMs>, round_trip: Option<&DelayMs>) -> Self {
        match (one_way, round_trip) {
            _ if received == 0 => Self::Nothing,
            (Some(delay), _) => Self::of_delay(delay.mean, delay.max),
            (None, Some(delay)) => Self::of_delay(delay.mean / 2.0, delay.max / 2.0),
            (None, None) => Self::Unknown,
        }
    }

    /// Returns the word in tables and in summary.json.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Foderaro's tables in their order, with UDP before TCP: the average and the largest delay in seconds,
    /// and his word. The first average is blank in the print.
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
    fn the_words_are_those_of_foderaro() {
        for (average, max, verdict) in TABLE {
            // Foderaro prints whole seconds, rounded down, so the word must hold at both ends of the second.
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

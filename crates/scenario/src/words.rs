//! Numbers with their units, as sentences about a scenario write them.

use talkpath_units::text::significant;
use talkpath_units::{Duration, Rate};

/// Three digits, as in `1.2 Mb/s`.
pub(crate) fn rate(rate: Rate) -> String {
    let bps = rate.as_bps() as f64;
    let (value, unit) = match bps {
        1e9.. => (bps / 1e9, "Gb/s"),
        1e6.. => (bps / 1e6, "Mb/s"),
        1e3.. => (bps / 1e3, "kb/s"),
        _ => (bps, "b/s"),
    };
    format!("{} {unit}", significant(value, DIGITS))
}

pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let (value, unit) = match seconds {
        1.0.. => (seconds, "s"),
        1e-3.. => (seconds * 1e3, "ms"),
        1e-6.. => (seconds * 1e6, "us"),
        0.0 => (0.0, "s"),
        _ => (seconds * 1e9, "ns"),
    };
    format!("{} {unit}", significant(value, DIGITS))
}

/// Writes `share` in per cent. A share below a hundred thousandth is not written in digits, because nobody
/// counts its zeros.
pub(crate) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent > 0.0 && percent < LEAST_PERCENT {
        return format!("less than {LEAST_PERCENT} %");
    }
    format!("{} %", significant(percent, DIGITS))
}

/// The significant digits of a number in a sentence. A whole part keeps all of its digits. We chose 3 because
/// a reader compares these numbers with those of a scenario, which seldom have more.
const DIGITS: i32 = 3;

/// The smallest share that is written in digits, in per cent. We chose a bound that no usual loss rate of a
/// path falls below.
const LEAST_PERCENT: f64 = 0.001;

/// Returns the name of a trace's file without the folder that the resolved form adds.
pub(crate) fn file_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_no_zeros_at_the_end() {
        let rates = [0, 999, 1_200_000, 16_830_000, 999_000_000_000];
        assert_eq!(
            rates.map(|bps| rate(Rate::from_bps(bps))),
            ["0 b/s", "999 b/s", "1.2 Mb/s", "16.8 Mb/s", "999 Gb/s"]
        );
        assert_eq!(time(Duration::from_millis(10_000)), "10 s");
        assert_eq!(
            [0.5, 0.001, 1.0, 0.0, 7.1e-9, 0.001_234].map(percent),
            ["50 %", "0.1 %", "100 %", "0 %", "less than 0.001 %", "0.123 %"]
        );
    }
}

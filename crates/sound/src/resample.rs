//! Changes the sample rate of a recording, by a windowed sinc.
//!
//! The filter passes up to 0.45 of the lower sample rate. Its sinc has 32 zero crossings on each side, in a
//! Kaiser window with a parameter of 8, whose stop band is about 80 dB below. It is computed at 512 points a
//! crossing, with a line between two points (J. O. Smith, "Digital Audio Resampling Home Page", 2002).

use crate::wav::Recording;

/// The zero crossings of the sinc on each side.
const CROSSINGS: usize = 32;
/// The points of the table between two crossings.
const POINTS: usize = 512;
/// The parameter of the Kaiser window.
const KAISER: f64 = 8.0;
/// The end of the pass band, as a share of the lower sample rate. Half of the rate is the theoretical limit.
const PASSED: f64 = 0.45;

impl Recording {
    /// Returns the recording at another sample rate. It is the same if the rate is the same.
    #[must_use]
    pub fn at_rate(self, rate: u32) -> Self {
        if rate == self.rate {
            return self;
        }
        let (from, to) = (u64::from(self.rate), u64::from(rate));
        let table = table();
        // How many zero crossings lie between two input samples.
        let crossings = 2.0 * PASSED * f64::from(rate.min(self.rate)) / f64::from(self.rate);
        let reach = (CROSSINGS as f64 / crossings) as u64 + 1;
        let count = (self.samples.len() as u64 * to).div_ceil(from);
        let samples = (0..count).map(|number| {
            // The place in the input: a whole sample, and a fraction.
            let (whole, fraction) = (number * from / to, (number * from % to) as f64 / to as f64);
            let first = whole.saturating_sub(reach);
            let mut sum = 0.0;
            for at in first..=(whole + reach) {
                let Some(sample) = usize::try_from(at).ok().and_then(|at| self.samples.get(at)) else {
                    break;
                };
                let distance = (at as f64 - whole as f64 - fraction).abs() * crossings;
                sum += f64::from(*sample) * value(&table, distance);
            }
            ((sum * crossings) as f32).clamp(-32_768.0, 32_767.0)
        });
        Self { rate, samples: samples.collect() }
    }
}

/// The filter at this distance from its middle, in zero crossings.
fn value(table: &[f64], distance: f64) -> f64 {
    let place = distance * POINTS as f64;
    let index = place as usize;
    let (Some(left), Some(right)) = (table.get(index), table.get(index + 1)) else { return 0.0 };
    left + (right - left) * (place - index as f64)
}

/// Half of the filter, from its middle on.
fn table() -> Vec<f64> {
    let length = CROSSINGS * POINTS;
    let whole = bessel(KAISER);
    let point = |at: usize| {
        let x = core::f64::consts::PI * at as f64 / POINTS as f64;
        let sinc = if at == 0 { 1.0 } else { libm::sin(x) / x };
        let place = at as f64 / length as f64;
        sinc * bessel(KAISER * (1.0 - place * place).max(0.0).sqrt()) / whole
    };
    (0..=length).map(point).collect()
}

/// The modified Bessel function of the first kind and order 0, by its power series.
fn bessel(x: f64) -> f64 {
    let (mut sum, mut term) = (1.0, 1.0);
    for number in 1..40 {
        term *= (x / 2.0 / f64::from(number)) * (x / 2.0 / f64::from(number));
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(rate: u32, hz: f64, count: usize) -> Recording {
        let angle = |at: usize| at as f64 * core::f64::consts::TAU * hz / f64::from(rate);
        Recording { rate, samples: (0..count).map(|at| (10_000.0 * angle(at).sin()) as f32).collect() }
    }

    #[test]
    fn a_tone_in_the_pass_band_is_the_same_tone_at_each_rate() {
        for (from, to) in [(16_000, 8_000), (8_000, 48_000), (44_100, 8_000), (11_025, 24_000)] {
            let changed = tone(from, 1_000.0, from as usize).at_rate(to);
            assert_eq!((changed.rate, changed.samples.len()), (to, to as usize));
            let expected = tone(to, 1_000.0, to as usize);
            // The ends have less speech around them.
            let middle = to as usize / 10..to as usize * 9 / 10;
            for (found, expected) in changed.samples[middle.clone()].iter().zip(&expected.samples[middle]) {
                assert!((found - expected).abs() < 20.0, "{from} to {to}: {found} and not {expected}");
            }
        }
    }

    #[test]
    fn a_tone_beyond_the_lower_rate_is_removed() {
        let changed = tone(48_000, 5_000.0, 48_000).at_rate(8_000);
        let loudest = changed.samples[800..7_200].iter().fold(0.0_f32, |most, it| most.max(it.abs()));
        assert!(loudest < 10.0, "{loudest} of 10000, which is 60 dB below");
    }

    #[test]
    fn the_same_rate_changes_nothing() {
        let recording = tone(8_000, 440.0, 800);
        assert_eq!(recording.clone().at_rate(8_000), recording);
    }
}

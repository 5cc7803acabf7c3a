//! From values to places on the page, and where the ticks are.

pub(crate) use talkpath_measure::figures::text::tick_label;

/// A straight or logarithmic map from values to SVG units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    kind: Kind,
    /// Smallest and largest value.
    pub domain: (f64, f64),
    /// Where they lie.
    range: (f64, f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Linear,
    Log,
}

/// Above this ratio of the largest to the smallest value the axis is logarithmic, because a linear one would
/// press most values flat; chosen.
const LOG_RATIO: f64 = 50.0;
/// Steps of a decade at which ticks are round.
const ROUND: [f64; 3] = [1.0, 2.0, 5.0];

impl Scale {
    /// Straight from `low` to `high`.
    pub(crate) fn linear((low, high): (f64, f64), range: (f64, f64)) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { kind: Kind::Linear, domain: (low, high), range }
    }

    /// Logarithmic from `low`, above zero, to `high`.
    pub(crate) fn log((low, high): (f64, f64), range: (f64, f64)) -> Self {
        let low = if low > 0.0 { low } else { f64::MIN_POSITIVE };
        let high = if high > low { high } else { low * 10.0 };
        Self { kind: Kind::Log, domain: (low, high), range }
    }

    /// A scale for values from `low` to `high`: from zero to a round number, or logarithmic between round
    /// numbers if they span decades; from a round number below zero if there are such values.
    pub(crate) fn fitting((low, high): (f64, f64), range: (f64, f64)) -> Self {
        match (low > 0.0 && high / low > LOG_RATIO, low < 0.0) {
            (true, _) => Self::log((round_down(low), round_up(high)), range),
            (_, true) => {
                let top = if high > 0.0 { nice_ceiling(high) } else { 0.0 };
                Self::linear((-nice_ceiling(-low), top), range)
            }
            _ => Self::linear((0.0, nice_ceiling(high)), range),
        }
    }

    /// Where `value` lies; values outside lie on the nearer end.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let (low, high) = self.domain;
        let value = if value.is_finite() { value.clamp(low, high) } else { low };
        let share = match self.kind {
            Kind::Linear => (value - low) / (high - low),
            Kind::Log => (value / low).ln() / (high / low).ln(),
        };
        self.range.0 + share * (self.range.1 - self.range.0)
    }

    /// About `target` round values within the domain, ascending.
    pub(crate) fn ticks(&self, target: usize) -> Vec<f64> {
        match self.kind {
            Kind::Linear => linear_ticks(self.domain, target),
            Kind::Log => log_ticks(self.domain, target),
        }
    }

    /// Kind, domain and range, for the page's module.
    pub(crate) fn written(&self) -> String {
        let kind = match self.kind {
            Kind::Linear => "linear",
            Kind::Log => "log",
        };
        format!("{kind} {} {} {} {}", self.domain.0, self.domain.1, self.range.0, self.range.1)
    }

    /// Whether a value like this has a place at all: zero has none on a logarithmic scale.
    pub(crate) fn has_place(&self, value: f64) -> bool {
        self.kind == Kind::Linear || value > 0.0
    }

    /// Whether `value` lies within the domain.
    pub(crate) fn holds(&self, value: f64) -> bool {
        value >= self.domain.0 && value <= self.domain.1
    }
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn linear_ticks((low, high): (f64, f64), target: usize) -> Vec<f64> {
    let step = nice_step((high - low) / target.max(1) as f64);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last.min(first + 100)).map(|at| at as f64 * step).collect()
}

/// Powers of ten. With 2 and 5 between them if this gives not many more ticks than `target`; only every n-th
/// power if the powers alone are too many.
fn log_ticks((low, high): (f64, f64), target: usize) -> Vec<f64> {
    let (first, last) = ((low.log10() - 1e-9).floor() as i32, (high.log10() + 1e-9).floor() as i32);
    let powers = usize::try_from(last - first + 1).unwrap_or(1);
    let steps: &[f64] = if powers * ROUND.len() <= target + 4 { &ROUND } else { &ROUND[..1] };
    let inside = |value: &f64| *value >= low * (1.0 - 1e-9) && *value <= high * (1.0 + 1e-9);
    let powers = (first..=last).rev().step_by(powers.div_ceil(target.max(1) + 1));
    let values = powers.flat_map(|power| steps.iter().rev().map(move |step| step * 10f64.powi(power)));
    let mut ticks: Vec<f64> = values.filter(inside).collect();
    ticks.reverse();
    ticks
}

/// The round step not below `rough`.
fn nice_step(rough: f64) -> f64 {
    round_up(rough)
}

/// The smallest multiple of a round step that covers `high`.
fn nice_ceiling(high: f64) -> f64 {
    if high <= 0.0 || !high.is_finite() {
        return 1.0;
    }
    let step = nice_step(high / 5.0);
    (high / step - 1e-9).ceil() * step
}

/// The smallest of 1, 2 and 5 times a power of ten that is not below `value`.
fn round_up(value: f64) -> f64 {
    let power = power_of_ten(value);
    let above = ROUND.iter().map(|step| step * power).find(|step| *step >= value * (1.0 - 1e-9));
    above.unwrap_or(10.0 * power)
}

/// The largest of 1, 2 and 5 times a power of ten that is not above `value`.
pub(crate) fn round_down(value: f64) -> f64 {
    let power = power_of_ten(value);
    let below = ROUND.iter().rev().map(|step| step * power).find(|step| *step <= value * (1.0 + 1e-9));
    below.unwrap_or(power)
}

fn power_of_ten(value: f64) -> f64 {
    if value > 0.0 && value.is_finite() { 10f64.powi(value.log10().floor() as i32) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64]) -> Vec<String> {
        values.iter().map(|value| tick_label(*value)).collect()
    }

    #[test]
    fn a_linear_scale_puts_its_ends_and_its_middle_where_they_belong() {
        let scale = Scale::linear((0.0, 200.0), (100.0, 0.0));
        assert_eq!([0.0, 100.0, 200.0, 500.0].map(|value| scale.at(value)), [100.0, 50.0, 0.0, 0.0]);
        assert_eq!(scale.at(f64::NAN), 100.0);
    }

    #[test]
    fn a_log_scale_gives_each_decade_the_same_room() {
        let scale = Scale::log((0.001, 1.0), (300.0, 0.0));
        for (value, place) in [(0.001, 300.0), (0.01, 200.0), (0.1, 100.0), (1.0, 0.0), (0.0, 300.0)] {
            assert!((scale.at(value) - place).abs() < 1e-9, "{value}");
        }
    }

    #[test]
    fn ticks_are_round_and_inside() {
        let ticks = Scale::linear((0.0, 60.0), (0.0, 1.0)).ticks(6);
        assert_eq!(labels(&ticks), ["0", "10", "20", "30", "40", "50", "60"]);
        let ticks = Scale::linear((0.0, 0.7), (0.0, 1.0)).ticks(5);
        assert_eq!(labels(&ticks), ["0", "0.2", "0.4", "0.6"]);
        let ticks = Scale::log((0.0003, 1.0), (0.0, 1.0)).ticks(4);
        assert_eq!(labels(&ticks), ["0.001", "0.01", "0.1", "1"]);
        let ticks = Scale::log((20.0, 500.0), (0.0, 1.0)).ticks(6);
        assert_eq!(labels(&ticks), ["20", "50", "100", "200", "500"]);
    }

    #[test]
    fn labels_of_small_ticks_have_all_figures_that_the_ticks_have() {
        let ticks = [1e-5, 1.5e-5, 2.5e-5, 5.0 * 1e-5, -3e-5, 0.1 * 3e-4, 0.00015];
        assert_eq!(labels(&ticks), ["1e-5", "1.5e-5", "2.5e-5", "5e-5", "-3e-5", "3e-5", "0.00015"]);
    }

    #[test]
    fn values_over_decades_get_a_log_scale_and_others_start_at_zero() {
        assert_eq!(Scale::fitting((40.0, 430.0), (0.0, 1.0)), Scale::linear((0.0, 500.0), (0.0, 1.0)));
        assert_eq!(Scale::fitting((0.4, 430.0), (0.0, 1.0)), Scale::log((0.2, 500.0), (0.0, 1.0)));
    }

    #[test]
    fn values_below_zero_have_a_place_and_zero_stays_in_sight() {
        assert_eq!(Scale::fitting((-3.0, 4.3), (0.0, 1.0)), Scale::linear((-3.0, 5.0), (0.0, 1.0)));
        assert_eq!(Scale::fitting((-3.7, -1.0), (0.0, 1.0)), Scale::linear((-4.0, 0.0), (0.0, 1.0)));
        assert_eq!(labels(&Scale::fitting((-3.7, -1.0), (0.0, 1.0)).ticks(4)), ["-4", "-3", "-2", "-1", "0"]);
    }

    #[test]
    fn degenerate_domains_still_make_a_scale() {
        for scale in [
            Scale::linear((5.0, 5.0), (0.0, 1.0)),
            Scale::log((0.0, 0.0), (0.0, 1.0)),
            Scale::fitting((f64::INFINITY, f64::NEG_INFINITY), (0.0, 1.0)),
            Scale::fitting((0.0, 0.0), (0.0, 1.0)),
        ] {
            assert!(scale.at(1.0).is_finite());
            assert!(scale.ticks(5).len() < 120);
        }
    }
}

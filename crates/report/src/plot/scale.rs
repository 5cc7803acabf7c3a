//! Scales: they map values to SVG units, and they choose the ticks of an axis.
//!
//! As in other plotting libraries, the *domain* of a scale is the range of its values, and the *range* of a
//! scale is the range of their places in the drawing. A *round* number is 1, 2 or 5 times a power of ten.

pub(crate) use talkpath_measure::figures::text::tick_label;

/// If the largest value is more than 50 times the smallest value, [`Scale::fitting`] is logarithmic. We chose
/// 50 because a linear scale would press most values into a few units at its lower end.
const LOG_RATIO: f64 = 50.0;
/// The round numbers of a decade.
const ROUND_STEPS: [f64; 3] = [1.0, 2.0, 5.0];
/// A relative difference that is only an error of rounding. The logarithm or the quotient of two values that
/// should be equal differs by about 1e-15.
const ROUNDING: f64 = 1e-9;
/// A guard. A scale has about as many ticks as its caller asks for, unless rounding makes the step too small.
const MAX_TICKS: i64 = 100;

/// A linear or logarithmic map from values to SVG units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    kind: ScaleKind,
    /// The smallest and the largest value.
    pub domain: (f64, f64),
    /// The places of the smallest and of the largest value. The first place may be the larger one, because y
    /// grows downwards.
    range: (f64, f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScaleKind {
    Linear,
    Log,
}

impl Scale {
    /// A linear scale. An empty domain becomes one that is 1 long.
    pub(crate) fn linear((low, high): (f64, f64), range: (f64, f64)) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { kind: ScaleKind::Linear, domain: (low, high), range }
    }

    /// A logarithmic scale. Its lowest value must be above zero. An empty domain becomes one decade.
    pub(crate) fn log((low, high): (f64, f64), range: (f64, f64)) -> Self {
        let low = if low > 0.0 { low } else { f64::MIN_POSITIVE };
        let high = if high > low { high } else { low * 10.0 };
        Self { kind: ScaleKind::Log, domain: (low, high), range }
    }

    /// A scale for values from `low` to `high`. If the values span decades, the scale is logarithmic and goes
    /// from a round number to a round number. Otherwise it is linear and contains zero.
    pub(crate) fn fitting((low, high): (f64, f64), range: (f64, f64)) -> Self {
        if low > 0.0 && high / low > LOG_RATIO {
            return Self::log((round_down(low), round_up(high)), range);
        }
        if low < 0.0 {
            let domain_end = if high > 0.0 { tick_ceiling(high) } else { 0.0 };
            return Self::linear((-tick_ceiling(-low), domain_end), range);
        }
        Self::linear((0.0, tick_ceiling(high)), range)
    }

    /// The place of `value`. A value outside the domain has the place of the nearer end. A value that is not
    /// finite has the place of the lowest value.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let (low, high) = self.domain;
        let value = if value.is_finite() { value.clamp(low, high) } else { low };
        let share = match self.kind {
            ScaleKind::Linear => (value - low) / (high - low),
            ScaleKind::Log => (value / low).ln() / (high / low).ln(),
        };
        self.range.0 + share * (self.range.1 - self.range.0)
    }

    /// About `target` round values within the domain, ascending.
    pub(crate) fn ticks(&self, target: usize) -> Vec<f64> {
        match self.kind {
            ScaleKind::Linear => linear_ticks(self.domain, target),
            ScaleKind::Log => log_ticks(self.domain, target),
        }
    }

    /// The scale as text for the page's module: kind, domain and range.
    pub(crate) fn data_attribute(&self) -> String {
        let kind = match self.kind {
            ScaleKind::Linear => "linear",
            ScaleKind::Log => "log",
        };
        format!("{kind} {} {} {} {}", self.domain.0, self.domain.1, self.range.0, self.range.1)
    }

    /// Whether the scale can show `value`. A logarithmic scale cannot show zero.
    pub(crate) fn can_show(&self, value: f64) -> bool {
        self.kind == ScaleKind::Linear || value > 0.0
    }

    /// Whether `value` lies within the domain.
    pub(crate) fn contains(&self, value: f64) -> bool {
        value >= self.domain.0 && value <= self.domain.1
    }
}

/// Returns the multiples of a round number.
fn linear_ticks((low, high): (f64, f64), target: usize) -> Vec<f64> {
    let step = round_up((high - low) / target.max(1) as f64);
    let first = (low / step - ROUNDING).ceil() as i64;
    let last = (high / step + ROUNDING).floor() as i64;
    (first..=last.min(first + MAX_TICKS)).map(|multiple| multiple as f64 * step).collect()
}

/// Returns powers of ten. If the decades are few, the ticks have 2 and 5 between the powers. If the powers
/// alone are too many, the ticks have only each second power, or each third, and so on.
fn log_ticks((low, high): (f64, f64), target: usize) -> Vec<f64> {
    let first_power = (low.log10() - ROUNDING).floor() as i32;
    let last_power = (high.log10() + ROUNDING).floor() as i32;
    let power_count = usize::try_from(last_power - first_power + 1).unwrap_or(1);
    // A few ticks more than the target are better than the powers alone.
    let has_room = power_count * ROUND_STEPS.len() <= target + 4;
    let steps: &[f64] = if has_room { &ROUND_STEPS } else { &ROUND_STEPS[..1] };
    let stride = power_count.div_ceil(target.max(1) + 1);
    let mut ticks = Vec::new();
    // The largest power always has a tick, so the ticks are made downwards.
    for power in (first_power..=last_power).rev().step_by(stride) {
        for step in steps.iter().rev() {
            let tick = step * 10f64.powi(power);
            if tick >= low * (1.0 - ROUNDING) && tick <= high * (1.0 + ROUNDING) {
                ticks.push(tick);
            }
        }
    }
    ticks.reverse();
    ticks
}

/// Returns the first tick that is not below `high`, on a scale from zero with about five ticks.
fn tick_ceiling(high: f64) -> f64 {
    if high <= 0.0 || !high.is_finite() {
        return 1.0;
    }
    let step = round_up(high / 5.0);
    (high / step - ROUNDING).ceil() * step
}

/// Returns the smallest round number that is not below `value`.
fn round_up(value: f64) -> f64 {
    let power = power_of_ten(value);
    let above = ROUND_STEPS.iter().map(|step| step * power).find(|round| *round >= value * (1.0 - ROUNDING));
    above.unwrap_or(10.0 * power)
}

/// Returns the largest round number that is not above `value`.
pub(crate) fn round_down(value: f64) -> f64 {
    let power = power_of_ten(value);
    let steps = ROUND_STEPS.iter().rev();
    let below = steps.map(|step| step * power).find(|round| *round <= value * (1.0 + ROUNDING));
    below.unwrap_or(power)
}

/// Returns the largest power of ten that is not above `value`. Returns 1 if there is none.
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
    fn a_linear_scale_is_proportional_and_clamps_values_outside_its_domain() {
        let scale = Scale::linear((0.0, 200.0), (100.0, 0.0));
        assert_eq!([0.0, 100.0, 200.0, 500.0].map(|value| scale.at(value)), [100.0, 50.0, 0.0, 0.0]);
        assert_eq!(scale.at(f64::NAN), 100.0);
    }

    #[test]
    fn a_log_scale_gives_each_decade_the_same_length() {
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
    fn labels_of_small_ticks_have_all_digits_of_the_ticks() {
        let ticks = [1e-5, 1.5e-5, 2.5e-5, 5.0 * 1e-5, -3e-5, 0.1 * 3e-4, 0.00015];
        assert_eq!(labels(&ticks), ["1e-5", "1.5e-5", "2.5e-5", "5e-5", "-3e-5", "3e-5", "0.00015"]);
    }

    #[test]
    fn values_over_decades_get_a_log_scale_and_others_start_at_zero() {
        assert_eq!(Scale::fitting((40.0, 430.0), (0.0, 1.0)), Scale::linear((0.0, 500.0), (0.0, 1.0)));
        assert_eq!(Scale::fitting((0.4, 430.0), (0.0, 1.0)), Scale::log((0.2, 500.0), (0.0, 1.0)));
    }

    #[test]
    fn a_scale_for_values_below_zero_contains_zero() {
        assert_eq!(Scale::fitting((-3.0, 4.3), (0.0, 1.0)), Scale::linear((-3.0, 5.0), (0.0, 1.0)));
        assert_eq!(Scale::fitting((-3.7, -1.0), (0.0, 1.0)), Scale::linear((-4.0, 0.0), (0.0, 1.0)));
        assert_eq!(labels(&Scale::fitting((-3.7, -1.0), (0.0, 1.0)).ticks(4)), ["-4", "-3", "-2", "-1", "0"]);
    }

    #[test]
    fn an_empty_or_infinite_domain_still_makes_a_scale() {
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

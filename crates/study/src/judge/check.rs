//! Judges one check under one assumption set.
//!
//! A check holds if the medians of its operands fulfil it. Each median has a confidence interval
//! ([`crate::stats`]). If the check would have the same answer for all values within the intervals, the
//! answer is certain.
//!
//! A check that compares arenas fails only for certain. Two arenas differ if their medians differ by more
//! than the tolerance, and if any two values within the intervals of the medians differ by more than the
//! tolerance, too. From 6 repetitions on, the interval is that of the order statistics. Of 5 repetitions it
//! is their range. With fewer repetitions the tolerance alone decides. The intervals assume nothing about the
//! distribution of the values, nor that both arenas have the same distribution.
//!
//! A check of a share of repetitions is the one that single repetitions decide: its figure is their share.

use std::collections::BTreeMap;

use super::cells::{CellKey, JudgedCells};
use crate::arena::ArenaName;
use crate::claim::{Bound, Check, ClaimKind, Formula, Operand, Tolerance, points};
use crate::fit::{fit, slope};
use crate::metric::Units;
use crate::outcome::{CheckOutcome, HeldBy, Value};
use crate::reuse::Singles;
use crate::stats::{MIN_VALUES_FOR_SPREAD, share_interval};

/// Judges `check` under the set with index `assumption`. A check that compares arenas reads all of `arenas`,
/// any other check reads the first arena.
pub(super) fn judge_check(
    check: &Check,
    arenas: &[ArenaName],
    assumption: usize,
    cells: &JudgedCells<'_>,
) -> CheckOutcome {
    let compared = compared(check, arenas);
    let mut values: Vec<Value> = Vec::new();
    for Compared { operand, arena } in &compared {
        values
            .extend(cells.value(CellKey { arena: *arena, assumption, cell: &operand.cell }, &operand.metric));
    }
    let singles = match count_singles(check.kind, &compared, assumption, cells) {
        Some(singles) => singles,
        None if values.len() == compared.len() => cells.earlier_singles(check.kind, &values, assumption),
        None => Singles::default(),
    };
    let answer = match check.kind {
        _ if values.len() != compared.len() => Answer::default(),
        ClaimKind::Share { bound, .. } => answer_by_share(bound, singles),
        kind => answer_by_medians(kind, &values),
    };
    CheckOutcome {
        certain: answer.is_certain,
        figure: answer.figure,
        ci95: answer.interval.map(|interval| (interval.low, interval.high)),
        // The operands are listed only if a value is missing: otherwise the values name them.
        compared: if values.len() == compared.len() { Vec::new() } else { check.operands.clone() },
        values,
        holds: answer.holds,
        held_by: answer.held_by,
        single_hits: singles.hits,
        single_runs: singles.runs,
        ..check_without_values(check, &cells.study.units)
    }
}

/// Describes a check that no run has judged.
pub(super) fn check_without_values(check: &Check, units: &Units) -> CheckOutcome {
    let metric = check.operands.first().map(|operand| operand.metric.clone()).unwrap_or_default();
    CheckOutcome {
        name: check.name.clone(),
        own_unit: units.get(&metric).copied(),
        metric,
        must: check.kind,
        basis: check.basis,
        one_sided: check.one_sided.clone(),
        values: Vec::new(),
        compared: check.operands.clone(),
        figure: None,
        ci95: None,
        holds: None,
        held_by: None,
        certain: false,
        single_hits: 0,
        single_runs: 0,
    }
}

/// An operand in the arena where a check reads it.
struct Compared<'a> {
    arena: ArenaName,
    operand: &'a Operand,
}

/// Lists what `check` compares, in the order of the comparison.
fn compared<'a>(check: &'a Check, arenas: &[ArenaName]) -> Vec<Compared<'a>> {
    if let ClaimKind::Agree { .. } = check.kind {
        let Some(operand) = check.operands.first() else { return Vec::new() };
        let mut arenas = arenas.to_vec();
        // The order of arenas is from the model to the world.
        arenas.sort_unstable();
        arenas.into_iter().map(|arena| Compared { arena, operand }).collect()
    } else {
        let Some(&arena) = arenas.first() else { return Vec::new() };
        check.operands.iter().map(|operand| Compared { arena, operand }).collect()
    }
}

/// What the medians answer to a check.
#[derive(Default)]
pub(super) struct Answer {
    /// Whether the check holds. `None` if a value is missing, or if the values do not make the figure.
    pub(super) holds: Option<bool>,
    /// The reason why arenas agree. `None` if they do not, and for any other check.
    pub(super) held_by: Option<HeldBy>,
    /// The one figure that the check makes of the medians.
    pub(super) figure: Option<f64>,
    /// The confidence interval of that figure.
    pub(super) interval: Option<Interval>,
    /// Whether all values within the confidence intervals give the same answer.
    pub(super) is_certain: bool,
}

/// Judges a check of this `kind` whose operands all have a value.
pub(super) fn answer_by_medians(kind: ClaimKind, values: &[Value]) -> Answer {
    let medians: Vec<f64> = values.iter().map(|value| value.median).collect();
    let interval = figure_interval(kind, values);
    let medians_hold = kind.holds(&medians);
    let held_by = held_by(kind, values, medians_hold);
    let holds = medians_hold.map(|medians_hold| medians_hold || held_by.is_some());
    Answer {
        holds,
        held_by,
        figure: kind.figure(&medians),
        interval,
        is_certain: holds.is_some_and(|holds| is_certain(kind, values, interval, holds)),
    }
}

/// Judges a check of the share of repetitions that have an order. It has no answer if none were counted.
fn answer_by_share(bound: Bound, singles: Singles) -> Answer {
    let Singles { hits, runs } = singles;
    if runs == 0 {
        return Answer::default();
    }
    let share = hits as f64 / runs as f64;
    let holds = bound.holds(share);
    let interval = share_interval(hits, runs).map(Interval::from);
    Answer {
        holds: Some(holds),
        held_by: None,
        figure: Some(share),
        interval,
        is_certain: interval.is_some_and(|interval| is_bound_certain(bound, interval, holds)),
    }
}

/// Returns the reason why two arenas agree. `medians_hold` says whether their medians lie within the
/// tolerance.
fn held_by(kind: ClaimKind, values: &[Value], medians_hold: Option<bool>) -> Option<HeldBy> {
    let ClaimKind::Agree { within } = kind else { return None };
    if medians_hold? {
        return Some(HeldBy::Tolerance);
    }
    let [model, .., measure] = values else { return None };
    if measured_interval(model)?.is_far_from(measured_interval(measure)?, within) {
        None
    } else {
        Some(HeldBy::Spread)
    }
}

/// Counts in how many single repetitions the check holds. Repetition k of one cell is compared with
/// repetition k of the other cells. Pooled orders count together. Returns `None` if a cell has no samples.
fn count_singles(
    kind: ClaimKind,
    compared: &[Compared<'_>],
    assumption: usize,
    cells: &JudgedCells<'_>,
) -> Option<Singles> {
    let mut figures_of_operands: Vec<BTreeMap<u64, f64>> = Vec::new();
    for Compared { operand, arena } in compared {
        let samples = cells.samples(CellKey { arena: *arena, assumption, cell: &operand.cell })?;
        figures_of_operands.push(samples.values_by_repetition(&operand.metric));
    }
    let compared_at_once = match kind {
        ClaimKind::Share { of: Some(of), .. } => of,
        _ => figures_of_operands.len(),
    };
    let mut singles = Singles::default();
    for figures_at_once in figures_of_operands.chunks(compared_at_once.max(1)) {
        for repetition in figures_at_once.first()?.keys() {
            let values: Option<Vec<f64>> =
                figures_at_once.iter().map(|figures| figures.get(repetition).copied()).collect();
            let Some(values) = values else { continue };
            singles.runs += 1;
            if kind.holds(&values) == Some(true) {
                singles.hits += 1;
            }
        }
    }
    (!figures_of_operands.is_empty()).then_some(singles)
}

/// Computes the confidence interval of the one figure that a check makes of the medians.
///
/// - A median has its own interval.
/// - A ratio, a difference or an agreement has the range of all figures that the intervals of the two medians
///   allow. This range is wider than a 95 % interval.
/// - A line has the interval of its fit to the medians.
fn figure_interval(kind: ClaimKind, values: &[Value]) -> Option<Interval> {
    let points = || {
        let medians: Vec<f64> = values.iter().map(|value| value.median).collect();
        points(&medians)
    };
    match kind {
        ClaimKind::Figure { formula: Formula::Median, .. } => confidence_interval(values.first()?),
        ClaimKind::Figure { formula: Formula::Ratio, .. } => {
            let divisor = confidence_interval(values.last()?)?;
            // A ratio has no bounds if its divisor may be zero.
            if divisor.contains(0.0) {
                return None;
            }
            Interval::of_pairs(values, confidence_interval, |pair| Formula::Ratio.compute(pair))
        }
        ClaimKind::Figure { formula: Formula::Difference, .. } => {
            Interval::of_pairs(values, confidence_interval, |pair| Formula::Difference.compute(pair))
        }
        ClaimKind::Figure { formula: Formula::Slope, .. } => slope(&points())?.ci95.map(Interval::from),
        ClaimKind::Figure { formula: Formula::RSquared, .. } => {
            fit(&points())?.r_squared_ci95.map(Interval::from)
        }
        ClaimKind::Agree { .. } => Interval::of_pairs(values, measured_interval, |pair| kind.figure(pair)),
        ClaimKind::Rising | ClaimKind::Falling | ClaimKind::Share { .. } | ClaimKind::Same { .. } => None,
    }
}

/// Returns whether all values within the confidence intervals give the answer `holds`. `figure` is the
/// interval of the check's one figure.
fn is_certain(kind: ClaimKind, values: &[Value], figure: Option<Interval>, holds: bool) -> bool {
    match kind {
        ClaimKind::Figure { bound, .. } | ClaimKind::Share { bound, .. } => {
            figure.is_some_and(|figure| is_bound_certain(bound, figure, holds))
        }
        ClaimKind::Rising => {
            confidence_intervals(values).is_some_and(|rising| is_order_certain(&rising, holds))
        }
        ClaimKind::Falling => confidence_intervals(values).is_some_and(|mut falling| {
            falling.reverse();
            is_order_certain(&falling, holds)
        }),
        ClaimKind::Same { within } => confidence_intervals(values)
            .is_some_and(|intervals| is_sameness_certain(&intervals, within, holds)),
        ClaimKind::Agree { within } => {
            let [model, .., measure] = values else { return false };
            let (Some(model), Some(measure)) = (measured_interval(model), measured_interval(measure)) else {
                return false;
            };
            if holds { model.is_near(measure, within) } else { model.is_far_from(measure, within) }
        }
    }
}

/// Returns whether the whole interval of a figure lies within `bound` (if the check `holds`) or outside of
/// it.
fn is_bound_certain(bound: Bound, figure: Interval, holds: bool) -> bool {
    let (least, most) = bound.ends();
    if holds { figure.low >= least && figure.high <= most } else { figure.high < least || figure.low > most }
}

/// Returns whether the answer to a rising order is certain. The order holds for certain if the intervals of
/// no two neighbours touch. It fails for certain if two neighbours fall, or if both are the same single
/// value.
fn is_order_certain(rising: &[Interval], holds: bool) -> bool {
    if holds {
        rising.windows(2).all(|pair| pair[0].high < pair[1].low)
    } else {
        rising.windows(2).any(|pair| pair[0].low >= pair[1].high)
    }
}

/// Returns whether it is certain that all values are within the tolerance of the first (if the check
/// `holds`), or that one value is not.
fn is_sameness_certain(intervals: &[Interval], within: Tolerance, holds: bool) -> bool {
    let [first, others @ ..] = intervals else { return false };
    if holds {
        others.iter().all(|other| other.is_near(*first, within))
    } else {
        others.iter().any(|other| other.is_far_from(*first, within))
    }
}

/// The interval in which a figure or a median lies.
#[derive(Clone, Copy)]
pub(super) struct Interval {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl From<(f64, f64)> for Interval {
    fn from((low, high): (f64, f64)) -> Self {
        Self { low, high }
    }
}

impl Interval {
    /// Returns the range of the figures that `figure_of` makes of the ends of the intervals of the first and
    /// the last value.
    fn of_pairs(
        values: &[Value],
        interval_of: impl Fn(&Value) -> Option<Self>,
        figure_of: impl Fn(&[f64]) -> Option<f64>,
    ) -> Option<Self> {
        let intervals: Vec<Self> = values.iter().map(interval_of).collect::<Option<_>>()?;
        let [first, .., last] = intervals.as_slice() else { return None };
        let mut figures = Vec::new();
        for first_end in [first.low, first.high] {
            for last_end in [last.low, last.high] {
                figures.push(figure_of(&[first_end, last_end])?);
            }
        }
        let low = figures.iter().copied().reduce(f64::min)?;
        let high = figures.iter().copied().reduce(f64::max)?;
        Some(Self { low, high })
    }

    /// Returns whether `value` lies within the interval, its ends included.
    fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Returns whether every value of the interval is within the tolerance of every value of `reference`. A
    /// relative tolerance is a share of the reference below 100 %, so that the ends of the intervals decide.
    fn is_near(self, reference: Self, within: Tolerance) -> bool {
        self.high - reference.low <= within.around(reference.low)
            && reference.high - self.low <= within.around(reference.high)
    }

    /// Returns whether no value of the interval is within the tolerance of any value of `reference`.
    fn is_far_from(self, reference: Self, within: Tolerance) -> bool {
        self.low - reference.high > within.around(reference.high)
            || reference.low - self.high > within.around(reference.low)
    }
}

/// Returns the confidence interval of a median, from 6 repetitions on.
fn confidence_interval(value: &Value) -> Option<Interval> {
    value.ci95.map(Interval::from)
}

/// Returns the confidence intervals of all medians, or `None` if a median has no interval.
fn confidence_intervals(values: &[Value]) -> Option<Vec<Interval>> {
    values.iter().map(confidence_interval).collect()
}

/// Returns the interval of a median that is compared with the median of another arena. Of 5 repetitions it is
/// their range.
fn measured_interval(value: &Value) -> Option<Interval> {
    let range = Interval { low: value.min, high: value.max };
    confidence_interval(value).or_else(|| (value.n >= MIN_VALUES_FOR_SPREAD).then_some(range))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Tolerance;
    use crate::stats::median;

    const WITHIN: ClaimKind = ClaimKind::Agree { within: Tolerance::Relative(0.05) };

    fn value(arena: ArenaName, values: &[f64]) -> Value {
        let found = median(values).expect("values");
        Value {
            cell: String::new(),
            arena,
            metric: String::new(),
            own_unit: None,
            n: found.n,
            median: found.median,
            ci95: found.ci95,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }

    /// The reason of an agreement within 5 %, and whether the answer is certain.
    fn agreement(model: &[f64], measure: &[f64]) -> (Option<HeldBy>, bool) {
        let values = [value(ArenaName::Sim, model), value(ArenaName::Emu, measure)];
        let answer = answer_by_medians(WITHIN, &values);
        (answer.held_by, answer.is_certain)
    }

    #[test]
    fn a_difference_beyond_tolerance_and_spread_is_one() {
        let model = [100.0, 100.5, 101.0, 99.5, 99.0];
        assert_eq!(agreement(&model, &[115.0, 112.0, 118.0, 113.0, 120.0]), (None, true));
        assert_eq!(agreement(&[100.0; 20], &[94.0, 94.1, 94.2, 94.3, 94.4, 94.5]), (None, true));
        // One repetition beside the others, which touches the model's: two states, and no proof of a
        // difference.
        assert_eq!(agreement(&model, &[115.0, 104.0, 118.0, 113.0, 120.0]), (Some(HeldBy::Spread), false));
    }

    #[test]
    fn a_relative_tolerance_is_a_share_of_the_value_that_is_compared() {
        // 95.5 within 5 % of it is 100.3, though 5 % of the median, 60, is 3.
        assert_eq!(agreement(&[100.0; 5], &[50.0, 55.0, 60.0, 70.0, 95.5]), (Some(HeldBy::Spread), false));
    }

    #[test]
    fn medians_within_the_tolerance_agree_whatever_the_spread() {
        assert_eq!(agreement(&[100.0; 6], &[101.0; 5]), (Some(HeldBy::Tolerance), true));
        let wide = [60.0, 80.0, 101.0, 130.0, 150.0];
        assert_eq!(agreement(&[100.0; 6], &wide), (Some(HeldBy::Tolerance), false));
    }

    #[test]
    fn fewer_than_five_repetitions_have_no_spread_to_lean_on() {
        let wide = [60.0, 112.0, 115.0, 130.0];
        assert_eq!(agreement(&[100.0; 20], &wide), (None, false));
        assert_eq!(agreement(&[100.0; 20], &[112.0]), (None, false));
    }

    #[test]
    fn a_share_of_repetitions_is_undecided_while_its_interval_has_the_bound() {
        let answer = |hits, runs| {
            let answer = answer_by_share(Bound::AtLeast { value: 0.5 }, Singles { hits, runs });
            (answer.holds, answer.is_certain)
        };
        assert_eq!(answer(29, 30), (Some(true), true));
        assert_eq!(answer(16, 30), (Some(true), false));
        assert_eq!(answer(14, 30), (Some(false), false));
        assert_eq!(answer(3, 30), (Some(false), true));
        assert_eq!(answer(0, 0), (None, false));
    }

    #[test]
    fn what_is_the_same_in_every_run_does_not_rise_for_certain() {
        let interval = |high: f64| Interval { low: 0.0, high };
        assert!(is_order_certain(&[interval(0.0), interval(0.0)], false));
        assert!(!is_order_certain(&[interval(0.1), interval(0.1)], false));
    }

    #[test]
    fn the_interval_of_an_agreement_is_all_that_both_medians_allow() {
        let values =
            [value(ArenaName::Sim, &[98.0, 99.0, 100.0, 101.0, 102.0]), value(ArenaName::Emu, &[100.0; 5])];
        let Interval { low, high } = figure_interval(WITHIN, &values).expect("an interval");
        assert!((low + 0.02).abs() < 1e-12 && (high - 0.02).abs() < 1e-12, "{low} {high}");
    }
}

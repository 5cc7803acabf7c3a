//! One check under one assumption set.
//!
//! Two arenas differ if their medians differ by more than the tolerance, and if any two values within the
//! medians' intervals would too. The interval is that of the order statistics ([`crate::stats`]), from 6
//! repetitions on; of 5 it is their range. They assume nothing about the distribution, nor that both arenas
//! have the same. With fewer repetitions the tolerance alone decides.

use std::collections::BTreeMap;

use super::ran::Ran;
use crate::arena::ArenaName;
use crate::claim::{Bound, Check, ClaimKind, Figure, Operand, Tolerance, pairs};
use crate::fit::{fit, slope};
use crate::outcome::{CheckOutcome, HeldBy, Value};
use crate::stats::LEAST_FOR_SPREAD;

/// The outcome of `check`: from each of `arenas` if it compares arenas, else from the first.
pub(super) fn judge_check(
    check: &Check,
    arenas: &[ArenaName],
    assumption: usize,
    ran: &Ran<'_>,
) -> CheckOutcome {
    let places = places(check, arenas);
    let value =
        |place: &Place<'_>| ran.value(&place.operand.cell, place.arena, assumption, &place.operand.metric);
    let values: Vec<Value> = places.iter().filter_map(value).collect();
    let is_whole = values.len() == places.len();
    let medians: Vec<f64> = values.iter().map(|value| value.median).collect();
    let within = check.kind.holds(&medians).filter(|_| is_whole);
    let held_by = held_by(check.kind, &values, within);
    let holds = within.map(|within| within || held_by.is_some());
    let singles = singles(check.kind, &places, assumption, ran);
    let ci95 = if is_whole { figure_interval(check.kind, &values) } else { None };
    let metric = check.operands.first().map(|operand| operand.metric.clone()).unwrap_or_default();
    CheckOutcome {
        name: check.name.clone(),
        own_unit: ran.study.units.get(&metric).copied(),
        metric,
        must: check.kind,
        basis: check.basis,
        one_sided: check.one_sided.clone(),
        certain: holds.is_some_and(|holds| is_certain(check.kind, &values, ci95, holds)),
        figure: check.kind.figure(&medians).filter(|_| is_whole),
        ci95,
        compared: if is_whole { Vec::new() } else { check.operands.clone() },
        values,
        holds,
        held_by,
        single_hits: singles.hits,
        single_runs: singles.runs,
    }
}

/// By what arenas agree, if they do; `within` says whether their medians lie within the tolerance.
fn held_by(kind: ClaimKind, values: &[Value], within: Option<bool>) -> Option<HeldBy> {
    let ClaimKind::Agree { within: tolerance } = kind else { return None };
    if within? {
        return Some(HeldBy::Tolerance);
    }
    let [model, .., measure] = values else { return None };
    let is_apart = is_far_for_certain(interval(measure)?, interval(model)?, tolerance);
    (!is_apart).then_some(HeldBy::Spread)
}

/// Where the median of one arena lies, for a comparison with another's.
fn interval(value: &Value) -> Option<(f64, f64)> {
    value.ci95.or_else(|| (value.n >= LEAST_FOR_SPREAD).then_some((value.min, value.max)))
}

/// Something that is compared, where it ran.
struct Place<'a> {
    arena: ArenaName,
    operand: &'a Operand,
}

/// Where each thing that is compared ran.
fn places<'a>(check: &'a Check, arenas: &[ArenaName]) -> Vec<Place<'a>> {
    match check.kind {
        ClaimKind::Agree { .. } => {
            let mut arenas = arenas.to_vec();
            // From the model to the world.
            arenas.sort_unstable();
            let Some(operand) = check.operands.first() else { return Vec::new() };
            arenas.into_iter().map(|arena| Place { arena, operand }).collect()
        }
        _ => {
            let Some(&arena) = arenas.first() else { return Vec::new() };
            check.operands.iter().map(|operand| Place { arena, operand }).collect()
        }
    }
}

/// Single repetitions in which a check could hold by itself.
#[derive(Default)]
struct Singles {
    /// In which it does.
    hits: u64,
    runs: u64,
}

/// Repetition k of one cell is held against repetition k of the other, if both have a figure.
fn singles(kind: ClaimKind, places: &[Place<'_>], assumption: usize, ran: &Ran<'_>) -> Singles {
    let column = |Place { arena, operand }: &Place<'_>| {
        Some(ran.get(&operand.cell, *arena, assumption)?.figures(&operand.metric))
    };
    let columns: Option<Vec<BTreeMap<u64, f64>>> = places.iter().map(column).collect();
    let Some(columns) = columns else { return Singles::default() };
    let Some(first) = columns.first() else { return Singles::default() };
    let values =
        |run: &u64| columns.iter().map(|column| column.get(run).copied()).collect::<Option<Vec<f64>>>();
    let whole: Vec<Vec<f64>> = first.keys().filter_map(values).collect();
    let hits = whole.iter().filter(|values| kind.holds(values) == Some(true)).count();
    Singles { hits: hits as u64, runs: whole.len() as u64 }
}

/// The interval of the check's one figure. Of a median its own; of a ratio, a difference or an agreement all
/// that the two medians' intervals allow, which is wider than 95 %; of a line that of its fit to the medians.
fn figure_interval(kind: ClaimKind, values: &[Value]) -> Option<(f64, f64)> {
    let medians = || values.iter().map(|value| value.median).collect::<Vec<f64>>();
    let corners = |of: &dyn Fn(&[f64]) -> Option<f64>| {
        let of_median =
            if matches!(kind, ClaimKind::Agree { .. }) { interval } else { |value: &Value| value.ci95 };
        let ends: Vec<[f64; 2]> = values
            .iter()
            .map(|value| of_median(value).map(|(low, high)| [low, high]))
            .collect::<Option<_>>()?;
        let [first, .., second] = ends.as_slice() else { return None };
        let mut found = Vec::new();
        for a in first {
            for b in second {
                found.push(of(&[*a, *b])?);
            }
        }
        Some((found.iter().copied().reduce(f64::min)?, found.iter().copied().reduce(f64::max)?))
    };
    match kind {
        ClaimKind::Figure { of: Figure::Median, .. } => values.first()?.ci95,
        ClaimKind::Figure { of: Figure::Ratio, .. } => {
            // A divisor whose interval reaches zero bounds nothing.
            let (low, high) = values.last()?.ci95?;
            if low <= 0.0 && high >= 0.0 { None } else { corners(&|pair| Figure::Ratio.of(pair)) }
        }
        ClaimKind::Figure { of, .. } => match of {
            Figure::Slope => slope(&pairs(&medians()))?.1,
            Figure::RSquared => fit(&pairs(&medians()))?.r_squared_ci95,
            _ => corners(&|pair| of.of(pair)),
        },
        ClaimKind::Agree { .. } => corners(&|pair| kind.figure(pair)),
        ClaimKind::Rising | ClaimKind::Falling | ClaimKind::Same { .. } => None,
    }
}

/// Whether the answer is the same everywhere within the intervals.
fn is_certain(kind: ClaimKind, values: &[Value], ci95: Option<(f64, f64)>, holds: bool) -> bool {
    let bounds = || values.iter().map(|value| value.ci95).collect::<Option<Vec<(f64, f64)>>>();
    match kind {
        ClaimKind::Figure { bound, .. } => ci95.is_some_and(|it| is_bound_certain(bound, it, holds)),
        ClaimKind::Rising => bounds().is_some_and(|bounds| ordered(&bounds, holds)),
        ClaimKind::Falling => bounds().is_some_and(|mut bounds| {
            bounds.reverse();
            ordered(&bounds, holds)
        }),
        ClaimKind::Same { within } => bounds().is_some_and(|bounds| {
            bounds[1..].iter().all(|other| is_near_for_certain(bounds[0], *other, within)) && holds
                || !holds && bounds[1..].iter().any(|other| is_far_for_certain(bounds[0], *other, within))
        }),
        ClaimKind::Agree { within } => {
            let [model, .., measure] = values else { return false };
            interval(model).zip(interval(measure)).is_some_and(|(model, measure)| match holds {
                true => is_near_for_certain(measure, model, within),
                false => is_far_for_certain(measure, model, within),
            })
        }
    }
}

fn is_bound_certain(bound: Bound, (low, high): (f64, f64), holds: bool) -> bool {
    let (least, most) = bound.ends();
    if holds { low >= least && high <= most } else { high < least || low > most }
}

/// Whether every value of `other` is within the tolerance of every value of `base`. A relative tolerance is a
/// share of the base's value, and below 100 %, so that the ends of the intervals decide.
fn is_near_for_certain(base: (f64, f64), other: (f64, f64), within: Tolerance) -> bool {
    other.1 - base.0 <= within.around(base.0) && base.1 - other.0 <= within.around(base.1)
}

/// Whether no value of `other` is within the tolerance of one of `base`.
fn is_far_for_certain(base: (f64, f64), other: (f64, f64), within: Tolerance) -> bool {
    other.0 - base.1 > within.around(base.1) || base.0 - other.1 > within.around(base.0)
}

/// A rising order holds for certain if no two neighbours' intervals touch, and fails for certain if two lie
/// the other way round or are one and the same value.
fn ordered(bounds: &[(f64, f64)], holds: bool) -> bool {
    if holds {
        bounds.windows(2).all(|pair| pair[0].1 < pair[1].0)
    } else {
        bounds.windows(2).any(|pair| pair[0].0 >= pair[1].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Tolerance;
    use crate::stats::median;

    const WITHIN: ClaimKind = ClaimKind::Agree { within: Tolerance::Relative(0.05) };

    fn value(arena: ArenaName, values: &[f64]) -> Value {
        let found = median(values).expect("values");
        let fold = |pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick).unwrap_or(0.0);
        Value {
            cell: String::new(),
            arena,
            metric: String::new(),
            own_unit: None,
            n: found.n,
            median: found.median,
            ci95: found.ci95,
            min: fold(f64::min),
            max: fold(f64::max),
        }
    }

    /// What carries an agreement within 5 %, and whether the answer is the same anywhere within the
    /// intervals.
    fn agreement(model: &[f64], measure: &[f64]) -> (Option<HeldBy>, bool) {
        let values = [value(ArenaName::Sim, model), value(ArenaName::Emu, measure)];
        let within = WITHIN.holds(&[values[0].median, values[1].median]);
        let held_by = held_by(WITHIN, &values, within);
        (held_by, is_certain(WITHIN, &values, None, held_by.is_some()))
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
    fn what_is_the_same_in_every_run_does_not_rise_for_certain() {
        assert!(ordered(&[(0.0, 0.0), (0.0, 0.0)], false));
        assert!(!ordered(&[(0.0, 0.1), (0.0, 0.1)], false));
    }

    #[test]
    fn the_interval_of_an_agreement_is_all_that_both_medians_allow() {
        let values =
            [value(ArenaName::Sim, &[98.0, 99.0, 100.0, 101.0, 102.0]), value(ArenaName::Emu, &[100.0; 5])];
        let (low, high) = figure_interval(WITHIN, &values).expect("an interval");
        assert!((low + 0.02).abs() < 1e-12 && (high - 0.02).abs() < 1e-12, "{low} {high}");
    }
}

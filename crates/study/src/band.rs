//! The band of a trace: between which values the line of a flow or link lies in most repetitions.
//!
//! A figure shows the line of one repetition, as the publication does. The band beside it shows whether that
//! repetition is a usual one.

use serde::{Deserialize, Serialize};

use crate::stretch::Stretch;

/// The band has a point at the beginning of a stretch and after each of this many steps. We chose 100 because
/// a figure of 100 s then has a point each second.
const STEP_COUNT: usize = 100;
/// The fewest repetitions with a band. The confidence interval of a median needs as many.
const MIN_REPETITIONS: usize = 6;
/// The share of the repetitions that lie above the band, and the share that lie below it. We chose 0.05 so
/// that one unusual repetition of twenty does not widen the band.
const SHARE_OUTSIDE: f64 = 0.05;

/// The band of one flow or link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceBand {
    /// The name of the flow or link.
    pub entity: String,
    /// The number of repetitions behind the band.
    pub runs: u64,
    /// The points of the band in the order of time. Each holds until the next.
    pub points: Vec<BandPoint>,
}

/// A band at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BandPoint {
    /// The moment, in s of run time.
    pub at_s: f64,
    /// The value below which a twentieth of the repetitions lie.
    pub low: f64,
    /// The value above which a twentieth of the repetitions lie.
    pub high: f64,
}

/// Returns whether figures of this series have a band. Windows have none: each swings by itself, so a band of
/// many repetitions would only say that every window is somewhere between the smallest and the largest.
pub(crate) fn is_banded(series: &str) -> bool {
    matches!(series, "queue" | "goodput")
}

/// Returns the value of a line at each step of `stretch`. The line has the value of its first point before
/// that point. Returns nothing if the line has no point.
pub(crate) fn at_steps(points: &[(f64, f64)], stretch: Stretch) -> Vec<f64> {
    let value_at = |now_s: f64| {
        let points_until_now = points.partition_point(|(at_s, _)| *at_s <= now_s);
        points.get(points_until_now.saturating_sub(1)).map(|(_, value)| *value)
    };
    (0..=STEP_COUNT).filter_map(|step| value_at(step_time_s(stretch, step))).collect()
}

/// Returns the band of repetitions whose lines have these values at the steps of `stretch`. The band covers
/// the part of the stretch that is `shown`. Returns `None` if there are too few repetitions.
pub(crate) fn band(
    entity: &str,
    repetitions: &[&[f64]],
    stretch: Stretch,
    shown: Stretch,
) -> Option<TraceBand> {
    if repetitions.len() < MIN_REPETITIONS {
        return None;
    }
    let mut points = Vec::new();
    for step in 0..=STEP_COUNT {
        let at_s = step_time_s(stretch, step);
        if shown.holds(at_s) {
            points
                .extend(band_point(at_s, repetitions.iter().filter_map(|values| values.get(step).copied())));
        }
    }
    Some(TraceBand { entity: entity.to_owned(), runs: repetitions.len() as u64, points })
}

fn band_point(at_s: f64, values: impl Iterator<Item = f64>) -> Option<BandPoint> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let outside = (SHARE_OUTSIDE * sorted.len() as f64) as usize;
    let highest = sorted.len().checked_sub(outside + 1)?;
    Some(BandPoint { at_s, low: sorted[outside], high: sorted[highest] })
}

fn step_time_s(stretch: Stretch, step: usize) -> f64 {
    stretch.from + (stretch.to - stretch.from) * step as f64 / STEP_COUNT as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_leaves_out_a_twentieth_at_either_end_and_needs_six_runs() {
        let runs: Vec<Vec<f64>> = (0..40).map(|run| vec![f64::from(run); STEP_COUNT + 1]).collect();
        let runs: Vec<&[f64]> = runs.iter().map(Vec::as_slice).collect();
        let (stretch, shown) = (Stretch { from: 0.0, to: 10.0 }, Stretch { from: 2.0, to: 4.0 });
        let found = band("wan", &runs, stretch, shown).expect("a band");
        assert_eq!((found.runs, found.points.len()), (40, 21));
        assert!(found.points.iter().all(|point| (point.low, point.high) == (2.0, 37.0)), "{found:?}");
        assert!(band("wan", &runs[..5], stretch, shown).is_none());
    }

    #[test]
    fn a_value_holds_until_the_next_one() {
        let stretch = Stretch { from: 0.0, to: 4.0 };
        let found = at_steps(&[(1.0, 5.0), (2.0, 7.0)], stretch);
        let at = |seconds: f64| found[(seconds * STEP_COUNT as f64 / 4.0) as usize];
        assert_eq!([0.0, 1.0, 1.96, 2.0, 4.0].map(at), [5.0, 5.0, 5.0, 7.0, 7.0]);
        assert!(at_steps(&[], stretch).is_empty());
    }
}

//! Where all repetitions of a trace lie, beside the one that a figure shows: what the publication draws of
//! one run, ours are many.

use serde::{Deserialize, Serialize};

use crate::stretch::Stretch;

/// Where the line of one flow or link lies in most repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceBand {
    /// The flow or link.
    pub entity: String,
    /// Of how many repetitions.
    pub runs: u64,
    /// In order of time; each holds until the next.
    pub points: Vec<BandPoint>,
}

/// A band at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BandPoint {
    /// When, s.
    pub at_s: f64,
    /// A twentieth of the repetitions lie below.
    pub low: f64,
    /// A twentieth of the repetitions lie above.
    pub high: f64,
}

/// Whether a band is drawn of a series. Of several windows that swing by themselves it would only say that
/// each is somewhere.
pub(crate) fn is_banded(series: &str) -> bool {
    matches!(series, "queue" | "goodput")
}

/// What a line of `points` has at each step of `stretch`; nothing if it has no point.
pub(crate) fn at_steps(points: &[(f64, f64)], stretch: Stretch) -> Vec<f64> {
    let held = |at: f64| {
        // The value that holds then; the first one before it begins.
        let before = points.partition_point(|point| point.0 <= at);
        points.get(before.saturating_sub(1)).map(|point| point.1)
    };
    (0..=STEPS).filter_map(|step| held(time(stretch, step))).collect()
}

/// The band over repetitions that have `values` at the steps of `stretch`, as far as it is `shown`. `None` if
/// they are too few.
pub(crate) fn band(entity: &str, values: &[&[f64]], stretch: Stretch, shown: Stretch) -> Option<TraceBand> {
    if values.len() < LEAST {
        return None;
    }
    let point = |step: usize| {
        let mut these: Vec<f64> = values.iter().filter_map(|it| it.get(step).copied()).collect();
        these.sort_unstable_by(f64::total_cmp);
        let out = (LEFT_OUT * these.len() as f64) as usize;
        let (low, high) = (*these.get(out)?, *these.get(these.len().checked_sub(out + 1)?)?);
        Some(BandPoint { at_s: time(stretch, step), low, high })
    };
    let points = (0..=STEPS).filter_map(point);
    let points = points.filter(|point| shown.holds(point.at_s)).collect();
    Some(TraceBand { entity: entity.to_owned(), runs: values.len() as u64, points })
}

fn time(stretch: Stretch, step: usize) -> f64 {
    stretch.from + (stretch.to - stretch.from) * step as f64 / STEPS as f64
}

/// Steps into which a figure's stretch is cut. Chosen: a second each where a figure shows 100 s.
const STEPS: usize = 100;
/// The fewest repetitions with a band: as many as the interval of a median needs.
const LEAST: usize = 6;
/// The band leaves out the lowest and the highest twentieth of the repetitions. Chosen.
const LEFT_OUT: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_leaves_out_a_twentieth_at_either_end_and_needs_six_runs() {
        let runs: Vec<Vec<f64>> = (0..40).map(|it| vec![f64::from(it); STEPS + 1]).collect();
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
        let at = |seconds: f64| found[(seconds * STEPS as f64 / 4.0) as usize];
        assert_eq!([0.0, 1.0, 1.96, 2.0, 4.0].map(at), [5.0, 5.0, 5.0, 7.0, 7.0]);
        assert!(at_steps(&[], stretch).is_empty());
    }
}

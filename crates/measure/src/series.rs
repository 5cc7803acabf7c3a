//! State over time: what an arena calls after each packet to record a quantity and its time-weighted figures.
//!
//! A [`SeriesTap`] keeps the changes of one quantity: all of them, or a bounded number of points
//! ([`SeriesDetail`]). While they fit, each change is kept. When they do not, time is cut into equal steps,
//! and of each step the first, the smallest, the largest and the last change are kept. The step doubles until
//! half of the places are free, and again whenever they run out. What is kept depends on the changes alone,
//! so two equal runs keep equal points; an extreme is never lost; and the value at the end of each step is
//! right.

use talkpath_units::{Duration, Instant};

use crate::{Series, SeriesKind};

/// How many points each series keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeriesDetail {
    /// At most [`SAMPLED_POINTS`]: extremes are kept, and what a page can draw.
    #[default]
    Sampled,
    /// Every change.
    Full,
}

/// One point: the value from this instant on.
type Point = (Instant, f64);

/// Records one quantity on change, bounded.
#[derive(Clone, Debug)]
pub struct SeriesTap {
    /// The newest change, not a number before the first; committed once time has moved on, since a value that
    /// held for no time is no value.
    pending: Point,
    /// When the step that is being filled ends; before the first one, the beginning of time.
    until: Instant,
    /// The step that is being filled.
    open: Step,
    entity: String,
    kind: SeriesKind,
    /// Finished steps, in order of time.
    points: Vec<Point>,
    /// The length of a step: 2 to this power nanoseconds.
    step: u32,
    limit: usize,
}

impl SeriesDetail {
    const fn limit(self) -> usize {
        match self {
            Self::Sampled => SAMPLED_POINTS,
            Self::Full => usize::MAX,
        }
    }
}

impl SeriesTap {
    /// A series of `kind` for the flow or link named `entity`.
    pub fn new(entity: impl Into<String>, kind: SeriesKind, detail: SeriesDetail) -> Self {
        Self::with_limit(entity, kind, detail.limit())
    }

    /// A series that keeps at most `limit` points (at least 16).
    pub fn with_limit(entity: impl Into<String>, kind: SeriesKind, limit: usize) -> Self {
        let limit = limit.max(16);
        // A sampled series never grows.
        let points = Vec::with_capacity(limit.min(SAMPLED_POINTS));
        let pending = (Instant::ZERO, f64::NAN);
        let (until, open) = (Instant::ZERO, Step::new(pending));
        Self { pending, until, open, entity: entity.into(), kind, points, step: 0, limit }
    }

    /// The quantity is `value` as of `now`. Only a change is kept; an undefined value (NaN, infinity) is
    /// passed over.
    #[inline]
    pub fn push(&mut self, value: f64, now: Instant) {
        if value != self.pending.1 && value.is_finite() {
            if now > self.pending.0 {
                self.commit_pending();
            }
            self.pending = (now, value);
        }
    }

    /// The series, whole.
    pub fn finish(mut self) -> Series {
        self.commit_pending();
        self.close_step();
        // The step that was open when the step length last doubled may lie in two parts.
        self.merge_steps();
        Series { entity: self.entity, kind: self.kind, points: self.points }
    }

    #[inline]
    fn commit_pending(&mut self) {
        // Several changes at one instant may end where they began.
        if self.pending.1 == self.open.last.1 {
            return;
        }
        match self.pending.0 < self.until {
            true => self.open.add(self.pending),
            false => self.begin_step(),
        }
    }

    /// The pending change is the first of a step.
    #[cold]
    fn begin_step(&mut self) {
        if self.pending.1.is_nan() {
            return;
        }
        self.close_step();
        self.open = Step::new(self.pending);
        let index = self.index(self.pending);
        self.until = Instant::from_nanos((index + 1).saturating_mul(1 << self.step));
    }

    /// The number of the step in which the point lies.
    const fn index(&self, point: Point) -> u64 {
        point.0.as_nanos() >> self.step
    }

    fn close_step(&mut self) {
        if self.open.last.1.is_nan() {
            return;
        }
        self.points.extend(self.open.points());
        // Room for one more step.
        if self.points.len() > self.limit - POINTS_A_STEP {
            self.widen_steps();
        }
    }

    /// Doubles the step until half of the places are free, lest the next change begins it anew.
    #[cold]
    fn widen_steps(&mut self) {
        let (Some(first), Some(last)) = (self.points.first(), self.points.last()) else { return };
        // Steps shorter than the mean time between two points would merge few of them.
        let spacing = last.0.since(first.0).as_nanos() / self.points.len() as u64;
        self.step = self.step.max(spacing.max(1).ilog2());
        while self.points.len() > self.limit / 2 {
            self.step += 1;
            self.merge_steps();
        }
    }

    /// Cuts the kept points into steps anew. No step takes more places than the points that it is made of, so
    /// it works in place.
    fn merge_steps(&mut self) {
        let mut kept = 0;
        let mut step: Option<Step> = None;
        for next in 0..self.points.len() {
            let point = self.points[next];
            match &mut step {
                Some(step) if self.index(step.first) == self.index(point) => step.add(point),
                _ => kept = self.keep(kept, step.replace(Step::new(point))),
            }
        }
        kept = self.keep(kept, step);
        self.points.truncate(kept);
    }

    fn keep(&mut self, mut kept: usize, step: Option<Step>) -> usize {
        for point in step.iter().flat_map(Step::points) {
            self.points[kept] = point;
            kept += 1;
        }
        kept
    }
}

/// The changes within one step of time.
#[derive(Clone, Copy, Debug)]
struct Step {
    first: Point,
    least: Point,
    most: Point,
    last: Point,
}

impl Step {
    fn new(point: Point) -> Self {
        Self { first: point, least: point, most: point, last: point }
    }

    #[inline]
    fn add(&mut self, point: Point) {
        if point.1 < self.least.1 {
            self.least = point;
        }
        if point.1 > self.most.1 {
            self.most = point;
        }
        self.last = point;
    }

    /// The distinct ones of the four, in order of time; no two changes share an instant.
    fn points(&self) -> impl Iterator<Item = Point> + use<> {
        let (early, late) =
            if self.least.0 <= self.most.0 { (self.least, self.most) } else { (self.most, self.least) };
        let mut before = None;
        [self.first, early, late, self.last]
            .into_iter()
            .filter(move |point| before.replace(point.0) != Some(point.0))
    }
}

/// Weighs a quantity by the time that it held, within a window.
#[derive(Clone, Copy, Debug)]
pub struct TimeWeighted {
    from: Instant,
    to: Instant,
    /// The value that holds now; NaN before the first [`TimeWeighted::set`].
    held: f64,
    /// Since when, within the window.
    since: Instant,
    /// Value × nanoseconds.
    weighted: f64,
    covered: Duration,
    nonzero: Duration,
    /// The largest value that held for some time.
    max: f64,
}

/// What a [`TimeWeighted`] found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weighted {
    /// Mean over the part of the window in which the quantity had a value; `None` if it had none.
    pub mean: Option<f64>,
    /// Largest value that held for some time in the window.
    pub max: Option<f64>,
    /// How long within the window the quantity was not zero.
    pub nonzero: Duration,
}

impl TimeWeighted {
    /// Over the window `from..to`.
    pub fn new(from: Instant, to: Instant) -> Self {
        Self {
            from,
            to,
            held: f64::NAN,
            since: from,
            weighted: 0.0,
            covered: Duration::ZERO,
            nonzero: Duration::ZERO,
            max: f64::NEG_INFINITY,
        }
    }

    /// The quantity is `value` from `now` on; an undefined value is passed over.
    #[inline]
    pub fn set(&mut self, value: f64, now: Instant) {
        if value != self.held && value.is_finite() {
            self.account(now);
            self.held = value;
            self.since = now.max(self.from);
        }
    }

    /// Ends the accounting at `now` (or at the window's end, if that is earlier).
    pub fn finish(mut self, now: Instant) -> Weighted {
        self.account(now);
        let any = !self.covered.is_zero();
        let mean = any.then(|| self.weighted / self.covered.as_nanos() as f64);
        Weighted { mean, max: any.then_some(self.max), nonzero: self.nonzero }
    }

    #[inline]
    fn account(&mut self, now: Instant) {
        let span = now.min(self.to).since(self.since);
        if span.is_zero() || self.held.is_nan() {
            return;
        }
        // A run is shorter than 2^63 ns, which convert in one step.
        self.weighted += self.held * span.as_nanos().cast_signed() as f64;
        self.covered = Duration::from_nanos(self.covered.as_nanos() + span.as_nanos());
        if self.max < self.held {
            self.max = self.held;
        }
        if self.held != 0.0 {
            self.nonzero = Duration::from_nanos(self.nonzero.as_nanos() + span.as_nanos());
        }
    }
}

/// The most points of a sampled series. Chosen: about one for each pixel across a page, and 16 KiB.
pub const SAMPLED_POINTS: usize = 1_024;
/// First, smallest, largest and last.
const POINTS_A_STEP: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    #[test]
    fn only_changes_are_kept() {
        let mut tap = SeriesTap::new("up", SeriesKind::Queue, SeriesDetail::Sampled);
        for (value, at) in [(0.0, 0), (0.0, 1), (1.0, 2), (1.0, 3), (0.0, 4)] {
            tap.push(value, MS(at));
        }
        assert_eq!(tap.finish().points, [(MS(0), 0.0), (MS(2), 1.0), (MS(4), 0.0)]);
    }

    #[test]
    fn a_value_that_held_for_no_time_is_no_value() {
        let mut tap = SeriesTap::new("up", SeriesKind::Queue, SeriesDetail::Sampled);
        for (value, at) in [(0.0, 0), (1.0, 5), (2.0, 5), (3.0, 6), (2.0, 6), (f64::NAN, 7)] {
            tap.push(value, MS(at));
        }
        assert_eq!(tap.finish().points, [(MS(0), 0.0), (MS(5), 2.0)]);
    }

    /// 100,000 changes of a saw tooth with one spike and one dip.
    fn saw() -> impl Iterator<Item = (f64, Instant)> {
        (0..100_000_u64).map(|step| {
            let value = match step {
                31_337 => 900.0,
                77_777 => -5.0,
                _ => (step % 97) as f64,
            };
            (value, Instant::from_nanos(step * 604_321))
        })
    }

    #[test]
    fn a_long_series_is_bounded_and_loses_neither_extremes_nor_ends() {
        let mut tap = SeriesTap::with_limit("up", SeriesKind::Queue, 256);
        for (value, at) in saw() {
            tap.push(value, at);
        }
        let points = tap.finish().points;
        assert!((64..=256).contains(&points.len()), "{} points", points.len());
        assert_eq!(points.first(), Some(&(Instant::ZERO, 0.0)));
        assert_eq!(points.last(), saw().last().map(|(value, at)| (at, value)).as_ref());
        assert!(points.contains(&(Instant::from_nanos(31_337 * 604_321), 900.0)));
        assert!(points.contains(&(Instant::from_nanos(77_777 * 604_321), -5.0)));
        assert!(points.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn a_full_series_keeps_every_change() {
        let mut tap = SeriesTap::new("up", SeriesKind::Queue, SeriesDetail::Full);
        for (value, at) in saw() {
            tap.push(value, at);
        }
        assert!(tap.finish().points.iter().map(|&(at, value)| (value, at)).eq(saw()));
    }

    #[test]
    fn what_is_kept_does_not_depend_on_when_places_ran_out() {
        // Cut the whole series into steps of the final length at once: the tap must have kept the same.
        let mut tap = SeriesTap::with_limit("up", SeriesKind::Queue, 256);
        for (value, at) in saw() {
            tap.push(value, at);
        }
        let step = tap.step;
        assert!(step > 0, "the series was too short to be cut");
        let mut whole = SeriesTap::with_limit("up", SeriesKind::Queue, 200_000);
        for (value, at) in saw() {
            whole.push(value, at);
        }
        whole.step = step;
        assert_eq!(tap.finish(), whole.finish());
    }

    #[test]
    fn values_are_weighted_by_the_time_that_they_held_within_the_window() {
        // In the window 1 to 5 s: 2 for 1 s, 4 for 2 s, 0 for 1 s. 100 held before and 50 after.
        let mut weighted = TimeWeighted::new(MS(1_000), MS(5_000));
        for (value, at) in [(100.0, 0), (2.0, 1_000), (4.0, 2_000), (0.0, 4_000), (50.0, 5_000)] {
            weighted.set(value, MS(at));
        }
        let expected = Weighted { mean: Some(10.0 / 4.0), max: Some(4.0), nonzero: Duration::from_secs(3) };
        assert_eq!(weighted.finish(MS(9_000)), expected);
    }

    #[test]
    fn a_value_that_stands_through_the_window_is_its_mean() {
        let mut weighted = TimeWeighted::new(MS(1_000), MS(2_000));
        weighted.set(7.0, MS(10));
        let expected = Weighted { mean: Some(7.0), max: Some(7.0), nonzero: Duration::from_secs(1) };
        assert_eq!(weighted.finish(MS(3_000)), expected);
    }

    #[test]
    fn without_a_value_nothing_is_known() {
        let none = Weighted { mean: None, max: None, nonzero: Duration::ZERO };
        assert_eq!(TimeWeighted::new(MS(0), MS(10)).finish(MS(10)), none);
        let mut late = TimeWeighted::new(MS(0), MS(10));
        late.set(3.0, MS(11));
        assert_eq!(late.finish(MS(20)), none);
    }
}

//! States over time: an arena reports a quantity after each packet, and this records its changes and weighs
//! its values by time.
//!
//! A [`SeriesTap`] records the changes of one quantity, all of them or a bounded number ([`SeriesDetail`]).
//! As long as the changes fit, each is kept. When they no longer fit, time is cut into steps of equal length,
//! and at most four changes of each step are kept: the first, the smallest, the largest and the last. The
//! step doubles until half of the space is free, and doubles again whenever the space is full.
//!
//! Therefore an extreme is never lost, and the value at the end of each step is right. What is kept depends
//! on the changes only, so two equal runs keep equal points.
//!
//! A [`TimeWeighted`] computes the mean and the maximum of a quantity over a window.

use talkpath_units::{Duration, Instant};

use crate::{Series, SeriesKind};

/// The largest number of points of a sampled series. We chose a power of two that gives about one point for
/// each pixel across a page. The points take 16 KiB.
pub const SAMPLED_POINTS: usize = 1_024;

/// The largest number of points that are kept of one step: first, smallest, largest and last.
const POINTS_PER_STEP: usize = 4;

/// How many points a series keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeriesDetail {
    /// At most [`SAMPLED_POINTS`]. The extremes are kept, and a page can draw no more points.
    #[default]
    Sampled,
    /// Every change.
    Full,
}

impl SeriesDetail {
    const fn limit(self) -> usize {
        match self {
            Self::Sampled => SAMPLED_POINTS,
            Self::Full => usize::MAX,
        }
    }
}

/// A change of the quantity.
#[derive(Clone, Copy, Debug)]
struct Change {
    at: Instant,
    /// The value from `at` on.
    value: f64,
}

/// Records the changes of one quantity.
#[derive(Clone, Debug)]
pub struct SeriesTap {
    /// The newest change. It is added to a step when a later change comes, because a value that is replaced
    /// at the same instant never held. Its value is NaN before the first change.
    pending: Change,
    /// The end of the current step. Zero before the first step.
    step_end: Instant,
    /// The changes of the current step.
    step: Step,
    entity: String,
    kind: SeriesKind,
    /// The points of the finished steps, in the order of time.
    points: Vec<Change>,
    /// The binary logarithm of the length of a step in nanoseconds.
    step_log2_ns: u32,
    /// The largest number of points.
    limit: usize,
}

impl SeriesTap {
    /// Makes a series of `kind` for the flow or link `entity`.
    pub fn new(entity: impl Into<String>, kind: SeriesKind, detail: SeriesDetail) -> Self {
        Self::with_limit(entity, kind, detail.limit())
    }

    /// Makes a series that keeps at most `limit` points. A limit below 16 counts as 16.
    pub fn with_limit(entity: impl Into<String>, kind: SeriesKind, limit: usize) -> Self {
        let limit = limit.max(16);
        let no_change = Change { at: Instant::ZERO, value: f64::NAN };
        Self {
            pending: no_change,
            step_end: Instant::ZERO,
            step: Step::new(no_change),
            entity: entity.into(),
            kind,
            // A sampled series never allocates again.
            points: Vec::with_capacity(limit.min(SAMPLED_POINTS)),
            step_log2_ns: 0,
            limit,
        }
    }

    /// Records that the quantity is `value` from `now` on. A value that is the same as before is no change,
    /// and an undefined value (NaN or infinity) is ignored.
    #[inline]
    pub fn push(&mut self, value: f64, now: Instant) {
        if value != self.pending.value && value.is_finite() {
            if now > self.pending.at {
                self.commit_pending();
            }
            self.pending = Change { at: now, value };
        }
    }

    /// Returns the recorded series.
    pub fn finish(mut self) -> Series {
        self.commit_pending();
        self.finish_step();
        // If the step length doubled during a step, the step may lie in `points` in two parts.
        self.merge_steps();
        let points = self.points.into_iter().map(|change| (change.at, change.value)).collect();
        Series { entity: self.entity, kind: self.kind, points }
    }

    /// Adds the pending change to the current step, or begins a step with it.
    #[inline]
    fn commit_pending(&mut self) {
        // Several changes at the same instant may lead back to the earlier value.
        if self.pending.value == self.step.last.value {
            return;
        }
        if self.pending.at < self.step_end {
            self.step.add(self.pending);
        } else {
            self.begin_step();
        }
    }

    #[cold]
    fn begin_step(&mut self) {
        if self.pending.value.is_nan() {
            return;
        }
        self.finish_step();
        self.step = Step::new(self.pending);
        let next_step = self.step_number(self.pending) + 1;
        self.step_end = Instant::from_nanos(next_step.saturating_mul(1 << self.step_log2_ns));
    }

    /// Returns the number of the step that `change` belongs to.
    const fn step_number(&self, change: Change) -> u64 {
        change.at.as_nanos() >> self.step_log2_ns
    }

    /// Moves the changes of the current step into `points`.
    fn finish_step(&mut self) {
        if self.step.last.value.is_nan() {
            return;
        }
        self.points.extend(self.step.points());
        let has_room_for_a_step = self.points.len() <= self.limit - POINTS_PER_STEP;
        if !has_room_for_a_step {
            self.widen_steps();
        }
    }

    /// Doubles the step length until half of the space is free. If less were free, the next changes would
    /// double it again.
    #[cold]
    fn widen_steps(&mut self) {
        let (Some(first), Some(last)) = (self.points.first(), self.points.last()) else { return };
        // A step that is shorter than the mean time between two points would merge only a few points.
        let mean_spacing_ns = last.at.since(first.at).as_nanos() / self.points.len() as u64;
        self.step_log2_ns = self.step_log2_ns.max(mean_spacing_ns.max(1).ilog2());
        while self.points.len() > self.limit / 2 {
            self.step_log2_ns += 1;
            self.merge_steps();
        }
    }

    /// Cuts the finished points into steps of the current length. A step never has more points than were
    /// merged into it, so the points are written over the points that were read already.
    fn merge_steps(&mut self) {
        let mut written = 0;
        let mut merged: Option<Step> = None;
        for index in 0..self.points.len() {
            let change = self.points[index];
            match &mut merged {
                Some(step) if self.step_number(step.first) == self.step_number(change) => step.add(change),
                _ => written = self.write_step(written, merged.replace(Step::new(change))),
            }
        }
        written = self.write_step(written, merged);
        self.points.truncate(written);
    }

    /// Writes the points of `step` to `points` from the index `next` on. Returns the index after them.
    fn write_step(&mut self, mut next: usize, step: Option<Step>) -> usize {
        for change in step.iter().flat_map(Step::points) {
            self.points[next] = change;
            next += 1;
        }
        next
    }
}

/// The changes of one step of time that are kept. Some of the four may be the same change.
#[derive(Clone, Copy, Debug)]
struct Step {
    first: Change,
    smallest: Change,
    largest: Change,
    last: Change,
}

impl Step {
    fn new(change: Change) -> Self {
        Self { first: change, smallest: change, largest: change, last: change }
    }

    #[inline]
    fn add(&mut self, change: Change) {
        if change.value < self.smallest.value {
            self.smallest = change;
        }
        if change.value > self.largest.value {
            self.largest = change;
        }
        self.last = change;
    }

    /// Returns the different changes of the step in the order of time. Two changes never have the same time,
    /// so a change with the same time as the one before is the same change.
    fn points(&self) -> impl Iterator<Item = Change> + use<> {
        let (earlier, later) = if self.smallest.at <= self.largest.at {
            (self.smallest, self.largest)
        } else {
            (self.largest, self.smallest)
        };
        let mut previous_time = None;
        [self.first, earlier, later, self.last]
            .into_iter()
            .filter(move |change| previous_time.replace(change.at) != Some(change.at))
    }
}

/// Computes the mean of a quantity over a window. Each value has the weight of the time for which it held.
#[derive(Clone, Copy, Debug)]
pub struct TimeWeighted {
    window_start: Instant,
    window_end: Instant,
    /// The current value. NaN before the first call of [`TimeWeighted::set`].
    value: f64,
    /// The time from which on the current value has not been added yet.
    added_until: Instant,
    /// The sum of value × nanoseconds.
    weighted_sum: f64,
    /// The time in the window in which the quantity had a value.
    known_time: Duration,
    nonzero_time: Duration,
    /// The largest value that held for some time.
    max: f64,
}

/// The result of a [`TimeWeighted`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weighted {
    /// The mean over the time in the window in which the quantity had a value. `None` if it never had one.
    pub mean: Option<f64>,
    /// The largest value that held for some time in the window.
    pub max: Option<f64>,
    /// The time in the window in which the quantity was not zero.
    pub nonzero: Duration,
}

impl TimeWeighted {
    /// Starts to weigh a quantity over the window from `window_start` to `window_end`.
    pub fn new(window_start: Instant, window_end: Instant) -> Self {
        Self {
            window_start,
            window_end,
            value: f64::NAN,
            added_until: window_start,
            weighted_sum: 0.0,
            known_time: Duration::ZERO,
            nonzero_time: Duration::ZERO,
            max: f64::NEG_INFINITY,
        }
    }

    /// Notes that the quantity is `value` from `now` on. An undefined value (NaN or infinity) is ignored.
    #[inline]
    pub fn set(&mut self, value: f64, now: Instant) {
        if value != self.value && value.is_finite() {
            self.add_time_until(now);
            self.value = value;
            self.added_until = now.max(self.window_start);
        }
    }

    /// Returns the result up to `now`, or up to the end of the window if that is earlier.
    pub fn finish(mut self, now: Instant) -> Weighted {
        self.add_time_until(now);
        if self.known_time.is_zero() {
            return Weighted { mean: None, max: None, nonzero: self.nonzero_time };
        }
        let mean = self.weighted_sum / self.known_time.as_nanos() as f64;
        Weighted { mean: Some(mean), max: Some(self.max), nonzero: self.nonzero_time }
    }

    /// Adds the time for which the current value has held.
    #[inline]
    fn add_time_until(&mut self, now: Instant) {
        let held = now.min(self.window_end).since(self.added_until);
        if held.is_zero() || self.value.is_nan() {
            return;
        }
        // A run is shorter than 2^63 ns. A signed integer is converted to a float in one instruction.
        self.weighted_sum += self.value * held.as_nanos().cast_signed() as f64;
        self.known_time = Duration::from_nanos(self.known_time.as_nanos() + held.as_nanos());
        if self.max < self.value {
            self.max = self.value;
        }
        if self.value != 0.0 {
            self.nonzero_time = Duration::from_nanos(self.nonzero_time.as_nanos() + held.as_nanos());
        }
    }
}

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
    fn the_kept_points_do_not_depend_on_when_the_space_was_full() {
        // A series that is cut into steps of the final length at once must keep the same points.
        let mut tap = SeriesTap::with_limit("up", SeriesKind::Queue, 256);
        for (value, at) in saw() {
            tap.push(value, at);
        }
        let step_log2_ns = tap.step_log2_ns;
        assert!(step_log2_ns > 0, "the series was too short to be cut");
        let mut whole = SeriesTap::with_limit("up", SeriesKind::Queue, 200_000);
        for (value, at) in saw() {
            whole.push(value, at);
        }
        whole.step_log2_ns = step_log2_ns;
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
    fn the_mean_of_a_value_that_holds_for_the_whole_window_is_the_value() {
        let mut weighted = TimeWeighted::new(MS(1_000), MS(2_000));
        weighted.set(7.0, MS(10));
        let expected = Weighted { mean: Some(7.0), max: Some(7.0), nonzero: Duration::from_secs(1) };
        assert_eq!(weighted.finish(MS(3_000)), expected);
    }

    #[test]
    fn without_a_value_in_the_window_there_is_no_mean() {
        let none = Weighted { mean: None, max: None, nonzero: Duration::ZERO };
        assert_eq!(TimeWeighted::new(MS(0), MS(10)).finish(MS(10)), none);
        let mut late = TimeWeighted::new(MS(0), MS(10));
        late.set(3.0, MS(11));
        assert_eq!(late.finish(MS(20)), none);
    }
}

//! Metrics over time: how alike the windows of flows move, how many flows a loss hits, and how far a queue
//! swings. The summary of a run does not have these figures. They are computed from the series of one
//! repetition, which must have every change of the window or the queue.

use talkpath_measure::{RunRecord, Series};

use crate::stretch::Stretch;

/// A figure of the series of some flows or of a link, over a stretch of run time.
#[derive(Clone, Debug, PartialEq)]
pub struct OverTime {
    /// What is computed from the series.
    pub figure: TimeFigure,
    /// The name of the link, or the name of the flow whose copies are compared.
    pub entity: String,
    /// The stretch of run time that is read.
    pub seconds: Stretch,
}

/// What is computed from series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TimeFigure {
    /// How alike the congestion windows of the copies move: the correlation of two windows, as the mean over
    /// all pairs of copies. A pair with a window that never changes has no correlation and is left out.
    Correlation {
        /// The receiver's window, in packets. A congestion window above it has no effect, so it is read as
        /// this value.
        cap: f64,
    },
    /// The share of loss episodes that hit all copies. An episode begins when a copy reduces its window, and
    /// lasts `within` seconds. It hits each copy that reduces its window in this time.
    SharedLosses {
        /// The length of an episode, in s.
        within: f64,
    },
    /// A quantile of the number of packets that wait in the queue, weighted by time.
    Quantile(f64),
}

/// The series of one flow or link. Its value between two points is that of the earlier point.
struct StepLine {
    points: Vec<LinePoint>,
}

#[derive(Clone, Copy)]
struct LinePoint {
    at_s: f64,
    value: f64,
}

/// The time between two samples of a series, in s. We chose a fifth of 104 ms, the shortest round trip of a
/// study, because windows change at most a few times in a round trip.
const SAMPLE_INTERVAL_S: f64 = 0.02;

/// A window that falls to this share of its value, or below, was reduced because of a loss. Reno halves its
/// window (RFC 5681 §3.1), and CUBIC multiplies it by 0.7 (RFC 9438 §4.6).
const REDUCED_SHARE: f64 = 0.75;

impl OverTime {
    /// Computes the figure from the series in `record`. A stretch that is longer than the run is cut at the
    /// end of the run. Returns `None` if the series are missing, or if they give no figure, for example if no
    /// window was reduced or if there is only one copy.
    pub(crate) fn value(&self, record: &RunRecord) -> Option<f64> {
        let lines: Vec<StepLine> =
            record.series.iter().filter(|series| self.reads(series)).map(StepLine::new).collect();
        let run_end_s = seconds(record.window_end.as_nanos());
        let within_run = Stretch { to: self.seconds.to.min(run_end_s), ..self.seconds };
        self.value_of_lines(&lines, within_run)
    }

    /// Returns whether the figure is computed from `series`.
    fn reads(&self, series: &Series) -> bool {
        match self.figure {
            TimeFigure::Quantile(_) => series.kind.name() == "queue" && series.entity == self.entity,
            TimeFigure::Correlation { .. } | TimeFigure::SharedLosses { .. } => {
                series.kind.name() == "cwnd" && is_flow_or_copy(&series.entity, &self.entity)
            }
        }
    }

    fn value_of_lines(&self, lines: &[StepLine], stretch: Stretch) -> Option<f64> {
        match self.figure {
            TimeFigure::Correlation { cap } => mean_correlation(lines, cap, stretch),
            TimeFigure::SharedLosses { within } => share_of_shared_losses(lines, within, stretch),
            TimeFigure::Quantile(quantile) => {
                let mut values = lines.first()?.samples(stretch);
                values.sort_by(f64::total_cmp);
                let index = (quantile * (values.len() as f64 - 1.0)).round() as usize;
                values.get(index).copied()
            }
        }
    }
}

impl StepLine {
    fn new(series: &Series) -> Self {
        let points = series.points.iter();
        Self {
            points: points
                .map(|(at, value)| LinePoint { at_s: seconds(at.as_nanos()), value: *value })
                .collect(),
        }
    }

    /// Returns the value of the line at each step of the stretch. It is 0 before the first point.
    fn samples(&self, stretch: Stretch) -> Vec<f64> {
        let count = ((stretch.to - stretch.from) / SAMPLE_INTERVAL_S).round() as usize;
        let mut samples = Vec::with_capacity(count);
        for index in 0..count {
            let now = stretch.from + index as f64 * SAMPLE_INTERVAL_S;
            let points_until_now = self.points.partition_point(|point| point.at_s <= now);
            let latest = points_until_now.checked_sub(1).map(|index| self.points[index]);
            samples.push(latest.map_or(0.0, |point| point.value));
        }
        samples
    }

    /// Returns the times at which the line falls to [`REDUCED_SHARE`] of its value or below.
    fn reductions_s(&self) -> impl Iterator<Item = f64> {
        let pairs = self.points.windows(2);
        pairs.filter(|pair| pair[1].value <= REDUCED_SHARE * pair[0].value).map(|pair| pair[1].at_s)
    }
}

/// Returns the mean of the correlations of all pairs of windows.
fn mean_correlation(windows: &[StepLine], cap: f64, stretch: Stretch) -> Option<f64> {
    let sampled: Vec<Vec<f64>> = windows
        .iter()
        .map(|window| window.samples(stretch).into_iter().map(|value| value.min(cap)).collect())
        .collect();
    let mut correlations = Vec::new();
    for (index, first) in sampled.iter().enumerate() {
        for second in &sampled[index + 1..] {
            correlations.extend(correlation(first, second));
        }
    }
    if correlations.is_empty() {
        return None;
    }
    Some(correlations.iter().sum::<f64>() / correlations.len() as f64)
}

/// Returns Pearson's correlation coefficient, or `None` if one of the two never changes.
fn correlation(first: &[f64], second: &[f64]) -> Option<f64> {
    // The computed mean of equal values can differ from them in its last digit, so that a constant window
    // would have a tiny variance.
    let is_constant = |values: &[f64]| values.windows(2).all(|pair| pair[0] == pair[1]);
    if is_constant(first) || is_constant(second) {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (first_mean, second_mean) = (mean(first), mean(second));
    let (mut first_squares, mut second_squares, mut products) = (0.0, 0.0, 0.0);
    for (a, b) in first.iter().zip(second) {
        let (a, b) = (a - first_mean, b - second_mean);
        first_squares += a * a;
        second_squares += b * b;
        products += a * b;
    }
    (first_squares > 0.0 && second_squares > 0.0).then(|| products / (first_squares * second_squares).sqrt())
}

/// One reduction of a window.
struct Reduction {
    at_s: f64,
    /// The index of the window.
    window: usize,
}

/// Returns the share of the loss episodes that hit all windows.
fn share_of_shared_losses(windows: &[StepLine], episode_s: f64, stretch: Stretch) -> Option<f64> {
    if windows.len() < 2 {
        return None;
    }
    let mut reductions = Vec::new();
    for (window, line) in windows.iter().enumerate() {
        let in_stretch = line.reductions_s().filter(|at_s| stretch.holds(*at_s));
        reductions.extend(in_stretch.map(|at_s| Reduction { at_s, window }));
    }
    reductions.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    let (mut episodes, mut shared_episodes) = (0u64, 0u64);
    let mut remaining = reductions.as_slice();
    while let Some(first) = remaining.first() {
        let length = remaining.partition_point(|reduction| reduction.at_s <= first.at_s + episode_s);
        let (episode, later) = remaining.split_at(length);
        let is_hit = |window: usize| episode.iter().any(|reduction| reduction.window == window);
        episodes += 1;
        shared_episodes += u64::from((0..windows.len()).all(is_hit));
        remaining = later;
    }
    (episodes > 0).then(|| shared_episodes as f64 / episodes as f64)
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// Returns whether `flow` is the flow called `wanted`, or a copy of it. Copies are called `NAME-1`, `NAME-2`
/// and so on.
pub(crate) fn is_flow_or_copy(flow: &str, wanted: &str) -> bool {
    let Some(suffix) = flow.strip_prefix(wanted) else { return false };
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    suffix.is_empty() || suffix.strip_prefix('-').is_some_and(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRETCH: Stretch = Stretch { from: 0.0, to: 8.0 };

    fn value(figure: TimeFigure, lines: &[StepLine]) -> Option<f64> {
        OverTime { figure, entity: "ftp".to_owned(), seconds: STRETCH }.value_of_lines(lines, STRETCH)
    }

    fn line(points: &[(f64, f64)]) -> StepLine {
        StepLine { points: points.iter().map(|&(at_s, value)| LinePoint { at_s, value }).collect() }
    }

    /// A saw tooth that rises from 8 to 16 in two seconds. It begins `delay_s` seconds late.
    fn saw_tooth(delay_s: f64) -> StepLine {
        let mut points = Vec::new();
        if delay_s > 0.0 {
            points.push((0.0, 8.0 + 4.0 * delay_s));
        }
        for step in 0..80 {
            points.push((f64::from(step) * 0.1 + delay_s, f64::from(step % 20) * 0.4 + 8.0));
        }
        line(&points)
    }

    #[test]
    fn equal_windows_move_together_and_opposed_ones_against_each_other() {
        let correlation = |lines: &[StepLine]| value(TimeFigure::Correlation { cap: 16.0 }, lines);
        assert!((correlation(&[saw_tooth(0.0), saw_tooth(0.0)]).unwrap() - 1.0).abs() < 1e-9);
        assert!(correlation(&[saw_tooth(0.0), saw_tooth(1.0)]).unwrap() < -0.3);
        // A window above the receiver's window has no effect, so it does not move.
        let open = || line(&[(0.0, 20.0), (4.0, 100.0)]);
        assert_eq!(correlation(&[saw_tooth(0.0), open()]), None);
        assert!((correlation(&[saw_tooth(0.0), open(), saw_tooth(0.0)]).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(correlation(&[saw_tooth(0.0)]), None);
        // The computed mean of 400 times 10.7 is not 10.7.
        assert_eq!(correlation(&[line(&[(0.0, 10.7)]), line(&[(0.0, 10.1)])]), None);
    }

    #[test]
    fn a_loss_is_shared_if_all_reduce_within_its_episode() {
        let shared = |lines: &[StepLine]| value(TimeFigure::SharedLosses { within: 0.5 }, lines);
        assert_eq!(shared(&[saw_tooth(0.0), saw_tooth(0.3)]), Some(1.0));
        assert_eq!(shared(&[saw_tooth(0.0), saw_tooth(1.0)]), Some(0.0));
        assert_eq!(shared(&[line(&[(0.0, 1.0)]), line(&[(0.0, 2.0)])]), None);
    }

    #[test]
    fn a_queue_s_quantiles_are_weighted_by_time() {
        let queue = [line(&[(0.0, 16.0), (1.0, 2.0), (7.9, 9.0)])];
        let quantile = |share| value(TimeFigure::Quantile(share), &queue);
        assert_eq!((quantile(0.05), quantile(0.5), quantile(1.0)), (Some(2.0), Some(2.0), Some(16.0)));
    }
}

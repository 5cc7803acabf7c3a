//! Figures of state over time that a run's summary does not have: how alike windows move, how many flows a
//! loss hits, how far a queue swings. They are read from the series of one repetition, with every change.

use talkpath_measure::{RunRecord, Series};

use crate::stretch::Stretch;

/// A figure of one kind of series over a stretch of run time.
#[derive(Clone, Debug, PartialEq)]
pub struct OverTime {
    /// What is made of the series.
    pub figure: TimeFigure,
    /// The flow or link, or the flow whose copies are meant.
    pub entity: String,
    /// What of the run is read.
    pub seconds: Stretch,
}

/// What is made of series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TimeFigure {
    /// Mean over the pairs of copies of the correlation of their windows: cwnd, at most `cap` packets. Pairs
    /// with a window that does not move have none and are left out.
    Correlation {
        /// The receiver's window, packets.
        cap: f64,
    },
    /// Of the episodes in which a copy reduced its window, the share in which all did. An episode lasts
    /// `within` seconds from its first reduction.
    SharedLosses {
        /// Its length, s.
        within: f64,
    },
    /// A quantile of the waiting packets, weighted by time.
    Quantile(f64),
}

impl OverTime {
    /// The figure in `record`; `None` if its series are not there, or if it has none (no loss, one copy). Of
    /// a stretch that outlasts the run, its part within it.
    pub(crate) fn of(&self, record: &RunRecord) -> Option<f64> {
        let is_link = matches!(self.figure, TimeFigure::Quantile(_));
        let is_meant = |series: &&Series| match (is_link, series.kind.name()) {
            (true, "queue") => series.entity == self.entity,
            (false, "cwnd") => is_flow_of(&series.entity, &self.entity),
            _ => false,
        };
        let lines: Vec<Vec<(f64, f64)>> = record
            .series
            .iter()
            .filter(is_meant)
            .map(|series| {
                series.points.iter().map(|(at, value)| (at.as_nanos() as f64 / 1e9, *value)).collect()
            })
            .collect();
        let to = self.seconds.to.min(record.window_end.as_nanos() as f64 / 1e9);
        OverTime { seconds: Stretch { to, ..self.seconds }, ..self.clone() }.of_lines(&lines)
    }

    /// Of each line's points: (time in s, the value from there on).
    fn of_lines(&self, lines: &[Vec<(f64, f64)>]) -> Option<f64> {
        match self.figure {
            TimeFigure::Correlation { cap } => {
                let sampled: Vec<Vec<f64>> = lines
                    .iter()
                    .map(|line| self.samples(line).into_iter().map(|value| value.min(cap)).collect())
                    .collect();
                let pairs = || (0..sampled.len()).flat_map(|a| (a + 1..sampled.len()).map(move |b| (a, b)));
                let found: Vec<f64> =
                    pairs().filter_map(|(a, b)| correlation(&sampled[a], &sampled[b])).collect();
                (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
            }
            TimeFigure::SharedLosses { within } => self.shared_losses(lines, within),
            TimeFigure::Quantile(share) => {
                let mut values = self.samples(lines.first()?);
                values.sort_by(f64::total_cmp);
                values.get((share * (values.len() as f64 - 1.0)).round() as usize).copied()
            }
        }
    }

    /// The value at each step of the stretch; before the first point it is 0.
    fn samples(&self, line: &[(f64, f64)]) -> Vec<f64> {
        let Stretch { from, to } = self.seconds;
        let steps = ((to - from) / STEP).round() as usize;
        let at = |step: usize| {
            let now = from + step as f64 * STEP;
            let after = line.partition_point(|point| point.0 <= now);
            after.checked_sub(1).map_or(0.0, |before| line[before].1)
        };
        (0..steps).map(at).collect()
    }

    fn shared_losses(&self, lines: &[Vec<(f64, f64)>], within: f64) -> Option<f64> {
        struct Reduction {
            at_s: f64,
            line: usize,
        }
        let mut reductions: Vec<Reduction> = Vec::new();
        for (index, line) in lines.iter().enumerate() {
            let falls = line.windows(2).filter(|pair| pair[1].1 <= REDUCED * pair[0].1);
            let falls = falls.map(|pair| Reduction { at_s: pair[1].0, line: index });
            reductions.extend(falls.filter(|fall| self.seconds.holds(fall.at_s)));
        }
        reductions.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        let (mut episodes, mut shared) = (0u64, 0u64);
        let mut rest = reductions.as_slice();
        while let Some(first) = rest.first() {
            let end = rest.partition_point(|fall| fall.at_s <= first.at_s + within);
            let is_hit = |line: &usize| rest[..end].iter().any(|fall| fall.line == *line);
            let hit = (0..lines.len()).filter(is_hit).count();
            episodes += 1;
            shared += u64::from(hit == lines.len());
            rest = &rest[end..];
        }
        (episodes > 0 && lines.len() > 1).then(|| shared as f64 / episodes as f64)
    }
}

/// Whether a figure that names `wanted` shows `flow`: the flow of that name, or a copy of it.
pub(crate) fn is_flow_of(flow: &str, wanted: &str) -> bool {
    flow.strip_prefix(wanted).is_some_and(|rest| {
        rest.is_empty()
            || rest.strip_prefix('-').is_some_and(|copy| copy.bytes().all(|it| it.is_ascii_digit()))
    })
}

/// Pearson's coefficient; `None` if one series does not move.
fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    // The mean of equal values need not equal them: a constant window would still count for its rounding.
    let moves = |values: &[f64]| values.windows(2).any(|pair| pair[0] != pair[1]);
    if !moves(a) || !moves(b) {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (a_mean, b_mean) = (mean(a), mean(b));
    let sum =
        |of: fn(f64, f64) -> f64| -> f64 { a.iter().zip(b).map(|(a, b)| of(a - a_mean, b - b_mean)).sum() };
    let (aa, bb, ab) = (sum(|a, _| a * a), sum(|_, b| b * b), sum(|a, b| a * b));
    (aa > 0.0 && bb > 0.0).then(|| ab / (aa * bb).sqrt())
}

/// How often series are read. Chosen: a fifth of the shortest round trip that a study here has, 104 ms.
const STEP: f64 = 0.02;
/// A change to this share or less is a reduction: Reno halves its window (RFC 5681 §3.1), CUBIC takes 0.7
/// (RFC 9438 §4.6).
const REDUCED: f64 = 0.75;

#[cfg(test)]
mod tests {
    use super::*;

    fn over(figure: TimeFigure) -> OverTime {
        OverTime { figure, entity: "ftp".to_owned(), seconds: Stretch { from: 0.0, to: 8.0 } }
    }

    /// A saw tooth from 8 to 16 over two seconds, `late` seconds behind.
    fn teeth(late: f64) -> Vec<(f64, f64)> {
        let steps = (0..80).map(|step| (f64::from(step) * 0.1, f64::from(step % 20) * 0.4 + 8.0));
        let before = if late > 0.0 { vec![(0.0, 8.0 + 4.0 * late)] } else { Vec::new() };
        before.into_iter().chain(steps.map(|(at, value)| (at + late, value))).collect()
    }

    #[test]
    fn equal_windows_move_together_and_opposed_ones_against_each_other() {
        let correlation = over(TimeFigure::Correlation { cap: 16.0 });
        let of = |lines: &[Vec<(f64, f64)>]| correlation.of_lines(lines);
        assert!((of(&[teeth(0.0), teeth(0.0)]).unwrap() - 1.0).abs() < 1e-9);
        assert!(of(&[teeth(0.0), teeth(1.0)]).unwrap() < -0.3);
        // One that stands at the receiver's window, whatever it holds beyond, does not move.
        let open = || vec![(0.0, 20.0), (4.0, 100.0)];
        assert_eq!(of(&[teeth(0.0), open()]), None);
        assert!((of(&[teeth(0.0), open(), teeth(0.0)]).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(of(&[teeth(0.0)]), None);
        // The mean of 400 times 10.7 is not 10.7.
        assert_eq!(of(&[vec![(0.0, 10.7)], vec![(0.0, 10.1)]]), None);
    }

    #[test]
    fn a_loss_is_shared_if_all_reduce_within_its_episode() {
        let shared = over(TimeFigure::SharedLosses { within: 0.5 });
        assert_eq!(shared.of_lines(&[teeth(0.0), teeth(0.3)]), Some(1.0));
        assert_eq!(shared.of_lines(&[teeth(0.0), teeth(1.0)]), Some(0.0));
        assert_eq!(shared.of_lines(&[vec![(0.0, 1.0)], vec![(0.0, 2.0)]]), None);
    }

    #[test]
    fn a_queue_s_quantiles_are_weighted_by_time() {
        let quantile =
            |share| over(TimeFigure::Quantile(share)).of_lines(&[vec![(0.0, 16.0), (1.0, 2.0), (7.9, 9.0)]]);
        assert_eq!((quantile(0.05), quantile(0.5), quantile(1.0)), (Some(2.0), Some(2.0), Some(16.0)));
    }
}

//! What one listener hears of a call, in the order of time.
//!
//! The *units* of a timeline are equally long. A receiver that decides frame by frame has units of one frame.
//! The adaptive receiver has units of half a millisecond (`call/listener.rs`).

use core::ops::Range;

use talkpath_units::Duration;

use super::frames::Frames;
use super::playout::Heard;
use crate::summary::MouthToEarMs;

/// What one listener hears.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Timeline {
    unit: Duration,
    frame: Duration,
    runs: Vec<Run>,
    units: u64,
}

/// Units that follow each other and have the same outcome and delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    heard: Heard,
    count: u32,
    /// The playout delay in ns. 0 if nothing was played.
    delay_ns: i64,
}

impl Timeline {
    /// Makes an empty timeline with this `unit`, of a call with a frame every `frame`.
    pub(crate) const fn new(unit: Duration, frame: Duration) -> Self {
        Self { unit, frame, runs: Vec::new(), units: 0 }
    }

    /// Adds `count` units. Their delay counts only if they are played.
    pub(crate) fn push(&mut self, heard: Heard, delay_ns: i64, count: u32) {
        let delay_ns = if heard == Heard::Played { delay_ns } else { 0 };
        self.units += u64::from(count);
        if let Some(last) = self.runs.last_mut()
            && (last.heard, last.delay_ns) == (heard, delay_ns)
            && let Some(sum) = last.count.checked_add(count)
        {
            last.count = sum;
        } else if count > 0 {
            self.runs.push(Run { heard, count, delay_ns });
        }
    }

    /// Returns the number of units.
    pub(crate) const fn units(&self) -> u64 {
        self.units
    }

    /// Returns the time of all units.
    pub(crate) fn seconds(&self) -> f64 {
        self.units as f64 * self.unit.as_secs_f64()
    }

    /// Returns the smallest number of units that last for `time` or longer.
    pub(crate) fn units_in(&self, time: Duration) -> u64 {
        time.as_nanos().div_ceil(self.unit.as_nanos().max(1))
    }

    /// Returns how many frames last as long as this number of units.
    pub(crate) fn frames_of(&self, units: u64) -> f64 {
        units as f64 * (self.unit.as_nanos() as f64 / self.frame.as_nanos().max(1) as f64)
    }

    /// Returns the units in `range`.
    pub(crate) fn part(&self, range: Range<u64>) -> Self {
        let mut part = Self::new(self.unit, self.frame);
        let mut begin = 0;
        for run in &self.runs {
            let end = begin + u64::from(run.count);
            let count = end.min(range.end).saturating_sub(begin.max(range.start));
            // A part of a run has no more units than the run.
            part.push(run.heard, run.delay_ns, u32::try_from(count).unwrap_or(u32::MAX));
            begin = end;
        }
        part
    }

    /// Returns the same units with one delay for all that are played.
    pub(crate) fn with_delay(&self, delay_ns: i64) -> Self {
        let mut timeline = Self::new(self.unit, self.frame);
        self.runs.iter().for_each(|run| timeline.push(run.heard, delay_ns, run.count));
        timeline
    }

    /// Returns this timeline and then `other`, which has the same units.
    pub(crate) fn followed_by(mut self, other: &Self) -> Self {
        other.runs.iter().for_each(|run| self.push(run.heard, run.delay_ns, run.count));
        self
    }

    /// Returns the number of units before the first one for which speech had arrived. Returns `None` if no
    /// speech arrived.
    pub(crate) fn units_before_speech(&self) -> Option<u64> {
        let mut units = 0;
        for run in &self.runs {
            if run.heard != Heard::Missing {
                return Some(units);
            }
            units += u64::from(run.count);
        }
        None
    }

    /// Counts the units by what became of them, with their gaps.
    pub(crate) fn frames(&self) -> Frames {
        let mut frames = Frames::new(self.unit, self.frame);
        self.runs.iter().for_each(|run| frames.add(run.heard, run.count));
        frames
    }

    /// Returns the lengths of the gaps in units. Late and missing units that follow each other are one gap.
    pub(crate) fn gap_lengths(&self) -> Vec<u64> {
        let mut lengths = Vec::new();
        let mut is_in_gap = false;
        for run in &self.runs {
            let is_gap = run.heard != Heard::Played;
            match lengths.last_mut() {
                Some(last) if is_gap && is_in_gap => *last += u64::from(run.count),
                _ if is_gap => lengths.push(u64::from(run.count)),
                _ => {}
            }
            is_in_gap = is_gap;
        }
        lengths
    }

    /// Returns the delay from mouth to ear of what was played. `coder_delay_ms` is the time from the first
    /// sample of a frame until the frame is due. Returns `None` if nothing was played.
    pub(crate) fn mouth_to_ear_ms(&self, coder_delay_ms: f64) -> Option<MouthToEarMs> {
        let mut runs: Vec<Run> = self.runs.iter().filter(|run| run.heard == Heard::Played).copied().collect();
        runs.sort_unstable_by_key(|run| run.delay_ns);
        let mut total_ns = 0_i128;
        let mut played = 0;
        for Run { delay_ns, count, .. } in &runs {
            total_ns += i128::from(*delay_ns) * i128::from(*count);
            played += u64::from(*count);
        }
        // The nearest rank.
        let quantile = |percent: u64| {
            let rank = (played * percent).div_ceil(100).max(1);
            let mut so_far = 0;
            for Run { delay_ns, count, .. } in &runs {
                so_far += u64::from(*count);
                if so_far >= rank {
                    return Some(coder_delay_ms + *delay_ns as f64 / 1e6);
                }
            }
            None
        };
        let mean = coder_delay_ms + total_ns as f64 / played.max(1) as f64 / 1e6;
        Some(MouthToEarMs { mean, p50: quantile(50)?, p95: quantile(95)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(text: &str) -> Timeline {
        let frame = Duration::from_millis(20);
        let mut timeline = Timeline::new(frame, frame);
        for letter in text.chars() {
            match letter {
                'p' => timeline.push(Heard::Played, 50_000_000, 1),
                'l' => timeline.push(Heard::Late, 0, 1),
                _ => timeline.push(Heard::Missing, 0, 1),
            }
        }
        timeline
    }

    #[test]
    fn parts_of_a_timeline_make_the_whole() {
        let whole = timeline("mmpplmpppmmmp");
        for at in 0..=13 {
            assert_eq!(whole.part(0..at).followed_by(&whole.part(at..13)), whole);
        }
        assert_eq!(whole.part(3..6), timeline("plm"));
        assert_eq!((whole.gap_lengths(), whole.units_before_speech()), (vec![2, 2, 3], Some(2)));
        assert_eq!(timeline("mm").units_before_speech(), None);
    }

    #[test]
    fn late_and_missing_units_count_as_the_frames_did() {
        let frames = timeline("mmpplmpppmmmp").frames();
        assert_eq!((frames.played, frames.late, frames.missing, frames.gaps.count), (6, 1, 6, 3));
        assert_eq!(timeline("pp").mouth_to_ear_ms(20.0).map(|delay| delay.p95), Some(70.0));
        assert!(timeline("mm").mouth_to_ear_ms(20.0).is_none());
    }
}

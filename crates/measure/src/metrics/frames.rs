//! What becomes of the frames of a call at one receiver: how many are played, late and missing, and in which
//! gaps.

use talkpath_units::Duration;

use super::gaps::Gaps;
use super::playout::Heard;

/// Counts the units of one direction of a call at one receiver. A unit is a frame, or a part of a frame.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frames {
    pub(crate) played: u64,
    pub(crate) late: u64,
    pub(crate) missing: u64,
    pub(crate) gaps: Gaps,
    /// The length of a unit, in frames.
    frames_per_unit: f64,
}

impl Frames {
    /// Makes the counters of units of this length, for a call with a frame every `frame`.
    pub(crate) fn new(unit: Duration, frame: Duration) -> Self {
        let frames_per_unit = unit.as_nanos() as f64 / frame.as_nanos().max(1) as f64;
        Self { played: 0, late: 0, missing: 0, gaps: Gaps::new(unit), frames_per_unit }
    }

    /// Counts the next `count` units, which have the same outcome.
    pub(crate) fn add(&mut self, heard: Heard, count: u32) {
        let count = u64::from(count);
        match heard {
            Heard::Played => self.played += count,
            Heard::Late => self.late += count,
            Heard::Missing => self.missing += count,
        }
        self.gaps.add(heard == Heard::Played, count);
    }

    /// Returns the share of the frames that were not played. Returns `None` if no frame was due.
    pub(crate) fn loss(&self) -> Option<f64> {
        let due = self.played + self.lost();
        (due > 0).then(|| self.lost() as f64 / due as f64)
    }

    /// Returns the burst ratio of ITU-T G.107 §7.5: the mean length of a gap, divided by the mean length if
    /// each frame were lost at random, which is 1 / (1 - loss).
    ///
    /// The ratio is at least 1. Losses that are spread more evenly than at random count as random losses.
    pub(crate) fn burst_ratio(&self) -> f64 {
        match self.loss() {
            Some(loss) if self.gaps.count > 0 => {
                let mean_gap = self.lost() as f64 / self.gaps.count as f64 * self.frames_per_unit;
                (mean_gap * (1.0 - loss)).max(1.0)
            }
            _ => 1.0,
        }
    }

    /// Returns the number of frames that were not played.
    const fn lost(&self) -> u64 {
        self.late + self.missing
    }
}

//! What one receiver makes of the frames of a call: how many are played, late and missing, and in which gaps.

use talkpath_units::Duration;

use super::gaps::Gaps;
use super::playout::Heard;

/// Counts the frames of one direction of a call with one receiver.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frames {
    pub(crate) played: u64,
    pub(crate) late: u64,
    pub(crate) missing: u64,
    pub(crate) gaps: Gaps,
}

impl Frames {
    /// None yet of a call whose frames are `frame` apart.
    pub(crate) fn new(frame: Duration) -> Self {
        Self { played: 0, late: 0, missing: 0, gaps: Gaps::new(frame) }
    }

    /// The next frame by number.
    pub(crate) fn add(&mut self, heard: Heard) {
        match heard {
            Heard::Played => self.played += 1,
            Heard::Late => self.late += 1,
            Heard::Missing => self.missing += 1,
        }
        self.gaps.add(heard == Heard::Played);
    }

    /// The share of the frames that was not played; `None` if no frame was due.
    pub(crate) fn loss(&self) -> Option<f64> {
        let due = self.played + self.lost();
        (due > 0).then(|| self.lost() as f64 / due as f64)
    }

    /// ITU-T G.107 §7.5: the mean length of the gaps over the mean length if each frame were lost at random,
    /// 1 / (1 - loss). Not below 1: gaps that are spread more evenly than at random are taken for random
    /// ones.
    pub(crate) fn burst_ratio(&self) -> f64 {
        match self.loss() {
            Some(loss) if self.gaps.count > 0 => {
                (self.lost() as f64 / self.gaps.count as f64 * (1.0 - loss)).max(1.0)
            }
            _ => 1.0,
        }
    }

    /// Frames that were not played.
    const fn lost(&self) -> u64 {
        self.late + self.missing
    }
}

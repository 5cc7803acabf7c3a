//! How a call sounds, as summary.json has it.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::{Basis, Direction};
use crate::metrics::gaps;

/// A call as its listener hears it; of a call in both directions the worse one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallSummary {
    /// Mean opinion score of a conversation, 1 to 4.5 (ITU-T G.107).
    pub mos: f64,
    /// Rating factor, 93.2 at best; 0 at worst, and where all frames are lost.
    pub r: f64,
    /// Frames that were there at their playout time.
    pub played: u64,
    /// Frames that came after it.
    pub late: u64,
    /// Frames that never came: lost, sent or not, refused or unfinished.
    pub missing: u64,
    /// Of the frames that were played; `None` if none was.
    pub mouth_to_ear_ms: Option<MouthToEarMs>,
    /// Mean length of the gaps over that of gaps at random (ITU-T G.107 §7.5); at least 1. The model is given
    /// 8 at most.
    pub burst_ratio: f64,
    /// The longest gap: consecutive frames that were late or missing. `None` in summaries of earlier
    /// versions.
    #[serde(default)]
    pub longest_gap_ms: Option<f64>,
    /// The most gaps of 200 ms or more that began within one minute. `None` in summaries of earlier versions.
    #[serde(default)]
    pub gaps_in_a_minute: Option<u64>,
    /// Whether `mos` reaches the flow's floor, and no gap bars it: none of 1 s or more, and no two of 200 ms
    /// or more within a minute. `None` in summaries of earlier versions.
    #[serde(default)]
    pub usable: Option<bool>,
    /// The inputs of the E-model that lie outside its table.
    #[serde(default)]
    pub outside_model: Vec<OutsideModel>,
    /// What the speech is coded by: `g711`.
    #[serde(default)]
    pub codec: String,
    /// How the receiver chooses its playout delay: `adaptive`, or `fixed` and its wait.
    pub playout: String,
    /// What it plays where a frame is missing: `none`, or `g711-appendix-i`.
    #[serde(default)]
    pub concealment: String,
    /// What the delay is: one way, or half of there and back where the clocks are not trusted.
    pub basis: Basis,
    /// Which way of an echo flow is the worse one; `None` if both count as one, by half the round trip.
    #[serde(default)]
    pub direction: Option<Direction>,
    /// The same frames with the second receiver; `None` if the scenario names the playout.
    #[serde(default)]
    pub other_receiver: Option<OtherReceiver>,
    /// Whether the call is usable depends on the receiver: with which one it is otherwise. `None` if it does
    /// not, or if the scenario names the playout.
    #[serde(default)]
    pub receiver_matters: Option<ReceiverMatters>,
}

/// What a second receiver makes of a call; of a call in both directions the worse one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherReceiver {
    /// How it chooses its playout delay: `fixed 60 ms beyond the smallest delay`.
    pub playout: String,
    /// As of the call.
    pub mos: f64,
    /// As of the call.
    pub r: f64,
    /// As of the call.
    pub played: u64,
    /// As of the call. It misses the same frames.
    pub late: u64,
    /// The same for all frames; `None` if none was played.
    pub mouth_to_ear_ms: Option<f64>,
    /// As of the call.
    pub burst_ratio: f64,
    /// As of the call.
    pub longest_gap_ms: f64,
    /// As of the call.
    pub gaps_in_a_minute: u64,
    /// As of the call.
    pub usable: bool,
    /// Which way of an echo flow is the worse one with it; `None` as of the call.
    #[serde(default)]
    pub direction: Option<Direction>,
    /// As of the call.
    pub outside_model: Vec<OutsideModel>,
}

/// The receiver with which a call is usable though it is not with the other one, or the other way round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReceiverMatters {
    /// How it chooses its playout delay.
    pub playout: String,
    /// The score with it.
    pub mos: f64,
}

impl CallSummary {
    /// This call with what the second receiver makes of it.
    pub(crate) fn beside(self, other: Option<OtherReceiver>) -> Self {
        let matters = other.as_ref().filter(|other| self.usable != Some(other.usable));
        let receiver_matters =
            matters.map(|other| ReceiverMatters { playout: other.playout.clone(), mos: other.mos });
        Self { other_receiver: other, receiver_matters, ..self }
    }

    /// Whether its gaps bar it from being usable (`metrics/gaps.rs`). Summaries of earlier versions knew of
    /// no gaps.
    pub fn is_barred(&self) -> bool {
        gaps::make_unusable(self.longest_gap_ms.unwrap_or(0.0), self.gaps_in_a_minute.unwrap_or(0))
    }
}

impl OtherReceiver {
    /// As [`CallSummary::is_barred`].
    pub fn is_barred(&self) -> bool {
        gaps::make_unusable(self.longest_gap_ms, self.gaps_in_a_minute)
    }
}

/// From a speaker's mouth to the listener's ear, milliseconds: a frame time, the path, the receiver's wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct MouthToEarMs {
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
}

/// An input of the E-model outside of the range that ITU-T G.107 (06/2015), Table 2, permits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutsideModel {
    /// Which input.
    pub input: ModelInput,
    /// What the call has, in the unit of `input`.
    pub value: f64,
    /// The least and the most of the table, in the same unit.
    pub range: (f64, f64),
}

/// An input of the E-model that a packet network changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelInput {
    /// Mean from mouth to ear, ms: T and Ta, and half of Tr.
    MouthToEarMs,
    /// Ppl, as a share.
    Loss,
    /// BurstR.
    BurstRatio,
}

impl ModelInput {
    /// As a person calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MouthToEarMs => "mouth to ear",
            Self::Loss => "loss",
            Self::BurstRatio => "burst ratio",
        }
    }

    /// `2000 ms`, `50.00 %`, `37.6`; with this many decimals `more`.
    fn text(self, value: f64, more: usize) -> String {
        match self {
            Self::MouthToEarMs => format!("{value:.more$} ms"),
            Self::Loss => format!("{:.*} %", 2 + more, 100.0 * value),
            Self::BurstRatio => format!("{value:.*}", 1 + more),
        }
    }

    /// `0 to 500 ms`, `0 to 20 %`, `1 to 8`
    fn range(self, (least, most): (f64, f64)) -> String {
        match self {
            Self::MouthToEarMs => format!("{least} to {most} ms"),
            Self::Loss => format!("{} to {} %", 100.0 * least, 100.0 * most),
            Self::BurstRatio => format!("{least} to {most}"),
        }
    }

    /// What the model is given instead, as the end of a phrase.
    const fn used(self) -> &'static str {
        match self {
            Self::BurstRatio => ", rated as the nearest of these",
            Self::MouthToEarMs | Self::Loss => ", rated as it is",
        }
    }
}

impl OutsideModel {
    /// How far the value lies outside of the range, in the unit of the input.
    pub fn excess(&self) -> f64 {
        let (least, most) = self.range;
        (least - self.value).max(self.value - most)
    }

    /// What the table has of this input, and what the model is given instead: `burst ratio 1 to 8, rated as
    /// the nearest of these`.
    pub fn table(&self) -> String {
        format!("{} {}{}", self.input.name(), self.input.range(self.range), self.input.used())
    }

    /// `burst ratio 37.6`. It has as many decimals as it needs to differ from the end of the range.
    pub fn text(&self) -> String {
        let Self { input, value, range: (least, most) } = *self;
        let is_bound = |more: &usize| {
            [least, most].iter().any(|bound| input.text(value, *more) == input.text(*bound, *more))
        };
        let more = (0..MOST_MORE).find(|more| !is_bound(more)).unwrap_or(MOST_MORE);
        format!("{} {}", input.name(), input.text(value, more))
    }
}

/// Decimals beyond the usual ones. Chosen: with these a loss is told from the bound by one in 10 billion.
const MOST_MORE: usize = 8;

impl fmt::Display for OutsideModel {
    /// `burst ratio 37.6 (the table has 1 to 8, rated as the nearest of these)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (the table has {}{})", self.text(), self.input.range(self.range), self.input.used())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_outside_of_the_table_differs_from_its_end_in_writing() {
        let text = |input, value, range| OutsideModel { input, value, range }.to_string();
        let burst = |value| text(ModelInput::BurstRatio, value, (1.0, 8.0));
        assert_eq!(burst(37.6), "burst ratio 37.6 (the table has 1 to 8, rated as the nearest of these)");
        assert_eq!(burst(8.04), "burst ratio 8.04 (the table has 1 to 8, rated as the nearest of these)");
        assert_eq!(burst(0.96), "burst ratio 0.96 (the table has 1 to 8, rated as the nearest of these)");
        let delay = text(ModelInput::MouthToEarMs, 500.3, (0.0, 500.0));
        assert_eq!(delay, "mouth to ear 500.3 ms (the table has 0 to 500 ms, rated as it is)");
        let loss = text(ModelInput::Loss, 0.200_001, (0.0, 0.2));
        assert_eq!(loss, "loss 20.0001 % (the table has 0 to 20 %, rated as it is)");
    }
}

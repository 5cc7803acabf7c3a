//! How a call sounds to its listener, as summary.json has it.
//!
//! A *frame* is one packet of speech, and a *gap* is a sequence of frames that were late or missing. The
//! *floor* is the lowest score of a usable call.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::{Basis, Direction};
use crate::metrics::gaps;
use crate::receiver::Receiver;

/// The largest number of decimals beyond the usual ones. We chose 8. A loss can then be distinguished from
/// the bound if it differs by one in 10 billion.
const MAX_EXTRA_DECIMALS: usize = 8;

/// A call as its listener hears it. If a call has two directions, this is the worse one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallSummary {
    /// The mean opinion score of a conversation, 1 to 4.5 (ITU-T G.107). `None` if delay or loss lie beyond
    /// the ranges of the model. Such a call is not usable, and counts as 1 in means. `None` also if the call
    /// is not rated.
    pub mos: Option<f64>,
    /// The rating factor, 93.2 at best. It is 0 at worst, if all frames are lost, and if delay or loss lie
    /// beyond the model. `None` if the call is not rated, because nobody published the impairment of its
    /// coding.
    pub r: Option<f64>,
    /// Frames that were played.
    pub played: u64,
    /// Frames that came, but too late to be played.
    pub late: u64,
    /// Frames that never came. They were lost, refused or unfinished.
    pub missing: u64,
    /// The share of the output that was made up, because its frame was missing or not there yet. What was due
    /// before the first frame arrived counts as made up, for example while the connection opened. With a
    /// receiver that decides frame by frame it is the share of frames that were late or missing. `None` in
    /// summaries of earlier versions.
    #[serde(default)]
    pub concealed: Option<f64>,
    /// The samples that were removed or repeated to change the delay, as a share of the output. `None` if the
    /// receiver changes no speech.
    #[serde(default)]
    pub stretched: Option<f64>,
    /// Frames that came after their time and were played all the same, later. `None` if the receiver plays no
    /// such frames.
    #[serde(default)]
    pub late_played: Option<u64>,
    /// Frames that came and were not played. `None` in summaries of earlier versions.
    #[serde(default)]
    pub discarded: Option<u64>,
    /// The delay from mouth to ear of the frames that were played. `None` if no frame was played.
    pub mouth_to_ear_ms: Option<MouthToEarMs>,
    /// The mean length of the gaps, divided by the mean length of random gaps (ITU-T G.107 §7.5). It is at
    /// least 1. The model takes at most 8.
    pub burst_ratio: f64,
    /// The number of gaps. `None` in summaries of earlier versions.
    #[serde(default)]
    pub gaps: Option<u64>,
    /// The length of the longest gap. `None` in summaries of earlier versions.
    #[serde(default)]
    pub longest_gap_ms: Option<f64>,
    /// The largest number of gaps of 200 ms or more that began within one minute. `None` in summaries of
    /// earlier versions.
    #[serde(default)]
    pub gaps_in_a_minute: Option<u64>,
    /// Whether the call is usable: `mos` reaches the floor, there is no gap of 1 s or more, and there are no
    /// two gaps of 200 ms or more within a minute. `None` if the call is not rated and no gap bars it, and in
    /// summaries of earlier versions.
    #[serde(default)]
    pub usable: Option<bool>,
    /// The inputs of the E-model that lie outside its table.
    #[serde(default)]
    pub outside_model: Vec<OutsideModel>,
    /// The windows in which the call was rated. `None` if it was rated as a whole.
    #[serde(default)]
    pub windows: Option<CallWindows>,
    /// The second after the first speech, which does not count. `None` if it counts.
    #[serde(default)]
    pub opening_second: Option<OpeningSecond>,
    /// The codec of the speech: `g711`.
    #[serde(default)]
    pub codec: String,
    /// The scale of the score: `nb`, `wb`, `swb` or `fb`. Scores of two scales are not comparable. Empty if
    /// the call is not rated, and in summaries of earlier versions, which had narrowband alone.
    #[serde(default)]
    pub scale: String,
    /// How the receiver chooses its playout delay: `adaptive`, `ramjee`, or `fixed` and the wait.
    pub playout: String,
    /// What the receiver plays if a frame is missing: `none`, or `g711-appendix-i`.
    #[serde(default)]
    pub concealment: String,
    /// How the delay was measured: one way, or as half of the round trip if the clocks are not trusted.
    pub basis: Basis,
    /// The worse direction of an echo flow. `None` if both directions have the same delay, which is half of
    /// the round trip.
    #[serde(default)]
    pub direction: Option<Direction>,
    /// The same frames with the second receiver, which waits for 60 ms. `None` if the scenario names a
    /// receiver that is not `adaptive`.
    #[serde(default)]
    pub other_receiver: Option<OtherReceiver>,
    /// The same frames with the patient receiver, which waits for 200 ms. `None` as of the second receiver.
    #[serde(default)]
    pub patient_receiver: Option<OtherReceiver>,
    /// The first of the other two receivers that disagrees on whether the call is usable. `None` if all
    /// agree, or if there are no other receivers.
    #[serde(default)]
    pub receiver_matters: Option<ReceiverMatters>,
}

/// The windows in which a call was rated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallWindows {
    /// The number of windows.
    pub count: u64,
    /// The length of a window. It is 8 to 10 s, or less if the call was shorter.
    pub seconds: f64,
}

/// The second after the first speech of a call that arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpeningSecond {
    /// The share of this second that was not played.
    pub lost: f64,
    /// The first target of the adaptive receiver. `None` for other receivers.
    pub first_target_ms: Option<u32>,
}

/// What the adaptive receiver did to the speech.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stretching {
    /// The share of the output that was made up.
    pub(crate) concealed: f64,
    /// The share of the output that was removed or repeated.
    pub(crate) stretched: f64,
    pub(crate) late_played: u64,
    pub(crate) first_target_ms: Option<u32>,
}

/// A call with another receiver. If a call has two directions, this is the worse one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherReceiver {
    /// How the second receiver chooses its playout delay: `fixed 60 ms beyond the smallest delay`.
    pub playout: String,
    /// The mean opinion score. It is 1 if delay or loss lie beyond the ranges of the model. `None` if the
    /// call is not rated.
    pub mos: Option<f64>,
    /// The rating factor. `None` if the call is not rated.
    pub r: Option<f64>,
    /// Frames that were there at their playout time.
    pub played: u64,
    /// Frames that came after their playout time. The same frames are missing as with the first receiver.
    pub late: u64,
    /// The delay from mouth to ear, which is the same for all frames. `None` if no frame was played.
    pub mouth_to_ear_ms: Option<f64>,
    /// The mean length of the gaps, divided by the mean length of random gaps.
    pub burst_ratio: f64,
    /// The length of the longest gap.
    pub longest_gap_ms: f64,
    /// The largest number of gaps of 200 ms or more that began within one minute.
    pub gaps_in_a_minute: u64,
    /// Whether the call is usable with the second receiver. `None` if the call is not rated and no gap bars
    /// it.
    pub usable: Option<bool>,
    /// The worse direction of an echo flow with the second receiver.
    #[serde(default)]
    pub direction: Option<Direction>,
    /// The inputs of the E-model that lie outside its table.
    pub outside_model: Vec<OutsideModel>,
}

/// The second receiver of a call, if only one of the two receivers makes the call usable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReceiverMatters {
    /// How the second receiver chooses its playout delay.
    pub playout: String,
    /// The mean opinion score with the second receiver.
    pub mos: f64,
}

impl CallSummary {
    /// Adds the figures of the other receivers: the second and the patient one.
    pub(crate) fn with_other_receivers(self, others: [Option<OtherReceiver>; 2]) -> Self {
        let receiver_matters = others.iter().flatten().find_map(|other| {
            let mos = other.mos.filter(|_| self.usable != other.usable)?;
            Some(ReceiverMatters { playout: other.playout.clone(), mos })
        });
        let [other_receiver, patient_receiver] = others;
        Self { other_receiver, patient_receiver, receiver_matters, ..self }
    }

    /// Returns the figures with one of the other receivers.
    pub fn receiver(&self, receiver: Receiver) -> Option<&OtherReceiver> {
        match receiver {
            Receiver::Own => None,
            Receiver::Other => self.other_receiver.as_ref(),
            Receiver::Patient => self.patient_receiver.as_ref(),
        }
    }

    /// Returns whether the model rates the call. It does not if nobody published the impairment of its
    /// coding.
    pub const fn is_rated(&self) -> bool {
        self.r.is_some()
    }

    /// Returns the score. It is 1 if delay or loss lie beyond the ranges of the model. Returns `None` if the
    /// call is not rated.
    pub fn score(&self) -> Option<f64> {
        self.is_rated().then(|| self.mos.unwrap_or(LEAST_MOS))
    }

    /// Returns the inputs of the model because of which the call has no score.
    pub fn beyond_model(&self) -> impl Iterator<Item = &OutsideModel> {
        let has_score = self.mos.is_some();
        self.outside_model.iter().filter(move |outside| !has_score && outside.is_beyond())
    }

    /// Returns whether its gaps alone make the call unusable (`metrics/gaps.rs`). Summaries of earlier
    /// versions have no gaps.
    pub fn is_barred(&self) -> bool {
        gaps::make_unusable(self.longest_gap_ms.unwrap_or(0.0), self.gaps_in_a_minute.unwrap_or(0))
    }
}

impl OtherReceiver {
    /// Returns the share of the frames that this receiver played. `missing` frames of the call never came.
    /// Returns `None` if no frame was due.
    pub fn heard(&self, missing: u64) -> Option<f64> {
        let due = self.played + self.late + missing;
        (due > 0).then(|| self.played as f64 / due as f64)
    }

    /// Returns whether its gaps alone make the call unusable with the second receiver.
    pub fn is_barred(&self) -> bool {
        gaps::make_unusable(self.longest_gap_ms, self.gaps_in_a_minute)
    }
}

/// The delay from the speaker's mouth to the listener's ear, milliseconds. It is the sum of a frame time, the
/// delay of the path and the wait of the receiver.
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
    /// The input.
    pub input: ModelInput,
    /// The value of the call, in the unit of `input`.
    pub value: f64,
    /// The smallest and the largest value in the table, in the same unit.
    pub range: (f64, f64),
}

/// An input of the E-model that a packet network changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelInput {
    /// The mean delay from mouth to ear, ms. The model calls it T and Ta, and half of Tr.
    MouthToEarMs,
    /// The share of lost frames. The model calls it Ppl, in per cent.
    Loss,
    /// The burst ratio. The model calls it BurstR.
    BurstRatio,
}

impl ModelInput {
    /// Returns the name of the input in texts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MouthToEarMs => "mouth to ear",
            Self::Loss => "loss",
            Self::BurstRatio => "burst ratio",
        }
    }

    /// Returns a value as text: `2000 ms`, `50.00 %`, `37.6`. It has `extra_decimals` beyond the usual ones.
    fn value_text(self, value: f64, extra_decimals: usize) -> String {
        match self {
            Self::MouthToEarMs => format!("{value:.extra_decimals$} ms"),
            Self::Loss => format!("{:.*} %", 2 + extra_decimals, 100.0 * value),
            Self::BurstRatio => format!("{value:.*}", 1 + extra_decimals),
        }
    }

    /// Returns a range as text: `0 to 500 ms`, `0 to 20 %`, `1 to 8`.
    fn range_text(self, (smallest, largest): (f64, f64)) -> String {
        match self {
            Self::MouthToEarMs => format!("{smallest} to {largest} ms"),
            Self::Loss => format!("{} to {} %", 100.0 * smallest, 100.0 * largest),
            Self::BurstRatio => format!("{smallest} to {largest}"),
        }
    }

    /// Says which value the model takes instead, as the end of a phrase.
    const fn replacement_text(self) -> &'static str {
        match self {
            Self::BurstRatio => ", rated as the nearest of these",
            Self::MouthToEarMs | Self::Loss => ", worse than the model rates",
        }
    }
}

impl OutsideModel {
    /// Whether a call with this value has no score. A burst ratio is cut instead.
    pub fn is_beyond(&self) -> bool {
        self.input != ModelInput::BurstRatio && self.value > self.range.1
    }

    /// Returns how far the value lies outside the range, in the unit of the input.
    pub fn excess(&self) -> f64 {
        let (smallest, largest) = self.range;
        (smallest - self.value).max(self.value - largest)
    }

    /// Returns the range in the table and the value that the model takes instead: `burst ratio 1 to 8, rated
    /// as the nearest of these`.
    pub fn table(&self) -> String {
        let Self { input, range, .. } = *self;
        format!("{} {}{}", input.name(), input.range_text(range), input.replacement_text())
    }

    /// Returns the largest value in the table as text: `500 ms`, `20 %`, `8`.
    pub fn largest_text(&self) -> String {
        let (_, largest) = self.range;
        match self.input {
            ModelInput::MouthToEarMs => format!("{largest} ms"),
            ModelInput::Loss => format!("{} %", 100.0 * largest),
            ModelInput::BurstRatio => largest.to_string(),
        }
    }

    /// Returns the value as text: `burst ratio 37.6`. The text has enough decimals to differ from both ends
    /// of the range.
    pub fn text(&self) -> String {
        let Self { input, value, range: (smallest, largest) } = *self;
        let mut extra_decimals = 0;
        let text = loop {
            let text = input.value_text(value, extra_decimals);
            let is_like_an_end =
                [smallest, largest].iter().any(|end| input.value_text(*end, extra_decimals) == text);
            if !is_like_an_end || extra_decimals == MAX_EXTRA_DECIMALS {
                break text;
            }
            extra_decimals += 1;
        };
        format!("{} {text}", input.name())
    }
}

impl fmt::Display for OutsideModel {
    /// Writes `burst ratio 37.6 (the table has 1 to 8, rated as the nearest of these)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = self.input.range_text(self.range);
        write!(f, "{} (the table has {range}{})", self.text(), self.input.replacement_text())
    }
}

/// The lowest mean opinion score. A call outside of the model on its bad side counts as this in means.
pub const LEAST_MOS: f64 = 1.0;

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
        assert_eq!(delay, "mouth to ear 500.3 ms (the table has 0 to 500 ms, worse than the model rates)");
        let loss = text(ModelInput::Loss, 0.200_001, (0.0, 0.2));
        assert_eq!(loss, "loss 20.0001 % (the table has 0 to 20 %, worse than the model rates)");
    }
}

//! The table of voice codecs: their names, their frames, and the quality of speech.
//!
//! - A *frame* is the unit of coded speech. A packet carries the frames of one packetisation time.
//! - *Concealment* is the sound that a receiver plays in place of a missing frame. Without concealment it
//!   plays silence.
//! - *Ie* and *Bpl* are a codec's constants in the E-model (ITU-T G.107): the loss of quality without packet
//!   loss, and the robustness against packet loss. They belong to one *scale*.
//! - A *coding* is a codec with what a scenario chooses: bandwidth, bit rate, frames.
//!
//! A new codec is a file with its row in `codec/`, and a line in [`Codec::ALL`]. The keys of `voice`, the
//! E-model, `talkpath mos` and the report read the rows.
//!
//! | codec | packet | look-ahead | scale | Ie | Bpl, silence | Bpl, concealed | source |
//! | --- | --- | --- | --- | --- | --- | --- | --- |
//! | `g711` | 8 B per ms | 0 | nb | 0 | 4.3 | 25.1 | ITU-T G.711; G.113 Appendix I |
//! | `g729a` | 10 B per 10 ms | 5 ms | nb | 11 | - | 19 | ITU-T G.729 Annexes A and B; G.113 Appendix I |
//! | `opus` | 6 to 128 kb/s | 6.5 ms | by bandwidth | by rate | - | by rate | RFC 6716; Alahmadi et al. 2021
//! |

mod g711;
mod g729a;
mod opus;
mod texts;

use core::fmt;

use talkpath_units::{Bytes, Duration, Rate};

pub use g711::G711_FRAMES;

/// A voice codec, as a reference to its row of the table.
#[derive(Clone, Copy)]
pub struct Codec(&'static CodecRow);

/// The facts about a codec.
#[derive(Debug)]
pub struct CodecRow {
    /// The name in scenarios, on the command line and in summary.json.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// The standard and the bit rate, for the help of options.
    pub about: &'static str,
    /// The payload type in RTP.
    pub payload_type: u8,
    /// The clock of RTP's timestamps, Hz.
    pub clock_hz: u32,
    /// The frames that a flow sends.
    pub frames: Frames,
    /// The length of the speech after a frame that the coder needs before it can code the frame.
    pub look_ahead: Duration,
    /// The concealment of the codec.
    pub concealment: CodecConcealment,
    /// The packets of a silence that is suppressed.
    pub silence: SilenceShape,
    /// Returns the quality of speech, with the codec's concealment if the flag is true.
    rate: fn(&Coding, bool) -> Option<Rated>,
}

/// The frames of a codec.
#[derive(Clone, Copy, Debug)]
pub enum Frames {
    /// All frames of a length have one size.
    OneSize(FrameShape),
    /// The scenario chooses the bit rate.
    Chosen(ChosenFrames),
}

/// The frames of a codec of constant bit rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameShape {
    /// The size of the shortest frame in bytes.
    pub bytes: u64,
    /// The length of the shortest frame. Every packet is a multiple of it.
    pub time: Duration,
    /// The usual time between packets.
    pub usual_time: Duration,
}

/// The frames of a codec whose bit rate the scenario chooses.
#[derive(Clone, Copy, Debug)]
pub struct ChosenFrames {
    /// The smallest bit rate.
    pub least_rate: Rate,
    /// The largest bit rate.
    pub most_rate: Rate,
    /// The bit rate if the scenario says none.
    pub usual_rate: Rate,
    /// The lengths of a frame, in rising order.
    pub times: &'static [Duration],
    /// The longest packet.
    pub longest_packet: Duration,
    /// The bandwidth if the scenario says none.
    pub usual_bandwidth: Bandwidth,
}

crate::words! {
    /// The bandwidth of coded speech.
    pub enum Bandwidth {
        /// Up to 4 kHz.
        Narrow = "nb",
        /// Up to 6 kHz.
        Medium = "mb",
        /// Up to 8 kHz.
        Wide = "wb",
        /// Up to 12 kHz.
        SuperWide = "swb",
        /// Up to 20 kHz.
        Full = "fb",
    }
}

crate::words! {
    /// A scale of ratings. Scores of two scales are not comparable.
    pub enum Scale {
        /// ITU-T G.107.
        Narrow = "nb",
        /// ITU-T G.107.1.
        Wide = "wb",
        /// ITU-T G.107.2, for speech in super-wideband.
        SuperWide = "swb",
        /// ITU-T G.107.2.
        Full = "fb",
    }
}

impl Scale {
    /// The least score of a usable call on this scale. It is the score for an R of 60, below which nearly
    /// all users are dissatisfied (ITU-T G.109 (09/1999), Table 1: MOS 3.1). The wider scales go on above
    /// the narrow one, so the same R is as bad there, and has a lower score: 2.39 (R / 1.29) and 2.09 (R
    /// / 1.48), which we round.
    pub const fn floor(self) -> f64 {
        match self {
            Self::Narrow => 3.1,
            Self::Wide => 2.4,
            Self::SuperWide | Self::Full => 2.1,
        }
    }
}

/// The concealment of a codec.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodecConcealment {
    /// The name in scenarios and in summary.json.
    pub name: &'static str,
    /// The end of a sentence that begins with the name and says what the concealment does.
    pub about: &'static str,
    /// The words in parentheses behind "with concealment", for people.
    pub title: &'static str,
    /// Whether a receiver can play silence instead. The decoders of other codecs always conceal.
    pub is_optional: bool,
}

/// The packets of a silence that is suppressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SilenceShape {
    /// The size of a packet that describes the silence. `None` if it is an ordinary frame.
    pub descriptor: Option<Bytes>,
    /// The time between two such packets. `None` if there is only one, at the beginning of the silence.
    pub every: Option<Duration>,
}

/// The quality of speech through a codec, as constants of the E-model (ITU-T G.107 §7.5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impairment {
    /// The equipment impairment factor, which the codec subtracts from the rating R without packet loss.
    pub ie: f64,
    /// The packet-loss robustness factor: the loss in per cent that subtracts half of the remaining rating. A
    /// larger factor is better.
    pub bpl: f64,
}

/// The constants of a coding in the E-model, with their scale and their source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rated {
    /// The scale that the constants belong to.
    pub scale: Scale,
    /// The constants for losses at random.
    pub impairment: Impairment,
    /// Bpl for losses in bursts. `None` if the model's burst ratio says how much worse they are.
    pub bursty_bpl: Option<f64>,
    /// Where the constants were published.
    pub source: &'static str,
}

/// A codec with what a scenario chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coding {
    /// The codec.
    pub codec: Codec,
    /// The bandwidth of the speech.
    pub bandwidth: Bandwidth,
    /// The bits of speech per second, headers not counted.
    pub bit_rate: Rate,
    /// Whether the bit rate holds on average only.
    pub is_vbr: bool,
    /// The length of a frame.
    pub frame: Duration,
    /// The number of frames in a packet.
    pub frames_in_packet: u32,
    /// Whether each frame has the frame before it at a lower quality.
    pub has_fec: bool,
    /// Whether silence is suppressed.
    pub has_dtx: bool,
}

impl Codec {
    /// All codecs.
    pub const ALL: &[Self] = &[Self::G711, Self::G729A, Self::OPUS];

    /// The names of codecs that people ask for and that are not available yet.
    pub const LATER: &[&str] = &["g729", "g722", "g726", "amr-wb", "evs"];

    /// The names of all codecs.
    pub const NAMES: &[&str] = &texts::NAMES;

    /// The values of the key `concealment`: silence, and then the concealment of each codec.
    pub const CONCEALMENTS: &[&str] = &texts::CONCEALMENTS;

    /// The text of the key `codec` in the documentation: the frames of each codec.
    pub const FRAMES_DOC: &str = texts::FRAMES.as_str();

    /// The text of the key `concealment` in the documentation: each concealment.
    pub const CONCEALMENTS_DOC: &str = texts::CONCEALMENT.as_str();

    /// Returns the facts about the codec.
    pub const fn row(self) -> &'static CodecRow {
        self.0
    }

    /// Returns the name in scenarios and in summary.json.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns the codec called `word`.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|codec| codec.name() == word)
    }

    /// Returns the quality of speech if the scenario chooses nothing, with the codec's concealment or else
    /// with silence in place of missing frames. Returns `None` if nobody published it.
    pub fn rated(self, is_concealed: bool) -> Option<Rated> {
        Coding::usual(self).rated(is_concealed)
    }

    /// Whether the decoder always conceals, so that a receiver cannot play silence.
    pub const fn always_conceals(self) -> bool {
        !self.0.concealment.is_optional
    }

    /// Returns the value of the key `concealment` for a receiver that conceals, or else plays silence.
    pub const fn concealment(self, is_concealed: bool) -> &'static str {
        let is_silent = !is_concealed && self.0.concealment.is_optional;
        if is_silent { SILENCE } else { self.0.concealment.name }
    }
}

impl Default for Codec {
    fn default() -> Self {
        Self::G711
    }
}

impl PartialEq for Codec {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Codec {}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Frames {
    /// Returns the usual time between two packets.
    pub const fn usual_time(&self) -> Duration {
        match self {
            Self::OneSize(shape) => shape.usual_time,
            Self::Chosen(_) => G711_FRAMES.usual_time,
        }
    }

    /// Returns the fewest frames that fill a packet of this time, or `None` if frames cannot fill it.
    pub fn fewest_in(&self, packet: Duration) -> Option<u32> {
        match self {
            Self::OneSize(FrameShape { time, .. }) if packet.as_nanos().is_multiple_of(time.as_nanos()) => {
                // A frame of G.711 is as long as the packet: its samples have no other border.
                let is_of_samples = *time == Duration::from_millis(1);
                let frames = if is_of_samples { 1 } else { packet.as_nanos() / time.as_nanos() };
                u32::try_from(frames).ok()
            }
            Self::OneSize(_) => None,
            Self::Chosen(chosen) if packet > chosen.longest_packet => None,
            Self::Chosen(chosen) => {
                let mut longest_first = chosen.times.iter().rev();
                let frame = longest_first.find(|time| packet.as_nanos().is_multiple_of(time.as_nanos()))?;
                u32::try_from(packet.as_nanos() / frame.as_nanos()).ok()
            }
        }
    }

    /// Whether a frame can have this length.
    pub fn can_last(&self, frame: Duration) -> bool {
        match self {
            Self::OneSize(shape) => !frame.is_zero() && shape.can_be(frame),
            Self::Chosen(chosen) => chosen.times.contains(&frame),
        }
    }
}

impl FrameShape {
    /// Returns the bit rate in tenths of 1 kb/s. A byte has 8 bits, so it is 80 tenths of a kilobit per ms.
    const fn kbps_tenths(self) -> u64 {
        self.bytes * 80 / self.time.as_millis()
    }

    /// Whether a packet can have this length, which must be a multiple of the shortest frame.
    pub const fn can_be(self, time: Duration) -> bool {
        time.as_nanos().is_multiple_of(self.time.as_nanos())
    }

    /// Returns the size of a packet of this length, which must be a multiple of the shortest frame.
    pub const fn size(self, time: Duration) -> Bytes {
        Bytes::new(time.as_nanos() / self.time.as_nanos() * self.bytes)
    }
}

impl Default for Coding {
    fn default() -> Self {
        Self::G711
    }
}

impl Coding {
    /// G.711 in packets of 20 ms.
    pub const G711: Self = Self {
        codec: Codec::G711,
        bandwidth: Bandwidth::Narrow,
        bit_rate: Rate::from_bps(64_000),
        is_vbr: false,
        frame: G711_FRAMES.usual_time,
        frames_in_packet: 1,
        has_fec: false,
        has_dtx: false,
    };

    /// Returns the coding of a scenario that chooses the codec alone.
    pub fn usual(codec: Codec) -> Self {
        let frames = &codec.row().frames;
        let packet = frames.usual_time();
        let frames_in_packet = frames.fewest_in(packet).unwrap_or(1);
        let (bandwidth, bit_rate, is_vbr) = match frames {
            Frames::OneSize(shape) => (Bandwidth::Narrow, Rate::from_bps(100 * shape.kbps_tenths()), false),
            Frames::Chosen(chosen) => (chosen.usual_bandwidth, chosen.usual_rate, true),
        };
        Self {
            codec,
            bandwidth,
            bit_rate,
            is_vbr,
            frame: Duration::from_nanos(packet.as_nanos() / u64::from(frames_in_packet)),
            frames_in_packet,
            has_fec: false,
            has_dtx: false,
        }
    }

    /// Returns the time between two packets.
    pub fn packet_time(&self) -> Duration {
        self.frame * u64::from(self.frames_in_packet)
    }

    /// Returns the size of a packet's speech. With a variable bit rate it is the mean.
    pub fn packet_size(&self) -> Bytes {
        match &self.codec.row().frames {
            Frames::OneSize(shape) => shape.size(self.packet_time()),
            Frames::Chosen(_) => opus::packet_size(self.bit_rate, self.packet_time()),
        }
    }

    /// Whether in-band FEC exists for these frames.
    pub fn can_have_fec(&self) -> bool {
        self.codec == Codec::OPUS && opus::has_silk(self.frame)
    }

    /// Returns the quality of speech with the codec's concealment, or else with silence in place of missing
    /// frames. A codec that always conceals has only the quality with concealment. Returns `None` if nobody
    /// published figures for this coding.
    pub fn rated(&self, is_concealed: bool) -> Option<Rated> {
        (self.codec.row().rate)(self, is_concealed)
    }
}

impl Rated {
    /// Makes the rating of a codec with one pair of constants.
    const fn of_table(scale: Scale, impairment: Impairment, source: &'static str) -> Self {
        Self { scale, impairment, bursty_bpl: None, source }
    }
}

/// The value of the key `concealment` for a receiver that plays silence in place of a missing frame.
pub const SILENCE: &str = "none";

#[cfg(test)]
mod tests;

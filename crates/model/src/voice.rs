//! A call: which packets its sender sends, and when.
//!
//! - A *packet* carries the speech of one packetisation time. It is one message.
//! - A sender can *suppress silence*. Then only talkspurts have packets, and each silence has at most a few
//!   that describe its noise.
//! - A sender can send speech more than once, so that a lost packet loses nothing: it repeats the speech of
//!   earlier packets in each packet (*RED*, RFC 2198), or it sends each packet several times (*copies*).
//!
//! Begin to read with [`VoiceConfig`].

use serde::{Deserialize, Serialize};
use talkpath_config::{Codec, Coding, G711_FRAMES};
use talkpath_units::{Bytes, Duration};

use crate::message_size::MessageSize;

/// A call: which packets its sender sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoiceConfig {
    /// How the speech is coded. The far host does not need it.
    #[serde(skip)]
    pub coding: Coding,
    /// The time between two packets (packetisation time).
    #[serde(rename = "ptime_ns")]
    pub ptime: Duration,
    /// The size of a message: the speech of one packet with its headers. If sizes vary, it is the mean, and
    /// earlier speech is not counted.
    pub size: Bytes,
    /// The headers within `size`.
    #[serde(skip)]
    pub headers: VoiceHeaders,
    /// What the sender does besides. `None` if it sends all packets with the same size, each once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<VoiceSender>,
}

/// The bytes of a message of a call that are not speech.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VoiceHeaders {
    /// The length before each packet on a stream (RFC 4571 §2).
    pub length: Bytes,
    /// The fixed header of RTP (RFC 3550 §5.1). It is zero for a call without RTP.
    pub rtp: Bytes,
    /// The header extensions of RTP (RFC 3550 §5.3.1).
    pub extensions: Bytes,
    /// The authentication tag of SRTP (RFC 3711 §3.1).
    pub tag: Bytes,
}

/// What a sender of a call does besides sending all packets with the same size, each once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoiceSender {
    /// The part of each packet that is not speech.
    pub headers: Bytes,
    /// How the sizes of packets vary.
    pub spread: SizeSpread,
    /// How silence is suppressed. `None` if silence is sent as speech.
    pub silence: Option<Silence>,
    /// The number of earlier packets whose speech each packet repeats (RFC 2198).
    pub red: u8,
    /// The number of times that each packet is sent, at least 1.
    pub copies: u8,
}

/// How the sizes of coded speech vary around their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SizeSpread {
    /// All sizes are the mean (CBR).
    Constant,
    /// As Opus with a variable bit rate, where SILK codes the speech.
    OpusSpeech,
    /// As Opus with a variable bit rate, where CELT codes the speech.
    OpusTransform,
}

/// How a sender suppresses silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// The payload that describes a silence. `None` if it is an ordinary frame.
    pub descriptor: Option<Bytes>,
    /// The time between two such packets. `None` if there is one alone, at the beginning of the silence.
    #[serde(rename = "every_ns")]
    pub every: Option<Duration>,
}

impl VoiceConfig {
    /// A call without RTP: 160 B of G.711 every 20 ms (ITU-T G.711; RFC 3551 §4.2).
    pub(crate) const G711: Self = Self {
        coding: Coding::G711,
        ptime: G711_FRAMES.usual_time,
        size: G711_FRAMES.size(G711_FRAMES.usual_time),
        headers: VoiceHeaders {
            length: Bytes::ZERO,
            rtp: Bytes::ZERO,
            extensions: Bytes::ZERO,
            tag: Bytes::ZERO,
        },
        sender: None,
    };

    /// Returns the codec of the speech.
    pub const fn codec(&self) -> Codec {
        self.coding.codec
    }

    /// Returns the payloads of the messages.
    pub fn sizes(&self) -> MessageSize {
        let Some(sender) = self.sender else { return MessageSize::Constant(self.size) };
        if sender.spread == SizeSpread::Constant && sender.silence.is_none() && sender.red == 0 {
            return MessageSize::Constant(self.size);
        }
        let mean = self.size.saturating_sub(sender.headers);
        let (smallest, largest) = (sender.spread.size(mean, 0), sender.spread.size(mean, LAST_DRAW));
        let descriptor = sender.silence.and_then(|silence| silence.descriptor);
        let smallest = descriptor.map_or(smallest, |size| size.min(smallest));
        let largest = sender.headers + sender.payload(largest, (0..sender.red).map(|_| largest));
        MessageSize::Uniform { min: sender.headers + sender.payload(smallest, []), max: largest }
    }

    /// Returns the number of messages in each packetisation time.
    pub fn copies(&self) -> u64 {
        self.sender.map_or(1, |sender| u64::from(sender.copies.max(1)))
    }

    /// Returns the number of earlier packets whose speech a packet also has, by RED or by in-band FEC.
    pub fn earlier_packets(&self) -> u8 {
        let red = self.sender.map_or(0, |sender| sender.red);
        red.max(u8::from(self.coding.has_fec))
    }
}

impl VoiceHeaders {
    /// Returns the headers together.
    pub fn total(self) -> Bytes {
        self.length + self.rtp + self.extensions + self.tag
    }
}

impl VoiceSender {
    /// Returns the payload of a packet: `newest` B of new speech and the speech of earlier packets, each with
    /// its header (RFC 2198 §3).
    pub fn payload(&self, newest: Bytes, earlier: impl IntoIterator<Item = Bytes>) -> Bytes {
        if self.red == 0 {
            return newest;
        }
        let blocks: Bytes = earlier.into_iter().map(|block| RED_BLOCK_HEADER + block).sum();
        blocks + RED_LAST_HEADER + newest
    }
}

impl SizeSpread {
    /// Returns the size for a number from 0 to [`LAST_DRAW`] that was drawn uniformly. `mean` is the mean of
    /// all sizes.
    ///
    /// The sizes of successive packets are independent here. Those of libopus are not: their correlation is
    /// 0.5 for speech.
    pub fn size(self, mean: Bytes, draw: u64) -> Bytes {
        let ratios = match self {
            Self::Constant => return mean,
            Self::OpusSpeech => OPUS_SPEECH,
            Self::OpusTransform => OPUS_TRANSFORM,
        };
        let above = QUANTILES.iter().position(|quantile| draw <= *quantile).unwrap_or(QUANTILES.len() - 1);
        let above = above.max(1);
        let (low, high) = (QUANTILES[above - 1], QUANTILES[above]);
        let (low_ratio, high_ratio) = (ratios[above - 1], ratios[above]);
        // The ratio on the line between the two quantiles, in millionths.
        let ratio =
            low_ratio * 1000 + (high_ratio - low_ratio) * 1000 * (draw.clamp(low, high) - low) / (high - low);
        Bytes::new((mean.get() * ratio + 500_000) / 1_000_000).max(Bytes::new(1))
    }
}

/// The largest number that is drawn for a size: the numbers are millionths.
pub const LAST_DRAW: u64 = 1_000_000;

/// The quantiles of the tables below, in millionths.
const QUANTILES: [u64; 15] = [
    0, 10_000, 50_000, 100_000, 200_000, 300_000, 400_000, 500_000, 600_000, 700_000, 800_000, 900_000,
    950_000, 990_000, 1_000_000,
];

// Sizes of packets over their mean, in thousandths, of libopus 1.6.1 (through PyAV 18.1.0) with a variable
// bit rate, application "voip", packets of 20 ms, over 24.7 s of read speech (LibriVox, in Debian's
// pocketsphinx-testdata). Each rate was divided by its own mean. Measured on 2026-11-29.

/// 7416 packets at 8, 12, 16, 24, 32 and 40 kb/s, up to super-wideband.
const OPUS_SPEECH: [u64; 15] =
    [371, 631, 781, 836, 898, 945, 980, 1007, 1037, 1063, 1101, 1154, 1206, 1287, 1573];

/// 3708 packets at 64, 96 and 128 kb/s in full band.
const OPUS_TRANSFORM: [u64; 15] =
    [605, 691, 738, 766, 809, 845, 898, 956, 994, 1050, 1178, 1337, 1465, 1684, 1934];

/// RFC 2198 §3: the header of a block of earlier speech, and that of the newest block.
const RED_BLOCK_HEADER: Bytes = Bytes::new(4);
const RED_LAST_HEADER: Bytes = Bytes::new(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_sizes_have_their_mean_and_the_quantiles_that_libopus_had() {
        let mean = Bytes::new(10_000);
        for spread in [SizeSpread::OpusSpeech, SizeSpread::OpusTransform] {
            let sizes = (0..=1000).map(|draw| spread.size(mean, 1000 * draw).get());
            let average = sizes.clone().sum::<u64>() as f64 / 1001.0;
            assert!((average / 10_000.0 - 1.0).abs() < 0.015, "{spread:?}: {average}");
            assert!(sizes.is_sorted());
        }
        let speech = |draw| SizeSpread::OpusSpeech.size(Bytes::new(80), draw).get();
        assert_eq!([0, 500_000, 1_000_000].map(speech), [30, 81, 126]);
        assert_eq!(speech(u64::MAX), 126, "a number beyond the last has the last size");
    }

    /// RFC 2198 §3: 4 B for each earlier block and 1 B for the newest.
    #[test]
    fn red_adds_the_earlier_speech_and_its_headers() {
        let sender = |red| VoiceSender {
            headers: Bytes::new(12),
            spread: SizeSpread::Constant,
            silence: None,
            red,
            copies: 1,
        };
        let voice =
            |red| VoiceConfig { size: Bytes::new(172), sender: Some(sender(red)), ..VoiceConfig::G711 };
        assert_eq!(voice(0).sizes(), MessageSize::Constant(Bytes::new(172)));
        let sizes = MessageSize::Uniform { min: Bytes::new(173), max: Bytes::new(12 + 2 * 164 + 161) };
        assert_eq!(voice(2).sizes(), sizes);
    }
}

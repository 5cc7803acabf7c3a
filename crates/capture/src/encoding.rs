//! The meaning of payload types, and the codec that a stream is rated with.

use serde::Serialize;
use talkpath_config::Codec;
use talkpath_measure::rtp::static_type;

/// The meaning of a payload type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoding {
    /// The name of the encoding, as SDP writes it: `PCMU`, `opus`.
    pub name: String,
    /// The rate of the timestamps in hertz, above 0. `None` if nobody said it.
    pub clock_rate: Option<u32>,
}

/// Who says what a payload type means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EncodingSource {
    /// The option of the command line.
    Option,
    /// A description of the session in the capture (SDP).
    Sdp,
    /// The table of fixed payload types (RFC 3551 §6).
    Table,
}

impl EncodingSource {
    /// Returns the words behind the payload type.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Option => "by --payload-type",
            Self::Sdp => "by SDP in the capture",
            Self::Table => "by RFC 3551",
        }
    }
}

impl Encoding {
    /// Reads `NAME` or `NAME/RATE`, as in `opus/48000`. SDP may add the number of channels.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('/');
        let name = parts.next().filter(|name| is_token(name))?;
        let clock_rate = match parts.next() {
            Some(rate) => Some(rate.parse::<u32>().ok().filter(|rate| (1..=MAX_RATE).contains(rate))?),
            None => usual_rate(name),
        };
        Some(Self { name: name.to_owned(), clock_rate })
    }

    /// Returns the fixed meaning of a payload type.
    pub(crate) fn fixed(payload_type: u8) -> Option<Self> {
        let fixed = static_type(payload_type)?;
        Some(Self { name: fixed.encoding.to_owned(), clock_rate: Some(fixed.clock_rate) })
    }

    /// Returns the codec of the speech in a stream of this encoding. This is the one place that knows which
    /// encodings are calls.
    pub(crate) fn codec(&self) -> Option<Codec> {
        match self.name.to_ascii_uppercase().as_str() {
            "PCMU" | "PCMA" => Some(Codec::G711),
            "G729" => Some(Codec::G729A),
            "OPUS" => Some(Codec::OPUS),
            _ => None,
        }
    }

    /// Returns whether the packets have the speech of earlier packets, too (RFC 2198).
    pub(crate) fn is_red(&self) -> bool {
        self.name.eq_ignore_ascii_case("red")
    }

    /// Returns whether the encoding is Opus (RFC 7587).
    pub(crate) fn is_opus(&self) -> bool {
        self.name.eq_ignore_ascii_case("opus")
    }
}

/// Whether `name` is a name of an encoding: letters, digits and a few signs (RFC 4566 §9, `token`).
fn is_token(name: &str) -> bool {
    let is_token_character =
        |character: char| character.is_ascii_alphanumeric() || "!#$%&'*+-.^_`{|}~".contains(character);
    !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_token_character)
}

/// The rate of an encoding whose rate is not stated, in hertz.
fn usual_rate(name: &str) -> Option<u32> {
    let rate = match name.to_ascii_uppercase().as_str() {
        // RFC 3551 §6.
        "PCMU" | "PCMA" | "G729" | "GSM" | "G723" | "G722" | "G728" | "LPC" | "CN" => 8000,
        // RFC 4867 §8.1, RFC 4733 §7, RFC 3952 §4.
        "AMR" | "TELEPHONE-EVENT" | "ILBC" => 8000,
        // RFC 4867 §8.2; 3GPP TS 26.445.
        "AMR-WB" | "EVS" => 16_000,
        // RFC 7587 §4.1.
        "OPUS" => 48_000,
        // RFC 6184 §8.1, RFC 7741 §6.1, RFC 9628, RFC 7798 §7.1.
        "H264" | "VP8" | "VP9" | "H265" => 90_000,
        _ => return None,
    };
    Some(rate)
}

/// The highest clock rate that is read. We chose 1 MHz because RTP's rates end at 192 kHz.
const MAX_RATE: u32 = 1_000_000;
/// The longest name that is read. We chose 32 because registered names are shorter.
const MAX_NAME: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoding_has_a_name_and_a_rate_that_is_stated_or_usual() {
        let of = |text| Encoding::parse(text).map(|it| (it.name, it.clock_rate));
        assert_eq!(of("opus"), Some(("opus".to_owned(), Some(48_000))));
        assert_eq!(of("opus/48000/2"), Some(("opus".to_owned(), Some(48_000))));
        assert_eq!(of("speex"), Some(("speex".to_owned(), None)));
        for wrong in ["", "/8000", "opus/0", "opus/x", "a b", "opus/4294967295"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert_eq!(Encoding::parse("pcma").unwrap().codec(), Some(Codec::G711));
        assert_eq!(Encoding::parse("EVS").unwrap().codec(), None);
    }
}

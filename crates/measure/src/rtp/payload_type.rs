//! The payload types with a fixed meaning, and how a stream of speech is rated.

use talkpath_config::{Codec, Frames};
use talkpath_units::Duration;

use crate::{CallTerms, Carriage, PlayoutRule};

/// The meaning of a payload type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticType {
    /// The name of the encoding, as SDP writes it.
    pub encoding: &'static str,
    /// The rate of the timestamps in hertz.
    pub clock_rate: u32,
}

/// Returns the meaning of a payload type in the profile for audio and video (RFC 3551 §6, Tables 4 and 5).
/// Returns `None` if a conversation agrees on the meaning outside of RTP.
pub const fn static_type(payload_type: u8) -> Option<StaticType> {
    let (encoding, clock_rate) = match payload_type {
        0 => ("PCMU", 8000),
        3 => ("GSM", 8000),
        4 => ("G723", 8000),
        5 => ("DVI4", 8000),
        6 => ("DVI4", 16_000),
        7 => ("LPC", 8000),
        8 => ("PCMA", 8000),
        // The rate of G.722's timestamps is 8000 Hz, although the codec samples at 16 kHz (RFC 3551 §4.5.2).
        9 => ("G722", 8000),
        10 | 11 => ("L16", 44_100),
        12 => ("QCELP", 8000),
        13 => ("CN", 8000),
        14 => ("MPA", 90_000),
        15 => ("G728", 8000),
        16 => ("DVI4", 11_025),
        17 => ("DVI4", 22_050),
        18 => ("G729", 8000),
        25 => ("CelB", 90_000),
        26 => ("JPEG", 90_000),
        28 => ("nv", 90_000),
        31 => ("H261", 90_000),
        32 => ("MPV", 90_000),
        33 => ("MP2T", 90_000),
        34 => ("H263", 90_000),
        _ => return None,
    };
    Some(StaticType { encoding, clock_rate })
}

/// Returns whether a payload type is comfort noise: 13 (RFC 3389), or 19, which older senders use.
pub const fn is_comfort_noise(payload_type: u8) -> bool {
    matches!(payload_type, 13 | 19)
}

/// Returns how a stream of RTP is rated as a call: by a receiver with an adaptive playout delay, which
/// conceals what is missing. `frame` is the time between two packets.
pub fn call_terms(codec: Codec, frame: Duration) -> CallTerms {
    // A capture does not tell what a sender chose, so such a codec has no rating.
    let rated = match codec.row().frames {
        Frames::OneSize(_) => codec.rated(true),
        Frames::Chosen(_) => None,
    };
    CallTerms {
        codec,
        rated,
        frame,
        carriage: Carriage::default(),
        playout: PlayoutRule::Adaptive,
        is_concealed: true,
        others: false,
    }
}

/// Returns the usual clock rate that is within 5 % of `rate`. Returns `None` if there is none.
pub(super) fn nearest_rate(rate: f64) -> Option<u32> {
    USUAL_RATES.into_iter().find(|&usual| (rate / f64::from(usual) - 1.0).abs() < 0.05)
}

/// The clock rates of codecs in use: RFC 3551 §6, Opus (RFC 7587 §4.1), EVS and AMR-WB.
const USUAL_RATES: [u32; 6] = [8000, 16_000, 32_000, 44_100, 48_000, 90_000];

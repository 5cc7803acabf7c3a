//! The speech of a call, coded and decoded frame by frame.

use talkpath_measure::{Codec, Coding, Hearing};

use crate::concealment::Concealment;
use crate::error::SoundError;
use crate::g711::Law;
use crate::limits::Limits;
#[cfg(feature = "opus")]
use crate::opus::OpusDecoder;
use crate::speaker::Speaker;

/// Returns the sample rate at which the speech of a coding is decoded.
pub(crate) fn sample_rate(coding: &Coding) -> Result<u32, SoundError> {
    match coding.codec {
        codec if codec == Codec::G711 => Ok(8_000),
        #[cfg(feature = "opus")]
        codec if codec == Codec::OPUS => Ok(crate::opus::sample_rate(coding.bandwidth)),
        codec => Err(SoundError::NoCoder { codec: codec.name() }),
    }
}

/// Makes the decoder of a call. A recording has the sample rate `rate` of the coding.
pub(crate) fn decoder(
    hearing: &Hearing,
    coding: &Coding,
    speaker: Speaker<'_>,
    rate: u32,
    limits: Limits,
) -> Result<Decoder, SoundError> {
    if coding.codec == Codec::G711 {
        return Ok(Decoder::G711(Box::new(G711Decoder::new(hearing, limits.law, speaker, rate))));
    }
    opus(hearing, coding, speaker, rate, limits)
}

#[cfg(feature = "opus")]
fn opus(
    hearing: &Hearing,
    coding: &Coding,
    speaker: Speaker<'_>,
    rate: u32,
    limits: Limits,
) -> Result<Decoder, SoundError> {
    Ok(Decoder::Opus(Box::new(OpusDecoder::new(hearing, coding, speaker, rate, limits)?)))
}

#[cfg(not(feature = "opus"))]
fn opus(_: &Hearing, coding: &Coding, _: Speaker<'_>, _: u32, _: Limits) -> Result<Decoder, SoundError> {
    Err(SoundError::NoCoder { codec: coding.codec.name() })
}

/// The decoder of a listener, with the frames that the speaker sent.
#[derive(Debug)]
pub(crate) enum Decoder {
    G711(Box<G711Decoder>),
    #[cfg(feature = "opus")]
    Opus(Box<OpusDecoder>),
}

impl Decoder {
    /// Decodes the frame with this number.
    pub(crate) fn decode(&mut self, number: usize) -> Vec<f32> {
        match self {
            Self::G711(decoder) => decoder.decode(number),
            #[cfg(feature = "opus")]
            Self::Opus(decoder) => decoder.decode(number),
        }
    }

    /// Makes up `count` samples after the speech `before`, whose end may be changed.
    pub(crate) fn conceal(&mut self, count: usize, before: &mut [f32]) -> Vec<f32> {
        match self {
            Self::G711(decoder) => decoder.conceal(count, before),
            #[cfg(feature = "opus")]
            Self::Opus(decoder) => decoder.conceal(count),
        }
    }

    /// Makes `count` samples of a silence that was not sent: what the decoder plays without packets, or
    /// nothing if it conceals lost packets as speech.
    pub(crate) fn silence(&mut self, count: usize) -> Vec<f32> {
        match self {
            Self::G711(_) => vec![0.0; count],
            #[cfg(feature = "opus")]
            Self::Opus(decoder) => decoder.conceal(count),
        }
    }

    /// Ends the made-up speech. Returns how it would have gone on, to overlap with the speech after it.
    pub(crate) fn overlap(&mut self) -> Vec<f32> {
        match self {
            Self::G711(decoder) => decoder.overlap(),
            #[cfg(feature = "opus")]
            Self::Opus(decoder) => decoder.overlap(),
        }
    }
}

/// A decoder of G.711, with concealment after Appendix I if the call has it.
#[derive(Debug)]
pub(crate) struct G711Decoder {
    law: Law,
    codes: Codes,
    /// The number of samples in a frame.
    frame: usize,
    is_concealed: bool,
    gap: Gap,
}

/// The codes of the speech.
#[derive(Debug)]
enum Codes {
    /// A recording, coded once. It begins again where it ends.
    Recording(Vec<u8>),
    /// The frames that a sender sent.
    Frames(Vec<Box<[u8]>>),
}

/// Where the listener is.
#[derive(Debug)]
enum Gap {
    /// In speech.
    None,
    /// In a gap in which silence is played.
    Silent,
    /// In a gap in which made-up speech is played.
    MadeUp(Box<Concealment>),
}

impl G711Decoder {
    fn new(hearing: &Hearing, law: Law, speaker: Speaker<'_>, rate: u32) -> Self {
        let codes = match speaker {
            Speaker::Reads(recording) => {
                let samples = recording.samples.iter();
                Codes::Recording(samples.map(|sample| law.encode(sample.round() as i16)).collect())
            }
            Speaker::Sent(frames) => Codes::Frames(frames.to_vec()),
        };
        let frame = hearing.frame * i64::from(rate) / i64::from(hearing.sample_rate);
        let frame = usize::try_from(frame).unwrap_or_default();
        Self { law, codes, frame, is_concealed: hearing.terms.is_concealed, gap: Gap::None }
    }

    fn decode(&mut self, number: usize) -> Vec<f32> {
        let Self { law, codes, frame, .. } = self;
        let decode = |code: &u8| f32::from(law.decode(*code));
        match codes {
            Codes::Recording(codes) => {
                let first = (number * *frame) % codes.len().max(1);
                codes.iter().cycle().skip(first).take(*frame).map(decode).collect()
            }
            // A packet without speech, or with less of it than the others, is silent.
            Codes::Frames(frames) => {
                let codes = frames.get(number).map(AsRef::as_ref).unwrap_or_default();
                let mut speech: Vec<f32> = codes.iter().take(*frame).map(decode).collect();
                speech.resize(*frame, 0.0);
                speech
            }
        }
    }

    fn conceal(&mut self, count: usize, before: &mut [f32]) -> Vec<f32> {
        if matches!(self.gap, Gap::None) {
            let concealment = if self.is_concealed { Concealment::begin(before) } else { None };
            self.gap = concealment.map_or(Gap::Silent, |concealment| Gap::MadeUp(Box::new(concealment)));
        }
        match &mut self.gap {
            Gap::MadeUp(concealment) => (0..count).map(|_| concealment.next()).collect(),
            Gap::None | Gap::Silent => vec![0.0; count],
        }
    }

    fn overlap(&mut self) -> Vec<f32> {
        match core::mem::replace(&mut self.gap, Gap::None) {
            Gap::MadeUp(mut concealment) => (0..concealment.overlap()).map(|_| concealment.next()).collect(),
            Gap::None | Gap::Silent => Vec::new(),
        }
    }
}

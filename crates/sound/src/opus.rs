//! Opus (RFC 6716), coded and decoded by the library `ropus`: its encoder, its decoder with the decoder's
//! concealment (§4.4), and in-band FEC.
//!
//! The library computes with whole numbers, so each machine makes the same sound.

use core::fmt;

use ropus::{Application, Bitrate, Channels, DecodeMode, Decoder, Encoder, InbandFec};
use talkpath_measure::{Bandwidth, Coding, Hearing};

use crate::error::SoundError;
use crate::limits::Limits;
use crate::speaker::Speaker;
use crate::wav::Recording;

/// A decoder of Opus, with the packets that the speaker sent.
pub(crate) struct OpusDecoder {
    decoder: Decoder,
    /// The coded frames. A packet of the call has several of them.
    frames: Vec<Vec<u8>>,
    frames_in_packet: usize,
    /// For each packet of the call, whether it came itself.
    came_itself: Vec<bool>,
    /// Whether a recording is coded with in-band FEC.
    has_fec: bool,
    /// Whether the packets are those of a capture. One that did not come itself is empty if its speech came
    /// by FEC, and has its speech if that came by RED.
    is_captured: bool,
    /// The number of samples in a frame.
    samples: usize,
    /// The shortest speech that the decoder makes up, in samples.
    least_made_up: usize,
    /// Made-up speech that was not needed yet.
    made_up: Vec<f32>,
}

/// The largest frame (RFC 6716 §3.4, R2).
const LARGEST_FRAME: usize = 1275;
/// The decoder makes up multiples of 2.5 ms: the shortest frame of Opus (RFC 6716 §2.1.4).
const MADE_UP_PER_SECOND: u32 = 400;
/// The loss that the encoder expects with FEC, in per cent. libopus adds none if it expects no loss. We
/// chose 10 % as a sender that sees some loss.
const EXPECTED_LOSS: u8 = 10;

/// Returns the sample rate of the speech: that of its bandwidth (RFC 6716, Table 1).
pub(crate) fn sample_rate(bandwidth: Bandwidth) -> u32 {
    match bandwidth {
        Bandwidth::Narrow => 8_000,
        Bandwidth::Medium => 12_000,
        Bandwidth::Wide => 16_000,
        Bandwidth::SuperWide => 24_000,
        Bandwidth::Full => 48_000,
    }
}

impl OpusDecoder {
    pub(crate) fn new(
        hearing: &Hearing,
        coding: &Coding,
        speaker: Speaker<'_>,
        rate: u32,
        limits: Limits,
    ) -> Result<Self, SoundError> {
        let samples_in = |nanos: u64| {
            let samples = nanos * u64::from(rate) / 1_000_000_000;
            usize::try_from(samples).unwrap_or_default().max(1)
        };
        let (frames, frames_in_packet, samples, is_captured) = match speaker {
            Speaker::Reads(recording) => {
                let samples = samples_in(coding.frame.as_nanos());
                let frames_in_packet = coding.frames_in_packet.max(1) as usize;
                // No more is coded than is heard, and two packets for what is discarded at the end.
                let most = limits.seconds as usize * rate as usize / samples + 2 * frames_in_packet;
                let count = (hearing.came_itself.len() * frames_in_packet).min(most);
                (encode(coding, recording, samples, count)?, frames_in_packet, samples, false)
            }
            // The decoder takes a packet whole.
            Speaker::Sent(packets) => {
                let frames = packets.iter().map(|packet| packet.to_vec()).collect();
                (frames, 1, samples_in(hearing.terms.frame.as_nanos()), true)
            }
        };
        Ok(Self {
            decoder: Decoder::new(rate, Channels::Mono).map_err(|why| refused(&why))?,
            frames,
            frames_in_packet,
            came_itself: hearing.came_itself.clone(),
            has_fec: coding.has_fec,
            is_captured,
            samples,
            least_made_up: (rate / MADE_UP_PER_SECOND) as usize,
            made_up: Vec::new(),
        })
    }

    /// Decodes the packet with this number. If it came by FEC alone, its last frame is in the packet after
    /// it, and the frames before are made up.
    pub(crate) fn decode(&mut self, number: usize) -> Vec<f32> {
        let first = number * self.frames_in_packet;
        let is_absent = self.frames.get(first).is_none_or(Vec::is_empty);
        let is_by_fec = self.came_itself.get(number) == Some(&false)
            && if self.is_captured { is_absent } else { self.has_fec };
        let mut speech = Vec::with_capacity(self.frames_in_packet * self.samples);
        for at in first..first + self.frames_in_packet {
            let is_last = at + 1 == first + self.frames_in_packet;
            speech.extend(match is_by_fec {
                false => self.decode_frame(at, DecodeMode::Normal),
                true if is_last => self.decode_frame(at + 1, DecodeMode::Fec),
                true => self.decode_frame(usize::MAX, DecodeMode::Normal),
            });
        }
        speech
    }

    /// Decodes a frame, or makes it up if there is no frame with this number.
    fn decode_frame(&mut self, at: usize, mode: DecodeMode) -> Vec<f32> {
        let frame = self.frames.get(at).map(Vec::as_slice).unwrap_or_default();
        let mode = if frame.is_empty() { DecodeMode::Normal } else { mode };
        run(&mut self.decoder, frame, self.samples, mode)
    }

    pub(crate) fn conceal(&mut self, count: usize) -> Vec<f32> {
        while self.made_up.len() < count {
            let more = run(&mut self.decoder, &[], self.least_made_up, DecodeMode::Normal);
            self.made_up.extend(more);
        }
        self.made_up.drain(..count).collect()
    }

    pub(crate) fn overlap(&mut self) -> Vec<f32> {
        core::mem::take(&mut self.made_up)
    }
}

/// Codes `count` frames of `samples` samples.
pub(crate) fn encode(
    coding: &Coding,
    recording: &Recording,
    samples: usize,
    count: usize,
) -> Result<Vec<Vec<u8>>, SoundError> {
    let mut encoder = Encoder::builder(recording.rate, Channels::Mono, Application::Voip)
        .bitrate(Bitrate::Bits(u32::try_from(coding.bit_rate.as_bps()).unwrap_or(u32::MAX)))
        .vbr(coding.is_vbr)
        .max_bandwidth(match coding.bandwidth {
            Bandwidth::Narrow => ropus::Bandwidth::Narrowband,
            Bandwidth::Medium => ropus::Bandwidth::Mediumband,
            Bandwidth::Wide => ropus::Bandwidth::Wideband,
            Bandwidth::SuperWide => ropus::Bandwidth::Superwideband,
            Bandwidth::Full => ropus::Bandwidth::Fullband,
        })
        .inband_fec(if coding.has_fec { InbandFec::Enabled } else { InbandFec::Disabled })
        .packet_loss_perc(if coding.has_fec { EXPECTED_LOSS } else { 0 })
        .build()
        .map_err(|why| refused(&why))?;
    let mut speech = recording.samples.iter().cycle().map(|sample| sample.round() as i16);
    let mut frames = Vec::with_capacity(count);
    let (mut frame, mut packet) = (Vec::with_capacity(samples), vec![0; LARGEST_FRAME]);
    for _ in 0..count {
        frame.clear();
        frame.extend(speech.by_ref().take(samples));
        let length = encoder.encode(&frame, &mut packet).map_err(|why| refused(&why))?;
        frames.push(packet.get(..length).unwrap_or_default().to_vec());
    }
    Ok(frames)
}

fn refused(why: &dyn fmt::Display) -> SoundError {
    SoundError::Coder { why: why.to_string() }
}

/// Returns `samples` samples of the decoder. It is silence if the decoder refuses a frame: its own encoder
/// makes none of those, but a capture may have one.
fn run(decoder: &mut Decoder, frame: &[u8], samples: usize, mode: DecodeMode) -> Vec<f32> {
    let mut speech = vec![0; samples];
    if decoder.decode(frame, &mut speech, mode).is_err() {
        speech.fill(0);
    }
    speech.into_iter().map(f32::from).collect()
}

impl fmt::Debug for OpusDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpusDecoder").field("frames", &self.frames.len()).finish_non_exhaustive()
    }
}

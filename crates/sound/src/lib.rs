//! Makes the sound of a call: what a listener hears, from a recording of speech and the decisions of the
//! receiver.
//!
//! ```text
//!   recording ─► coder ─► frames ──┐
//!   capture ──────────────► frames ┼─► decoder, concealment, stretching ─► Sound ─► WAV
//!   records of a run ───► Hearing ─┘
//! ```
//!
//! `talkpath_measure` plays a call with its receiver and counts samples. It says what the receiver did as
//! [`Hearing`]. This crate performs the same steps with samples:
//!
//! - `speaker`: where the frames come from: a recording that is coded here, or the packets of a capture.
//! - `g711`: the laws of ITU-T G.711.
//! - `opus`: Opus by a library, if the program was built with the feature `opus`.
//! - `concealment`: ITU-T G.711 Appendix I.
//! - `stretching`: speech becomes shorter or longer by whole pitch periods.
//! - `wav`, `resample`: recordings of other sample rates.
//!
//! It leaves out what the model of the receiver leaves out: noise of comfort, echo, and the delay of the
//! sound. Nothing in it is random, so the same records make the same sound. Begin to read with [`render`].

mod coder;
mod concealment;
mod error;
mod g711;
mod limits;
mod line;
#[cfg(feature = "opus")]
mod opus;
mod render;
mod resample;
mod speaker;
mod stretching;
#[cfg(test)]
mod tests;
pub mod wav;

pub use self::error::SoundError;
pub use self::g711::Law;
pub use self::limits::Limits;
pub use self::line::Heard;
pub use self::render::{Column, Sound, Span, render};
pub use self::speaker::{Payload, Speaker};
pub use self::wav::{Recording, WavError};
pub use talkpath_measure::Hearing;

/// A recording of speech that is in the public domain, as a WAV file: `speech/README.md` has its source.
pub const SPEECH: &[u8] = include_bytes!("../speech/speech.wav");

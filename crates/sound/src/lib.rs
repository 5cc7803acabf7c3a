//! Makes the sound of a call: what a listener hears, from a recording of speech and the decisions of the
//! receiver.
//!
//! ```text
//!   recording ─► coder ─► frames ──┐
//!                                  ├─► decoder, concealment, stretching ─► Sound ─► WAV
//!   records of a run ─► Hearing ───┘
//! ```
//!
//! `talkpath_measure` plays a call with its receiver and counts samples. It says what the receiver did as
//! [`Hearing`]. This crate performs the same steps with samples:
//!
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
mod g711;
#[cfg(feature = "opus")]
mod opus;
mod render;
mod resample;
mod stretching;
#[cfg(test)]
mod tests;
pub mod wav;

use thiserror::Error;

pub use self::coder::render;
pub use self::g711::Law;
pub use self::render::{Column, Heard, Sound, Span};
pub use self::wav::{Recording, WavError};
pub use talkpath_measure::Hearing;

/// A recording of speech that is in the public domain, as a WAV file: `speech/README.md` has its source.
pub const SPEECH: &[u8] = include_bytes!("../speech/speech.wav");

/// The codecs for which this program has a coder.
pub const CODECS: &[&str] = if cfg!(feature = "opus") { &["g711", "opus"] } else { &["g711"] };

/// What is made of a call.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The length in seconds after which the sound ends.
    pub seconds: u32,
    /// The law of a call in G.711.
    pub law: Law,
}

/// Why there is no sound of a call.
#[derive(Debug, Error)]
pub enum SoundError {
    /// The program has no coder for the codec.
    #[error("it is in {codec}, and this program has a coder for {} alone{}", CODECS.join(" and "), hint(codec))]
    NoCoder {
        /// The codec of the call.
        codec: &'static str,
    },
    /// The coder refused the coding of the call.
    #[error("the coder refused it: {why}")]
    Coder {
        /// The words of the coder.
        why: String,
    },
}

/// How to get a coder that this program lacks.
fn hint(codec: &str) -> &'static str {
    let is_feature = codec == "opus" && !cfg!(feature = "opus");
    if is_feature { "; built with `--features opus` it has one for opus, too" } else { "" }
}

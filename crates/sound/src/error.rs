//! Why there is no sound of a call.

use thiserror::Error;

/// The codecs for which this program has a coder.
pub(crate) const CODECS: &[&str] = if cfg!(feature = "opus") { &["g711", "opus"] } else { &["g711"] };

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
    match codec {
        "opus" if !cfg!(feature = "opus") => "; built with `--features opus` it has one for opus, too",
        "g729a" => "; the free decoder of G.729A, bcg729, is under the GPL, and this program is not",
        _ => "",
    }
}

//! What a receiver does to the samples that wait to be played, so that somebody else can make the sound.
//!
//! ```text
//!             ┌──────────────── samples that wait ────────────────┐
//!  sound card ◄─ Output                 Remove, Repeat ─┘  ◄─ Decode, Conceal
//! ```

/// A step of a receiver. Samples are appended at one end and played at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing is heard, because no speech has arrived yet.
    Silence {
        /// The number of samples, which are appended and played at once.
        samples: i64,
    },
    /// The speech of a packet is appended.
    Decode {
        /// The timestamp of the first sample of the packet.
        timestamp: i64,
        /// The number of samples in the packet.
        samples: i64,
        /// The number of samples at the beginning of the packet that are left out, because they overlap with
        /// the made-up speech before them.
        joined: i64,
    },
    /// Made-up speech is appended.
    Conceal {
        /// The number of samples.
        samples: i64,
    },
    /// Speech that waits is made shorter.
    Remove {
        /// The number of samples that are removed.
        samples: i64,
    },
    /// Speech that waits is made longer.
    Repeat {
        /// The number of samples that are repeated.
        samples: i64,
    },
    /// Samples are played.
    Output {
        /// The number of samples.
        samples: i64,
    },
}

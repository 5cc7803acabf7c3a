//! The speech that a listener has heard and is going to hear, with what each sample is.

/// What a listener hears in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heard {
    /// The speech of a packet.
    Decoded,
    /// A silence of the speaker, which was not sent.
    Pause,
    /// Speech in which a pitch period was removed or repeated.
    Stretched,
    /// Made-up speech, or silence if the receiver does not conceal.
    Concealed,
    /// Nothing, because no speech has arrived yet.
    Silent,
}

/// The speech that was played and that waits to be played.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) rate: u32,
    pub(crate) samples: Vec<f32>,
    /// What each sample is.
    pub(crate) heard: Vec<Heard>,
    /// The number of samples that were played.
    pub(crate) played: usize,
}

impl Line {
    pub(crate) fn new(rate: u32) -> Self {
        Self { rate, samples: Vec::new(), heard: Vec::new(), played: 0 }
    }

    pub(crate) fn push(&mut self, samples: &[f32], heard: Heard) {
        self.samples.extend_from_slice(samples);
        self.heard.resize(self.samples.len(), heard);
    }

    /// Returns the number of the first sample that waits and after which all are from packets.
    pub(crate) fn first_of_decoded_tail(&self) -> usize {
        let is_made_up = |heard: &Heard| matches!(heard, Heard::Concealed | Heard::Silent);
        let waiting = self.heard.get(self.played..).unwrap_or_default();
        self.played + waiting.iter().rposition(is_made_up).map_or(0, |at| at + 1)
    }
}

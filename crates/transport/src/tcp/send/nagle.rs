//! Nagle's algorithm: whether a small segment has to wait.
//!
//! RFC 896 (RFC 9293 §3.7.4) holds a segment below the maximum while anything is unacknowledged. Minshall's
//! variant (draft-minshall-nagle-01; tcp_minshall_check in Linux) holds it only while another *small* segment
//! is unacknowledged: a full segment in flight does not delay the tail that follows it.

use talkpath_config::NagleKind;

/// The state of Nagle's algorithm at one sender.
#[derive(Clone, Debug)]
pub(super) struct Nagle {
    kind: NagleKind,
    /// The offset at which the latest small segment ends (Linux: snd_sml).
    small_end: u64,
}

impl Nagle {
    pub(super) const fn new(kind: NagleKind) -> Self {
        Self { kind, small_end: 0 }
    }

    /// True if a small segment has to wait. `Stream::plan` (segments.rs) decides what is small, and exempts a
    /// FIN.
    pub(super) const fn holds(&self, snd_una: u64, snd_max: u64) -> bool {
        match self.kind {
            NagleKind::Off => false,
            NagleKind::Classic => snd_una < snd_max,
            NagleKind::Minshall => snd_una < self.small_end,
        }
    }

    /// Takes note that a small segment, which ends at `end`, was sent for the first time.
    pub(super) const fn on_small_sent(&mut self, end: u64) {
        self.small_end = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minshall_lets_a_tail_follow_full_segments() {
        let (mut classic, mut minshall) = (Nagle::new(NagleKind::Classic), Nagle::new(NagleKind::Minshall));
        assert!(classic.holds(1, 1461) && !minshall.holds(1, 1461));
        classic.on_small_sent(1561);
        minshall.on_small_sent(1561);
        assert!(minshall.holds(1461, 1561));
        assert!(!minshall.holds(1561, 1561) && !classic.holds(1561, 1561));
    }
}

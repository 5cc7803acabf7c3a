//! One exchange of stamps between two hosts.

/// One exchange: sent and received here, received and sent there, ns on each end's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Left here.
    pub sent: i64,
    /// Came there.
    pub far_received: i64,
    /// Left there.
    pub far_sent: i64,
    /// Came back here.
    pub received: i64,
}

impl Probe {
    /// Far clock minus ours (RFC 5905 §8: theta), rounded down.
    ///
    /// A far end may send any stamps; the offset is at most 73 years either way.
    pub fn offset(&self) -> i64 {
        let there = i128::from(self.far_received) - i128::from(self.sent);
        let back = i128::from(self.far_sent) - i128::from(self.received);
        clamped((there + back).div_euclid(2))
    }

    /// Time on the way, both directions (RFC 5905 §8: delta); at least 0.
    pub fn round_trip(&self) -> i64 {
        let here = self.received.saturating_sub(self.sent);
        let there = self.far_sent.saturating_sub(self.far_received);
        here.saturating_sub(there).clamp(0, FURTHEST_NS)
    }
}

pub(super) fn clamped(ns: i128) -> i64 {
    ns.clamp(-i128::from(FURTHEST_NS), i128::from(FURTHEST_NS)) as i64
}

/// The largest offset and round trip that a probe gives: 73 years, so that sums of a few do not overflow.
pub(super) const FURTHEST_NS: i64 = i64::MAX / 4;
/// The largest frequency error of a clock that NTP still disciplines (RFC 5905 §7.3 and appendix A.1: PHI and
/// MAXFREQ, 500 ppm).
pub(super) const SKEW_LIMIT_PPM: i64 = 500;

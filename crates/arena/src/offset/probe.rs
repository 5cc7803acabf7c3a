//! A probe: one exchange of stamps between two hosts.

/// One exchange of stamps. Each stamp is in ns on the clock of the host that took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// When this host sent the probe.
    pub sent: i64,
    /// When the far host received the probe.
    pub far_received: i64,
    /// When the far host sent the answer.
    pub far_sent: i64,
    /// When this host received the answer.
    pub received: i64,
}

impl Probe {
    /// Returns the far clock minus ours (RFC 5905 §8: theta), rounded down, ns.
    ///
    /// A far end may send any stamps. So the offset is limited to 73 years in both directions.
    pub fn offset(&self) -> i64 {
        let there = i128::from(self.far_received) - i128::from(self.sent);
        let back = i128::from(self.far_sent) - i128::from(self.received);
        clamped((there + back).div_euclid(2))
    }

    /// Returns the time that both packets spent on the path (RFC 5905 §8: delta), ns, at least 0.
    pub fn round_trip(&self) -> i64 {
        let here = self.received.saturating_sub(self.sent);
        let there = self.far_sent.saturating_sub(self.far_received);
        here.saturating_sub(there).clamp(0, FURTHEST_NS)
    }
}

/// Limits a time to [`FURTHEST_NS`] in both directions.
pub(super) fn clamped(ns: i128) -> i64 {
    ns.clamp(-i128::from(FURTHEST_NS), i128::from(FURTHEST_NS)) as i64
}

/// The largest offset and the largest round trip of a probe: 73 years. Sums of a few of them do not overflow.
pub(super) const FURTHEST_NS: i64 = i64::MAX / 4;
/// The largest frequency error of a clock that NTP still disciplines (RFC 5905 §7.3 and appendix A.1: PHI and
/// MAXFREQ, 500 ppm).
pub(super) const SKEW_LIMIT_PPM: i64 = 500;

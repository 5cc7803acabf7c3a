//! The access categories of 802.11's EDCA: how eagerly a frame contends for the medium.

use talkpath_units::Duration;

use crate::dscp::Dscp;

/// An access category, the one that waits longest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessCategory {
    /// AC_BK.
    Background,
    /// AC_BE.
    BestEffort,
    /// AC_VI.
    Video,
    /// AC_VO.
    Voice,
}

/// How a category contends.
#[derive(Clone, Copy, Debug)]
pub(super) struct EdcaParameters {
    /// After the medium became idle, a SIFS and as many slots pass before the backoff goes on.
    pub(super) aifsn: u64,
    /// The first contention window.
    pub(super) cw_min: u32,
    /// The largest contention window.
    pub(super) cw_max: u32,
    /// For how long the winner of the medium may go on. Zero is one exchange.
    pub(super) txop: Duration,
}

impl AccessCategory {
    /// All categories.
    pub const ALL: [Self; 4] = [Self::Background, Self::BestEffort, Self::Video, Self::Voice];

    /// The category of packets with this codepoint, by the recommendation of RFC 8325 §4.3, and of RFC 8622
    /// for LE. Other codepoints are best effort.
    pub const fn of(dscp: Dscp) -> Self {
        match dscp.number() {
            // LE, CS1.
            1 | 8 => Self::Background,
            // AF31 to AF33, AF41 to AF43, CS3, CS4, CS5.
            26 | 28 | 30 | 34 | 36 | 38 | 24 | 32 | 40 => Self::Video,
            // VA, EF, CS6, CS7.
            44 | 46 | 48 | 56 => Self::Voice,
            _ => Self::BestEffort,
        }
    }

    /// The place in [`Self::ALL`].
    pub(crate) const fn index(self) -> usize {
        self as usize
    }

    /// The category's name in random streams.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Background => "background",
            Self::BestEffort => "best-effort",
            Self::Video => "video",
            Self::Voice => "voice",
        }
    }

    /// Linux's defaults (ieee80211_set_wmm_default in net/mac80211, from 802.11-2007 table 7-37), with
    /// aCWmin = 15 and aCWmax = 1023 of the OFDM and HT PHYs. 802.11-2020 table 9-155 has the same, with
    /// longer series: 2.528 ms for best effort and background, 4.096 and 2.080 ms. Here access points have
    /// them too.
    pub(super) const fn parameters(self) -> EdcaParameters {
        let (aifsn, cw_min, cw_max, txop_us) = match self {
            Self::Background => (7, 15, 1023, 0),
            Self::BestEffort => (3, 15, 1023, 0),
            Self::Video => (2, 7, 15, 3008),
            Self::Voice => (2, 3, 7, 1504),
        };
        EdcaParameters { aifsn, cw_min, cw_max, txop: Duration::from_micros(txop_us) }
    }

    /// Whether frames are aggregated. Linux aggregates all categories but voice (minstrel_aggr_check in
    /// net/mac80211/rc80211_minstrel_ht.c).
    pub(super) const fn is_aggregated(self) -> bool {
        !matches!(self, Self::Voice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codepoints_have_the_categories_of_rfc_8325() {
        let of = |name| AccessCategory::of(Dscp::named(name).unwrap());
        for (names, category) in [
            (&["EF", "VA", "CS6", "CS7"][..], AccessCategory::Voice),
            (&["AF41", "AF43", "CS5", "CS4", "AF31", "CS3"], AccessCategory::Video),
            (&["AF21", "CS2", "AF11", "CS0"], AccessCategory::BestEffort),
            (&["CS1", "LE"], AccessCategory::Background),
        ] {
            assert!(names.iter().all(|name| of(name) == category), "{category:?}");
        }
    }
}

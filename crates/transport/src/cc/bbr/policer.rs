//! Whether a policer holds the path to a rate (bbr_lt_bw_sampling; Flach and others, "An Internet-wide
//! analysis of traffic policing", SIGCOMM 2016).
//!
//! A token bucket lets bursts through and then drops whatever exceeds its rate. BBR looks at intervals from
//! loss to loss, each of 4 to 16 rounds. If two intervals in a row have a loss for each five deliveries, and
//! nearly the same rate, BBR assumes a policer. It then uses that rate, the long-term rate, for 48 rounds of
//! PROBE_BW.

use super::control::bytes_per_second;
use super::{BW_UNIT, UNIT};

/// The search for a policer (Linux: long-term sampling).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    /// True during an interval.
    is_sampling: bool,
    /// True while the long-term rate is used.
    is_used: bool,
    /// The long-term rate, as a bandwidth. While it is not used: the rate of the last interval, and zero if
    /// there was none.
    bw: u64,
    /// The number of rounds in the interval, or since the rate is used.
    rounds: u64,
    /// The totals at the beginning of the interval.
    start: Totals,
}

/// The counts of a connection, whose differences describe an interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    /// When an acknowledgement last reported a delivery, in milliseconds.
    pub(super) at_ms: u64,
    /// The number of segments that were delivered.
    pub(super) delivered: u64,
    /// How often a segment was marked as lost.
    pub(super) lost: u64,
}

/// What the policer needs of an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    pub(super) totals: Totals,
    /// True if a segment was newly marked as lost.
    pub(super) has_losses: bool,
    pub(super) is_app_limited: bool,
    pub(super) is_round_start: bool,
    pub(super) is_probing_bw: bool,
    pub(super) smss: u32,
}

/// What the caller has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    Nothing,
    /// A policer was found: the long-term rate is used, without gains.
    Policed,
    /// The rate was used long enough: the path is probed again.
    Over,
}

impl Policer {
    /// The long-term rate, as a bandwidth. `None` if no policer is assumed.
    pub(super) fn rate(&self) -> Option<u64> {
        self.is_used.then_some(self.bw)
    }

    /// Begins the search anew.
    pub(super) const fn reset(&mut self, totals: Totals) {
        *self = Self { is_sampling: false, is_used: false, bw: 0, rounds: 0, start: totals };
    }

    pub(super) fn on_ack(&mut self, evidence: Evidence) -> Finding {
        if self.is_used {
            let is_counted_round = evidence.is_probing_bw && evidence.is_round_start;
            self.rounds += u64::from(is_counted_round);
            if is_counted_round && self.rounds >= ROUNDS_IN_USE {
                self.reset(evidence.totals);
                return Finding::Over;
            }
            return Finding::Nothing;
        }
        if !self.is_sampling {
            // Before the first loss the bucket still has tokens and lets more through than its rate. So an
            // interval begins with a loss and ends with a loss.
            if !evidence.has_losses {
                return Finding::Nothing;
            }
            self.begin_interval(evidence.totals);
            self.is_sampling = true;
        }
        if evidence.is_app_limited {
            self.reset(evidence.totals);
            return Finding::Nothing;
        }
        self.rounds += u64::from(evidence.is_round_start);
        if self.rounds < SHORTEST_INTERVAL {
            return Finding::Nothing;
        }
        if self.rounds > 4 * SHORTEST_INTERVAL {
            self.reset(evidence.totals);
            return Finding::Nothing;
        }
        if evidence.has_losses { self.end_interval(evidence) } else { Finding::Nothing }
    }

    const fn begin_interval(&mut self, totals: Totals) {
        self.start = totals;
        self.rounds = 0;
    }

    fn end_interval(&mut self, evidence: Evidence) -> Finding {
        let totals = evidence.totals;
        let lost = totals.lost - self.start.lost;
        let delivered = totals.delivered - self.start.delivered;
        let span_ms = totals.at_ms.saturating_sub(self.start.at_ms);
        if delivered == 0 || lost * UNIT < LOSS_THRESHOLD * delivered || span_ms == 0 {
            return Finding::Nothing;
        }
        let bw = delivered * BW_UNIT / (span_ms * 1000);
        if self.bw > 0 {
            let difference = bw.abs_diff(self.bw);
            let is_near = difference * UNIT <= self.bw * (UNIT / 8)
                || bytes_per_second(difference, UNIT, evidence.smss) <= NEAR_BYTES_PER_SECOND;
            if is_near {
                self.bw = u64::midpoint(bw, self.bw);
                self.is_used = true;
                self.rounds = 0;
                return Finding::Policed;
            }
        }
        self.bw = bw;
        self.begin_interval(totals);
        Finding::Nothing
    }
}

/// The shortest interval, in rounds (Linux: bbr_lt_intvl_min_rtts).
const SHORTEST_INTERVAL: u64 = 4;
/// The smallest ratio of losses to deliveries, in 1/256: about a fifth (Linux: bbr_lt_loss_thresh).
const LOSS_THRESHOLD: u64 = 50;
/// Two rates are nearly the same if they differ by at most an eighth, or by 4 kbit/s (Linux: bbr_lt_bw_ratio,
/// bbr_lt_bw_diff).
const NEAR_BYTES_PER_SECOND: u64 = 500;
/// The number of rounds for which the long-term rate is used (Linux: bbr_lt_bw_max_rtts).
const ROUNDS_IN_USE: u64 = 48;

#[cfg(test)]
mod tests {
    use super::*;

    /// A round a call, of 100 ms; `delivered` and `lost` are totals since the beginning.
    fn round(policer: &mut Policer, number: u64, delivered: u64, lost: u64, has_losses: bool) -> Finding {
        policer.on_ack(Evidence {
            totals: Totals { at_ms: 100 * number, delivered, lost },
            has_losses,
            is_app_limited: false,
            is_round_start: true,
            is_probing_bw: true,
            smss: 1000,
        })
    }

    #[test]
    fn two_lossy_intervals_of_one_rate_are_a_policer_for_48_rounds() {
        let mut policer = Policer::default();
        let mut found = Vec::new();
        // 10 of 13 segments a round arrive: the first interval ends in the fourth round, the second four
        // rounds later.
        for number in 0..9 {
            found.push(round(&mut policer, number, 10 * number, 3 * number, true));
        }
        let policed = found.iter().position(|&finding| finding == Finding::Policed);
        assert_eq!(policed, Some(7), "{found:?}");
        assert_eq!(policer.rate(), Some(10 * BW_UNIT / 100_000));
        let over = (9..100).find(|&number| round(&mut policer, number, 0, 0, false) == Finding::Over);
        assert_eq!((over, policer.rate()), (Some(7 + 48), None));
    }

    #[test]
    fn little_loss_or_an_uneven_rate_is_no_policer() {
        let mut little = Policer::default();
        let mut uneven = Policer::default();
        let mut delivered = 0;
        for number in 0..16 {
            assert_eq!(round(&mut little, number, 100 * number, number, true), Finding::Nothing);
            delivered += 10 + 20 * (number / 4);
            assert_eq!(round(&mut uneven, number, delivered, 2 * delivered, true), Finding::Nothing);
        }
        assert_eq!((little.rate(), uneven.rate()), (None, None));
    }
}

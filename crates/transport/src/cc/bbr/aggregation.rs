//! How many more segments than expected are acknowledged at once (Linux: bbr_update_ack_aggregation).
//!
//! ```text
//!   excess = acked in this epoch - bandwidth * time since the epoch began        at most cwnd
//! ```
//!
//! If acknowledgements come in bursts, the window has to last through the silence between two bursts. So the
//! window is widened by the largest excess of the last five to ten rounds. A new epoch begins when
//! acknowledgements have come no faster than the bandwidth.

use super::BW_UNIT;

/// The excess of acknowledged segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    /// When the current epoch began, in microseconds.
    epoch_start: u64,
    /// The number of segments that were acknowledged in the current epoch.
    epoch_acked: u64,
    /// The largest excess in the current group of five rounds, and in the group before.
    excess: [u64; 2],
    /// The index of the current group in `excess`.
    index: usize,
    /// The number of rounds in the current group.
    rounds: u64,
}

impl Aggregation {
    pub(super) fn excess(&self) -> u64 {
        self.excess[0].max(self.excess[1])
    }

    /// Begins a new epoch.
    pub(super) const fn restart(&mut self, now_us: u64) {
        self.epoch_start = now_us;
        self.epoch_acked = 0;
    }

    /// Records that `acked` segments were delivered on a path of bandwidth `bw`.
    pub(super) fn on_ack(&mut self, acked: u64, bw: u64, cwnd: u64, is_round_start: bool, now_us: u64) {
        if is_round_start {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.index = 1 - self.index;
                self.excess[self.index] = 0;
            }
        }
        let mut expected = segments_in(now_us.saturating_sub(self.epoch_start), bw);
        if self.epoch_acked <= expected || self.epoch_acked + acked >= MAX_EPOCH {
            self.restart(now_us);
            expected = 0;
        }
        self.epoch_acked += acked;
        let excess = self.epoch_acked.saturating_sub(expected).min(cwnd);
        self.excess[self.index] = self.excess[self.index].max(excess);
    }
}

/// The number of segments that the bandwidth `bw` delivers in `span_us`.
fn segments_in(span_us: u64, bw: u64) -> u64 {
    let segments = u128::from(bw) * u128::from(span_us) / u128::from(BW_UNIT);
    u64::try_from(segments).unwrap_or(u64::MAX)
}

/// The number of rounds in a group (Linux: bbr_extra_acked_win_rtts).
const ROUNDS: u64 = 5;
/// The number of segments that ends an epoch (Linux: bbr_ack_epoch_acked_reset_thresh).
const MAX_EPOCH: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// One segment per 1024 µs.
    const BW: u64 = BW_UNIT / 1024;
    /// The time in which ten segments are expected, in µs.
    const TEN_SEGMENTS: u64 = 10 * 1024;

    #[test]
    fn bursts_leave_an_excess_for_five_to_ten_rounds() {
        let mut aggregation = Aggregation::default();
        for burst in 1..=3 {
            aggregation.on_ack(10, BW, 100, false, TEN_SEGMENTS * burst);
        }
        assert_eq!(aggregation.excess(), 10);
        for round in 10..20 {
            aggregation.on_ack(1, BW, 100, true, TEN_SEGMENTS * round);
        }
        assert_eq!(aggregation.excess(), 1);
    }

    #[test]
    fn the_excess_never_exceeds_the_window() {
        let mut aggregation = Aggregation::default();
        aggregation.on_ack(50, BW, 20, false, TEN_SEGMENTS);
        assert_eq!(aggregation.excess(), 20);
    }
}

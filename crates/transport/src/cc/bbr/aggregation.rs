//! How much more than expected is acknowledged at once (bbr_update_ack_aggregation).
//!
//! If acknowledgements come in bursts, the window has to last through the silence between two bursts. It is
//! widened by the largest excess of the last five to ten rounds.

/// Acknowledged segments in excess of what the bandwidth explains.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    /// When the current epoch began, in microseconds, and what was acknowledged since.
    epoch_start: u64,
    epoch_acked: u64,
    /// The largest excess of this window of rounds and of the last, and which is this.
    excess: [u64; 2],
    index: usize,
    /// Rounds in this window.
    rounds: u64,
}

impl Aggregation {
    pub(super) fn excess(&self) -> u64 {
        self.excess[0].max(self.excess[1])
    }

    /// A new epoch: the sender was idle.
    pub(super) const fn restart(&mut self, now_us: u64) {
        self.epoch_start = now_us;
        self.epoch_acked = 0;
    }

    /// `acked` segments were delivered. `bw` segments a microsecond, scaled by `unit`, were to be expected.
    pub(super) fn on_ack(
        &mut self,
        acked: u64,
        bw: u64,
        unit: u64,
        cwnd: u64,
        round_start: bool,
        now_us: u64,
    ) {
        if round_start {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.index = 1 - self.index;
                self.excess[self.index] = 0;
            }
        }
        let mut expected = scaled(bw, now_us.saturating_sub(self.epoch_start), unit);
        if self.epoch_acked <= expected || self.epoch_acked + acked >= MAX_EPOCH {
            self.restart(now_us);
            expected = 0;
        }
        self.epoch_acked += acked;
        let excess = self.epoch_acked.saturating_sub(expected).min(cwnd);
        self.excess[self.index] = self.excess[self.index].max(excess);
    }
}

/// `bw * span / unit` without overflow.
fn scaled(bw: u64, span_us: u64, unit: u64) -> u64 {
    let product = u128::from(bw) * u128::from(span_us) / u128::from(unit);
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// bbr_extra_acked_win_rtts.
const ROUNDS: u64 = 5;
/// bbr_ack_epoch_acked_reset_thresh.
const MAX_EPOCH: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_leave_an_excess_for_five_to_ten_rounds() {
        let mut aggregation = Aggregation::default();
        // A segment a millisecond is expected, and ten come together each 10 ms.
        for burst in 1..=3 {
            aggregation.on_ack(10, 1, 1000, 100, false, 10_000 * burst);
        }
        assert_eq!(aggregation.excess(), 10);
        for round in 0..10 {
            aggregation.on_ack(1, 1, 1000, 100, true, 100_000 + 10_000 * round);
        }
        assert_eq!(aggregation.excess(), 1);
    }

    #[test]
    fn the_excess_never_exceeds_the_window() {
        let mut aggregation = Aggregation::default();
        aggregation.on_ack(50, 1, 1000, 20, false, 10_000);
        assert_eq!(aggregation.excess(), 20);
    }
}

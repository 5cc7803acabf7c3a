//! The target for packets that a later packet overtook.
//!
//! A reordered packet is lost if the receiver does not wait for it. To wait costs delay for all packets. The
//! target is the delay with the least cost:
//!
//! ```text
//!  cost(delay) = delay beyond the target for packets in order + 20 ms x per cent of packets later than delay
//! ```

use super::delay_histogram::{BUCKET_MS, DelayHistogram, WHOLE};

/// The share of the histogram that stays when a packet is added: 0.9993, in units of 2^-15 (NetEq,
/// `delay_manager.h`).
const KEPT: u64 = ((1 << 15) as f64 * 0.9993) as u64;
/// The delay in ms that is as bad as the loss of one per cent (NetEq, `delay_manager.h`).
const MS_PER_PERCENT: u64 = 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReorderTarget {
    /// A packet in order counts as a delay of 0.
    histogram: DelayHistogram,
}

impl ReorderTarget {
    pub(super) const fn new() -> Self {
        Self { histogram: DelayHistogram::new(KEPT) }
    }

    /// Takes a packet with its relative delay, and returns the target. `in_order_ms` is the target for
    /// packets in order.
    pub(super) fn update(&mut self, delay_ms: u32, is_reordered: bool, in_order_ms: u32) -> u32 {
        self.histogram.add(if is_reordered { delay_ms } else { 0 });
        let mut later = WHOLE;
        let mut least_cost = u64::MAX;
        let mut best_bucket = 0;
        for (bucket, share) in (0..).zip(self.histogram.shares()) {
            later -= share;
            let delay_ms = u64::from((bucket * BUCKET_MS).saturating_sub(in_order_ms));
            let cost = delay_ms * WHOLE + 100 * MS_PER_PERCENT * later;
            if cost < least_cost {
                (least_cost, best_bucket) = (cost, bucket);
            }
            if later == 0 {
                break;
            }
        }
        (best_bucket + 1) * BUCKET_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The target where one packet in `every` is reordered and comes `delay_ms` late.
    fn target(every: u32, delay_ms: u32) -> u32 {
        let mut target = ReorderTarget::new();
        let update = |number| target.update(delay_ms, number % every == every - 1, 20);
        (0..20_000).map(update).last().unwrap()
    }

    #[test]
    fn packets_in_order_need_the_first_bucket() {
        assert_eq!(target(u32::MAX, 300), 20);
    }

    #[test]
    fn a_reordered_packet_is_waited_for_if_its_loss_costs_more_than_the_delay() {
        // 10 % of the packets are worth 200 ms, and 1 % are worth 20 ms.
        assert_eq!(target(10, 110), 120);
        assert_eq!(target(10, 330), 20);
        assert_eq!(target(100, 110), 20);
    }
}

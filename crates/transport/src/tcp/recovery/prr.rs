//! Proportional rate reduction: `cwnd` during fast recovery (RFC 9937; obsoletes RFC 6937; Linux:
//! tcp_cwnd_reduction).
//!
//! ```text
//!   cwnd = in flight + S, where S segments may be sent now:
//!
//!   in flight > ssthresh   S = ceil(ssthresh * delivered / prior_cwnd) - out
//!   otherwise              S = max(delivered - out, newly delivered) + 1, at most ssthresh - in flight;
//!                              the 1 only if the acknowledgement is safe
//! ```
//!
//! So `cwnd` goes from its old value to `ssthresh` over one round trip, in proportion to what arrives. If the
//! flight is smaller than `ssthresh`, it is filled up. An acknowledgement is *safe* if new data was
//! acknowledged and no segment was newly marked as lost. The first retransmission leaves at once: S is at
//! least one while nothing was sent.

use super::{Context, Recovery};

/// The state of one recovery, in packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    /// `cwnd` when recovery began (RecoverFS).
    prior_cwnd: u64,
    /// The number of segments delivered since recovery began (prr_delivered).
    delivered: u64,
    /// The number of segments sent since recovery began (prr_out).
    out: u64,
}

/// What an acknowledgement during recovery reports, in packets.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// Newly delivered segments.
    delivered: u64,
    /// The segments in flight after the acknowledgement.
    in_flight: u64,
    /// True if the acknowledgement is safe (SafeACK).
    is_safe: bool,
}

impl Prr {
    /// Begins a recovery at `cwnd`.
    pub(super) const fn begin(&mut self, cwnd: u64) {
        *self = Self { prior_cwnd: cwnd, delivered: 0, out: 0 };
    }

    #[inline]
    pub(super) const fn on_sent(&mut self, segments: u64) {
        self.out += segments;
    }

    /// Returns the new `cwnd`. `None` if `cwnd` stays.
    fn advance(&mut self, ssthresh: u64, progress: Progress) -> Option<u64> {
        if progress.delivered == 0 || self.prior_cwnd == 0 {
            return None;
        }
        self.delivered += progress.delivered;
        let may_send = if progress.in_flight > ssthresh {
            ssthresh.saturating_mul(self.delivered).div_ceil(self.prior_cwnd).saturating_sub(self.out)
        } else {
            let arrived = self.delivered.saturating_sub(self.out).max(progress.delivered);
            (arrived + u64::from(progress.is_safe)).min(ssthresh - progress.in_flight)
        };
        let is_first = self.out == 0;
        let may_send = may_send.max(u64::from(is_first));
        Some(progress.in_flight + may_send)
    }
}

impl Recovery {
    /// Moves `cwnd` towards `ssthresh`, after an acknowledgement that is safe if `is_safe` is true. The
    /// stacks other than `linux` reduce at once instead, and a rate-based control sets `cwnd` itself.
    pub(super) fn reduce_proportionally(&mut self, delivered: u64, is_safe: bool, context: &mut Context<'_>) {
        if !self.is_linux() || context.congestion.is_rate_based() {
            return;
        }
        let in_flight = context.congestion.in_flight(context.scoreboard);
        let ssthresh = context.congestion.window().ssthresh();
        let progress = Progress { delivered, in_flight, is_safe };
        if let Some(cwnd) = self.prr.advance(ssthresh, progress) {
            context.congestion.set_cwnd(cwnd);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(cwnd: u64) -> Prr {
        let mut prr = Prr::default();
        prr.begin(cwnd);
        prr
    }

    /// RFC 9937 §3: 20 in flight, one lost, halved: one is sent for every two that arrive.
    #[test]
    fn sending_falls_in_proportion_to_what_arrives() {
        let mut prr = begun(20);
        let (ssthresh, mut in_flight, mut sent) = (10, 19, 0);
        for _ in 0..19 {
            in_flight -= 1;
            let progress = Progress { delivered: 1, in_flight, is_safe: false };
            let cwnd = prr.advance(ssthresh, progress).unwrap();
            while in_flight < cwnd {
                in_flight += 1;
                sent += 1;
                prr.on_sent(1);
            }
        }
        // Ten of twenty for nineteen deliveries, rounded up.
        assert_eq!((sent, in_flight), (10, 10));
    }

    /// RFC 9937 §3: many lost; slow start back up to ssthresh.
    #[test]
    fn a_flight_below_ssthresh_is_filled_up() {
        let mut prr = begun(20);
        let progress = |delivered, in_flight, is_safe| Progress { delivered, in_flight, is_safe };
        assert_eq!(prr.advance(10, progress(1, 4, false)), Some(5));
        prr.on_sent(1);
        assert_eq!(prr.advance(10, progress(1, 4, true)), Some(6));
        prr.on_sent(1);
        prr.on_sent(1);
        assert_eq!(prr.advance(10, progress(8, 9, true)), Some(10));
    }

    #[test]
    fn the_first_retransmission_does_not_wait() {
        let mut prr = begun(100);
        assert_eq!(prr.advance(70, Progress { delivered: 1, in_flight: 90, is_safe: false }), Some(91));
        prr.on_sent(1);
        assert_eq!(prr.advance(70, Progress { delivered: 1, in_flight: 90, is_safe: false }), Some(91));
        assert_eq!(prr.advance(70, Progress { delivered: 0, in_flight: 90, is_safe: false }), None);
    }
}

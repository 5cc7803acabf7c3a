//! Proportional rate reduction: `cwnd` during fast recovery (RFC 9937; obsoletes RFC 6937), as
//! tcp_cwnd_reduction has it.
//!
//! Over one round trip the window goes from its old value to `ssthresh`, in proportion to what arrives. Below
//! `ssthresh` it is filled up, by a segment more than arrived if nothing new is lost. `cwnd` is what is in
//! flight plus what may be sent now, as in Linux.

use super::{Context, Recovery};

/// The state of one recovery, in packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    /// `cwnd` when recovery began (RecoverFS).
    prior_cwnd: u64,
    /// Delivered since (prr_delivered).
    delivered: u64,
    /// Sent since (prr_out).
    out: u64,
}

/// What an acknowledgement during recovery brought.
#[derive(Clone, Copy, Debug)]
struct Progress {
    delivered: u64,
    in_flight: u64,
    /// New data was acknowledged and nothing was newly marked as lost (SafeACK).
    safe: bool,
}

impl Prr {
    /// Recovery begins at `cwnd`.
    pub(super) const fn begin(&mut self, cwnd: u64) {
        *self = Self { prior_cwnd: cwnd, delivered: 0, out: 0 };
    }

    #[inline]
    pub(super) const fn on_sent(&mut self, segments: u64) {
        self.out += segments;
    }

    /// The new `cwnd`. `None` leaves it as it is.
    fn advance(&mut self, ssthresh: u64, progress: Progress) -> Option<u64> {
        if progress.delivered == 0 || self.prior_cwnd == 0 {
            return None;
        }
        self.delivered += progress.delivered;
        let may_send = if progress.in_flight > ssthresh {
            ssthresh.saturating_mul(self.delivered).div_ceil(self.prior_cwnd).saturating_sub(self.out)
        } else {
            let due = self.delivered.saturating_sub(self.out).max(progress.delivered);
            (due + u64::from(progress.safe)).min(ssthresh - progress.in_flight)
        };
        // The first retransmission leaves at once.
        let may_send = may_send.max(u64::from(self.out == 0));
        Some(progress.in_flight + may_send)
    }
}

impl Recovery {
    /// Moves `cwnd` towards `ssthresh`. `safe` if new data was acknowledged and nothing was newly marked as
    /// lost. The RFC's stacks reduce at once instead, and a rate-based control sets `cwnd` itself.
    pub(super) fn reduce_proportionally(&mut self, delivered: u64, safe: bool, context: &mut Context<'_>) {
        if !self.is_linux() || context.congestion.is_rate_based() {
            return;
        }
        let in_flight = context.congestion.in_flight(context.scoreboard);
        let ssthresh = context.congestion.window().ssthresh();
        if let Some(cwnd) = self.prr.advance(ssthresh, Progress { delivered, in_flight, safe }) {
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
            let progress = Progress { delivered: 1, in_flight, safe: false };
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
        let progress = |delivered, in_flight, safe| Progress { delivered, in_flight, safe };
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
        assert_eq!(prr.advance(70, Progress { delivered: 1, in_flight: 90, safe: false }), Some(91));
        prr.on_sent(1);
        assert_eq!(prr.advance(70, Progress { delivered: 1, in_flight: 90, safe: false }), Some(91));
        assert_eq!(prr.advance(70, Progress { delivered: 0, in_flight: 90, safe: false }), None);
    }
}

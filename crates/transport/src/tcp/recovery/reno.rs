//! Recovery without SACK: duplicate acknowledgements, fast retransmit, partial acknowledgements
//! (RFC 5681 §3.2, RFC 6582 §3.2), and limited transmit (RFC 3042).
//!
//! ```text
//!   1st and 2nd duplicate ACK   each one allows a new segment beyond cwnd
//!   3rd duplicate ACK           the first segment is sent again, and fast recovery begins
//!                               (Tahoe: as after a timeout)
//!   further duplicate ACKs      each one inflates cwnd by a segment
//!   partial ACK                 NewReno: the first segment is sent again; Reno: recovery ends
//!   full ACK                    recovery ends
//! ```

use super::DUPLICATE_THRESHOLD;
use super::{Context, IncomingAck, Recovery, RecoveryState};
use crate::cc::{Ack, RecoveryAck, RttSample};
use crate::tcp::congestion::Delivery;
use crate::tcp::timers::{TimerKind, TimerSlot};

/// The duplicate acknowledgements in a row, and the segments that they allowed.
#[derive(Clone, Copy, Debug)]
pub(super) struct DuplicateAcks {
    /// True if the stack has limited transmit (RFC 3042).
    limited_transmit: bool,
    /// The number of duplicate acknowledgements in a row.
    count: u32,
    /// The amount that limited transmit sent since the first duplicate, in the window's unit.
    sent_by_limited_transmit: u64,
    /// True if a partial acknowledgement has come in this fast recovery.
    partial_seen: bool,
}

impl DuplicateAcks {
    pub(super) const fn new(limited_transmit: bool) -> Self {
        Self { limited_transmit, count: 0, sent_by_limited_transmit: 0, partial_seen: false }
    }

    pub(super) const fn on_fast_recovery(&mut self) {
        self.sent_by_limited_transmit = 0;
        self.partial_seen = false;
    }

    pub(super) const fn on_loss(&mut self) {
        self.count = 0;
        self.sent_by_limited_transmit = 0;
    }

    /// Sets the count to three after Tahoe's go-back-N. The next duplicate is then the fourth one, and the
    /// sender goes back only at the third one (BSD's tcp_input compares the count for equality).
    const fn on_gone_back(&mut self) {
        self.count = DUPLICATE_THRESHOLD;
    }

    pub(super) const fn on_recovered(&mut self) {
        self.count = 0;
    }

    /// Begins a new count, because new data was acknowledged outside of fast recovery.
    pub(super) const fn on_new_ack(&mut self) {
        self.count = 0;
        self.sent_by_limited_transmit = 0;
    }

    /// True if the last acknowledgement was no duplicate.
    #[inline]
    pub(super) const fn is_none(&self) -> bool {
        self.count == 0
    }

    /// Takes note of a partial acknowledgement. Returns true if it is the first of this recovery.
    const fn take_first_partial(&mut self) -> bool {
        !core::mem::replace(&mut self.partial_seen, true)
    }

    /// Counts a duplicate.
    const fn count_duplicate(&mut self) {
        self.count = self.count.saturating_add(1);
    }

    /// True if the latest duplicate was the third one in a row.
    const fn is_third(&self) -> bool {
        self.count == DUPLICATE_THRESHOLD
    }
}

impl Recovery {
    /// The number of segments beyond `cwnd` that limited transmit allows (RFC 3042 §2).
    #[inline]
    pub(in crate::tcp) fn limited_transmit(&self) -> u64 {
        match (self.state(), self.duplicates.count) {
            (RecoveryState::Open, count @ (1 | 2))
                if self.duplicates.limited_transmit && !self.has_sack() =>
            {
                u64::from(count)
            }
            _ => 0,
        }
    }

    /// Takes note that limited transmit sent `amount`, in the window's unit.
    pub(in crate::tcp) const fn on_limited_transmit(&mut self, amount: u64) {
        self.duplicates.sent_by_limited_transmit += amount;
    }

    /// Processes an acknowledgement of new data.
    pub(in crate::tcp) fn on_new_ack(&mut self, incoming: &IncomingAck, context: &mut Context<'_>) {
        let (now, ack) = (context.now, incoming.ack);
        let cwnd_limited = context.congestion.may_grow(context.sender.smss());
        let prior_in_flight = context.scoreboard.in_flight_segments();
        let outstanding = context.scoreboard.outstanding_segments();
        let acked = context.scoreboard.on_ack(ack);
        if incoming.echoes_mark {
            context.ecn.on_echoed(acked.segments);
        }
        let sample = match acked.sample_from {
            Some(sent) => Some(context.rtt.measure(sent, now)),
            None => incoming.echo_rtt,
        };
        if let Some(rtt) = sample {
            let snd_max = context.scoreboard.snd_max();
            context.rtt.on_sample(rtt, ack, snd_max);
            context.congestion.control_mut().on_rtt(rtt, RttSample { now, snd_una: ack, snd_max });
        }
        let delivered = self.newly_delivered(acked.segments, outstanding);
        let amount = context.congestion.amount(acked.bytes, delivered);
        let flight_size = context.congestion.in_flight(context.scoreboard);
        let new_ack = Ack { acked: amount, flight_size, cwnd_limited, now };
        let restarts_timer = self.advance(new_ack, incoming, context);
        if context.congestion.is_rate_based() {
            if let Some(rtt) = sample {
                self.rack.on_rtt(rtt, now);
            }
            let is_small = acked.bytes < u64::from(context.sender.smss());
            self.report_delivery(
                Delivery {
                    segments: acked.segments,
                    losses: 0,
                    newest: Some(ack),
                    rtt: sample,
                    prior_in_flight,
                    is_ack_delayed: acked.segments == 1 && is_small,
                },
                ack,
                context,
            );
        }
        // The timer stops if all data is acknowledged, and restarts otherwise (RFC 6298 §5.2 and §5.3).
        if context.scoreboard.is_empty() {
            context.timers.clear(TimerSlot::Loss);
        } else if restarts_timer {
            context.timers.set(TimerKind::Retransmission, context.rtt.deadline(now));
        }
    }

    /// The number of newly acknowledged segments that no duplicate ACK has reported before. `acked` segments
    /// are newly acknowledged, and `outstanding` segments were in flight until now.
    ///
    /// Linux takes each duplicate ACK for the arrival of a segment beyond the gap (tcp_add_reno_sack), and
    /// does not count that segment a second time when it is acknowledged (tcp_remove_reno_sacks). The other
    /// stacks count all acknowledged segments (RFC 5681 §3.1).
    fn newly_delivered(&self, acked: u64, outstanding: u64) -> u64 {
        if !self.is_linux() || self.state() != RecoveryState::Open {
            return acked;
        }
        // At least one segment is missing.
        let reported = u64::from(self.duplicates.count).min(outstanding.saturating_sub(1));
        acked.saturating_sub(reported).max(acked.min(1))
    }

    /// Moves congestion control and recovery after new data was acknowledged. Returns true if the
    /// retransmission timer restarts.
    fn advance(&mut self, new_ack: Ack, incoming: &IncomingAck, context: &mut Context<'_>) -> bool {
        let ack = incoming.ack;
        if self.state() != RecoveryState::Fast {
            self.duplicates.on_new_ack();
            if self.state() == RecoveryState::Loss && self.episode.covers(ack) {
                self.episode.leave();
            }
            if incoming.echoes_mark {
                // RFC 3168 §6.1.2: the acknowledgement does not open the window.
                self.on_echo(context);
            } else {
                context.congestion.control_mut().on_ack(new_ack);
            }
            return true;
        }
        let is_full_ack = self.episode.covers(ack);
        let next = context.congestion.control_mut().on_recovery_ack(new_ack, is_full_ack);
        match next {
            RecoveryAck::Leave => {
                self.leave();
                true
            }
            RecoveryAck::Stay => {
                self.episode.request_first_retransmission(!context.scoreboard.is_empty());
                // Only the first partial acknowledgement restarts the timer, which RFC 6582 §4 calls
                // "impatient". Linux restarts it at each (tcp_rearm_rto), which the RFC calls "slow but
                // steady".
                let is_first_partial = self.duplicates.take_first_partial();
                is_first_partial || self.is_linux()
            }
        }
    }

    /// Processes a duplicate acknowledgement. If it echoes a mark (`echoes_mark`) and begins no recovery, the
    /// echo reduces the window.
    ///
    /// Duplicates below the end of the last recovery begin no further recovery (RFC 6582 §3.2 step 1),
    /// because they may come from needless retransmissions: go-back-N sends segments again that had arrived,
    /// and each one returns as a duplicate. 4.3BSD-Reno began a further recovery all the same, which RFC 5681
    /// does not forbid, and so halved the window once more.
    pub(in crate::tcp) fn on_duplicate_ack(&mut self, echoes_mark: bool, context: &mut Context<'_>) {
        let may_recover_again = context.congestion.control().may_recover_again();
        match self.state() {
            RecoveryState::Fast => return context.congestion.control_mut().on_duplicate_ack(),
            RecoveryState::Loss if !may_recover_again => return,
            RecoveryState::Loss | RecoveryState::Open => {}
        }
        let is_covered = context.scoreboard.snd_una() <= self.episode.recover() && !may_recover_again;
        self.duplicates.count_duplicate();
        if !self.duplicates.is_third() || is_covered {
            if echoes_mark {
                self.on_echo(context);
            }
            return;
        }
        self.episode.count_fast_retransmit();
        let reduces = self.begin_reduction(context);
        let base = reduces.then(|| self.loss_base(self.duplicates.sent_by_limited_transmit, context));
        context.congestion.control_mut().on_third_duplicate(base);
        let snd_max = context.scoreboard.snd_max();
        if context.congestion.control().goes_back() {
            self.enter_loss(snd_max);
            self.duplicates.on_gone_back();
            context.scoreboard.go_back();
        } else {
            self.enter_fast(snd_max);
            self.episode.request_first_retransmission(true);
        }
        // The retransmission gets a full timeout, as in BSD and Linux. RFC 6298 says nothing about it.
        context.timers.set(TimerKind::Retransmission, context.rtt.deadline(context.now));
    }

    /// Returns the amount that a loss halves. The amount `limited` that limited transmit sent does not count
    /// (RFC 5681 §3.2 step 2).
    pub(super) fn loss_base(&self, limited: u64, context: &Context<'_>) -> u64 {
        let offered = context.sender.offered_bytes(context.scoreboard);
        context.congestion.loss_base(limited, context.scoreboard, offered)
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::{Bytes, Instant, Seed};

    use super::*;
    use crate::tcp::core::Core;
    use crate::tcp::send::NewSegment;
    use talkpath_config::{CongestionControlKind, Role, Stack, TcpConfig};

    /// A sender without SACK that has ten segments of 1000 B in flight.
    fn sender(cc: CongestionControlKind) -> Core {
        let preset = TcpConfig::preset(Stack::Rfc, false);
        let config = TcpConfig { cc: Some(cc), sack: false, limited_transmit: true, ..preset };
        let mut core = Core::new(&config, Role::Active, Bytes::new(1500), Seed::new(1), None);
        core.scoreboard.on_syn_sent();
        core.scoreboard.on_established();
        core.sender.on_established(1000);
        for _ in 0..10 {
            core.sender.send_new(NewSegment::forced(1000), &mut core.scoreboard, Instant::ZERO);
        }
        core
    }

    /// Duplicates arrive. Returns how many fast retransmits there were so far.
    fn duplicates(core: &mut Core, count: u32) -> u64 {
        for _ in 0..count {
            let (recovery, mut context) = core.recovery_context(Instant::ZERO);
            recovery.on_duplicate_ack(false, &mut context);
        }
        core.recovery.counts().1
    }

    fn acknowledge(core: &mut Core, ack: u64) {
        let incoming = IncomingAck { ack, ..IncomingAck::default() };
        let (recovery, mut context) = core.recovery_context(Instant::ZERO);
        recovery.on_new_ack(&incoming, &mut context);
    }

    fn time_out(core: &mut Core) {
        let (recovery, mut context) = core.recovery_context(Instant::ZERO);
        recovery.on_retransmission_timeout(&mut context);
    }

    #[test]
    fn the_third_duplicate_begins_recovery_once() {
        let mut core = sender(CongestionControlKind::NewReno);
        assert_eq!((duplicates(&mut core, 2), duplicates(&mut core, 1), duplicates(&mut core, 4)), (0, 1, 1));
        assert_eq!(core.recovery.state(), RecoveryState::Fast);
    }

    /// RFC 6582 §3.2 step 1.
    #[test]
    fn what_was_sent_before_a_timeout_begins_no_fast_recovery() {
        let mut core = sender(CongestionControlKind::NewReno);
        time_out(&mut core);
        assert_eq!(duplicates(&mut core, 3), 0);
        acknowledge(&mut core, 10_001);
        assert_eq!((core.recovery.state(), duplicates(&mut core, 3)), (RecoveryState::Open, 0));
        core.sender.send_new(NewSegment::forced(1000), &mut core.scoreboard, Instant::ZERO);
        core.sender.send_new(NewSegment::forced(1000), &mut core.scoreboard, Instant::ZERO);
        acknowledge(&mut core, 11_001);
        assert_eq!((duplicates(&mut core, 2), duplicates(&mut core, 1)), (0, 1));
    }

    /// RFC 5681 §3.2, without RFC 6582 §3.2 step 1.
    #[test]
    fn reno_recovers_again_after_a_timeout() {
        let mut core = sender(CongestionControlKind::Reno);
        time_out(&mut core);
        assert_eq!((duplicates(&mut core, 2), duplicates(&mut core, 1)), (0, 1));
    }

    /// tcp_input of 4.3BSD-Tahoe.
    #[test]
    fn tahoe_goes_back_once_for_a_run_of_duplicates() {
        let mut core = sender(CongestionControlKind::Tahoe);
        assert_eq!((duplicates(&mut core, 3), duplicates(&mut core, 6)), (1, 1));
        assert_eq!(core.recovery.state(), RecoveryState::Loss);
    }

    /// RFC 3042 §2.
    #[test]
    fn limited_transmit_grants_two_segments() {
        let mut core = sender(CongestionControlKind::NewReno);
        let grants = [1, 1, 1].map(|count| {
            duplicates(&mut core, count);
            core.recovery.limited_transmit()
        });
        assert_eq!(grants, [1, 2, 0]);
    }
}

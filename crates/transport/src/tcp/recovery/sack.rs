//! Recovery with selective acknowledgements: what an acknowledgement does, in the order of Linux's tcp_ack.
//!
//! ```text
//!   1. SACK blocks are taken        new blocks mark segments; a D-SACK (RFC 2883) counts for undo
//!   2. SND.UNA moves
//!   3. round trips are measured     RTO, RACK, congestion control
//!   4. is the probe answered?       (RFC 8985 §7.4)
//!   5. recovery                     undo, find losses, enter or leave fast recovery; skipped if the
//!                                   ACK only moved SND.UNA and no loss is known
//!   6. the retransmission timer     restarts after progress (RFC 6298 §5.2 and §5.3), unless RACK has
//!                                   set the reordering timer in step 5: the two share one slot
//!   7. cwnd moves                   by PRR in fast recovery, else by congestion control
//! ```
//!
//! Losses are found by RACK or by RFC 6675's rule. Retransmissions leave before new data, as far as `cwnd`
//! has room. Left out: rules 3 and 4 of RFC 6675's `NextSeg`. They send segments again that no rule has
//! marked as lost.

use talkpath_units::{Duration, Instant};

use super::DUPLICATE_THRESHOLD;
use super::outcome::{AckOutcome, Dsack};
use super::rack::ReorderingTimer;
use super::{ArmedBy, Context, IncomingAck, Recovery, RecoveryState, Scoreboard};
use crate::cc::{Ack, Feedback, RttSample};
use crate::tcp::congestion::Delivery;
use crate::tcp::ecn::ReducedBy;
use crate::tcp::offset_range::OffsetRange;
use crate::tcp::timers::TimerSlot;

/// The state of recovery with SACK besides the scoreboard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sack {
    /// True if both SYNs permitted SACK.
    enabled: bool,
    /// True if RACK finds losses by time, false if RFC 6675's rule finds them by count.
    by_time: bool,
    /// The number of acknowledgements in a row that had new SACK blocks and did not move SND.UNA (RFC 6675).
    duplicates: u32,
    /// When a loss last reduced the window.
    reduced_at: Instant,
}

/// The scoreboard before an acknowledgement is processed.
struct Before {
    snd_una: u64,
    outstanding_bytes: u64,
    in_flight_segments: u64,
    /// How often a segment was marked as lost since the connection began.
    losses: u64,
}

impl Before {
    const fn new(scoreboard: &Scoreboard) -> Self {
        Self {
            snd_una: scoreboard.snd_una(),
            outstanding_bytes: scoreboard.outstanding_bytes(),
            in_flight_segments: scoreboard.in_flight_segments(),
            losses: scoreboard.losses(),
        }
    }
}

impl Sack {
    pub(super) const fn new(by_time: bool) -> Self {
        Self { enabled: false, by_time, duplicates: 0, reduced_at: Instant::ZERO }
    }

    pub(super) const fn on_syn(&mut self, permitted: bool) {
        self.enabled = permitted;
    }

    #[inline]
    pub(super) const fn is_enabled(&self) -> bool {
        self.enabled
    }

    #[inline]
    pub(super) const fn by_time(&self) -> bool {
        self.by_time
    }

    /// Begins a new count of duplicates, because SND.UNA moved or the retransmission timer expired.
    pub(super) const fn forget_duplicates(&mut self) {
        self.duplicates = 0;
    }

    /// Counts an acknowledgement if it is a duplicate in the sense of RFC 6675 §2: it has new SACK blocks and
    /// does not move SND.UNA.
    fn count_duplicate(&mut self, outcome: &AckOutcome) {
        self.duplicates += u32::from(outcome.has_sacked && !outcome.advanced);
    }

    /// True from the third duplicate in a row (RFC 6675 §5 step 1).
    const fn has_three_duplicates(&self) -> bool {
        self.duplicates >= DUPLICATE_THRESHOLD
    }
}

impl Recovery {
    /// Processes an acknowledgement in seven steps, which are numbered below. An old acknowledgement without
    /// SACK blocks passes all steps and changes nothing: it does not move SND.UNA, and is no duplicate.
    pub(in crate::tcp) fn on_ack_with_sack(&mut self, incoming: IncomingAck, context: &mut Context<'_>) {
        let before = Before::new(context.scoreboard);
        // The steps 1 and 2 collect here what the acknowledgement delivers.
        let (min_rtt, recover) = (self.rack.min_rtt(), self.episode.recover());
        let mut outcome = AckOutcome::new(incoming, before.snd_una, min_rtt, recover, context.now);
        // 1. SACK blocks mark segments as sacked. A D-SACK reports a segment that arrived twice.
        if incoming.block_count > 0 {
            self.take_blocks(&mut outcome, context);
        }
        // 2. SND.UNA moves, and the acknowledged segments leave the scoreboard.
        if outcome.advanced {
            let old_highest = context.scoreboard.highest();
            context.scoreboard.on_ack_with_sack(&mut outcome);
            // RFC 6675 §5: the count of duplicates begins anew when SND.UNA moves.
            self.sack.forget_duplicates();
            self.note_reordering(&outcome, old_highest, context);
        }
        if incoming.echoes_mark {
            context.ecn.on_echoed(outcome.delivered.segments);
        }
        // 3. Round trips are measured for the RTO, RACK and congestion control. RACK also remembers the
        //    newest segment that has arrived: a segment that was sent before it may be lost (RFC 8985 §6.2
        //    step 2).
        let rtt = self.measure(&outcome, context);
        if let Some(newest) = outcome.newest {
            self.rack.advance(newest, outcome.last_rtt);
        }
        // 4. The acknowledgement may answer a tail loss probe.
        self.on_probe_ack(&outcome, before.outstanding_bytes, context);
        // 5. Losses are found, and recovery begins or ends. An acknowledgement that only moves SND.UNA needs
        //    no search, while no loss is known and no echo of a mark reduces `cwnd`.
        let is_repairing = self.reduces_for_echo || self.is_disordered(context.scoreboard);
        let mut reordering_timer = ReorderingTimer::Unchanged;
        if is_repairing || outcome.is_dubious() {
            reordering_timer = self.recover(&outcome, context);
        }
        // 6. The retransmission timer stops if all data is acknowledged, and restarts if new data is
        //    acknowledged (RFC 6298 §5.2 and §5.3). Linux restarts it for some sacked data, too. If step 5
        //    has set the reordering timer, that one stays: the two share a slot.
        let has_progress = outcome.advanced || (self.is_linux() && has_sacked_before_head(&outcome, context));
        if context.scoreboard.is_empty() {
            context.timers.clear(TimerSlot::Loss);
        } else if has_progress && reordering_timer == ReorderingTimer::Unchanged {
            self.arm_loss_timer(ArmedBy::Progress, context);
        }
        // 7. cwnd moves. A rate-based congestion control moves it by its own rules, from a report.
        let losses = context.scoreboard.losses() - before.losses;
        if context.congestion.is_rate_based() {
            let delivery = Delivery {
                segments: outcome.delivered.segments,
                losses,
                newest: outcome.newest.map(|newest| newest.end),
                rtt,
                prior_in_flight: before.in_flight_segments,
                is_ack_delayed: self.may_be_delayed(&outcome, context),
            };
            self.report_delivery(delivery, outcome.incoming.ack, context);
        } else {
            self.move_window(&outcome, losses, context);
        }
    }

    /// True if the far end may have delayed the acknowledgement, and its round trip is not the path's: it
    /// delivered one small segment, without any sign of loss (Linux: FLAG_ACK_MAYBE_DELAYED).
    fn may_be_delayed(&self, outcome: &AckOutcome, context: &Context<'_>) -> bool {
        let is_small = outcome.delivered.bytes < u64::from(context.sender.smss());
        outcome.delivered.segments == 1
            && is_small
            && !outcome.has_sacked
            && !self.is_disordered(context.scoreboard)
    }

    /// Marks the segments that the SACK blocks report, and takes note of a D-SACK.
    fn take_blocks(&mut self, outcome: &mut AckOutcome, context: &mut Context<'_>) {
        let IncomingAck { ack, blocks, .. } = outcome.incoming;
        let snd_max = context.scoreboard.snd_max();
        outcome.dsack = self.dsack(&outcome.incoming, context);
        let [first, ..] = blocks;
        if outcome.dsack != Dsack::None && first.end <= snd_max {
            self.undo.on_duplicate(first.end);
            if self.may_be_from_short_window(outcome.dsack) {
                self.rack.on_duplicate(context.scoreboard.snd_una(), snd_max);
            }
        }
        // A block marks nothing if it is empty, if it lies below the acknowledgement, or if it ends beyond
        // the highest byte ever sent.
        let may_mark = |block: OffsetRange| !block.is_empty() && ack < block.end && block.end <= snd_max;
        let mut blocks = blocks.map(|block| if may_mark(block) { block } else { OffsetRange::EMPTY });
        // The blocks are taken in ascending order, so that RACK.rtt is the round trip of the highest segment
        // (Linux: tcp_sacktag_write_queue).
        blocks.sort_unstable();
        let old_highest = context.scoreboard.highest();
        context.scoreboard.on_sack(blocks, outcome);
        self.note_reordering(outcome, old_highest, context);
    }

    /// Returns the D-SACK of an acknowledgement with SACK blocks. The first block is a D-SACK if it lies
    /// below the acknowledgement or within the second block (RFC 2883 §4).
    fn dsack(&self, incoming: &IncomingAck, context: &Context<'_>) -> Dsack {
        let [first, second, _] = incoming.blocks;
        let is_within_second = incoming.block_count > 1 && second.contains(first) && first != second;
        if first.start >= incoming.ack && !is_within_second {
            return Dsack::None;
        }
        // A probe is one segment. A longer block reports others, too.
        let is_one_segment = first.end.saturating_sub(first.start) <= u64::from(context.sender.smss());
        if is_one_segment && self.probe.is_unanswered_to(first.end) { Dsack::OfProbe } else { Dsack::Other }
    }

    /// True if the needless retransmission that `dsack` reports may have left because RACK's reordering
    /// window was too short. RFC 8985 §6.2 step 4 takes any D-SACK. Linux takes none before reordering was
    /// seen, and none for a probe, which a timer sends (tcp_dsack_seen).
    fn may_be_from_short_window(&self, dsack: Dsack) -> bool {
        !self.is_linux() || (self.rack.has_seen_reordering() && dsack != Dsack::OfProbe)
    }

    /// Reports to RACK that a segment arrived out of order: it was sent once, and begins below
    /// `old_highest`, the end of the data that had arrived before this acknowledgement.
    fn note_reordering(&mut self, outcome: &AckOutcome, old_highest: u64, context: &Context<'_>) {
        if let Some(low) = outcome.reordered {
            self.rack.on_reordering(low, old_highest, context.sender.smss());
        }
    }

    /// Measures round trips (RFC 6298 §3, RFC 7323 §4.1; Linux: tcp_ack_update_rtt). Returns the round trip
    /// for a rate-based congestion control.
    fn measure(&mut self, outcome: &AckOutcome, context: &mut Context<'_>) -> Option<Duration> {
        let incoming = &outcome.incoming;
        let now = context.now;
        let snd_max = context.scoreboard.snd_max();
        // When the acknowledged segments left, and when the sacked ones. Karn's algorithm leaves out what was
        // sent more than once.
        let (acked, sacked) = (outcome.acked_span(), outcome.sacked_span);
        // The RTO takes the longest round trip: that of the oldest segment which this ACK answers. If all
        // were sent more than once, the echoed timestamp still measures a round trip.
        let rto_sample = match acked.or(sacked) {
            Some(span) => Some(context.rtt.measure(span.first, now)),
            None if outcome.advanced => incoming.echo_rtt,
            None => None,
        };
        if let Some(rtt) = rto_sample {
            self.probe.on_rtt();
            context.rtt.on_sample(rtt, incoming.ack, snd_max);
        }
        // RACK and congestion control take the latest: the newest segment which this ACK answers.
        let path_sample = sacked.or(acked).map(|span| now.since(span.last));
        if let Some(rtt) = path_sample {
            self.rack.on_rtt(rtt, now);
            context.congestion.control_mut().on_rtt(rtt, RttSample { now, snd_una: incoming.ack, snd_max });
        }
        path_sample.or(rto_sample)
    }

    /// Undoes a needless recovery, finds losses, and enters or leaves recovery (Linux:
    /// tcp_fastretrans_alert).
    fn recover(&mut self, outcome: &AckOutcome, context: &mut Context<'_>) -> ReorderingTimer {
        // After a timeout F-RTO may have held retransmissions back until an acknowledgement came.
        self.stop_trying_new_data();
        // An ECN echo reduces `cwnd` over one round trip, which may be over now.
        self.end_reduction_for_echo(context);
        if self.state() == RecoveryState::Fast && self.episode.covers(outcome.incoming.ack) {
            self.leave_fast(outcome, context);
        } else if self.state() == RecoveryState::Open && !has_retransmission_in_flight(context) {
            // A recovery was needless if an ACK echoes an older timestamp than that of the first
            // retransmission. The retransmission of a past recovery must not count for the next one.
            self.undo.forget_retransmissions();
        }
        match self.state() {
            RecoveryState::Open => self.recover_open(outcome, context),
            RecoveryState::Fast => self.recover_fast(outcome, context),
            RecoveryState::Loss => self.recover_from_timeout(outcome, context),
        }
    }

    /// No recovery is under way. Begins fast recovery if a segment is lost, or reduces `cwnd` if the far end
    /// echoes a congestion mark.
    fn recover_open(&mut self, outcome: &AckOutcome, context: &mut Context<'_>) -> ReorderingTimer {
        // A D-SACK may show now that the last recovery was needless. That recovery is over, so only the
        // window is restored.
        self.undo_by_duplicates(context);
        let reordering_timer = self.find_losses(outcome, context);
        if context.scoreboard.lost_segments() > 0 {
            self.begin_fast(context);
        } else if outcome.incoming.echoes_mark {
            self.on_echo(context);
        }
        reordering_timer
    }

    /// Fast recovery goes on. It ends early if the far end shows that it was needless. If segments are lost
    /// nevertheless, a new fast recovery begins.
    fn recover_fast(&mut self, outcome: &AckOutcome, context: &mut Context<'_>) -> ReorderingTimer {
        // The echoed timestamp may show that the first retransmission was needless. Then the segments were
        // late and not lost, and no losses are searched.
        if outcome.advanced && self.undo_partially(outcome, context) {
            return ReorderingTimer::Unchanged;
        }
        // D-SACKs for all retransmissions show the same.
        let was_needless = self.undo_by_duplicates(context);
        if was_needless {
            self.leave();
        }
        let old_resent = context.scoreboard.resent_segments();
        let reordering_timer = self.find_losses(outcome, context);
        // `resent_segments` counts the retransmissions in flight. The search lowers the count if a
        // retransmission is lost.
        if context.scoreboard.resent_segments() < old_resent {
            self.reduce_again(context);
        }
        if was_needless && context.scoreboard.lost_segments() > 0 {
            self.begin_fast(context);
        }
        reordering_timer
    }

    /// Marks lost segments, by RACK or by RFC 6675's rule.
    pub(super) fn find_losses(&mut self, outcome: &AckOutcome, context: &mut Context<'_>) -> ReorderingTimer {
        if self.sack.by_time {
            // RACK: a segment is lost if a newer one has arrived, and a round trip and a reordering window
            // are over. Without a new arrival a search finds no more than the last one did: if a segment
            // becomes late meanwhile, the reordering timer finds it.
            let has_new_arrival = self.rack.take_search_request();
            if !has_new_arrival {
                return ReorderingTimer::Unchanged;
            }
            return self.mark_by_time(context);
        }
        // RFC 6675 §5 step 1 and 2: the third duplicate shows that the first segment in flight is lost.
        self.sack.count_duplicate(outcome);
        if self.state() == RecoveryState::Open && self.sack.has_three_duplicates() {
            context.scoreboard.mark_first_lost();
        }
        // RFC 6675 §4 `IsLost`: a segment is lost if enough data above it is sacked. A timeout has
        // marked all segments in flight already.
        if self.state() != RecoveryState::Loss {
            context.scoreboard.mark_by_count(context.sender.smss());
        }
        ReorderingTimer::Unchanged
    }

    /// Reduces `cwnd` once more, because the loss of a retransmission is a second sign of congestion (RFC
    /// 5681 §4.3, RFC 8985 §9.3). There is at most one reduction per round trip. The `linux` stack reduces
    /// only once per recovery, by PRR.
    pub(super) fn reduce_again(&mut self, context: &mut Context<'_>) {
        let is_same_window = context.now.since(self.sack.reduced_at) < self.rack.min_rtt();
        if self.is_linux() || context.congestion.is_rate_based() || is_same_window {
            return;
        }
        self.sack.reduced_at = context.now;
        context.ecn.on_reduced(context.scoreboard.snd_max(), ReducedBy::Loss);
        let flight_size = context.congestion.flight_size(context.scoreboard);
        context.congestion.control_mut().reduce(flight_size);
        context.congestion.lower_to_ssthresh();
    }

    /// Begins fast recovery (RFC 6675 §5 step 4; Linux: tcp_enter_recovery).
    pub(super) fn begin_fast(&mut self, context: &mut Context<'_>) {
        self.episode.count_fast_retransmit();
        let reduces = self.begin_reduction(context);
        self.remember(reduces, context);
        if reduces {
            self.prr.begin(context.congestion.window().cwnd());
            let flight_size = context.congestion.flight_size(context.scoreboard);
            context.congestion.control_mut().reduce(flight_size);
        }
        if !self.is_linux() && !context.congestion.is_rate_based() {
            context.congestion.lower_to_ssthresh();
            // RFC 6675 §5 step 4.3: the first retransmission does not wait for room.
            self.episode.request_first_retransmission(true);
        }
        self.sack.reduced_at = context.now;
        self.probe.forget();
        self.enter_fast(context.scoreboard.snd_max());
    }

    /// Ends fast recovery: all data that was in flight when the loss was found has arrived. PRR leaves `cwnd`
    /// at `ssthresh`, unless this recovery was undone (Linux: tcp_try_undo_recovery, tcp_end_cwnd_reduction).
    fn leave_fast(&mut self, outcome: &AckOutcome, context: &mut Context<'_>) {
        self.undo_or_accept(outcome, context);
        self.leave();
        if self.is_linux() && self.undo.is_possible() && !context.congestion.is_rate_based() {
            context.congestion.lower_to_ssthresh();
        }
    }

    /// Moves `cwnd`: by PRR in fast recovery, otherwise by congestion control (Linux: tcp_cong_control).
    fn move_window(&mut self, outcome: &AckOutcome, losses: u64, context: &mut Context<'_>) {
        let delivered = context.congestion.amount(outcome.delivered.bytes, outcome.delivered.segments);
        if self.state() == RecoveryState::Fast || self.reduces_for_echo {
            let is_safe = outcome.advanced && losses == 0;
            self.reduce_proportionally(delivered, is_safe, context);
        } else if outcome.incoming.echoes_mark && !self.is_linux() {
            // RFC 3168 §6.1.2: an acknowledgement with an echo does not open the window.
        } else if delivered > 0 && (outcome.advanced || (outcome.has_sacked && self.rack.reorders_much())) {
            // Sacked data opens the window only on a path that reorders much. Elsewhere it announces a loss.
            let flight_size = context.congestion.in_flight(context.scoreboard);
            let cwnd_limited = context.congestion.may_grow(context.sender.smss());
            let ack = Ack { acked: delivered, flight_size, cwnd_limited, now: context.now };
            context.congestion.control_mut().on_ack(ack);
        }
    }

    /// Reports to a rate-based congestion control what the acknowledgement delivered (Linux: tcp_rate_gen,
    /// tcp_cong_control).
    pub(super) fn report_delivery(&self, delivery: Delivery, ack: u64, context: &mut Context<'_>) {
        let feedback = Feedback {
            now: context.now,
            delivered: delivery.segments,
            losses: delivery.losses,
            total_losses: context.scoreboard.losses(),
            newest: delivery.newest,
            snd_una: ack,
            prior_in_flight: delivery.prior_in_flight,
            in_flight: context.scoreboard.in_flight_segments(),
            rtt: delivery.rtt,
            is_ack_delayed: delivery.is_ack_delayed,
            min_rtt: self.rack.min_rtt(),
            srtt: context.rtt.srtt(),
            phase: self.phase(),
            departs: context.sender.pacing().pause_end(),
        };
        context.congestion.on_feedback(&feedback);
    }
}

/// True if a retransmission may still be in flight.
fn has_retransmission_in_flight(context: &Context<'_>) -> bool {
    context.scoreboard.resent_segments() > 0 || context.scoreboard.first_was_retransmitted()
}

/// True if a segment was sacked that left before the latest transmission of the first segment in flight. Then
/// Linux restarts the retransmission timer although SND.UNA has not moved (tcp_clean_rtx_queue). What left
/// after the first segment does not restart the timer. Otherwise a sender that goes on sending would put off
/// the timeout of that segment with each SACK.
fn has_sacked_before_head(outcome: &AckOutcome, context: &Context<'_>) -> bool {
    match (outcome.sacked_span, context.scoreboard.first_sent_at()) {
        (Some(sacked), Some(head_sent_at)) => sacked.first < head_sent_at,
        _ => false,
    }
}

//! Arriving segments (RFC 9293 §3.10.7). After the handshake the steps are:
//!
//! ```text
//!   1. sequence number, PAWS, RST, SYN   a segment that fails goes no further      (first to fourth)
//!   2. timestamp and window are taken
//!   3. acknowledgement                   recovery, congestion control              (fifth)
//!   4. retransmissions leave             `linux` alone
//!   5. data and FIN                                                                (seventh and eighth)
//! ```
//!
//! The ordinal numbers are those of the checks in RFC 9293 §3.10.7.4.

use talkpath_units::{Ecn, Instant};
use talkpath_wire::{Flags, Segment};

use super::core::Core;
use super::offset_range::OffsetRange;
use super::receive::DataOutcome;
use super::recovery::IncomingAck;
use super::state::State;

impl Core {
    /// Processes a segment that has arrived in a packet with this ECN codepoint.
    pub(super) fn on_segment(&mut self, segment: &Segment, codepoint: Ecn, now: Instant) {
        if codepoint == Ecn::Ce {
            self.ecn.on_marked();
        }
        match self.state.get() {
            State::Closed => {
                if !segment.flags.contains(Flags::RST) {
                    self.handshake.request_reset(segment);
                }
            }
            State::Listen => self.on_segment_in_listen(segment),
            State::SynSent => {
                self.handshake.on_answer(segment);
                self.on_segment_in_syn_sent(segment, now);
            }
            State::SynReceived => {
                self.handshake.on_answer(segment);
                let is_established = self.on_segment_in_syn_received(segment, now);
                if is_established {
                    self.on_synchronized(segment, codepoint, now);
                }
            }
            State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait => self.on_synchronized(segment, codepoint, now),
        }
    }

    /// Processes a segment after the handshake.
    fn on_synchronized(&mut self, segment: &Segment, codepoint: Ecn, now: Instant) {
        let start = self.handshake.far_offset(segment.seq, self.receiver.rcv_nxt());
        let is_accepted = self.check_segment(segment, start, now);
        if !is_accepted || !segment.flags.contains(Flags::ACK) {
            return;
        }
        let ack = self.handshake.own_offset(segment.ack, self.scoreboard.snd_una());
        if ack > self.scoreboard.snd_max() {
            // The segment acknowledges data that was never sent (RFC 9293 §3.10.7.4, fifth).
            self.receiver.demand_acknowledgement();
            return;
        }
        self.timestamps.note(segment, start, self.receiver.acked_to());
        let is_window_update = self.sender.update_window(segment.window, start, ack);
        self.on_acknowledgement(segment, ack, is_window_update, now);
        if self.state.get() == State::Closed {
            return;
        }
        if segment.payload > 0 && self.recovery.is_linux() {
            self.repair_before_data(now);
        }
        self.on_data(segment, start, codepoint, now);
    }

    /// Performs the first four checks: sequence number and PAWS, RST, SYN. Returns true if the segment
    /// passes. Otherwise it was answered with an ACK or ignored, or it ended the connection.
    fn check_segment(&mut self, segment: &Segment, start: u64, now: Instant) -> bool {
        let length = u64::from(segment.payload) + u64::from(segment.flags.contains(Flags::FIN));
        let is_outside = self.receiver.is_outside(start, length);
        if segment.flags.contains(Flags::RST) {
            // RFC 5961 §3.2: only the exact sequence number ends the connection.
            if start == self.receiver.rcv_nxt() {
                self.abort();
            } else if !is_outside {
                self.receiver.demand_acknowledgement();
            }
            return false;
        }
        let is_old =
            self.timestamps.is_old_duplicate(segment) && !self.is_overtaken_duplicate(segment, start);
        if is_old && self.recovery.is_linux() && length == 0 && start < self.receiver.rcv_nxt() {
            // Data overtook this pure ACK on the way. Linux does not answer it (since 6.14).
            return false;
        }
        if is_outside || is_old {
            self.receiver.on_unacceptable(segment, start, &self.rtt, now);
            return false;
        }
        if segment.flags.contains(Flags::SYN) && start != 0 {
            // A SYN in the middle of the stream is answered by a challenge ACK (RFC 5961 §4.2).
            self.receiver.demand_acknowledgement();
            return false;
        }
        true
    }

    /// True for a duplicate acknowledgement that another segment overtook. Under Linux it passes PAWS
    /// although its timestamp is old: it may carry SACK blocks, and it is too young to be from an earlier
    /// cycle of the sequence numbers (tcp_disordered_ack_check).
    fn is_overtaken_duplicate(&self, segment: &Segment, start: u64) -> bool {
        let syn_or_fin = Flags::SYN.with(Flags::FIN);
        let is_bare = segment.payload == 0 && segment.flags.are_just(Flags::default(), syn_or_fin);
        self.recovery.is_linux()
            && is_bare
            && start == self.receiver.rcv_nxt()
            && segment.ack == self.handshake.seq(self.scoreboard.snd_una())
            && !self.sender.would_open_window(segment.window, start)
            && self.timestamps.age(segment) <= self.rtt.rto().saturating_mul(6) / 5
    }

    /// The fifth check: everything before `ack` has arrived at the far end.
    fn on_acknowledgement(&mut self, segment: &Segment, ack: u64, is_window_update: bool, now: Instant) {
        let snd_una = self.scoreboard.snd_una();
        if self.scoreboard.is_empty() && ack == snd_una {
            self.sender.on_ack_of_nothing(&self.rtt, &mut self.timers, now);
        }
        let incoming = self.incoming_ack(segment, ack, is_window_update, now);
        let has_sack = self.recovery.has_sack();
        let is_relevant = if has_sack {
            !self.scoreboard.is_empty() || segment.sack_count > 0
        } else {
            ack > snd_una || (ack == snd_una && !is_window_update && self.is_duplicate(segment))
        };
        if !is_relevant {
            return;
        }
        let (recovery, mut context) = self.recovery_context(now);
        if has_sack {
            recovery.on_ack_with_sack(incoming, &mut context);
        } else if ack > snd_una {
            recovery.on_new_ack(&incoming, &mut context);
        } else {
            recovery.on_duplicate_ack(incoming.echoes_mark, &mut context);
        }
        if has_sack || ack > snd_una {
            self.sender.on_ack();
        }
        if ack > snd_una && self.sender.fin_is_acked(&self.scoreboard) {
            self.on_fin_acked();
        }
    }

    /// True for a duplicate acknowledgement (RFC 5681 §2). The caller has compared the acknowledgement number
    /// and the window.
    fn is_duplicate(&self, segment: &Segment) -> bool {
        segment.payload == 0
            && !segment.flags.contains(Flags::SYN)
            && !segment.flags.contains(Flags::FIN)
            && !self.scoreboard.is_empty()
    }

    fn incoming_ack(&self, segment: &Segment, ack: u64, is_window_update: bool, now: Instant) -> IncomingAck {
        let block_count = usize::from(segment.sack_count).min(segment.sack.len());
        let una = self.scoreboard.snd_una();
        let mut blocks = [OffsetRange::EMPTY; 3];
        for (range, block) in blocks.iter_mut().zip(&segment.sack[..block_count]) {
            let (left, right) = (block.left, block.right);
            *range =
                OffsetRange::new(self.handshake.own_offset(left, una), self.handshake.own_offset(right, una));
        }
        IncomingAck {
            ack,
            blocks,
            block_count,
            echo: self.timestamps.echo(segment),
            echo_rtt: self.timestamps.rtt_sample(segment, now),
            has_data: segment.payload > 0,
            is_window_update,
            echoes_mark: self.ecn.is_echo(segment.flags),
        }
    }

    /// Takes data and FIN (seventh and eighth).
    fn on_data(&mut self, segment: &Segment, start: u64, codepoint: Ecn, now: Instant) {
        if segment.payload == 0 && !segment.flags.contains(Flags::FIN) {
            return;
        }
        if self.receiver.is_lost_to_reader(segment, start) {
            self.abort();
            self.handshake.request_reset(segment);
            return;
        }
        if !self.state.may_receive() {
            // The far end's FIN has arrived, so this segment has arrived before.
            self.receiver.demand_acknowledgement();
            return;
        }
        let is_new = start + u64::from(segment.payload) > self.receiver.rcv_nxt();
        let acks_must_not_wait = segment.payload > 0 && self.ecn.on_data(segment.flags, codepoint, is_new);
        let has_sack = self.recovery.has_sack();
        let outcome = self.receiver.on_data(segment, start, has_sack, &self.timestamps, &self.rtt, now);
        if acks_must_not_wait {
            self.receiver.on_mark();
        }
        if segment.payload > 0 && self.ecn.is_reduction(segment.flags) && self.recovery.is_linux() {
            // The sender's window may be a single segment, so the ACK must not wait (tcp_ecn_accept_cwr).
            self.receiver.demand_acknowledgement();
        }
        if outcome == DataOutcome::FinReceived {
            self.state.on_fin_received();
        }
    }
}

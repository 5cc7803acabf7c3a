//! Arriving segments (RFC 9293 §3.10.7.4): checks, acknowledgement, data, FIN, in this order.

use talkpath_units::{Instant, SeqNum};

use super::connection::{Control, State, TIMESTAMP_TICK, Tcp, timestamp};
use super::feedback::Measured;
use super::receive::Arrival;
use super::recovery::{DuplicateAck, RecoveryState};
use super::timer::TimerKind;
use crate::cc::{Ack, CongestionControl, Counting, RecoveryAck, RttSample};
use crate::{Flags, Segment, Stack};

impl Tcp {
    #[inline(never)]
    pub(super) fn on_segment(&mut self, segment: &Segment, now: Instant) {
        (self.is_receiver, self.is_plain, self.has_told) = (false, false, false);
        match self.state {
            State::Closed => {
                if !segment.flags.contains(Flags::RST) {
                    self.reset(segment);
                }
            }
            State::Listen => self.on_segment_in_listen(segment),
            State::SynSent => self.on_segment_in_syn_sent(segment, now),
            State::SynReceived => {
                if self.on_segment_in_syn_received(segment, now) {
                    self.on_synchronized(segment, now);
                }
            }
            State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait => self.on_synchronized(segment, now),
        }
    }

    #[inline(never)]
    fn on_synchronized(&mut self, segment: &Segment, now: Instant) {
        self.on_synchronized_here(segment, now);
    }

    /// As [`Self::on_synchronized`], put where it stands.
    #[inline(always)]
    pub(super) fn on_synchronized_here(&mut self, segment: &Segment, now: Instant) {
        let start = relative(segment.seq, self.irs).extend(self.receiver.rcv_nxt());
        if !self.is_predicted(segment, start, now) {
            self.on_unforeseen(segment, start, now);
        }
    }

    /// A segment that [`Self::is_predicted`] does not deal with; apart, so that the plain case stays short.
    #[inline(never)]
    fn on_unforeseen(&mut self, segment: &Segment, start: u64, now: Instant) {
        (self.is_receiver, self.is_plain, self.has_told) = (false, false, false);
        if !self.is_acceptable(segment, start, now) {
            return;
        }
        if !segment.flags.contains(Flags::ACK) {
            return;
        }
        let ack = relative(segment.ack, self.iss).extend(self.sender.snd_una());
        if ack > self.sender.snd_max() {
            // RFC 9293 §3.10.7.4: it acknowledges what was never sent.
            self.acks.demand();
            return;
        }
        self.note_timestamp(segment, start);
        let is_update = self.sender.window.update(segment.window, start, ack);
        if self.selective.enabled {
            if self.sender.is_waiting() || segment.sack_count > 0 {
                self.on_ack_with_sack(segment, ack, is_update, now);
            }
        } else if ack > self.sender.snd_una() {
            self.on_new_ack(segment, ack, now);
        } else if ack == self.sender.snd_una() && !is_update && self.is_duplicate(segment) {
            self.on_duplicate_ack(now);
        }
        if self.state == State::Closed {
            return;
        }
        if segment.payload > 0 && self.config.stack == Stack::Linux {
            self.repair_before_data(now);
        }
        self.on_data(segment, start, now);
    }

    /// The first three checks: sequence number and PAWS, RST, SYN. What fails is answered with an acknowledgement.
    fn is_acceptable(&mut self, segment: &Segment, start: u64, now: Instant) -> bool {
        let fin = u64::from(segment.flags.contains(Flags::FIN));
        let end = start.saturating_add(u64::from(segment.payload) + fin);
        // What was here already is acknowledged again; a segment at the edge of a closed window may still
        // acknowledge (tcp_sequence).
        let outside = end < self.receiver.rcv_nxt() || start > self.receiver.window.edge();
        if segment.flags.contains(Flags::RST) {
            // RFC 5961 §3.2: only the exact sequence number ends the connection.
            if start == self.receiver.rcv_nxt() {
                self.shut();
            } else if !outside {
                self.acks.demand();
            }
            return false;
        }
        if outside || self.is_old_duplicate(segment) {
            if segment.payload > 0 || fin > 0 {
                let data_end = (start + u64::from(segment.payload)).min(self.receiver.rcv_nxt());
                self.receiver.report.on_duplicate(start, data_end);
                let context = self.arrival_context(now);
                self.acks.on_repeat(&context);
            } else {
                self.acks.demand();
            }
            return false;
        }
        if segment.flags.contains(Flags::SYN) && start != 0 {
            // RFC 5961 §4.2.
            self.acks.demand();
            return false;
        }
        true
    }

    /// PAWS (RFC 7323 §5.3), on data alone: acknowledgements without data may overtake each other
    /// (tcp_disordered_ack).
    pub(super) fn is_old_duplicate(&self, segment: &Segment) -> bool {
        match segment.timestamps() {
            Some((value, _)) if self.timestamps && segment.payload > 0 => {
                SeqNum::new(value).is_before(SeqNum::new(self.ts_recent))
            }
            _ => false,
        }
    }

    /// RFC 7323 §4.3: echo the timestamp of the segment that the next acknowledgement is owed to.
    pub(super) fn note_timestamp(&mut self, segment: &Segment, start: u64) {
        if let Some((value, _)) = segment.timestamps()
            && start <= self.acks.acked_to()
            && !SeqNum::new(value).is_before(SeqNum::new(self.ts_recent))
        {
            self.ts_recent = value;
        }
    }

    /// RFC 5681 §2, but for the window, which the caller has compared.
    fn is_duplicate(&self, segment: &Segment) -> bool {
        segment.payload == 0
            && !segment.flags.contains(Flags::SYN)
            && !segment.flags.contains(Flags::FIN)
            && self.sender.is_waiting()
    }

    #[inline(never)]
    fn on_new_ack(&mut self, segment: &Segment, ack: u64, now: Instant) {
        let cwnd_limited = self.may_grow();
        let prior_in_flight = self.sender.flight_segments();
        let acked = self.sender.on_ack(ack);
        let sample = match acked.sample_from {
            Some(sent) => Some(self.rtt.measure(sent, now)),
            None => self.timestamp_sample(segment, now),
        };
        if let Some(rtt) = sample {
            let snd_max = self.sender.snd_max();
            self.rtt.on_sample(rtt, ack, snd_max);
            self.controller.on_rtt(rtt, RttSample { now, snd_una: ack, snd_max });
        }
        let news = Ack {
            acked: match self.controller.window().counting() {
                Counting::Bytes { .. } => acked.bytes,
                Counting::Packets => acked.segments,
            },
            flight_size: self.flight_size(),
            cwnd_limited,
            now,
        };
        let rearm = self.advance(news, ack);
        if self.config.steers {
            self.inform_without_sack(&acked, ack, Measured { rtt: sample, losses: 0, prior_in_flight }, now);
        }
        self.buffer.on_ack();
        // RFC 6298 §5.2 and §5.3.
        if !self.sender.is_waiting() {
            self.timers.clear(TimerKind::Retransmit);
        } else if rearm {
            self.timers.set(TimerKind::Retransmit, self.rtt.deadline(now));
        }
        if self.sender.fin_is_acked() {
            self.on_fin_acked();
        }
    }

    /// Tells congestion control and recovery of new data acknowledged; returns whether the retransmission timer
    /// starts anew.
    fn advance(&mut self, news: Ack, ack: u64) -> bool {
        if self.recovery.state() != RecoveryState::Fast {
            self.recovery.on_new_ack(ack);
            self.controller.on_ack(news);
            return true;
        }
        match self.controller.on_recovery_ack(news, self.recovery.covers(ack)) {
            RecoveryAck::Leave => {
                self.recovery.leave();
                true
            }
            RecoveryAck::Stay => {
                self.resend_first = self.sender.is_waiting();
                // RFC 6582 §3.2 step 3 and §4: "impatient", only the first partial acknowledgement restarts the
                // timer. Linux restarts it at each (tcp_rearm_rto): "slow but steady".
                self.recovery.is_first_partial() || self.config.stack == Stack::Linux
            }
        }
    }

    #[inline(never)]
    fn on_duplicate_ack(&mut self, now: Instant) {
        let may_recover_again = self.controller.may_recover_again();
        match self.recovery.on_duplicate_ack(self.sender.snd_una(), may_recover_again) {
            DuplicateAck::Noted => {}
            DuplicateAck::InRecovery => self.controller.on_duplicate_ack(),
            DuplicateAck::Third => {
                self.counters.fast_retransmits += 1;
                self.controller.on_loss(self.loss_base(self.recovery.limited()));
                if self.controller.goes_back() {
                    self.recovery.enter_loss_by_duplicates(self.sender.snd_max());
                    self.sender.go_back();
                } else {
                    self.recovery.enter_fast(self.sender.snd_max());
                    self.resend_first = true;
                }
                // Both BSD and Linux give the retransmission a full timeout; RFC 6298 is silent.
                self.timers.set(TimerKind::Retransmit, self.rtt.deadline(now));
            }
        }
    }

    fn on_data(&mut self, segment: &Segment, start: u64, now: Instant) {
        let fin = segment.flags.contains(Flags::FIN);
        if segment.payload == 0 && !fin {
            return;
        }
        // A repair may have left before.
        self.has_told = false;
        match self.state {
            State::Established | State::FinWait1 | State::FinWait2 => {}
            // The far end has sent its FIN: this is a repetition.
            _ => return self.acks.demand(),
        }
        let arrival = self.receiver.on_segment(start, segment.payload, fin);
        let context = self.arrival_context(now);
        let pushed = segment.flags.contains(Flags::PSH);
        match arrival {
            Arrival::InOrder { filled_gap } => {
                self.acks.on_data(segment.payload, pushed, filled_gap, &context);
            }
            Arrival::OutOfOrder => self.acks.on_gap(segment.payload, pushed),
            Arrival::Nothing if start > self.receiver.rcv_nxt() => self.acks.on_gap(segment.payload, pushed),
            Arrival::Nothing => self.acks.on_repeat(&context),
        }
        if self.receiver.window.tuning.is_growing() {
            self.grow_window(segment, now);
        }
        if self.receiver.fin_received() {
            self.acks.demand();
            self.on_fin();
        }
    }

    /// Data arrived, and the offered window is not all that it may be yet.
    #[inline(always)]
    pub(super) fn grow_window(&mut self, segment: &Segment, now: Instant) {
        let unread = self.receiver.unread();
        let tuning = &mut self.receiver.window.tuning;
        if tuning.on_data(segment.payload, self.sender.smss(), unread) {
            self.acks.on_window_growth();
        }
        if segment.payload < self.acks.window_mss() {
            return;
        }
        match segment.timestamps().filter(|_| self.timestamps) {
            Some((_, echo)) => tuning.on_echo(echo, || {
                let ticks = timestamp(now).wrapping_sub(echo).max(1);
                TIMESTAMP_TICK.saturating_mul(u64::from(ticks))
            }),
            None => {
                if let Some(srtt) = self.rtt.srtt() {
                    tuning.on_rtt(srtt);
                }
            }
        }
    }

    /// RFC 9293 §3.10.7.4, eighth: the far end sends nothing more.
    fn on_fin(&mut self) {
        self.state = match self.state {
            State::Established => State::CloseWait,
            State::FinWait1 => State::Closing,
            State::FinWait2 => State::TimeWait,
            state => state,
        };
    }

    pub(super) fn on_fin_acked(&mut self) {
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.state = State::TimeWait,
            State::LastAck => self.shut(),
            _ => {}
        }
    }

    /// RFC 9293 §3.5.2: answers a segment that belongs to no connection.
    pub(super) fn reset(&mut self, segment: &Segment) {
        let syn_fin =
            u32::from(segment.flags.contains(Flags::SYN)) + u32::from(segment.flags.contains(Flags::FIN));
        let reset = if segment.flags.contains(Flags::ACK) {
            Segment { seq: segment.ack, flags: Flags::RST, ..Segment::default() }
        } else {
            let ack = segment.seq.wrapping_add(segment.payload.wrapping_add(syn_fin));
            Segment { ack, flags: Flags::RST.with(Flags::ACK), ..Segment::default() }
        };
        self.control = Some(Control::Reset(Box::new(reset)));
    }
}

/// `seq` counted from the initial sequence number `from`.
pub(super) const fn relative(seq: SeqNum, from: SeqNum) -> SeqNum {
    SeqNum::new(seq.get().wrapping_sub(from.get()))
}

//! Leaving segments and timers.
//!
//! The order of a poll: SYN or RST; an acknowledgement that waited for a read; a retransmission that recovery asked for; a
//! probe; what the windows and Nagle's algorithm let go; and only when no data is left to go, and none has carried it, an
//! acknowledgement of its own. Linux repairs losses earlier, while it processes the acknowledgement that told of them and before
//! it takes the data that came with it (tcp_xmit_recovery in tcp_ack): such a repair does not acknowledge that data, which then
//! has an acknowledgement of its own.

use talkpath_units::{Bytes, Instant};

use super::connection::{Control, State, Tcp, timestamp};
use super::offload::Lump;
use super::probe::Pending;
use super::send::{Held, Next, SentSegment};
use super::timer::TimerKind;
use super::usage::Sent;
use crate::cc::{Allowance, CongestionControl, Counting};
use crate::{Ecn, Flags, Outlet, Packet, PayloadRange, SackBlock, Segment, SegmentOptions, Stack, Transmit};

impl Tcp {
    /// The next segment to leave; after `None` all is quiet until the next input.
    pub(super) fn next_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if self.control.is_some() {
            return self.next_control(now);
        }
        if let Some(repair) = self.repairs.pop_front() {
            return Some(repair);
        }
        let is_mute = self.is_mute();
        match self.state {
            State::Closed | State::Listen | State::SynSent | State::SynReceived => {
                self.is_quiet = true;
                return None;
            }
            State::Established | State::CloseWait | State::FinWait1 | State::Closing | State::LastAck => {
                if !is_mute
                    && !self.acks.leads()
                    && let Some(transmit) = self.next_data(now)
                {
                    return Some(transmit);
                }
            }
            State::FinWait2 | State::TimeWait => {}
        }
        if self.acks.is_immediate() || (self.acks.is_pending() && self.check_acknowledgement(now)) {
            self.owes_ack = false;
            let segment = self.segment(self.sender.snd_max(), Flags::ACK, 0, now);
            // An end that only receives has nothing to send behind it.
            self.is_quiet = is_mute && !self.buffer.is_due();
            return Some(bare(segment));
        }
        self.fall_quiet();
        None
    }

    /// What leaves and is not plain (`lumps`, [`Self::acknowledge_alone`]).
    #[inline(never)]
    pub(super) fn transmit_the_rest(&mut self, now: Instant, out: &mut impl Outlet) {
        while !self.is_quiet
            && let Some(transmit) = self.next_transmit(now)
        {
            out.take(transmit);
        }
    }

    /// Whether what was processed asks for an acknowledgement of its own now.
    fn check_acknowledgement(&mut self, now: Instant) -> bool {
        let all_read = self.receiver.unread() == 0;
        let asks = !all_read && self.acks.check_asks_window(self.receiver.rcv_nxt());
        let context = if asks { self.ack_context(now) } else { self.arrival_context(now) };
        self.acks.check(&context, &mut self.timers)
    }

    /// Nothing may leave before the next input.
    #[inline]
    pub(super) fn fall_quiet(&mut self) {
        self.is_quiet = true;
        if self.buffer.take_due() && self.buffer.keeps_waiting() {
            self.check_room();
        }
    }

    #[cold]
    fn next_control(&mut self, now: Instant) -> Option<Transmit> {
        let control = self.control.take()?;
        Some(bare(self.control_segment(control, now)))
    }

    /// tcp_check_space, after what an acknowledgement released has left: a buffer that keeps the application waiting grows where
    /// `cwnd` has room all the same, and with each step of congestion avoidance, as a kernel's was seen to do (docs/model.md).
    #[inline(always)]
    fn check_room(&mut self) {
        let window = self.controller.window();
        let (cwnd, slow_start) = (window.whole_packets(), window.in_slow_start());
        let may_grow = !slow_start || self.sender.flight_segments() < cwnd;
        self.buffer.check(self.sender.queue(), may_grow, cwnd, self.config.mss);
    }

    pub(super) fn on_timer(&mut self, kind: TimerKind, now: Instant) {
        match kind {
            TimerKind::Retransmit => match self.selective.probe.pending {
                Pending::Retransmission => self.on_retransmission_timeout(now),
                Pending::Probe => self.on_probe_timeout(now),
                Pending::Reordering => self.on_reordering_timeout(now),
            },
            TimerKind::Persist => {
                self.persist_backoff = self.persist_backoff.saturating_add(1);
                self.probe_due = true;
            }
            TimerKind::DelayedAck => self.acks.on_timeout(self.rtt.rto()),
            // The poll that follows sends.
            TimerKind::Pacing => {}
        }
    }

    /// RFC 6298 §5.4 to §5.6.
    fn on_retransmission_timeout(&mut self, now: Instant) {
        match self.state {
            State::SynSent => self.control = Some(Control::Syn),
            State::SynReceived => self.control = Some(Control::SynAck),
            _ if !self.sender.is_waiting() => return,
            _ => {
                let snd_una = self.sender.snd_una();
                let first = self.timed_out_at != Some(snd_una);
                self.timed_out_at = Some(snd_una);
                if self.selective.enabled {
                    self.enter_loss_with_sack(first, now);
                } else {
                    // BSD halves at each timeout, RFC 5681 §3.1 once for a segment.
                    let halves = first || self.config.stack == Stack::BsdReno;
                    self.controller.on_rto(self.loss_base(0), halves);
                    self.recovery.enter_loss(self.sender.snd_max());
                    self.sender.go_back();
                }
                self.resend_first = false;
            }
        }
        self.counters.timeouts += 1;
        self.rtt.back_off();
    }

    /// Whether there is no data to send or to watch over: as at an end that only receives.
    #[inline(always)]
    pub(super) fn is_mute(&self) -> bool {
        let asked = self.resend_first | self.probe_due | self.selective.probe.due | self.has_sent();
        let persisting = self.timers.is_running(TimerKind::Persist) || self.persist_backoff > 0;
        self.sender.is_idle() && !asked && !persisting
    }

    /// Sends what an acknowledgement released for repair, and after F-RTO's first step new data, ahead of everything else.
    #[inline]
    pub(super) fn repair_before_data(&mut self, now: Instant) {
        if self.resend_first | self.sender.board.hold_lost | self.sender.is_waiting() {
            self.repair_what_waits(now);
        }
    }

    fn repair_what_waits(&mut self, now: Instant) {
        while self.resend_first || self.sender.board.hold_lost || self.sender.plan() == Next::Again {
            let Some(repair) = self.next_data(now) else { break };
            self.repairs.push_back(repair);
        }
    }

    fn next_data(&mut self, now: Instant) -> Option<Transmit> {
        if core::mem::take(&mut self.resend_first) {
            let again = if self.selective.enabled {
                self.sender.send_lost_again(now)
            } else {
                self.sender.send_first_again(now)
            };
            if let Some(sent) = again {
                self.on_sent_again(&sent, now);
                return Some(self.transmit_data(sent, now));
            }
        }
        if core::mem::take(&mut self.selective.probe.due)
            && let Some(sent) = self.send_probe(now)
        {
            return Some(self.transmit_data(sent, now));
        }
        if core::mem::take(&mut self.probe_due) {
            return Some(self.probe(now));
        }
        if self.selective.enabled {
            self.sender.leave_room(self.receiver.report.option_size());
        }
        let plan = self.sender.plan();
        if let Some(deadline) = self.pacing.waits_until(now)
            && !matches!(plan, Next::Nothing(_))
        {
            self.timers.set(TimerKind::Pacing, deadline);
            self.on_drained(self.flight_size() >= self.controller.window().cwnd(), Held::NoData, now);
            return None;
        }
        let sent = match plan {
            Next::Nothing(_) if self.sender.board.hold_lost && !self.has_sent() => {
                self.stop_holding_lost();
                return self.next_data(now);
            }
            Next::Nothing(held) => {
                self.pacing.end_burst();
                self.on_drained(false, held, now);
                return None;
            }
            Next::Again => {
                if !self.admits(self.sender.smss(), 0) {
                    self.pacing.end_burst();
                    // tcp_write_xmit is not called where there is nothing new to send.
                    self.on_drained(self.sender.unsent() > 0, Held::NoData, now);
                    return None;
                }
                if self.pacing.in_bursts() && !self.pacing.goes_on(true) {
                    self.pacing.begin(self.pace_now().burst(), true, now);
                }
                let sent = self.sender.send_again(now)?;
                self.on_sent_again(&sent, now);
                self.sent_since_drained = self.sent_since_drained.max(Sent::Again);
                sent
            }
            Next::New { payload, fin } => {
                self.restart_after_idle(now);
                let goes_on = self.pacing.goes_on(false);
                if !goes_on && let Err(cwnd_limited) = self.begin_lump(payload, fin, now) {
                    self.pacing.end_burst();
                    self.on_drained(cwnd_limited, Held::NoData, now);
                    return None;
                }
                if self.selective.enabled {
                    self.selective.prr.on_sent(1);
                }
                self.sent_since_drained = Sent::New;
                self.sender.send_new(payload, fin, goes_on, now)
            }
        };
        self.pacing.on_sent();
        if self.pacing.is_enabled() {
            let pace = self.pace_now();
            self.pacing.pace(sent.payload, &pace);
        }
        Some(self.transmit_data(sent, now))
    }

    /// Whether a new segment may leave, and with how many behind it; else whether `cwnd` is what holds it.
    fn begin_lump(&mut self, payload: u32, fin: bool, now: Instant) -> Result<(), bool> {
        if !self.admits(payload, 0) && !self.admits_limited(payload) {
            return Err(true);
        }
        if self.pacing.in_bursts() {
            match self.lump(fin, now) {
                Lump::Leaves(segments) => self.pacing.begin(segments, false, now),
                Lump::Waits { cwnd_limited } => return Err(cwnd_limited),
            }
        }
        Ok(())
    }

    /// A lost segment leaves again; the first one in flight gets a whole timeout (tcp_xmit_retransmit_queue).
    fn on_sent_again(&mut self, sent: &SentSegment, now: Instant) {
        if !self.selective.enabled {
            return;
        }
        self.selective.prr.on_sent(1);
        self.undo.on_sent_again(timestamp(now));
        let is_first = sent.start() <= self.sender.snd_una();
        if is_first && self.selective.probe.pending != Pending::Reordering {
            self.selective.probe.pending = Pending::Retransmission;
            self.timers.set(TimerKind::Retransmit, self.rtt.deadline(now));
        }
    }

    /// Whether congestion control lets a segment of `payload` bytes leave, with `extra` segments on top of `cwnd`
    /// (limited transmit). An empty network always takes one.
    fn admits(&self, payload: u32, extra: u64) -> bool {
        if self.sender.flight_segments() == 0 {
            return true;
        }
        match self.controller.allowance() {
            Allowance::Window(cwnd) => {
                let room = cwnd.get().saturating_add(extra * u64::from(self.sender.smss()));
                self.sender.flight_bytes() + u64::from(payload) <= room
            }
            Allowance::WindowPackets(cwnd) => {
                self.sender.flight_segments() < cwnd.get().saturating_add(extra)
            }
        }
    }

    /// RFC 3042 §2: on the first two duplicate acknowledgements a new segment each may leave beyond `cwnd`.
    fn admits_limited(&mut self, payload: u32) -> bool {
        let admits = self.config.limited_transmit
            && !self.selective.enabled
            && self.admits(payload, self.recovery.limited_transmit());
        if admits {
            self.recovery.on_limited_transmit(match self.controller.window().counting() {
                Counting::Bytes { .. } => u64::from(payload),
                Counting::Packets => 1,
            });
        }
        admits
    }

    /// RFC 5681 §4.1: after more than an RTO without sending, the window is no longer known to fit the path.
    fn restart_after_idle(&mut self, now: Instant) {
        if self.sender.is_waiting() || self.sender.snd_max() <= 1 {
            return;
        }
        let (idle, rto) = (now.since(self.sender.last_sent()), self.rtt.rto());
        if idle > rto {
            self.controller.on_idle(idle, rto);
        }
        self.controller.on_flight_start(idle, now);
    }

    /// Whether anything was sent since all that may leave had left.
    fn has_sent(&self) -> bool {
        self.sent_since_drained != Sent::Nothing
    }

    /// All that may leave has left: notes whether `cwnd` was the limit, and keeps the persist timer.
    #[inline(never)]
    fn on_drained(&mut self, cwnd_limited: bool, held: Held, now: Instant) {
        self.drain(cwnd_limited, held, now);
    }

    /// As [`Self::on_drained`], put where it stands.
    #[inline(always)]
    pub(super) fn drain(&mut self, cwnd_limited: bool, held: Held, now: Instant) {
        let sent = core::mem::replace(&mut self.sent_since_drained, Sent::Nothing);
        if cwnd_limited || sent == Sent::New {
            let window = self.controller.window();
            let (flight_size, smss) = (self.flight_size(), window.counting().smss());
            let limited = cwnd_limited || flight_size + smss > window.cwnd();
            // tcp_cwnd_validate counts what is lost or sacked too.
            let outstanding = match window.counting() {
                Counting::Bytes { .. } => flight_size,
                Counting::Packets => flight_size.max(self.sender.outstanding_segments()),
            };
            self.usage.on_drained(limited, outstanding, self.sender.snd_una(), self.sender.snd_max());
            self.validate_window(outstanding, now);
        }
        let sends = sent != Sent::Nothing && self.selective.enabled && self.sender.is_waiting();
        if sends || self.selective.probe.progressed {
            self.arm(now, !sends);
        }
        if held == Held::Receiver && !self.sender.is_waiting() {
            if !self.timers.is_running(TimerKind::Persist) {
                self.timers.set(TimerKind::Persist, self.rtt.persist_deadline(self.persist_backoff, now));
            }
        } else if self.timers.is_running(TimerKind::Persist) || self.persist_backoff > 0 {
            self.timers.clear(TimerKind::Persist);
            self.persist_backoff = 0;
        }
    }

    /// tcp_cwnd_validate, in windows that count packets: the application, and not a full send buffer, left room for an RTO.
    #[inline(always)]
    fn validate_window(&mut self, outstanding: u64, now: Instant) {
        let window = self.controller.window();
        if window.counting() != Counting::Packets || self.config.steers {
            return;
        }
        let Some(used) = self.usage.unused(window, outstanding, self.rtt.rto(), now) else { return };
        if !self.is_disordered() && self.buffer.writable(self.sender.queue()) > Bytes::ZERO {
            self.controller.window_mut().decay(used);
        }
    }

    /// RFC 9293 §3.8.6.1, and the override of §3.8.6.2.1: what the window takes, however small; or, where it takes
    /// nothing, a segment that repeats a sequence number already acknowledged and so demands an answer
    /// (tcp_xmit_probe_skb). The RFC would send an octet of new data.
    fn probe(&mut self, now: Instant) -> Transmit {
        if let Some(payload) = self.sender.plan_forced().filter(|_| !self.sender.is_waiting()) {
            let sent = self.sender.send_new(payload, false, false, now);
            return self.transmit_data(sent, now);
        }
        let seq = self.sender.snd_una().saturating_sub(1);
        bare(self.segment(seq, Flags::ACK, 0, now))
    }

    fn transmit_data(&mut self, sent: SentSegment, now: Instant) -> Transmit {
        let mut flags = Flags::ACK;
        if sent.pushed {
            flags = flags.with(Flags::PSH);
        }
        if sent.fin {
            flags = flags.with(Flags::FIN);
            self.on_fin_sent();
        }
        if !self.timers.is_running(TimerKind::Retransmit) {
            self.timers.set(TimerKind::Retransmit, self.rtt.deadline(now));
        }
        let start = sent.start();
        let segment = self.segment(start, flags, sent.payload, now);
        let again = sent.is_again();
        if self.config.steers {
            self.note_departure(&sent, now);
        }
        if sent.payload == 0 {
            return bare(segment);
        }
        self.acks.on_data_sent(now);
        self.counters.data_packets += 1;
        self.counters.retransmissions += u64::from(again);
        // The SYN took offset 0.
        let payload = PayloadRange::Stream { start: start - 1, end: start - 1 + u64::from(sent.payload) };
        Transmit {
            wire_size: segment.wire_size(),
            packet: Packet::Tcp(segment),
            ecn: Ecn::NotEct,
            payload: Some(payload),
            retransmission: again,
        }
    }

    fn on_fin_sent(&mut self) {
        self.state = match self.state {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            state => state,
        };
    }

    /// A segment with the ACK bit: what has arrived is acknowledged, and the window offered.
    #[inline(never)]
    fn segment(&mut self, offset: u64, flags: Flags, payload: u32, now: Instant) -> Segment {
        let tells = self.selective.enabled && self.receiver.report.option_size() > 0;
        self.segment_here((offset, payload), flags, tells, now)
    }

    /// As [`Self::segment`], put where it stands: of so much payload from an offset on, with SACK blocks where it `tells`.
    #[inline(always)]
    pub(super) fn segment_here(
        &mut self,
        (offset, payload): (u64, u32),
        flags: Flags,
        tells: bool,
        now: Instant,
    ) -> Segment {
        if !self.has_told {
            self.acknowledge();
        }
        debug_assert!(self.would_tell_the_same(), "the next segment tells otherwise");
        let mut segment = Segment {
            seq: self.iss.wrapping_add(offset as u32),
            ack: self.irs.wrapping_add(self.receiver.rcv_nxt() as u32),
            flags,
            window: self.told_window,
            payload,
            ..Segment::default()
        };
        if self.timestamps {
            segment.options = segment.options.with_timestamps(Some((timestamp(now), self.ts_recent)));
        }
        if tells {
            (segment.sack, segment.sack_count) = self.sack_option(payload);
        }
        segment
    }

    /// A segment leaves that acknowledges all that has arrived: finds the window that it offers.
    #[inline(always)]
    fn acknowledge(&mut self) {
        let rcv_nxt = self.receiver.rcv_nxt();
        self.told_window =
            self.receiver.window.offer(rcv_nxt, self.receiver.read_to(), self.acks.window_mss());
        self.acks.on_ack_sent(rcv_nxt, self.receiver.window.offered(rcv_nxt), &mut self.timers);
        self.has_told = true;
    }

    /// Whether [`Self::acknowledge`] would change nothing.
    fn would_tell_the_same(&self) -> bool {
        let mut receiver = self.receiver.clone();
        let (rcv_nxt, mss) = (receiver.rcv_nxt(), self.acks.window_mss());
        let read = receiver.read_to();
        receiver.window.offer(rcv_nxt, read, mss) == self.told_window
            && receiver.window.edge() == self.receiver.window.edge()
            && self.acks.has_told(rcv_nxt, receiver.window.offered(rcv_nxt))
            && !self.timers.is_running(TimerKind::DelayedAck)
    }

    /// What arrived beyond a gap; a segment sent again has its size already and takes what fits beside it.
    #[inline(never)]
    fn sack_option(&mut self, payload: u32) -> ([SackBlock; 3], u8) {
        let report = &mut self.receiver.report;
        let room = if payload == 0 { u32::MAX } else { self.sender.smss().saturating_sub(payload) };
        report.take(self.irs, room)
    }

    fn control_segment(&mut self, control: Control, now: Instant) -> Segment {
        match control {
            Control::Reset(segment) => *segment,
            Control::Syn => self.syn(Flags::SYN, true, now),
            Control::SynAck => {
                // RFC 7323 §2.2 and §3.2: an option is answered only where it was offered.
                let mut segment = self.syn(Flags::SYN.with(Flags::ACK), self.timestamps, now);
                segment.options = segment.options.with_sack_permitted(self.selective.enabled);
                let rcv_nxt = self.receiver.rcv_nxt();
                segment.ack = self.irs.wrapping_add(rcv_nxt as u32);
                self.acks.on_ack_sent(rcv_nxt, self.receiver.window.offered(rcv_nxt), &mut self.timers);
                segment
            }
        }
    }

    fn syn(&mut self, flags: Flags, timestamps: bool, now: Instant) -> Segment {
        self.sender.on_syn_sent();
        self.syn_sent_at = now;
        self.syn_transmissions = self.syn_transmissions.saturating_add(1);
        self.timers.set(TimerKind::Retransmit, self.rtt.deadline(now));
        let rcv_nxt = self.receiver.rcv_nxt();
        let window = self.receiver.window.offer_on_syn(rcv_nxt.max(1));
        let timestamps = timestamps && self.config.timestamps;
        let options = SegmentOptions::default()
            .with_mss(self.config.mss as u16)
            .with_window_scale(timestamps.then(|| self.receiver.window.shift()))
            .with_sack_permitted(self.config.sack)
            .with_timestamps(timestamps.then(|| (timestamp(now), self.ts_recent)));
        Segment { seq: self.iss, flags, window, options, ..Segment::default() }
    }
}

/// A segment without application data.
#[inline]
pub(super) const fn bare(segment: Segment) -> Transmit {
    let wire_size = segment.wire_size();
    Transmit {
        packet: Packet::Tcp(segment),
        ecn: Ecn::NotEct,
        payload: None,
        retransmission: false,
        wire_size,
    }
}

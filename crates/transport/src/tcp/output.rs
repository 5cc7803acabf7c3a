//! Leaving segments.
//!
//! ```text
//!   1. SYN, SYN-ACK or RST                                        handshake
//!   2. an acknowledgement that waited for a read                  receive/ack_policy
//!   3. the first segment again, if recovery demands it            recovery
//!   4. a tail loss probe, a probe of a closed window              recovery/probe, send/persist
//!   5. retransmissions, then new data, as the windows, Nagle's    send, congestion
//!      algorithm, bursts and pacing allow
//!   6. an acknowledgement of its own                              receive/ack_policy
//! ```
//!
//! Linux repairs losses earlier: while it processes the acknowledgement that reported them, and before it
//! takes the data that came with it (tcp_xmit_recovery in tcp_ack). Such a repair does not acknowledge that
//! data, which then has an acknowledgement of its own.

use talkpath_units::{Bytes, Instant};

use super::core::Core;
use super::outbox::Polled;
use super::recovery::{RecoveryState, SentSegment};
use super::send::{BlockedBy, BurstDecision, BurstInput, BurstKind, Pace, SendDecision};
use super::timers::{TimerKind, TimerSlot};
use crate::cc::usage::Sent;
use crate::{Ecn, Flags, Packet, PayloadRange, Segment, Transmit};

impl Core {
    /// The next segment to leave.
    pub(super) fn next_transmit(&mut self, now: Instant) -> Polled {
        if let Some(segment) = self.next_control(now) {
            return Polled::Next(without_data(segment));
        }
        if let Some(repair) = self.outbox.pop() {
            return Polled::Next(repair);
        }
        if self.state.is_unsynchronized() {
            return Polled::Nothing;
        }
        let ack_first = self.receiver.acknowledges_first();
        if self.state.may_send()
            && !ack_first
            && let Some(transmit) = self.next_data(now)
        {
            return Polled::Next(transmit);
        }
        let acknowledges = self.receiver.wants_acknowledgement(&self.rtt, &mut self.timers, now);
        if ack_first && acknowledges {
            return Polled::Next(self.bare_acknowledgement(now));
        }
        self.check_buffer();
        if acknowledges { Polled::Last(self.bare_acknowledgement(now)) } else { Polled::Nothing }
    }

    /// An acknowledgement that nothing else carries.
    #[inline]
    pub(super) fn bare_acknowledgement(&mut self, now: Instant) -> Transmit {
        without_data(self.segment(self.scoreboard.snd_max(), Flags::ACK, 0, now))
    }

    /// What an acknowledgement released has left. A buffer that keeps the application waiting grows if `cwnd`
    /// has room all the same (tcp_should_expand_sndbuf of Linux 6.18).
    #[inline]
    pub(super) fn check_buffer(&mut self) {
        if !self.sender.awaits_buffer_check() {
            return;
        }
        let cwnd = self.congestion.window().whole_packets();
        let may_grow = self.scoreboard.in_flight_segments() < cwnd;
        self.sender.check_buffer(may_grow, cwnd, self.handshake.mss(), &self.scoreboard);
    }

    /// Sends what an acknowledgement released for repair, and new data in F-RTO's first step, ahead of
    /// everything else.
    pub(super) fn repair_before_data(&mut self, now: Instant) {
        while self.has_repair() {
            let Some(repair) = self.next_data(now) else { break };
            self.outbox.push(repair);
        }
    }

    fn has_repair(&self) -> bool {
        let new_data_first = self.recovery.tries_new_data_first();
        self.recovery.wants_first_retransmission() || new_data_first || self.scoreboard.has_retransmission()
    }

    /// The next segment with data, or a FIN, or a probe.
    fn next_data(&mut self, now: Instant) -> Option<Transmit> {
        if let Some(sent) = self.send_urgent(now) {
            return Some(self.transmit_data(sent, now));
        }
        if self.sender.take_window_probe() {
            return Some(self.send_window_probe(now));
        }
        self.leave_room_for_options();
        let plan = self.plan();
        if let Some(deadline) = self.sender.pacing().waits_until(now)
            && !matches!(plan, SendDecision::Blocked(_))
        {
            self.timers.set(TimerKind::Pacing, deadline);
            let is_full = self.congestion.in_flight(&self.scoreboard) >= self.congestion.window().cwnd();
            self.on_drained(is_full, BlockedBy::NoData, now);
            return None;
        }
        let sent = match plan {
            SendDecision::Blocked(blocked) => {
                self.end_burst(false, blocked, now);
                return None;
            }
            SendDecision::Retransmit => self.send_again(now)?,
            SendDecision::New { payload, fin } => self.send_new(payload, fin, now)?,
        };
        self.sender.pacing_mut().on_sent();
        if self.sender.pacing().is_enabled() {
            let pace = self.pace();
            self.sender.pacing_mut().lengthen_pause(sent.payload(), &pace);
        }
        Some(self.transmit_data(sent, now))
    }

    /// What flow control and Nagle's algorithm let leave. If new data was to be tried first and none can
    /// leave, retransmissions do.
    fn plan(&mut self) -> SendDecision {
        let plan = self.sender.plan(&self.scoreboard, self.recovery.tries_new_data_first());
        if matches!(plan, SendDecision::Blocked(_)) && self.recovery.release_lost(self.scoreboard.snd_max()) {
            return self.sender.plan(&self.scoreboard, false);
        }
        plan
    }

    /// A retransmission or a probe that leaves whatever `cwnd` says.
    fn send_urgent(&mut self, now: Instant) -> Option<SentSegment> {
        if self.recovery.take_first_retransmission() {
            let again = if self.recovery.has_sack() {
                self.scoreboard.retransmit_lost(now)
            } else {
                self.scoreboard.retransmit_first(now)
            };
            if let Some(sent) = again {
                self.on_retransmitted(&sent, now);
                return Some(sent);
            }
        }
        if self.recovery.take_due_probe() { self.send_loss_probe(now) } else { None }
    }

    /// RFC 8985 §7.3: new data if the far end's window has room, whatever `cwnd` says. Otherwise the last
    /// segment again.
    fn send_loss_probe(&mut self, now: Instant) -> Option<SentSegment> {
        let new = self.sender.plan_forced(&self.scoreboard);
        let sent = match new {
            Some(payload) => self.sender.send_new(payload, false, false, &mut self.scoreboard, now),
            None => self.scoreboard.retransmit_last(now)?,
        };
        let end = self.scoreboard.snd_max();
        let (recovery, mut context) = self.recovery_context(now);
        recovery.on_probe_sent(end, new.is_none(), &mut context);
        Some(sent)
    }

    /// RFC 9293 §3.8.6.1, and the override of §3.8.6.2.1: what the window takes, however small. If it takes
    /// nothing, a segment that repeats a sequence number that is already acknowledged, and so demands an
    /// answer (tcp_xmit_probe_skb). The RFC would send an octet of new data.
    fn send_window_probe(&mut self, now: Instant) -> Transmit {
        let forced = self.sender.plan_forced(&self.scoreboard);
        if let Some(payload) = forced.filter(|_| self.scoreboard.is_empty()) {
            let sent = self.sender.send_new(payload, false, false, &mut self.scoreboard, now);
            return self.transmit_data(sent, now);
        }
        let seq = self.scoreboard.snd_una().saturating_sub(1);
        without_data(self.segment(seq, Flags::ACK, 0, now))
    }

    /// A lost segment leaves again if `cwnd` has room.
    fn send_again(&mut self, now: Instant) -> Option<SentSegment> {
        let smss = self.sender.smss();
        if !self.congestion.admits(smss, 0, smss, &self.scoreboard) {
            // tcp_write_xmit is not called if there is nothing new to send.
            let has_new = self.sender.unsent(&self.scoreboard) > 0;
            self.end_burst(has_new, BlockedBy::NoData, now);
            return None;
        }
        let pacing = self.sender.pacing();
        if pacing.in_bursts() && !pacing.continues_burst(BurstKind::Retransmissions) {
            let segments = self.pace().max_burst();
            self.sender.pacing_mut().begin_burst(segments, BurstKind::Retransmissions, now);
        }
        let sent = self.scoreboard.retransmit(now)?;
        self.on_retransmitted(&sent, now);
        self.congestion.note_sent(Sent::Again);
        Some(sent)
    }

    /// New data leaves if `cwnd` has room, and unless it waits for a larger burst.
    fn send_new(&mut self, payload: u32, fin: bool, now: Instant) -> Option<SentSegment> {
        self.restart_after_idle(now);
        let in_burst = self.sender.pacing().continues_burst(BurstKind::NewData);
        if !in_burst {
            let cwnd_limited = match self.begin_burst(payload, fin, now) {
                BurstDecision::Send(_) => None,
                BurstDecision::Defer { cwnd_limited } => Some(cwnd_limited),
            };
            if let Some(cwnd_limited) = cwnd_limited {
                self.end_burst(cwnd_limited, BlockedBy::NoData, now);
                return None;
            }
        }
        Some(self.send_decided(payload, fin, in_burst, now))
    }

    /// New data leaves: windows, Nagle's algorithm and bursts have let it.
    #[inline]
    pub(super) fn send_decided(
        &mut self,
        payload: u32,
        fin: bool,
        in_burst: bool,
        now: Instant,
    ) -> SentSegment {
        self.recovery.on_new_data_sent();
        self.congestion.note_sent(Sent::New);
        self.sender.send_new(payload, fin, in_burst, &mut self.scoreboard, now)
    }

    /// Decides whether a new segment of `payload` bytes may leave, and begins a burst if so.
    #[inline]
    pub(super) fn begin_burst(&mut self, payload: u32, fin: bool, now: Instant) -> BurstDecision {
        if !self.congestion.admits(payload, 0, self.sender.smss(), &self.scoreboard)
            && !self.admits_limited(payload)
        {
            return BurstDecision::Defer { cwnd_limited: true };
        }
        if !self.sender.pacing().in_bursts() {
            return BurstDecision::Send(1);
        }
        let decision = self.tso_burst(fin, now);
        if let BurstDecision::Send(segments) = decision {
            self.sender.pacing_mut().begin_burst(segments, BurstKind::NewData, now);
        }
        decision
    }

    /// How many segments leave together. `ends` if the last that there will ever be is among them.
    #[inline]
    pub(super) fn tso_burst(&self, ends: bool, now: Instant) -> BurstDecision {
        let (room, cwnd) = self.congestion.room_segments(self.sender.smss(), &self.scoreboard);
        let input = BurstInput {
            // Limited transmit sends a segment without room.
            room_segments: room.max(1),
            cwnd_segments: cwnd,
            full: u64::from(self.sender.full_payload()),
            unsent: self.sender.unsent(&self.scoreboard),
            usable: self.sender.usable(&self.scoreboard),
            offered: self.sender.offered_bytes(&self.scoreboard),
            may_defer: !ends && self.recovery.state() == RecoveryState::Open,
            first_sent_at: self.scoreboard.first_sent_at(),
            last_burst: self.sender.pacing().departure(),
            min_burst: u64::from(self.congestion.control().min_burst()),
            srtt: self.rtt.srtt(),
        };
        input.decide(|| u64::from(self.pace().max_burst()), now)
    }

    /// What bursts and their pace follow from.
    pub(super) fn pace(&self) -> Pace {
        self.congestion.pace(self.sender.smss(), self.rtt.srtt(), self.recovery.min_rtt(), &self.scoreboard)
    }

    /// RFC 3042 §2: on the first two duplicate acknowledgements a new segment each may leave beyond `cwnd`.
    /// What leaves is noted.
    fn admits_limited(&mut self, payload: u32) -> bool {
        let extra = self.recovery.limited_transmit();
        let smss = self.sender.smss();
        let admits = extra > 0 && self.congestion.admits(payload, extra, smss, &self.scoreboard);
        if admits {
            self.recovery.on_limited_transmit(self.congestion.amount(u64::from(payload), 1));
        }
        admits
    }

    fn restart_after_idle(&mut self, now: Instant) {
        if self.scoreboard.is_empty() && self.scoreboard.snd_max() > 1 {
            let idle = now.since(self.scoreboard.last_sent());
            self.congestion.restart_after_idle(idle, self.rtt.rto(), now);
        }
    }

    fn on_retransmitted(&mut self, sent: &SentSegment, now: Instant) {
        let (recovery, mut context) = self.recovery_context(now);
        recovery.on_retransmitted(sent, &mut context);
    }

    #[inline]
    pub(super) fn end_burst(&mut self, cwnd_limited: bool, blocked: BlockedBy, now: Instant) {
        self.sender.pacing_mut().end_burst();
        self.on_drained(cwnd_limited, blocked, now);
    }

    /// Everything that may leave has left. Notes whether `cwnd` was the limit, and keeps the probe's and the
    /// persist timer.
    #[inline]
    pub(super) fn on_drained(&mut self, cwnd_limited: bool, blocked: BlockedBy, now: Instant) {
        let rto = self.rtt.rto();
        let (sent, used) = self.congestion.on_drained(cwnd_limited, &self.scoreboard, rto, now);
        if let Some(used) = used
            && !self.recovery.is_disordered(&self.scoreboard)
            && !self.recovery.reduces_for_echo()
            && self.sender.writable(&self.scoreboard) > Bytes::ZERO
        {
            self.congestion.decay(used);
        }
        if sent != Sent::Nothing && self.recovery.has_sack() && !self.scoreboard.is_empty() {
            let (recovery, mut context) = self.recovery_context(now);
            recovery.arm(false, &mut context);
        }
        let is_blocked = blocked == BlockedBy::Receiver && self.scoreboard.is_empty();
        self.sender.update_persist(is_blocked, &self.rtt, &mut self.timers, now);
    }

    #[inline]
    pub(super) fn transmit_data(&mut self, sent: SentSegment, now: Instant) -> Transmit {
        let mut flags = Flags::ACK;
        if sent.pushed() {
            flags = flags.with(Flags::PSH);
        }
        if sent.fin() {
            flags = flags.with(Flags::FIN);
            self.state.on_fin_sent();
        }
        if !self.timers.is_running(TimerSlot::Loss) {
            self.arm_retransmission(now);
        }
        let start = sent.start();
        let again = sent.was_retransmitted();
        let is_new_data = sent.payload() > 0 && !again;
        if is_new_data {
            flags = flags.with(self.ecn.take_cwr());
        }
        // RFC 3168 §6.1.5: retransmissions are not ECN-capable.
        let codepoint = if is_new_data { self.ecn.codepoint() } else { Ecn::NotEct };
        let segment = self.segment(start, flags, sent.payload(), now);
        self.congestion.on_departure(&sent, &self.scoreboard, now);
        if sent.payload() == 0 {
            return without_data(segment);
        }
        self.receiver.on_data_sent(now);
        self.outbox.count(1, u64::from(again));
        with_data(segment, &sent, codepoint)
    }

    /// As [`Self::transmit_data`] for a new segment that leaves at the same instant as one before it, whose
    /// header is `header`.
    #[inline]
    pub(super) fn transmit_next(&mut self, header: &mut Segment, sent: &SentSegment) -> Transmit {
        header.seq = self.handshake.seq(sent.start());
        // CWR left with the first.
        let flags = Flags::ACK.with(self.ecn.echo());
        header.flags = if sent.pushed() { flags.with(Flags::PSH) } else { flags };
        self.outbox.count(1, 0);
        with_data(*header, sent, self.ecn.codepoint())
    }

    /// A full segment has room for the SACK blocks that it carries.
    #[inline]
    pub(super) fn leave_room_for_options(&mut self) {
        if self.recovery.has_sack() {
            self.sender.leave_room(self.receiver.sack_option_size());
        }
    }

    /// True if the next segment carries SACK blocks.
    #[inline]
    pub(super) fn has_sack_option(&self) -> bool {
        self.recovery.has_sack() && self.receiver.sack_option_size() > 0
    }

    /// A segment with the ACK bit: it acknowledges what has arrived, offers the window, and carries SACK
    /// blocks if there is anything to report. A segment that is sent again has its size already, and takes
    /// the blocks that fit beside it.
    #[inline]
    pub(super) fn segment(&mut self, offset: u64, flags: Flags, payload: u32, now: Instant) -> Segment {
        let mut segment = Segment {
            seq: self.handshake.seq(offset),
            ack: self.handshake.ack_number(self.receiver.rcv_nxt()),
            flags: flags.with(self.ecn.echo()),
            window: self.receiver.acknowledge(&mut self.timers),
            payload,
            ..Segment::default()
        };
        segment.options = segment.options.with_timestamps(self.timestamps.option(now));
        if self.has_sack_option() {
            let room = if payload == 0 { u32::MAX } else { self.sender.smss().saturating_sub(payload) };
            (segment.sack, segment.sack_count) = self.receiver.take_sack_blocks(self.handshake.irs(), room);
        }
        segment
    }
}

/// A segment with application data.
#[inline]
fn with_data(segment: Segment, sent: &SentSegment, ecn: Ecn) -> Transmit {
    // The SYN took offset 0.
    let start = sent.start() - 1;
    Transmit {
        wire_size: segment.wire_size(),
        packet: Packet::Tcp(segment),
        ecn,
        payload: Some(PayloadRange::Stream { start, end: start + u64::from(sent.payload()) }),
        retransmission: sent.was_retransmitted(),
    }
}

/// A segment without application data.
#[inline]
const fn without_data(segment: Segment) -> Transmit {
    let wire_size = segment.wire_size();
    Transmit {
        packet: Packet::Tcp(segment),
        ecn: Ecn::NotEct,
        payload: None,
        retransmission: false,
        wire_size,
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::{Bytes, Duration, Packets, Seed};

    use super::*;
    use crate::{Role, Stack, TcpConfig};

    const SMSS: u32 = 1448;

    /// A sender in congestion avoidance with a window of ten segments, `in_flight` of them sent, whose
    /// application waits for room and has seen an acknowledgement.
    fn waiting(in_flight: u64) -> Core {
        let preset = TcpConfig::preset(Stack::Linux, false);
        let config =
            TcpConfig { initial_window: Packets::new(10), initial_ssthresh: Some(Packets::new(1)), ..preset };
        let mut tcp = Core::new(&config, Role::Active, Bytes::new(1500), Seed::new(1), None);
        tcp.scoreboard.on_syn_sent();
        tcp.scoreboard.on_established();
        tcp.sender.on_established(SMSS);
        tcp.sender.on_far_syn(u16::MAX, 7);
        tcp.sender.update_window(u16::MAX, 1, 1);
        tcp.sender.write(Bytes::new(in_flight * u64::from(SMSS)), &tcp.scoreboard);
        tcp.rtt.on_sample(Duration::from_millis(50), 0, 0);
        for segment in 0..in_flight {
            tcp.sender.send_new(SMSS, false, segment > 0, &mut tcp.scoreboard, Instant::ZERO);
        }
        tcp.sender.on_refused();
        tcp.sender.on_ack();
        tcp
    }

    /// tcp_should_expand_sndbuf: "if we filled the congestion window, do not expand", in slow start and after
    /// it alike.
    #[test]
    fn the_send_buffer_grows_only_if_the_window_is_not_full() {
        const LARGE: Bytes = Bytes::new(100_000);
        for (in_flight, grows) in [(10, false), (9, true)] {
            let mut tcp = waiting(in_flight);
            assert!(
                !tcp.sender.holds(LARGE, &tcp.scoreboard),
                "the buffer has 16 KiB, and one sk_buff may overshoot"
            );
            tcp.check_buffer();
            assert_eq!(tcp.sender.holds(LARGE, &tcp.scoreboard), grows, "{in_flight} segments in flight");
        }
    }
}

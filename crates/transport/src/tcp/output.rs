//! Leaving segments, in the order of their precedence:
//!
//! ```text
//!   1. SYN, SYN-ACK or RST                                        handshake
//!   2. segments that were decided on while an ACK was processed   outbox
//!   3. a pure ACK that waited for the application's read          receive/ack_policy
//!   4. the first lost segment, if recovery demands it             recovery
//!   5. a tail loss probe, or a probe of a closed window           recovery/probe, send/persist
//!   6. other retransmissions, then new data, as the windows,      send, congestion
//!      Nagle's algorithm, bursts and pacing allow
//!   7. a pure ACK, if no segment above has carried it             receive/ack_policy
//! ```
//!
//! Point 2 exists because Linux sends retransmissions while it processes the acknowledgement that reported
//! the losses, before it takes the data of the same segment (tcp_xmit_recovery in tcp_ack). Such a
//! retransmission does not acknowledge that data. The data is acknowledged by point 7.

use talkpath_units::{Bytes, Ecn, Instant};
use talkpath_wire::{Flags, Packet, PayloadRange, Segment, Transmit};

use super::core::Core;
use super::outbox::Polled;
use super::recovery::{ArmedBy, RecoveryState, SentSegment};
use super::send::{BlockedBy, BurstDecision, BurstInput, BurstKind, NewSegment, NextSegment, Pace};
use super::timers::{TimerKind, TimerSlot};
use crate::cc::usage::Sent;

impl Core {
    /// Sends one segment, the first one that may leave now. [`Polled::Last`] means that the segment is the
    /// last one: no other leaves until the connection has a new input. The steps are numbered in the order of
    /// their precedence.
    pub(super) fn next_transmit(&mut self, now: Instant) -> Polled {
        // 1. The handshake, or a reset.
        if let Some(segment) = self.next_control(now) {
            return Polled::Next(without_data(segment));
        }
        // 2. A segment that was prepared while an ACK was processed, the oldest first.
        if let Some(repair) = self.outbox.pop() {
            return Polled::Next(repair);
        }
        // Before the handshake is complete, and after the connection's end, no other segment leaves.
        if self.state.is_unsynchronized() {
            return Polled::Nothing;
        }
        // 3. An ACK that became due before this turn. It waited until the application had read. It leaves
        //    before the data that the application writes in answer. That data may follow at once.
        if self.receiver.acknowledges_first() {
            let is_due = self.receiver.decide_acknowledgement(&self.rtt, &mut self.timers, now);
            if is_due {
                return Polled::Next(self.pure_ack(now));
            }
        }
        // 4 to 6. A lost segment, a probe, or new data. It carries the ACK that may be due.
        if self.state.may_send()
            && let Some(transmit) = self.send_data(now)
        {
            return Polled::Next(transmit);
        }
        // 7. A pure ACK, because no data carries it.
        let is_due = self.receiver.decide_acknowledgement(&self.rtt, &mut self.timers, now);
        // All data that may leave has left. This shows whether the send buffer was too small.
        self.check_buffer();
        if is_due { Polled::Last(self.pure_ack(now)) } else { Polled::Nothing }
    }

    /// An acknowledgement without data.
    #[inline]
    pub(super) fn pure_ack(&mut self, now: Instant) -> Transmit {
        without_data(self.segment(self.scoreboard.snd_max(), Flags::ACK, 0, now))
    }

    /// Grows the send buffer if the buffer limits the rate, and `cwnd` does not. The caller has sent
    /// everything that may leave. If `cwnd` has room nevertheless, the buffer held too little data to fill it
    /// (Linux 6.18: tcp_should_expand_sndbuf).
    #[inline]
    pub(super) fn check_buffer(&mut self) {
        if !self.sender.awaits_buffer_check() {
            return;
        }
        let cwnd = self.congestion.window().whole_packets();
        let may_grow = self.scoreboard.in_flight_segments() < cwnd;
        self.sender.check_buffer(may_grow, cwnd, self.handshake.mss(), &self.scoreboard);
    }

    /// Fills the outbox with what an acknowledgement allows to leave: retransmissions, and F-RTO's new data
    /// (RFC 5682 §2.1 step 2b). This happens before the connection takes the data of the same segment, as in
    /// Linux. So these segments do not acknowledge that data.
    pub(super) fn repair_before_data(&mut self, now: Instant) {
        while self.has_repair() {
            let Some(repair) = self.send_data(now) else { break };
            self.outbox.push(repair);
        }
    }

    /// True if a retransmission may leave, or the new data with which F-RTO tests a timeout.
    fn has_repair(&self) -> bool {
        self.recovery.wants_first_retransmission()
            || self.recovery.tries_new_data_first()
            || self.scoreboard.has_retransmission()
    }

    /// Sends the next segment that has data or a FIN, or that is a probe. `None` if no such segment may leave
    /// now.
    fn send_data(&mut self, now: Instant) -> Option<Transmit> {
        // The first retransmission of a recovery and the probes wait neither for room in `cwnd` nor for the
        // end of a pause.
        if let Some(sent) = self.send_despite_cwnd(now) {
            return Some(self.transmit_data(sent, now));
        }
        if self.sender.take_window_probe() {
            return Some(self.send_window_probe(now));
        }
        match self.send_next(now) {
            Ok(sent) => Some(self.transmit_data(sent, now)),
            Err(blocked) => {
                self.end_burst(blocked, now);
                None
            }
        }
    }

    /// Sends the next retransmission or new segment, if the windows, Nagle's algorithm, pacing and
    /// bursts allow it. The error says what holds it back.
    fn send_next(&mut self, now: Instant) -> Result<SentSegment, BlockedBy> {
        // Flow control and Nagle's algorithm choose the segment.
        self.leave_room_for_options();
        let next = self.choose_segment()?;
        // Pacing may hold the chosen segment back.
        if let Some(pause_end) = self.sender.pacing().waits_until(now) {
            return Err(self.pause(pause_end));
        }
        // `cwnd` and the size of bursts may hold it back too.
        let sent = match next {
            NextSegment::Retransmission => self.send_again(now)?,
            NextSegment::New { payload, fin } => self.send_new(payload, fin, now)?,
        };
        self.sender.pacing_mut().on_sent();
        if self.sender.pacing().is_enabled() {
            let pace = self.pace();
            self.sender.pacing_mut().lengthen_pause(sent.payload(), &pace);
        }
        Ok(sent)
    }

    /// Starts the pacing timer, which expires at `pause_end`. Returns what holds the next segment back until
    /// then. If `cwnd` is full as well, `cwnd` counts as the limit (Linux: tcp_is_cwnd_limited).
    fn pause(&mut self, pause_end: Instant) -> BlockedBy {
        self.timers.set(TimerKind::Pacing, pause_end);
        let is_full = self.congestion.in_flight(&self.scoreboard) >= self.congestion.window().cwnd();
        if is_full { BlockedBy::CongestionWindow } else { BlockedBy::Pacing }
    }

    /// Chooses the segment that may leave next by flow control and Nagle's algorithm. A retransmission comes
    /// before new data.
    ///
    /// The exception is F-RTO, which sends new data first after a timeout (RFC 5682 §2.1 step 2b). If no new
    /// data may leave, F-RTO gives up, and the choice is made again without it.
    fn choose_segment(&mut self) -> Result<NextSegment, BlockedBy> {
        let choice = self.sender.plan(&self.scoreboard, self.recovery.tries_new_data_first());
        if choice.is_err() {
            let gives_up = self.recovery.give_up_new_data_first(self.scoreboard.snd_max());
            if gives_up {
                return self.sender.plan(&self.scoreboard, false);
            }
        }
        choice
    }

    /// Sends what may leave even if `cwnd` is full: the first retransmission of a recovery (RFC 6675 §5 step
    /// 4.3), or a tail loss probe.
    fn send_despite_cwnd(&mut self, now: Instant) -> Option<SentSegment> {
        if self.recovery.take_first_retransmission() {
            // Without SACK the far end reports no losses. The first segment in flight is the lost one.
            let retransmission = if self.recovery.has_sack() {
                self.scoreboard.retransmit_lost(now)
            } else {
                self.scoreboard.retransmit_first(now)
            };
            if let Some(sent) = retransmission {
                self.on_retransmitted(&sent, now);
                return Some(sent);
            }
        }
        if self.recovery.take_due_probe() { self.send_loss_probe(now) } else { None }
    }

    /// Sends a tail loss probe (RFC 8985 §7.3): a new segment if the far end's window has room for it.
    /// Otherwise the probe is the last segment again.
    fn send_loss_probe(&mut self, now: Instant) -> Option<SentSegment> {
        let new_payload = self.sender.plan_loss_probe(&self.scoreboard);
        let is_retransmission = new_payload.is_none();
        let sent = match new_payload {
            Some(payload) => self.sender.send_new(NewSegment::forced(payload), &mut self.scoreboard, now),
            None => self.scoreboard.retransmit_last(now)?,
        };
        let probe_end = self.scoreboard.snd_max();
        let (recovery, mut context) = self.recovery_context(now);
        recovery.on_probe_sent(probe_end, is_retransmission, &mut context);
        Some(sent)
    }

    /// Sends a probe of the far end's closed window (RFC 9293 §3.8.6.1).
    ///
    /// - Nothing is in flight, and the window has room for some new data: the probe carries that data, even
    ///   if silly window avoidance held it back (§3.8.6.2.1, the override).
    /// - Otherwise the probe is an empty segment with a sequence number that is already
    ///   acknowledged, which the far end has to answer. Linux probes in this way (tcp_xmit_probe_skb). The
    ///   RFC would send an octet of new data instead.
    fn send_window_probe(&mut self, now: Instant) -> Transmit {
        if self.scoreboard.is_empty()
            && let Some(payload) = self.sender.plan_forced(&self.scoreboard)
        {
            let sent = self.sender.send_new(NewSegment::forced(payload), &mut self.scoreboard, now);
            return self.transmit_data(sent, now);
        }
        let acked_offset = self.scoreboard.snd_una().saturating_sub(1);
        without_data(self.segment(acked_offset, Flags::ACK, 0, now))
    }

    /// Sends a lost segment again if `cwnd` has room.
    fn send_again(&mut self, now: Instant) -> Result<SentSegment, BlockedBy> {
        let smss = self.sender.smss();
        if !self.congestion.admits(smss, &self.scoreboard) {
            // A full `cwnd` counts as the limit only if new data waits behind the retransmission (Linux:
            // tcp_write_xmit).
            let has_new_data = self.sender.unsent(&self.scoreboard) > 0;
            return Err(if has_new_data { BlockedBy::CongestionWindow } else { BlockedBy::NoData });
        }
        // Retransmissions leave in bursts of their own.
        let pacing = self.sender.pacing();
        if pacing.in_bursts() && !pacing.continues_burst(BurstKind::Retransmissions) {
            let segments = self.pace().max_burst();
            self.sender.pacing_mut().begin_burst(segments, BurstKind::Retransmissions, now);
        }
        let sent = self.scoreboard.retransmit(now).ok_or(BlockedBy::NoData)?;
        self.on_retransmitted(&sent, now);
        self.congestion.note_sent(Sent::OnlyRetransmissions);
        Ok(sent)
    }

    /// Sends a new segment with `payload` bytes, and the FIN if `fin` is true, if `cwnd` has room and the
    /// data does not wait for a larger burst. A segment of the current burst waits for neither, because both
    /// were decided for the whole burst.
    fn send_new(&mut self, payload: u32, fin: bool, now: Instant) -> Result<SentSegment, BlockedBy> {
        self.restart_after_idle(now);
        let in_burst = self.sender.pacing().continues_burst(BurstKind::NewData);
        if !in_burst {
            let decision = self.begin_burst(payload, fin, now);
            if let BurstDecision::Wait(blocked) = decision {
                return Err(blocked);
            }
        }
        Ok(self.send_decided(NewSegment { payload, fin, in_burst }, now))
    }

    /// Sends a new segment that the windows, Nagle's algorithm and bursts allow.
    #[inline]
    pub(super) fn send_decided(&mut self, segment: NewSegment, now: Instant) -> SentSegment {
        self.recovery.on_new_data_sent();
        self.congestion.note_sent(Sent::NewData);
        self.sender.send_new(segment, &mut self.scoreboard, now)
    }

    /// Begins a burst of new data whose first segment has `payload` bytes, if it may leave now.
    #[inline]
    pub(super) fn begin_burst(&mut self, payload: u32, fin: bool, now: Instant) -> BurstDecision {
        if !self.congestion.admits(payload, &self.scoreboard) {
            let is_limited_transmit = self.take_limited_transmit(payload);
            if !is_limited_transmit {
                return BurstDecision::Wait(BlockedBy::CongestionWindow);
            }
        }
        if !self.sender.pacing().in_bursts() {
            // Each segment leaves by itself: no burst begins.
            return BurstDecision::Send(1);
        }
        let decision = self.tso_burst(fin, now);
        if let BurstDecision::Send(segments) = decision {
            self.sender.pacing_mut().begin_burst(segments, BurstKind::NewData, now);
        }
        decision
    }

    /// Decides how many segments leave together. `fin` is true if the last segment of the stream is among
    /// them.
    #[inline]
    pub(super) fn tso_burst(&self, fin: bool, now: Instant) -> BurstDecision {
        let (room, cwnd) = self.congestion.room_segments(self.sender.smss(), &self.scoreboard);
        let input = BurstInput {
            // At least one: limited transmit sends a segment although `cwnd` has no room.
            room_segments: room.max(1),
            cwnd_segments: cwnd,
            full: u64::from(self.sender.full_payload()),
            unsent: self.sender.unsent(&self.scoreboard),
            usable: self.sender.usable(&self.scoreboard),
            offered: self.sender.offered_bytes(&self.scoreboard),
            may_defer: !fin && self.recovery.state() == RecoveryState::Open,
            first_sent_at: self.scoreboard.first_sent_at(),
            last_burst: self.sender.pacing().pause_end(),
            min_burst: u64::from(self.congestion.control().min_burst()),
            srtt: self.rtt.srtt(),
        };
        input.decide(|| u64::from(self.pace().max_burst()), now)
    }

    /// The inputs of the pacing rate and of the size of a burst.
    pub(super) fn pace(&self) -> Pace {
        self.congestion.pace(self.sender.smss(), self.rtt.srtt(), self.recovery.min_rtt(), &self.scoreboard)
    }

    /// Uses limited transmit (RFC 3042 §2) if it allows a segment of `payload` bytes. Each of the first two
    /// duplicate acknowledgements allows a new segment beyond `cwnd`. Returns true if the segment may leave.
    fn take_limited_transmit(&mut self, payload: u32) -> bool {
        let extra_segments = self.recovery.limited_transmit();
        let smss = self.sender.smss();
        let may_leave = extra_segments > 0
            && self.congestion.admits_beyond(payload, extra_segments, smss, &self.scoreboard);
        if may_leave {
            self.recovery.on_limited_transmit(self.congestion.amount(u64::from(payload), 1));
        }
        may_leave
    }

    /// Adapts `cwnd` if the connection was idle (RFC 5681 §4.1). Offset 0 is the SYN, so a connection that
    /// has sent no data has an SND.MAX of 1.
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

    /// Ends the burst, because `blocked` holds the next segment back.
    #[inline]
    pub(super) fn end_burst(&mut self, blocked: BlockedBy, now: Instant) {
        self.sender.pacing_mut().end_burst();
        self.on_drained(blocked, now);
    }

    /// Takes note that all segments that may leave now have left, and that `blocked` holds the next segment
    /// back. Notes whether `cwnd` was the limit, starts the loss probe's timer, and starts or stops the
    /// persist timer.
    #[inline]
    pub(super) fn on_drained(&mut self, blocked: BlockedBy, now: Instant) {
        self.held.note(blocked.cause(), now);
        let rto = self.rtt.rto();
        let cwnd_limited = blocked == BlockedBy::CongestionWindow;
        let (sent, used) = self.congestion.on_drained(cwnd_limited, &self.scoreboard, rto, now);
        // `cwnd` was not full for an RTO: it decays towards what was `used`, unless the send buffer was full
        // or a loss is being repaired.
        if let Some(used) = used
            && !self.recovery.is_disordered(&self.scoreboard)
            && !self.recovery.reduces_for_echo()
            && self.sender.writable(&self.scoreboard) > Bytes::ZERO
        {
            self.congestion.decay(used);
        }
        if sent != Sent::Nothing && self.recovery.has_sack() && !self.scoreboard.is_empty() {
            let (recovery, mut context) = self.recovery_context(now);
            recovery.arm_loss_timer(ArmedBy::NewData, &mut context);
        }
        let window_is_closed = blocked == BlockedBy::Receiver && self.scoreboard.is_empty();
        self.sender.update_persist(window_is_closed, &self.rtt, &mut self.timers, now);
    }

    /// Makes the segment for `sent`, and counts it.
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
        let is_retransmission = sent.was_retransmitted();
        let is_new_data = sent.payload() > 0 && !is_retransmission;
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
        self.outbox.count(1, u64::from(is_retransmission));
        with_data(segment, &sent, codepoint)
    }

    /// As [`Self::transmit_data`], for a new segment that leaves at the same instant as the new segment
    /// before it. `header` is that segment's header, and becomes this one's.
    #[inline]
    pub(super) fn transmit_next(&mut self, header: &mut Segment, sent: &SentSegment) -> Transmit {
        header.seq = self.handshake.seq(sent.start());
        // The first segment carried CWR.
        let flags = Flags::ACK.with(self.ecn.echo());
        header.flags = if sent.pushed() { flags.with(Flags::PSH) } else { flags };
        self.outbox.count(1, 0);
        with_data(*header, sent, self.ecn.codepoint())
    }

    /// Makes full segments smaller by the SACK blocks that they carry.
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

    /// Makes a segment with the ACK bit. It acknowledges the data that has arrived in order, offers a window,
    /// and carries SACK blocks for data beyond a gap. A retransmission keeps its payload and carries only the
    /// blocks that fit beside it.
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
    use talkpath_config::{Role, Stack, TcpConfig};

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
            let segment = NewSegment { payload: SMSS, fin: false, in_burst: segment > 0 };
            tcp.sender.send_new(segment, &mut tcp.scoreboard, Instant::ZERO);
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

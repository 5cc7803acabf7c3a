//! What nearly all segments are, each in one short branch: data that is expected next at an end that sends nothing, an
//! acknowledgement of whole segments while nothing is amiss, and full segments of new data that a window lets go.
//!
//! It is header prediction (Jacobson, "4BSD header prediction", 1990; tcp_rcv_established in Linux) on both paths. Nothing here
//! decides anything: whatever is not certain to be the plain case is left to `input`, `selective` and `output`, which would do the
//! same for the plain one at more length.

use talkpath_units::Instant;

use super::connection::{State, Tcp};
use super::input::relative;
use super::offload::Lump;
use super::probe::Pending;
use super::recovery::RecoveryState;
use super::scoreboard::Marks;
use super::send::{Held, Sender, SentSegment};
use super::timer::TimerKind;
use crate::cc::{Ack, CongestionControl, Counting, RttSample};
use crate::{Ecn, Flags, Packet, PayloadRange, Segment, Transmit};

impl Tcp {
    /// A segment that begins at `start` has arrived: whether it was a plain one, and so has been dealt with.
    #[inline]
    pub(super) fn is_predicted(&mut self, segment: &Segment, start: u64, now: Instant) -> bool {
        let control = Flags::SYN.with(Flags::FIN).with(Flags::RST).with(Flags::ACK);
        if self.state != State::Established
            || !segment.flags.are_just(Flags::ACK, control)
            || segment.sack_count != 0
        {
            return false;
        }
        if segment.payload > 0 {
            self.is_plain_data(segment, start) && {
                self.on_plain_data(segment, start, now);
                true
            }
        } else {
            start == self.receiver.rcv_nxt() && self.takes_plain_ack(segment, start, now)
        }
    }

    /// Whether this is just the data expected next, at an end that has nothing in flight.
    #[inline]
    fn is_plain_data(&self, segment: &Segment, start: u64) -> bool {
        self.receiver.takes_whole(start, segment.payload)
            && !self.sender.is_waiting()
            && segment.ack == self.iss.wrapping_add(self.sender.snd_una() as u32)
            && !self.is_old_duplicate(segment)
    }

    fn on_plain_data(&mut self, segment: &Segment, start: u64, now: Instant) {
        self.note_timestamp(segment, start);
        self.sender.window.update(segment.window, start, self.sender.snd_una());
        self.receiver.take_whole(segment.payload);
        let context = self.arrival_context(now);
        self.acks.on_data(segment.payload, segment.flags.contains(Flags::PSH), false, &context);
        if self.receiver.window.tuning.is_growing() {
            self.grow_window(segment, now);
        }
        let is_alone = self.control.is_none() && self.repairs.is_empty() && !self.buffer.is_due();
        if is_alone && self.is_mute() && !self.acks.check_asks_window(self.receiver.rcv_nxt()) {
            self.is_quiet = !self.acks.check(&context, &mut self.timers);
        }
    }

    /// An acknowledgement without data, of whole segments sent once, with no loss, reordering, probe or repair in sight:
    /// what is left of [`Self::on_ack_with_sack`] then.
    fn takes_plain_ack(&mut self, segment: &Segment, start: u64, now: Instant) -> bool {
        let is_calm = self.selective.enabled
            && !self.config.steers
            && !self.selective.probe.is_out()
            && self.recovery.state() == RecoveryState::Open;
        if !is_calm {
            return false;
        }
        let ack = relative(segment.ack, self.iss).extend(self.sender.snd_una());
        let Some((first, last, segments)) = self.sender.plain_run(ack) else { return false };
        self.note_timestamp(segment, start);
        self.sender.window.update(segment.window, start, ack);
        let bytes = self.sender.acknowledge_plainly(ack, segments);
        let snd_max = self.sender.snd_max();
        let rtt = self.rtt.measure(first.sent_at, now);
        self.rtt.on_sample(rtt, ack, snd_max);
        let latest = now.since(last.sent_at);
        self.selective.rack.on_rtt(latest, now);
        self.controller.on_rtt(latest, RttSample { now, snd_una: ack, snd_max });
        self.selective.rack.advance((last.sent_at, last.end), now);
        if self.sender.is_waiting() {
            let later =
                self.timers.is_running(TimerKind::Retransmit) && self.selective.probe.progress_later();
            if !later {
                self.arm(now, true);
            }
        } else {
            self.timers.clear(TimerKind::Retransmit);
            self.selective.probe.pending = Pending::Retransmission;
        }
        let acked = match self.controller.window().counting() {
            Counting::Bytes { .. } => bytes,
            Counting::Packets => segments,
        };
        let (flight_size, cwnd_limited) = (self.flight_size(), self.may_grow());
        self.controller.on_ack(Ack { acked, flight_size, cwnd_limited, now });
        self.buffer.on_ack();
        if self.sender.fin_is_acked() {
            self.on_fin_acked();
        }
        true
    }

    /// Sends as many full segments of new data as may leave one after the other, if nothing has to leave before them.
    pub(super) fn transmit_plainly(&mut self, now: Instant, out: &mut impl FnMut(Transmit)) {
        let asked = self.resend_first | self.probe_due | self.selective.probe.due | self.control.is_some();
        let asked = asked | !self.repairs.is_empty() | self.acks.leads();
        let is_special = asked | self.pacing.is_enabled() | self.config.steers;
        if is_special || self.state != State::Established || self.receiver.report.option_size() > 0 {
            return;
        }
        self.sender.leave_room(0);
        let mut next = if self.sender.sends_plainly() { self.plain_lump(now) } else { Plain::Unclear };
        if let Plain::Leaves(segments) = next {
            next = self.send_lumps(segments, now, out);
        }
        if let Plain::Held { cwnd_limited } = next
            && !self.acks.is_pending()
        {
            self.pacing.end_burst();
            self.on_drained(cwnd_limited, Held::NoData, now);
            self.fall_quiet();
        }
    }

    /// Sends a lump of `left` full segments, and what may leave behind it; returns why no more do.
    fn send_lumps(&mut self, mut left: u32, now: Instant, out: &mut impl FnMut(Transmit)) -> Plain {
        let payload = self.sender.smss();
        let mut segment = self.segment(self.sender.snd_max(), Flags::ACK, payload, now);
        self.acks.on_data_sent(now);
        self.sent_since_drained = true;
        if !self.timers.is_running(TimerKind::Retransmit) {
            self.timers.set(TimerKind::Retransmit, self.rtt.deadline(now));
        }
        let first = self.sender.outstanding_segments();
        let mut follows = false;
        let next = loop {
            left -= 1;
            let start = self.sender.snd_max();
            self.sender.send_plainly(follows, now);
            self.pacing.on_sent();
            segment.seq = self.iss.wrapping_add(start as u32);
            if self.sender.unsent() == 0 {
                segment.flags = Flags::ACK.with(Flags::PSH);
            }
            // The SYN took offset 0.
            let payload = PayloadRange::Stream { start: start - 1, end: start - 1 + u64::from(payload) };
            out(Transmit {
                packet: Packet::Tcp(segment),
                ecn: Ecn::NotEct,
                payload: Some(payload),
                retransmission: false,
            });
            follows = left > 0;
            if left > 0 && !self.sender.has_full_segment() {
                break if self.sender.unsent() == 0 { NO_DATA } else { Plain::Unclear };
            }
            if left == 0 {
                match self.plain_lump(now) {
                    Plain::Leaves(segments) => left = segments,
                    held => break held,
                }
            }
        };
        let sent = self.sender.outstanding_segments() - first;
        self.counters.data_packets += sent;
        if self.selective.enabled {
            self.selective.prr.on_sent(sent);
        }
        next
    }

    /// What may leave next, where that is plain to see.
    fn plain_lump(&mut self, now: Instant) -> Plain {
        if self.sender.unsent() == 0 {
            return NO_DATA;
        }
        if !self.sender.has_full_segment() {
            return Plain::Unclear;
        }
        let (room, cwnd) = self.room_in_cwnd();
        if room == 0 {
            let is_final = self.selective.enabled || !self.config.limited_transmit;
            return if is_final { Plain::Held { cwnd_limited: true } } else { Plain::Unclear };
        }
        if !self.pacing.in_bursts() {
            return Plain::Leaves(1);
        }
        match self.lump_within(room, cwnd, false, now) {
            Lump::Leaves(segments) => {
                self.pacing.begin(segments, false, now);
                Plain::Leaves(segments)
            }
            Lump::Waits { cwnd_limited } => Plain::Held { cwnd_limited },
        }
    }
}

impl Sender {
    /// Whether all that is in flight is there once, with nothing known of it that has to leave before new data.
    #[inline]
    fn sends_plainly(&self) -> bool {
        self.is_waiting()
            && self.next == self.segments.len()
            && self.board.is_clean()
            && !self.board.hold_lost
            && !self.is_closing()
    }

    /// Whether a full segment of new data was written and the far end's window takes it.
    #[inline]
    const fn has_full_segment(&self) -> bool {
        let full = self.full_payload() as u64;
        self.unsent() >= full && self.window.edge().saturating_sub(self.snd_max) >= full
    }

    /// [`Self::send_new`] of a full segment.
    #[inline]
    fn send_plainly(&mut self, follows: bool, now: Instant) {
        let end = self.snd_max + u64::from(self.full_payload());
        let (pushed, marks) = (u64::from(self.full_payload()) == self.unsent(), Marks::default());
        let payload = self.full_payload();
        let segment = SentSegment { end, sent_at: now, payload, fin: false, follows, pushed, marks };
        self.segments.push_back(segment);
        self.lumps += u64::from(!follows);
        self.snd_max = end;
        self.next = self.segments.len();
        self.last_sent = now;
    }

    /// The first and the last of the segments that `ack` acknowledges, and how many they are, where it does so to the last
    /// byte and everything in flight up to the one behind them was sent once, and in order.
    #[inline]
    fn plain_run(&self, ack: u64) -> Option<(SentSegment, SentSegment, u64)> {
        let is_calm = self.next == self.segments.len()
            && self.board.is_clean()
            && !self.board.hold_lost
            && self.board.highest <= self.snd_una;
        if !is_calm {
            return None;
        }
        let mut count = 0;
        while let Some(segment) = self.segments.get(count) {
            if !segment.marks.is_clean() {
                return None;
            }
            if segment.end > ack {
                break;
            }
            count += 1;
        }
        let last = self.segments.get(count.checked_sub(1)?).filter(|last| last.end == ack)?;
        Some((*self.segments.front()?, *last, count as u64))
    }

    /// Everything before `ack`, the `segments` of a [`Self::plain_run`], has arrived; returns how many bytes that was.
    #[inline]
    fn acknowledge_plainly(&mut self, ack: u64, segments: u64) -> u64 {
        for _ in 0..segments {
            let follows = self.segments.pop_front().is_some_and(|segment| segment.follows);
            self.lumps -= u64::from(!follows);
        }
        self.next = self.segments.len();
        self.board.popped += segments;
        let bytes = ack - self.snd_una;
        self.snd_una = ack;
        self.board.forget_resent(ack);
        bytes
    }
}

/// What full segments of new data may do.
#[derive(Clone, Copy)]
enum Plain {
    /// So many leave together.
    Leaves(u32),
    /// None does before the next input.
    Held { cwnd_limited: bool },
    /// It takes a longer look.
    Unclear,
}

/// All that was written has left.
const NO_DATA: Plain = Plain::Held { cwnd_limited: false };

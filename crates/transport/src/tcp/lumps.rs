//! Full segments of new data that the windows let go, one behind the other: what nearly all leaving data is.
//!
//! It does what [`Tcp::next_transmit`] would do for each of them (tcp_write_xmit in Linux, whose loop asks the same before each
//! segment), with what is the same for all of them found once: their header but for its sequence number, the timer that the first one
//! starts. In a repair too, as long as nothing of what is lost has to leave first. Whatever is not certain to be such a segment, or to
//! be held by `cwnd`, is left to `output`.

use core::hint::black_box;

use talkpath_units::Instant;

use super::connection::{State, Tcp};
use super::offload::Lump;
use super::scoreboard::Marks;
use super::send::{Held, Next, Sender, SentSegment};
use super::timer::TimerKind;
use super::usage::Sent;
use crate::{Ecn, Flags, Outlet, Packet, PayloadRange, Segment, Transmit};

impl Tcp {
    /// Sends as many full segments of new data as may leave one after the other, if nothing has to leave before them.
    #[inline(always)]
    pub(super) fn transmit_plainly(&mut self, now: Instant, out: &mut impl Outlet) {
        debug_assert!(!self.is_plain || self.find_plain(), "something has to leave first");
        if self.acks.leads() || !(self.is_plain || self.may_send_plainly()) {
            return;
        }
        self.sender.leave_room(0);
        let is_plain = self.is_plain || self.sender.sends_plainly();
        let next = if is_plain { self.send_lumps(now, out) } else { self.plain_repair() };
        if let Plain::Held { cwnd_limited } = next
            && !self.acks.is_pending()
        {
            self.pacing.end_burst();
            self.drain(cwnd_limited, Held::NoData, now);
            self.fall_quiet();
        }
    }

    /// Whether nothing that goes another way than new data has to leave before it.
    #[inline(never)]
    pub(super) fn may_send_plainly(&self) -> bool {
        let asked = self.resend_first | self.probe_due | self.selective.probe.due | self.control.is_some();
        let is_special = asked | !self.repairs.is_empty() | self.pacing.is_enabled() | self.config.steers;
        !is_special && self.state == State::Established && self.receiver.report.option_size() == 0
    }

    /// What waits to be sent again: where `cwnd` has no room, nothing leaves.
    #[inline]
    fn plain_repair(&self) -> Plain {
        let is_held = self.selective.enabled
            && self.sender.board.has_work()
            && self.sender.flight_segments() > 0
            && !self.has_room();
        if is_held { Plain::Held { cwnd_limited: true } } else { Plain::Unclear }
    }

    /// Sends lumps of full segments as long as they may leave; returns why no more do.
    #[inline(always)]
    fn send_lumps(&mut self, now: Instant, out: &mut impl Outlet) -> Plain {
        let mut left = match self.plain_lump(now) {
            Plain::Leaves(segments) => segments,
            held => return held,
        };
        let (mut segment, wire_size) = self.first_header(now);
        let first = self.sender.outstanding_segments();
        (self.sender.last_sent, self.sender.lumps) = (now, self.sender.lumps + 1);
        let mut follows = false;
        let next = loop {
            // Each turn finds its fields anew: kept from turn to turn, their addresses take longer to store than to find.
            let tcp = black_box(&mut *self);
            let start = tcp.sender.snd_max();
            if tcp.sender.send_plainly(follows, now) {
                segment.flags = Flags::ACK.with(Flags::PSH);
            }
            segment.seq = tcp.iss.wrapping_add(start as u32);
            // The SYN took offset 0.
            let payload = PayloadRange::Stream { start: start - 1, end: tcp.sender.snd_max() - 1 };
            out.take(Transmit {
                packet: Packet::Tcp(segment),
                ecn: Ecn::NotEct,
                payload: Some(payload),
                retransmission: false,
                wire_size,
            });
            left -= 1;
            follows = left > 0;
            if !follows {
                match tcp.plain_lump(now) {
                    Plain::Leaves(segments) => {
                        left = segments;
                        tcp.sender.lumps += 1;
                    }
                    held => break held,
                }
            } else if !tcp.sender.has_full_segment() {
                break tcp.sender.no_full_segment();
            }
        };
        self.pacing.leave(left);
        let sent = self.sender.outstanding_segments() - first;
        self.counters.data_packets += sent;
        if self.selective.enabled {
            self.selective.prr.on_sent(sent);
        }
        next
    }

    /// The header of the first full segment that leaves, and its size on the wire; what leaves behind it has the same but for its
    /// number.
    #[inline(always)]
    fn first_header(&mut self, now: Instant) -> (Segment, u32) {
        let payload = self.sender.smss();
        let segment = self.segment_here((self.sender.snd_max(), payload), Flags::ACK, false, now);
        self.acks.on_data_sent(now);
        self.sent_since_drained = Sent::New;
        if !self.timers.is_running(TimerKind::Retransmit) {
            self.timers.set(TimerKind::Retransmit, self.rtt.deadline(now));
        }
        (segment, segment.wire_size())
    }

    /// What may leave next, where that is plain to see.
    #[inline(always)]
    fn plain_lump(&mut self, now: Instant) -> Plain {
        if !self.sender.has_full_segment() {
            return self.sender.no_full_segment();
        }
        if !self.has_room() {
            let is_final = self.selective.enabled
                || !self.config.limited_transmit
                || self.recovery.limited_transmit() == 0;
            return if is_final { Plain::Held { cwnd_limited: true } } else { Plain::Unclear };
        }
        if !self.pacing.in_bursts() {
            return Plain::Leaves(1);
        }
        let (room, cwnd) = self.room_in_cwnd();
        match self.lump_here(room, cwnd, false, now) {
            Lump::Leaves(segments) => {
                self.pacing.begin(segments, false, now);
                Plain::Leaves(segments)
            }
            Lump::Waits { cwnd_limited } => Plain::Held { cwnd_limited },
        }
    }
}

impl Sender {
    /// Whether nothing in flight has to leave again before new data.
    #[inline]
    pub(super) fn sends_plainly(&self) -> bool {
        self.next == self.segments.len() && !self.board.waits() && !self.is_closing()
    }

    /// Whether a full segment of new data was written and the far end's window takes it.
    #[inline]
    fn has_full_segment(&self) -> bool {
        let full = u64::from(self.full_payload());
        self.unsent() >= full && self.window.edge().saturating_sub(self.snd_max) >= full
    }

    /// Why not [`Self::has_full_segment`]: of too little data Nagle's algorithm has its say, as the persist timer has of a window that
    /// closed with nothing in flight. A window in which there is no room for a segment is not filled by halves (RFC 9293 §3.8.6.2.1).
    #[inline]
    fn no_full_segment(&self) -> Plain {
        let (unsent, usable) = (self.unsent(), self.usable());
        let is_far_end =
            unsent >= u64::from(self.full_payload()) && usable < (self.window.largest() / 2).max(1);
        if unsent > 0 && !is_far_end {
            return Plain::Unclear;
        }
        debug_assert!(matches!(self.plan(), Next::Nothing(_)), "the longer way sends something");
        Plain::Held { cwnd_limited: false }
    }

    /// [`Self::send_new`] of a full segment; returns whether it is the last that was written. Lumps and the time of the latest segment
    /// are the caller's, who knows them once for several.
    #[inline(always)]
    fn send_plainly(&mut self, follows: bool, now: Instant) -> bool {
        let (payload, marks) = (self.full_payload(), Marks::default());
        let end = self.snd_max + u64::from(payload);
        self.unsent -= u64::from(payload);
        let pushed = self.unsent == 0;
        let segment = SentSegment { end, sent_at: now, payload, fin: false, follows, pushed, marks };
        self.next = self.segments.len() + 1;
        self.segments.push_back(segment);
        self.snd_max = end;
        pushed
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

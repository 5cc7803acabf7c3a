//! The send side: what was written, what is in flight, and which segment may leave next.
//!
//! ```text
//!        snd_una          snd_nxt            snd_max              written
//!   acked   │ in the network │ taken for lost   │ never sent          │ FIN
//! ──────────┴────────────────┴──────────────────┴─────────────────────┴───►
//!             segments[..next]  segments[next..]
//! ```
//!
//! Offsets count the SYN as 0. Unsent bytes have no boundaries, so that small writes coalesce as they do in Linux's
//! unsent tail; sent ones keep theirs, and are sent again as they were. After a timeout everything in flight is
//! taken for lost and sent again in order (go-back-N): `next` returns to the first segment.

use core::mem::offset_of;
use std::collections::VecDeque;

use talkpath_units::Instant;

use super::buffer::Queue;
use super::nagle::Nagle;
use super::scoreboard::{Marks, Scoreboard};
use super::window::SendWindow;
use crate::NagleKind;

/// A segment that was sent and is not acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentSegment {
    /// One past its last offset, its FIN included.
    pub(crate) end: u64,
    /// When it was last sent.
    pub(crate) sent_at: Instant,
    pub(crate) payload: u32,
    pub(crate) fin: bool,
    /// It left together with the one before it.
    pub(crate) follows: bool,
    /// Whether it ended what was written when it was first sent: its PSH, which it keeps when it is sent again.
    pub(crate) pushed: bool,
    pub(crate) marks: Marks,
}

impl SentSegment {
    pub(crate) const fn start(&self) -> u64 {
        self.end - self.size()
    }

    /// Offsets that it takes.
    pub(crate) const fn size(&self) -> u64 {
        self.payload as u64 + self.fin as u64
    }

    /// Whether it was sent more than once.
    pub(crate) const fn is_again(&self) -> bool {
        self.marks.has(Marks::EVER_AGAIN)
    }
}

/// What may leave next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The segment at `next`, again.
    Again,
    /// So many unsent bytes, and the FIN behind them.
    New { payload: u32, fin: bool },
    /// Nothing.
    Nothing(Held),
}

/// Why nothing leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// All that was written was sent.
    NoData,
    /// The far end's window, or sender silly window avoidance (RFC 9293 §3.8.6.2.1).
    Receiver,
    /// Nagle's algorithm.
    Nagle,
}

/// What an acknowledgement of new data took from the flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) bytes: u64,
    /// Whole segments.
    pub(crate) segments: u64,
    /// When the first of them was sent, unless one of them was sent again.
    pub(crate) sample_from: Option<Instant>,
}

/// The send side of one end.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Sender {
    pub(super) snd_una: u64,
    /// One past the highest offset ever sent.
    pub(super) snd_max: u64,
    /// One past the last byte written.
    written: u64,
    /// Bytes written and never sent, which follow from `written` and `snd_max`.
    pub(super) unsent: u64,
    /// Payload of a full segment, and of one that carries SACK blocks now.
    smss: u32,
    full: u32,
    fin_queued: bool,
    fin_sent: bool,
    pub(super) segments: VecDeque<SentSegment>,
    pub(crate) window: SendWindow,
    pub(super) next: usize,
    /// Of the segments, those that did not follow another one at once.
    pub(super) lumps: u64,
    /// When data was last sent.
    pub(super) last_sent: Instant,
    pub(super) board: Scoreboard,
    nagle: Nagle,
}

impl Sender {
    /// So many bytes from the beginning on an end looks at that only receives.
    pub(super) const AT_RECEIVING: usize = offset_of!(Self, next);
    /// So many from the beginning on plain acknowledgements and plain sending look at; those behind only a repair does.
    pub(super) const AT_PLAIN_SENDING: usize = offset_of!(Self, board) + Scoreboard::AT_PLAIN_SENDING;

    pub(crate) fn new(nagle: NagleKind) -> Self {
        Self {
            snd_una: 0,
            snd_max: 0,
            written: 1,
            unsent: 0,
            segments: VecDeque::new(),
            next: 0,
            lumps: 0,
            board: Scoreboard::default(),
            fin_queued: false,
            fin_sent: false,
            last_sent: Instant::ZERO,
            window: SendWindow::default(),
            nagle: Nagle::new(nagle),
            smss: 1,
            full: 1,
        }
    }

    /// The SYN has left.
    pub(crate) const fn on_syn_sent(&mut self) {
        self.snd_max = 1;
    }

    /// The SYN was acknowledged; full segments carry `smss` bytes.
    pub(crate) fn on_established(&mut self, smss: u32) {
        self.snd_una = 1;
        self.smss = smss.max(1);
        self.full = self.smss;
    }

    /// New segments leave room for `options` bytes more than timestamps.
    #[inline]
    pub(crate) fn leave_room(&mut self, options: u32) {
        self.full = self.smss.saturating_sub(options).max(1);
    }

    pub(crate) const fn snd_una(&self) -> u64 {
        self.snd_una
    }

    pub(crate) const fn snd_max(&self) -> u64 {
        self.snd_max
    }

    /// Where in memory the first segment in flight is, and where the next one goes.
    pub(crate) fn places(&self) -> [*const u8; 2] {
        let place = |segment: Option<&SentSegment>| segment.map_or(core::ptr::null(), core::ptr::from_ref);
        [place(self.segments.front()).cast(), place(self.segments.back()).wrapping_add(1).cast()]
    }

    /// When the first segment in flight was last sent.
    pub(crate) fn first_sent_at(&self) -> Option<Instant> {
        self.segments.front().map(|segment| segment.sent_at)
    }

    /// Whether the first segment in flight was sent more than once.
    pub(crate) fn first_is_again(&self) -> bool {
        self.segments.front().is_some_and(SentSegment::is_again)
    }

    /// Bytes sent and not acknowledged, whatever became of them (FlightSize).
    pub(crate) const fn outstanding_bytes(&self) -> u64 {
        self.snd_max - self.snd_una
    }

    /// Segments sent and not acknowledged, whatever became of them (packets_out).
    pub(crate) fn outstanding_segments(&self) -> u64 {
        self.segments.len() as u64
    }

    /// The far end's window (SND.WND), in full segments.
    pub(crate) fn offered_packets(&self) -> f64 {
        // Smaller than 2^63, which converts in one step.
        self.offered_bytes().cast_signed() as f64 / f64::from(self.smss)
    }

    /// The far end's window (SND.WND).
    pub(crate) const fn offered_bytes(&self) -> u64 {
        self.window.edge().saturating_sub(self.snd_una)
    }

    /// Whether there is new data and the far end's window has room for some.
    pub(crate) fn can_send_new(&self) -> bool {
        self.unsent() > 0 && self.window.edge() > self.snd_max
    }

    pub(crate) const fn smss(&self) -> u32 {
        self.smss
    }

    /// Payload of a full segment as it would leave now, beside SACK blocks.
    pub(crate) const fn full_payload(&self) -> u32 {
        self.full
    }

    /// Bytes beyond all that was ever sent that the far end's window takes.
    pub(crate) const fn usable(&self) -> u64 {
        self.window.edge().saturating_sub(self.snd_max)
    }

    /// One past the last offset that is taken to be in the network.
    #[inline]
    pub(crate) fn snd_nxt(&self) -> u64 {
        self.segments.get(self.next).map_or(self.snd_max, SentSegment::start)
    }

    /// Bytes in the network.
    #[inline(always)]
    pub(crate) fn flight_bytes(&self) -> u64 {
        let board = &self.board;
        self.snd_nxt() - self.snd_una + board.again.bytes - board.sacked.bytes - board.lost.bytes
    }

    /// Segments in the network.
    pub(crate) const fn flight_segments(&self) -> u64 {
        let board = &self.board;
        self.next as u64 + board.again.segments - board.sacked.segments - board.lost.segments
    }

    /// Whether anything is unacknowledged, in the network or taken for lost.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.segments.is_empty()
    }

    /// Whether all that was written, and the FIN, was sent and acknowledged.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        !self.is_waiting() && self.unsent() == 0 && self.fin_queued == self.fin_sent && !self.board.hold_lost
    }

    /// Bytes written and not acknowledged.
    pub(crate) fn queued(&self) -> u64 {
        // A FIN that was sent and acknowledged stands one above `written`.
        self.written.saturating_sub(self.snd_una.max(1))
    }

    /// What the send buffer is charged for.
    pub(crate) fn queue(&self) -> Queue {
        Queue {
            bytes: self.queued(),
            unsent: self.unsent(),
            lumps: self.lumps,
            smss: u64::from(self.smss),
            largest_window: self.window.largest(),
        }
    }

    /// Bytes written and never sent.
    #[inline]
    pub(crate) fn unsent(&self) -> u64 {
        debug_assert_eq!(self.unsent, self.written.saturating_sub(self.snd_max.max(1)), "bytes never sent");
        self.unsent
    }

    pub(crate) const fn is_closing(&self) -> bool {
        self.fin_queued
    }

    pub(crate) const fn fin_is_acked(&self) -> bool {
        self.fin_sent && self.snd_una == self.snd_max
    }

    pub(crate) const fn last_sent(&self) -> Instant {
        self.last_sent
    }

    pub(crate) const fn write(&mut self, bytes: u64) {
        self.written += bytes;
        self.unsent += bytes;
    }

    pub(crate) const fn queue_fin(&mut self) {
        self.fin_queued = true;
    }

    /// What flow control and Nagle's algorithm let leave next; congestion control has its say afterwards.
    pub(crate) fn plan(&self) -> Next {
        if self.next < self.segments.len() || self.board.has_work() {
            return Next::Again;
        }
        let unsent = self.unsent();
        let fin_due = self.fin_queued && !self.fin_sent;
        if unsent == 0 {
            return if fin_due { Next::New { payload: 0, fin: true } } else { Next::Nothing(Held::NoData) };
        }
        let full = u64::from(self.full);
        let usable = self.window.edge().saturating_sub(self.snd_max);
        let payload = unsent.min(full).min(usable);
        let is_tail = payload == unsent;
        if payload == full || (is_tail && fin_due) {
            return Next::New { payload: payload as u32, fin: is_tail && fin_due };
        }
        // New data in place of repairs goes whatever its size (tcp_xmit_recovery: TCP_NAGLE_OFF).
        if is_tail && !self.board.hold_lost && self.nagle.holds(self.snd_una, self.snd_max) {
            return Next::Nothing(Held::Nagle);
        }
        // RFC 9293 §3.8.6.2.1 (2) all that is queued fits, or (3) half of the largest window does.
        if is_tail || (payload > 0 && payload >= self.window.largest() / 2) {
            return Next::New { payload: payload as u32, fin: false };
        }
        Next::Nothing(Held::Receiver)
    }

    /// What the persist timer forces out: as much as the window takes, small or not (RFC 9293 §3.8.6.2.1 (4)).
    pub(crate) fn plan_forced(&self) -> Option<u32> {
        let usable = self.window.edge().saturating_sub(self.snd_max);
        let payload = self.unsent().min(u64::from(self.full)).min(usable);
        (payload > 0).then_some(payload as u32)
    }

    /// Sends `payload` new bytes, and the FIN where `fin`; it `follows` where it leaves in one lump with the last.
    pub(crate) fn send_new(&mut self, payload: u32, fin: bool, follows: bool, now: Instant) -> SentSegment {
        let end = self.snd_max + u64::from(payload) + u64::from(fin);
        let pushed = payload > 0 && u64::from(payload) == self.unsent();
        self.unsent -= u64::from(payload);
        let marks = Marks::default();
        let segment = SentSegment { end, sent_at: now, payload, fin, follows, pushed, marks };
        if payload > 0 && payload < self.full {
            self.nagle.on_small_sent(end);
        }
        self.snd_max = end;
        self.fin_sent |= fin;
        self.lumps += u64::from(!follows);
        self.segments.push_back(segment);
        self.next = self.segments.len();
        self.last_sent = now;
        segment
    }

    /// Sends the segment at `next` again and moves on.
    pub(crate) fn send_again(&mut self, now: Instant) -> Option<SentSegment> {
        if self.board.has_work() {
            return self.send_lost_again(now);
        }
        let segment = self.segments.get_mut(self.next)?;
        self.next += 1;
        segment.marks.set(Marks::EVER_AGAIN);
        segment.sent_at = now;
        self.last_sent = now;
        Some(*segment)
    }

    /// Sends the first unacknowledged segment again, in place.
    pub(crate) fn send_first_again(&mut self, now: Instant) -> Option<SentSegment> {
        let segment = self.segments.front_mut()?;
        segment.marks.set(Marks::EVER_AGAIN);
        segment.sent_at = now;
        self.next = self.next.max(1);
        self.last_sent = now;
        Some(*segment)
    }

    /// Takes everything in flight for lost.
    pub(crate) const fn go_back(&mut self) {
        self.next = 0;
    }

    /// Everything before `ack` has arrived.
    pub(crate) fn on_ack(&mut self, ack: u64) -> Acked {
        let mut acked = Acked { bytes: ack - self.snd_una, segments: 0, sample_from: None };
        let mut ambiguous = false;
        while let Some(segment) = self.segments.front()
            && segment.end <= ack
        {
            ambiguous |= segment.is_again();
            if acked.segments == 0 {
                acked.sample_from = Some(segment.sent_at);
            }
            acked.segments += 1;
            self.lumps -= u64::from(!segment.follows);
            self.segments.pop_front();
        }
        self.next = self.next.saturating_sub(acked.segments as usize);
        self.trim_front(ack);
        if ambiguous {
            acked.sample_from = None;
        }
        self.snd_una = ack;
        acked
    }

    /// A far end that took part of a segment: the rest is what is left to acknowledge.
    pub(super) fn trim_front(&mut self, ack: u64) {
        if let Some(segment) = self.segments.front_mut()
            && segment.start() < ack
        {
            let taken = ack - segment.start();
            self.board.on_trim(segment.marks, taken);
            segment.payload -= taken as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(nagle: NagleKind, window: u16) -> Sender {
        let mut sender = Sender::new(nagle);
        sender.on_syn_sent();
        sender.window.start(window, 0, 1, 0);
        sender.on_established(1000);
        sender
    }

    fn send_all(sender: &mut Sender) -> Vec<u32> {
        let mut sent = Vec::new();
        while let Next::New { payload, fin } = sender.plan() {
            sender.send_new(payload, fin, false, Instant::ZERO);
            sent.push(payload);
        }
        sent
    }

    #[test]
    fn small_writes_coalesce_while_they_wait() {
        let mut sender = sender(NagleKind::Minshall, 60_000);
        for _ in 0..9 {
            sender.write(160);
        }
        assert_eq!(send_all(&mut sender), [1000, 440]);
        sender.write(160);
        assert_eq!(sender.plan(), Next::Nothing(Held::Nagle));
        sender.on_ack(1441);
        assert_eq!(send_all(&mut sender), [160]);
    }

    /// RFC 9293 §3.8.6.2.1.
    #[test]
    fn a_small_window_waits_for_the_persist_timer() {
        let mut sender = sender(NagleKind::Off, 3000);
        sender.write(3400);
        assert_eq!(send_all(&mut sender), [1000, 1000, 1000]);
        sender.on_ack(3001);
        sender.window.update(300, 1, 3001);
        assert_eq!(sender.plan(), Next::Nothing(Held::Receiver));
        assert_eq!(sender.plan_forced(), Some(300));
        sender.window.update(400, 1, 3001);
        assert_eq!(sender.plan(), Next::New { payload: 400, fin: false });
    }

    #[test]
    fn after_a_timeout_segments_are_sent_again_as_they_were() {
        let mut sender = sender(NagleKind::Off, 60_000);
        sender.write(1300);
        assert_eq!(send_all(&mut sender), [1000, 300]);
        sender.go_back();
        assert_eq!((sender.plan(), sender.flight_bytes()), (Next::Again, 0));
        assert_eq!(sender.send_again(Instant::ZERO).unwrap().end, 1001);
        assert_eq!((sender.flight_bytes(), sender.flight_segments()), (1000, 1));
        let acked = sender.on_ack(1301);
        assert_eq!((acked.bytes, acked.segments, acked.sample_from), (1300, 2, None));
        assert_eq!((sender.plan(), sender.queued()), (Next::Nothing(Held::NoData), 0));
    }

    #[test]
    fn the_fin_rides_on_the_last_segment_or_alone() {
        let mut sender = sender(NagleKind::Classic, 60_000);
        sender.write(100);
        sender.queue_fin();
        assert_eq!(sender.plan(), Next::New { payload: 100, fin: true });
        sender.send_new(100, true, false, Instant::ZERO);
        assert_eq!(sender.plan(), Next::Nothing(Held::NoData));
        sender.on_ack(102);
        assert!(sender.fin_is_acked());
        assert_eq!((sender.queued(), sender.unsent()), (0, 0));
    }
}

//! The retransmission queue, with what is known of each segment in it (RFC 9293 §3.4, RFC 6675 §3).
//!
//! ```text
//!        snd_una                                      snd_max
//!   acked   │ in flight, sacked, lost or sent again      │ never sent
//! ──────────┴────────────────────────────────────────────┴────►
//!
//!   in flight = sent - sacked - lost + sent again        (RFC 6675 §4 `pipe`; tcp_packets_in_flight)
//! ```
//!
//! A segment is *sacked* if the far end has received it beyond a gap. It is *lost* if RACK or RFC 6675's rule
//! has marked it so. It is *sent again* if it was lost and its retransmission has left. Without SACK there
//! are no marks: after a timeout all segments are sent again in order (go-back-N), and `next` is the first
//! segment that has still to leave.
//!
//! Several fields are hints. A search starts at its hint and so skips the segments whose marks cannot have
//! changed since the last search. Which segments are marked as lost is decided in `scoreboard/lost`.
//!
//! | field | with SACK | without SACK |
//! | --- | --- | --- |
//! | `snd_una`, `snd_max`, `segments`, `bursts`, `last_sent`, `acked` | used | used |
//! | `next` | always the queue's length | lower after a timeout |
//! | `highest` | used | equals `snd_una` |
//! | `sacked`, `lost`, `resent`, `losses`, `retransmissions` and the hints | used | zero or empty |
//!
//! Left out: reneging (RFC 2018 §8). Our receiver keeps what it has reported.

mod lost;

use std::collections::VecDeque;

use talkpath_units::Instant;

use super::incoming_ack::IncomingAck;
use super::outcome::AckOutcome;
use super::sent_segment::{Marks, NewSegment, SentSegment, Transmission};
use super::tally::Tally;
use crate::tcp::offset_range::OffsetRange;

/// What an acknowledgement of new data removed from the queue, on a connection without SACK.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Acked {
    pub(in crate::tcp) bytes: u64,
    /// The number of whole segments.
    pub(in crate::tcp) segments: u64,
    /// When the first segment was sent. `None` if a segment was sent more than once (Karn's algorithm).
    pub(in crate::tcp) sample_from: Option<Instant>,
}

/// A run of whole segments at the front of the queue, each sent once, that were acknowledged together.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct PlainRun {
    pub(in crate::tcp) first_sent: Instant,
    pub(in crate::tcp) last_sent: Instant,
    pub(in crate::tcp) segments: u64,
    pub(in crate::tcp) bytes: u64,
}

/// The retransmission queue of one end.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Scoreboard {
    /// The first offset that is not acknowledged.
    snd_una: u64,
    /// The offset one past the last one ever sent.
    snd_max: u64,
    /// The segments that were sent and are not acknowledged, in the order of their offsets.
    segments: VecDeque<SentSegment>,
    /// The index of the first segment that go-back-N has still to send again. The queue's length if there is
    /// none.
    next: usize,
    /// The number of bursts in which the segments of the queue left.
    bursts: u64,
    /// When data was last sent.
    last_sent: Instant,
    /// The segments that have the mark [`Marks::SACKED`].
    sacked: Tally,
    /// The segments that have the mark [`Marks::LOST`], those of `resent` included.
    lost: Tally,
    /// The segments that have the mark [`Marks::RESENT`].
    resent: Tally,
    /// The offset one past the last one that was sacked or acknowledged.
    highest: u64,
    /// How often a segment was marked as lost since the connection began.
    losses: u64,
    /// The retransmissions in the order in which they left. An entry stays for a while after its
    /// retransmission was acknowledged, sacked or sent yet again.
    retransmissions: VecDeque<Transmission>,
    /// The number of segments that were acknowledged since the connection began. Segment `n` of the
    /// connection thus has the index `n - acked` in the queue. The three hints below are such numbers `n`.
    acked: u64,
    /// No segment before this one waits to be sent again.
    lost_hint: u64,
    /// Each segment before this one is sacked, lost, or was sent again.
    settled: u64,
    /// The segment after the one that was sacked last. Most SACK blocks grow by this segment.
    sack_hint: u64,
    /// The ranges of whole segments that the SACK blocks of the last acknowledgement covered. All segments in
    /// these ranges are marked already.
    covered: [OffsetRange; 3],
}

/// The contents of the queue.
impl Scoreboard {
    pub(in crate::tcp) const fn new() -> Self {
        Self {
            snd_una: 0,
            snd_max: 0,
            segments: VecDeque::new(),
            next: 0,
            bursts: 0,
            last_sent: Instant::ZERO,
            sacked: Tally { segments: 0, bytes: 0 },
            lost: Tally { segments: 0, bytes: 0 },
            resent: Tally { segments: 0, bytes: 0 },
            highest: 0,
            losses: 0,
            retransmissions: VecDeque::new(),
            acked: 0,
            lost_hint: 0,
            settled: 0,
            sack_hint: 0,
            covered: [OffsetRange::EMPTY; 3],
        }
    }

    #[inline]
    pub(in crate::tcp) const fn snd_una(&self) -> u64 {
        self.snd_una
    }

    /// The offset one past the last one ever sent.
    #[inline]
    pub(in crate::tcp) const fn snd_max(&self) -> u64 {
        self.snd_max
    }

    /// When data was last sent.
    pub(in crate::tcp) const fn last_sent(&self) -> Instant {
        self.last_sent
    }

    /// True if nothing is unacknowledged.
    #[inline]
    pub(in crate::tcp) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// When the first segment in the queue was last sent.
    #[inline]
    pub(in crate::tcp) fn first_sent_at(&self) -> Option<Instant> {
        self.segments.front().map(SentSegment::sent_at)
    }

    /// True if the first segment in the queue was sent more than once.
    #[inline]
    pub(in crate::tcp) fn first_was_retransmitted(&self) -> bool {
        self.segments.front().is_some_and(SentSegment::was_retransmitted)
    }

    /// The number of bytes that were sent and are not acknowledged, lost or not.
    pub(in crate::tcp) const fn outstanding_bytes(&self) -> u64 {
        self.snd_max - self.snd_una
    }

    /// The number of segments that were sent and are not acknowledged, lost or not (Linux: packets_out).
    #[inline]
    pub(in crate::tcp) fn outstanding_segments(&self) -> u64 {
        self.segments.len() as u64
    }

    /// The number of bytes in the network (RFC 6675's `pipe`).
    #[inline]
    pub(in crate::tcp) fn in_flight_bytes(&self) -> u64 {
        let snd_nxt = self.segments.get(self.next).map_or(self.snd_max, SentSegment::start);
        snd_nxt - self.snd_una + self.resent.bytes - self.sacked.bytes - self.lost.bytes
    }

    /// The number of segments in the network (Linux: tcp_packets_in_flight).
    #[inline]
    pub(in crate::tcp) const fn in_flight_segments(&self) -> u64 {
        self.next as u64 + self.resent.segments - self.sacked.segments - self.lost.segments
    }

    /// The number of bursts in which the segments of the queue left.
    #[inline]
    pub(in crate::tcp) const fn bursts(&self) -> u64 {
        self.bursts
    }

    /// True if a segment has to be sent again before new data.
    #[inline]
    pub(in crate::tcp) fn has_retransmission(&self) -> bool {
        self.next < self.segments.len() || self.lost.segments > self.resent.segments
    }

    /// True if no segment in the queue is sacked or lost.
    #[inline]
    pub(in crate::tcp) const fn has_no_marks(&self) -> bool {
        self.sacked.segments == 0 && self.lost.segments == 0
    }

    pub(super) const fn sacked_segments(&self) -> u64 {
        self.sacked.segments
    }

    pub(super) const fn lost_segments(&self) -> u64 {
        self.lost.segments
    }

    /// The number of lost segments whose retransmission is in flight.
    pub(super) const fn resent_segments(&self) -> u64 {
        self.resent.segments
    }

    /// How often a segment was marked as lost since the connection began.
    #[inline]
    pub(in crate::tcp) const fn losses(&self) -> u64 {
        self.losses
    }

    /// The offset one past the last one that was sacked or acknowledged.
    pub(super) const fn highest(&self) -> u64 {
        self.highest
    }
}

/// What happens when segments leave.
impl Scoreboard {
    /// Takes note that our SYN leaves. It takes offset 0.
    pub(in crate::tcp) const fn on_syn_sent(&mut self) {
        self.snd_max = 1;
    }

    /// Takes note that our SYN is acknowledged.
    pub(in crate::tcp) const fn on_established(&mut self) {
        self.snd_una = 1;
    }

    /// Adds a new segment, which has the PSH bit if `pushed` is true.
    #[inline]
    pub(in crate::tcp) fn send_new(&mut self, new: NewSegment, pushed: bool, now: Instant) -> SentSegment {
        let end = self.snd_max + u64::from(new.payload) + u64::from(new.fin);
        let segment = SentSegment::new(end, new, pushed, now);
        self.snd_max = end;
        self.bursts += u64::from(!new.in_burst);
        self.segments.push_back(segment);
        self.next = self.segments.len();
        self.last_sent = now;
        segment
    }

    /// Sends the next segment that has to be sent again. `None` if there is no such segment.
    pub(in crate::tcp) fn retransmit(&mut self, now: Instant) -> Option<SentSegment> {
        if self.next == self.segments.len() {
            return self.retransmit_lost(now);
        }
        self.next += 1;
        self.retransmit_at(self.next - 1, now)
    }

    /// Sends the first segment in the queue again. `None` if the queue is empty.
    pub(in crate::tcp) fn retransmit_first(&mut self, now: Instant) -> Option<SentSegment> {
        let segment = self.retransmit_at(0, now);
        self.next = self.next.max(usize::from(segment.is_some()));
        segment
    }

    /// Sends the first segment again that is lost and was not sent again since. `None` if there is none.
    pub(in crate::tcp) fn retransmit_lost(&mut self, now: Instant) -> Option<SentSegment> {
        let first = self.lost_hint.saturating_sub(self.acked) as usize;
        let waits = |segment: &SentSegment| segment.has(Marks::LOST) && !segment.has(Marks::RESENT);
        let index = (first..self.segments.len()).find(|&index| waits(&self.segments[index]))?;
        let segment = self.retransmit_at(index, now)?;
        self.segments[index].mark(Marks::RESENT);
        self.resent.add(&segment);
        self.retransmissions.push_back(segment.transmission());
        self.lost_hint = self.acked + index as u64 + 1;
        Some(segment)
    }

    /// Sends the last segment again, as a probe (RFC 8985 §7.3). It is not marked as lost.
    pub(in crate::tcp) fn retransmit_last(&mut self, now: Instant) -> Option<SentSegment> {
        let segment = self.retransmit_at(self.segments.len().checked_sub(1)?, now)?;
        self.retransmissions.push_back(segment.transmission());
        Some(segment)
    }

    fn retransmit_at(&mut self, index: usize, now: Instant) -> Option<SentSegment> {
        let segment = self.segments.get_mut(index)?;
        segment.send_again(now);
        self.last_sent = now;
        Some(*segment)
    }

    /// Has all segments in the queue sent again, in order (go-back-N).
    pub(in crate::tcp) const fn go_back(&mut self) {
        self.next = 0;
    }
}

/// What acknowledgements change.
impl Scoreboard {
    /// Removes everything before `ack`, on a connection without SACK.
    pub(in crate::tcp) fn on_ack(&mut self, ack: u64) -> Acked {
        let mut acked = Acked { bytes: ack - self.snd_una, segments: 0, sample_from: None };
        let mut is_ambiguous = false;
        while let Some(segment) = self.pop_acked(ack) {
            is_ambiguous |= segment.was_retransmitted();
            if acked.segments == 0 {
                acked.sample_from = Some(segment.sent_at());
            }
            acked.segments += 1;
        }
        self.finish_ack(ack, acked.segments);
        if is_ambiguous {
            acked.sample_from = None;
        }
        acked
    }

    /// Removes everything that is acknowledged, on a connection with SACK, and notes in `outcome` what was
    /// delivered.
    pub(super) fn on_ack_with_sack(&mut self, outcome: &mut AckOutcome) {
        let IncomingAck { ack, echo, .. } = outcome.incoming;
        let mut segments = 0;
        while let Some(mut segment) = self.pop_acked(ack) {
            segments += 1;
            self.clear_loss(&mut segment);
            outcome.on_acknowledged(segment.was_retransmitted());
            if segment.has(Marks::SACKED) {
                self.sacked.remove(&segment);
            } else {
                outcome.on_delivered(&segment, self.highest);
                outcome.note_arrival(&segment, echo);
                outcome.on_acked_in_order(&segment);
            }
        }
        self.finish_ack(ack, segments);
        self.forget_resent(ack);
    }

    /// Forgets the retransmissions before `ack`.
    #[inline]
    fn forget_resent(&mut self, ack: u64) {
        while self.retransmissions.front().is_some_and(|retransmission| retransmission.end <= ack) {
            self.retransmissions.pop_front();
        }
    }

    /// True if no segment is sacked or lost, and none waits to be sent again.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.next == self.segments.len() && self.has_no_marks() && self.highest <= self.snd_una
    }

    /// Removes the segments before `ack` from a queue that is plain ([`Self::is_plain`]). `None` if no
    /// segment ends at `ack`, or if any of these segments or the segment after them was sent more than once.
    #[inline]
    pub(in crate::tcp) fn take_plain_run(&mut self, ack: u64) -> Option<PlainRun> {
        let first = self.segments.front()?;
        let bytes = ack.saturating_sub(self.snd_una);
        let mut run =
            PlainRun { first_sent: first.sent_at(), last_sent: first.sent_at(), segments: 0, bytes };
        let (mut end, mut bursts) = (self.snd_una, 0);
        while let Some(segment) = self.segments.get(run.segments as usize) {
            if !segment.is_unmarked() {
                return None;
            }
            if segment.end() > ack {
                break;
            }
            (run.last_sent, end) = (segment.sent_at(), segment.end());
            run.segments += 1;
            bursts += u64::from(!segment.in_burst());
        }
        if run.segments == 0 || end != ack {
            return None;
        }
        self.segments.drain(..run.segments as usize);
        self.bursts -= bursts;
        self.finish_ack(ack, run.segments);
        self.forget_resent(ack);
        Some(run)
    }

    #[inline]
    fn pop_acked(&mut self, ack: u64) -> Option<SentSegment> {
        let segment = *self.segments.front()?;
        if segment.end() > ack {
            return None;
        }
        self.segments.pop_front();
        self.bursts -= u64::from(!segment.in_burst());
        Some(segment)
    }

    /// Moves SND.UNA to `ack`, after this number of `segments` was removed. If `ack` lies within the next
    /// segment, the acknowledged part of that segment is cut off.
    #[inline]
    fn finish_ack(&mut self, ack: u64, segments: u64) {
        self.next = self.next.saturating_sub(segments as usize);
        self.acked += segments;
        self.snd_una = ack;
        self.highest = self.highest.max(ack);
        if let Some(segment) = self.segments.front_mut()
            && segment.start() < ack
        {
            let taken = ack - segment.start();
            segment.trim(taken);
            for (mark, tally) in [
                (Marks::SACKED, &mut self.sacked),
                (Marks::LOST, &mut self.lost),
                (Marks::RESENT, &mut self.resent),
            ] {
                tally.bytes -= if segment.has(mark) { taken } else { 0 };
            }
        }
    }

    /// Marks the segments that the SACK `blocks` cover, and notes in `outcome` what was delivered. An empty
    /// block covers nothing.
    pub(super) fn on_sack(&mut self, blocks: [OffsetRange; 3], outcome: &mut AckOutcome) {
        self.covered = blocks.map(|block| self.take_block(block, outcome));
    }

    /// Marks the segments that `block` covers, and returns the range in which all segments are marked now.
    /// The part of the block that the last acknowledgement covered is not searched again.
    fn take_block(&mut self, block: OffsetRange, outcome: &mut AckOutcome) -> OffsetRange {
        if block.is_empty() || self.covered.contains(&block) {
            return block;
        }
        let mut covered = OffsetRange::new(block.start.max(self.snd_una), block.end.min(self.snd_max));
        let mut new = covered;
        for old in self.covered {
            if old.start <= new.start && new.start < old.end {
                new.start = old.end;
            }
            if old.start < new.end && new.end <= old.end {
                new.end = old.start;
            }
        }
        if !new.is_empty() {
            let marked = self.mark_sacked(new, outcome);
            // If an edge lies within a segment, that segment is not covered.
            if new.start == covered.start {
                covered.start = marked.start;
            }
            if new.end == covered.end {
                covered.end = marked.end;
            }
        }
        covered
    }

    /// Marks the whole segments in `range`. Returns the range from the first to the last of them. Its start
    /// is the end of `range`, and its end the start, if there is no whole segment.
    fn mark_sacked(&mut self, range: OffsetRange, outcome: &mut AckOutcome) -> OffsetRange {
        let mut marked = OffsetRange::new(range.end, range.start);
        let highest = self.highest;
        let hint = self.sack_hint.saturating_sub(self.acked) as usize;
        let mut index = match self.segments.get(hint) {
            Some(segment) if segment.start() == range.start => hint,
            _ => self.segments.partition_point(|segment| segment.start() < range.start),
        };
        while let Some(&segment) = self.segments.get(index)
            && segment.end() <= range.end
        {
            if !segment.has(Marks::SACKED) {
                outcome.on_delivered(&segment, highest);
                // The ACK of a segment beyond a gap echoes the timestamp of the segment before the gap (RFC
                // 7323 §4.3), so the echo says nothing about this segment (tcp_sacktag_one).
                outcome.note_arrival(&segment, None);
                outcome.on_sacked(&segment);
                let mut delivered = segment;
                self.clear_loss(&mut delivered);
                delivered.mark(Marks::SACKED);
                self.segments[index] = delivered;
                self.sacked.add(&segment);
                self.highest = self.highest.max(segment.end());
            }
            index += 1;
            self.sack_hint = self.acked + index as u64;
            marked = OffsetRange::new(marked.start.min(segment.start()), segment.end());
        }
        marked
    }

    /// Removes the marks of loss of a segment that was delivered.
    fn clear_loss(&mut self, segment: &mut SentSegment) {
        if segment.has(Marks::RESENT) {
            self.resent.remove(segment);
        }
        if segment.has(Marks::LOST) {
            self.lost.remove(segment);
        }
        segment.unmark(Marks::RESENT);
        segment.unmark(Marks::LOST);
    }
}

//! The sender's scoreboard: what is known of each segment in flight (RFC 6675 §3), kept as marks on the segments.
//!
//! ```text
//!   in flight = sent - sacked - lost + sent again        (RFC 6675 §4 `pipe`; tcp_packets_in_flight)
//! ```
//!
//! A segment is *sacked* where the far end has it beyond a gap, *lost* where it is taken for lost, *again* where it was lost
//! and its retransmission is under way. Which of them are lost is for [`super::rack`] or for RFC 6675's rule below to say.
//! Marks change once each on most paths through a loss, and the hints keep the walks to what is new.
//!
//! Left out: reneging (RFC 2018 §8); our receiver keeps what it has reported.

use core::mem::offset_of;
use std::collections::VecDeque;

use talkpath_units::{Duration, Instant};

use super::grown::Told;
use super::rack::Rack;
use super::send::{Sender, SentSegment};

/// What is known of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(u8);

/// Segments and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) segments: u64,
    pub(crate) bytes: u64,
}

/// Sums over the marks, and where to look next. Indices count from the connection's first segment.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(crate) struct Scoreboard {
    /// Lost segments wait until new data was tried (RFC 5682 §2.1 step 2b).
    pub(super) hold_lost: bool,
    pub(super) sacked: Tally,
    pub(super) lost: Tally,
    pub(super) again: Tally,
    /// One past the highest offset that was sacked.
    pub(super) highest: u64,
    /// Segments acknowledged so far: the index of the first one in flight.
    pub(super) popped: u64,
    /// Ends of what was sent again, and when, in that order; entries that no longer hold are passed over.
    pub(super) resent: VecDeque<(u64, Instant)>,
    /// Segments that were ever marked as lost.
    pub(super) losses: u64,
    /// No segment before this waits to be sent again.
    lost_hint: u64,
    /// Every segment before this is sacked, lost, or was sent again.
    pub(super) settled: u64,
    /// The last acknowledgement's blocks, which need no second look, and as they stood there.
    pub(super) seen: [(u64, u64); 3],
    pub(super) told: Told,
    /// The segment behind the one that was sacked last: most blocks grow there.
    pub(super) sack_hint: u64,
}

/// What one acknowledgement brought.
#[derive(Clone, Copy, Debug)]
pub(crate) struct News {
    pub(crate) now: Instant,
    /// The shortest round trip so far: a retransmission that seems faster was not needed.
    min_rtt: Duration,
    /// Where the current recovery ends.
    recover: u64,
    /// Acknowledged or sacked for the first time.
    pub(crate) delivered: Tally,
    pub(crate) sacked: bool,
    /// Segments sent once, before `recover`, have arrived.
    pub(crate) original: bool,
    /// Segments that were sent again were acknowledged.
    pub(crate) ambiguous: bool,
    /// When the first and the last of those acknowledged, and of those sacked, were sent; of segments sent once.
    pub(crate) acked_span: Option<(Instant, Instant)>,
    pub(crate) sacked_span: Option<(Instant, Instant)>,
    /// The most recently sent: when, and one past its last offset.
    pub(crate) newest: Option<(Instant, u64)>,
    /// The lowest offset, sent once, that arrived after a higher one.
    pub(crate) reordered: Option<u64>,
}

impl News {
    pub(crate) const fn new(now: Instant, min_rtt: Duration, recover: u64) -> Self {
        Self {
            now,
            min_rtt,
            recover,
            delivered: Tally { segments: 0, bytes: 0 },
            sacked: false,
            original: false,
            ambiguous: false,
            acked_span: None,
            sacked_span: None,
            newest: None,
            reordered: None,
        }
    }

    /// A segment has arrived, as this acknowledgement tells for the first time.
    fn on_delivered(&mut self, segment: &SentSegment, highest: u64) {
        self.delivered.add(segment);
        let again = segment.marks.has(Marks::EVER_AGAIN);
        if !again {
            self.original |= segment.end <= self.recover;
            if segment.start() < highest {
                self.reordered = Some(self.reordered.map_or(segment.start(), |low| low.min(segment.start())));
            }
        }
        // RFC 8985 §6.2 step 2: too soon for the retransmission, it was the original.
        if !(again && self.now.since(segment.sent_at) < self.min_rtt) {
            let candidate = (segment.sent_at, segment.end);
            self.newest = Some(self.newest.map_or(candidate, |newest| newest.max(candidate)));
        }
    }
}

/// Segments without a mark that were acknowledged together: the first and the last, and how many were before them.
struct Run {
    first: SentSegment,
    last: SentSegment,
    before: u64,
}

impl News {
    /// A run that ends before the segment number `end` has arrived: what [`News::on_delivered`] would say of each of them.
    fn on_run(&mut self, &Run { first, last, before }: &Run, end: u64, highest: u64) {
        self.delivered.segments += end - before;
        self.delivered.bytes += last.end - first.start();
        self.original |= first.end <= self.recover;
        if first.start() < highest {
            self.reordered = Some(self.reordered.map_or(first.start(), |low| low.min(first.start())));
        }
        // Sent in order, and once each.
        let candidate = (last.sent_at, last.end);
        self.newest = Some(self.newest.map_or(candidate, |newest| newest.max(candidate)));
        self.acked_span = Some((self.acked_span.map_or(first.sent_at, |(earlier, _)| earlier), last.sent_at));
    }
}

impl Tally {
    pub(super) const fn add(&mut self, segment: &SentSegment) {
        self.segments += 1;
        self.bytes += segment.size();
    }

    const fn remove(&mut self, segment: &SentSegment) {
        self.segments -= 1;
        self.bytes -= segment.size();
    }
}

impl Marks {
    /// The far end has it, beyond a gap.
    pub(crate) const SACKED: Self = Self(1);
    /// Taken for lost.
    pub(crate) const LOST: Self = Self(2);
    /// Lost, and its retransmission is under way.
    pub(crate) const AGAIN: Self = Self(4);
    /// Sent more than once: it yields no round-trip sample (Karn).
    pub(crate) const EVER_AGAIN: Self = Self(8);

    pub(crate) const fn has(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }

    pub(crate) const fn set(&mut self, mark: Self) {
        self.0 |= mark.0;
    }

    const fn clear(&mut self, mark: Self) {
        self.0 &= !mark.0;
    }

    pub(super) const fn is_clean(self) -> bool {
        self.0 == 0
    }
}

impl Scoreboard {
    /// So many bytes from the beginning on plain acknowledgements and plain sending look at.
    pub(super) const AT_PLAIN_SENDING: usize = offset_of!(Self, losses);

    /// Whether no segment in flight is sacked or lost.
    #[inline]
    pub(crate) const fn is_clean(&self) -> bool {
        self.sacked.segments | self.lost.segments == 0
    }

    /// Whether a lost segment waits to be sent again.
    #[inline]
    pub(crate) const fn has_work(&self) -> bool {
        self.lost.segments > self.again.segments && !self.hold_lost
    }

    /// Whether a lost segment has to leave again before new data, or would have to but for that new data is to be tried first.
    #[inline]
    pub(super) const fn waits(&self) -> bool {
        self.lost.segments > self.again.segments || self.hold_lost
    }

    fn mark_lost(&mut self, segment: &mut SentSegment, index: u64) {
        if segment.marks.has(Marks::LOST) {
            if !segment.marks.has(Marks::AGAIN) {
                return;
            }
            segment.marks.clear(Marks::AGAIN);
            self.again.remove(segment);
        } else {
            segment.marks.set(Marks::LOST);
            self.lost.add(segment);
        }
        self.losses += 1;
        self.lost_hint = self.lost_hint.min(index);
    }

    /// The far end took the first `bytes` of a segment that carries `marks`.
    pub(super) const fn on_trim(&mut self, marks: Marks, bytes: u64) {
        self.sacked.bytes -= if marks.has(Marks::SACKED) { bytes } else { 0 };
        self.lost.bytes -= if marks.has(Marks::LOST) { bytes } else { 0 };
        self.again.bytes -= if marks.has(Marks::AGAIN) { bytes } else { 0 };
    }

    /// Everything before `ack` has arrived.
    #[inline]
    pub(super) fn forget_resent(&mut self, ack: u64) {
        while let Some(&(end, _)) = self.resent.front()
            && end <= ack
        {
            self.resent.pop_front();
        }
        self.highest = self.highest.max(ack);
    }

    /// Takes a delivered segment's marks of loss away.
    fn clear_loss(&mut self, segment: &mut SentSegment) {
        if segment.marks.has(Marks::AGAIN) {
            self.again.remove(segment);
        }
        if segment.marks.has(Marks::LOST) {
            self.lost.remove(segment);
        }
        segment.marks.clear(Marks::AGAIN);
        segment.marks.clear(Marks::LOST);
    }
}

impl Sender {
    /// The far end has `blocks`, of which those up to the first empty one count.
    pub(crate) fn sack(&mut self, blocks: [(u64, u64); 3], news: &mut News) {
        for (left, right) in blocks {
            if left >= right || self.board.seen.contains(&(left, right)) {
                continue;
            }
            let (mut start, mut end) = (left.max(self.snd_una), right.min(self.snd_max));
            for (seen_left, seen_right) in self.board.seen {
                if seen_left <= start && start < seen_right {
                    start = seen_right;
                }
                if seen_left < end && end <= seen_right {
                    end = seen_left;
                }
            }
            if start < end {
                self.sack_new(start, end, news);
            }
        }
        self.board.seen = blocks;
    }

    /// Marks the whole segments in `start..end`.
    fn sack_new(&mut self, start: u64, end: u64, news: &mut News) {
        let highest = self.board.highest;
        let hint = self.board.sack_hint.saturating_sub(self.board.popped) as usize;
        let mut index = match self.segments.get(hint) {
            Some(segment) if segment.start() == start => hint,
            _ => self.segments.partition_point(|segment| segment.start() < start),
        };
        while let Some(segment) = self.segments.get_mut(index)
            && segment.end <= end
        {
            index += 1;
            self.board.sack_hint = self.board.popped + index as u64;
            if segment.marks.has(Marks::SACKED) {
                continue;
            }
            news.sacked = true;
            news.on_delivered(segment, highest);
            if !segment.marks.has(Marks::EVER_AGAIN) {
                news.sacked_span = Some(spanning(news.sacked_span, segment.sent_at));
            }
            self.board.clear_loss(segment);
            segment.marks.set(Marks::SACKED);
            self.board.sacked.add(segment);
            self.board.highest = self.board.highest.max(segment.end);
        }
    }

    /// Everything before `ack` has arrived.
    pub(crate) fn acknowledge(&mut self, ack: u64, news: &mut News) {
        let mut popped = 0;
        let mut plain: Option<Run> = None;
        while let Some(&segment) = self.segments.front()
            && segment.end <= ack
        {
            self.segments.pop_front();
            self.lumps -= u64::from(!segment.follows);
            popped += 1;
            if segment.marks.is_clean() {
                match &mut plain {
                    Some(run) => run.last = segment,
                    None => plain = Some(Run { first: segment, last: segment, before: popped - 1 }),
                }
            } else {
                if let Some(run) = plain.take() {
                    news.on_run(&run, popped - 1, self.board.highest);
                }
                self.acknowledge_marked(segment, news);
            }
        }
        if let Some(run) = plain {
            news.on_run(&run, popped, self.board.highest);
        }
        self.board.popped += popped;
        self.next = self.next.saturating_sub(popped as usize);
        self.snd_una = ack;
        self.trim_front(ack);
        self.board.forget_resent(ack);
    }

    fn acknowledge_marked(&mut self, mut segment: SentSegment, news: &mut News) {
        self.board.clear_loss(&mut segment);
        news.ambiguous |= segment.marks.has(Marks::EVER_AGAIN);
        if segment.marks.has(Marks::SACKED) {
            self.board.sacked.remove(&segment);
            return;
        }
        news.on_delivered(&segment, self.board.highest);
        if !segment.marks.has(Marks::EVER_AGAIN) {
            news.acked_span = Some(spanning(news.acked_span, segment.sent_at));
        }
    }

    /// Sends the first lost segment again.
    pub(crate) fn send_lost_again(&mut self, now: Instant) -> Option<SentSegment> {
        let mut index = self.board.lost_hint.saturating_sub(self.board.popped) as usize;
        while let Some(segment) = self.segments.get_mut(index) {
            index += 1;
            if segment.marks.has(Marks::LOST) && !segment.marks.has(Marks::AGAIN) {
                segment.marks.set(Marks::AGAIN);
                segment.marks.set(Marks::EVER_AGAIN);
                segment.sent_at = now;
                self.board.again.add(segment);
                self.board.resent.push_back((segment.end, now));
                self.board.lost_hint = self.board.popped + index as u64;
                self.last_sent = now;
                return Some(*segment);
            }
        }
        None
    }

    /// Sends the last segment again, as a probe (RFC 8985 §7.3): nothing says yet that it was lost.
    pub(crate) fn send_last_again(&mut self, now: Instant) -> Option<SentSegment> {
        let segment = self.segments.back_mut()?;
        segment.marks.set(Marks::EVER_AGAIN);
        segment.sent_at = now;
        self.board.resent.push_back((segment.end, now));
        self.last_sent = now;
        Some(*segment)
    }

    /// RFC 8985 §6.2 step 5: marks what was sent long enough before something that has arrived. Returns how long the
    /// next one still has.
    pub(crate) fn mark_by_time(&mut self, rack: &Rack, window: Duration, now: Instant) -> Option<Duration> {
        let mut wait = None;
        let mut index = self.board.settled.max(self.board.popped);
        // The first that still waits.
        let mut waiting = None;
        let settled = ((index - self.board.popped) as usize).min(self.segments.len());
        for segment in self.segments.range_mut(settled..) {
            if segment.marks.is_clean() {
                if !rack.is_after(segment) {
                    break;
                }
                match rack.remaining(segment, window, now) {
                    None => self.board.mark_lost(segment, index),
                    Some(left) => {
                        wait = wait.max(Some(left));
                        waiting = waiting.or(Some(index));
                    }
                }
            }
            index += 1;
        }
        self.board.settled = self.board.settled.max(waiting.unwrap_or(index));
        if self.board.resent.is_empty() {
            return wait;
        }
        self.mark_resent_by_time(rack, window, now).max(wait)
    }

    fn mark_resent_by_time(&mut self, rack: &Rack, window: Duration, now: Instant) -> Option<Duration> {
        let mut wait = None;
        let mut entry = 0;
        while let Some(&(end, sent_at)) = self.board.resent.get(entry) {
            if rack.is_before(sent_at) {
                // Nor has anything arrived that was sent after the entries behind it.
                break;
            }
            let index = self.segments.partition_point(|segment| segment.end < end);
            let holds = |segment: &&mut SentSegment| {
                let waits = segment.marks.has(Marks::AGAIN) || !segment.marks.has(Marks::LOST);
                segment.end == end && segment.sent_at == sent_at && waits && !segment.marks.has(Marks::SACKED)
            };
            let mut done = true;
            if let Some(segment) = self.segments.get_mut(index).filter(holds) {
                if !rack.is_after(segment) {
                    break;
                }
                match rack.remaining(segment, window, now) {
                    None => self.board.mark_lost(segment, self.board.popped + index as u64),
                    Some(left) => {
                        wait = wait.max(Some(left));
                        done = false;
                    }
                }
            }
            if done && entry == 0 {
                self.board.resent.pop_front();
            } else {
                entry += 1;
            }
        }
        wait
    }

    /// RFC 6675 §4 `IsLost`: marks each segment that has DupThresh sacked ranges above it, or more than
    /// DupThresh - 1 full segments of sacked bytes.
    pub(crate) fn mark_by_count(&mut self) {
        let (mut bytes, mut ranges, mut in_range) = (0, 0, false);
        let enough = u64::from(DUPLICATE_THRESHOLD - 1) * u64::from(self.smss());
        let top = self.segments.partition_point(|segment| segment.end <= self.board.highest);
        let mut below = top;
        while below > 0 && bytes <= enough && ranges < DUPLICATE_THRESHOLD {
            below -= 1;
            let segment = &self.segments[below];
            let sacked = segment.marks.has(Marks::SACKED);
            ranges += u32::from(sacked && !in_range);
            in_range = sacked;
            bytes += if sacked { segment.size() } else { 0 };
        }
        if bytes <= enough && ranges < DUPLICATE_THRESHOLD {
            return;
        }
        let first = self.board.settled.saturating_sub(self.board.popped) as usize;
        for index in first..below {
            let segment = &mut self.segments[index];
            if segment.marks.is_clean() {
                self.board.mark_lost(segment, self.board.popped + index as u64);
            }
        }
        self.board.settled = self.board.settled.max(self.board.popped + below as u64);
    }

    /// RFC 6675 §5 step 4.3: the third duplicate speaks of the first segment.
    pub(crate) fn mark_first_lost(&mut self) {
        if let Some(segment) = self.segments.front_mut().filter(|segment| segment.marks.is_clean()) {
            self.board.mark_lost(segment, self.board.popped);
        }
    }

    /// The timer fired: takes all that was not sacked for lost, but for what `rack` says was sent within the last round
    /// trip (RFC 8985 §8; tcp_timeout_mark_lost).
    pub(crate) fn mark_all_lost(&mut self, rack: Option<&Rack>, now: Instant) {
        for (index, segment) in self.segments.iter_mut().enumerate() {
            let recent = rack.is_some_and(|rack| rack.remaining(segment, Duration::ZERO, now).is_some());
            if !segment.marks.has(Marks::SACKED) && (index == 0 || !recent) {
                self.board.mark_lost(segment, self.board.popped + index as u64);
            }
        }
        self.board.lost_hint = self.board.popped;
        self.board.hold_lost = false;
    }

    /// The losses were none: what was not sent again yet is in flight as before.
    pub(crate) fn unmark_lost(&mut self) {
        for segment in &mut self.segments {
            segment.marks.clear(Marks::LOST);
            segment.marks.clear(Marks::AGAIN);
        }
        self.board.lost = Tally::default();
        self.board.again = Tally::default();
        self.board.settled = self.board.popped;
        self.board.hold_lost = false;
    }
}

/// The first time stays, the last one moves.
fn spanning(span: Option<(Instant, Instant)>, sent_at: Instant) -> (Instant, Instant) {
    (span.map_or(sent_at, |(first, _)| first), sent_at)
}

/// RFC 6675 §2: DupThresh.
pub(crate) const DUPLICATE_THRESHOLD: u32 = 3;

//! Which segments are marked as lost: by time (RFC 8985 §6.2 step 5), by count (RFC 6675 §4), and after a
//! timeout (RFC 8985 §8).
//!
//! A segment that is marked as lost waits to be sent again. If the retransmission is lost too, the segment is
//! marked a second time, and waits again.

use talkpath_units::{Duration, Instant};

use super::Scoreboard;
use crate::tcp::recovery::DUPLICATE_THRESHOLD;
use crate::tcp::recovery::rack::Rack;
use crate::tcp::recovery::sent_segment::{Marks, SentSegment};
use crate::tcp::recovery::tally::Tally;

impl Scoreboard {
    /// Marks the segment at `index` as lost. If it was marked before and its retransmission is in flight, the
    /// retransmission is lost.
    fn mark_lost(&mut self, index: usize) {
        let segment = &mut self.segments[index];
        if segment.has(Marks::LOST) {
            if !segment.has(Marks::RESENT) {
                return;
            }
            segment.unmark(Marks::RESENT);
            self.resent.remove(segment);
        } else {
            segment.mark(Marks::LOST);
            self.lost.add(segment);
        }
        self.losses += 1;
        self.lost_hint = self.lost_hint.min(self.acked + index as u64);
    }

    /// Marks the segments that are late (RFC 8985 §6.2 step 5). A segment is late if a segment sent after it
    /// has arrived, and a round trip and the reordering `window` have passed since the segment was sent.
    ///
    /// Returns the time after which all segments are late that were overtaken and are not late yet. `None` if
    /// there is no such segment. RFC 8985 sets one timer for that longest time.
    pub(in crate::tcp::recovery) fn mark_by_time(
        &mut self,
        rack: &Rack,
        window: Duration,
        now: Instant,
    ) -> Option<Duration> {
        let mut longest = None;
        let mut index = self.settled.saturating_sub(self.acked) as usize;
        let mut first_not_late = None;
        while let Some(segment) = self.segments.get(index) {
            if segment.is_unmarked() {
                if !rack.is_overtaken(segment) {
                    break;
                }
                let remaining = self.mark_if_late(index, rack, window, now);
                longest = longest.max(remaining);
                first_not_late = first_not_late.or(remaining.map(|_| index));
            }
            index += 1;
        }
        self.settled = self.settled.max(self.acked + first_not_late.unwrap_or(index) as u64);
        if self.retransmissions.is_empty() {
            return longest;
        }
        longest.max(self.mark_retransmissions_by_time(rack, window, now))
    }

    /// Does the same as [`Self::mark_by_time`] for the retransmissions in flight.
    ///
    /// `retransmissions` lists them in the order in which they left. An entry leaves the list once it is at
    /// the front and needs no further check: the retransmission is late, or was acknowledged, sacked or sent
    /// yet again.
    fn mark_retransmissions_by_time(
        &mut self,
        rack: &Rack,
        window: Duration,
        now: Instant,
    ) -> Option<Duration> {
        let mut longest = None;
        let mut entry = 0;
        while let Some(&retransmission) = self.retransmissions.get(entry) {
            if rack.all_arrivals_were_sent_before(retransmission.sent_at) {
                // The later entries were sent later, so nothing that was sent after them has arrived either.
                break;
            }
            let index = self.segments.partition_point(|segment| segment.end() < retransmission.end);
            let mut needs_check = false;
            if let Some(segment) = self.segments.get(index)
                && segment.is_in_flight(retransmission)
            {
                if !rack.is_overtaken(segment) {
                    break;
                }
                let remaining = self.mark_if_late(index, rack, window, now);
                longest = longest.max(remaining);
                needs_check = remaining.is_some();
            }
            if entry == 0 && !needs_check {
                self.retransmissions.pop_front();
            } else {
                entry += 1;
            }
        }
        longest
    }

    /// Marks the segment at `index` as lost if it is late. Otherwise returns the time until it is late.
    fn mark_if_late(
        &mut self,
        index: usize,
        rack: &Rack,
        window: Duration,
        now: Instant,
    ) -> Option<Duration> {
        let remaining = rack.time_until_late(&self.segments[index], window, now);
        if remaining.is_none() {
            self.mark_lost(index);
        }
        remaining
    }

    /// Marks the segments that are lost by RFC 6675 §4 `IsLost`. A segment is lost if one of these is above
    /// it:
    ///
    /// - DupThresh (3) separate sacked ranges,
    /// - more than DupThresh - 1 full segments of sacked bytes; a full segment carries `smss` bytes.
    ///
    /// The search runs down from the highest sacked segment, and ends at the first segment that has enough
    /// above it. All unmarked segments below that one are lost.
    pub(in crate::tcp::recovery) fn mark_by_count(&mut self, smss: u32) {
        let (mut sacked_bytes, mut ranges, mut in_range) = (0, 0, false);
        let enough_bytes = u64::from(DUPLICATE_THRESHOLD - 1) * u64::from(smss);
        let mut below = self.segments.partition_point(|segment| segment.end() <= self.highest);
        while below > 0 && sacked_bytes <= enough_bytes && ranges < DUPLICATE_THRESHOLD {
            below -= 1;
            let segment = &self.segments[below];
            let is_sacked = segment.has(Marks::SACKED);
            ranges += u32::from(is_sacked && !in_range);
            in_range = is_sacked;
            sacked_bytes += if is_sacked { segment.size() } else { 0 };
        }
        if sacked_bytes <= enough_bytes && ranges < DUPLICATE_THRESHOLD {
            return;
        }
        let first = self.settled.saturating_sub(self.acked) as usize;
        for index in first..below {
            if self.segments[index].is_unmarked() {
                self.mark_lost(index);
            }
        }
        self.settled = self.settled.max(self.acked + below as u64);
    }

    /// Marks the first segment: the third duplicate acknowledgement says that it is lost (RFC 6675 §5 step
    /// 4.3).
    pub(in crate::tcp::recovery) fn mark_first_lost(&mut self) {
        if self.segments.front().is_some_and(SentSegment::is_unmarked) {
            self.mark_lost(0);
        }
    }

    /// Marks all segments that are not sacked: the retransmission timer has expired. With RACK, the segments
    /// that were sent within the last round trip are left out, except the first (RFC 8985 §8; Linux:
    /// tcp_timeout_mark_lost).
    pub(in crate::tcp::recovery) fn mark_all_lost(&mut self, rack: Option<&Rack>, now: Instant) {
        for index in 0..self.segments.len() {
            let segment = &self.segments[index];
            let is_recent =
                rack.is_some_and(|rack| rack.time_until_late(segment, Duration::ZERO, now).is_some());
            if !segment.has(Marks::SACKED) && (index == 0 || !is_recent) {
                self.mark_lost(index);
            }
        }
        self.lost_hint = self.acked;
    }

    /// Removes all marks of loss, because the recovery was needless. The segments that still waited to be
    /// sent again count as in flight.
    pub(in crate::tcp::recovery) fn unmark_lost(&mut self) {
        for segment in &mut self.segments {
            segment.unmark(Marks::LOST);
            segment.unmark(Marks::RESENT);
        }
        self.lost = Tally::default();
        self.resent = Tally::default();
        self.settled = self.acked;
    }
}

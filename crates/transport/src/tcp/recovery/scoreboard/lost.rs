//! What is lost: by time (RFC 8985 §6.2 step 5), by count (RFC 6675 §4), and after a timeout.

use talkpath_units::{Duration, Instant};

use super::{Scoreboard, Tally};
use crate::tcp::recovery::DUPLICATE_THRESHOLD;
use crate::tcp::recovery::rack::Rack;
use crate::tcp::recovery::sent_segment::{Marks, SentSegment};

impl Scoreboard {
    fn mark_lost(&mut self, index: usize) {
        let segment = &mut self.segments[index];
        if segment.has(Marks::LOST) {
            if !segment.has(Marks::AGAIN) {
                return;
            }
            segment.unmark(Marks::AGAIN);
            self.again.remove(segment);
        } else {
            segment.mark(Marks::LOST);
            self.lost.add(segment);
        }
        self.losses += 1;
        self.lost_hint = self.lost_hint.min(self.acked + index as u64);
    }

    /// RFC 8985 §6.2 step 5: marks what was sent long enough before something that has arrived. Returns how
    /// long the next one still has.
    pub(in crate::tcp::recovery) fn mark_by_time(
        &mut self,
        rack: &Rack,
        window: Duration,
        now: Instant,
    ) -> Option<Duration> {
        let mut wait = None;
        let mut index = self.settled.saturating_sub(self.acked) as usize;
        // The first that is not late yet.
        let mut waiting = None;
        while let Some(segment) = self.segments.get(index) {
            if segment.is_unmarked() {
                if !rack.is_after(segment) {
                    break;
                }
                match rack.remaining(segment, window, now) {
                    None => self.mark_lost(index),
                    Some(left) => {
                        wait = wait.max(Some(left));
                        waiting = waiting.or(Some(index));
                    }
                }
            }
            index += 1;
        }
        self.settled = self.settled.max(self.acked + waiting.unwrap_or(index) as u64);
        if self.resent.is_empty() {
            return wait;
        }
        self.mark_resent_by_time(rack, window, now).max(wait)
    }

    /// The same for what was sent again.
    fn mark_resent_by_time(&mut self, rack: &Rack, window: Duration, now: Instant) -> Option<Duration> {
        let mut wait = None;
        let mut entry = 0;
        while let Some(&(end, sent_at)) = self.resent.get(entry) {
            if rack.is_before(sent_at) {
                // Nor has anything arrived that was sent after the entries behind it.
                break;
            }
            let index = self.segments.partition_point(|segment| segment.end() < end);
            let holds = |segment: &&SentSegment| {
                let waits = segment.has(Marks::AGAIN) || !segment.has(Marks::LOST);
                segment.end() == end && segment.sent_at() == sent_at && waits && !segment.has(Marks::SACKED)
            };
            let mut done = true;
            if let Some(segment) = self.segments.get(index).filter(holds) {
                if !rack.is_after(segment) {
                    break;
                }
                match rack.remaining(segment, window, now) {
                    None => self.mark_lost(index),
                    Some(left) => {
                        wait = wait.max(Some(left));
                        done = false;
                    }
                }
            }
            if done && entry == 0 {
                self.resent.pop_front();
            } else {
                entry += 1;
            }
        }
        wait
    }

    /// RFC 6675 §4 `IsLost`: marks each segment below DupThresh sacked ranges, or below more than DupThresh -
    /// 1 full segments of sacked bytes. Full segments carry `smss` bytes.
    pub(in crate::tcp::recovery) fn mark_by_count(&mut self, smss: u32) {
        let (mut bytes, mut ranges, mut in_range) = (0, 0, false);
        let enough = u64::from(DUPLICATE_THRESHOLD - 1) * u64::from(smss);
        let top = self.segments.partition_point(|segment| segment.end() <= self.highest);
        let mut below = top;
        while below > 0 && bytes <= enough && ranges < DUPLICATE_THRESHOLD {
            below -= 1;
            let segment = &self.segments[below];
            let sacked = segment.has(Marks::SACKED);
            ranges += u32::from(sacked && !in_range);
            in_range = sacked;
            bytes += if sacked { segment.size() } else { 0 };
        }
        if bytes <= enough && ranges < DUPLICATE_THRESHOLD {
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

    /// RFC 6675 §5 step 4.3: the third duplicate means that the first segment is lost.
    pub(in crate::tcp::recovery) fn mark_first_lost(&mut self) {
        if self.segments.front().is_some_and(SentSegment::is_unmarked) {
            self.mark_lost(0);
        }
    }

    /// The timer expired: everything that was not sacked is lost. With RACK, what was sent within the last
    /// round trip is not (RFC 8985 §8; tcp_timeout_mark_lost).
    pub(in crate::tcp::recovery) fn mark_all_lost(&mut self, rack: Option<&Rack>, now: Instant) {
        for index in 0..self.segments.len() {
            let segment = &self.segments[index];
            let recent = rack.is_some_and(|rack| rack.remaining(segment, Duration::ZERO, now).is_some());
            if !segment.has(Marks::SACKED) && (index == 0 || !recent) {
                self.mark_lost(index);
            }
        }
        self.lost_hint = self.acked;
    }

    /// The losses were none. What was not sent again yet is in flight as before.
    pub(in crate::tcp::recovery) fn unmark_lost(&mut self) {
        for segment in &mut self.segments {
            segment.unmark(Marks::LOST);
            segment.unmark(Marks::AGAIN);
        }
        self.lost = Tally::default();
        self.again = Tally::default();
        self.settled = self.acked;
    }
}

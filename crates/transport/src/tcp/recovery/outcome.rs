//! What one acknowledgement reports, on a connection with SACK. The scoreboard fills the [`AckOutcome`], and
//! recovery reads it.
//!
//! A segment is *delivered* when an acknowledgement first says that it has arrived: it is *acknowledged* if
//! it lies before the acknowledgement's number, and *sacked* if it lies in a SACK block.

use talkpath_units::{Duration, Instant};

use super::sent_segment::SentSegment;
use crate::tcp::timestamps;

/// What one acknowledgement reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckOutcome {
    now: Instant,
    /// The shortest round trip so far. If a retransmission seems to be faster, its original has arrived.
    min_rtt: Duration,
    /// The offset that ends the current recovery.
    recover: u64,
    delivered_segments: u64,
    delivered_bytes: u64,
    has_sacked: bool,
    has_original: bool,
    /// True if a segment was acknowledged that was sent more than once.
    has_retransmitted: bool,
    acked_span: Option<(Instant, Instant)>,
    sacked_span: Option<(Instant, Instant)>,
    newest: Option<(Instant, u64)>,
    /// The round trip of the segment that was noted last.
    last_rtt: Duration,
    reordered: Option<u64>,
}

impl AckOutcome {
    pub(super) const fn new(now: Instant, min_rtt: Duration, recover: u64) -> Self {
        Self {
            now,
            min_rtt,
            recover,
            delivered_segments: 0,
            delivered_bytes: 0,
            has_sacked: false,
            has_original: false,
            has_retransmitted: false,
            acked_span: None,
            sacked_span: None,
            newest: None,
            last_rtt: Duration::ZERO,
            reordered: None,
        }
    }

    /// Counts a delivered segment. The data that was delivered before ends at `highest`, so a segment that
    /// begins below it was overtaken.
    pub(super) fn on_delivered(&mut self, segment: &SentSegment, highest: u64) {
        self.delivered_segments += 1;
        self.delivered_bytes += segment.end() - segment.start();
        if !segment.was_retransmitted() {
            self.has_original |= segment.end() <= self.recover;
            if segment.start() < highest {
                self.reordered = Some(self.reordered.map_or(segment.start(), |low| low.min(segment.start())));
            }
        }
    }

    /// Notes when a delivered segment was sent, for RACK (RFC 8985 §6.2 step 2). A retransmission is left
    /// out if the original has arrived instead. Two signs show that: the round trip of the retransmission
    /// would be shorter than the shortest, or the acknowledgement echoes a timestamp (`echo`) from before
    /// the retransmission.
    pub(super) fn note_arrival(&mut self, segment: &SentSegment, echo: Option<u32>) {
        let rtt = self.now.since(segment.sent_at());
        let is_original = segment.was_retransmitted()
            && (rtt < self.min_rtt || echo.is_some_and(|echo| is_before(echo, segment.sent_at())));
        if !is_original {
            let candidate = (segment.sent_at(), segment.end());
            self.newest = Some(self.newest.map_or(candidate, |newest| newest.max(candidate)));
            self.last_rtt = rtt;
        }
    }

    /// Takes note of an acknowledged segment, whether it was sacked before or not.
    pub(super) const fn on_acknowledged(&mut self, was_retransmitted: bool) {
        self.has_retransmitted |= was_retransmitted;
    }

    /// Takes note of an acknowledged segment that was not sacked before.
    pub(super) fn on_acked_in_order(&mut self, segment: &SentSegment) {
        if !segment.was_retransmitted() {
            self.acked_span = Some(spanning(self.acked_span, segment.sent_at()));
        }
    }

    /// Takes note of a sacked segment.
    pub(super) fn on_sacked(&mut self, segment: &SentSegment) {
        self.has_sacked = true;
        if !segment.was_retransmitted() {
            self.sacked_span = Some(spanning(self.sacked_span, segment.sent_at()));
        }
    }

    pub(super) const fn now(&self) -> Instant {
        self.now
    }

    pub(super) const fn delivered_segments(&self) -> u64 {
        self.delivered_segments
    }

    pub(super) const fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// True if a segment was sacked.
    pub(super) const fn has_sacked(&self) -> bool {
        self.has_sacked
    }

    /// True if a segment was delivered that was sent once, and before the loss of this recovery was noticed.
    pub(super) const fn has_original(&self) -> bool {
        self.has_original
    }

    /// Returns when the first and the last of the acknowledged segments were sent. `None` if a segment was
    /// sent more than once, or if no segment was acknowledged.
    pub(super) fn acked_span(&self) -> Option<(Instant, Instant)> {
        self.acked_span.filter(|_| !self.has_retransmitted)
    }

    /// Returns when the first and the last of the sacked segments were sent. Segments that were sent more
    /// than once are left out. `None` if there is no other.
    pub(super) const fn sacked_span(&self) -> Option<(Instant, Instant)> {
        self.sacked_span
    }

    /// Returns the newest segment, which is the delivered one that was sent last, as the time at which it was
    /// sent and the offset at which it ends. The duration is the round trip of the segment that was noted
    /// last.
    pub(super) fn newest(&self) -> Option<((Instant, u64), Duration)> {
        self.newest.map(|newest| (newest, self.last_rtt))
    }

    /// Returns the offset at which the newest segment ends.
    pub(super) fn newest_end(&self) -> Option<u64> {
        self.newest.map(|(_, end)| end)
    }

    /// Returns where the lowest of the overtaken segments begins. Segments that were sent more than once do
    /// not count. `None` if no segment was overtaken.
    pub(super) const fn reordered(&self) -> Option<u64> {
        self.reordered
    }
}

/// True if the timestamp clock read `echo` before `sent_at`.
const fn is_before(echo: u32, sent_at: Instant) -> bool {
    (echo.wrapping_sub(timestamps::clock(sent_at)) as i32) < 0
}

/// Extends `span` to `sent_at`, which becomes its last time.
fn spanning(span: Option<(Instant, Instant)>, sent_at: Instant) -> (Instant, Instant) {
    (span.map_or(sent_at, |(first, _)| first), sent_at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::recovery::NewSegment;

    /// RFC 8985 §6.2 step 2: sent at 10 ms and again at 200 ms, acknowledged at 310 ms.
    #[test]
    fn an_echo_from_before_the_retransmission_says_that_the_original_arrived() {
        let mut segment = SentSegment::new(1001, NewSegment::forced(1000), false, Instant::from_millis(10));
        segment.send_again(Instant::from_millis(200));
        let rtt = |echo, min_rtt| {
            let mut outcome = AckOutcome::new(Instant::from_millis(310), Duration::from_millis(min_rtt), 0);
            outcome.note_arrival(&segment, echo);
            outcome.newest().map(|(_, rtt)| rtt)
        };
        assert_eq!(rtt(Some(10), 100), None);
        assert_eq!(rtt(Some(200), 100), Some(Duration::from_millis(110)));
        assert_eq!(rtt(None, 100), Some(Duration::from_millis(110)));
        assert_eq!(rtt(None, 111), None);
    }
}

//! What one acknowledgement brought, on a connection with SACK.

use talkpath_units::{Duration, Instant};

use super::sent_segment::SentSegment;
use crate::tcp::timestamps;

/// What one acknowledgement brought.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckOutcome {
    now: Instant,
    /// The shortest round trip so far: a retransmission that seems faster was not needed.
    min_rtt: Duration,
    /// Where the current recovery ends.
    recover: u64,
    delivered_segments: u64,
    delivered_bytes: u64,
    has_sacked: bool,
    has_original: bool,
    has_retransmitted: bool,
    acked_span: Option<(Instant, Instant)>,
    sacked_span: Option<(Instant, Instant)>,
    newest: Option<(Instant, u64)>,
    /// How long the last delivery took.
    latest: Duration,
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
            latest: Duration::ZERO,
            reordered: None,
        }
    }

    /// `segment` has arrived, and no acknowledgement said so before. Everything before `highest` may have
    /// arrived before it.
    pub(super) fn on_delivered(&mut self, segment: &SentSegment, highest: u64) {
        self.delivered_segments += 1;
        self.delivered_bytes += segment.end() - segment.start();
        let again = segment.was_retransmitted();
        if !again {
            self.has_original |= segment.end() <= self.recover;
            if segment.start() < highest {
                self.reordered = Some(self.reordered.map_or(segment.start(), |low| low.min(segment.start())));
            }
        }
    }

    /// RFC 8985 §6.2 step 2: a delivered `segment` advances RACK, unless its original has arrived and not the
    /// retransmission. That is so if it is too soon for the retransmission, or if `echo`, the timestamp that
    /// the acknowledgement echoes, is older than it.
    pub(super) fn note_arrival(&mut self, segment: &SentSegment, echo: Option<u32>) {
        let rtt = self.now.since(segment.sent_at());
        let is_original = segment.was_retransmitted()
            && (rtt < self.min_rtt || echo.is_some_and(|echo| is_before(echo, segment.sent_at())));
        if !is_original {
            let candidate = (segment.sent_at(), segment.end());
            self.newest = Some(self.newest.map_or(candidate, |newest| newest.max(candidate)));
            self.latest = rtt;
        }
    }

    /// A segment was acknowledged, sacked before or not.
    pub(super) const fn on_acknowledged(&mut self, was_retransmitted: bool) {
        self.has_retransmitted |= was_retransmitted;
    }

    /// A segment was acknowledged that was not sacked before.
    pub(super) fn on_acked_in_order(&mut self, segment: &SentSegment) {
        if !segment.was_retransmitted() {
            self.acked_span = Some(spanning(self.acked_span, segment.sent_at()));
        }
    }

    /// A segment was sacked.
    pub(super) fn on_sacked(&mut self, segment: &SentSegment) {
        self.has_sacked = true;
        if !segment.was_retransmitted() {
            self.sacked_span = Some(spanning(self.sacked_span, segment.sent_at()));
        }
    }

    pub(super) const fn now(&self) -> Instant {
        self.now
    }

    /// Segments acknowledged or sacked for the first time.
    pub(super) const fn delivered_segments(&self) -> u64 {
        self.delivered_segments
    }

    /// The same in bytes.
    pub(super) const fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// True if a segment was sacked.
    pub(super) const fn has_sacked(&self) -> bool {
        self.has_sacked
    }

    /// True if a segment has arrived that was sent once, before the current recovery's end.
    pub(super) const fn has_original(&self) -> bool {
        self.has_original
    }

    /// When the first and the last of the acknowledged segments were sent. `None` if one was sent more than
    /// once.
    pub(super) fn acked_span(&self) -> Option<(Instant, Instant)> {
        self.acked_span.filter(|_| !self.has_retransmitted)
    }

    /// When the first and the last of the sacked segments that were sent once were sent.
    pub(super) const fn sacked_span(&self) -> Option<(Instant, Instant)> {
        self.sacked_span
    }

    /// The most recently sent of what was delivered: when, and one past its last offset. The duration is the
    /// round trip of what was delivered last.
    pub(super) fn newest(&self) -> Option<((Instant, u64), Duration)> {
        self.newest.map(|newest| (newest, self.latest))
    }

    /// One past the last offset of the most recently sent segment that was delivered.
    pub(super) fn newest_end(&self) -> Option<u64> {
        self.newest.map(|(_, end)| end)
    }

    /// The lowest offset, sent once, that arrived after a higher one.
    pub(super) const fn reordered(&self) -> Option<u64> {
        self.reordered
    }
}

/// True if the timestamp clock showed `echo` before `sent_at`.
const fn is_before(echo: u32, sent_at: Instant) -> bool {
    (echo.wrapping_sub(timestamps::clock(sent_at)) as i32) < 0
}

/// The first time stays, the last one moves.
fn spanning(span: Option<(Instant, Instant)>, sent_at: Instant) -> (Instant, Instant) {
    (span.map_or(sent_at, |(first, _)| first), sent_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8985 §6.2 step 2: sent at 10 ms and again at 200 ms, acknowledged at 310 ms.
    #[test]
    fn an_echo_from_before_the_retransmission_says_that_the_original_arrived() {
        let mut segment = SentSegment::new(1001, 1000, false, false, false, Instant::from_millis(10));
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

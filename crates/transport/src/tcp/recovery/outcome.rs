//! What one acknowledgement brought, on a connection with SACK.

use talkpath_units::{Duration, Instant};

use super::sent_segment::SentSegment;

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
        // RFC 8985 §6.2 step 2: if it is too soon for the retransmission, it was the original.
        let rtt = self.now.since(segment.sent_at());
        if !(again && rtt < self.min_rtt) {
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

    /// When the first and the last of the acknowledged segments were sent. `None` if one of them was sent
    /// more than once.
    pub(super) fn acked_span(&self) -> Option<(Instant, Instant)> {
        self.acked_span.filter(|_| !self.has_retransmitted)
    }

    /// When the first and the last of the sacked segments were sent, of those that were sent once.
    pub(super) const fn sacked_span(&self) -> Option<(Instant, Instant)> {
        self.sacked_span
    }

    /// The most recently sent of what was delivered: when, and one past its last offset. The duration is the
    /// round trip of what was delivered last.
    pub(super) fn newest(&self) -> Option<((Instant, u64), Duration)> {
        self.newest.map(|newest| (newest, self.latest))
    }

    /// The lowest offset, sent once, that arrived after a higher one.
    pub(super) const fn reordered(&self) -> Option<u64> {
        self.reordered
    }
}

/// The first time stays, the last one moves.
fn spanning(span: Option<(Instant, Instant)>, sent_at: Instant) -> (Instant, Instant) {
    (span.map_or(sent_at, |(first, _)| first), sent_at)
}

//! What one acknowledgement reports, on a connection with SACK. The scoreboard fills the [`AckOutcome`], and
//! recovery reads it.
//!
//! A segment is *delivered* when an acknowledgement first says that it has arrived: it is *acknowledged* if
//! it lies before the acknowledgement's number, and *sacked* if it lies in a SACK block.

use talkpath_units::{Duration, Instant};

use super::incoming_ack::IncomingAck;
use super::sent_segment::{SentSegment, Transmission};
use super::tally::Tally;
use crate::tcp::timestamps;

/// An acknowledgement, and what it reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckOutcome {
    /// The acknowledgement. Its number is at least SND.UNA: an old one counts as one that does not move
    /// SND.UNA, because it may have new SACK blocks.
    pub(super) incoming: IncomingAck,
    /// True if the acknowledgement moves SND.UNA.
    pub(super) advanced: bool,
    pub(super) dsack: Dsack,
    /// The segments that were delivered.
    pub(super) delivered: Tally,
    /// True if a segment was sacked.
    pub(super) has_sacked: bool,
    /// True if a segment was delivered that was sent once, and before the loss of this recovery was noticed.
    pub(super) has_original: bool,
    /// Where the lowest of the overtaken segments begins. Segments that were sent more than once do not
    /// count. `None` if no segment was overtaken.
    pub(super) reordered: Option<u64>,
    /// When the sacked segments were sent. Segments that were sent more than once are left out. `None` if
    /// there is no other.
    pub(super) sacked_span: Option<SentSpan>,
    /// The newest of the delivered segments. `None` if there is none, or only spurious retransmissions.
    pub(super) newest: Option<Transmission>,
    /// The round trip of the segment that was noted last ([`Self::note_arrival`]).
    pub(super) last_rtt: Duration,
    now: Instant,
    /// The shortest round trip so far. If a retransmission seems to be faster, its original has arrived.
    min_rtt: Duration,
    /// The offset that ends the current recovery.
    recover: u64,
    /// True if a segment was acknowledged that was sent more than once.
    has_retransmitted: bool,
    acked_span: Option<SentSpan>,
}

/// Whether the first SACK block reports a segment that arrived twice (RFC 2883), and which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dsack {
    None,
    /// The segment that the unanswered loss probe repeated: it ends where the probe's data ends (RFC 8985
    /// §7.4.2; Linux: FLAG_DSACK_TLP).
    OfProbe,
    /// Any other segment.
    Other,
}

/// When the first and the last of several segments were sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentSpan {
    pub(super) first: Instant,
    pub(super) last: Instant,
}

impl SentSpan {
    /// Extends `span` by a segment that was sent at `sent_at`, later than the others.
    fn extend(span: &mut Option<Self>, sent_at: Instant) {
        span.get_or_insert(Self { first: sent_at, last: sent_at }).last = sent_at;
    }
}

impl AckOutcome {
    /// Begins the outcome of an acknowledgement that arrives `now`, when everything before `snd_una` was
    /// acknowledged.
    pub(super) fn new(
        incoming: IncomingAck,
        snd_una: u64,
        min_rtt: Duration,
        recover: u64,
        now: Instant,
    ) -> Self {
        Self {
            incoming: IncomingAck { ack: incoming.ack.max(snd_una), ..incoming },
            advanced: incoming.ack > snd_una,
            dsack: Dsack::None,
            delivered: Tally::default(),
            has_sacked: false,
            has_original: false,
            reordered: None,
            sacked_span: None,
            newest: None,
            last_rtt: Duration::ZERO,
            now,
            min_rtt,
            recover,
            has_retransmitted: false,
            acked_span: None,
        }
    }

    /// Counts a delivered segment. The data that was delivered before ends at `highest`, so a segment that
    /// begins below it was overtaken.
    pub(super) fn on_delivered(&mut self, segment: &SentSegment, highest: u64) {
        self.delivered.add(segment);
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
            self.newest = self.newest.max(Some(segment.transmission()));
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
            SentSpan::extend(&mut self.acked_span, segment.sent_at());
        }
    }

    /// Takes note of a sacked segment.
    pub(super) fn on_sacked(&mut self, segment: &SentSegment) {
        self.has_sacked = true;
        if !segment.was_retransmitted() {
            SentSpan::extend(&mut self.sacked_span, segment.sent_at());
        }
    }

    /// Returns when the acknowledged segments were sent that were not sacked before. `None` if a segment was
    /// sent more than once, or if no segment was acknowledged.
    pub(super) fn acked_span(&self) -> Option<SentSpan> {
        self.acked_span.filter(|_| !self.has_retransmitted)
    }

    /// True if the acknowledgement moved neither SND.UNA nor the window, and carries no data.
    pub(super) const fn is_bare_duplicate(&self) -> bool {
        !self.advanced && !self.incoming.is_window_update && !self.incoming.has_data
    }

    /// True if the acknowledgement may be a sign of loss or congestion: it is a duplicate, or reports SACK
    /// blocks or a congestion mark (Linux: tcp_ack_is_dubious).
    pub(super) fn is_dubious(&self) -> bool {
        let reports_sack = self.has_sacked || self.dsack != Dsack::None;
        self.is_bare_duplicate() || reports_sack || self.incoming.echoes_mark
    }
}

/// True if the timestamp clock read `echo` before `sent_at`.
const fn is_before(echo: u32, sent_at: Instant) -> bool {
    (echo.wrapping_sub(timestamps::clock(sent_at)) as i32) < 0
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
            let (min_rtt, now) = (Duration::from_millis(min_rtt), Instant::from_millis(310));
            let mut outcome = AckOutcome::new(IncomingAck::default(), 1, min_rtt, 0, now);
            outcome.note_arrival(&segment, echo);
            outcome.newest.map(|_| outcome.last_rtt)
        };
        assert_eq!(rtt(Some(10), 100), None);
        assert_eq!(rtt(Some(200), 100), Some(Duration::from_millis(110)));
        assert_eq!(rtt(None, 100), Some(Duration::from_millis(110)));
        assert_eq!(rtt(None, 111), None);
    }
}

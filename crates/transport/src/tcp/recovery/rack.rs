//! RACK: which segments are lost, found by time (RFC 8985 §6), with Linux's choices (tcp_recovery.c).
//!
//! A segment is lost if two conditions hold: a segment that was sent later has arrived, and a round trip plus
//! the reordering window has passed since the segment was sent.
//!
//! ```text
//!   reordering window = 0                          if reordering was never seen, and either three segments
//!                                                  are sacked or recovery has begun
//!                     = min(SRTT, q * min RTT / 4)  otherwise; q = 1 at first
//! ```
//!
//! `q` grows by one in each round trip in which the far end reports that it has received a segment twice (a
//! D-SACK). Such a report says that a retransmission was needless, so the window was too short. The `linux`
//! stack takes only a report that the window can have caused: reordering was seen before, and the segment is
//! not a loss probe, which the probe's own timer sends (Linux: tcp_dsack_seen, since 5.15).

use talkpath_units::{Duration, Instant};

use super::sent_segment::SentSegment;
use super::{Context, DUPLICATE_THRESHOLD, Recovery, RecoveryState};
use crate::tcp::timers::TimerKind;

/// The per-connection variables of RFC 8985 §5.2.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// The segment that was sent last among those that have arrived: when it was sent, and the offset at
    /// which it ends (RACK.xmit_ts, RACK.end_seq).
    newest: (Instant, u64),
    /// The round trip of the segment that has arrived last (RACK.rtt).
    rtt: Duration,
    /// True if losses have to be searched: a segment has arrived since the last search, or marks of loss were
    /// removed.
    search_requested: bool,
    /// The shortest round trip of the last minutes (RACK.min_RTT), and when it was measured.
    min_rtt: Option<(Duration, Instant)>,
    /// The largest distance in full segments by which one segment overtook another. Three as long as none
    /// did.
    reordering: u64,
    /// True once a segment overtook another.
    reordering_seen: bool,
    /// The factor `q` of the reordering window (RACK.reo_wnd_mult).
    quarters: u64,
    /// The number of recoveries until `quarters` falls back to one (RACK.reo_wnd_persist).
    persist: u32,
    /// The end of the round trip in which a needless retransmission was last reported: when this offset is
    /// acknowledged, a further report counts (RACK.dsack_round).
    round: Option<u64>,
}

impl Rack {
    pub(super) const fn new() -> Self {
        Self {
            newest: (Instant::ZERO, 0),
            rtt: Duration::ZERO,
            search_requested: false,
            min_rtt: None,
            reordering: DUPLICATE_THRESHOLD as u64,
            reordering_seen: false,
            quarters: 1,
            persist: 0,
            round: None,
        }
    }

    /// RACK.min_RTT. Zero before any sample.
    #[inline]
    pub(super) fn min_rtt(&self) -> Duration {
        self.min_rtt.map_or(Duration::ZERO, |(rtt, _)| rtt)
    }

    /// Takes a round-trip sample (RFC 8985 §6.2 step 1).
    #[inline]
    pub(super) fn on_rtt(&mut self, rtt: Duration, now: Instant) {
        let holds =
            self.min_rtt.is_some_and(|(shortest, at)| shortest < rtt && now.since(at) <= MIN_RTT_WINDOW);
        if !holds {
            self.min_rtt = Some((rtt, now));
        }
    }

    /// Takes note that segments have arrived (RFC 8985 §6.2 step 2). `newest` is the segment among them that
    /// was sent last: when it was sent, and the offset at which it ends. `rtt` is the round trip of the
    /// segment that was acknowledged last. As in Linux (tcp_rack_advance) that need not be the newest one.
    #[inline]
    pub(super) fn advance(&mut self, newest: (Instant, u64), rtt: Duration) {
        self.search_requested = true;
        self.rtt = rtt;
        self.newest = self.newest.max(newest);
    }

    /// True if segments have arrived, or marks of loss were removed, since the last call. Losses are searched
    /// only then.
    pub(super) const fn take_search_request(&mut self) -> bool {
        core::mem::replace(&mut self.search_requested, false)
    }

    /// Makes the next acknowledgement search for losses, because the marks of loss were removed.
    pub(super) const fn search_again(&mut self) {
        self.search_requested = true;
    }

    /// True if a segment that was sent after `segment` has arrived.
    pub(super) fn has_overtaken(&self, segment: &SentSegment) -> bool {
        self.newest > (segment.sent_at(), segment.end())
    }

    /// True if all segments that have arrived were sent before `sent_at`.
    #[inline]
    pub(super) fn is_older_than(&self, sent_at: Instant) -> bool {
        self.newest.0 < sent_at
    }

    /// The time after which `segment` is late, with a reordering window of `window`. `None` if it is late
    /// now.
    pub(super) fn remaining(
        &self,
        segment: &SentSegment,
        window: Duration,
        now: Instant,
    ) -> Option<Duration> {
        let left = (self.rtt + window).saturating_sub(now.since(segment.sent_at()));
        (!left.is_zero()).then_some(left)
    }

    /// Takes note of reordering (RFC 8985 §6.2 step 3): a segment that begins at `low` arrived after a
    /// segment that ends at `high`.
    pub(super) fn on_reordering(&mut self, low: u64, high: u64, smss: u32) {
        if low < high {
            let distance = (high - low).div_ceil(u64::from(smss.max(1)));
            self.reordering = self.reordering.max(distance).min(MAX_REORDERING);
            self.reordering_seen = true;
        }
    }

    /// True once a segment overtook another (RACK.reordering_seen).
    pub(super) const fn has_seen_reordering(&self) -> bool {
        self.reordering_seen
    }

    /// True if a segment was ever overtaken by more than three segments.
    pub(super) const fn reorders_much(&self) -> bool {
        self.reordering > DUPLICATE_THRESHOLD as u64
    }

    /// The reordering window while `sacked` segments are sacked (RFC 8985 §6.2 step 4; Linux:
    /// tcp_rack_reo_wnd).
    pub(super) fn window(&self, in_recovery: bool, sacked: u64, srtt: Option<Duration>) -> Duration {
        if !self.reordering_seen && (in_recovery || sacked >= self.reordering) {
            return Duration::ZERO;
        }
        let window = (self.min_rtt() / 4).saturating_mul(self.quarters);
        srtt.map_or(window, |srtt| window.min(srtt))
    }

    /// Widens the window, at most once per round trip, because the far end reports a duplicate (RFC 8985 §6.2
    /// step 4).
    pub(super) fn on_duplicate(&mut self, snd_una: u64, snd_max: u64) {
        if self.round.is_none_or(|round| snd_una >= round) {
            self.round = Some(snd_max);
            self.quarters = (self.quarters + 1).min(MAX_QUARTERS);
            self.persist = PERSIST;
        }
    }

    /// Takes note that a recovery has ended in which no retransmission was needless.
    pub(super) const fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.quarters = 1;
        }
    }
}

impl Recovery {
    /// Marks the segments that are late (RFC 8985 §6.2 step 5). Returns true if the reordering timer was set
    /// for segments that may be late soon.
    pub(super) fn mark_by_time(&mut self, now: Instant, context: &mut Context<'_>) -> bool {
        let in_recovery = self.state() != RecoveryState::Open;
        let window = self.rack.window(in_recovery, context.scoreboard.sacked_segments(), context.rtt.srtt());
        let Some(wait) = context.scoreboard.mark_by_time(&self.rack, window, now) else { return false };
        let deadline = context.rtt.after(wait + TIMER_SLACK, now);
        context.timers.set(TimerKind::Reordering, deadline);
        true
    }

    /// Searches losses when the reordering timer has expired (Linux: tcp_rack_reo_timeout).
    pub(in crate::tcp) fn on_reordering_timeout(&mut self, context: &mut Context<'_>) {
        let old_losses = context.scoreboard.losses();
        let old_resent = context.scoreboard.resent_segments();
        let waits_for_reordering = self.mark_by_time(context.now, context);
        if self.state() == RecoveryState::Fast && context.scoreboard.resent_segments() < old_resent {
            self.reduce_again(context);
        }
        if context.scoreboard.losses() > old_losses && self.state() != RecoveryState::Fast {
            self.begin_fast(context);
            self.reduce_proportionally(1, false, context);
        }
        if !waits_for_reordering {
            self.restart_retransmission(context);
        }
    }
}

/// TCP_TIMEOUT_MIN_US: 2 ms.
pub(super) const TIMER_SLACK: Duration = Duration::from_millis(2);
/// net.ipv4.tcp_min_rtt_wlen.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(300);
/// net.ipv4.tcp_max_reordering.
const MAX_REORDERING: u64 = 300;
/// tcp_rack_update_reo_wnd: reo_wnd_steps is a byte.
const MAX_QUARTERS: u64 = 255;
/// RFC 8985 §5.2: 16 recoveries.
const PERSIST: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn segment(end: u64, sent_ms: u64) -> SentSegment {
        SentSegment::new(end, 1000, false, false, false, Instant::from_millis(sent_ms))
    }

    fn rack() -> Rack {
        let mut rack = Rack::new();
        rack.on_rtt(MS(100), Instant::from_millis(100));
        rack.advance((Instant::from_millis(10), 3001), MS(100));
        rack
    }

    /// RFC 8985 §6.2 step 5.
    #[test]
    fn what_was_sent_before_something_that_arrived_is_late_after_a_round_trip() {
        let rack = rack();
        assert!(rack.has_overtaken(&segment(1001, 0)) && rack.has_overtaken(&segment(2001, 10)));
        assert!(!rack.has_overtaken(&segment(4001, 10)) && !rack.has_overtaken(&segment(1001, 11)));
        let now = Instant::from_millis(110);
        assert_eq!(rack.remaining(&segment(1001, 0), Duration::ZERO, now), None);
        assert_eq!(rack.remaining(&segment(1001, 0), MS(25), now), Some(MS(15)));
    }

    /// RFC 8985 §6.2 step 4.
    #[test]
    fn the_window_is_a_quarter_until_three_are_sacked_or_reordering_is_seen() {
        let mut rack = rack();
        assert_eq!(rack.window(false, 2, Some(MS(100))), MS(25));
        assert_eq!(rack.window(false, 3, Some(MS(100))), Duration::ZERO);
        assert_eq!(rack.window(true, 1, Some(MS(100))), Duration::ZERO);
        rack.on_reordering(1001, 5001, 1000);
        assert_eq!(rack.window(true, 9, Some(MS(100))), MS(25));
        assert!(rack.reorders_much());
    }

    /// Takes a round-trip sample (RFC 8985 §6.2 step 1).
    #[test]
    fn a_longer_path_is_learned_after_five_minutes() {
        let (mut rack, at) = (Rack::new(), |s| Instant::ZERO + Duration::from_secs(s));
        rack.on_rtt(MS(100), at(1));
        rack.on_rtt(MS(300), at(300));
        assert_eq!(rack.min_rtt(), MS(100));
        rack.on_rtt(MS(300), at(302));
        assert_eq!(rack.min_rtt(), MS(300));
        rack.on_rtt(MS(50), at(303));
        assert_eq!(rack.min_rtt(), MS(50));
    }

    #[test]
    fn needless_retransmissions_widen_the_window_once_a_round_for_sixteen_recoveries() {
        let mut rack = rack();
        rack.on_duplicate(1001, 9001);
        rack.on_duplicate(2001, 9001);
        assert_eq!(rack.window(false, 0, Some(MS(400))), MS(50));
        rack.on_duplicate(9001, 12_001);
        assert_eq!(rack.window(false, 0, Some(MS(400))), MS(75));
        assert_eq!(rack.window(false, 0, Some(MS(60))), MS(60));
        for _ in 0..16 {
            rack.on_recovered();
        }
        assert_eq!(rack.window(false, 0, Some(MS(400))), MS(25));
    }
}

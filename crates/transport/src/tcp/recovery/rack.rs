//! RACK: which segments are lost, found by time (RFC 8985 §6), with Linux's choices (tcp_recovery.c).
//!
//! A segment is lost when one that was sent later has arrived and a round trip plus the reordering window has
//! passed. The window is zero while no reordering was ever seen and three segments are sacked or recovery has
//! begun. Otherwise it is a quarter of the shortest round trip, and a further quarter for each round trip in
//! which a duplicate reports a needless retransmission.

use talkpath_units::{Duration, Instant};

use super::sent_segment::SentSegment;
use super::{Context, DUPLICATE_THRESHOLD, Recovery, RecoveryState};
use crate::tcp::timers::TimerKind;

/// RFC 8985 §5.2.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// Of the segments that have arrived, the one that was sent latest: when it was sent, and where it ends
    /// (RACK.xmit_ts, RACK.end_seq).
    newest: (Instant, u64),
    /// The round trip of what has arrived last (RACK.rtt).
    rtt: Duration,
    /// Something has arrived since losses were last searched.
    advanced: bool,
    /// The shortest round trip of the last minutes (RACK.min_RTT), and when it was measured.
    min_rtt: Option<(Duration, Instant)>,
    /// The largest distance by which one segment overtook another, in full segments. It is three until one
    /// did.
    reordering: u64,
    reordering_seen: bool,
    /// Quarters of `min_rtt` (RACK.reo_wnd_mult).
    quarters: u64,
    /// Recoveries after which `quarters` falls back to one (RACK.reo_wnd_persist).
    persist: u32,
    /// A duplicate was reported; the next may count once this is acknowledged (RACK.dsack_round).
    round: Option<u64>,
}

impl Rack {
    pub(super) const fn new() -> Self {
        Self {
            newest: (Instant::ZERO, 0),
            rtt: Duration::ZERO,
            advanced: false,
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

    /// RFC 8985 §6.2 step 1.
    #[inline]
    pub(super) fn on_rtt(&mut self, rtt: Duration, now: Instant) {
        let holds =
            self.min_rtt.is_some_and(|(shortest, at)| shortest < rtt && now.since(at) <= MIN_RTT_WINDOW);
        if !holds {
            self.min_rtt = Some((rtt, now));
        }
    }

    /// RFC 8985 §6.2 step 2: segments have arrived. The one that was sent last left at `newest.0` and ends at
    /// `newest.1`. The one that was acknowledged last took `rtt`: RACK.rtt follows each segment, and not the
    /// newest alone (tcp_rack_advance).
    #[inline]
    pub(super) fn advance(&mut self, newest: (Instant, u64), rtt: Duration) {
        self.advanced = true;
        self.rtt = rtt;
        self.newest = self.newest.max(newest);
    }

    /// True, once for each advance, if losses have to be searched.
    pub(super) const fn take_advanced(&mut self) -> bool {
        core::mem::replace(&mut self.advanced, false)
    }

    /// What was marked as lost was not: losses have to be searched again.
    pub(super) const fn search_again(&mut self) {
        self.advanced = true;
    }

    /// True if something sent after `segment` has arrived.
    pub(super) fn is_after(&self, segment: &SentSegment) -> bool {
        self.newest > (segment.sent_at(), segment.end())
    }

    /// True if nothing that was sent at `sent_at` or later has arrived.
    #[inline]
    pub(super) fn is_before(&self, sent_at: Instant) -> bool {
        self.newest.0 < sent_at
    }

    /// How long `segment` may still be in the network. `None` if it is late.
    pub(super) fn remaining(
        &self,
        segment: &SentSegment,
        window: Duration,
        now: Instant,
    ) -> Option<Duration> {
        let left = (self.rtt + window).saturating_sub(now.since(segment.sent_at()));
        (!left.is_zero()).then_some(left)
    }

    /// RFC 8985 §6.2 step 3: a segment `low` arrived after one that ends at `high`.
    pub(super) fn on_reordering(&mut self, low: u64, high: u64, smss: u32) {
        if low < high {
            let distance = (high - low).div_ceil(u64::from(smss.max(1)));
            self.reordering = self.reordering.max(distance).min(MAX_REORDERING);
            self.reordering_seen = true;
        }
    }

    /// True if a segment was ever overtaken by more than three.
    pub(super) const fn reorders_much(&self) -> bool {
        self.reordering > DUPLICATE_THRESHOLD as u64
    }

    /// RFC 8985 §6.2 step 4 (tcp_rack_reo_wnd): the reordering window, with `sacked` segments sacked.
    pub(super) fn window(&self, in_recovery: bool, sacked: u64, srtt: Option<Duration>) -> Duration {
        if !self.reordering_seen && (in_recovery || sacked >= self.reordering) {
            return Duration::ZERO;
        }
        let window = (self.min_rtt() / 4).saturating_mul(self.quarters);
        srtt.map_or(window, |srtt| window.min(srtt))
    }

    /// RFC 8985 §6.2 step 4: a reported duplicate widens the window, at most once in a round trip.
    pub(super) fn on_duplicate(&mut self, snd_una: u64, snd_max: u64) {
        if self.round.is_none_or(|round| snd_una >= round) {
            self.round = Some(snd_max);
            self.quarters = (self.quarters + 1).min(MAX_QUARTERS);
            self.persist = PERSIST;
        }
    }

    /// A recovery has ended, and none of it was needless.
    pub(super) const fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.quarters = 1;
        }
    }
}

impl Recovery {
    /// RFC 8985 §6.2 step 5: marks what is late. Returns true if a timer was set for what may be late soon.
    pub(super) fn mark_by_time(&mut self, now: Instant, context: &mut Context<'_>) -> bool {
        let in_recovery = self.state() != RecoveryState::Open;
        let window = self.rack.window(in_recovery, context.scoreboard.sacked_segments(), context.rtt.srtt());
        let Some(wait) = context.scoreboard.mark_by_time(&self.rack, window, now) else { return false };
        let deadline = context.rtt.after(wait + TIMER_SLACK, now);
        context.timers.set(TimerKind::Reordering, deadline);
        true
    }

    /// The reordering window of a segment has passed (tcp_rack_reo_timeout).
    pub(in crate::tcp) fn on_reordering_timeout(&mut self, context: &mut Context<'_>) {
        let (losses, again) = (context.scoreboard.losses(), context.scoreboard.again_segments());
        let waits = self.mark_by_time(context.now, context);
        if self.state() == RecoveryState::Fast && context.scoreboard.again_segments() < again {
            self.reduce_again(context);
        }
        if context.scoreboard.losses() > losses && self.state() != RecoveryState::Fast {
            self.begin_fast(context);
            self.reduce_proportionally(1, false, context);
        }
        if !waits {
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
        assert!(rack.is_after(&segment(1001, 0)) && rack.is_after(&segment(2001, 10)));
        assert!(!rack.is_after(&segment(4001, 10)) && !rack.is_after(&segment(1001, 11)));
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

    /// RFC 8985 §6.2 step 1.
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

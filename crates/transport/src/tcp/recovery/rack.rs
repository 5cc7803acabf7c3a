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
//! stack counts a report only if the window can be its cause (tcp_dsack_seen, since 5.15). This has two
//! conditions:
//!
//! - Reordering was seen before.
//! - The segment is not a loss probe, because the timer of the probe sends it and not the window.

use talkpath_units::{Duration, Instant};

use super::sent_segment::{SentSegment, Transmission};
use super::{Context, DUPLICATE_THRESHOLD, Recovery, RecoveryState};
use crate::tcp::timers::TimerKind;

/// The time that is added to the reordering timer (Linux: TCP_TIMEOUT_MIN_US).
pub(super) const TIMER_SLACK: Duration = Duration::from_millis(2);
/// The time after which a shortest round trip is forgotten (Linux: net.ipv4.tcp_min_rtt_wlen).
const MIN_RTT_WINDOW: Duration = Duration::from_secs(300);
/// The largest distance that reordering can reach, in segments (Linux: net.ipv4.tcp_max_reordering).
const MAX_REORDERING: u64 = 300;
/// The largest factor of the reordering window (Linux: reo_wnd_steps is a byte in tcp_rack_update_reo_wnd).
const MAX_WINDOW_FACTOR: u64 = 255;
/// The number of recoveries after which the factor falls back to one (RFC 8985 §5.2).
const RECOVERIES_UNTIL_RESET: u32 = 16;

/// The per-connection variables of RFC 8985 §5.2.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// The newest of all segments that have arrived.
    newest: Transmission,
    /// The round trip of the segment that has arrived last (RACK.rtt).
    rtt: Duration,
    /// True if the next acknowledgement has to search for losses. The reason is that a segment has arrived
    /// since the last search, or that marks of loss were removed.
    search_requested: bool,
    /// The shortest round trip of the last minutes (RACK.min_RTT).
    min_rtt: Option<MinRtt>,
    /// The largest distance, in full segments, by which a segment was overtaken. It is three before any
    /// reordering is seen.
    reordering_distance: u64,
    /// True once a segment was overtaken by another (RACK.reordering_seen).
    reordering_seen: bool,
    /// The factor `q` of the reordering window (RACK.reo_wnd_mult).
    window_factor: u64,
    /// The number of recoveries until `window_factor` falls back to one (RACK.reo_wnd_persist).
    recoveries_until_reset: u32,
    /// The offset that ends the round trip in which a needless retransmission was last reported. Another
    /// report counts only after this offset is acknowledged (RACK.dsack_round).
    round_trip_end: Option<u64>,
}

/// The shortest round trip.
#[derive(Clone, Copy, Debug)]
struct MinRtt {
    rtt: Duration,
    measured_at: Instant,
}

/// What a search for losses did to the reordering timer. This timer shares its slot with the retransmission
/// timer, so the caller must not set the retransmission timer after the search has set the reordering timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReorderingTimer {
    /// The search has set the timer, for segments that were overtaken and are not late yet.
    Set,
    Unchanged,
}

impl Rack {
    pub(super) const fn new() -> Self {
        Self {
            newest: Transmission { sent_at: Instant::ZERO, end: 0 },
            rtt: Duration::ZERO,
            search_requested: false,
            min_rtt: None,
            reordering_distance: DUPLICATE_THRESHOLD as u64,
            reordering_seen: false,
            window_factor: 1,
            recoveries_until_reset: 0,
            round_trip_end: None,
        }
    }

    /// Returns RACK.min_RTT. It is zero before the first sample.
    #[inline]
    pub(super) fn min_rtt(&self) -> Duration {
        self.min_rtt.map_or(Duration::ZERO, |min| min.rtt)
    }

    /// Records a round-trip sample (RFC 8985 §6.2 step 1).
    #[inline]
    pub(super) fn on_rtt(&mut self, rtt: Duration, now: Instant) {
        let has_valid_shorter =
            self.min_rtt.is_some_and(|min| min.rtt < rtt && now.since(min.measured_at) <= MIN_RTT_WINDOW);
        if !has_valid_shorter {
            self.min_rtt = Some(MinRtt { rtt, measured_at: now });
        }
    }

    /// Records that segments have arrived, of which `newest` is the newest (RFC 8985 §6.2 step 2). `rtt` is
    /// the round trip of the segment that was acknowledged last. As in Linux (tcp_rack_advance), this may be
    /// another segment.
    #[inline]
    pub(super) fn advance(&mut self, newest: Transmission, rtt: Duration) {
        self.search_requested = true;
        self.rtt = rtt;
        self.newest = self.newest.max(newest);
    }

    /// Returns true if losses have to be searched now, and withdraws the request.
    pub(super) const fn take_search_request(&mut self) -> bool {
        core::mem::replace(&mut self.search_requested, false)
    }

    /// Requests a search for losses at the next acknowledgement, because the marks of loss were removed.
    pub(super) const fn search_again(&mut self) {
        self.search_requested = true;
    }

    /// Returns true if a segment that was sent after `segment` has arrived before it.
    pub(super) fn is_overtaken(&self, segment: &SentSegment) -> bool {
        self.newest > segment.transmission()
    }

    /// Returns true if all segments that have arrived were sent before `sent_at`.
    #[inline]
    pub(super) fn all_arrivals_were_sent_before(&self, sent_at: Instant) -> bool {
        self.newest.sent_at < sent_at
    }

    /// Returns the time until `segment` is late, with a reordering window of `window`. Returns `None` if the
    /// segment is late already.
    pub(super) fn time_until_late(
        &self,
        segment: &SentSegment,
        window: Duration,
        now: Instant,
    ) -> Option<Duration> {
        let remaining = (self.rtt + window).saturating_sub(now.since(segment.sent_at()));
        (!remaining.is_zero()).then_some(remaining)
    }

    /// Records reordering (RFC 8985 §6.2 step 3). A segment that begins at `low` arrived after a segment that
    /// ends at `high`.
    pub(super) fn on_reordering(&mut self, low: u64, high: u64, smss: u32) {
        if low < high {
            let distance = (high - low).div_ceil(u64::from(smss.max(1)));
            self.reordering_distance = self.reordering_distance.max(distance).min(MAX_REORDERING);
            self.reordering_seen = true;
        }
    }

    pub(super) const fn has_seen_reordering(&self) -> bool {
        self.reordering_seen
    }

    /// Returns true if a segment was ever overtaken by more than three segments.
    pub(super) const fn reorders_much(&self) -> bool {
        self.reordering_distance > DUPLICATE_THRESHOLD as u64
    }

    /// Returns the reordering window while `sacked` segments are sacked (RFC 8985 §6.2 step 4; Linux:
    /// tcp_rack_reo_wnd).
    pub(super) fn window(&self, in_recovery: bool, sacked: u64, srtt: Option<Duration>) -> Duration {
        if !self.reordering_seen && (in_recovery || sacked >= self.reordering_distance) {
            return Duration::ZERO;
        }
        let window = (self.min_rtt() / 4).saturating_mul(self.window_factor);
        srtt.map_or(window, |srtt| window.min(srtt))
    }

    /// Widens the window, because the far end reports that it has received a segment twice (RFC 8985 §6.2
    /// step 4). The window grows at most once per round trip.
    pub(super) fn on_duplicate(&mut self, snd_una: u64, snd_max: u64) {
        if self.round_trip_end.is_none_or(|end| snd_una >= end) {
            self.round_trip_end = Some(snd_max);
            self.window_factor = (self.window_factor + 1).min(MAX_WINDOW_FACTOR);
            self.recoveries_until_reset = RECOVERIES_UNTIL_RESET;
        }
    }

    /// Records the end of a recovery without needless retransmissions.
    pub(super) const fn on_recovered(&mut self) {
        self.recoveries_until_reset = self.recoveries_until_reset.saturating_sub(1);
        if self.recoveries_until_reset == 0 {
            self.window_factor = 1;
        }
    }
}

impl Recovery {
    /// Marks the segments that are late, and sets the reordering timer for segments that may be late soon
    /// (RFC 8985 §6.2 step 5).
    pub(super) fn mark_by_time(&self, context: &mut Context<'_>) -> ReorderingTimer {
        let in_recovery = self.state() != RecoveryState::Open;
        let window = self.rack.window(in_recovery, context.scoreboard.sacked_segments(), context.rtt.srtt());
        let Some(wait) = context.scoreboard.mark_by_time(&self.rack, window, context.now) else {
            return ReorderingTimer::Unchanged;
        };
        let deadline = context.rtt.after(wait + TIMER_SLACK, context.now);
        context.timers.set(TimerKind::Reordering, deadline);
        ReorderingTimer::Set
    }

    /// Searches for losses when the reordering timer has expired (Linux: tcp_rack_reo_timeout).
    pub(in crate::tcp) fn on_reordering_timeout(&mut self, context: &mut Context<'_>) {
        let old_losses = context.scoreboard.losses();
        let old_resent = context.scoreboard.resent_segments();
        let reordering_timer = self.mark_by_time(context);
        if self.state() == RecoveryState::Fast && context.scoreboard.resent_segments() < old_resent {
            self.reduce_again(context);
        }
        if context.scoreboard.losses() > old_losses && self.state() != RecoveryState::Fast {
            self.begin_fast(context);
            // A timer acknowledges no data, so this step is not safe in the sense of PRR.
            let is_safe = false;
            self.reduce_proportionally(1, is_safe, context);
        }
        if reordering_timer == ReorderingTimer::Unchanged {
            self.restart_retransmission(context);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::recovery::NewSegment;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn segment(end: u64, sent_ms: u64) -> SentSegment {
        SentSegment::new(end, NewSegment::forced(1000), false, Instant::from_millis(sent_ms))
    }

    fn rack() -> Rack {
        let mut rack = Rack::new();
        rack.on_rtt(MS(100), Instant::from_millis(100));
        rack.advance(Transmission { sent_at: Instant::from_millis(10), end: 3001 }, MS(100));
        rack
    }

    /// RFC 8985 §6.2 step 5.
    #[test]
    fn what_was_sent_before_something_that_arrived_is_late_after_a_round_trip() {
        let rack = rack();
        assert!(rack.is_overtaken(&segment(1001, 0)) && rack.is_overtaken(&segment(2001, 10)));
        assert!(!rack.is_overtaken(&segment(4001, 10)) && !rack.is_overtaken(&segment(1001, 11)));
        let now = Instant::from_millis(110);
        assert_eq!(rack.time_until_late(&segment(1001, 0), Duration::ZERO, now), None);
        assert_eq!(rack.time_until_late(&segment(1001, 0), MS(25), now), Some(MS(15)));
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

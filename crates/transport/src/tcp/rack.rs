//! RACK: which segments are lost, told by time (RFC 8985 §6), with Linux's choices (tcp_recovery.c).
//!
//! A segment is lost when one that was sent later has arrived and a round trip plus the reordering window has passed. The
//! window is nothing while no reordering was ever seen and three segments are sacked or recovery is under way; otherwise a
//! quarter of the shortest round trip, and more of it for each round that a duplicate reports a needless retransmission.

use talkpath_units::{Duration, Instant};

use super::scoreboard::DUPLICATE_THRESHOLD;
use super::send::SentSegment;

/// RFC 8985 §5.2.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// When the most recently sent of all that has arrived was sent, and one past its last offset (RACK.xmit_ts,
    /// RACK.end_seq).
    newest: (Instant, u64),
    /// What it took (RACK.rtt).
    rtt: Duration,
    /// Something arrived since losses were last looked for.
    advanced: bool,
    /// The shortest round trip of the last minutes (RACK.min_RTT), and when it was.
    min_rtt: Option<(Duration, Instant)>,
    /// The farthest that a segment was overtaken, in full segments; three before any was.
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
    pub(crate) const fn new() -> Self {
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

    /// RACK.min_RTT; zero before any sample.
    #[inline]
    pub(crate) fn min_rtt(&self) -> Duration {
        self.min_rtt.map_or(Duration::ZERO, |(rtt, _)| rtt)
    }

    /// RFC 8985 §6.2 step 1.
    #[inline]
    pub(crate) fn on_rtt(&mut self, rtt: Duration, now: Instant) {
        let holds = self.min_rtt.is_some_and(|(least, at)| least < rtt && now.since(at) <= MIN_RTT_WINDOW);
        if !holds {
            self.min_rtt = Some((rtt, now));
        }
    }

    /// RFC 8985 §6.2 step 2: a segment sent at `newest.0` that ends at `newest.1` has arrived.
    #[inline]
    pub(crate) fn advance(&mut self, newest: (Instant, u64), now: Instant) {
        self.advanced = true;
        if newest > self.newest {
            self.newest = newest;
            self.rtt = now.since(newest.0);
        }
    }

    /// Whether losses have to be looked for; once for each advance.
    pub(crate) const fn take_advanced(&mut self) -> bool {
        core::mem::replace(&mut self.advanced, false)
    }

    /// What was taken for lost was not: look again.
    pub(crate) const fn look_again(&mut self) {
        self.advanced = true;
    }

    /// Whether something sent after `segment` has arrived.
    pub(crate) fn is_after(&self, segment: &SentSegment) -> bool {
        self.newest > (segment.sent_at, segment.end)
    }

    /// Whether nothing sent at `sent_at` or later has arrived, nor anything sent after it.
    #[inline]
    pub(crate) fn is_before(&self, sent_at: Instant) -> bool {
        self.newest.0 < sent_at
    }

    /// How long `segment` may still be under way; `None` when it is late.
    pub(crate) fn remaining(
        &self,
        segment: &SentSegment,
        window: Duration,
        now: Instant,
    ) -> Option<Duration> {
        let left = (self.rtt + window).saturating_sub(now.since(segment.sent_at));
        (!left.is_zero()).then_some(left)
    }

    /// RFC 8985 §6.2 step 3: a segment `low` arrived after one that ends at `high`.
    pub(crate) fn on_reordering(&mut self, low: u64, high: u64, smss: u32) {
        if low < high {
            let distance = (high - low).div_ceil(u64::from(smss.max(1)));
            self.reordering = self.reordering.max(distance).min(MAX_REORDERING);
            self.reordering_seen = true;
        }
    }

    /// Whether the path has overtaken segments by more than three.
    pub(crate) const fn reorders_much(&self) -> bool {
        self.reordering > DUPLICATE_THRESHOLD as u64
    }

    /// RFC 8985 §6.2 step 4 (tcp_rack_reo_wnd): the reordering window, with `sacked` segments sacked.
    pub(crate) fn window(&self, in_recovery: bool, sacked: u64, srtt: Option<Duration>) -> Duration {
        if !self.reordering_seen && (in_recovery || sacked >= self.reordering) {
            return Duration::ZERO;
        }
        let window = (self.min_rtt() / 4).saturating_mul(self.quarters);
        srtt.map_or(window, |srtt| window.min(srtt))
    }

    /// RFC 8985 §6.2 step 4: a duplicate was reported, at most once a round trip widens the window.
    pub(crate) fn on_duplicate(&mut self, snd_una: u64, snd_max: u64) {
        if self.round.is_none_or(|round| snd_una >= round) {
            self.round = Some(snd_max);
            self.quarters = (self.quarters + 1).min(MAX_QUARTERS);
            self.persist = PERSIST;
        }
    }

    /// A recovery has ended, and none of it was needless.
    pub(crate) const fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.quarters = 1;
        }
    }
}

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
    use super::super::scoreboard::Marks;
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn segment(end: u64, sent_ms: u64) -> SentSegment {
        let marks = Marks::default();
        SentSegment {
            end,
            sent_at: Instant::from_millis(sent_ms),
            payload: 1000,
            fin: false,
            follows: false,
            pushed: false,
            marks,
        }
    }

    fn rack() -> Rack {
        let mut rack = Rack::new();
        rack.on_rtt(MS(100), Instant::from_millis(100));
        rack.advance((Instant::from_millis(10), 3001), Instant::from_millis(110));
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

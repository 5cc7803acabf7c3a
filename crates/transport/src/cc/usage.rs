//! Whether the congestion window limited the sender (tcp_cwnd_validate, tcp_is_cwnd_limited).
//!
//! ```text
//!   cwnd may grow      if cwnd was full in this round trip,
//!                      or in slow start, while cwnd < 2 * largest flight of this round trip
//!   cwnd falls         if it was not full for an RTO (stack `linux`; RFC 2861 §3.2,
//!                      tcp_cwnd_application_limited)
//! ```
//!
//! A window that the application does not fill says nothing about the path and must not grow (RFC 7661 §1).
//! The rule for growth is Linux's since 6.1; earlier kernels forgot in slow start that the window was full.
//! It applies if the key `cwnd_validation` is true. The key does not change when `cwnd` falls.

use talkpath_units::{Duration, Instant};

use super::Window;

/// What was sent since the sender last had to stop. Only new data tells whether the window is full: Linux
/// calls tcp_cwnd_validate for new data alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sent {
    Nothing,
    OnlyRetransmissions,
    NewData,
}

/// How far the window was filled during the current round trip. Amounts are in the window's unit.
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowUsage {
    /// True if the window was full at some time in this round trip.
    was_full: bool,
    /// The most that was in flight in this round trip. If the window was full: the amount when it last was.
    largest_flight: u64,
    /// The round trip ends when this offset is acknowledged.
    round_end: u64,
    /// When [`Self::is_limited`] last held, or when [`Self::unused`] last returned an amount.
    full_at: Instant,
    /// The most that was unacknowledged since `full_at`.
    used: u64,
}

impl WindowUsage {
    /// Takes note that the sender stops, because `cwnd` is full (`is_full`), or for another reason.
    pub(crate) const fn on_drained(&mut self, is_full: bool, flight_size: u64, snd_una: u64, snd_max: u64) {
        let is_new_round = snd_una >= self.round_end;
        let is_larger = !self.was_full && flight_size > self.largest_flight;
        if is_new_round || is_full || is_larger {
            self.was_full = is_full;
            self.largest_flight = flight_size;
            self.round_end = snd_max;
        }
    }

    /// Returns how much of the window was used, if the window was not full for `rto`. To be called after
    /// [`Self::on_drained`], with `outstanding` unacknowledged.
    #[inline]
    pub(crate) fn unused(
        &mut self,
        window: &Window,
        outstanding: u64,
        rto: Duration,
        now: Instant,
    ) -> Option<u64> {
        if self.is_limited(window) {
            self.full_at = now;
            self.used = 0;
            return None;
        }
        self.used = self.used.max(outstanding);
        if now.since(self.full_at) < rto {
            return None;
        }
        self.full_at = now;
        Some(core::mem::take(&mut self.used))
    }

    /// True if `window` may grow.
    pub(crate) const fn is_limited(&self, window: &Window) -> bool {
        self.was_full || (window.in_slow_start() && window.cwnd() < self.largest_flight.saturating_mul(2))
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::Packets;

    use super::*;
    use crate::cc::Counting;

    #[test]
    fn slow_start_may_reach_twice_what_was_in_flight() {
        let mut usage = WindowUsage::default();
        usage.on_drained(false, 5, 1, 6);
        let window = |cwnd| Window::new(Counting::Packets, Packets::new(cwnd), None);
        assert!(usage.is_limited(&window(9)));
        assert!(!usage.is_limited(&window(10)));
    }

    /// RFC 2861 §3.2.
    #[test]
    fn what_was_not_used_for_an_rto_is_reported_once() {
        let (mut usage, rto) = (WindowUsage::default(), Duration::from_millis(300));
        let window = Window::new(Counting::Packets, Packets::new(40), Some(Packets::new(20)));
        let at = Instant::from_millis;
        usage.on_drained(true, 40, 1, 41);
        assert_eq!(usage.unused(&window, 40, rto, at(1000)), None);
        usage.on_drained(false, 12, 41, 53);
        assert_eq!(usage.unused(&window, 12, rto, at(1299)), None);
        assert_eq!(usage.unused(&window, 3, rto, at(1300)), Some(12));
        assert_eq!(usage.unused(&window, 3, rto, at(1301)), None);
    }

    /// The application pauses in the middle of a round trip in which the window was full.
    #[test]
    fn slow_start_goes_on_in_a_round_trip_in_which_the_window_was_full() {
        let mut usage = WindowUsage::default();
        let window = Window::new(Counting::Packets, Packets::new(100), None);
        usage.on_drained(true, 45, 1, 46);
        usage.on_drained(false, 62, 30, 108);
        assert!(usage.is_limited(&window));
        usage.on_drained(false, 49, 46, 108);
        assert!(!usage.is_limited(&window));
    }

    #[test]
    fn congestion_avoidance_needs_a_full_window_in_this_round_trip() {
        let mut usage = WindowUsage::default();
        let window = Window::new(Counting::Packets, Packets::new(10), Some(Packets::new(5)));
        usage.on_drained(true, 10, 1, 11);
        usage.on_drained(false, 3, 5, 11);
        assert!(usage.is_limited(&window));
        usage.on_drained(false, 3, 11, 14);
        assert!(!usage.is_limited(&window));
    }
}

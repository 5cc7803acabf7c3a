//! CUBIC: RFC 9438, in the integer form of Linux (bictcp_update in tcp_cubic.c).
//!
//! ```text
//!   W_cubic(t) = C (t - K)^3 + W_max        K = cbrt((W_max - cwnd_epoch) / C)
//! ```
//!
//! The window follows a cubic of the time since the last reduction: steep, flat around the window `W_max` of
//! that loss, then steep again. If Reno's window with the same average would be larger, `cwnd` grows as
//! Reno's (§4.3). [`HyStart`] ends slow start.
//!
//! `cwnd` counts packets for every stack. Time counts in 1/1024 s inside the cubic, as in Linux, and in whole
//! milliseconds outside (a jiffy at HZ = 1000), so that the curve is computed at most once a millisecond.

use talkpath_units::{Duration, Instant};

use super::hystart::HyStart;
use super::{Ack, RecoveryAck, RttSample, Window, WindowBased};

/// RFC 9438.
#[derive(Clone, Debug, Default)]
pub(super) struct Cubic {
    /// `W_max` after fast convergence, in packets; zero while none is known.
    w_max: u64,
    epoch: Option<Epoch>,
    /// `cwnd` grows by a packet for this number of acknowledged ones.
    interval: u64,
    /// The window and the millisecond that `interval` was last computed for.
    computed_for: (u64, u64),
    /// The shortest round trip so far.
    delay_min: Option<Duration>,
    hystart: HyStart,
}

/// The time since the last reduction.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// `K`, in 1/1024 s.
    k: u64,
    /// The window at which the cubic is flat, in packets.
    origin: u64,
    /// `W_est`: what Reno's window would be (§4.3), and what was acknowledged since it last grew.
    w_est: u64,
    acked: u64,
}

impl Cubic {
    /// Computes `interval` from the curve and from Reno's window (bictcp_update).
    fn update_interval(&mut self, cwnd: u64, acked: u64, now: Instant) {
        let now_ms = now.as_nanos() / NANOS_IN_MS;
        if let Some(epoch) = &mut self.epoch {
            epoch.acked += acked;
        }
        let (computed_cwnd, computed_ms) = self.computed_for;
        if computed_cwnd == cwnd && now_ms.saturating_sub(computed_ms) <= SAME_WINDOW_MS {
            return;
        }
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin_epoch(cwnd, acked, now));
        if self.epoch.is_none() || computed_ms != now_ms {
            self.computed_for = (cwnd, now_ms);
            self.interval = self.cubic_interval(&epoch, cwnd, now);
        }
        self.interval = self.interval.min(epoch.reno_interval(cwnd)).max(MIN_INTERVAL);
        self.epoch = Some(epoch);
    }

    fn begin_epoch(&self, cwnd: u64, acked: u64, now: Instant) -> Epoch {
        let (k, origin) = if self.w_max <= cwnd {
            (0, cwnd)
        } else {
            // RFC 9438 §4.2 eq. 2.
            (cube_root((self.w_max - cwnd) * (1 << 40) / C_SCALED), self.w_max)
        };
        Epoch { start: now, k, origin, w_est: cwnd, acked }
    }

    /// RFC 9438 §4.2 eq. 1, one round trip ahead: how many acknowledged packets a further packet takes.
    fn cubic_interval(&self, epoch: &Epoch, cwnd: u64, now: Instant) -> u64 {
        let ahead = now.since(epoch.start).as_millis() + self.delay_min.map_or(0, Duration::as_millis);
        let t = ahead * 1024 / 1000;
        // Beyond 2^20 / 1024 s = 17 minutes the curve is steeper than MIN_INTERVAL allows anyway.
        let distance = t.abs_diff(epoch.k).min(1 << 20);
        let delta = ((u128::from(distance).pow(3) * u128::from(C_SCALED)) >> 40) as u64;
        let target =
            if t < epoch.k { epoch.origin.saturating_sub(delta) } else { epoch.origin.saturating_add(delta) };
        let interval = if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(100) };
        // No loss was seen yet: the path may hold much more.
        if self.w_max == 0 { interval.min(FIRST_INTERVAL) } else { interval }
    }
}

impl Epoch {
    /// RFC 9438 §4.3: how often Reno's window would call for a packet more. With multiplicative decrease to
    /// 0.7 it grows by 3 (1 - 0.7) / (1 + 0.7) = 8/15 packets a window.
    fn reno_interval(&mut self, cwnd: u64) -> u64 {
        let step = (cwnd * 15 / 8).max(1);
        self.w_est += self.acked / step;
        self.acked %= step;
        if self.w_est > cwnd { cwnd / (self.w_est - cwnd) } else { u64::MAX }
    }
}

impl WindowBased for Cubic {
    fn on_rtt(&mut self, window: &mut Window, rtt: Duration, sample: RttSample) {
        // Just after a reduction the queue is still full, and the round trip says little about the path.
        if self.epoch.is_some_and(|epoch| sample.now.since(epoch.start) < AFTER_REDUCTION) {
            return;
        }
        let delay_min = self.delay_min.map_or(rtt, |delay| delay.min(rtt));
        self.delay_min = Some(delay_min);
        if window.in_slow_start() && self.hystart.on_sample(window.cwnd(), rtt, delay_min, sample) {
            window.set_ssthresh(window.cwnd());
        }
    }

    fn on_ack(&mut self, window: &mut Window, ack: Ack) {
        if !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.acked;
        if window.in_slow_start() {
            acked = window.slow_start(acked);
        }
        if acked > 0 {
            self.update_interval(window.cwnd(), acked, ack.now);
            window.grow_each(self.interval, acked);
        }
    }

    /// RFC 9438 §4.6, and §4.7: the next `W_max` is smaller if this loss came at a smaller window than the
    /// last.
    fn reduce(&mut self, window: &mut Window, _flight_size: u64) {
        let cwnd = window.cwnd();
        self.epoch = None;
        self.w_max = if cwnd < self.w_max { cwnd * (1024 + BETA_1024) / 2048 } else { cwnd };
        window.set_ssthresh((cwnd * BETA_1024 / 1024).max(2));
    }

    fn on_recovery_ack(&mut self, window: &mut Window, ack: Ack, full: bool) -> RecoveryAck {
        if !full {
            window.deflate_partially(ack.acked);
            return RecoveryAck::Stay;
        }
        window.deflate();
        RecoveryAck::Leave
    }

    /// bictcp_reset.
    fn on_timeout(&mut self) {
        *self = Self::default();
    }

    /// RFC 9438 §5.8: time without anything in flight does not count (bictcp_cwnd_event).
    fn on_flight_start(&mut self, idle: Duration, now: Instant) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start = epoch.start.saturating_add(idle).min(now);
        }
    }
}

/// The cube root, rounded down.
fn cube_root(value: u64) -> u64 {
    let (mut low, mut high) = (0_u64, 1 << 21);
    // Invariant: low^3 <= value < (high + 1)^3; 2^21 cubed is beyond 64 bits' half.
    while low < high {
        let middle = (low + high).div_ceil(2);
        if u128::from(middle).pow(3) <= u128::from(value) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// beta_cubic = 0.7 (RFC 9438 §4.6) in 1/1024 (Linux: beta = 717).
const BETA_1024: u64 = 717;
/// C = 0.4 packets/s^3 (RFC 9438 §5.1) in 1/1024 (Linux: bic_scale = 41, times 10); time counts in
/// 1/1024 s.
const C_SCALED: u64 = 410;
/// A packet for every two acknowledged, at the fastest (RFC 9438 §4.4: target at most 1.5 cwnd).
const MIN_INTERVAL: u64 = 2;
/// While no loss was seen, a packet for every 20 acknowledged at the slowest: 5 % a round trip
/// (bictcp_update).
const FIRST_INTERVAL: u64 = 20;
/// HZ / 32 in bictcp_update.
const SAME_WINDOW_MS: u64 = 31;
/// HZ in cubictcp_acked.
const AFTER_REDUCTION: Duration = Duration::from_secs(1);
const NANOS_IN_MS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use talkpath_units::Packets;

    use super::*;
    use crate::cc::Counting;

    /// A window and the algorithm that moves it.
    struct Controlled {
        window: Window,
        cubic: Cubic,
    }

    impl Controlled {
        fn on_ack(&mut self, ack: Ack) {
            self.cubic.on_ack(&mut self.window, ack);
        }

        fn reduce(&mut self) {
            self.cubic.reduce(&mut self.window, 0);
        }

        fn measure(&mut self, rtt_ms: u64) {
            self.cubic.on_rtt(&mut self.window, Duration::from_millis(rtt_ms), rtt_sample(0));
        }
    }

    fn cubic(cwnd: u64, ssthresh: Option<u64>) -> Controlled {
        let window = Window::new(Counting::Packets, Packets::new(cwnd), ssthresh.map(Packets::new));
        Controlled { window, cubic: Cubic::default() }
    }

    fn ack(acked: u64, ms: u64) -> Ack {
        Ack { acked, flight_size: 0, cwnd_limited: true, now: Instant::from_millis(ms) }
    }

    fn rtt_sample(ms: u64) -> RttSample {
        RttSample { now: Instant::from_millis(ms), snd_una: 0, snd_max: 0 }
    }

    /// Acknowledges a whole window each `rtt_ms`, packet by packet, until `until_ms`.
    fn round_trips(cubic: &mut Controlled, from_ms: u64, rtt_ms: u64, until_ms: u64) {
        let mut now = from_ms;
        while now < until_ms {
            for _ in 0..cubic.window.cwnd() {
                cubic.on_ack(ack(1, now));
            }
            now += rtt_ms;
        }
    }

    #[test]
    fn the_cube_root_rounds_down() {
        assert_eq!([0, 1, 7, 8, 26, 27].map(cube_root), [0, 1, 1, 2, 2, 3]);
        assert_eq!(cube_root(1 << 60), 1 << 20);
        assert_eq!(cube_root((1 << 60) - 1), (1 << 20) - 1);
    }

    /// RFC 9438 §4.6.
    #[test]
    fn a_loss_leaves_seven_tenths() {
        let mut cubic = cubic(100, Some(50));
        cubic.reduce();
        assert_eq!(cubic.window.ssthresh_packets(), 70.0);
        assert_eq!(cubic.cubic.w_max, 100);
    }

    /// RFC 9438 §4.7.
    #[test]
    fn a_loss_at_a_smaller_window_gives_way_to_others() {
        let mut cubic = cubic(100, Some(50));
        cubic.reduce();
        cubic.window.set_cwnd(80);
        cubic.reduce();
        assert_eq!(cubic.cubic.w_max, 80 * 1741 / 2048);
    }

    /// RFC 9438 §4.2 eq. 1 and 2: from 0.7 W_max back to W_max takes K = cbrt(0.3 W_max / C) seconds, and as
    /// long again to rise by 0.3 W_max more.
    #[test]
    fn the_window_follows_the_cubic() {
        let (w_max, rtt_ms) = (1000_u64, 100);
        let mut cubic = cubic(w_max, Some(w_max / 2));
        cubic.reduce();
        cubic.window.set_cwnd(700);
        cubic.measure(rtt_ms);
        let k = (0.3 * w_max as f64 / 0.4).cbrt();
        let k_ms = (k * 1e3) as u64;
        round_trips(&mut cubic, 0, rtt_ms, k_ms);
        let at_k = cubic.window.cwnd();
        assert!(at_k.abs_diff(w_max) <= 3, "{at_k}");
        round_trips(&mut cubic, k_ms, rtt_ms, k_ms * 2);
        let at_2k = cubic.window.cwnd_packets();
        // A round trip's growth behind, at the steepest point: 3 C K^2 RTT.
        let behind = 3.0 * 0.4 * k * k * 0.1;
        assert!((at_2k - 1300.0).abs() <= behind, "{at_2k}");
    }

    /// RFC 9438 §4.3: on a short round trip the cubic is slow, and Reno's window is followed: 8/15 packets a
    /// window.
    #[test]
    fn on_a_short_path_the_window_grows_as_renos() {
        let mut cubic = cubic(20, Some(10));
        cubic.reduce();
        cubic.window.set_cwnd(14);
        cubic.measure(40);
        round_trips(&mut cubic, 0, 40, 1200);
        // 30 round trips are worth 16 packets; the window follows W_est by up to a round trip of
        // acknowledgements.
        let grown = cubic.window.cwnd() - 14;
        assert!((14..=16).contains(&grown), "{grown}");
    }

    /// RFC 9438 §5.8.
    #[test]
    fn idle_time_does_not_raise_the_window() {
        let mut cubic = cubic(100, Some(50));
        cubic.reduce();
        cubic.window.set_cwnd(70);
        cubic.on_ack(ack(1, 0));
        let start = cubic.cubic.epoch.map(|epoch| epoch.start);
        cubic.cubic.on_flight_start(Duration::from_millis(500), Instant::from_millis(600));
        assert_eq!(start, Some(Instant::ZERO));
        assert_eq!(cubic.cubic.epoch.map(|epoch| epoch.start), Some(Instant::from_millis(500)));
    }

    #[test]
    fn a_timeout_forgets_the_path() {
        let mut cubic = cubic(100, Some(50));
        cubic.reduce();
        cubic.cubic.on_timeout();
        assert_eq!((cubic.window.ssthresh_packets(), cubic.cubic.w_max), (70.0, 0));
    }
    /// RFC 9438 §4.8: t, K, W_max and W_est begin as slow start ends.
    #[test]
    fn after_a_timeout_the_cubic_begins_at_the_window_that_slow_start_leaves() {
        let mut cubic = cubic(100, Some(50));
        cubic.reduce();
        cubic.cubic.on_timeout();
        cubic.window.set_cwnd(1);
        for ms in 0..69 {
            cubic.on_ack(ack(1, ms));
        }
        assert_eq!((cubic.window.cwnd(), cubic.cubic.epoch.is_none()), (70, true));
        cubic.on_ack(ack(1, 100));
        let epoch = cubic.cubic.epoch.unwrap();
        assert_eq!((epoch.start, epoch.k, epoch.origin, epoch.w_est), (Instant::from_millis(100), 0, 70, 70));
    }
}

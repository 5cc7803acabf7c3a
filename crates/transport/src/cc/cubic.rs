//! CUBIC: RFC 9438, in the integer form of Linux (bictcp_update in tcp_cubic.c).
//!
//! ```text
//!   W_cubic(t) = C (t - K)^3 + W_max        K = cbrt((W_max - cwnd_epoch) / C)
//! ```
//!
//! The window follows a cubic of the time `t` since the last reduction. It grows fast at first, slowly around
//! `W_max`, the window of that loss, and then fast again. For example, `W_max` = 100 packets and C = 0.4
//! packets/s^3: `cwnd` is reduced to 70, and is back at 100 after K = cbrt(30 / 0.4) = 4.2 s.
//!
//! `W_est` is the window of a Reno that reduces to 0.7 instead of 0.5, and grows more slowly to make up for
//! it (§4.3). While `W_est` is larger than the cubic, `cwnd` follows `W_est`. [`HyStart`] ends slow start.
//!
//! Windows are in packets, whatever the stack counts in. Times on the curve are in 1/1024 s, as in Linux. The
//! curve is computed at most once per millisecond (Linux: once per jiffy, at HZ = 1000).

use talkpath_units::{Duration, Instant};

use super::hystart::HyStart;
use super::{Ack, RecoveryAck, RttSample, Window, WindowBased};

/// The state of CUBIC for one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Cubic {
    /// `W_max` after fast convergence, in packets. Zero before the first loss.
    w_max: u64,
    /// `None` after a reduction, until the first acknowledgement in congestion avoidance begins the curve.
    epoch: Option<Epoch>,
    /// How many packets have to be acknowledged until `cwnd` grows by one packet.
    acks_per_packet: u64,
    /// The `cwnd` for which the curve was last computed.
    computed_cwnd: u64,
    /// When the curve was last computed, in milliseconds.
    computed_at_ms: u64,
    /// The shortest round trip so far.
    delay_min: Option<Duration>,
    hystart: HyStart,
}

/// The curve since the last reduction (since `epoch_start` of RFC 9438 §4.1.2). Windows are in packets.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// The beginning of `t`.
    start: Instant,
    /// `K`, in 1/1024 s: when the curve is flat.
    k: u64,
    /// The window at which the curve is flat: `W_max`, or `cwnd` if that is larger.
    origin: u64,
    /// `W_est` (§4.3).
    w_est: u64,
    /// The number of packets that were acknowledged since `w_est` last grew.
    acked: u64,
}

impl Cubic {
    /// The state as a connection begins. `is_paced` is true if the transport paces its segments.
    pub(super) fn new(is_paced: bool) -> Self {
        Self { hystart: HyStart::new(is_paced), ..Self::default() }
    }

    /// Computes `acks_per_packet` from the curve and from `W_est`, after `acked` packets were acknowledged
    /// (Linux: bictcp_update). If `cwnd` has changed, the curve is computed once per millisecond, otherwise
    /// once per 31 ms.
    fn update_acks_per_packet(&mut self, cwnd: u64, acked: u64, now: Instant) {
        if let Some(epoch) = &mut self.epoch {
            epoch.acked += acked;
        }
        // While `cwnd` stays the same, the result changes little.
        let now_ms = now.as_nanos() / NANOS_IN_MS;
        let age_ms = now_ms.saturating_sub(self.computed_at_ms);
        if self.computed_cwnd == cwnd && age_ms <= SAME_WINDOW_MS {
            return;
        }
        // The first acknowledgement after a reduction begins the curve.
        let w_max = self.w_max;
        let is_new_epoch = self.epoch.is_none();
        let epoch = self.epoch.get_or_insert_with(|| Epoch::begin(w_max, cwnd, acked, now));
        // `cwnd` may change several times in a millisecond. The curve is computed once.
        if is_new_epoch || self.computed_at_ms != now_ms {
            self.computed_cwnd = cwnd;
            self.computed_at_ms = now_ms;
            // The acknowledgements of this window take a round trip. So `cwnd` aims at the place of the curve
            // one round trip from now.
            let rtt_ms = self.delay_min.map_or(0, Duration::as_millis);
            let t_ms = now.since(epoch.start).as_millis() + rtt_ms;
            self.acks_per_packet = epoch.acks_to_reach_curve(cwnd, t_ms);
            if w_max == 0 {
                // No loss has shown yet how much the path holds, so `cwnd` keeps growing.
                self.acks_per_packet = self.acks_per_packet.min(MAX_ACKS_BEFORE_LOSS);
            }
        }
        // `cwnd` follows the larger of the curve and `W_est`: the one that takes fewer acknowledgements.
        epoch.grow_w_est(cwnd);
        let acks = self.acks_per_packet.min(epoch.acks_to_reach_w_est(cwnd));
        self.acks_per_packet = acks.max(MIN_ACKS_PER_PACKET);
    }
}

impl Epoch {
    /// The curve that begins `now` at `cwnd`, when `acked` packets are acknowledged.
    fn begin(w_max: u64, cwnd: u64, acked: u64, now: Instant) -> Self {
        let Some(below_w_max) = w_max.checked_sub(cwnd) else {
            // `cwnd` is above `W_max`, or there was no loss. The curve is flat now (K = 0), and grows from
            // here.
            return Self { start: now, k: 0, origin: cwnd, w_est: cwnd, acked };
        };
        // RFC 9438 §4.2 eq. 2: K^3 = (W_max - cwnd) / C. With K in 1/1024 s, K^3 is in 2^-30 s^3, so the
        // quotient is multiplied by 2^30. The divisor is 1024 C, so it is multiplied by another 2^10.
        let k_cubed = u128::from(below_w_max) * (1 << 40) / u128::from(C_X1024);
        let k = cube_root(u64::try_from(k_cubed).unwrap_or(u64::MAX));
        Self { start: now, k, origin: w_max, w_est: cwnd, acked }
    }

    /// The `acks_per_packet` with which `cwnd` reaches `W_cubic(t_ms)` (RFC 9438 §4.2 eq. 1) within a round
    /// trip. A round trip brings `cwnd` acknowledgements, so each packet of growth takes `cwnd / growth`
    /// acknowledgements.
    fn acks_to_reach_curve(&self, cwnd: u64, t_ms: u64) -> u64 {
        let t = t_ms * 1024 / 1000;
        // At a distance of 2^20 / 1024 s = 17 minutes the curve is so steep that [`MIN_ACKS_PER_PACKET`]
        // limits the growth. A larger distance would change nothing, and is not computed.
        let distance = t.abs_diff(self.k).min(1 << 20);
        // C |t - K|^3 in packets. C is kept 2^10 times as large, and the cube of 1/1024 s is 2^-30 s^3.
        let delta = ((u128::from(distance).pow(3) * u128::from(C_X1024)) >> 40) as u64;
        let target =
            if t < self.k { self.origin.saturating_sub(delta) } else { self.origin.saturating_add(delta) };
        if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(WINDOWS_ABOVE_CURVE) }
    }

    /// Raises `W_est` by 3 (1 - 0.7) / (1 + 0.7) = 0.53 packets per acknowledged window (RFC 9438 §4.3). That
    /// is a packet per 1.89 windows. In whole numbers it is a packet per 15/8 windows, as in Linux.
    ///
    /// `W_est` grows when more than those windows are acknowledged, and not at the last packet of them
    /// (Linux: `while (ack_cnt > delta)`). So at least one packet stays counted.
    fn grow_w_est(&mut self, cwnd: u64) {
        let acked_per_growth = (cwnd * 15 / 8).max(1);
        let growth = self.acked.saturating_sub(1) / acked_per_growth;
        self.w_est += growth;
        self.acked -= growth * acked_per_growth;
    }

    /// The `acks_per_packet` with which `cwnd` reaches `W_est` within a round trip. [`u64::MAX`] if `cwnd` is
    /// at or above `W_est`, which then sets no limit.
    const fn acks_to_reach_w_est(&self, cwnd: u64) -> u64 {
        if self.w_est > cwnd { cwnd / (self.w_est - cwnd) } else { u64::MAX }
    }
}

impl WindowBased for Cubic {
    fn on_rtt(&mut self, window: &mut Window, rtt: Duration, sample: RttSample) {
        // When an epoch begins, the queue is still long, and the round trip says little about the path.
        if self.epoch.is_some_and(|epoch| sample.now.since(epoch.start) < NO_SAMPLES_FOR) {
            return;
        }
        let delay_min = self.delay_min.map_or(rtt, |delay| delay.min(rtt));
        self.delay_min = Some(delay_min);
        if window.in_slow_start() {
            let ends_slow_start = self.hystart.on_sample(window.cwnd(), rtt, delay_min, sample);
            if ends_slow_start {
                window.set_ssthresh(window.cwnd());
            }
        }
    }

    fn on_ack(&mut self, window: &mut Window, ack: Ack) {
        // If the application and not `cwnd` limits the flow, the path has not confirmed this `cwnd` (RFC 9438
        // §5.8).
        if !ack.cwnd_limited {
            return;
        }
        // Slow start takes acknowledged packets until `cwnd` is at `ssthresh`, and returns the others.
        let mut acked = ack.acked;
        if window.in_slow_start() {
            acked = window.slow_start(acked);
        }
        if acked > 0 {
            self.update_acks_per_packet(window.cwnd(), acked, ack.now);
            window.grow_each(self.acks_per_packet, acked);
        }
    }

    /// Reduces the window to 0.7 of `cwnd` (RFC 9438 §4.6; Linux takes `cwnd`, not the flight size).
    ///
    /// `W_max` becomes the `cwnd` of this loss. If `cwnd` is smaller than the `W_max` before, a new flow may
    /// need room. Then `W_max` becomes (1 + 0.7) / 2 = 0.85 of `cwnd` (fast convergence, §4.7).
    fn reduce(&mut self, window: &mut Window, _flight_size: u64) {
        let cwnd = window.cwnd();
        self.epoch = None;
        let is_smaller_than_before = cwnd < self.w_max;
        self.w_max = if is_smaller_than_before { cwnd * (1024 + BETA_1024) / 2048 } else { cwnd };
        window.set_ssthresh((cwnd * BETA_1024 / 1024).max(2));
    }

    /// Without SACK, a full acknowledgement ends recovery, as for NewReno (RFC 6582 §3.2).
    fn on_recovery_ack(&mut self, window: &mut Window, ack: Ack, is_full_ack: bool) -> RecoveryAck {
        if !is_full_ack {
            window.deflate_partially(ack.acked);
            return RecoveryAck::Stay;
        }
        window.deflate();
        RecoveryAck::Leave
    }

    /// Forgets the path (Linux: bictcp_reset).
    fn on_timeout(&mut self) {
        *self = Self::new(self.hystart.is_paced());
    }

    /// Moves the curve by the time during which nothing was in flight (RFC 9438 §5.8; Linux:
    /// bictcp_cwnd_event).
    fn on_flight_start(&mut self, idle: Duration, now: Instant) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start = epoch.start.saturating_add(idle).min(now);
        }
    }
}

/// Returns the cube root of `value`, rounded down, but at most 2^21, whose cube is 2^63.
fn cube_root(value: u64) -> u64 {
    let (mut low, mut high) = (0_u64, 1 << 21);
    // Invariant: low^3 <= value, and if high < 2^21, value < (high + 1)^3.
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
/// 1024 C, for C = 0.4 packets/s^3 (RFC 9438 §5.1; Linux: 10 times bic_scale, which is 41).
const C_X1024: u64 = 410;
/// `cwnd` grows by at most a packet per two acknowledged packets (RFC 9438 §4.4: target at most 1.5 cwnd).
const MIN_ACKS_PER_PACKET: u64 = 2;
/// Before the first loss `cwnd` grows by at least a packet per 20 acknowledged packets, which is 5 % per
/// round trip (Linux: bictcp_update).
const MAX_ACKS_BEFORE_LOSS: u64 = 20;
/// Above the curve `cwnd` grows by a packet per 100 acknowledged windows, so that it hardly moves (Linux:
/// bictcp_update).
const WINDOWS_ABOVE_CURVE: u64 = 100;
/// While `cwnd` stays the same, `acks_per_packet` is computed once per 31 ms (Linux: HZ / 32 in
/// bictcp_update).
const SAME_WINDOW_MS: u64 = 31;
/// Round-trip samples are left out for this time after the beginning of an epoch (Linux: HZ in
/// cubictcp_acked).
const NO_SAMPLES_FOR: Duration = Duration::from_secs(1);
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

    /// RFC 9438 §4.2 eq. 2 with a window beyond 2^24 packets, whose product with 2^40 exceeds 64 bits.
    #[test]
    fn the_curve_of_a_huge_window_begins_below_it() {
        let w_max = 1_u64 << 26;
        let mut cubic = cubic(w_max, Some(w_max / 2));
        cubic.reduce();
        cubic.window.set_cwnd(w_max * 3 / 4);
        cubic.on_ack(ack(1, 0));
        let k = cubic.cubic.epoch.unwrap().k as f64 / 1024.0;
        let expected = (0.25 * w_max as f64 / (410.0 / 1024.0)).cbrt();
        assert!((k - expected).abs() < 0.01, "{k} s, not {expected} s");
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
        let mut paced = Cubic::new(true);
        paced.on_timeout();
        assert!(paced.hystart.is_paced());
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

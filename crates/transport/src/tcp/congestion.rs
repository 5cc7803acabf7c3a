//! The congestion window as the connection uses it: what may leave, what a loss halves, and whether the
//! window may grow.
//!
//! | amount | window counts bytes | window counts packets (as in Linux) |
//! | --- | --- | --- |
//! | a segment may leave | in flight + payload <= `cwnd` | in flight < `cwnd` |
//! | a loss with SACK reduces | min(unacknowledged, `cwnd`) | `cwnd` |
//! | a loss without SACK reduces | in flight; BSD: min(`cwnd`, offered window) | `cwnd` |
//!
//! The algorithms are in [`crate::cc`].

use talkpath_config::{CongestionControlKind, Stack, TcpConfig};
use talkpath_units::{Duration, Instant, Packets, Rate, Seed};

use super::recovery::{Scoreboard, SentSegment};
use super::send::Pace;
use crate::cc::usage::{Sent, WindowUsage};
use crate::cc::{self, Controller, Counting, Feedback, Growth, InitialState, RateBased, Window};

/// Congestion control of one end.
#[derive(Clone, Debug)]
pub(super) struct Congestion {
    control: Controller,
    usage: WindowUsage,
    /// What was sent since the sender last had to stop.
    sent: Sent,
    setup: Setup,
}

/// The configuration from which a controller is built.
#[derive(Clone, Copy, Debug)]
struct Setup {
    stack: Stack,
    kind: CongestionControlKind,
    growth: Growth,
    initial_window: Packets,
    initial_ssthresh: Option<Packets>,
    seed: Seed,
    /// True if a window that was not filled does not grow (key `cwnd_validation`).
    validates: bool,
    /// True if segments are paced.
    is_paced: bool,
    /// The largest window that the far end could offer, in bytes.
    max_window: u64,
}

/// What an acknowledgement delivered, for a rate-based control. Amounts are in segments. The fields are those
/// of [`Feedback`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    pub(super) segments: u64,
    pub(super) losses: u64,
    pub(super) newest: Option<u64>,
    pub(super) rtt: Option<Duration>,
    pub(super) prior_in_flight: u64,
    pub(super) is_ack_delayed: bool,
}

impl Congestion {
    pub(super) fn new(config: &TcpConfig, mss: u32, seed: Seed) -> Self {
        let kind = match config.cc.unwrap_or(CongestionControlKind::Cubic) {
            // The kernel's "reno" names a rule for the window alone. Its recovery is that of RFC 6582.
            CongestionControlKind::Reno if config.stack == Stack::Linux => CongestionControlKind::NewReno,
            kind => kind,
        };
        let scale = if config.window_scaling { super::send::MAX_SHIFT } else { 0 };
        let setup = Setup {
            stack: config.stack,
            kind,
            growth: config.growth,
            initial_window: config.initial_window,
            initial_ssthresh: config.initial_ssthresh,
            seed,
            validates: config.cwnd_validation,
            is_paced: config.pacing,
            max_window: u64::from(u16::MAX) << scale,
        };
        Self {
            control: setup.controller(mss, config.initial_window),
            usage: WindowUsage::default(),
            sent: Sent::Nothing,
            setup,
        }
    }

    /// Begins with a fresh window of `initial` segments, each of `smss` bytes.
    pub(super) fn begin(&mut self, smss: u32, initial: Packets) {
        self.control = self.setup.controller(smss, initial);
    }

    /// Starts a rate-based control from the round trip of the handshake. Data may flow now.
    pub(super) fn on_established(
        &mut self,
        smss: u32,
        srtt: Option<Duration>,
        min_rtt: Duration,
        now: Instant,
    ) {
        if let Some(control) = self.control.rate_based() {
            let min_rtt = Some(min_rtt).filter(|rtt| !rtt.is_zero());
            control.begin(InitialState { now, smss, srtt, min_rtt });
        }
    }

    /// The configured initial window.
    pub(super) const fn initial_window(&self) -> Packets {
        self.setup.initial_window
    }

    #[inline]
    pub(super) const fn control(&self) -> &Controller {
        &self.control
    }

    #[inline]
    pub(super) const fn control_mut(&mut self) -> &mut Controller {
        &mut self.control
    }

    #[inline]
    pub(super) fn window(&self) -> &Window {
        self.control.window()
    }

    #[inline]
    pub(super) const fn is_rate_based(&self) -> bool {
        self.control.is_rate_based()
    }

    pub(super) fn pacing_rate(&self) -> Option<Rate> {
        self.control.pacing_rate()
    }

    pub(super) fn set_cwnd(&mut self, cwnd: u64) {
        self.control.window_mut().set_cwnd(cwnd);
    }

    /// Sets `cwnd` to `ssthresh`. If recovery has brought `cwnd` below `ssthresh`, `cwnd` rises.
    pub(super) fn lower_to_ssthresh(&mut self) {
        let ssthresh = self.window().ssthresh();
        self.set_cwnd(ssthresh);
    }

    /// Returns an amount in the window's unit: either `bytes` or `segments`.
    #[inline]
    pub(super) fn amount(&self, bytes: u64, segments: u64) -> u64 {
        match self.window().counting() {
            Counting::Bytes { .. } => bytes,
            Counting::Packets => segments,
        }
    }

    /// Returns the amount in flight, in the window's unit.
    #[inline]
    pub(super) fn in_flight(&self, scoreboard: &Scoreboard) -> u64 {
        match self.window().counting() {
            Counting::Bytes { .. } => scoreboard.in_flight_bytes(),
            Counting::Packets => scoreboard.in_flight_segments(),
        }
    }

    /// Returns FlightSize: the amount that is not acknowledged, sacked or not (RFC 5681 §2). The data that
    /// limited transmit sent beyond `cwnd` does not count (§3.2 step 2). A window that counts packets takes
    /// `cwnd` instead (Linux: tcp_reno_ssthresh).
    pub(super) fn flight_size(&self, scoreboard: &Scoreboard) -> u64 {
        self.flight_size_of(scoreboard.outstanding_bytes())
    }

    /// Returns FlightSize if `outstanding` bytes are not acknowledged.
    pub(super) fn flight_size_of(&self, outstanding: u64) -> u64 {
        let window = self.window();
        match window.counting() {
            Counting::Bytes { .. } => outstanding.min(window.cwnd()),
            Counting::Packets => window.cwnd(),
        }
    }

    /// Returns the amount that a loss halves on a connection without SACK:
    ///
    /// - FlightSize (RFC 5681 §3.1 eq. 4), without the amount `limited` that limited transmit sent (§3.2 step
    ///   2).
    /// - BSD (tcp_input, tcp_timers): the smaller of `cwnd` and the `offered` window, rounded down to an even
    ///   number of segments. Limited transmit goes beyond `cwnd`, so it is not a part of this amount.
    pub(super) fn loss_base(&self, limited: u64, scoreboard: &Scoreboard, offered: u64) -> u64 {
        let window = self.window();
        match window.counting() {
            Counting::Bytes { .. } if self.setup.stack == Stack::BsdReno => {
                let pair = 2 * window.counting().smss();
                window.cwnd().min(offered) / pair * pair
            }
            _ => self.in_flight(scoreboard).saturating_sub(limited),
        }
    }

    /// True if an acknowledgement may open the window. With validation the window has to be in use. Without
    /// validation any acknowledgement may, as long as the window is below the largest that a window field can
    /// offer (RFC 9293 §3.1, RFC 7323 §2.3; BSD's TCP_MAXWIN << snd_scale). A segment has `smss` bytes.
    #[inline]
    pub(super) fn may_grow(&self, smss: u32) -> bool {
        let window = self.window();
        if self.setup.validates {
            return self.usage.is_limited(window);
        }
        let unit = match window.counting() {
            Counting::Bytes { .. } => 1,
            Counting::Packets => u64::from(smss),
        };
        window.cwnd().saturating_mul(unit) < self.setup.max_window
    }

    /// True if `cwnd` has room for a segment of `payload` bytes. If nothing is in flight, there always is
    /// room.
    #[inline]
    pub(super) fn admits(&self, payload: u32, scoreboard: &Scoreboard) -> bool {
        self.admits_beyond(payload, 0, 0, scoreboard)
    }

    /// True if there would be room for the segment with a `cwnd` that is larger by `extra` segments of `smss`
    /// bytes (limited transmit, RFC 3042).
    #[inline]
    pub(super) fn admits_beyond(&self, payload: u32, extra: u64, smss: u32, scoreboard: &Scoreboard) -> bool {
        if scoreboard.in_flight_segments() == 0 {
            return true;
        }
        let window = self.window();
        match window.counting() {
            Counting::Bytes { .. } => {
                let room = window.cwnd().saturating_add(extra * u64::from(smss));
                scoreboard.in_flight_bytes() + u64::from(payload) <= room
            }
            Counting::Packets => scoreboard.in_flight_segments() < window.cwnd().saturating_add(extra),
        }
    }

    /// Returns the number of segments of `smss` bytes for which `cwnd` has room, and `cwnd` in such segments.
    #[inline]
    pub(super) fn room_segments(&self, smss: u32, scoreboard: &Scoreboard) -> (u64, u64) {
        let cwnd = self.window().cwnd();
        match self.window().counting() {
            Counting::Bytes { .. } => {
                let smss = u64::from(smss);
                (cwnd.saturating_sub(scoreboard.in_flight_bytes()) / smss, cwnd / smss)
            }
            Counting::Packets => (cwnd.saturating_sub(scoreboard.in_flight_segments()), cwnd),
        }
    }

    /// Returns the inputs of the pacing rate and of the size of a burst.
    #[inline]
    pub(super) fn pace(
        &self,
        smss: u32,
        srtt: Option<Duration>,
        min_rtt: Duration,
        scoreboard: &Scoreboard,
    ) -> Pace {
        let window = self.window();
        Pace {
            cwnd: window.whole_packets(),
            ssthresh: window.whole_ssthresh(),
            outstanding: scoreboard.outstanding_segments(),
            smss,
            srtt,
            min_rtt,
            own_rate: self.control.pacing_rate(),
            min_burst: self.control.min_burst(),
        }
    }

    /// Takes note that the application writes. If it had left room in `cwnd` before, a rate-based control
    /// learns that the application limited the rate (Linux: tcp_rate_check_app_limited). While lost segments
    /// wait to be sent again (`repairs_wait`), the application is not the limit.
    pub(super) fn note_app_limit(
        &mut self,
        unsent: u64,
        smss: u32,
        repairs_wait: bool,
        scoreboard: &Scoreboard,
    ) {
        let (in_flight, cwnd) = (scoreboard.in_flight_segments(), self.window().cwnd());
        if let Some(control) = self.control.rate_based()
            && unsent < u64::from(smss)
            && in_flight < cwnd
            && !repairs_wait
        {
            control.on_app_limited(in_flight);
        }
    }

    /// A segment leaves, for the first time or again.
    #[inline]
    pub(super) fn on_departure(&mut self, sent: &SentSegment, scoreboard: &Scoreboard, now: Instant) {
        if let Some(control) = self.control.rate_based() {
            let is_alone = !sent.was_retransmitted() && scoreboard.outstanding_segments() == 1;
            control.on_sent(cc::SentSegment { now, end: sent.end(), is_alone });
        }
    }

    /// An acknowledgement was processed.
    pub(super) fn on_feedback(&mut self, feedback: &Feedback) {
        if let Some(control) = self.control.rate_based() {
            control.on_feedback(feedback);
        }
    }

    /// Adapts the window before new data leaves with nothing in flight. After an `idle` time of more than an
    /// RTO the window may no longer fit the path (RFC 5681 §4.1).
    pub(super) fn restart_after_idle(&mut self, idle: Duration, rto: Duration, now: Instant) {
        if idle > rto {
            self.control.on_idle(idle, rto);
        }
        self.control.on_flight_start(idle, now);
    }

    /// Takes note of what kind of segment leaves.
    #[inline]
    pub(super) fn note_sent(&mut self, sent: Sent) {
        self.sent = self.sent.max(sent);
    }

    /// Takes note that the sender stops. `cwnd_limited` is true if `cwnd` holds back more data.
    ///
    /// Returns what was sent since the sender last stopped. The second value is the amount of the window that
    /// was used, if the window was not full for an RTO and has to decay (Linux: tcp_cwnd_validate).
    #[inline]
    pub(super) fn on_drained(
        &mut self,
        cwnd_limited: bool,
        scoreboard: &Scoreboard,
        rto: Duration,
        now: Instant,
    ) -> (Sent, Option<u64>) {
        let sent = core::mem::replace(&mut self.sent, Sent::Nothing);
        if !cwnd_limited && sent != Sent::NewData {
            return (sent, None);
        }
        let window = self.control.window();
        let counting = window.counting();
        let flight_size = self.in_flight(scoreboard);
        let is_full = cwnd_limited || flight_size + counting.smss() > window.cwnd();
        // Linux counts lost and sacked segments too (tcp_cwnd_validate).
        let outstanding = match counting {
            Counting::Bytes { .. } => flight_size,
            Counting::Packets => flight_size.max(scoreboard.outstanding_segments()),
        };
        self.usage.on_drained(is_full, outstanding, scoreboard.snd_una(), scoreboard.snd_max());
        let decays = window.decays() && !self.control.is_rate_based();
        let used = if decays { self.usage.unused(window, outstanding, rto, now) } else { None };
        (sent, used)
    }

    /// Lowers `cwnd` towards the amount `used`. The caller has made sure that the application left room in
    /// the window, and not a full send buffer.
    pub(super) fn decay(&mut self, used: u64) {
        self.control.window_mut().decay(used);
    }
}

impl Setup {
    fn controller(&self, smss: u32, initial: Packets) -> Controller {
        let counting = match (self.stack, self.kind) {
            (Stack::Linux, _) | (_, CongestionControlKind::Cubic | CongestionControlKind::Bbr) => {
                Counting::Packets
            }
            (Stack::Rfc | Stack::BsdReno, _) => Counting::Bytes { smss },
        };
        let window = Window::new(counting, initial, self.initial_ssthresh).with_growth(self.growth);
        let window = match self.stack {
            Stack::Linux => window.with_decay(self.initial_window),
            Stack::Rfc | Stack::BsdReno => window,
        };
        Controller::new(self.kind, window, self.is_paced, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::RttSample;

    /// hystart_update: pacing spreads the segments of a round, so the train has to be twice as long.
    #[test]
    fn with_pacing_a_train_of_acknowledgements_lasts_a_whole_round_trip() {
        for (pacing, ends_at) in [(false, 21), (true, 42)] {
            let preset = TcpConfig::preset(Stack::Linux, false);
            let config = TcpConfig { pacing, initial_window: Packets::new(20), ..preset };
            let mut congestion = Congestion::new(&config, 1448, Seed::new(1));
            let ended = (0..60).find(|&ms| {
                let sample = RttSample { now: Instant::from_millis(ms), snd_una: 1, snd_max: 100 };
                congestion.control_mut().on_rtt(Duration::from_millis(40), sample);
                !congestion.window().in_slow_start()
            });
            // More than (40 + 1) / 2 ms, or than 41 ms.
            assert_eq!(ended, Some(ends_at), "pacing: {pacing}");
        }
    }
}

//! BBR, version 1, as Linux has it (tcp_bbr.c; draft-cardwell-iccrg-bbr-congestion-control-00; Cardwell and
//! others, "BBR: congestion-based congestion control", ACM Queue 14(5), 2016).
//!
//! ```text
//!             ┌──────────────────────────── pipe not known to be full ──┐
//!             ▼                                                         │
//!   STARTUP ─────► DRAIN ─────► PROBE_BW ──── no shorter round trip ──► PROBE_RTT
//!   2.89 BtlBw     0.35 BtlBw   1.25, 0.75,   for 10 s                  4 segments for
//!   until 3 rounds until a BDP  6 times 1     ◄──────────────────────── 200 ms and a round
//!   grew by < 25 % is in flight
//! ```
//!
//! The model of the path is a bottleneck bandwidth `BtlBw` (the fastest delivery of the last ten rounds) and
//! a round-trip propagation delay (the shortest round trip of the last 10 s). Their product is the BDP.
//! Segments are paced at a gain times the bandwidth, and `cwnd` is twice the BDP. Losses do not lower the
//! rate. They begin a round of packet conservation, in which as much is sent as arrives. If the losses are
//! many and steady, BBR takes a policer for their cause ([`policer`]).
//!
//! Units are Linux's: bandwidth is in segments per microsecond times 2^24, gains are in 1/256, and times in
//! microseconds since the run began.
//!
//! Left out: the part of segmentation offload in the window beyond what pacing's bursts need, and
//! `SO_MAX_PACING_RATE`.

mod aggregation;
mod control;
mod filter;
mod model;
mod policer;
mod states;

use talkpath_units::{Duration, Instant, Rate, Stream};

use super::delivery::{DeliveryRate, RateSample, micros};
use super::{Feedback, InitialState, Phase, RateBased, SentSegment, Window};
use aggregation::Aggregation;
use filter::MaxFilter;
use policer::Policer;

/// BBR version 1.
#[derive(Clone, Debug)]
pub struct Bbr {
    window: Window,
    rate: DeliveryRate,
    mode: Mode,
    /// The largest bandwidth of the last ten rounds (BBR.BtlBwFilter).
    bandwidth: MaxFilter,
    /// The number of rounds so far.
    rounds: u64,
    /// A round begins when a segment is delivered that was sent after this number of segments was delivered.
    round_end: u64,
    /// True if the latest acknowledgement began a round.
    is_round_start: bool,
    /// The shortest round trip, in whole microseconds (BBR.RTprop). `None` before the first sample.
    min_rtt: Option<Duration>,
    /// When `min_rtt` was measured, or when PROBE_RTT last ended.
    min_rtt_at: Instant,
    full_pipe: FullPipe,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    recovery: Conservation,
    policer: Policer,
    aggregation: Aggregation,
    /// How often a segment was marked as lost since the connection began, as last reported.
    lost: u64,
    /// The gain of the pacing rate, in 1/256.
    pacing_gain: u64,
    /// The gain of `cwnd`, in 1/256.
    cwnd_gain: u64,
    /// In bytes of payload per second.
    pacing_rate: u64,
    /// True once a smoothed round trip was known, from which the first pacing rate follows.
    has_seen_rtt: bool,
    /// True from the end of an application's pause until something is delivered.
    is_restarting: bool,
    smss: u32,
    /// Draws the phase in which the gain cycle begins.
    stream: Stream,
}

/// The states of the picture above (BBR.state).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// Whether STARTUP has found the bottleneck's rate (Linux: bbr_check_full_bw_reached).
#[derive(Clone, Copy, Debug, Default)]
struct FullPipe {
    /// The bandwidth when it last grew by a quarter.
    bw: u64,
    /// The number of rounds since then.
    rounds: u64,
    /// True once the bandwidth has stopped growing.
    reached: bool,
}

/// The gain cycle of PROBE_BW.
#[derive(Clone, Copy, Debug, Default)]
struct Cycle {
    /// The index of the phase in [`PACING_GAINS`].
    index: usize,
    /// When the phase began, in microseconds.
    start: u64,
}

/// The end of PROBE_RTT: it lasts for 200 ms and a round from when at most four segments are in flight.
#[derive(Clone, Copy, Debug, Default)]
struct ProbeRtt {
    /// When the 200 ms are over. `None` while more than four segments are in flight.
    done_at: Option<Instant>,
    /// True if a round has passed.
    round_done: bool,
}

/// What loss recovery does to `cwnd`.
#[derive(Clone, Copy, Debug)]
struct Conservation {
    /// What the sender did about losses at the latest acknowledgement or timeout.
    last_phase: Phase,
    /// True in the first round of a recovery, in which as much is sent as arrives.
    is_conserving: bool,
    /// `cwnd` before recovery or PROBE_RTT.
    prior_cwnd: u64,
}

impl Bbr {
    /// BBR with a fresh `window`, which has to count packets. `stream` draws at which phase its gain cycles
    /// begin.
    pub fn new(window: Window, stream: Stream) -> Self {
        Self {
            window,
            rate: DeliveryRate::new(),
            mode: Mode::Startup,
            bandwidth: MaxFilter::default(),
            rounds: 0,
            round_end: 0,
            is_round_start: false,
            min_rtt: None,
            min_rtt_at: Instant::ZERO,
            full_pipe: FullPipe::default(),
            cycle: Cycle::default(),
            probe_rtt: ProbeRtt::default(),
            recovery: Conservation { last_phase: Phase::Open, is_conserving: false, prior_cwnd: 0 },
            policer: Policer::default(),
            aggregation: Aggregation::default(),
            lost: 0,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            pacing_rate: 0,
            has_seen_rtt: false,
            is_restarting: false,
            smss: 1,
            stream,
        }
    }

    pub(super) const fn window(&self) -> &Window {
        &self.window
    }

    pub(super) const fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    #[cfg(test)]
    pub(crate) const fn lost(&self) -> u64 {
        self.lost
    }
}

impl RateBased for Bbr {
    /// Sets the first pacing rate: a window per round trip of the handshake (Linux: bbr_init).
    fn begin(&mut self, initial: InitialState) {
        self.smss = initial.smss.max(1);
        self.min_rtt = initial.min_rtt.map(model::whole_micros);
        self.min_rtt_at = initial.now;
        self.aggregation.restart(micros(initial.now));
        self.policer.reset(self.totals());
        self.begin_pacing(initial.srtt);
    }

    fn on_app_limited(&mut self, in_flight: u64) {
        self.rate.limit(in_flight);
    }

    fn on_sent(&mut self, sent: SentSegment) {
        self.rate.on_sent(sent.end, sent.is_alone, sent.now);
    }

    /// Saves `cwnd` for the end of the recovery. `ssthresh` stays (Linux: bbr_ssthresh).
    fn on_loss(&mut self) {
        self.save_cwnd();
    }

    /// Proceeds as if a round had ended with a loss, and lowers `cwnd` to one segment (Linux: bbr_ssthresh,
    /// bbr_set_state).
    fn on_rto(&mut self, is_new_loss: bool, total_losses: u64) {
        if is_new_loss {
            self.save_cwnd();
        }
        self.recovery.last_phase = Phase::Loss;
        self.full_pipe.bw = 0;
        self.is_round_start = true;
        self.lost = total_losses;
        self.look_for_policer(1, false);
        self.window.collapse();
    }

    /// Paces at the estimated bandwidth, without a gain, after a pause of the application (Linux:
    /// bbr_cwnd_event).
    fn on_flight_start(&mut self, now: Instant) {
        if !self.rate.is_app_limited() {
            return;
        }
        self.is_restarting = true;
        self.aggregation.restart(micros(now));
        match self.mode {
            Mode::ProbeBw => self.set_pacing_rate(self.bw(), UNIT, None),
            Mode::ProbeRtt => self.check_probe_rtt_done(now),
            Mode::Startup | Mode::Drain => {}
        }
    }

    /// Updates the model, the state, and then the rate and the window (Linux: bbr_main).
    fn on_feedback(&mut self, feedback: &Feedback) {
        let (delivered, snd_una) = (feedback.delivered, feedback.snd_una);
        let sample = self.rate.on_ack(delivered, feedback.newest, snd_una, feedback.min_rtt, feedback.now);
        let is_app_limited = sample.is_some_and(|sample| sample.is_app_limited);
        let has_delivered = sample.is_some_and(|sample| sample.delivered > 0);
        self.lost = feedback.total_losses;
        self.update_bandwidth(sample, feedback.losses);
        let bw = self.bw();
        if sample.is_some() && delivered > 0 {
            let (cwnd, at) = (self.window.cwnd(), self.rate.delivered_at());
            self.aggregation.on_ack(delivered, bw, cwnd, self.is_round_start, at);
        }
        self.update_cycle(feedback);
        self.check_full_pipe(is_app_limited);
        self.check_drain(feedback);
        self.update_min_rtt(feedback, has_delivered);
        self.update_gains();
        let bw = self.bw();
        self.set_pacing_rate(bw, self.pacing_gain, feedback.srtt);
        self.set_cwnd(feedback, bw);
    }

    /// Begins the searches for a full pipe and for a policer again (Linux: bbr_undo_cwnd).
    fn on_undo(&mut self) {
        (self.full_pipe.bw, self.full_pipe.rounds) = (0, 0);
        self.policer.reset(self.totals());
    }

    fn pacing_rate(&self) -> Rate {
        Rate::from_bps(self.pacing_rate.saturating_mul(8))
    }

    fn bottleneck_rate(&self) -> Rate {
        let bytes = u128::from(self.bw()) * u128::from(self.smss) * 1_000_000 / u128::from(BW_UNIT);
        Rate::from_bps(u64::try_from(bytes * 8).unwrap_or(u64::MAX))
    }

    /// Returns one segment below 1.2 Mbit/s, and two from there on (Linux: bbr_min_tso_segs).
    fn min_burst(&self) -> u32 {
        if self.pacing_rate < SLOW_PACING { 1 } else { 2 }
    }
}

/// One segment per microsecond, as a bandwidth (Linux: BW_UNIT).
const BW_UNIT: u64 = 1 << 24;
/// A gain of 1 (Linux: BBR_UNIT).
const UNIT: u64 = 256;
/// The gain of STARTUP: 2 / ln 2, the least that doubles the rate each round (draft §4.3.2.1; Linux:
/// bbr_high_gain).
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
/// The gains of PROBE_BW: probe, drain, and cruise for six round trips (Linux: bbr_pacing_gain).
const PACING_GAINS: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// The smallest `cwnd`, and `cwnd` in PROBE_RTT, in segments (Linux: bbr_cwnd_min_target).
const MIN_CWND: u64 = 4;
/// 1.2 Mbit/s in bytes per second: below this rate segments leave one by one (Linux: bbr_min_tso_rate).
const SLOW_PACING: u64 = 150_000;

#[cfg(test)]
mod tests;

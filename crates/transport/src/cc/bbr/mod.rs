//! BBR, version 1, as Linux has it (tcp_bbr.c; draft-cardwell-iccrg-bbr-congestion-control-00; Cardwell and
//! others, "BBR: congestion-based congestion control", ACM Queue 14(5), 2016).
//!
//! ```text
//!             ┌──────────────────────────── pipe not known to be full ──┐
//!             ▼                                                         │
//!   STARTUP ─────► DRAIN ─────► PROBE_BW ──── no shorter round trip ──► PROBE_RTT
//!   2.89 BtlBw     its inverse  1.25, 0.75,   for 10 s                  4 segments for
//!   until 3 rounds until a BDP  6 times 1     ◄──────────────────────── 200 ms and a round
//!   grew by < 25 % is in flight
//! ```
//!
//! The model of the path is a bottleneck bandwidth (the fastest delivery of the last ten rounds) and a
//! round-trip propagation delay (the shortest round trip of the last 10 s). Segments are paced at a gain
//! times the bandwidth, and `cwnd` is twice the product of the two. Losses do not lower the rate. They begin
//! a round of packet conservation, and if they are many and even, a policer is assumed to be their cause
//! ([`policer`]).
//!
//! Linux's integers: bandwidth is in segments a microsecond times 2^24, gains in 1/256, times in
//! microseconds.
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
    /// BBR.BtlBwFilter, over rounds.
    bandwidth: MaxFilter,
    /// The rounds so far. The next one begins when a segment is delivered that was sent after `round_end`
    /// segments were.
    rounds: u64,
    round_end: u64,
    round_start: bool,
    /// BBR.RTprop in whole microseconds, and when it was measured.
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    full_pipe: FullPipe,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    recovery: Conservation,
    policer: Policer,
    aggregation: Aggregation,
    /// How often a segment was marked as lost since the connection began, as far as is known.
    lost: u64,
    /// Gains of the pacing rate and of `cwnd`, in 1/256.
    pacing_gain: u64,
    cwnd_gain: u64,
    /// Bytes a second.
    pacing_rate: u64,
    has_seen_rtt: bool,
    is_restarting: bool,
    smss: u32,
    /// Draws the phase in which the gain cycle begins.
    stream: Stream,
}

/// BBR.state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// Whether startup has found the bottleneck's rate (bbr_check_full_bw_reached).
#[derive(Clone, Copy, Debug, Default)]
struct FullPipe {
    bw: u64,
    rounds: u64,
    reached: bool,
}

/// The gain cycle of PROBE_BW.
#[derive(Clone, Copy, Debug, Default)]
struct Cycle {
    index: usize,
    /// When the phase began, in microseconds.
    start: u64,
}

/// PROBE_RTT lasts for 200 ms and a round, from when at most four segments are in flight.
#[derive(Clone, Copy, Debug, Default)]
struct ProbeRtt {
    done_at: Option<Instant>,
    round_done: bool,
}

/// What loss recovery does to `cwnd`.
#[derive(Clone, Copy, Debug)]
struct Conservation {
    last_phase: Phase,
    /// Send as much as arrives.
    is_conserving: bool,
    /// `cwnd` before.
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
            round_start: false,
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

    /// How often a segment was marked as lost.
    #[cfg(test)]
    pub(crate) const fn lost(&self) -> u64 {
        self.lost
    }
}

impl RateBased for Bbr {
    /// The first rate is a window in the handshake's round trip (bbr_init).
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

    /// bbr_ssthresh: the window before the loss is remembered, `ssthresh` stays.
    fn on_loss(&mut self) {
        self.save_cwnd();
    }

    /// As if a round had ended with a loss (bbr_ssthresh, bbr_set_state).
    fn on_rto(&mut self, first: bool, total_losses: u64) {
        if first {
            self.save_cwnd();
        }
        self.recovery.last_phase = Phase::Loss;
        self.full_pipe.bw = 0;
        self.round_start = true;
        self.lost = total_losses;
        self.look_for_policer(1, false);
        self.window.collapse();
    }

    /// After a pause of the application segments leave at the estimated bandwidth (bbr_cwnd_event).
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

    /// One acknowledgement updates the model, the state, and then the rate and the window (bbr_main).
    fn on_feedback(&mut self, feedback: &Feedback) {
        let (delivered, snd_una) = (feedback.delivered, feedback.snd_una);
        let sample = self.rate.on_ack(delivered, feedback.newest, snd_una, feedback.min_rtt, feedback.now);
        self.lost = feedback.total_losses;
        self.update_bandwidth(sample, feedback.losses);
        let bw = self.bw();
        if sample.is_some() && delivered > 0 {
            let (cwnd, at) = (self.window.cwnd(), self.rate.delivered_at());
            self.aggregation.on_ack(delivered, bw, BW_UNIT, cwnd, self.round_start, at);
        }
        self.update_cycle(feedback);
        self.check_full_pipe(sample.is_some_and(|sample| sample.is_app_limited));
        self.check_drain(feedback);
        self.update_min_rtt(feedback, sample.is_some_and(|sample| sample.delivered > 0));
        self.update_gains();
        let bw = self.bw();
        self.set_pacing_rate(bw, self.pacing_gain, feedback.srtt);
        self.set_cwnd(feedback, bw);
    }

    /// Startup and the search for a policer begin again (bbr_undo_cwnd).
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

    /// One segment below 1.2 Mbit/s, two above (bbr_min_tso_segs).
    fn min_burst(&self) -> u32 {
        if self.pacing_rate < SLOW_PACING { 1 } else { 2 }
    }
}

/// BW_UNIT: 2^24.
const BW_UNIT: u64 = 1 << 24;
/// BBR_UNIT.
const UNIT: u64 = 256;
/// bbr_high_gain: 2 / ln 2, the least that doubles the rate each round (draft §4.3.2.1).
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
/// bbr_pacing_gain: probe, drain, and cruise for six round trips.
const PACING_GAINS: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// bbr_cwnd_min_target.
const MIN_CWND: u64 = 4;
/// bbr_min_tso_rate, 1.2 Mbit/s, in bytes a second.
const SLOW_PACING: u64 = 150_000;

#[cfg(test)]
mod tests;

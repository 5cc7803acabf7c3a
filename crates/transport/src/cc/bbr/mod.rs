//! BBR, version 1, as Linux has it (tcp_bbr.c; draft-cardwell-iccrg-bbr-congestion-control-00; Cardwell and others, "BBR:
//! congestion-based congestion control", ACM Queue 14(5), 2016).
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
//! The path is a bottleneck bandwidth (the fastest delivery of the last ten rounds) and a round-trip propagation (the shortest round
//! trip of the last 10 s). Segments are paced at a gain times the bandwidth, and `cwnd` is twice their product. Losses do not
//! lower the rate; they make a round of packet conservation, and where they are many and even, a policer is taken for
//! their cause ([`policer`]).
//!
//! Linux's integers: bandwidth is in segments a microsecond times 2^24, gains in 1/256, times in microseconds.
//!
//! Left out: segmentation offload's part in the window beyond what pacing's bursts ask for, and `SO_MAX_PACING_RATE`.

mod aggregation;
mod filter;
mod policer;

use talkpath_units::{Duration, Instant, Rate, Stream};

use super::delivery::{DeliveryRate, RateSample, micros};
use super::{Ack, Allowance, CongestionControl, Departed, Feedback, Outset, Phase, RecoveryAck, Window};
use aggregation::Aggregation;
use filter::MaxFilter;
use policer::{Evidence, Finding, Policer, Totals};

/// BBR version 1.
#[derive(Clone, Debug)]
pub struct Bbr {
    window: Window,
    rate: DeliveryRate,
    mode: Mode,
    /// BBR.BtlBwFilter, over rounds.
    bandwidth: MaxFilter,
    /// Rounds so far, and what has to be delivered of what was sent for the next one to begin.
    rounds: u64,
    round_end: u64,
    round_start: bool,
    /// BBR.RTprop, and when it was measured.
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    full_pipe: FullPipe,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    recovery: Conservation,
    policer: Policer,
    aggregation: Aggregation,
    /// Segments ever taken for lost.
    lost: u64,
    /// Gains of the pacing rate and of `cwnd`, in 1/256.
    pacing_gain: u64,
    cwnd_gain: u64,
    /// Bytes a second.
    pacing_rate: u64,
    has_seen_rtt: bool,
    is_restarting: bool,
    smss: u32,
    /// Draws where the gain cycle begins.
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

/// PROBE_RTT: from when few enough are in flight, so long and a round.
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
    /// BBR over a fresh `window`, which has to count packets; `stream` draws where its gain cycles begin.
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

    /// The bandwidth to go by (bbr_bw).
    fn bw(&self) -> u64 {
        self.policer.rate().unwrap_or_else(|| self.bandwidth.get())
    }

    const fn totals(&self) -> Totals {
        Totals { at_ms: self.rate.delivered_at() / 1000, delivered: self.rate.delivered(), lost: self.lost }
    }

    /// bbr_update_bw: counts rounds, and takes the sample in unless the application held it down.
    fn update_bandwidth(&mut self, sample: Option<RateSample>, losses: u64) {
        self.round_start = false;
        let Some(sample) = sample else { return };
        if sample.prior_delivered >= self.round_end {
            self.round_end = self.rate.delivered();
            self.rounds += 1;
            self.round_start = true;
            self.recovery.is_conserving = false;
        }
        self.look_for_policer(losses, sample.is_app_limited);
        let bw = sample.delivered.saturating_mul(BW_UNIT) / sample.interval_us;
        if !sample.is_app_limited || bw >= self.bandwidth.get() {
            self.bandwidth.update(BW_ROUNDS, self.rounds, bw);
        }
    }

    fn look_for_policer(&mut self, losses: u64, is_app_limited: bool) {
        let finding = self.policer.on_ack(Evidence {
            totals: self.totals(),
            has_losses: losses > 0,
            is_app_limited,
            round_start: self.round_start,
            is_probing_bw: self.mode == Mode::ProbeBw,
            smss: self.smss,
        });
        match finding {
            Finding::Nothing => {}
            Finding::Policed => self.pacing_gain = UNIT,
            Finding::Over => self.enter_probe_bw(),
        }
    }

    /// bbr_update_cycle_phase.
    fn update_cycle(&mut self, feedback: &Feedback) {
        if self.mode == Mode::ProbeBw && self.is_phase_over(feedback) {
            self.advance_cycle();
        }
    }

    /// bbr_is_next_cycle_phase: a round trip; longer while probing has not filled the pipe, less once the queue is gone.
    fn is_phase_over(&self, feedback: &Feedback) -> bool {
        let span = self.rate.delivered_at().saturating_sub(self.cycle.start);
        let is_full_length = span > self.min_rtt.map_or(u64::MAX, Duration::as_micros);
        if self.pacing_gain == UNIT {
            return is_full_length;
        }
        let in_net = self.in_network_at_departure(feedback.prior_in_flight, feedback);
        let bw = self.bandwidth.get();
        if self.pacing_gain > UNIT {
            is_full_length && (feedback.losses > 0 || in_net >= self.inflight(bw, self.pacing_gain))
        } else {
            is_full_length || in_net <= self.inflight(bw, UNIT)
        }
    }

    const fn advance_cycle(&mut self) {
        self.cycle.index = (self.cycle.index + 1) % PACING_GAINS.len();
        self.cycle.start = self.rate.delivered_at();
    }

    /// bbr_reset_probe_bw_mode: begins anywhere in the cycle but where it drains.
    fn enter_probe_bw(&mut self) {
        self.mode = Mode::ProbeBw;
        let back = (self.stream.bits() % RANDOM_PHASES) as usize;
        self.cycle.index = PACING_GAINS.len() - 1 - back;
        self.advance_cycle();
    }

    /// bbr_check_full_bw_reached.
    fn check_full_pipe(&mut self, is_app_limited: bool) {
        let full = &mut self.full_pipe;
        if full.reached || !self.round_start || is_app_limited {
            return;
        }
        let bw = self.bandwidth.get();
        if bw >= full.bw * FULL_BW_THRESHOLD / UNIT {
            full.bw = bw;
            full.rounds = 0;
        } else {
            full.rounds += 1;
            full.reached = full.rounds >= FULL_BW_ROUNDS;
        }
    }

    /// bbr_check_drain.
    fn check_drain(&mut self, feedback: &Feedback) {
        let bw = self.bandwidth.get();
        if self.mode == Mode::Startup && self.full_pipe.reached {
            self.mode = Mode::Drain;
            let ssthresh = self.inflight(bw, UNIT);
            self.window.set_ssthresh(ssthresh);
        }
        if self.mode == Mode::Drain
            && self.in_network_at_departure(feedback.in_flight, feedback) <= self.inflight(bw, UNIT)
        {
            self.enter_probe_bw();
        }
    }

    /// bbr_update_min_rtt.
    fn update_min_rtt(&mut self, feedback: &Feedback, has_delivered: bool) {
        let now = feedback.now;
        let is_expired = now > self.min_rtt_at.saturating_add(MIN_RTT_WINDOW);
        if let Some(rtt) = feedback.rtt
            && (self.min_rtt.is_none_or(|least| rtt <= least) || (is_expired && !feedback.is_ack_delayed))
        {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = now;
        }
        if is_expired && !self.is_restarting && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt = ProbeRtt::default();
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(feedback);
        }
        if has_delivered {
            self.is_restarting = false;
        }
    }

    fn probe_rtt(&mut self, feedback: &Feedback) {
        // So slow a rate is no measure of the path.
        self.rate.limit(feedback.in_flight);
        if self.probe_rtt.done_at.is_none() {
            if feedback.in_flight <= MIN_CWND {
                let done_at = Some(feedback.now.saturating_add(PROBE_RTT_TIME));
                self.probe_rtt = ProbeRtt { done_at, round_done: false };
                self.round_end = self.rate.delivered();
            }
            return;
        }
        self.probe_rtt.round_done |= self.round_start;
        if self.probe_rtt.round_done {
            self.check_probe_rtt_done(feedback.now);
        }
    }

    fn check_probe_rtt_done(&mut self, now: Instant) {
        if self.probe_rtt.done_at.is_none_or(|done_at| now <= done_at) {
            return;
        }
        self.min_rtt_at = now;
        let cwnd = self.window.cwnd().max(self.recovery.prior_cwnd);
        self.window.set_cwnd(cwnd);
        if self.full_pipe.reached {
            self.enter_probe_bw();
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// bbr_update_gains.
    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.policer.rate().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBw => (PACING_GAINS[self.cycle.index], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    /// bbr_set_pacing_rate: startup never slows down.
    fn set_pacing_rate(&mut self, bw: u64, gain: u64, srtt: Option<Duration>) {
        if !self.has_seen_rtt && srtt.is_some() {
            self.begin_pacing(srtt);
        }
        let rate = bytes_per_second(bw, gain, self.smss);
        if self.full_pipe.reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// bbr_init_pacing_rate_from_rtt: a window each round trip, or each millisecond before one was measured.
    fn begin_pacing(&mut self, srtt: Option<Duration>) {
        self.has_seen_rtt |= srtt.is_some();
        let rtt_us = srtt.map_or(1000, Duration::as_micros).max(1);
        let bw = self.window.cwnd().saturating_mul(BW_UNIT) / rtt_us;
        self.pacing_rate = bytes_per_second(bw, HIGH_GAIN, self.smss);
    }

    /// bbr_set_cwnd.
    fn set_cwnd(&mut self, feedback: &Feedback, bw: u64) {
        if feedback.delivered > 0 {
            let cwnd = self.next_cwnd(feedback, bw);
            self.window.set_cwnd(cwnd);
        }
        if self.mode == Mode::ProbeRtt {
            let cwnd = self.window.cwnd().min(MIN_CWND);
            self.window.set_cwnd(cwnd);
        }
    }

    fn next_cwnd(&mut self, feedback: &Feedback, bw: u64) -> u64 {
        let acked = feedback.delivered;
        let mut cwnd = self.window.cwnd();
        if feedback.losses > 0 {
            cwnd = cwnd.saturating_sub(feedback.losses).max(1);
        }
        let last = core::mem::replace(&mut self.recovery.last_phase, feedback.phase);
        if feedback.phase == Phase::Recovery && last != Phase::Recovery {
            self.recovery.is_conserving = true;
            self.round_end = self.rate.delivered();
            cwnd = feedback.in_flight + acked;
        } else if last != Phase::Open && feedback.phase == Phase::Open {
            cwnd = cwnd.max(self.recovery.prior_cwnd);
            self.recovery.is_conserving = false;
        }
        if self.recovery.is_conserving {
            return cwnd.max(feedback.in_flight + acked);
        }
        let target = self.quantized(self.bdp(bw, self.cwnd_gain) + self.excess(bw));
        if self.full_pipe.reached {
            cwnd = (cwnd + acked).min(target);
        } else if cwnd < target || self.rate.delivered() < INIT_CWND {
            cwnd += acked;
        }
        cwnd.max(MIN_CWND)
    }

    /// bbr_ack_aggregation_cwnd: what lumps of acknowledgements ask for, at most 100 ms of it.
    fn excess(&self, bw: u64) -> u64 {
        if !self.full_pipe.reached {
            return 0;
        }
        self.aggregation.excess().min(bw.saturating_mul(LONGEST_EXCESS_US) / BW_UNIT)
    }

    /// bbr_bdp: `gain` times what fills the path, rounded up.
    fn bdp(&self, bw: u64, gain: u64) -> u64 {
        let Some(min_rtt) = self.min_rtt else { return INIT_CWND };
        let product = u128::from(bw) * u128::from(min_rtt.as_micros()) * u128::from(gain) / u128::from(UNIT);
        u64::try_from(product.div_ceil(u128::from(BW_UNIT))).unwrap_or(u64::MAX)
    }

    /// bbr_quantization_budget: room for three of pacing's bursts, an even number, and a little more while probing.
    fn quantized(&self, cwnd: u64) -> u64 {
        let cwnd = cwnd.saturating_add(3 * self.burst_goal());
        let cwnd = cwnd.saturating_add(cwnd % 2);
        let is_probing = self.mode == Mode::ProbeBw && self.cycle.index == 0;
        cwnd.saturating_add(if is_probing { 2 } else { 0 })
    }

    fn inflight(&self, bw: u64, gain: u64) -> u64 {
        self.quantized(self.bdp(bw, gain))
    }

    /// bbr_tso_segs_goal: a millisecond's worth.
    fn burst_goal(&self) -> u64 {
        let bytes = (self.pacing_rate >> PACING_SHIFT).min(LARGEST_BURST);
        (bytes / u64::from(self.smss)).max(u64::from(self.least_burst())).min(0x7f)
    }

    /// bbr_packets_in_net_at_edt: of `in_flight`, what will still be under way when the next segment may leave.
    fn in_network_at_departure(&self, in_flight: u64, feedback: &Feedback) -> u64 {
        let wait_us = feedback.departs.since(feedback.now).as_micros();
        let delivered = u128::from(self.bw()) * u128::from(wait_us) / u128::from(BW_UNIT);
        let burst = if self.pacing_gain > UNIT { self.burst_goal() } else { 0 };
        (in_flight + burst).saturating_sub(u64::try_from(delivered).unwrap_or(u64::MAX))
    }

    /// bbr_save_cwnd.
    fn save_cwnd(&mut self) {
        let is_good = self.recovery.last_phase == Phase::Open && self.mode != Mode::ProbeRtt;
        let cwnd = self.window.cwnd();
        self.recovery.prior_cwnd = if is_good { cwnd } else { cwnd.max(self.recovery.prior_cwnd) };
    }
}

impl CongestionControl for Bbr {
    fn allowance(&self) -> Allowance {
        self.window.allowance()
    }

    fn window(&self) -> &Window {
        &self.window
    }

    fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    /// Growth is in [`Self::on_feedback`].
    fn on_ack(&mut self, _ack: Ack) {}

    fn on_loss(&mut self, _flight_size: u64) {
        self.save_cwnd();
    }

    /// bbr_ssthresh.
    fn reduce(&mut self, _flight_size: u64) {
        self.save_cwnd();
    }

    fn on_duplicate_ack(&mut self) {
        self.window.inflate();
    }

    fn on_recovery_ack(&mut self, _ack: Ack, full: bool) -> RecoveryAck {
        if full { RecoveryAck::Leave } else { RecoveryAck::Stay }
    }

    fn may_recover_again(&self) -> bool {
        false
    }

    /// bbr_ssthresh, bbr_set_state: as if a round had ended with a loss.
    fn on_rto(&mut self, _flight_size: u64, first: bool) {
        if first {
            self.save_cwnd();
        }
        self.recovery.last_phase = Phase::Loss;
        self.full_pipe.bw = 0;
        self.round_start = true;
        self.look_for_policer(1, false);
        self.window.collapse();
    }

    /// tcp_slow_start_after_idle_check leaves BBR's window alone: pacing keeps a restart from being a burst.
    fn on_idle(&mut self, _idle: Duration, _rto: Duration) {}

    /// bbr_cwnd_event: pace at the bandwidth after a pause of the application.
    fn on_flight_start(&mut self, _idle: Duration, now: Instant) {
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

    fn steers(&self) -> bool {
        true
    }

    /// bbr_init.
    fn begin(&mut self, outset: Outset) {
        self.smss = outset.smss.max(1);
        self.min_rtt = outset.min_rtt;
        self.min_rtt_at = outset.now;
        self.aggregation.restart(micros(outset.now));
        self.policer.reset(self.totals());
        self.begin_pacing(outset.srtt);
    }

    fn on_app_limited(&mut self, in_flight: u64) {
        self.rate.limit(in_flight);
    }

    fn on_departure(&mut self, departed: Departed) {
        self.rate.on_sent(departed.end, departed.is_alone, departed.now);
    }

    /// bbr_main.
    fn on_feedback(&mut self, feedback: &Feedback) {
        let (delivered, snd_una) = (feedback.delivered, feedback.snd_una);
        let sample = self.rate.on_ack(delivered, feedback.newest, snd_una, feedback.min_rtt, feedback.now);
        self.lost += feedback.losses;
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

    /// bbr_undo_cwnd.
    fn on_undo(&mut self) {
        (self.full_pipe.bw, self.full_pipe.rounds) = (0, 0);
        self.policer.reset(self.totals());
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps(self.pacing_rate.saturating_mul(8)))
    }

    fn bottleneck_rate(&self) -> Option<Rate> {
        let bytes = u128::from(self.bw()) * u128::from(self.smss) * 1_000_000 / u128::from(BW_UNIT);
        Some(Rate::from_bps(u64::try_from(bytes * 8).unwrap_or(u64::MAX)))
    }

    /// bbr_min_tso_segs.
    fn least_burst(&self) -> u32 {
        if self.pacing_rate < SLOW_PACING { 1 } else { 2 }
    }

    /// bbr_sndbuf_expand.
    fn buffered_windows(&self) -> u64 {
        3
    }
}

/// The pacing rate for a bandwidth and a gain: one percent less, so that queues drain (bbr_rate_bytes_per_sec).
fn bytes_per_second(bw: u64, gain: u64, smss: u32) -> u64 {
    let scaled = u128::from(bw) * u128::from(smss) * u128::from(gain) / u128::from(UNIT);
    let rate = scaled * (1_000_000 / 100 * (100 - PACING_MARGIN_PERCENT)) / u128::from(BW_UNIT);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// BW_UNIT: 2^24.
const BW_UNIT: u64 = 1 << 24;
/// BBR_UNIT.
const UNIT: u64 = 256;
/// bbr_high_gain: 2 / ln 2, the least that doubles the rate each round (draft §4.3.2.1).
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
/// bbr_drain_gain: its inverse.
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// bbr_cwnd_gain.
const CWND_GAIN: u64 = UNIT * 2;
/// bbr_pacing_gain: probe, drain, and cruise for six round trips.
const PACING_GAINS: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// bbr_cycle_rand.
const RANDOM_PHASES: u64 = 7;
/// bbr_bw_rtts: a gain cycle and two rounds.
const BW_ROUNDS: u64 = 10;
/// bbr_min_rtt_win_sec.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// bbr_probe_rtt_mode_ms.
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// bbr_cwnd_min_target.
const MIN_CWND: u64 = 4;
/// bbr_full_bw_thresh: 1.25.
const FULL_BW_THRESHOLD: u64 = UNIT * 5 / 4;
/// bbr_full_bw_cnt.
const FULL_BW_ROUNDS: u64 = 3;
/// bbr_pacing_margin_percent.
const PACING_MARGIN_PERCENT: u128 = 1;
/// bbr_extra_acked_max_us: 100 ms.
const LONGEST_EXCESS_US: u64 = 100_000;
/// TCP_INIT_CWND.
const INIT_CWND: u64 = 10;
/// bbr_min_tso_rate, 1.2 Mbit/s, in bytes a second.
const SLOW_PACING: u64 = 150_000;
/// sk_pacing_shift: a burst is 2^-10 s worth.
const PACING_SHIFT: u32 = 10;
/// GSO_MAX_SIZE - 1 - MAX_TCP_HEADER.
const LARGEST_BURST: u64 = 65_536 - 1 - 320;

#[cfg(test)]
mod tests;

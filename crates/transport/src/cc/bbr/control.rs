//! What BBR controls (draft §4.2): the pacing rate, the bursts that it allows, and `cwnd`.

use talkpath_units::Duration;

use super::{BW_UNIT, Bbr, Feedback, HIGH_GAIN, MIN_CWND, Mode, PACING_GAINS, Phase, RateBased, UNIT};

impl Bbr {
    /// The gains of pacing and window follow from the mode (bbr_update_gains).
    pub(super) fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.policer.rate().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBw => (PACING_GAINS[self.cycle.index], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    /// The pacing rate follows from the bandwidth. In startup it never falls (bbr_set_pacing_rate).
    pub(super) fn set_pacing_rate(&mut self, bw: u64, gain: u64, srtt: Option<Duration>) {
        if !self.has_seen_rtt && srtt.is_some() {
            self.begin_pacing(srtt);
        }
        let rate = bytes_per_second(bw, gain, self.smss);
        if self.full_pipe.reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// A window each round trip, or each millisecond before one was measured (bbr_init_pacing_rate_from_rtt).
    pub(super) fn begin_pacing(&mut self, srtt: Option<Duration>) {
        self.has_seen_rtt |= srtt.is_some();
        let rtt_us = srtt.map_or(1000, Duration::as_micros).max(1);
        let bw = self.window.cwnd().saturating_mul(BW_UNIT) / rtt_us;
        self.pacing_rate = bytes_per_second(bw, HIGH_GAIN, self.smss);
    }

    /// `cwnd` follows what was delivered, up to the target; in PROBE_RTT it is four segments at most
    /// (bbr_set_cwnd).
    pub(super) fn set_cwnd(&mut self, feedback: &Feedback, bw: u64) {
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

    /// What bursts of acknowledgements add to the window, at most 100 ms worth of bandwidth
    /// (bbr_ack_aggregation_cwnd).
    fn excess(&self, bw: u64) -> u64 {
        if !self.full_pipe.reached {
            return 0;
        }
        self.aggregation.excess().min(bw.saturating_mul(MAX_EXCESS_US) / BW_UNIT)
    }

    /// `gain` times what fills the path, rounded up (bbr_bdp).
    fn bdp(&self, bw: u64, gain: u64) -> u64 {
        let Some(min_rtt) = self.min_rtt else { return INIT_CWND };
        let product = u128::from(bw) * u128::from(min_rtt.as_micros()) * u128::from(gain) / u128::from(UNIT);
        u64::try_from(product.div_ceil(u128::from(BW_UNIT))).unwrap_or(u64::MAX)
    }

    /// Room for three of pacing's bursts, an even number, and two segments more while probing
    /// (bbr_quantization_budget).
    fn quantized(&self, cwnd: u64) -> u64 {
        let cwnd = cwnd.saturating_add(3 * self.burst_goal());
        let cwnd = cwnd.saturating_add(cwnd % 2);
        let is_probing = self.mode == Mode::ProbeBw && self.cycle.index == 0;
        cwnd.saturating_add(if is_probing { 2 } else { 0 })
    }

    pub(super) fn inflight(&self, bw: u64, gain: u64) -> u64 {
        self.quantized(self.bdp(bw, gain))
    }

    /// The segments of a burst: a millisecond's worth (bbr_tso_segs_goal).
    fn burst_goal(&self) -> u64 {
        let bytes = (self.pacing_rate >> PACING_SHIFT).min(MAX_BURST);
        (bytes / u64::from(self.smss)).max(u64::from(self.min_burst())).min(0x7f)
    }

    /// How many of `in_flight` will still be in the network when the next segment may leave
    /// (bbr_packets_in_net_at_edt).
    pub(super) fn in_network_at_departure(&self, in_flight: u64, feedback: &Feedback) -> u64 {
        let wait_us = feedback.departs.since(feedback.now).as_micros();
        let delivered = u128::from(self.bw()) * u128::from(wait_us) / u128::from(BW_UNIT);
        let burst = if self.pacing_gain > UNIT { self.burst_goal() } else { 0 };
        (in_flight + burst).saturating_sub(u64::try_from(delivered).unwrap_or(u64::MAX))
    }

    /// The window is remembered, to be restored after recovery or PROBE_RTT (bbr_save_cwnd).
    pub(super) fn save_cwnd(&mut self) {
        let is_good = self.recovery.last_phase == Phase::Open && self.mode != Mode::ProbeRtt;
        let cwnd = self.window.cwnd();
        self.recovery.prior_cwnd = if is_good { cwnd } else { cwnd.max(self.recovery.prior_cwnd) };
    }
}

/// The pacing rate for a bandwidth and a gain: one percent less, so that queues drain
/// (bbr_rate_bytes_per_sec).
pub(super) fn bytes_per_second(bw: u64, gain: u64, smss: u32) -> u64 {
    let scaled = u128::from(bw) * u128::from(smss) * u128::from(gain) / u128::from(UNIT);
    let rate = scaled * (1_000_000 / 100 * (100 - PACING_MARGIN_PERCENT)) / u128::from(BW_UNIT);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// bbr_drain_gain: its inverse.
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// bbr_cwnd_gain.
const CWND_GAIN: u64 = UNIT * 2;
/// bbr_pacing_margin_percent.
const PACING_MARGIN_PERCENT: u128 = 1;
/// bbr_extra_acked_max_us: 100 ms.
const MAX_EXCESS_US: u64 = 100_000;
/// TCP_INIT_CWND.
const INIT_CWND: u64 = 10;
/// sk_pacing_shift: a burst is 2^-10 s worth.
const PACING_SHIFT: u32 = 10;
/// GSO_MAX_SIZE - 1 - MAX_TCP_HEADER.
const MAX_BURST: u64 = 65_536 - 1 - 320;

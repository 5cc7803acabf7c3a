//! The three controls of BBR (draft §4.2): the pacing rate, the size of a burst, and `cwnd`.
//!
//! ```text
//!   pacing rate = pacing_gain · bandwidth · 0.99
//!   burst       = what the pacing rate sends in 2^-10 s
//!   target      = cwnd_gain · bandwidth · min_rtt + excess + 3 bursts,   rounded up to an even number
//!   cwnd        grows by the segments that were delivered, up to the target
//! ```
//!
//! `excess` is what bursts of acknowledgements add ([`super::aggregation`]). Units: `cwnd`, `target` and
//! `in_flight` are in segments, a bandwidth `bw` is in segments a microsecond times [`BW_UNIT`], a gain is in
//! 1/[`UNIT`], and the pacing rate is in bytes a second.

use talkpath_units::Duration;

use super::{BW_UNIT, Bbr, Feedback, HIGH_GAIN, MIN_CWND, Mode, PACING_GAINS, Phase, RateBased, UNIT};

impl Bbr {
    /// Sets the gains of the pacing rate and of `cwnd` for the current mode (bbr_update_gains).
    pub(super) fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.policer.rate().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBw => (PACING_GAINS[self.cycle.index], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    /// Sets the pacing rate to `gain` times the bandwidth `bw`. Until the pipe is known to be full, the rate
    /// never falls (bbr_set_pacing_rate).
    pub(super) fn set_pacing_rate(&mut self, bw: u64, gain: u64, srtt: Option<Duration>) {
        if !self.has_seen_rtt && srtt.is_some() {
            self.begin_pacing(srtt);
        }
        let rate = bytes_per_second(bw, gain, self.smss);
        if self.full_pipe.reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// Sets the first pacing rate: [`HIGH_GAIN`] times one window in each round trip. Before the first
    /// measurement, a round trip of 1 ms is assumed (bbr_init_pacing_rate_from_rtt).
    pub(super) fn begin_pacing(&mut self, srtt: Option<Duration>) {
        self.has_seen_rtt |= srtt.is_some();
        let rtt_us = srtt.map_or(1000, Duration::as_micros).max(1);
        let bw = self.window.cwnd().saturating_mul(BW_UNIT) / rtt_us;
        self.pacing_rate = bytes_per_second(bw, HIGH_GAIN, self.smss);
    }

    /// Sets `cwnd` after an acknowledgement. In PROBE_RTT `cwnd` is at most four segments (bbr_set_cwnd).
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

    /// Returns the window after an acknowledgement of `feedback.delivered` segments.
    fn next_cwnd(&mut self, feedback: &Feedback, bw: u64) -> u64 {
        let cwnd = self.cwnd_for_recovery(feedback);
        let acked = feedback.delivered;
        if self.recovery.is_conserving {
            return cwnd.max(feedback.in_flight + acked);
        }
        let target = self.quantized(self.bdp(bw, self.cwnd_gain) + self.excess(bw));
        let grown = if self.full_pipe.reached {
            (cwnd + acked).min(target)
        } else if cwnd < target || self.rate.delivered() < INIT_CWND {
            cwnd + acked
        } else {
            cwnd
        };
        grown.max(MIN_CWND)
    }

    /// Returns the window after the changes that loss recovery asks for, and begins or ends packet
    /// conservation (bbr_set_cwnd_to_recover_or_restore):
    ///
    /// 1. Each new loss takes one segment from the window.
    /// 2. At the start of fast recovery, one segment leaves for each segment that is delivered. This *packet
    ///    conservation* lasts for one round, which begins now.
    /// 3. At the end of a recovery, the window is again at least as large as before the recovery.
    fn cwnd_for_recovery(&mut self, feedback: &Feedback) -> u64 {
        let mut cwnd = self.window.cwnd();
        if feedback.losses > 0 {
            cwnd = cwnd.saturating_sub(feedback.losses).max(1);
        }
        let last_phase = core::mem::replace(&mut self.recovery.last_phase, feedback.phase);
        if feedback.phase == Phase::Recovery && last_phase != Phase::Recovery {
            self.recovery.is_conserving = true;
            self.round_end = self.rate.delivered();
            cwnd = feedback.in_flight + feedback.delivered;
        } else if last_phase != Phase::Open && feedback.phase == Phase::Open {
            self.recovery.is_conserving = false;
            cwnd = cwnd.max(self.recovery.prior_cwnd);
        }
        cwnd
    }

    /// Returns the segments that bursts of acknowledgements add to the window: at most what the bandwidth
    /// delivers in 100 ms (bbr_ack_aggregation_cwnd).
    fn excess(&self, bw: u64) -> u64 {
        if !self.full_pipe.reached {
            return 0;
        }
        self.aggregation.excess().min(bw.saturating_mul(MAX_EXCESS_US) / BW_UNIT)
    }

    /// Returns `gain` times the bandwidth-delay product, in segments, rounded up. Before the first round trip
    /// it is the initial window (bbr_bdp).
    fn bdp(&self, bw: u64, gain: u64) -> u64 {
        let Some(min_rtt) = self.min_rtt else { return INIT_CWND };
        let product = u128::from(bw) * u128::from(min_rtt.as_micros()) * u128::from(gain) / u128::from(UNIT);
        u64::try_from(product.div_ceil(u128::from(BW_UNIT))).unwrap_or(u64::MAX)
    }

    /// Adds room for three bursts to `cwnd`, and rounds the sum up to an even number. While PROBE_BW probes
    /// for more bandwidth, two more segments are added (bbr_quantization_budget).
    fn quantized(&self, cwnd: u64) -> u64 {
        let cwnd = cwnd.saturating_add(3 * self.burst_goal());
        let cwnd = cwnd.saturating_add(cwnd % 2);
        let is_probing = self.mode == Mode::ProbeBw && self.cycle.index == 0;
        cwnd.saturating_add(if is_probing { 2 } else { 0 })
    }

    /// Returns the number of segments that are in flight at `gain` times the bandwidth (bbr_inflight).
    pub(super) fn inflight(&self, bw: u64, gain: u64) -> u64 {
        self.quantized(self.bdp(bw, gain))
    }

    /// Returns the number of segments in a burst: what the pacing rate sends in 2^-10 s (bbr_tso_segs_goal).
    fn burst_goal(&self) -> u64 {
        let bytes = (self.pacing_rate >> PACING_SHIFT).min(MAX_BURST);
        (bytes / u64::from(self.smss)).max(u64::from(self.min_burst())).min(MAX_BURST_SEGMENTS)
    }

    /// Returns how many segments will be in the network when the next burst leaves: those `in_flight` now,
    /// less those that are delivered until then, and the burst itself if the gain is above 1
    /// (bbr_packets_in_net_at_edt).
    pub(super) fn in_network_at_departure(&self, in_flight: u64, feedback: &Feedback) -> u64 {
        let wait_us = feedback.departs.since(feedback.now).as_micros();
        let delivered = u128::from(self.bw()) * u128::from(wait_us) / u128::from(BW_UNIT);
        let burst = if self.pacing_gain > UNIT { self.burst_goal() } else { 0 };
        (in_flight + burst).saturating_sub(u64::try_from(delivered).unwrap_or(u64::MAX))
    }

    /// Saves the window before a recovery or PROBE_RTT reduces it, so that it can be restored afterwards. If
    /// it is already reduced, the window that was saved before is kept if it is larger (bbr_save_cwnd).
    pub(super) fn save_cwnd(&mut self) {
        let is_reduced = self.recovery.last_phase != Phase::Open || self.mode == Mode::ProbeRtt;
        let cwnd = self.window.cwnd();
        self.recovery.prior_cwnd = if is_reduced { cwnd.max(self.recovery.prior_cwnd) } else { cwnd };
    }
}

/// Returns the pacing rate in bytes a second: `gain` times the bandwidth `bw`, less 1 %, so that queues drain
/// (bbr_rate_bytes_per_sec).
pub(super) fn bytes_per_second(bw: u64, gain: u64, smss: u32) -> u64 {
    let scaled = u128::from(bw) * u128::from(smss) * u128::from(gain) / u128::from(UNIT);
    let rate = scaled * (1_000_000 / 100 * (100 - PACING_MARGIN_PERCENT)) / u128::from(BW_UNIT);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// The pacing gain in DRAIN, the inverse of the gain of 2.885 in STARTUP, so that the queue of STARTUP drains
/// (bbr_drain_gain).
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// The gain of `cwnd` in PROBE_BW: two bandwidth-delay products (bbr_cwnd_gain).
const CWND_GAIN: u64 = UNIT * 2;
/// The pacing rate is this many per cent below the bandwidth (bbr_pacing_margin_percent).
const PACING_MARGIN_PERCENT: u128 = 1;
/// The excess is at most what the bandwidth delivers in this time, us (bbr_extra_acked_max_us).
const MAX_EXCESS_US: u64 = 100_000;
/// The initial window in segments (TCP_INIT_CWND).
const INIT_CWND: u64 = 10;
/// A burst is what the pacing rate sends in 2^-10 s (sk_pacing_shift).
const PACING_SHIFT: u32 = 10;
/// The largest burst in bytes (GSO_MAX_SIZE - 1 - MAX_TCP_HEADER).
const MAX_BURST: u64 = 65_536 - 1 - 320;
/// The largest burst in segments (bbr_tso_segs_goal).
const MAX_BURST_SEGMENTS: u64 = 0x7f;

//! BBR's model of the path (draft §4.1): how fast the bottleneck delivers, and the round trip without a
//! queue.
//!
//! A round is a round trip by count: it ends when a segment is delivered that was sent after the round began.

use talkpath_units::Duration;

use super::policer::{Evidence, Finding, Totals};
use super::{BW_UNIT, Bbr, Feedback, Mode, ProbeRtt, RateSample, UNIT};

impl Bbr {
    /// The bandwidth from which rate and window follow (Linux: bbr_bw).
    pub(super) fn bw(&self) -> u64 {
        self.policer.rate().unwrap_or_else(|| self.bandwidth.get())
    }

    /// Counts rounds, and adds the sample to the bandwidth filter. A sample that the application limited
    /// counts only if it is not below the bandwidth (Linux: bbr_update_bw).
    pub(super) fn update_bandwidth(&mut self, sample: Option<RateSample>, losses: u64) {
        self.is_round_start = false;
        let Some(sample) = sample else { return };
        if sample.prior_delivered >= self.round_end {
            self.round_end = self.rate.delivered();
            self.rounds += 1;
            self.is_round_start = true;
            self.recovery.is_conserving = false;
        }
        self.look_for_policer(losses, sample.is_app_limited);
        let bw = sample.delivered.saturating_mul(BW_UNIT) / sample.interval_us;
        if !sample.is_app_limited || bw >= self.bandwidth.get() {
            self.bandwidth.update(BW_ROUNDS, self.rounds, bw);
        }
    }

    pub(super) fn look_for_policer(&mut self, losses: u64, is_app_limited: bool) {
        let finding = self.policer.on_ack(Evidence {
            totals: self.totals(),
            has_losses: losses > 0,
            is_app_limited,
            is_round_start: self.is_round_start,
            is_probing_bw: self.mode == Mode::ProbeBw,
            smss: self.smss,
        });
        match finding {
            Finding::Nothing => {}
            Finding::Policed => self.pacing_gain = UNIT,
            Finding::Over => self.enter_probe_bw(),
        }
    }

    pub(super) const fn totals(&self) -> Totals {
        Totals { at_ms: self.rate.delivered_at() / 1000, delivered: self.rate.delivered(), lost: self.lost }
    }

    /// Updates the shortest round trip. If it is older than 10 s, PROBE_RTT begins (Linux:
    /// bbr_update_min_rtt). A round trip of the same length does not postpone PROBE_RTT (since Linux 5.10).
    /// Otherwise PROBE_RTT would never begin on a path of constant delay.
    pub(super) fn update_min_rtt(&mut self, feedback: &Feedback, has_delivered: bool) {
        let now = feedback.now;
        let is_expired = now > self.min_rtt_at.saturating_add(MIN_RTT_WINDOW);
        if let Some(rtt) = feedback.rtt.map(whole_micros)
            && (self.min_rtt.is_none_or(|shortest| rtt < shortest)
                || (is_expired && !feedback.is_ack_delayed))
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
}

/// A round trip in whole microseconds, as Linux counts it.
pub(super) const fn whole_micros(rtt: Duration) -> Duration {
    Duration::from_micros(rtt.as_micros())
}

/// The window of the bandwidth filter, in rounds: a gain cycle and two rounds (Linux: bbr_bw_rtts).
const BW_ROUNDS: u64 = 10;
/// The time after which the shortest round trip is too old (Linux: bbr_min_rtt_win_sec).
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);

//! The states (draft §4.3): startup until the pipe is full, the drain after it, the gain cycle of PROBE_BW,
//! and PROBE_RTT.

use talkpath_units::{Duration, Instant};

use super::{Bbr, Feedback, MIN_CWND, Mode, PACING_GAINS, ProbeRtt, UNIT};

impl Bbr {
    /// The next phase of the gain cycle begins when this one is over (bbr_update_cycle_phase).
    pub(super) fn update_cycle(&mut self, feedback: &Feedback) {
        if self.mode == Mode::ProbeBw && self.is_phase_over(feedback) {
            self.advance_cycle();
        }
    }

    /// A phase lasts a round trip; longer while probing has not filled the pipe, less once the queue is empty
    /// (bbr_is_next_cycle_phase).
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

    /// The cycle begins in any phase but the draining one (bbr_reset_probe_bw_mode).
    pub(super) fn enter_probe_bw(&mut self) {
        self.mode = Mode::ProbeBw;
        let back = (self.stream.bits() % RANDOM_PHASES) as usize;
        self.cycle.index = PACING_GAINS.len() - 1 - back;
        self.advance_cycle();
    }

    /// The pipe is full after three rounds in which the bandwidth grew by less than a quarter
    /// (bbr_check_full_bw_reached).
    pub(super) fn check_full_pipe(&mut self, is_app_limited: bool) {
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

    /// Startup ends when the pipe is full, and drain when at most a BDP is in flight (bbr_check_drain).
    pub(super) fn check_drain(&mut self, feedback: &Feedback) {
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

    pub(super) fn probe_rtt(&mut self, feedback: &Feedback) {
        // At four segments in flight the delivery rate says nothing of the path.
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

    pub(super) fn check_probe_rtt_done(&mut self, now: Instant) {
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
}

/// bbr_cycle_rand.
const RANDOM_PHASES: u64 = 7;
/// bbr_full_bw_thresh: 1.25.
const FULL_BW_THRESHOLD: u64 = UNIT * 5 / 4;
/// bbr_full_bw_cnt.
const FULL_BW_ROUNDS: u64 = 3;
/// bbr_probe_rtt_mode_ms.
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);

//! The states of BBR (draft §4.3): STARTUP until the pipe is full, then DRAIN, the gain cycle of PROBE_BW,
//! and PROBE_RTT. The picture is in the parent module.

use talkpath_units::{Duration, Instant};

use super::{Bbr, Feedback, MIN_CWND, Mode, PACING_GAINS, ProbeRtt, UNIT};

impl Bbr {
    /// Begins the next phase of the gain cycle if this one is over (Linux: bbr_update_cycle_phase).
    pub(super) fn update_cycle(&mut self, feedback: &Feedback) {
        if self.mode == Mode::ProbeBw && self.is_phase_over(feedback) {
            self.advance_cycle();
        }
    }

    /// True if the phase of the gain cycle is over. A phase lasts for a round trip. Probing lasts longer
    /// until it has filled the pipe or caused a loss. Draining ends early if the queue is empty (Linux:
    /// bbr_is_next_cycle_phase).
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

    /// Enters PROBE_BW in a random phase, but not in the draining one (Linux: bbr_reset_probe_bw_mode).
    pub(super) fn enter_probe_bw(&mut self) {
        self.mode = Mode::ProbeBw;
        let phases_before_last = (self.stream.bits() % RANDOM_PHASES) as usize;
        self.cycle.index = PACING_GAINS.len() - 1 - phases_before_last;
        self.advance_cycle();
    }

    /// Finds out whether the pipe is full: for three rounds the bandwidth has not grown by a quarter (Linux:
    /// bbr_check_full_bw_reached).
    pub(super) fn check_full_pipe(&mut self, is_app_limited: bool) {
        let full = &mut self.full_pipe;
        if full.reached || !self.is_round_start || is_app_limited {
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

    /// Ends STARTUP when the pipe is full, and DRAIN when at most a BDP is in flight (Linux:
    /// bbr_check_drain).
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

    /// Waits until at most four segments are in flight, and then for 200 ms and a round.
    pub(super) fn probe_rtt(&mut self, feedback: &Feedback) {
        // With four segments in flight the delivery rate says nothing about the path.
        self.rate.limit(feedback.in_flight);
        if self.probe_rtt.done_at.is_none() {
            if feedback.in_flight <= MIN_CWND {
                let done_at = Some(feedback.now.saturating_add(PROBE_RTT_TIME));
                self.probe_rtt = ProbeRtt { done_at, round_done: false };
                self.round_end = self.rate.delivered();
            }
            return;
        }
        self.probe_rtt.round_done |= self.is_round_start;
        if self.probe_rtt.round_done {
            self.check_probe_rtt_done(feedback.now);
        }
    }

    /// Leaves PROBE_RTT if its 200 ms are over.
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

/// The number of phases in which PROBE_BW may begin (Linux: bbr_cycle_rand).
const RANDOM_PHASES: u64 = 7;
/// The growth of the bandwidth, as a gain, that shows that the pipe is not full (Linux: bbr_full_bw_thresh).
const FULL_BW_THRESHOLD: u64 = UNIT * 5 / 4;
/// The number of rounds without such growth after which the pipe is full (Linux: bbr_full_bw_cnt).
const FULL_BW_ROUNDS: u64 = 3;
/// The time for which PROBE_RTT keeps four segments in flight (Linux: bbr_probe_rtt_mode_ms).
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);

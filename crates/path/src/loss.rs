//! What the wire eats. A lost packet has waited and was serialised: it took the room and the time of any
//! other.
//!
//! Gilbert and Elliott's two states (Gilbert, *Capacity of a burst-noise channel*, 1960; Elliott, *Estimates
//! of error rates for codes on burst-noise channels*, 1963) begin in the chain's stationary distribution, bad
//! with probability p / (p + r), so that short runs expect the same loss rate as long ones. A packet meets
//! the present state, then the state steps. With loss only and always in the bad state, the loss rate is p /
//! (p + r) and a run of losses has mean length 1 / r.
//!
//! In time, the chain steps at each multiple of `step`, whether packets come or not, so bad times eat more
//! packets of a faster flow. The state after k steps is drawn at once: from a state s it is bad with
//! probability π + (s - π) (1 - p - r)^k, where π = p / (p + r) and s is 1 if the state was bad and else 0.
//! The mean length of a bad time is `step` / r.
//!
//! A packet that was dropped before it reached the wire moves no state. Left out: bit errors that grow with
//! the packet's size.

use talkpath_units::{Instant, Stream};

use crate::config::LossModel;

/// A loss model with its state and its stream.
#[derive(Debug)]
pub(crate) struct Loss {
    model: LossModel,
    /// Gilbert-Elliott: the state that the next packet meets.
    bad: bool,
    /// Periodic: packets since the last loss. Trace: the next packet's place. Gilbert-Elliott in time: the
    /// number of steps from the beginning of the run to the state `bad`.
    place: u64,
    stream: Stream,
}

impl Loss {
    /// The model in its first state.
    pub(crate) fn new(model: &LossModel, mut stream: Stream) -> Self {
        Self { model: model.clone(), bad: begins_bad(model, &mut stream), place: 0, stream }
    }

    /// Replaces the model. The new model begins in its first state, and draws from the same stream.
    pub(crate) fn set(&mut self, model: &LossModel) {
        self.bad = begins_bad(model, &mut self.stream);
        self.model = model.clone();
        self.place = 0;
    }

    /// Draws whether the wire loses the next packet, whose last bit is on the wire at `at`.
    #[inline]
    pub(crate) fn loses_next(&mut self, at: Instant) -> bool {
        match self.model {
            LossModel::None => false,
            LossModel::Bernoulli { rate } => self.stream.chance(rate),
            LossModel::GilbertElliott { p, r, loss_bad, loss_good } => {
                let (loss, step) = if self.bad { (loss_bad, r) } else { (loss_good, p) };
                // Two draws a packet, whatever the state is.
                let lost = self.stream.chance(loss);
                self.bad ^= self.stream.chance(step);
                lost
            }
            LossModel::GilbertElliottInTime { step, p, r, loss_bad, loss_good } => {
                let steps = at.as_nanos() / step.as_nanos().max(1);
                let passed = steps.saturating_sub(self.place);
                if passed > 0 && p + r > 0.0 {
                    let (mean, state) = (p / (p + r), f64::from(u8::from(self.bad)));
                    // As a float because libm has no power with an integer; a run has fewer than 2^53 steps.
                    let kept = libm::pow(1.0 - p - r, passed as f64);
                    self.bad = self.stream.chance(mean + (state - mean) * kept);
                }
                self.place = steps.max(self.place);
                self.stream.chance(if self.bad { loss_bad } else { loss_good })
            }
            LossModel::Periodic { period } => {
                self.place += 1;
                let lost = self.place == period;
                if lost {
                    self.place = 0;
                }
                lost
            }
            LossModel::Trace(ref trace) => {
                let marks = trace.marks();
                let lost = marks.get(self.place as usize).copied().unwrap_or(false);
                self.place = if self.place + 1 >= marks.len() as u64 { 0 } else { self.place + 1 };
                lost
            }
        }
    }
}

/// Draws whether a Gilbert-Elliott model begins in its bad state. Other models draw nothing.
fn begins_bad(model: &LossModel, stream: &mut Stream) -> bool {
    match *model {
        // With neither transition possible any distribution is stationary; it begins, and stays, good.
        LossModel::GilbertElliott { p, r, .. } | LossModel::GilbertElliottInTime { p, r, .. } => {
            stream.chance(if p > 0.0 { p / (p + r) } else { 0.0 })
        }
        LossModel::None | LossModel::Bernoulli { .. } | LossModel::Periodic { .. } | LossModel::Trace(_) => {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::{Duration, Seed};

    use super::*;

    fn losses(model: &LossModel, n: usize) -> Vec<bool> {
        let mut loss = Loss::new(model, Seed::new(3).stream("link/x/loss"));
        (0..n).map(|_| loss.loses_next(Instant::ZERO)).collect()
    }

    #[test]
    fn periodic_loss_eats_every_period_th_packet_counted_from_one() {
        let lost = losses(&LossModel::Periodic { period: 4 }, 12);
        let numbers: Vec<usize> = (1..=12).filter(|number| lost[number - 1]).collect();
        assert_eq!(numbers, [4, 8, 12]);
        assert!(losses(&LossModel::Periodic { period: 1 }, 5).iter().all(|&lost| lost));
    }

    #[test]
    fn a_trace_eats_what_it_marks_and_repeats() {
        let lost = losses(&LossModel::Trace("011".parse().expect("a good trace")), 7);
        assert_eq!(lost, [false, true, true, false, true, true, false]);
    }

    #[test]
    fn a_chain_that_cannot_leave_the_good_state_loses_only_there() {
        let stuck = |loss_good| LossModel::GilbertElliott { p: 0.0, r: 0.0, loss_bad: 1.0, loss_good };
        assert!(losses(&stuck(0.0), 1000).iter().all(|&lost| !lost));
        assert!(losses(&stuck(1.0), 1000).iter().all(|&lost| lost));
    }

    #[test]
    fn the_first_packet_meets_the_stationary_distribution() {
        let model = LossModel::GilbertElliott { p: 0.1, r: 0.3, loss_bad: 1.0, loss_good: 0.0 };
        let n = 20_000_u32;
        let lost = (0..n).filter(|&seed| {
            Loss::new(&model, Seed::new(u64::from(seed)).stream("link/x/loss")).loses_next(Instant::ZERO)
        });
        let rate = lost.count() as f64 / f64::from(n);
        // p/(p+r) = 1/4; binomial, four standard errors.
        assert!((rate - 0.25).abs() < 4.0 * (0.25 * 0.75 / f64::from(n)).sqrt(), "{rate}");
    }

    fn in_time(step_ms: u64, p: f64, r: f64) -> LossModel {
        let step = Duration::from_millis(step_ms);
        LossModel::GilbertElliottInTime { step, p, r, loss_bad: 1.0, loss_good: 0.0 }
    }

    #[test]
    fn in_time_a_faster_flow_loses_the_same_share_in_longer_runs() {
        // Bad for 5 steps in the mean, and for a fifth of the time.
        let (p, r) = (0.05, 0.2);
        for every_ms in [5, 20, 100] {
            let mut loss = Loss::new(&in_time(20, p, r), Seed::new(9).stream("link/x/loss"));
            let lost: Vec<bool> =
                (0..100_000).map(|n| loss.loses_next(Instant::from_millis(n * every_ms))).collect();
            let share = lost.iter().filter(|&&lost| lost).count() as f64 / lost.len() as f64;
            // The states are correlated, so the standard error is that of fewer packets: of one in each time
            // of the chain, 2 / (p + r) = 8 steps.
            let packets = 100_000.0 * f64::from(every_ms as u32).min(160.0) / 160.0;
            assert!((share - 0.2).abs() < 5.0 * (0.2 * 0.8 / packets).sqrt(), "{every_ms} ms: {share}");
            let runs = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
            let length = lost.iter().filter(|&&lost| lost).count() as f64 / runs as f64;
            // From one packet to the next the chain makes k steps (or one step in each 1/k packets).
            let stays = if every_ms < 20 {
                1.0 - r * every_ms as f64 / 20.0
            } else {
                let k = every_ms as f64 / 20.0;
                0.2 + 0.8 * (1.0 - p - r).powf(k)
            };
            let expected = 1.0 / (1.0 - stays);
            assert!((length / expected - 1.0).abs() < 0.12, "{every_ms} ms: {length}, expected {expected}");
        }
    }

    #[test]
    fn in_time_packets_of_one_step_meet_one_state() {
        let mut loss = Loss::new(&in_time(1000, 0.5, 0.5), Seed::new(2).stream("link/x/loss"));
        for step in 0..200 {
            let first = loss.loses_next(Instant::from_millis(step * 1000));
            assert!((1..10).all(|n| loss.loses_next(Instant::from_millis(step * 1000 + n * 99)) == first));
        }
    }
}

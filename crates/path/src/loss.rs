//! What the wire eats. A lost packet has waited and was serialised: it took the room and the time of any
//! other.
//!
//! Gilbert and Elliott's two states (Gilbert, *Capacity of a burst-noise channel*, 1960; Elliott, *Estimates
//! of error rates for codes on burst-noise channels*, 1963) begin in the chain's stationary distribution, bad
//! with probability p / (p + r), so that short runs expect the same loss rate as long ones. A packet meets
//! the present state, then the state steps. With loss only and always in the bad state, the loss rate is p /
//! (p + r) and a run of losses has mean length 1 / r.
//!
//! A packet that was dropped before it reached the wire moves no state. Left out: loss in time rather than in
//! packets (an outage eats more packets of a faster flow), and bit errors that grow with the packet's size.

use talkpath_units::Stream;

use crate::config::LossModel;

/// A loss model with its state and its stream.
#[derive(Debug)]
pub(crate) struct Loss {
    model: LossModel,
    /// Gilbert-Elliott: the state that the next packet meets.
    bad: bool,
    /// Periodic: packets since the last loss. Trace: the next packet's place.
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

    /// Draws whether the wire loses the next packet.
    #[inline]
    pub(crate) fn loses_next(&mut self) -> bool {
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
        LossModel::GilbertElliott { p, r, .. } => stream.chance(if p > 0.0 { p / (p + r) } else { 0.0 }),
        LossModel::None | LossModel::Bernoulli { .. } | LossModel::Periodic { .. } | LossModel::Trace(_) => {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::Seed;

    use super::*;

    fn losses(model: &LossModel, n: usize) -> Vec<bool> {
        let mut loss = Loss::new(model, Seed::new(3).stream("link/x/loss"));
        (0..n).map(|_| loss.loses_next()).collect()
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
        let lost = (0..n)
            .filter(|&seed| Loss::new(&model, Seed::new(u64::from(seed)).stream("link/x/loss")).loses_next());
        let rate = lost.count() as f64 / f64::from(n);
        // p/(p+r) = 1/4; binomial, four standard errors.
        assert!((rate - 0.25).abs() < 4.0 * (0.25 * 0.75 / f64::from(n)).sqrt(), "{rate}");
    }
}

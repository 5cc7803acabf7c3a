//! What a link is made of, as the scenario resolved it.

use talkpath_units::{Bytes, Duration, Packets, Rate};

use crate::cellular::Cellular;
use crate::damage::Damage;
use crate::framing::Framing;
use crate::packet_trace::{DelayTrace, LossTrace};
use crate::queue::{DropTail, QueueKind};
use crate::rate_trace::RateTrace;
use crate::reordering::Reordering;
use crate::token_bucket::TokenBucket;
use crate::wifi::Medium;

/// One one-way link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// How fast the serialiser puts IP packets on the wire.
    pub rate: RateModel,
    /// Propagation delay of the pipe.
    pub delay: Duration,
    /// The largest IP packet, header included, that crosses unfragmented.
    pub mtu: Bytes,
    /// What the link layer puts around each packet on the wire.
    pub framing: Framing,
    /// Where packets wait for the serialiser.
    pub queue: QueueKind,
    /// What the wire eats after serialisation.
    pub loss: LossModel,
    /// What the pipe adds to `delay`, packet by packet.
    pub jitter: DelayVariation,
    /// Drops packets before the queue that come faster than this. `None` lets all packets come.
    pub policer: Option<TokenBucket>,
    /// Lets packets wait in the queue that would leave faster than this. `None` lets them leave at `rate`.
    pub shaper: Option<TokenBucket>,
    /// Which packets the packets behind them overtake. `None` holds back no packet.
    pub reorder: Option<Reordering>,
    /// The probability that a packet which arrives is repeated, in [0, 1].
    pub duplicate: f64,
    /// Which packets the wire damages. `None` damages no packet.
    pub damage: Option<Damage>,
    /// What carries the packets. Over a Wi-Fi, `rate`, `framing` and `shaper` have no effect.
    pub medium: Medium,
    /// The cell of which the link is a user's share. It has a fixed `rate`, and `shaper` has no effect.
    /// `None` is a wire of the link's own.
    pub cellular: Option<Cellular>,
}

impl LinkConfig {
    /// Makes a link of this rate with an MTU of 1500 bytes. It has no delay, and its queue has no limit.
    /// Nothing else happens to packets.
    pub const fn bare(rate: RateModel) -> Self {
        Self {
            rate,
            delay: Duration::ZERO,
            mtu: Bytes::new(1500),
            framing: Framing::None,
            queue: QueueKind::DropTail(DropTail::of_packets(Packets::MAX)),
            loss: LossModel::None,
            jitter: DelayVariation::None,
            policer: None,
            shaper: None,
            reorder: None,
            duplicate: 0.0,
            damage: None,
            medium: Medium::Wire,
            cellular: None,
        }
    }
}

/// The serialiser's rate over time.
#[derive(Clone, Debug, PartialEq)]
pub enum RateModel {
    /// Serialisation takes no time: nothing ever waits.
    Unlimited,
    /// Always this rate.
    Fixed(Rate),
    /// As recorded, over and over.
    Trace(RateTrace),
}

/// Which packets the wire eats. Probabilities lie in [0, 1]: the scenario has checked them.
#[derive(Clone, Debug, PartialEq)]
pub enum LossModel {
    /// None.
    None,
    /// Each packet independently with probability `rate`.
    Bernoulli {
        /// Loss probability.
        rate: f64,
    },
    /// Two states (Gilbert, 1960; Elliott, 1963) with a step at each packet.
    GilbertElliott {
        /// Probability to go from good to bad.
        p: f64,
        /// Probability to go from bad to good.
        r: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
        /// Loss probability in the good state.
        loss_good: f64,
    },
    /// The same two states with a step in each `step` of time, whether packets come or not.
    GilbertElliottInTime {
        /// The time from one step to the next, above zero.
        step: Duration,
        /// Probability to go from good to bad, in one step.
        p: f64,
        /// Probability to go from bad to good, in one step.
        r: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
        /// Loss probability in the good state.
        loss_good: f64,
    },
    /// Every `period`-th packet, the first loss being packet number `period` (counted from 1).
    Periodic {
        /// Distance between two losses, in packets; at least 1.
        period: u64,
    },
    /// As recorded, over and over.
    Trace(LossTrace),
}

impl LossModel {
    /// The share of the packets that it loses over a long time.
    pub fn mean(&self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Bernoulli { rate } => *rate,
            // In a long run the chain is bad for p / (p + r) of the packets (Gilbert 1960).
            Self::GilbertElliott { p, r, loss_bad, loss_good }
            | Self::GilbertElliottInTime { p, r, loss_bad, loss_good, .. } => {
                // If the chain can never leave its first state, the good one, it stays there.
                let bad = if *p > 0.0 { p / (p + r) } else { 0.0 };
                bad * loss_bad + (1.0 - bad) * loss_good
            }
            Self::Periodic { period } => 1.0 / (*period).max(1) as f64,
            Self::Trace(trace) => trace.share(),
        }
    }
}

/// What the pipe adds to the propagation delay of each packet.
#[derive(Clone, Debug, PartialEq)]
pub enum DelayVariation {
    /// Nothing.
    None,
    /// Normal with mean 0; the whole delay never goes below 0.
    Normal {
        /// Standard deviation.
        sd: Duration,
        /// The correlation of a packet's addition with that of the packet before it, in [0, 1].
        memory: f64,
        /// Whether a packet may overtake the one before it.
        reorder: bool,
    },
    /// Uniform in [0, `max`): a host's or a slotted medium's wait.
    Uniform {
        /// The largest addition.
        max: Duration,
        /// Whether a packet may overtake the one before it.
        reorder: bool,
    },
    /// Pareto above 0 (Lomax): most packets see little, a few see much.
    Pareto {
        /// Mean addition.
        mean: Duration,
        /// Shape, above 1 so that the mean exists.
        shape: f64,
        /// Whether a packet may overtake the one before it.
        reorder: bool,
    },
    /// As recorded, over and over.
    Trace {
        /// What each packet adds.
        additions: DelayTrace,
        /// Whether a packet may overtake the one before it.
        reorder: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_loss_is_that_of_the_long_run() {
        let bursts = LossModel::GilbertElliott { p: 0.01, r: 0.19, loss_bad: 0.5, loss_good: 0.0 };
        assert!((bursts.mean() - 0.025).abs() < 1e-12);
        let good = LossModel::GilbertElliott { p: 0.0, r: 0.0, loss_bad: 1.0, loss_good: 0.25 };
        assert!((good.mean() - 0.25).abs() < 1e-12);
        assert!((LossModel::Periodic { period: 4 }.mean() - 0.25).abs() < 1e-12);
    }
}

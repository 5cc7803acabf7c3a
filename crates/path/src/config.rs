//! What a link is made of, as the scenario resolved it.

use talkpath_units::{Bytes, Duration, Packets, Rate};

use crate::{DelayTrace, LossTrace, RateTrace};

/// One one-way link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// How fast the serialiser puts IP packets on the wire.
    pub rate: RateModel,
    /// Propagation delay of the pipe.
    pub delay: Duration,
    /// The largest IP packet, header included, that crosses unfragmented.
    pub mtu: Bytes,
    /// Where packets wait for the serialiser.
    pub queue: QueueKind,
    /// What the wire eats after serialisation.
    pub loss: LossModel,
    /// What the pipe adds to `delay`, packet by packet.
    pub jitter: DelayVariation,
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

/// The discipline of the queue before the serialiser.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueKind {
    /// First in, first out; an arrival that finds no room is dropped.
    DropTail {
        /// How much may wait.
        limit: QueueLimit,
        /// Whether the packet in service counts against `limit`.
        in_service: bool,
    },
}

/// The room of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// This many packets, whatever their size.
    Packets(Packets),
    /// Packets of this many bytes in all, IP headers included.
    Bytes(Bytes),
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
    /// Every `period`-th packet, the first loss being packet number `period` (counted from 1).
    Periodic {
        /// Distance between two losses, in packets; at least 1.
        period: u64,
    },
    /// As recorded, over and over.
    Trace(LossTrace),
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

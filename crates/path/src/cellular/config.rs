//! What a user of a cell is, as the scenario resolved it.

use talkpath_units::Duration;

/// A link that is one user's share of a cell. The link's rate is what this user has in the mean while it
/// always has data, repetitions included. So the whole cell carries (`others` + 1) times as much.
#[derive(Clone, Debug, PartialEq)]
pub struct Cellular {
    /// The number of other users, which always have data.
    pub others: u32,
    /// Whose turn it is.
    pub scheduler: Scheduler,
    /// The length of a TTI, above zero.
    pub tti: Duration,
    /// How the base station learns what waits. `None` if it sees the queue.
    pub request: Option<GrantRequest>,
    /// Errors of blocks, of this user and the others alike.
    pub harq: Harq,
}

/// The rule by which the users have their turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// A TTI goes to one user: the one with the largest quotient of the rate that it can have and the rate
    /// that it has had. With equal channels that is the one who had the least, as an exponential mean.
    ProportionalFair {
        /// The time constant of the mean.
        window: Duration,
    },
    /// A TTI is shared equally between the users who have data.
    RoundRobin {
        /// The most users in one TTI, at least 1. If there are more, they take turns.
        at_once: u32,
    },
}

/// How a base station learns what waits at the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantRequest {
    /// The time between two occasions for a request, in whole TTIs. The seed draws the first.
    pub period: Duration,
    /// From the TTI of a report to the first TTI that it brings.
    pub grant: Duration,
}

/// Errors of blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Harq {
    /// The probability that a new block is not read, below 1.
    pub block_error: f64,
    /// The probability that a repeated block is not read, below 1. The receiver combines it with what it has.
    pub repeat_error: f64,
    /// From a block to its repetition.
    pub delay: Duration,
    /// The number of transmissions after which a block is given up, at least 1.
    pub attempts: u32,
    /// After this time more, RLC sends again what was given up (acknowledged mode).
    pub recovery: Duration,
}

/// The number of TTIs that `span` takes, rounded up.
pub(super) fn ttis(span: Duration, tti: Duration) -> u64 {
    span.as_nanos().div_ceil(tti.as_nanos().max(1))
}

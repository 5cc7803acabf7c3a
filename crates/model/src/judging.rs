//! What a flow is judged by, and how good is good enough.

use talkpath_units::Duration;

/// How a flow is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Judging {
    /// A workload that has neither an opinion score nor a time to come in.
    #[default]
    Unjudged,
    /// A call, by its opinion score.
    Call {
        /// When its receiver plays a frame; `None` if the scenario names no playout. The call is then judged
        /// with two receivers.
        playout: Option<Playout>,
        /// What its receiver plays where a frame is missing.
        concealment: Concealment,
        /// The least opinion score of a usable call.
        floor: f64,
    },
    /// Messages, by the share that comes in time.
    InTime {
        /// From a message's due time, with an echo to the echo; `None` leaves it to the workload: ITU-T
        /// G.114's for one on a clock, none for any other.
        deadline: Option<Duration>,
        /// Whether each message replaces those before it.
        is_state: bool,
        /// The least share in time that is usable.
        floor: f64,
    },
}

/// When the receiver of a call plays its frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Playout {
    /// After a delay that follows the network's.
    #[default]
    Adaptive,
    /// The first frame waits this long.
    Fixed(Duration),
}

/// What a receiver plays where a frame is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Concealment {
    /// Silence.
    Silence,
    /// What the codec's own concealment makes up.
    #[default]
    Concealed,
}

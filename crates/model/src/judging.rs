//! The figures by which flows are judged, with the smallest value that is good enough (*floor*).

use talkpath_units::Duration;

/// The figure by which a flow is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Judging {
    /// The flow is not judged, because its workload has neither an opinion score nor a deadline.
    #[default]
    Unjudged,
    /// A call is judged by its opinion score.
    Call {
        /// The receiver's jitter buffer.
        playout: Playout,
        /// Whether the call is also judged with receivers whose delay does not change.
        others: bool,
        /// The receiver's concealment of missing frames.
        concealment: Concealment,
        /// The smallest opinion score of a usable call.
        floor: f64,
    },
    /// Messages are judged by the share that is received in time.
    InTime {
        /// The time after a message was due within which it, or its echo, must be received. `None` is the
        /// default of the workload: the deadline of ITU-T G.114 for a clocked workload, and no deadline for
        /// any other.
        deadline: Option<Duration>,
        /// Whether each message replaces all earlier messages, as a game's state does.
        is_state: bool,
        /// The smallest share in time that is usable.
        floor: f64,
    },
}

/// The jitter buffer of a call's receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Playout {
    /// The jitter buffer of browsers, which changes its delay within speech.
    #[default]
    Adaptive,
    /// The algorithm of Ramjee et al. (1994), which sets its delay once in a talkspurt.
    Ramjee,
    /// The first frame waits for this time, and every other frame is played in the same rhythm.
    Fixed(Duration),
}

/// The sound that a receiver plays in place of a missing frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Concealment {
    /// Silence.
    Silence,
    /// The sound that the codec's concealment computes.
    #[default]
    Concealed,
}

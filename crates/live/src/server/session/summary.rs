//! The line of the server's log about a session.

use std::fmt;
use std::ops::AddAssign;

use talkpath_kernel::clock::monotonic;
use talkpath_units::counted;

use super::Session;
use crate::protocol::ControlError;

/// A session that is shorter than this cannot have measured. Before its run a client compares the clocks,
/// which takes a second.
const SHORTEST_RUN_NS: i64 = 500_000_000;

/// What a session carried in one direction.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Amount {
    messages: u64,
    /// The bytes of streams, whose messages cannot be counted here.
    bytes: u64,
}

impl Session<'_> {
    /// Describes the session: its flows, its length, what it carried and how it ended. `error` is the reason
    /// if the session was broken off.
    pub(super) fn describe(&self, error: Option<&ControlError>) -> String {
        let [received, sent] = self.amounts();
        let seconds = (monotonic() - self.begun_ns) as f64 / 1e9;
        let ending = error.map_or_else(|| "ended".to_owned(), |why| format!("broken off: the client {why}"));
        let flows = counted(self.ends.len(), "flow");
        format!("session of {flows}, {seconds:.1} s: received {received}, sent {sent}; {ending}")
    }

    /// Returns true if the session carried nothing, or ended before a run could have taken place.
    pub(super) fn is_empty_or_short(&self) -> bool {
        monotonic() - self.begun_ns < SHORTEST_RUN_NS || self.amounts() == [Amount::default(); 2]
    }

    /// Returns what the session received and what it sent.
    fn amounts(&self) -> [Amount; 2] {
        let mut amounts = [Amount::default(); 2];
        for end in &self.ends {
            let end = end.lock();
            let progress = end.progress();
            for (amount, count) in amounts.iter_mut().zip([progress.received, progress.sent]) {
                *amount += if end.spec.features().keeps_messages {
                    Amount { messages: count, bytes: 0 }
                } else {
                    Amount { messages: 0, bytes: count }
                };
            }
        }
        amounts
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.messages += other.messages;
        self.bytes += other.bytes;
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.messages, self.bytes) {
            (messages, 0) => f.write_str(&counted(messages, "message")),
            (0, bytes) => write!(f, "{bytes} B of streams"),
            (messages, bytes) => write!(f, "{} and {bytes} B of streams", counted(messages, "message")),
        }
    }
}

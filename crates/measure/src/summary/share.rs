//! Of which messages a figure is a share.

use super::{FlowSummary, GroupSummary};

impl FlowSummary {
    /// Of how many messages the figure at `path` is a share; `None` if it is no share of messages.
    pub fn messages_of(&self, path: &str) -> Option<u64> {
        match path {
            "loss_rate" => Some(self.received + self.lost),
            "in_time" => Some(self.sent + self.refused),
            _ => None,
        }
    }

    /// How many messages the share at `path` leaves out because nobody knows yet what becomes of them.
    pub fn unfinished_of(&self, path: &str) -> u64 {
        if path == "loss_rate" { self.sent.saturating_sub(self.received + self.lost) } else { 0 }
    }
}

impl GroupSummary {
    /// As [`FlowSummary::messages_of`].
    pub fn messages_of(&self, path: &str) -> Option<u64> {
        (path == "loss_rate").then_some(self.received + self.lost)
    }

    /// As [`FlowSummary::unfinished_of`].
    pub fn unfinished_of(&self, path: &str) -> u64 {
        if path == "loss_rate" { self.sent.saturating_sub(self.received + self.lost) } else { 0 }
    }
}

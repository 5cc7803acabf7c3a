//! A flow that the machine disturbed, and which of its percentiles still describe the path.

use serde::{Deserialize, Serialize};

use crate::metrics::percentile::PerMille;

/// A flow whose packets the machine made late.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateFlow {
    /// The flow's name.
    pub name: String,
    /// How many messages of the flow were due.
    pub messages: u64,
    /// How many packets of the flow were late beyond the limit. Each packet of a message counts.
    pub late: u64,
}

impl LateFlow {
    /// Returns whether the `quantile` of the flow's delays still describes the path.
    ///
    /// The messages beyond the quantile decide its value. We allow that the machine made a quarter of those
    /// late, because the path then made the other three quarters late. For the 99th percentile of 10 000
    /// messages, 100 messages are beyond it, so 25 may be late.
    pub const fn bears(&self, quantile: PerMille) -> bool {
        // late <= messages * (1000 - quantile) / 1000 / 4, without the divisions.
        let beyond_per_mille = 1000_u64.saturating_sub(quantile.0 as u64);
        self.late.saturating_mul(4 * 1000) <= self.messages.saturating_mul(beyond_per_mille)
    }
}

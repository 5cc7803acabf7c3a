//! The volume of a session: the largest number of messages and bits that its flows send.

use talkpath_model::Demand;
use talkpath_units::{Bytes, Duration};

use super::{FlowSpec, SessionSpec};

const SECOND_NS: u64 = 1_000_000_000;

/// What a workload without a clock writes within a second at most.
#[derive(Clone, Copy, Debug, Default)]
struct Flood {
    messages: u64,
    payload_bytes: u64,
}

impl SessionSpec {
    /// Returns the largest number of messages that the flows send, including echoes. A flow without a limit
    /// counts as zero ([`FlowSpec::message_bound`]).
    pub fn message_bound(&self) -> u64 {
        let mut sum: u64 = 0;
        for flow in &self.flows {
            let messages = flow.message_bound(self.duration_ns).unwrap_or(0);
            sum = sum.saturating_add(messages.saturating_mul(flow.directions()));
        }
        sum
    }

    /// Returns the largest number of payload bits that the flows send within a second, including echoes. A
    /// workload without a clock counts only if the server is its sender and its transport has no
    /// acknowledgements.
    pub fn payload_rate(&self) -> u64 {
        self.flows.iter().map(FlowSpec::payload_rate).fold(0, u64::saturating_add)
    }
}

impl FlowSpec {
    /// Returns the largest number of messages that this flow's sender sends within `duration_ns`, without
    /// echoes. Returns `None` if there is no limit. This is so for bulk or a file on a stream, whose messages
    /// are as large as fits, and for bulk without an end.
    pub fn message_bound(&self, duration_ns: u64) -> Option<u64> {
        let demand = self.workload.demand();
        let messages = demand.messages_within(Duration::from_nanos(duration_ns));
        let bound = match demand {
            // The first message is due at once, so there is one more message than whole intervals.
            Demand::Clocked { .. } => messages.unwrap_or(0) + 1,
            Demand::Bursts { .. } => messages.unwrap_or(0),
            Demand::Greedy { .. } if !self.features().keeps_messages => 0,
            Demand::Greedy { bytes, .. } => {
                u128::from(bytes.map_or(0, Bytes::get).div_ceil(self.largest_greedy().max(1)))
            }
        };
        (bound > 0).then(|| u64::try_from(bound).unwrap_or(u64::MAX))
    }

    /// Returns the largest number of messages that the server's application writes within a second. It is
    /// zero for a flow from client to server, because the server only echoes what arrives. It is also zero
    /// for a workload without a clock over a transport with acknowledgements, because congestion control
    /// limits it.
    pub fn served_messages(&self) -> u64 {
        if self.is_up {
            return 0;
        }
        match self.workload.demand() {
            Demand::Clocked { messages, nanos, .. } => {
                let messages = (u128::from(messages) * u128::from(SECOND_NS)).div_ceil(nanos.max(1));
                u64::try_from(messages).unwrap_or(u64::MAX)
            }
            Demand::Bursts { .. } | Demand::Greedy { .. } => self.flood().messages,
        }
    }

    /// Returns the largest number of payload bits within a second, as [`SessionSpec::payload_rate`] counts
    /// them.
    pub(super) fn payload_rate(&self) -> u64 {
        let bps = match self.workload.demand() {
            Demand::Clocked { size, messages, nanos } => {
                let bits = (u128::from(size.get()) * 8).saturating_mul(u128::from(messages));
                bits.saturating_mul(u128::from(SECOND_NS)) / nanos.max(1)
            }
            Demand::Bursts { .. } | Demand::Greedy { .. } if self.is_up => 0,
            Demand::Bursts { .. } | Demand::Greedy { .. } => u128::from(self.flood().payload_bytes) * 8,
        };
        u64::try_from(bps.saturating_mul(self.directions().into())).unwrap_or(u64::MAX)
    }

    /// Returns the number of directions with messages: 2 if the flow has an echo, otherwise 1.
    const fn directions(&self) -> u64 {
        if self.has_echo() { 2 } else { 1 }
    }

    /// Returns what a workload without a clock writes within a second at most. It is nothing over a transport
    /// with acknowledgements, which holds the workload back. Any other transport takes all that the workload
    /// writes. So all of a bulk transfer counts, and all bursts that begin within one second.
    fn flood(&self) -> Flood {
        if self.features().is_acknowledged {
            return Flood::default();
        }
        match self.workload.demand() {
            Demand::Bursts { size, count, repeat, gap } => {
                // Bursts without a gap begin all at once.
                let gaps = SECOND_NS.checked_div(gap.as_nanos());
                let bursts = gaps.map_or(repeat, |gaps| repeat.min(gaps + 1));
                let messages = count.saturating_mul(bursts);
                Flood { messages, payload_bytes: messages.saturating_mul(size.get()) }
            }
            Demand::Greedy { bytes: Some(bytes), .. } => {
                Flood { messages: self.message_bound(0).unwrap_or(0), payload_bytes: bytes.get() }
            }
            Demand::Greedy { bytes: None, .. } | Demand::Clocked { .. } => Flood::default(),
        }
    }
}

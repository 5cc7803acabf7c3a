//! What the receiving end of a transfer knows of it, for the log of a server.
//!
//! A *transfer* is a workload that ends by itself: a burst, a file, or bulk traffic of a stated size. On a
//! stream without messages of its own a *packet* is as many bytes as the largest message has.

use talkpath_units::{Bytes, Instant};

use super::{FlowEnd, GREEDY_MESSAGE};

/// A transfer as its receiver counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedTransfer {
    /// When the first bytes were read. `None` if nothing arrived.
    pub first: Option<Instant>,
    /// When the last bytes were read. `None` if nothing arrived.
    pub last: Option<Instant>,
    /// The smallest and the largest packet, B.
    pub size_bytes: (u64, u64),
    /// How many packets arrived, each counted once.
    pub received: u64,
    /// How many packets the sender means to send within the run.
    pub expected: u64,
}

impl FlowEnd {
    /// Returns what this end has received of a transfer. Returns `None` if it is the sender, or if the
    /// workload does not end by itself.
    pub fn received_transfer(&self) -> Option<ReceivedTransfer> {
        if self.is_sender || !self.spec.workload.is_bounded() {
            return None;
        }
        let tap = &self.log.taps.forward;
        let (first, last) = if self.spec.features().keeps_messages {
            let times = || tap.arrival_times().map(|(_, at)| at);
            (times().min(), times().max())
        } else {
            (tap.reads().first().map(|(at, _)| *at), tap.reads().last().map(|(at, _)| *at))
        };
        let (size_bytes, received, expected) = self.packets();
        Some(ReceivedTransfer { first, last, size_bytes, received, expected })
    }

    /// Returns the smallest and the largest packet, and how many packets arrived and should have arrived.
    fn packets(&self) -> ((u64, u64), u64, u64) {
        let spec = &self.spec;
        let arrived = self.progress().received;
        let bound = spec.message_bound(self.stop.as_nanos());
        if spec.features().keeps_messages {
            let expected = bound.unwrap_or(0);
            let size = |seq: u64| spec.constant_size().or_else(|| spec.datagram_size(seq)).unwrap_or(0);
            let sizes = (size(expected.saturating_sub(1)), size(0));
            return (sizes, arrived, expected);
        }
        if let (Some(size), Some(expected)) = (spec.constant_size(), bound) {
            return ((size, size), arrived / size.max(1), expected);
        }
        let size = spec.workload.demand().largest_message().unwrap_or(GREEDY_MESSAGE).get().max(1);
        let all = spec.workload.transfer_size().map_or(0, Bytes::get);
        // The last packet holds what the others left.
        let last = if all.is_multiple_of(size) { size.min(all) } else { all % size };
        let received = if arrived >= all { all.div_ceil(size) } else { arrived / size };
        ((last, size.min(all)), received, all.div_ceil(size))
    }
}

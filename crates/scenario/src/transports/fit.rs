//! The checks that a transport can carry a workload, and the bounds that several transports share.

use talkpath_config::LARGEST_INITIAL_WINDOW;
use talkpath_model::Demand;
use talkpath_units::Bytes;

use crate::diagnostic::Log;
use crate::quantity::{Dimension, DimensionRange, Problem};
use crate::section::Section;
use crate::spec::range;

/// The values of a flow that must fit its transport.
pub(crate) struct Fit<'a, 'b> {
    pub(crate) flow: &'a Section<'b>,
    pub(crate) demand: Demand,
    /// The `socket_buffer` of the receiver. `None` takes that of the transport.
    pub(crate) room: Option<Bytes>,
    /// The smallest MTU of the routes.
    pub(crate) mtu: Option<Bytes>,
}

/// Returns the problem with a demand that is too large for one moment, over a transport or links that do not
/// slow the sender down. All messages would be in memory at once, or a transfer would never end. `carrier` is
/// the name of the transport or the links in the message.
pub(crate) fn flood(demand: Demand, carrier: &str) -> Option<Problem> {
    let (messages, bytes) = match demand {
        Demand::Bursts { count, size, repeat, gap } => {
            // Without a gap all bursts come at one moment.
            let messages = if gap.is_zero() { count.saturating_mul(repeat) } else { count };
            (messages, Bytes::new(size.get().saturating_mul(messages)))
        }
        Demand::Greedy { bytes: Some(bytes), .. } => (1, bytes),
        Demand::Greedy { bytes: None, .. } => {
            return Some(Problem::new(format!(
                "found `bulk` without an end over {carrier}, expected `bytes`"
            )));
        }
        Demand::Clocked { .. } => return None,
    };
    let message = if bytes > MOST_AT_ONCE {
        format!("found {bytes} at one moment over {carrier}, expected at most {MOST_AT_ONCE}")
    } else if messages > MOST_MESSAGES_AT_ONCE {
        format!(
            "found {messages} messages at one moment over {carrier}, expected at most {MOST_MESSAGES_AT_ONCE}"
        )
    } else {
        return None;
    };
    Some(Problem::new(message))
}

impl Fit<'_, '_> {
    /// Reports a message that is larger than `limit`, the largest that `packet` can hold. Returns whether
    /// there is none.
    pub(super) fn check_largest(&self, limit: Option<Bytes>, packet: &str, log: &mut Log) -> bool {
        let limit = limit.unwrap_or(Bytes::MAX);
        let Some(size) = self.demand.largest_message().filter(|size| *size > limit) else {
            return true;
        };
        let message = format!(
            "found messages of {size}, expected at most {limit}, which {packet} can hold on this path"
        );
        self.flow.problem("workload", message, log);
        false
    }

    /// Reports that messages of `size` are larger than the buffer of the receiving socket.
    pub(super) fn report_no_room(&self, size: Bytes, room: Bytes, log: &mut Log) {
        let message =
            format!("found messages of {size}, which never find room in a receiving socket of {room}");
        self.flow.problem("workload", message, log);
    }
}

/// The largest payload that a flow may send at one moment. We chose 1 GB, which is 80 s at 100 Mbps, and a
/// million messages, so that the waiting packets need a few gigabytes of memory at most, however small they
/// are.
const MOST_AT_ONCE: Bytes = Bytes::new(1_000_000_000);

/// The largest number of messages that a flow may send at one moment.
const MOST_MESSAGES_AT_ONCE: u64 = 1_000_000;

/// We chose a range from a skb_shared_info of 320 B with one cache line to two memory pages.
pub(crate) const SMALL_HEAD: &[DimensionRange] = &[range(Dimension::Size, 384, 8192)];

/// The packets that a connection sends before anything is acknowledged.
pub(super) const INITIAL_WINDOW: &[DimensionRange] =
    &[range(Dimension::Packets, 1, LARGEST_INITIAL_WINDOW.get())];

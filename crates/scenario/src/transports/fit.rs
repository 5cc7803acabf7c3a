//! What of a flow has to fit its transport, and the bounds that several transports share.

use talkpath_config::LARGEST_INITIAL_WINDOW;
use talkpath_model::Demand;
use talkpath_units::Bytes;

use crate::diagnostic::Log;
use crate::quantity::{Dimension, Measure, Problem};
use crate::section::Section;
use crate::spec::measure;

/// What of a flow has to fit its transport.
pub(crate) struct Fit<'a, 'b> {
    pub(crate) flow: &'a Section<'b>,
    pub(crate) demand: Demand,
    /// The receiver's own buffer, if the scenario has one.
    pub(crate) room: Option<Bytes>,
    /// The routes' smallest MTU.
    pub(crate) mtu: Option<Bytes>,
}

/// What is wrong with so much written at one moment over `what`, where nothing holds it back: everything
/// would be in memory at once, or the end would never come.
pub(crate) fn flood(demand: Demand, what: &str) -> Option<Problem> {
    let (messages, bytes) = match demand {
        Demand::Bursts { count, size, repeat, gap } => {
            let together = if gap.is_zero() { count.saturating_mul(repeat) } else { count };
            (together, Bytes::new(size.get().saturating_mul(together)))
        }
        Demand::Greedy { bytes: Some(bytes), .. } => (1, bytes),
        Demand::Greedy { bytes: None, .. } => {
            return Some(Problem::new(format!("found `bulk` without an end over {what}, expected `bytes`")));
        }
        Demand::Clocked { .. } => return None,
    };
    let found = if bytes > MOST_AT_ONCE {
        format!("found {bytes} at one moment over {what}, expected at most {MOST_AT_ONCE}")
    } else if messages > MOST_MESSAGES_AT_ONCE {
        format!(
            "found {messages} messages at one moment over {what}, expected at most {MOST_MESSAGES_AT_ONCE}"
        )
    } else {
        return None;
    };
    Some(Problem::new(found))
}

impl Fit<'_, '_> {
    /// Whether no message is larger than `limit`, what `packet` can hold; reports one that is.
    pub(super) fn at_most(&self, limit: Option<Bytes>, packet: &str, log: &mut Log) -> bool {
        let limit = limit.unwrap_or(Bytes::MAX);
        let Some(size) = self.demand.largest_message().filter(|size| *size > limit) else {
            return true;
        };
        let message = format!(
            "found messages of {size}, expected at most {limit}, which {packet} can hold on this path"
        );
        self.flow.problem("workload", Problem::new(message), log);
        false
    }

    /// Reports that messages of `size` are larger than the receiving socket.
    pub(super) fn no_room(&self, size: Bytes, room: Bytes, log: &mut Log) {
        let message =
            format!("found messages of {size}, which never find room in a receiving socket of {room}");
        self.flow.problem("workload", Problem::new(message), log);
    }
}

/// Payload that a flow sends at one moment: 80 s at 100 Mbps. Chosen, as the next, so that what waits
/// stays below a few gigabytes of memory however small the path's packets are.
const MOST_AT_ONCE: Bytes = Bytes::new(1_000_000_000);

/// Messages that a flow sends at one moment.
const MOST_MESSAGES_AT_ONCE: u64 = 1_000_000;

/// Chosen: from a skb_shared_info of 320 B and a cache line up to two pages.
pub(crate) const SMALL_HEAD: &[Measure] = &[measure(Dimension::Size, 384, 8192)];

/// What a connection may send at once before anything is acknowledged.
pub(super) const INITIAL_WINDOW: &[Measure] = &[measure(Dimension::Packets, 1, LARGEST_INITIAL_WINDOW.get())];

//! What lies between two hosts: a network of links, each a queue, a serialiser and a pipe.
//!
//! ```text
//!  Network::handle_packet ─► link ─► ... ─► link ─► Network::poll_output: arrived
//!                             │  queue: dropped
//!                             │  wire: lost, repeated, damaged
//!
//!  one link:  ─► [ waiting: queue ] ─► [ serialiser: one packet in service ] ─► [ pipe: delay, jitter ] ─►
//! ```
//!
//! A network, and a link, is a pure step machine: arrivals and the time go in; arrivals at the far end, drops
//! and losses come out. The simulator and the emulator drive the same code.
//!
//! A packet above a link's MTU is cut on its way (RFC 791). Its destination puts the fragments together with
//! [`Reassembly`].
//!
//! - *link*: one direction of a hop. *Route*: the links that a flow's packets cross, one after the other.
//! - *discipline*: the rule by which a queue keeps, drops, marks and gives out packets, such as CoDel.
//! - *service*: the time in which the serialiser puts a packet on the wire.
//! - *pipe*: the wire: propagation delay and its variation.
//! - *medium*: what carries a link's packets: a wire of its own, or a Wi-Fi that links share.
//! - *policer*: drops what comes faster than a rate allows. *Shaper*: lets it wait.
//! - *dropped*: by a queue, which had no room or signals congestion. *Lost*: the wire ate it.
//! - *change*: sets values of a link at a stated time, such as its rate.
//! - *agenda*: when each link, each timer of the hosts, and the next change has something to do.
//! - *window*: the time within which a link counts what it does.
//! - *owner*: whoever drives the network: the simulator, the emulator, or a test.
//!
//! Begin to read with `network/mod.rs`, then `link.rs`.

mod carried;
mod cellular;
mod change;
mod change_table;
mod changes;
mod config;
mod damage;
mod delay_variation;
mod dscp;
mod follow;
mod fragment;
mod framing;
#[cfg(test)]
mod kernel_disciplines;
mod link;
mod loss;
mod network;
mod occupancy;
mod packet_trace;
mod pipe;
mod queue;
mod rate_trace;
mod reassembly;
mod reordering;
mod repetition;
mod serialiser;
mod sojourn;
mod token_bucket;
mod waiting;
mod wifi;

pub use carried::{Carried, DropCause, Dropped, Tag};
pub use cellular::{Cellular, GrantRequest, Harq, Scheduler};
pub use change::{Change, ChangeMark, ChangeTimes, LinkState, LinkValues, Outage, Ramp, change_marks};
pub use change_table::{ChangeRows, ChangeTable};
pub use changes::QueueChanges;
pub use config::{DelayVariation, LinkConfig, LossModel, RateModel};
pub use damage::{Check, Damage};
pub use dscp::{DSCP_NAMES, Dscp};
pub use follow::{ChangeEvent, follow_changes};
pub use fragment::{FragmentRange, Fragments, IPV4_HEADER, MIN_MTU, fragments};
pub use framing::Framing;
pub use link::{Link, LinkReport, PathOutput, Service};
pub use network::{Direction, FlowRoutes, Network, NetworkConfig, NetworkEvent, NetworkOutput, PathPacket};
pub use packet_trace::{DelayTrace, LossTrace};
pub use queue::*;
pub use rate_trace::{RateTrace, TraceError, TraceMistake, without_mark};
pub use reassembly::{LINUX_MEMORY, LINUX_TIMEOUT, Reassembled, Reassembly};
pub use reordering::Reordering;
pub use sojourn::QueueDelay;
pub use token_bucket::TokenBucket;
pub use wifi::{
    ATTEMPTS, AccessCategory, LARGEST_AGGREGATE, Medium, Offered, OtherStations, WifiAir, WifiConfig,
    WifiLink, WifiSender,
};

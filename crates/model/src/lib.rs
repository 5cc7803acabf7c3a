//! What to run: a scenario's cell as arenas take it.
//!
//! The language that files are written in is `scenario`, which produces this model. An arena, a flow and a
//! socket depend on the model alone, so a change in the language compiles none of them again.
//!
//! - *scenario*: one cell of a scenario file, that is, one combination of its sweep's values. Every default
//!   is written out.
//! - *flow*: a workload over a transport along a route; *copies* of a flow form its *group*.
//! - *up*, *down*: from the first host to the second, and back.
//! - *link*: one direction of a hop between two nodes; *route*: the links from a flow's sender to its
//!   receiver.
//! - *workload*: what an application sends, and when. *Demand* is the most that it gives to its transport.
//! - *judging*: by what figure a flow is judged, and how good is good enough.
//! - *far clock*: how wrong the second host's clock is.
//!
//! Begin to read with `scenario.rs`.

mod cost;
mod dscp;
mod host_port;
mod judging;
mod kernel;
mod scenario;
mod topology;
mod workload;

pub use cost::{HOPS_OF_A_REPETITION, NANOS_OF_A_HOP};
pub use dscp::{DSCP_NAMES, Dscp};
pub use host_port::host_and_port;
pub use judging::{Concealment, Judging, Playout};
pub use kernel::KernelProfile;
pub use scenario::{
    Direction, Due, EchoWrite, FarClock, Flow, IpVersion, LARGEST_BULK_MESSAGE, LinkIndex, MIN_BULK_ROOM,
    NamedLink, Program, Receiver, Scenario, SecondPath, USUAL_MTU,
};
pub use talkpath_config::Codec;
pub use topology::{Node, Topology};
pub use workload::{Demand, LEAST_DRAWN, MessageSize, WorkloadConfig};

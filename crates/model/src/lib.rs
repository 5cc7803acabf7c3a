//! What to run: a scenario's cell as arenas take it.
//!
//! The language that files are written in is `scenario`, which produces this model. An arena, a flow and a
//! socket depend on the model alone, so a change in the language compiles none of them again.

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
    NamedLink, Receiver, Scenario, SecondPath, USUAL_MTU,
};
pub use talkpath_config::Codec;
pub use topology::{Node, Topology};
pub use workload::{Demand, LEAST_DRAWN, MessageSize, WorkloadConfig};

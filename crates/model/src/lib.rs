//! The model of a scenario, which arenas run.
//!
//! The crate `scenario` reads scenario files and makes this model of them. Arenas depend on the model alone,
//! so a change in the language of the files compiles none of them again.
//!
//! - *scenario*: one cell of a scenario file, which is one combination of the swept values. Every default is
//!   written out.
//! - *flow*: a workload over a transport along a route. The *copies* of a flow form a *group*.
//! - *up*: the direction from the first host to the second. *Down* is the direction back.
//! - *link*: one direction of a hop between two nodes.
//! - *route*: the links from a flow's sender to its receiver. The *return route* leads back.
//! - *workload*: the messages that an application sends. *Demand* is the largest load that a workload puts on
//!   its transport.
//! - *judging*: the figure by which a flow is judged, with the smallest value that is good enough.
//! - *far clock*: the error of the second host's clock.
//!
//! Begin to read with `scenario.rs`.

mod cost;
mod host_port;
mod judging;
mod kernel;
mod message_size;
mod program;
mod scenario;
mod topology;
mod voice;
mod workload;

pub use cost::{HOPS_OF_A_REPETITION, NANOS_OF_A_HOP};
pub use host_port::host_and_port;
pub use judging::{Concealment, Judging, Playout};
pub use kernel::KernelProfile;
pub use message_size::MessageSize;
pub use program::{FigureSource, Program, ProgramFigure};
pub use scenario::{
    ChangeOrigin, Direction, Due, EchoWrite, FarClock, Flow, IpVersion, LARGEST_BULK_MESSAGE, LinkIndex,
    MIN_BULK_ROOM, NamedLink, Receiver, Scenario, SecondPath, USUAL_MTU,
};
pub use talkpath_config::Codec;
pub use talkpath_path::{DSCP_NAMES, Dscp};
pub use topology::{LinkNodes, Node, Topology};
pub use voice::{LAST_DRAW, Silence, SizeSpread, VoiceConfig, VoiceHeaders, VoiceSender};
pub use workload::{Demand, LEAST_DRAWN, WorkloadConfig};

//! One end of a flow: a workload, and the application that sends it, reads and echoes, over any [`Channel`].
//!
//! | arena | channel |
//! | --- | --- |
//! | the simulator | one of our transports, or a QUIC connection, by [`Endpoint`] |
//! | real sockets | the kernel's TCP or UDP, or a transport of ours over UDP: in the crate `kernel` |

mod application;
mod channel;
mod exchange;
pub mod file;
mod info;
mod late;
mod lateness;
mod quic;
mod simulated;
mod taps;
mod turn_round;
pub mod workload;

pub use application::{Application, HostMeter};
pub use channel::{Channel, FlowId, Read, Write, WriteOutcome};
pub use exchange::Exchange;
pub use info::flow_info;
pub use lateness::lateness_ns;
pub use quic::Member;
pub use simulated::{Endpoint, EndpointTransport};
pub use taps::{FlowTaps, Side};
pub use turn_round::{TurnRound, TurnRounds};
pub use workload::{AnyWorkload, Workload};

//! One end of a flow: a workload, and the application that sends it, reads and echoes, over any [`Channel`].
//!
//! | arena | channel |
//! | --- | --- |
//! | the simulator | one of our transports, or a QUIC connection, in the crate `sim` |
//! | real sockets | the kernel's TCP or UDP, or a transport of ours over UDP: in the crate `kernel` |

mod application;
mod channel;
pub mod file;
mod info;
mod late;
mod lateness;
mod taps;
mod turn_round;
pub mod workload;

pub use application::{Application, HostMeter};
pub use channel::{Channel, FlowId, Read, Write, WriteOutcome};
pub use info::flow_info;
pub use lateness::lateness_ns;
pub use taps::{FlowTaps, Side};
pub use turn_round::{HELD_TOO_LONG, TurnRound, TurnRounds};
pub use workload::{AnyWorkload, Workload};

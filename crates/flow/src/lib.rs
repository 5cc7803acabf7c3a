//! One end of a flow: a workload, and the application that sends it, reads and echoes, over any [`Channel`].
//!
//! | arena | channel |
//! | --- | --- |
//! | the simulator | one of our transports, or a QUIC connection, in the crate `sim` |
//! | real sockets | the kernel's TCP or UDP, or a transport of ours over UDP: in the crate `kernel` |
//!
//! - *flow*: messages from one host to the other over one transport, perhaps with an *echo* of each.
//! - *workload*: when each message is *due*, and how large it is.
//! - *clocked*: due by a clock (voice, cbr). Other workloads have a message due when the transport has room.
//! - *channel*: what an application writes to and reads from.
//! - *turn*: one run of the application: what was released leaves, then it reads, then it writes.
//! - *backlog*: messages that are due and for which the channel has no room yet.
//! - *tap*: records what happened to each message of one direction.
//! - *turn-round*: how long an echoing host held a message.
//!
//! Begin to read with `application.rs`, then `channel.rs`.

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

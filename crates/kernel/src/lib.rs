//! Flows over sockets: the ends of flows, pacing by absolute deadlines, and hosts in namespaces. Unsafe code
//! is here, in `host/`, and in `talkpath_system`.
//!
//! ```text
//!  emu: two hosts and a path of our own           live: a client and a server on two hosts
//!     └──────────────────┬──────────────────────────────┘
//!   threads: pacer ──┐
//!   datagrams ───────┼─ ends of flows (end.rs: an Application on a channel) ═══ UDP, TCP, DCCP and QUIC over UDP
//!   connections ─────┘        └─► log ─► join: two logs become the flow's record
//! ```
//!
//! What both real arenas share is here: what is agreed about a flow ([`spec`]), its ends, their logs and how
//! two logs are joined. It knows neither the emulator nor the control protocol. Linux only.
//!
//! - *end*: one end of a flow: the application on a channel, with the log of what it saw.
//! - *channel*: what the application writes to and reads from: a kernel's socket, or a protocol of ours over
//!   UDP.
//! - *leg*: one direction of a flow. Its *tap* keeps a row of the records for each message.
//! - *turn*: the time in which one thread calls an end: input, then reads, then writes.
//! - *pacer*: the thread that sleeps to the next deadline of its ends. An *alarm* wakes it earlier.
//! - *throttle*: the sleeps that keep a pacer from using a processor all the time.
//! - *spec*: a session or a flow as the client describes it to the server.
//! - *join*: the logs of both ends become the flow's record, on the client's clock.
//! - *route*: the socket and the address that a flow's datagrams are sent to.
//! - *train*: several datagrams that one system call sends.
//!
//! Begin to read with `end.rs`, then `threads.rs` for who calls an end, and `join.rs` for what comes of the
//! logs.
//!
//! Left out: when a far host's packets left it, and what the kernel's TCP does not let a program set (which a
//! run's warnings name).

pub mod alarm;
pub mod end;
pub mod file;
pub mod host;
pub mod join;
pub mod log;
mod multipath;
pub mod path_probe;
pub mod progress;
pub mod spec;
pub mod stolen;
pub mod tag;
pub mod threads;
pub mod throttle;
pub mod turn_round;
pub mod udp_drops;
pub mod unsupported;
pub mod wire;

// Again here, so that `emu` and `live` depend on one crate.
use talkpath_system::ancillary;
pub use talkpath_system::{clock, descriptors, fragments, keep_awake, ports, random, sys, this_kernel};

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
//! A *leg* is one direction of a flow. Its *tap* keeps a row of the records for each message.
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
pub mod progress;
pub mod rest;
pub mod spec;
pub mod stolen;
pub mod tag;
pub mod threads;
pub mod turn_round;
pub mod udp_drops;
pub mod unsupported;
pub mod wire;

// Again here, so that `emu` and `live` depend on one crate.
use talkpath_system::ancillary;
pub use talkpath_system::{clock, descriptors, fragments, keep_awake, ports, random, sys, this_kernel};

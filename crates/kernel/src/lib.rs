//! The system crate: sockets, clocks, pacing by absolute deadlines, namespaces. The only crate with unsafe
//! code.
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
mod ancillary;
pub mod clock;
pub mod descriptors;
pub mod end;
pub mod file;
pub mod host;
pub mod join;
pub mod keep_awake;
pub mod log;
mod multipath;
pub mod progress;
pub mod random;
pub mod rest;
pub mod spec;
pub mod stolen;
pub mod sys;
pub mod tag;
pub mod this_kernel;
pub mod threads;
pub mod turn_round;
pub mod udp_drops;
pub mod unsupported;
pub mod wire;

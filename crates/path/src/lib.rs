//! What lies between two hosts: links in a row, each a queue, a serialiser and a pipe.
//!
//! ```text
//!  handle_packet ─► [ waiting: queue ] ─► [ serialiser: one packet in service ] ─► [ pipe: delay, jitter ] ─► poll_output
//!                     │ full: dropped                                    │ loss model: lost
//! ```
//!
//! Waiting, serialising and propagating are three places. A link is a pure step machine: arrivals and the time go
//! in; arrivals at the far end, drops and losses come out. The simulator and the emulator drive the same code.
//!
//! Fragmentation (RFC 791) is a matter between links and hosts: whoever drives the links asks [`Link::mtu`], splits
//! with [`FragmentRange::fragments`], and puts together with [`Reassembly`].

mod config;
mod delay_variation;
mod fragment;
mod link;
mod loss;
mod occupancy;
mod packet_trace;
mod pipe;
mod queue;
mod rate_trace;
mod reassembly;
mod ring;
mod serialiser;

pub use config::{DelayVariation, Framing, LinkConfig, LossModel, QueueKind, QueueLimit, RateModel};
pub use fragment::{FragmentRange, Fragments, IPV4_HEADER, MIN_MTU, fragments};
pub use link::{Carried, DropCause, Dropped, Link, LinkReport, PathOutput};
pub use packet_trace::{DelayTrace, LossTrace};
pub use rate_trace::{RateTrace, TraceError, TraceMistake};
pub use reassembly::{LINUX_MEMORY, LINUX_TIMEOUT, Reassembled, Reassembly};

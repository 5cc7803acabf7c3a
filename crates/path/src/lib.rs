//! What lies between two hosts: links in a row, each a queue, a serialiser and a pipe.
//!
//! ```text
//!  handle_packet ─► [ waiting: queue ] ─► [ serialiser: one packet in service ] ─► [ pipe: delay, jitter ] ─► poll_output
//!                     │ full: dropped                                    │ loss model: lost
//! ```
//!
//! Waiting, serialising and propagating are three places. A link is a pure step machine: arrivals and the time go
//! in; arrivals at the far end, drops and losses come out. The simulator and the emulator drive the same code.

mod config;

pub use config::{DelayVariation, LinkConfig, LossModel, QueueKind, QueueLimit, RateModel};

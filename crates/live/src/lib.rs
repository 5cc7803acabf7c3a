//! The live arena: a client and a server on two hosts, and the network itself between them.
//!
//! ```text
//!  client: LiveArena                                        server: Server
//!   control thread ── hello, session, go, ask, stop ──────►  handshake ─► session thread (control)
//!   pacer ──┐                                               pacer (flows down) ──┐
//!   datagrams ─┼─ ends of flows (kernel) ═══ UDP, TCP ═══►  datagrams (all sessions) ─┼─ ends of flows
//!   connections ┘                                           connections ──────────────┘
//!        └─► log ──► join (client) ◄── report ◄──────────────── log
//!                      └─► RunRecord
//! ```
//!
//! `live` measures with the kernel's UDP and TCP, to a host that runs a [`Server`]. Both ends of a flow are
//! the same code, in `talkpath_kernel`; the client collects the far end's log after the run and joins the two
//! on its own clock. The protocol, its limits and what may be trusted are in docs/models/live.md. Linux only.
//!
//! Left out: probes of the clocks during a run, when the far host's packets left it, and what the kernel's
//! TCP does not let a program set (which a run's warnings name).

mod client;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod key;
mod monitor;
mod protocol;
mod seal;
mod server;
pub mod stamp;

pub use client::{BegunRun, LiveArena, LiveOptions, Notice, PreparedRun};
pub use key::{Key, ShortKey};
pub use monitor::Monitor;
pub use server::{Limits, ServeError, ServeOptions, Server};

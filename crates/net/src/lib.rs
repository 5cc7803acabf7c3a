//! The real arenas: the only crate with sockets.
//!
//! ```text
//!  client: LiveArena                                        server: Server
//!   control thread ── hello, session, go, ask, stop ──────►  door (strangers) ─► session thread (control)
//!   pacer ──┐                                               pacer (flows down) ──┐
//!   datagrams ─┼─ ends of flows (end.rs) ═══ UDP, TCP ═══►  datagrams (all sessions) ─┼─ ends of flows
//!   connections ┘                                           connections ──────────────┘
//!        └─► log ──► join (client) ◄── report ◄──────────────── log
//!                      └─► RunRecord
//! ```
//!
//! `live` measures over the network itself with the kernel's UDP and TCP, to a host that runs a [`Server`]. Both ends of
//! a flow are the same code; the client collects the far end's log after the run and joins the two on its own clock.
//! The protocol, its limits and what may be trusted are in docs/live.md. Linux only.
//!
//! Left out: probes of the clocks during a run, when the far host's packets left it, and what the kernel's TCP does not let
//! a program set (which a run's warnings name).

mod alarm;
mod clock;
pub mod emu;
mod end;
mod file;
mod join;
mod key;
mod lateness;
mod live;
mod log;
mod protocol;
mod server;
mod spec;
mod stolen;
mod sys;
mod threads;
mod wire;

pub use key::{Key, ShortKey};
pub use live::{DEFAULT_PORT, LiveArena, LiveOptions};
pub use server::{Limits, ServeError, ServeOptions, Server};

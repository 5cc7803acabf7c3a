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
//! - *session*: one run with a server, from the handshake to the report. A repetition is one session.
//! - *stranger*: a connection that has not described a session yet. The server has few places for those.
//! - *seat*: the right to one of the server's sessions. An address has at most half of them.
//! - *registration*: the datagram by which the server learns the address of a flow over UDP.
//! - *way*: a flow's UDP socket, as far as the server knows its address; it is *open* once that is so.
//! - *report*: what the server logged and counted, which the client collects after the run.
//! - *drain*: the time after sending stopped in which messages under way still arrive.
//! - *reflector*, *sender*: the two roles of STAMP (RFC 8762), in `stamp/`.
//!
//! Begin to read with `protocol.rs`, which has the exchange of a session; then `client/run.rs` and
//! `server/session.rs` for its two sides.
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

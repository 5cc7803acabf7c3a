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
//! - *far host*: the host of the server, as the client sees it. *This host* is the host that runs the code.
//! - *end*: one end of a flow, at the client or at the server.
//! - *leader*: the first of several flows that share a connection. It has the socket and the keys of all.
//! - *stranger*: a connection that has not said a valid hello yet. A *guest* has said one, but has not
//!   described a session yet. The server has a bounded number of *places* for both.
//! - *seat*: the right to one of the server's sessions. An address has at most half of the seats.
//! - *registration*: the datagram by which the server learns the address of a flow over UDP.
//! - *way*: the UDP socket of a flow with its registration. A way is *open* once the server has answered the
//!   registration, and *closed* before.
//! - *report*: the server's logs and counts, which the client collects after the run.
//! - *drain*: the time after the end of sending in which messages on the path still arrive.
//! - *reflector*, *sender*: the two roles of STAMP (RFC 8762), in `stamp/`.
//!
//! Begin to read with `protocol.rs`, which has the exchange of a session. Then read `client/run.rs` and
//! `server/session.rs` for its two sides.
//!
//! Left out: the times at which the far host's packets leave it, and the options of TCP that the kernel does
//! not let a program set (a run's warnings name these options).

mod client;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod key;
mod monitor;
mod protocol;
mod seal;
mod server;
pub mod stamp;

pub use client::{BegunRun, EachVersion, LiveArena, LiveOptions, Notice, PreparedRun};
pub use key::{Key, ShortKey};
pub use monitor::Monitor;
pub use server::{Limits, ServeError, ServeOptions, Server};

//! Every transport as a pure state machine.
//!
//! They keep one contract, [`talkpath_wire::Transport`], which also says in which order it is called.
//!
//! - *end*: one side of a connection. *Active* opens it, *passive* waits.
//! - *offset*: a place in a stream of TCP, in 64 bits, counted from the SYN.
//! - *controller*: a congestion control with its `cwnd` and `ssthresh`. *Window-based* ones move `cwnd` with
//!   each acknowledgement, *rate-based* ones pace segments by a model of the path.
//! - *stack*: whose implementation TCP follows where the RFCs leave a choice.
//! - *fast path*: shortcuts of TCP for the common segments, with the proof that they change nothing.
//! - *CCID*: a congestion control of DCCP. Each has a *sending half* and a *receiving half*.
//! - *TFRC*: the rate control of CCIDs 3 and 4 (RFC 5348), in `tfrc/`.
//!
//! Begin to read with `udp/mod.rs`, the smallest; then `tcp/mod.rs`, which lists TCP's parts.

mod any;
pub mod cc;
pub mod dccp;
mod skb;
pub mod tcp;
pub mod tfrc;
pub mod udp;

pub use any::{AnyTransport, EndVisitor, new_machine};

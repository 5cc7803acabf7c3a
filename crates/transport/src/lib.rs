//! Every transport as a pure state machine.
//!
//! They keep one contract, [`talkpath_wire::Transport`], which also says in which order it is called.

mod any;
pub mod cc;
pub mod dccp;
mod skb;
pub mod tcp;
pub mod tfrc;
pub mod udp;

pub use any::{AnyTransport, EndVisitor, new_machine};

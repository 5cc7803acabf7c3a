//! DCCP (RFC 4340): datagrams under congestion control, with CCIDs as half-connections.
//!
//! | file | what it holds | RFC 4340 |
//! | --- | --- | --- |
//! | `ack_vector` | what arrived, written and read | §11.4 |
//! | `data_dropped` | data that did not reach the application | §11.7 |
//! | `feature` | the features that there are | §6.4 |
//! | `features` | their negotiation | §6 |
//! | `numbers` | sequence number variables and validity windows | §7.5 |
//! | `connection` | state, timers, the contract of a transport | §8 |
//! | `input` | arriving packets, step by step | §8.5 |
//! | `output` | which packet leaves next, and its options | §11, §13 |
//! | `cookie` | Init Cookies | §8.1.4 |
//! | `machine` | what a channel over real sockets needs to know | §8 |
//! | `limiter` | how often strangers are answered | §7.5.4 |
//! | `queues` | messages to be sent and to be read | §11.7 |
//! | `ccid` | the contract with a congestion control, and the CCIDs | §10 |
//!
//! Packets, their options, sequence numbers and bytes are `talkpath_wire::dccp`.
//!
//! A message is the data of one packet: nothing is repeated, put in order or joined. Left out: data on
//! Request and Response, ports (the host's), mobility, and path MTU discovery (the path's MTU is given).
//!
//! The ECN Nonce (§12.2) is left out: packets are sent with ECT(0), whose nonce is 0, so that every sum is 0;
//! RFC 8311 made the nonce historic.

mod ack_vector;
pub mod ccid;
mod connection;
mod cookie;
mod data_dropped;
mod feature;
mod features;
mod input;
mod limiter;
mod machine;
mod numbers;
mod output;
mod queues;

pub use ack_vector::{AckHistory, AckRun, AckState, ack_vector};
pub use connection::{Dccp, State};
pub use data_dropped::{DropCode, drop_code};
pub use feature::Feature;
pub use features::Location;

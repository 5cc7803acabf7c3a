//! TCP (RFC 9293) as a sans-IO state machine.
//!
//! ```text
//!   connection   states and parts                          output   which segment leaves next, and timers
//!   input        arriving segments: checks, ACKs, data, FIN   handshake  SYN, SYN-ACK, options agreed on
//!   send         the stream out: written, in flight, lost     receive  the stream in: arrived, missing, read
//!   recovery     duplicate ACKs, fast recovery, after RTO     ack      when to acknowledge
//!   rtt          SRTT, RTTVAR, RTO                            nagle    whether a small segment waits
//!   window       flow control, both directions, scaling       buffer   room for writes
//!   usage        whether cwnd was the limit                   timer    deadlines
//!   sack         what the receiver reports beyond a gap       scoreboard  what the sender knows of each segment
//!   selective    recovery with SACK, after RTO, undo          rack     losses told by time
//!   probe        the tail loss probe                          prr      cwnd during recovery
//!   undo         needless reductions taken back                 pacing   segments spread over the round trip
//!   feedback     what BBR is told                              tuning   growth of the offered window
//!   predict      what nearly all segments are, in short        clock    when a host's clock ticks
//!   grown        the same of acknowledgements in a repair      lumps    the same of what leaves
//!   offload      how many segments leave as one              contract   what is given to it and asked of it (Transport)
//! ```
//!
//! Inside, offsets are 64 bits and count from the SYN; sequence numbers exist on packets alone.
//!
//! Left out, since two hosts in a closed run cannot tell: urgent data, TIME_WAIT's two minutes (the state is kept,
//! answers, and never ends), keep-alives, the user timeout and R2 (a connection never gives up), path MTU discovery
//! (the path's MTU is given), checksums. ECN is not there yet.

mod ack;
mod buffer;
mod clock;
mod connection;
mod contract;
mod feedback;
mod grown;
mod handshake;
mod input;
mod lumps;
mod nagle;
mod offload;
mod output;
mod pacing;
mod predict;
mod probe;
mod prr;
mod rack;
mod receive;
mod recovery;
pub(crate) mod rtt;
mod sack;
mod scoreboard;
mod selective;
mod send;
mod timer;
mod tuning;
mod undo;
pub(crate) mod usage;
mod window;

pub use buffer::WRITE;
pub use connection::Tcp;

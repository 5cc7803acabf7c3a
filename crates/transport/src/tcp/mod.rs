//! TCP (RFC 9293) as a sans-IO state machine.
//!
//! ```text
//!   fast_path    Tcp: the contract with applications and network; shortcuts for the common segments
//!   core         the parts of one end, and the calls of the application
//!   state        RFC 9293 §3.3.2                        handshake   SYN, SYN-ACK, options agreed on
//!   input        arriving segments                      output      leaving segments
//!   receive/     reassembly, window, acknowledgements   send/       stream, buffer, Nagle, bursts, pacing
//!   recovery/    losses: found, repaired, undone        congestion  cwnd: what may leave, what a loss halves
//!   rtt          SRTT, RTTVAR, RTO                      timers      deadlines
//!   timestamps   RFC 7323 §3 to §5                      clock       when a host's timers expire
//!   ecn          RFC 3168 §6.1                          offset_range   a range of the stream
//! ```
//!
//! Each part is a type with private fields. Inside, positions in the stream are offsets of 64 bits, counted
//! from the SYN. Only packets have sequence numbers of 32 bits.
//!
//! Left out, because it makes no difference to two hosts in a closed run: urgent data, TIME_WAIT's two
//! minutes (the state is kept, answers, and never ends), keep-alives, the user timeout and R2 (a connection
//! never gives up), path MTU discovery (the path's MTU is given), checksums.

pub(crate) mod clock;
mod congestion;
mod connect;
mod core;
mod ecn;
mod fast_path;
mod handshake;
mod input;
mod offset_range;
mod outbox;
mod output;
mod receive;
mod recovery;
pub(crate) mod rtt;
mod send;
mod state;
mod timers;
mod timestamps;

pub use fast_path::Tcp;

//! QUIC (RFC 9000, RFC 9001, RFC 9002, RFC 9221) from a kept sans-IO library, quinn-proto.
//!
//! The library is a state machine as ours are: it takes datagrams and the time, and gives datagrams, events
//! and its next deadline. What it draws at random or reads from a clock comes from [`configs`], so that a
//! seed gives the same bytes each time. [`End`] is one end of a connection of one flow or of several; between
//! real hosts it carries the messages' own bytes, with keys that nobody can foresee ([`End::on_host`]).
//!
//! - *engine*: quinn-proto's connection.
//! - *end*: the engine at one host, with the messages of the flows that share the connection.
//! - *piece*: application data of a flow in a packet: a datagram, or a part of a stream.
//! - *token*: the first 4 bytes of a message, which name its flow if several share a connection.
//! - *watch*: sees the frames of each packet before it is encrypted and after it was decrypted.
//! - *earlier connection*: gives the client a ticket, with which messages leave in its first flight (0-RTT).
//! - *ready*: a flow for which the connection has something new since its last turn.
//!
//! Begin to read with `end.rs`; `sending.rs` and `receiving.rs` have the streams, `datagrams.rs` the
//! datagrams.

mod arriving;
mod certificate;
mod clock;
mod codepoints;
mod configs;
mod content;
mod datagrams;
mod earlier;
mod end;
mod ends;
mod far;
mod frames;
mod host;
mod ids;
mod inbound;
mod inbox;
mod qlog;
mod ready;
mod receiving;
mod recovery;
mod seeded;
mod sending;
mod setup;
mod sizes_only;
mod stream;
mod turns;
mod watch;

pub use arriving::NAMED;
pub use configs::{ConfigError, Configs, Protection, SERVER_NAME, configs};
pub use earlier::EarlierEnd;
pub use end::End;
pub use ends::Ends;
pub use far::{Arrival, EcnFailure, FAR, PathReport};
pub use host::{Fingerprint, HostKeys, server_identity};
pub use ids::{IdOwner, IdTable};
pub use qlog::{QlogEvent, write_qlog};
pub use receiving::DiscardCause;
pub use seeded::KeyLog;
pub use sending::SendEvent;
pub use setup::{FlowSetup, Setup};
pub use stream::StreamFailure;

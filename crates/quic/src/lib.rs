//! QUIC (RFC 9000, RFC 9001, RFC 9002, RFC 9221) from a kept sans-IO library, quinn-proto.
//!
//! The library is a state machine as ours are: it takes datagrams and the time, and gives datagrams, events
//! and its next deadline. What it draws at random or reads from a clock comes from [`configs`], so that a
//! seed gives the same bytes each time. [`End`] is one end of a connection of one flow or of several; between
//! real hosts it carries the messages' own bytes, with keys that nobody can foresee ([`End::on_host`]).

mod arriving;
mod certificate;
mod clock;
mod codepoints;
mod configs;
mod content;
mod datagrams;
mod earlier;
mod end;
mod frames;
mod host;
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
pub use end::{End, Ends};
pub use host::{Fingerprint, HostKeys, server_identity};
pub use qlog::{QlogEvent, begin_qlog};
pub use receiving::DiscardCause;
pub use seeded::KeyLog;
pub use sending::SendEvent;
pub use setup::{FlowSetup, Setup};
pub use stream::StreamFailure;

//! The control protocol. It runs over TCP and has one JSON object a line. The client sends requests, and the
//! server sends answers.
//!
//! ```text
//!  client                                        server
//!  hello {version, opening, filling}    ─►               (the hello is as long as any answer to it)
//!                                       ◄─  welcome {answer}
//!       with a key, all that follows is sealed (seal.rs)
//!  session {flows, duration, ...}       ─►
//!                                       ◄─  ready {a secret and a token for each flow, QUIC's certificate,
//!                                                  the ports, the session's secret}
//!  probe                                ─►  ◄─  probe {received, sent}     several times, for the clocks
//!       UDP flows register from their own addresses (wire.rs), before the run and in it
//!       probes of the path (path_probe.rs), before the first run
//!  registrations                        ─►  ◄─  registrations            if a flow's was not answered
//!  go {when, on the server's clock}     ─►  ◄─  going
//!       TCP flows connect to the same port and open with `data {secret}`; messages follow at once
//!  ask                                  ─►  ◄─  progress                 during the run: also the keep-alive
//!  stop                                 ─►  ◄─  stopped
//!  report {flow}                        ─►  ◄─  rows, rows, ..., end       for each flow
//!  bye                                  ─►
//! ```
//!
//! A client whose host has another address opens a new control connection during the session: `hello`, then
//! `resume {the session's secret}` instead of `session`, and the server answers `resumed`.
//!
//! If the server cannot do what a request asks, it answers `refused {why}`. The length of a line is limited
//! at both ends. A line that is longer, or that is not a message, ends the connection. The bytes that wait
//! for a peer that does not read are limited too: beyond [`UNSENT_LIMIT`] nothing is read from this peer, and
//! TCP's window closes.
//!
//! `messages.rs` has the requests and answers, and `connection.rs` one side of a connection. The limits and
//! the times are here, because both hosts have to agree on them.

mod connection;
mod line_buffer;
mod messages;
mod registrations;

use talkpath_units::printable;

pub(crate) use connection::{Control, ControlError};
pub(crate) use messages::{Admission, Answer, Request};
pub(crate) use registrations::{Registration, Registrations};

/// The largest number of characters that are shown of another host's words. We chose 500, which are a few
/// lines of a terminal.
const MAX_SHOWN: usize = 500;
/// The version of this protocol. Both sides must speak the same version.
pub(crate) const VERSION: u32 = 17;
/// The length of the hello's filling, bytes. So a hello is longer than the longest answer to it.
pub(crate) const HELLO_SIZE: usize = 512;
/// The longest line that a stranger may send, bytes.
pub(crate) const OPENING_LIMIT: usize = 2 * 1024;
/// The longest line that a client may send, bytes. It is the description of a session with many flows.
pub(crate) const REQUEST_LIMIT: usize = 256 * 1024;
/// The longest line that a server may send in a session of few flows, bytes. It is a chunk of rows. In a
/// session of many flows, an answer with an entry for each flow is longer (`FLOW_ANSWER_BYTES` in
/// client/control.rs).
pub(crate) const ANSWER_LIMIT: usize = 1024 * 1024;
/// If more bytes than this wait for a client, nothing is read from the client until it has read some of them.
/// One more answer may then be queued. We chose 512 KiB, which is about one chunk of rows. An answer about
/// thousands of flows may be longer.
pub(crate) const UNSENT_LIMIT: usize = 512 * 1024;
/// The silence after which each side gives up the other side, s. We chose 10 s, because on a path with heavy
/// loss the control connection needs that long for a few retransmissions (docs/models/live.md).
pub(crate) const SILENCE_S: u64 = 10;
/// The same limit while a run is measured, s. It is longer, because an outage of the path is a result of the
/// run. After an outage of 15 s TCP sends again after 25 s (RFC 6298 §5.5: its timeout doubles from 200 ms).
/// After an outage of 30 s it sends again after 51 s.
pub(crate) const OUTAGE_S: u64 = 60;

/// The slowest rate at which a client fetches a report, rows a second. A row takes about 40 B, so this is 64
/// kbps. We chose it because slower lines carry no call that could be measured.
pub(crate) const ROWS_PER_S: u64 = 200;

/// Makes another host's words printable, and cuts them to [`MAX_SHOWN`] characters.
pub(crate) fn words(text: &str) -> String {
    printable(text, MAX_SHOWN)
}

//! Live runs over paths that are not kind: what passes and what does not, and the sentence that each of them
//! must print.
//!
//! Client, two routers and server are network namespaces ([`lab`]); each file here has one kind of path. They
//! take minutes together, so CI leaves them out: `cargo xtask nightly --only paths`. On a busy machine the
//! delays of such a run mean nothing: judge by counts, openings, breaks and words.

mod lab;
mod moves;
mod new_port;
mod no_network;
mod no_udp;
mod quic;
mod routers;
mod sizes;
mod table;

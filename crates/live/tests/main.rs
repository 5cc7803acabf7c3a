//! The live arena over real sockets: on loopback, and between two namespaces.
//!
//! One program for the whole folder: each further one would be linked by itself.

mod door;
mod far_end;
mod files;
mod guests;
mod loopback;
mod monitor;
mod namespaces;
mod sealed;
mod sizes;
mod strangers;
mod support;
mod threads;
mod ways;

//! Each protocol against a script, against itself on a path, and against hostile peers.
//!
//! One program for the whole folder: each further one would be linked by itself.

mod dccp_exchange;
mod dccp_hostile;
mod dccp_pair;
mod exchange;
mod pair;
mod pair_net;
mod properties;
mod rules;

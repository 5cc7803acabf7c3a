//! The built program, judged by what a user sees: exit code, standard output, standard error, files.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod answers;
mod bad_input;
mod campaign;
mod campaign_kills;
mod capture;
mod dccp;
mod documentation;
mod emu;
mod exports;
mod foreign;
mod formats;
mod harness;
mod listen;
mod live;
mod monitor;
mod multipath;
mod paths;
mod play;
mod programs;
#[path = "../../../live/tests/support/quiet.rs"]
mod quiet;
mod rate;
mod runs;
mod shards;
mod shell;
mod sockets;
mod strangers;
mod study;
mod thresholds;
mod traces;
mod transfers;
mod ui;
mod usage;
mod way_out;

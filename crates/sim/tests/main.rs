//! Runs of whole scenarios, judged by their records.
//!
//! One program for the whole folder: each further one would be linked by itself.

mod capture;
mod changes;
mod common;
mod dccp_voice;
mod ends;
mod judged;
mod openings;
mod qlog;
mod queues;
mod quic;
mod sizes;
mod voice_echo;
mod waits;
mod whole_runs;
mod wifi;
mod without_rows;
mod wrong_clock;

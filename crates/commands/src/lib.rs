//! The commands of the program `talkpath`, as docs/reference/interface.md promises them, over the crates
//! below.
//!
//! ```text
//! args ─► command/* ─► scenario_file ─► running ─► the crate experiment ─► page, terminal
//!                                        └─► arenas (a trait; the program has the arenas)
//! ```
//!
//! A command returns a [`failure::Failure`] or nothing; only the program turns that into text and an exit
//! code. Commands that need one arena's own types are in the program: `doctor`, `play`, `replay`, `serve`,
//! `stamp`.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod again;
pub mod arenas;
pub mod args;
mod campaign;
pub mod command;
pub mod failure;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod interrupt;
pub mod key_file;
mod monitor;
pub mod network;
pub mod output_file;
mod page;
mod place;
mod running;
pub mod scenario_file;
pub mod summary_file;
pub mod terminal;
mod thresholds;

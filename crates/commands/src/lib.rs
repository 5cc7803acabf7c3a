//! The commands of the program `talkpath`, as docs/reference/interface.md promises them, over the crates
//! below.
//!
//! ```text
//! args ─► command/* ─► scenario_file ─► running ─► the crate experiment ─► page, terminal
//!                                        └─► arenas (a trait; the program has the arenas)
//! ```
//!
//! - *place*: the arena where a run happens. For a live run it is also the far host, with its key and its
//!   clocks.
//! - *threshold*: a figure and the bound that it must hold. A *demand* is a threshold of the command line.
//! - *failure*: the reason why a command ended early. Each kind of failure has its exit code.
//! - *next commands*: the commands that are printed after a result, for the user to type next.
//! - *cure*: the same cells with `fq_codel` on a link, which `compare` tries if no transport is usable.
//! - *cell*, *repetition*, *part*, *room*: see the crate `experiment`.
//! - *session*: one run of a monitor. An *interval* is a stretch of a session, with its figures. The *totals*
//!   are sums since the monitor began.
//! - *measurement*: one run of a campaign. An *attempt* is one try at a measurement. A *store* is the place
//!   where the records are copied to.
//!
//! Begin to read with `command/run.rs` and `running.rs`. `command/compare.rs` makes the choices that a user
//! of `compare` leaves open.
//!
//! A command returns nothing or a [`failure::Failure`]. Only the program turns a failure into text and an
//! exit code. Commands that need one arena's own types are in the program: `doctor`, `play`, `replay`,
//! `serve`, `stamp`.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod again;
pub mod arenas;
pub mod args;
mod campaign;
mod capture_file;
pub mod command;
mod dashboard;
pub mod failure;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod interrupt;
pub mod key_file;
mod monitor;
pub mod network;
pub mod output_file;
mod page;
mod path_changes;
mod path_file;
mod place;
mod progress_events;
mod run_state;
mod running;
pub mod scenario_file;
mod shares;
pub mod summary_file;
pub mod terminal;
mod thresholds;

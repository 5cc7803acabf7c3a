//! The commands of the program `talkpath`, as docs/reference/interface.md promises them, over the crates
//! below.
//!
//! ```text
//! args ─► command/* ─► scenario_file ─► running ─► the crate experiment ─► page, terminal
//!                                        └─► arenas (a trait; the program has the arenas)
//! ```
//!
//! - *place*: where a run happens: the arena, and of a live run the far host with its key and its clocks.
//! - *demand*: what the command line says that a figure must hold. With those of the scenario they are its
//!   *thresholds*.
//! - *failure*: why a command ended early. Each kind has its exit code.
//! - *next commands*: the commands that are printed after a result, for the user to type next.
//! - *cure*: the same cells with `fq_codel` on a link, which `compare` tries if no transport is usable.
//! - *cell*, *repetition*, *part*, *room*: see the crate `experiment`.
//! - *session*, *interval*, *totals*: one run of a monitor; a stretch of it, with its figures; sums since the
//!   monitor began.
//! - *measurement*, *attempt*, *store*: one run of a campaign; one try at it; where its records are copied
//!   to.
//!
//! Begin to read with `command/run.rs` and `running.rs`; `command/compare.rs` makes the choices that a user
//! of `compare` leaves open.
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
mod path_changes;
mod place;
mod running;
pub mod scenario_file;
mod shares;
pub mod summary_file;
pub mod terminal;
mod thresholds;

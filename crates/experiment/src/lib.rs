//! Experiments: repetitions run, survive a kill, and become one run directory.
//!
//! ```text
//! Plan  ─► shard ─► cells ─► tasks ─► workers, each with an arena ─► attempts in the room ─► parts ─► merge ─► run directory
//! Study ──────────► cells ─►   "                  "                           "           ─► samples ─► verdicts
//! ```
//!
//! The words, from the largest to the smallest:
//!
//! - *plan*: what a scenario says is to be run, its cells and how often each.
//! - *cell*: one combination of the values that a plan sweeps, or that a study names. It states how often it
//!   runs, and by its *fingerprint* what was kept of it before somebody edited it.
//! - *set*: assumptions under which a study runs its cells; its *base* is the first set, by which it judges.
//! - *repetition*: one run of a cell, with a seed of its own.
//! - *shard*: those repetitions that one of several machines runs.
//! - *task*: a repetition that is still to run; it may run again if the machine disturbed it.
//! - *attempt*: one run of a task by a worker. It waits for *room*: what the machine has left for runs that
//!   stand beside each other in real time.
//! - *part*: what a run keeps of a finished repetition, its figures and rows: a line of a journal, or a
//!   folder.
//! - *sample*: what a study keeps of one, the figures that it reads: a line of a journal.
//!
//! Begin to read with `repetitions.rs`, the loop of runs and studies. `experiment.rs` makes a run directory
//! of it; then `merge.rs` for what the parts become, and `store.rs` for what survives a kill. This crate
//! knows arenas, findings, whoever keeps what ran and whoever watches by a trait each (`place.rs`,
//! `findings.rs`, `repetitions.rs`, `observer.rs`), and neither command lines nor a terminal's words.

mod attempt;
pub mod choice;
mod disturbed;
mod error;
mod experiment;
pub mod findings;
#[cfg(test)]
mod fixture;
pub mod journal;
pub mod json;
mod keeping;
pub mod merge;
pub mod observer;
pub mod part;
pub mod place;
pub mod provenance;
pub mod repetitions;
pub mod resumable;
mod room;
pub mod run_dir;
pub mod shard;
pub mod stopwatch;
pub mod store;
mod summary_file;
mod tasks;
mod warnings;
mod workers;

pub use self::attempt::Wanted;
pub use self::error::Error;
pub use self::experiment::{Destination, Experiment, Growth, Outcome, PartOutcome};
pub use self::tasks::{CellPlan, ONE_PLAN, Order};

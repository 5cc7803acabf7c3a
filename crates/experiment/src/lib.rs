//! Runs experiments: the repetitions of a plan or a study run, survive a kill of the process, and become one
//! run directory or the verdicts of a study.
//!
//! ```text
//! Plan  ─► shard ─► cells ─► tasks ─► workers ─► attempts in the room ─► parts ─► merge ─► run directory
//! Study ──────────► cells ─►   "        "               "            ─► samples ─► verdicts
//! ```
//!
//! The words, from the largest to the smallest:
//!
//! - *plan*: the cells of a scenario and the number of repetitions of each cell.
//! - *cell*: one combination of the values that a plan sweeps, or that a study names. Its *fingerprint*
//!   changes when somebody edits the cell, so a later process sees that it must run the cell again.
//! - *set*: the assumptions under which a study runs its cells. The *base* is the first set. A study is
//!   judged by its base.
//! - *repetition*: one run of a cell, with a seed of its own.
//! - *shard*: the repetitions that one of several machines runs.
//! - *task*: a repetition that a worker is to run, for the first time or again.
//! - *attempt*: one run of a task. In real time it waits until the *room* admits it: the room bounds how many
//!   runs share the machine at the same time.
//! - *rerun*: an attempt at a repetition that the machine disturbed, later than its stated limits allow.
//! - *part*: what a run directory keeps of a repetition: the figures and rows, as a line of a journal or as a
//!   folder.
//! - *sample*: what a study keeps of a repetition: the figures that its claims read, as a line of a journal.
//! - *keeper*: makes a part or a sample of each finished attempt.
//!
//! Begin to read with `repetitions.rs`, the loop of runs and studies. `experiment.rs` uses the loop to make a
//! run directory, `merge.rs` turns the parts into the files of the run, and `store.rs` says what survives a
//! kill. This crate knows arenas, keepers, observers and findings by a trait each (`place.rs`,
//! `repetitions.rs`, `observer.rs`, `findings.rs`). It knows neither command lines nor the words that a
//! terminal shows.

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
mod room;
pub mod run_dir;
pub mod run_options;
pub mod shard;
pub mod stopwatch;
pub mod store;
mod summary_file;
mod tasks;
mod warnings;
mod workers;

pub use self::attempt::RecordContents;
pub use self::error::{Error, FailedRun};
pub use self::experiment::{Destination, Experiment, Growth, Outcome, PartOutcome};
pub use self::tasks::{CellPlan, ONE_PLAN, Order};

//! Run directories and what survives a kill in them.
//!
//! ```text
//! store     files written whole, files of lines, locks: of these all that the commands keep is made
//! run_dir   a run's directory, which one process at a time works in
//! part      one finished repetition; journal: small ones, a line each; shard: some of a run's, for one machine
//! ```

pub mod choice;
mod error;
#[cfg(test)]
mod fixture;
pub mod journal;
pub mod part;
pub mod provenance;
pub mod resumable;
pub mod run_dir;
pub mod shard;
pub mod stopwatch;
pub mod store;

pub use self::error::Error;

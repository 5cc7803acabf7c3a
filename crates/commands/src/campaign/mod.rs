//! Runs a campaign: reads its file, keeps its directory, and starts the commands of each measurement.
//!
//! ```text
//! FILE.toml ─► Loaded ─► coordinate: Scheduler ──► attempt: `talkpath run` on the near host ─► records/ID
//!                            │   ▲                          (and `talkpath serve` on the far host)
//!                            ▼   │
//!                        store: plan.json, journal.jsonl        push: records/ID ─► the command of the store
//! ```
//!
//! - *coordinator*: the process that runs `talkpath campaign run`.
//! - *near host*, *far host*: the host that starts a measurement, and the host that it measures to.
//! - *attempt*: one try at a measurement. A failed attempt is repeated within the window of the measurement.
//! - *draft*: the folder of records that are not complete yet.
//! - *store*: the directory of the campaign on this machine (`store.rs`). `push` copies its records to
//!   another place, by a command of the user.
//!
//! Begin to read with `coordinate.rs`, then `attempt.rs`.

pub(crate) mod attempt;
pub(crate) mod coordinate;
pub(crate) mod hosts;
pub(crate) mod judged;
pub(crate) mod load;
pub(crate) mod process;
pub(crate) mod push;
pub(crate) mod remote;
pub(crate) mod store;

use std::time::{SystemTime, UNIX_EPOCH};

use talkpath_units::Instant;

/// Returns the time of the wall clock, in ns since the Unix epoch. A plan uses this clock, because it
/// continues after a reboot.
pub(crate) fn now() -> Instant {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Instant::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

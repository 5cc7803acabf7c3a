//! A campaign on this machine: its file, its directory, and what is started for each measurement.
//!
//! ```text
//! FILE.toml ─► Loaded ─► coordinate: Scheduler ──► attempt: `talkpath run` on the near host ─► records/ID
//!                            │   ▲                          (and `talkpath serve` on the far host)
//!                            ▼   │
//!                        store: plan.json, journal.jsonl        push: records/ID ─► the command of the store
//! ```

pub(crate) mod attempt;
pub(crate) mod child;
pub(crate) mod coordinate;
pub(crate) mod hosts;
pub(crate) mod load;
pub(crate) mod push;
pub(crate) mod store;

use std::time::{SystemTime, UNIX_EPOCH};

use talkpath_units::Instant;

/// The clock on the wall, ns since the Unix epoch: plans are kept by it, and survive a reboot.
pub(crate) fn now() -> Instant {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Instant::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

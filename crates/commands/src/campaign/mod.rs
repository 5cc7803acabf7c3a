//! Runs a campaign: reads its file, keeps its directory, and starts the commands of each measurement.
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

/// The time of the wall clock, in ns since the Unix epoch. A plan uses this clock, because it goes on over a
/// reboot.
pub(crate) fn now() -> Instant {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Instant::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

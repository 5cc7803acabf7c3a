//! Many hosts, measured again and again for days.
//!
//! ```text
//! Campaign (scenario) ─► schedule ─► Plan ─► Scheduler ◄─── time, ends of measurements
//!                                              │  ▲
//!                                        Event ▼  │ replay
//!                                             journal          summaries of the records ─► Findings, samples of a study
//! ```
//!
//! - *measurement*: one run from a *near* host, which starts it, to a *far* host, at one planned time.
//! - *measure*: what the file says to run between which hosts (`[measure.NAME]`): many measurements.
//! - *slot*: one time at which every pair of hosts is measured.
//! - *window*: how long after its slot a measurement may still begin. Then it is *abandoned*.
//! - *back-off*: how long a measurement that failed waits, and the host at fault with it, before the next
//!   try.
//! - *journal*: what became of each measurement: begun, done, failed, abandoned, a line for each event.
//! - *findings*: the tables of the report, from the summaries of all records.
//!
//! Begin to read with `scheduler.rs`, then `plan.rs`.
//!
//! The plan is made once: it follows from the file and its seed. The scheduler is a state machine that is
//! handed the time; the journal has what became of each measurement, and the scheduler is rebuilt from it.
//! [`Upload`] is a line of the notes on what was copied to a store.
//! [`Findings`] are the tables of the report, and [`samples`] what a study's claims read. No file is read
//! here, no clock, and nothing is started.

mod arena;
mod findings;
mod journal;
mod plan;
mod schedule;
mod scheduler;
mod status;
mod uploads;

pub use arena::samples;
pub use findings::{DayRow, Estimate, Findings, HourRow, MatrixRow, Missing, Recorded, findings};
pub use journal::{Entry, Event, Journal, JournalError};
pub use plan::{Measurement, Plan, fingerprint, millis};
pub use schedule::{Slot, slots};
pub use scheduler::{Fault, Scheduler, Step};
pub use status::{Failing, HostStatus, Status, StoreStatus, status};
pub use uploads::{Upload, Uploads, partition};

#[cfg(test)]
mod tests;

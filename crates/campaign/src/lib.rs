//! Campaigns: measurements between many hosts, repeated for days.
//!
//! ```text
//! Campaign (scenario) ─► schedule ─► Plan ─► Scheduler ◄─── time, ends of measurements
//!                                              │  ▲
//!                                        Event ▼  │ replay
//!                                             journal          summaries of the records ─► Findings, samples of a study
//! ```
//!
//! - *measurement*: one run from a *near* host, which starts it, to a *far* host, at one planned time.
//! - *measure*: a section `[measure.NAME]` of the file. It says what to run between which hosts. The plan has
//!   many measurements for it.
//! - *slot*: one time at which every pair of hosts is measured.
//! - *window*: the time after its slot in which a measurement may begin. After its window a measurement is
//!   *abandoned*.
//! - *back-off*: the wait before a measurement that failed is tried again. The host at which it failed also
//!   waits.
//! - *journal*: the events of all measurements, one line for each event: begun, done, failed, abandoned.
//! - *findings*: the tables of the report, from the summaries of all records.
//!
//! Begin to read with `scheduler.rs`, then `plan.rs`.
//!
//! The plan is made once, from the file and its seed. The scheduler is a state machine that gets the time
//! from its caller. It is rebuilt from the journal when a program starts again. [`Upload`] is a line of the
//! notes on what was copied to a store. [`Findings`] are the tables of the report, and [`samples`] makes the
//! data that a study's claims read. This crate reads no file and no clock, and it starts nothing.

mod arena;
mod findings;
mod journal;
mod plan;
mod schedule;
mod scheduler;
mod status;
mod uploads;

pub use arena::samples;
pub use findings::{
    DayRow, Estimate, Findings, HourRow, MatrixRow, Missing, PairThresholds, Recorded, findings,
};
pub use journal::{Entry, Event};
pub use plan::{Measurement, Plan, fingerprint, millis};
pub use schedule::{Slot, slots};
pub use scheduler::{Fault, Scheduler, Step};
pub use status::{Failing, HostStatus, Status, StoreStatus, status};
pub use uploads::{Upload, Uploads, partition};

#[cfg(test)]
mod tests;

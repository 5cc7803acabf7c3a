//! What happened: records, the files that hold them, and every metric.
//!
//! ```text
//! taps ─► RunRecord (one repetition of one cell) ─► packets.parquet, series.parquet
//!                     └─► metrics, pure functions ─► Summary (summary.json)
//! ```
//!
//! Nothing here knows which arena made the taps; what only an oracle knows (a drop's cause) is optional.
//!
//! - *leg*: one direction of a flow: forward, or the way back of an echo.
//! - *tap*: what an application and its channel call as a message passes. It builds the record of a leg.
//! - *trip*: a message as its user sees it: one way, or there and back with an echo.
//! - *record*: everything that one repetition of a cell left behind, with a row for each message.
//! - *tally*: the figures of a flow without its rows, counted as the run goes.
//! - *figure*: one number, flag or word of summary.json: a row of a table in `figures/`.
//! - *judged figure*: the one figure that says how well a flow was served: a score, a share in time, a
//!   goodput.
//! - *spread*: a figure over the repetitions of a cell: median, mean, interval.
//! - *standing*: how a candidate, such as a transport, compares with the best one over the repetitions.
//!
//! Begin to read with `tap.rs` and `record.rs`; `summarise.rs` says which metric goes into which figure.

pub mod breaks;
pub mod chart_data;
pub mod export;
pub mod figures;
pub mod judge;
pub mod log;
pub mod message;
pub mod metrics;
pub mod pcapng;
#[cfg(test)]
mod properties;
pub mod ranking;
pub mod record;
pub mod record_file;
pub mod series;
pub mod statistic;
pub mod summarise;
pub mod summary;
pub mod tally;
pub mod tap;
#[cfg(test)]
mod testing;
pub mod warning;

pub use talkpath_config::Codec;

pub use message::{CallTerms, DropCause, Fate, FlowInfo, Leg, LegRecord, MessageRecord, PlayoutRule, Terms};
pub use record::{
    BreakRecord, ClockRecord, EcnRecord, FileRecord, FlowCounters, FlowRecord, LateFlow, LatenessRecord,
    LinkRecord, MachineRecord, QueueDelayRecord, RunRecord, STOLEN_SHARE_TOLD, Series, SeriesKind,
    TurnRoundRecord,
};
pub use series::{SeriesTap, TimeWeighted, Weighted};
pub use tally::FlowTally;
pub use tap::{Ending, LegTap, ReadMessages};

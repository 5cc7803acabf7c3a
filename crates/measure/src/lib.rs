//! What happened: records, the files that hold them, and every metric.
//!
//! ```text
//! taps ─► RunRecord (one repetition of one cell) ─► packets.parquet, series.parquet
//!                     └─► metrics, pure functions ─► Summary (summary.json)
//! ```
//!
//! Nothing here knows which arena made the taps; what only an oracle knows (a drop's cause) is optional.

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

//! Records what happened in a run, writes and reads the record files, and computes every metric.
//!
//! ```text
//! taps ─► RunRecord (one repetition of one cell) ─► packets.parquet, series.parquet
//!                     └─► metrics, pure functions ─► Summary (summary.json)
//! ```
//!
//! Nothing here knows which arena made the taps. A fact that only a simulator knows, such as the cause of a
//! drop, is optional.
//!
//! The words, from the events of a run to the answers:
//!
//! - *leg*: one direction of a flow. The forward leg has the messages, and the return leg has their echoes.
//! - *tap*: builds the record of a leg. An application and its channel call it at each event of a message.
//! - *row*: what is known about one message on one leg.
//! - *record*: everything that one repetition of a cell left behind, with its rows.
//! - *trip*: a message as the user sees it. It goes one way, or forward and back if the flow has an echo.
//! - *tally*: counts the figures of a flow during the run, so that no rows are kept.
//! - *metric*: a function from the trips of a flow to some of its figures.
//! - *figure*: a number, a flag or a word of summary.json. Each figure has a row in a table of `figures/`.
//! - *judged figure*: the figure that says how well a flow was served: a score, a share in time, a goodput.
//! - *spread*: the median, the mean and the interval of a figure over the repetitions of a cell.
//! - *standing*: the comparison of a candidate, such as a transport, with the best candidate.
//!
//! Begin to read with `tap.rs` and `record.rs`. `summarise.rs` shows which metric computes which figure.

pub mod breaks;
pub mod chart_data;
pub mod export;
pub mod figures;
pub mod judge;
mod late_flow;
pub mod log;
pub mod message;
pub mod metrics;
pub mod path_changes;
pub mod pcapng;
#[cfg(test)]
mod properties;
pub mod ranking;
mod receiver;
pub mod record;
pub mod record_file;
pub mod rtp;
pub mod series;
pub mod statistic;
pub mod summarise;
pub mod summary;
pub mod tally;
pub mod tap;
#[cfg(test)]
mod testing;
pub mod warning;

pub use talkpath_config::{Bandwidth, Codec, Coding, Rated, Scale};

pub use late_flow::LateFlow;
pub use message::{
    CallTerms, Carriage, DropCause, Fate, FlowInfo, Leg, LegRecord, MessageRecord, PlayoutRule, Terms,
};
pub use metrics::call::Hearing;
pub use record::{
    BreakRecord, ClockRecord, EcnRecord, FileRecord, FlowCounters, FlowRecord, HeldRecord, LatenessRecord,
    LinkRecord, MachineRecord, OpeningRecord, ProgramOutcome, QueueDelayRecord, RunRecord, STOLEN_SHARE_TOLD,
    Series, SeriesKind, TurnRoundRecord,
};
pub use series::{SeriesTap, TimeWeighted, Weighted};
pub use tally::FlowTally;
pub use tap::{Ending, LegTap, ReadMessages};

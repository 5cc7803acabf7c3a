//! Compares the claims of a publication with runs of talkpath.
//!
//! ```text
//! study.toml ─► Study (cells under assumptions, claims, figures) ─► the caller runs each cell in an arena
//!                 │                                                      │ RunSummary
//!                 └──────────────► judge ◄── CellSamples ◄── Sample ◄────┘   (`kept.rs`: in any order)
//!                                    └─► Outcome (verdicts, with medians and intervals)
//! ```
//!
//! A study is data over ordinary scenario keys. This crate does not know what a key means, and no study has
//! code of its own. The crate reads neither files nor clocks: its callers pass it the texts, and run the
//! cells in an arena.
//!
//! - *cell*: a scenario that the publication ran or measured, in one arena under one assumption set.
//! - *assumption set*: one answer to what the publication leaves open. The first set is the *base*.
//! - *metric*: a figure of a run's summary, or one that the study computes from several.
//! - *check*: one comparison of medians of metrics over repetitions; its *operands* are these metrics.
//! - *claim*: what the publication says, as checks that must all hold.
//! - *verdict*: whether a claim holds under the base set, which means that it was reproduced.
//! - *standing*: whether the verdict is the same under the other sets (robust, fragile, or only under some
//!   sets).
//! - *basis*: whether the figure of a check was fitted, assumed, or predicted.
//! - *sample*: the metrics of one repetition. A few samples come with a *trace*, the series that figures
//!   draw.
//! - *kind*: the runs of a cell with the same value of a metric, such as the number of connections that lose.
//! - *disturbed*: a repetition that the machine disturbed past its stated limits. It is not judged.
//! - *bent*: a metric whose value the machine changed because it made packets late. It is absent from the
//!   sample.
//!
//! Begin to read with `study.rs` for what a study is, then `judge.rs`.

mod again;
mod arena;
mod band;
mod basis;
mod catalogue;
mod claim;
mod file;
mod fit;
mod form;
mod judge;
mod kept;
mod late;
mod load;
mod metric;
mod mistakes;
mod outcome;
mod over_time;
mod reuse;
mod sample;
mod selection;
mod shape;
mod stats;
mod stretch;
mod study;
mod table;
mod wording;
mod words;

pub use again::VerdictChange;
pub use arena::{ArenaName, arena_list};
pub use band::{BandPoint, TraceBand};
pub use catalogue::{Embedded, embedded};
pub use claim::{
    Basis, Bound, Check, Claim, ClaimKind, Formula, Operand, Order, Standing, Tolerance, Verdict,
};
pub use fit::Fit;
pub use judge::{judge, judge_across, judge_with};
pub use kept::{CellRepetitions, Sampled};
pub use load::{load, load_with};
pub use metric::{Derived, Metrics, Units};
pub use outcome::{
    ArenaVerdict, CellOutcome, CheckOutcome, ClaimOutcome, Drawing, FigureLine, FigureOutcome, FigurePoint,
    HeldBy, Outcome, RowOutcome, RunShare, SeedVerdict, SetOutcome, TableOutcome, TracePanel, Value,
};
pub use over_time::{OverTime, TimeFigure};
pub use reuse::EarlierRun;
pub use sample::{CellSamples, KeptTrace, LossRun, RunId, Sample, StateTrace, TraceLine};
pub use selection::{SelectedChecks, Selection};
pub use stats::{Median, median};
pub use stretch::Stretch;
pub use study::{
    Assumption, AxisTitles, CampaignCell, Cell, CellRuns, CellSource, Changes, Figure, FigureAxis,
    FigureKind, Kept, Kinds, LabelledCells, Level, MedianLine, Printed, Study,
};
pub use table::{PublishedRow, PublishedTable, Role};
pub use words::{
    deciding_figures_in_words, figures_in_words, format_figure, format_median, format_number, format_range,
    format_requirement, matches_pattern, unit_suffix, value_labels,
};

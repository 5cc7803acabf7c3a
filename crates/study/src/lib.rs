//! A publication's claims, held against runs.
//!
//! ```text
//! study.toml ─► Study (cells under assumptions, claims, figures) ─► the caller runs each cell in an arena
//!                 │                                                      │ RunSummary
//!                 └──────────────► judge ◄── CellSamples ◄── Sample ◄────┘
//!                                    └─► Outcome (verdicts, with medians and intervals)
//! ```
//!
//! A study is data over ordinary scenario keys: nothing here knows what a key means, and no study has code of
//! its own. What a publication leaves open stands in assumption sets, of which the first is the base; a claim
//! is judged under each, by the median over the repetitions, never by a single run. Its verdict is that under
//! the base. No file is read and no clock: texts come in as values, and whoever has an arena runs the cells.

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
mod late;
mod load;
mod metric;
mod outcome;
mod over_time;
mod place;
mod sample;
mod selection;
mod shape;
mod stats;
mod study;
mod table;
mod wording;
mod words;

pub use again::VerdictChange;
pub use arena::{ArenaName, arena_list};
pub use band::{BandPoint, TraceBand};
pub use catalogue::{Embedded, embedded};
pub use claim::{
    Basis, Bound, Check, Claim, ClaimKind, Expected, Figure as FigureOf, Operand, Standing, Tolerance,
    Verdict,
};
pub use fit::Fit;
pub use judge::judge;
pub use load::{load, load_with};
pub use metric::{Derived, Metrics, Units};
pub use outcome::{
    ArenaVerdict, CellOutcome, CheckOutcome, ClaimOutcome, Drawing, FigureLine, FigureOutcome, FigurePoint,
    HeldBy, Outcome, RowOutcome, SeedVerdict, TableOutcome, TracePanel, UnderAssumption, Value,
};
pub use over_time::{OverTime, TimeFigure};
pub use sample::{CellSamples, KeptTrace, LossRun, Sample, StateTrace, TraceLine};
pub use selection::Selection;
pub use stats::{Median, median};
pub use study::{
    Assumption, CampaignCell, Cell, Changes, Figure, FigureAxis, FigureKind, Form, Kept, Kinds, Level,
    MedianLine, Printed, Study,
};
pub use table::{PublishedRow, PublishedTable, Role};
pub use words::{shown, shown_figure, shown_must, shown_range, shown_unit, shown_value, value_labels};

//! The tables of figures. A *figure* is a number, a flag or a word of summary.json, and has one row in a
//! table:
//!
//! ```text
//! path                     unit  name            definition                         better  getter
//! round_trip_delay_ms.p90  ms    round trip p90  from due until the echo was read…  less    |flow| …
//! ```
//!
//! [`FLOW`], [`GROUP`], [`LINK`], [`MACHINE`] and [`CLOCK`] have a row for each figure, in the order of
//! summary.json. Counts by name (`ip.forward.dscp`) have one row, and lists have none. All code that prints,
//! checks, exports or documents figures reads these rows. A test compares the rows with the JSON of a
//! summary, so that no field is without a row.

mod call;
mod clock;
mod directions;
mod flow;
mod group;
mod link;
mod machine;
mod opening;
pub mod page;
pub(crate) mod row;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod unit;
mod waits;

pub use clock::CLOCK;
pub use flow::FLOW;
pub use group::GROUP;
pub use link::LINK;
pub use machine::MACHINE;
pub use row::{Counts, Figure, Getter, Messages, Table, Value};
/// How figures are written. `scenario`, which knows no figures, writes its numbers in the same way.
pub use talkpath_units::text;
pub use unit::{Better, Scale, Unit};

use crate::statistic::Statistic;

/// Returns the unit of the figure at `path` of a flow, a group or a link. If several of them have a figure at
/// `path`, it has the same unit. Returns `None` if there is no such figure.
pub fn unit_of(path: &str) -> Option<Unit> {
    if let Some(figure) = FLOW.find(path) {
        return Some(figure.unit);
    }
    if let Some(figure) = GROUP.find(path) {
        return Some(figure.unit);
    }
    LINK.find(path).map(|figure| figure.unit)
}

/// Returns the statistic over repetitions that represents the figure at `path` of a flow, a group or a link.
/// Returns the mean if there is no such figure.
pub fn statistic_of(path: &str) -> Statistic {
    unit_of(path).map_or(Statistic::Mean, Unit::statistic)
}

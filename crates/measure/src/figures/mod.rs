//! What a figure is: one row of a table.
//!
//! ```text
//! path                     unit  name            definition                         better  getter
//! round_trip_delay_ms.p90  ms    round trip p90  from due until the echo was read…  less    |flow| …
//! ```
//!
//! [`FLOW`], [`GROUP`], [`LINK`], [`MACHINE`] and [`CLOCK`] have a row for each number, flag and word of
//! summary.json, in the order of that file. Counts by name (`ip.forward.dscp`) are one row, lists are none.
//! Whoever prints, checks, exports or documents figures goes through these rows. A test holds the rows
//! against the JSON of a summary, so that no field lacks one.

mod call;
mod clock;
mod directions;
mod flow;
mod group;
mod link;
mod machine;
pub mod page;
pub(crate) mod row;
#[cfg(test)]
pub(crate) mod tests;
pub mod text;
pub(crate) mod unit;

pub use clock::CLOCK;
pub use flow::FLOW;
pub use group::GROUP;
pub use link::LINK;
pub use machine::MACHINE;
pub use row::{Counts, Figure, Getter, Messages, Table, Value};
pub use unit::{Better, Scale, Unit};

use crate::statistic::Statistic;

/// The unit of the figure at `path` below a flow, group or link; `None` if there is no such figure. If two
/// kinds have a figure at one path, both have one unit.
pub fn unit_of(path: &str) -> Option<Unit> {
    let of_group = || GROUP.find(path).map(|figure| figure.unit);
    let of_link = || LINK.find(path).map(|figure| figure.unit);
    FLOW.find(path).map(|figure| figure.unit).or_else(of_group).or_else(of_link)
}

/// The statistic over repetitions that represents the figure at `path` below its flow, group or link; the
/// mean for what is no figure there.
pub fn statistic_of(path: &str) -> Statistic {
    unit_of(path).map_or(Statistic::Mean, Unit::statistic)
}

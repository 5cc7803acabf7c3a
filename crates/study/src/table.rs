//! A publication's printed figures beside ours, cell by cell.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::outcome::Value;

/// A table of printed figures.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedTable {
    /// What it shows.
    pub title: String,
    /// In the file's order.
    pub rows: Vec<PublishedRow>,
}

/// One printed figure: a row of the CSV file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedRow {
    /// For a person; the cell and the metric where it is empty.
    #[serde(default)]
    pub what: String,
    /// The cell that answers it.
    pub cell: String,
    /// What is read of the cell.
    pub metric: String,
    /// As printed, in the metric's unit.
    pub published: f64,
    /// What the figure was used for.
    #[serde(default)]
    pub role: Role,
    /// Where it stands, or why it is exempt.
    #[serde(default)]
    pub note: String,
}

/// What a printed figure was used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The set-up was not chosen by it; also where nothing is said.
    #[default]
    #[serde(alias = "")]
    Predicted,
    /// A parameter of the set-up was chosen so that it comes out.
    Fitted,
    /// The publication's own figures rule it out.
    Exempt,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Predicted => "predicted",
            Self::Fitted => "fitted",
            Self::Exempt => "exempt",
        })
    }
}

/// A table with what came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableOutcome {
    /// What it shows.
    pub title: String,
    /// In the file's order; rows whose cell did not run have no values.
    pub rows: Vec<RowOutcome>,
}

/// One printed figure and ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowOutcome {
    /// As printed.
    #[serde(flatten)]
    pub row: PublishedRow,
    /// Under the base assumptions, one an arena in the order of the run's.
    pub values: Vec<Value>,
    /// By how much of the printed figure ours is off in the first of them; `null` where that is 0.
    pub off: Option<f64>,
}

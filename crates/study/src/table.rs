//! A publication's printed figures beside ours, cell by cell.

use core::fmt;

use serde::{Deserialize, Serialize};

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
    /// Which of the publication's tables it stands in; empty if the file holds one alone.
    #[serde(default)]
    pub table: String,
    /// For a person; the cell and the metric if it is empty.
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
    /// The set-up was not chosen by it; also if nothing is said.
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

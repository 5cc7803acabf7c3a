//! The language of the markers: a study, a subject, and options.
//!
//! ```text
//! STUDY SUBJECT [ ; OPTION]...
//! ```
//!
//! Options are separated by ` ; `, because a bar would end a cell of a Markdown table.

use super::options::Options;

/// The word for the subject that shows all charts.
pub(super) const PICTURES: &str = "pictures";

/// A marker of a place.
pub(super) struct Marker<'a> {
    pub study: &'a str,
    pub subject: Subject<'a>,
    pub options: Options,
}

/// The content of a place. In the patterns of checks and cells, a `*` stands for any text.
pub(super) enum Subject<'a> {
    /// `verdicts`: a table of all claims for each run.
    Verdicts,
    /// `tables`: printed values beside ours.
    Tables,
    /// `pictures`: links to all charts.
    Pictures,
    /// `count`: how many claims have which verdict.
    Count,
    /// `kinds FIGURE`: the kinds of runs in a figure over time.
    Kinds { figure: &'a str },
    /// `figure NUMBER`: a figure of medians as a table.
    Figure { number: &'a str },
    /// `verdict CLAIM`: the verdict of one claim.
    Verdict { claim: &'a str },
    /// `claim ID: CHECKS`: the figures of some checks.
    Claim { id: &'a str, checks: &'a str },
    /// `cell CELLS: METRIC`: the medians of a metric in some cells.
    Cell { cells: &'a str, metric: &'a str },
    /// `cells CELLS: METRIC, METRIC`: a table of metrics with a row for each cell.
    Cells { cells: &'a str, metrics: Vec<&'a str> },
}

impl<'a> Marker<'a> {
    pub(super) fn parse(marker: &'a str) -> Result<Self, String> {
        let mut parts = marker.split(" ; ").map(str::trim);
        let query = parts.next().unwrap_or_default();
        let options = Options::parse(parts)?;
        let (study, subject) = query.split_once(' ').ok_or("what is shown is missing")?;
        Ok(Self { study, subject: Subject::parse(subject)?, options })
    }
}

impl<'a> Subject<'a> {
    fn parse(subject: &'a str) -> Result<Self, String> {
        let (word, argument) = subject.split_once(' ').unwrap_or((subject, ""));
        let split_argument =
            || argument.split_once(": ").ok_or_else(|| format!("`{word} ID: NAME` expected"));
        Ok(match word {
            "verdicts" => Self::Verdicts,
            "tables" => Self::Tables,
            PICTURES => Self::Pictures,
            "count" => Self::Count,
            "kinds" => Self::Kinds { figure: argument },
            "figure" => Self::Figure { number: argument },
            "verdict" => Self::Verdict { claim: argument },
            "claim" => {
                let (id, checks) = split_argument()?;
                Self::Claim { id, checks }
            }
            "cell" => {
                let (cells, metric) = split_argument()?;
                Self::Cell { cells, metric }
            }
            "cells" => {
                let (cells, metrics) = split_argument()?;
                Self::Cells { cells, metrics: metrics.split(", ").collect() }
            }
            unknown => {
                return Err(format!(
                    "no `{unknown}`; there are claim, cell, cells, figure, verdict, verdicts, tables, pictures, count and kinds"
                ));
            }
        })
    }
}

//! Values of a link over time, from a table with a header.
//!
//! ```text
//!  time_s  rate_mbps  delay_ms
//!  0       48.2       25
//!  1       51.9       25
//!  2       0          38
//! ```
//!
//! The first line names the columns with their units: one time, and at least one value. Columns are split at
//! commas, semicolons, tabs or spaces. A value holds from its time on until the next row; times must not go
//! back. A rate of 0 holds all packets. What follows `#` in a line is a remark. The format is this project's
//! own (chosen): published collections have a header of their own, or none.

use std::str::FromStr;
use std::sync::Arc;

use talkpath_units::{Duration, Rate};

use crate::change::LinkValues;
use crate::config::{LossModel, RateModel};
use crate::rate_trace::{TraceError, TraceMistake, quoted};

/// Rows of a time and the values from then on; cheap to clone. At least one row.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeTable {
    rows: Arc<[(Duration, LinkValues)]>,
}

impl ChangeTable {
    /// The rows in the order of their times.
    pub fn rows(&self) -> &[(Duration, LinkValues)] {
        &self.rows
    }
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Column {
    /// Nanoseconds in one of its unit.
    Time(f64),
    /// Bits a second in one of its unit.
    Rate(f64),
    /// Nanoseconds in one of its unit.
    Delay(f64),
    /// How many of its unit make a share of 1.
    Loss(f64),
}

/// Every column that a header may name.
const COLUMNS: [(&str, Column); 10] = [
    ("time_s", Column::Time(1e9)),
    ("time_ms", Column::Time(1e6)),
    ("rate_bps", Column::Rate(1.0)),
    ("rate_kbps", Column::Rate(1e3)),
    ("rate_mbps", Column::Rate(1e6)),
    ("delay_s", Column::Delay(1e9)),
    ("delay_ms", Column::Delay(1e6)),
    ("delay_us", Column::Delay(1e3)),
    ("loss", Column::Loss(1.0)),
    ("loss_percent", Column::Loss(100.0)),
];

/// No row is later than this, no delay longer, and no rate higher: 11 days and a half, and 100 Tb/s, as in
/// scenarios.
const MOST_NANOS: f64 = 1e15;
const MOST_BPS: f64 = 1e14;

impl FromStr for ChangeTable {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        let lines =
            (1..).zip(text.lines().map(|line| line.split_once('#').map_or(line, |(before, _)| before)));
        let mut lines = lines.filter(|(_, line)| !line.trim().is_empty());
        let Some((line, first)) = lines.next() else {
            return Err(TraceError { line: 1, mistake: TraceMistake::Empty });
        };
        let columns = header(first).map_err(|mistake| TraceError { line, mistake })?;
        let mut rows: Vec<(Duration, LinkValues)> = Vec::new();
        for (line, row) in lines {
            let (time, values) = read_row(&columns, row).map_err(|mistake| TraceError { line, mistake })?;
            if let Some((previous, _)) = rows.last().filter(|(previous, _)| *previous > time) {
                let mistake = TraceMistake::TimeGoesBack {
                    found: time.as_secs_f64(),
                    previous: previous.as_secs_f64(),
                };
                return Err(TraceError { line, mistake });
            }
            rows.push((time, values));
        }
        if rows.is_empty() {
            return Err(TraceError { line, mistake: TraceMistake::NoRows });
        }
        Ok(Self { rows: rows.into() })
    }
}

/// The cells of a line.
fn cells(line: &str) -> impl Iterator<Item = &str> {
    let is_between = |c: char| matches!(c, ',' | ';' | '\t' | ' ' | '\r');
    line.split(is_between).map(str::trim).filter(|cell| !cell.is_empty())
}

/// The columns that a header names.
fn header(line: &str) -> Result<Vec<Column>, TraceMistake> {
    let mut columns: Vec<Column> = Vec::new();
    for name in cells(line) {
        let column = COLUMNS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let Some(&(_, column)) = column else {
            return Err(TraceMistake::NoHeader { found: quoted(name) });
        };
        let is_same = |other: &Column| core::mem::discriminant(other) == core::mem::discriminant(&column);
        if columns.iter().any(is_same) {
            return Err(TraceMistake::ColumnTwice { found: quoted(name) });
        }
        columns.push(column);
    }
    let times = columns.iter().filter(|column| matches!(column, Column::Time(_))).count();
    if times == 0 || columns.len() < 2 {
        return Err(TraceMistake::NoHeader { found: quoted(line.trim()) });
    }
    Ok(columns)
}

/// The time and the values of one line.
fn read_row(columns: &[Column], line: &str) -> Result<(Duration, LinkValues), TraceMistake> {
    let (mut time, mut values) = (Duration::ZERO, LinkValues::default());
    let found = cells(line).count();
    if found != columns.len() {
        return Err(TraceMistake::OtherColumns { found, expected: columns.len() });
    }
    for (cell, column) in cells(line).zip(columns) {
        let wrong = |most: f64| TraceMistake::NoValue { found: quoted(cell), most };
        let number = |unit: f64, most: f64| {
            let number = cell.parse::<f64>().ok().map(|number| number * unit);
            number.filter(|number| (0.0..=most).contains(number)).ok_or_else(|| wrong(most / unit))
        };
        match *column {
            Column::Time(unit) => time = Duration::from_nanos(number(unit, MOST_NANOS)?.round() as u64),
            Column::Rate(unit) => {
                let rate = Rate::from_bps(number(unit, MOST_BPS)?.round() as u64);
                values.rate = Some(RateModel::Fixed(rate));
            }
            Column::Delay(unit) => {
                values.delay = Some(Duration::from_nanos(number(unit, MOST_NANOS)?.round() as u64));
            }
            Column::Loss(unit) => {
                let rate = number(1.0 / unit, 1.0)?;
                values.loss = Some(if rate == 0.0 { LossModel::None } else { LossModel::Bernoulli { rate } });
            }
        }
    }
    Ok((time, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(text: &str) -> String {
        text.parse::<ChangeTable>().unwrap_err().to_string()
    }

    #[test]
    fn columns_have_the_units_that_the_header_names_in_any_order() {
        let text = "rate_mbps, time_s, delay_ms; loss_percent\n48.2 0 25 0 # fine\n\n0\t1.5\t38.5\t2\n";
        let table: ChangeTable = text.parse().unwrap();
        let rate = |bps| Some(RateModel::Fixed(Rate::from_bps(bps)));
        let [(first, calm), (second, busy)] = table.rows() else { panic!("{table:?}") };
        assert_eq!((*first, *second), (Duration::ZERO, Duration::from_millis(1500)));
        assert_eq!((&calm.rate, calm.delay), (&rate(48_200_000), Some(Duration::from_millis(25))));
        assert_eq!(calm.loss, Some(LossModel::None));
        assert_eq!((&busy.rate, busy.delay), (&rate(0), Some(Duration::from_micros(38_500))));
        assert_eq!(busy.loss, Some(LossModel::Bernoulli { rate: 0.02 }));
    }

    #[test]
    fn a_table_without_a_header_is_refused_with_the_line_to_add() {
        let found = mistake("0 48.2\n1 51.9\n");
        assert!(found.starts_with("line 1:") && found.contains("time_s rate_mbps"), "{found}");
    }

    #[test]
    fn a_wrong_row_is_named() {
        for (text, expected) in [
            ("time_s rate_mbps\n0 x\n", "line 2: found \"x\", expected a number from 0 to 100000000"),
            ("time_s rate_mbps\n0 -1\n", "line 2: found \"-1\""),
            ("time_s loss\n0 1.5\n", "line 2: found \"1.5\", expected a number from 0 to 1"),
            ("time_s rate_mbps\n0 NaN\n", "line 2: found \"NaN\""),
            ("time_s rate_mbps\n0 1 2\n", "line 2: found 3 columns, expected 2"),
            ("time_s rate_mbps\n1 1\n0 1\n", "line 3: the time 0 s comes after 1 s"),
            ("time_s rate_mbps\n", "line 1: no row follows the header"),
            ("time_s time_ms\n", "line 1: the header names \"time_ms\" beside a column of the same kind"),
            ("time_s\n0\n", "line 1: "),
            ("", "line 1: the trace is empty"),
        ] {
            assert!(mistake(text).starts_with(expected), "{text:?}: {}", mistake(text));
        }
    }
}

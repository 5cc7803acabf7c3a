//! Values of a link over time, from a table with a header.
//!
//! ```text
//!  time_s  rate_mbps  delay_ms          time_s  up_mbps  down_mbps  delay_ms
//!  0       48.2       25                0       9.1      48.2       25
//!  1       51.9       25                1       8.7      51.9       25
//!  2       0          38                2       0        0          38
//! ```
//!
//! The first line names the columns with their units: one time, and at least one value. Columns are split at
//! commas, semicolons, tabs or spaces. A value holds from its time on until the next row; times must not go
//! back. A rate of 0 holds all packets. What follows `#` in a line is a remark. The format is this project's
//! own (chosen): published collections have a header of their own, or none.
//!
//! A column whose name begins with `up_` or `down_` is about that direction of a path alone.
//!
//! Times count from the beginning of the run. If the first time is later than any run lasts, as times since
//! 1970 are, all count from the first one, to the microsecond: a float of seconds since 1970 is no finer.

use std::str::FromStr;
use std::sync::Arc;

use talkpath_units::{Duration, Rate};

use crate::change::LinkValues;
use crate::config::{LossModel, RateModel};
use crate::rate_trace::{TraceError, TraceMistake, quoted};

/// A time and the values from then on, in the order of the times.
pub type ChangeRows = [(Duration, LinkValues)];

/// Rows of a time and the values from then on, for each direction of a path; cheap to clone. At least one
/// row.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeTable {
    up: Arc<ChangeRows>,
    /// `None` if it has the values of the upload.
    down: Option<Arc<ChangeRows>>,
    /// The first time of the file in seconds, if the times count from there.
    origin: Option<f64>,
}

impl ChangeTable {
    /// The rows in the order of their times for the link of this name. `None` if the table has values for
    /// each direction, and the link is neither `up` nor `down`.
    pub fn rows_of(&self, link: &str) -> Option<&ChangeRows> {
        match (&self.down, link) {
            (None, _) | (Some(_), "up") => Some(&self.up),
            (Some(down), "down") => Some(down),
            (Some(_), _) => None,
        }
    }

    /// The rows of the upload, and those of the download if they differ.
    pub fn directions(&self) -> (&ChangeRows, Option<&ChangeRows>) {
        (&self.up, self.down.as_deref())
    }

    /// The first time of the file in seconds, if the times count from there.
    pub const fn origin(&self) -> Option<f64> {
        self.origin
    }
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Quantity {
    /// Nanoseconds in one of its unit.
    Time(f64),
    /// Bits a second in one of its unit.
    Rate(f64),
    /// Nanoseconds in one of its unit.
    Delay(f64),
    /// How many of its unit make a share of 1.
    Loss(f64),
}

/// A column, and the direction of a path that it is about.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Column {
    quantity: Quantity,
    /// `None` is both.
    direction: Option<Direction>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// Every column that a header may name.
const COLUMNS: [(&str, Quantity); 12] = [
    ("time_s", Quantity::Time(1e9)),
    ("time_ms", Quantity::Time(1e6)),
    ("time_us", Quantity::Time(1e3)),
    ("time_ns", Quantity::Time(1.0)),
    ("rate_bps", Quantity::Rate(1.0)),
    ("rate_kbps", Quantity::Rate(1e3)),
    ("rate_mbps", Quantity::Rate(1e6)),
    ("delay_s", Quantity::Delay(1e9)),
    ("delay_ms", Quantity::Delay(1e6)),
    ("delay_us", Quantity::Delay(1e3)),
    ("loss", Quantity::Loss(1.0)),
    ("loss_percent", Quantity::Loss(100.0)),
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
        let mut clock = Clock::default();
        let mut rows: Vec<Row> = Vec::new();
        for (line, cells) in lines {
            let row =
                Row::read(&columns, cells, &mut clock).map_err(|mistake| TraceError { line, mistake })?;
            if let Some(previous) = rows.last().map(|row| row.at).filter(|previous| *previous > row.at) {
                let mistake = TraceMistake::TimeGoesBack {
                    found: row.at.as_secs_f64(),
                    previous: previous.as_secs_f64(),
                };
                return Err(TraceError { line, mistake });
            }
            rows.push(row);
        }
        if rows.is_empty() {
            return Err(TraceError { line, mistake: TraceMistake::NoRows });
        }
        let has_directions = columns.iter().any(|column| column.direction.is_some());
        Ok(Self {
            down: has_directions.then(|| rows.iter().map(|row| (row.at, row.down.clone())).collect()),
            up: rows.into_iter().map(|row| (row.at, row.up)).collect(),
            origin: clock.first.flatten().map(|first| first * time_unit(&columns) / 1e9),
        })
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
        // Capital letters do not matter, but for the B of bytes: all rates are in bits.
        let column = if name.ends_with("Bps") { None } else { Column::named(&name.to_ascii_lowercase()) };
        let Some(column) = column else {
            return Err(TraceMistake::NoHeader { found: quoted(name) });
        };
        if columns.iter().any(|other| other.overlaps(&column)) {
            return Err(TraceMistake::ColumnTwice { found: quoted(name) });
        }
        columns.push(column);
    }
    let times = columns.iter().filter(|column| matches!(column.quantity, Quantity::Time(_))).count();
    if times == 0 || columns.len() < 2 {
        return Err(TraceMistake::NoHeader { found: quoted(line.trim()) });
    }
    Ok(columns)
}

impl Column {
    /// The column of this name, in small letters: `rate_mbps`, `up_delay_ms`, or `up_mbps` for
    /// `up_rate_mbps`.
    fn named(name: &str) -> Option<Self> {
        let known = |name: &str| COLUMNS.iter().find(|(known, _)| *known == name).map(|(_, it)| *it);
        if let Some(quantity) = known(name) {
            return Some(Self { quantity, direction: None });
        }
        let up = name.strip_prefix("up_").map(|rest| (Direction::Up, rest));
        let down = name.strip_prefix("down_").map(|rest| (Direction::Down, rest));
        let (direction, rest) = up.or(down)?;
        let quantity = known(rest).or_else(|| known(&format!("rate_{rest}")))?;
        let is_time = matches!(quantity, Quantity::Time(_));
        (!is_time).then_some(Self { quantity, direction: Some(direction) })
    }

    /// Whether both columns say the same quantity of the same direction.
    fn overlaps(&self, other: &Self) -> bool {
        let is_same = core::mem::discriminant(&self.quantity) == core::mem::discriminant(&other.quantity);
        let are_apart = matches!((self.direction, other.direction), (Some(one), Some(two)) if one != two);
        is_same && !are_apart
    }
}

/// What the first row said of the times.
#[derive(Default)]
struct Clock {
    /// Not known before the first row. Then the first time in the column's unit, if all count from there.
    first: Option<Option<f64>>,
}

/// The values of one line.
#[derive(Default)]
struct Row {
    at: Duration,
    up: LinkValues,
    down: LinkValues,
}

impl Row {
    fn read(columns: &[Column], line: &str, clock: &mut Clock) -> Result<Self, TraceMistake> {
        let mut row = Self::default();
        let found = cells(line).count();
        if found != columns.len() {
            return Err(TraceMistake::OtherColumns { found, expected: columns.len() });
        }
        for (cell, column) in cells(line).zip(columns) {
            let value = match column.quantity {
                Quantity::Time(unit) => {
                    row.at = clock.read(cell, unit)?;
                    continue;
                }
                quantity => Value::read(cell, quantity)?,
            };
            let (up, down) = match column.direction {
                None => (true, true),
                Some(direction) => (direction == Direction::Up, direction == Direction::Down),
            };
            if up {
                value.put(&mut row.up);
            }
            if down {
                value.put(&mut row.down);
            }
        }
        Ok(row)
    }
}

impl Clock {
    /// The time of a row, counted from the beginning of the run. `unit` is that of the column in nanoseconds.
    fn read(&mut self, cell: &str, unit: f64) -> Result<Duration, TraceMistake> {
        let most = MOST_NANOS / unit;
        let wrong = || TraceMistake::NoValue { found: quoted(cell), most };
        let number = cell.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(wrong)?;
        let first = *self.first.get_or_insert((number > most).then_some(number));
        let Some(first) = first else {
            let is_within = (0.0..=most).contains(&number);
            return if is_within { Ok(nanos(number * unit)) } else { Err(wrong()) };
        };
        // In the column's own unit, because whole numbers below 2^53 are exact.
        let passed = number - first;
        if passed < 0.0 {
            let seconds = |number: f64| number * unit / 1e9;
            return Err(TraceMistake::TimeGoesBack { found: seconds(number), previous: seconds(first) });
        }
        if passed > most {
            return Err(wrong());
        }
        Ok(nanos((passed * unit / 1e3).round() * 1e3))
    }
}

fn nanos(number: f64) -> Duration {
    Duration::from_nanos(number.round() as u64)
}

/// The nanoseconds in one unit of the column of times.
fn time_unit(columns: &[Column]) -> f64 {
    let unit = columns.iter().find_map(|column| match column.quantity {
        Quantity::Time(unit) => Some(unit),
        _ => None,
    });
    unit.unwrap_or(1e9)
}

/// A value of a link.
enum Value {
    Rate(RateModel),
    Delay(Duration),
    Loss(LossModel),
}

impl Value {
    fn read(cell: &str, quantity: Quantity) -> Result<Self, TraceMistake> {
        let number = |unit: f64, most: f64| {
            let number = cell.parse::<f64>().ok().map(|number| number * unit);
            let wrong = || TraceMistake::NoValue { found: quoted(cell), most: most / unit };
            number.filter(|number| (0.0..=most).contains(number)).ok_or_else(wrong)
        };
        Ok(match quantity {
            Quantity::Rate(unit) => {
                Self::Rate(RateModel::Fixed(Rate::from_bps(number(unit, MOST_BPS)?.round() as u64)))
            }
            Quantity::Time(unit) | Quantity::Delay(unit) => Self::Delay(nanos(number(unit, MOST_NANOS)?)),
            Quantity::Loss(unit) => {
                let rate = number(1.0 / unit, 1.0)?;
                Self::Loss(if rate == 0.0 { LossModel::None } else { LossModel::Bernoulli { rate } })
            }
        })
    }

    fn put(&self, values: &mut LinkValues) {
        match self {
            Self::Rate(rate) => values.rate = Some(rate.clone()),
            Self::Delay(delay) => values.delay = Some(*delay),
            Self::Loss(loss) => values.loss = Some(loss.clone()),
        }
    }
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
        let (up, None) = table.directions() else { panic!("{table:?}") };
        let [(first, calm), (second, busy)] = up else { panic!("{table:?}") };
        assert_eq!((*first, *second), (Duration::ZERO, Duration::from_millis(1500)));
        assert_eq!((&calm.rate, calm.delay), (&rate(48_200_000), Some(Duration::from_millis(25))));
        assert_eq!(calm.loss, Some(LossModel::None));
        assert_eq!((&busy.rate, busy.delay), (&rate(0), Some(Duration::from_micros(38_500))));
        assert_eq!(busy.loss, Some(LossModel::Bernoulli { rate: 0.02 }));
    }

    #[test]
    fn a_column_of_one_direction_is_about_that_link_alone_and_others_about_both() {
        let table: ChangeTable =
            "time_s,up_mbps,down_rate_kbps,delay_ms\n0,2,50,20\n1,0,40,30\n".parse().unwrap();
        let rate = |link: &str, row: usize| table.rows_of(link).unwrap()[row].1.rate.clone();
        let bps = |bps| Some(RateModel::Fixed(Rate::from_bps(bps)));
        assert_eq!((rate("up", 0), rate("up", 1)), (bps(2_000_000), bps(0)));
        assert_eq!((rate("down", 0), rate("down", 1)), (bps(50_000), bps(40_000)));
        assert_eq!(table.rows_of("down").unwrap()[1].1.delay, Some(Duration::from_millis(30)));
        assert_eq!(table.rows_of("bottleneck"), None);
        let both: ChangeTable = "time_s rate_mbps\n0 1\n".parse().unwrap();
        assert_eq!(both.rows_of("bottleneck"), both.rows_of("up"));
        for twice in
            ["time_s up_mbps rate_kbps", "time_s down_loss loss_percent", "time_s up_mbps up_rate_bps"]
        {
            assert!(mistake(twice).contains("beside a column of the same kind"), "{twice}");
        }
        assert!(mistake("time_s up_time_s").contains("expected a header"));
    }

    #[test]
    fn times_since_1970_count_from_the_first_row() {
        let text = "time_us rate_mbps\n1700000000123456 5\n1700000000223456 6\n1700000001123457 7\n";
        let table: ChangeTable = text.parse().unwrap();
        let at: Vec<u64> = table.directions().0.iter().map(|(at, _)| at.as_nanos()).collect();
        assert_eq!(at, [0, 100_000_000, 1_000_001_000]);
        assert!((table.origin().unwrap() - 1_700_000_000.123_456).abs() < 1e-6);
        let seconds: ChangeTable = "time_s loss\n1700000000.5 0\n1700000000.75 1\n".parse().unwrap();
        assert_eq!(seconds.directions().0[1].0, Duration::from_millis(250));
        let from_five: ChangeTable = "time_s loss\n5 0\n".parse().unwrap();
        assert_eq!((from_five.directions().0[0].0, from_five.origin()), (Duration::from_secs(5), None));
        let back = mistake("time_s loss\n1700000000 0\n1600000000 0\n");
        assert!(back.starts_with("line 3: the time 1600000000 s comes after 1700000000 s"), "{back}");
        let years = mistake("time_s loss\n1700000000 0\n1800000000 0\n");
        assert!(years.starts_with("line 3: found \"1800000000\""), "{years}");
    }

    #[test]
    fn a_table_without_a_header_is_refused_with_the_line_to_add() {
        // Megabytes a second are no megabits.
        assert!(mistake("time_s rate_MBps\n0 1\n").contains("rate_MBps"));
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

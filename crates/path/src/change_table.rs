//! Values of a link over time, from a table with a header.
//!
//! ```text
//!  time_s  rate_mbps  delay_ms          time                  up_kbps  down_kbps  rtt_ms
//!  0       48.2       25                2026-11-29 14:00:00;  9100;    48200;     50
//!  1       51.9       25                2026-11-29 14:00:01;  8700;    51900;
//!  2       0          38                2026-11-29 14:00:02;  0;       0;         76
//! ```
//!
//! The first line names the columns with their units: one time, and at least one value. Columns are split at
//! semicolons, tabs, commas or blanks. A comma that does not split is a decimal comma. A value holds from its
//! time on until the next row; times must not go back. A rate of 0 holds all packets. What follows `#` in a
//! line is a remark. The format is this project's own (chosen): published collections have a header of
//! their own, or none.
//!
//! - A column whose name begins with `up_` or `down_` is about that direction of a path alone.
//! - `rtt_ms` is a round trip, of which each direction has half.
//! - An empty delay or loss keeps the value of the row before, because neither is known while nothing
//!   arrives. An empty rate is refused, because it may be a silence or a row that was not measured.
//!
//! `clock` has the times, and `doubts` what is implausible.

mod clock;
mod doubts;
#[cfg(test)]
mod tests;

use core::fmt::Write as _;
use std::str::FromStr;
use std::sync::Arc;

use talkpath_units::{Duration, Rate, counted};

use self::clock::{Clock, TimeColumn};
use crate::change::LinkValues;
use crate::config::{LossModel, RateModel};
use crate::rate_trace::{TraceError, TraceMistake, quoted, without_mark};

/// A time and the values from then on, in the order of the times.
pub type ChangeRows = [(Duration, LinkValues)];

/// Rows of a time and the values from then on, for each direction of a path; cheap to clone. At least one
/// row.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeTable {
    up: Arc<ChangeRows>,
    /// `None` if it has the values of the upload.
    down: Option<Arc<ChangeRows>>,
    /// The first time of the file in words, if the times count from there.
    origin: Option<Arc<str>>,
    notes: Arc<[String]>,
    doubts: Arc<[String]>,
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

    /// The first time of the file, if the times count from there: `1700000000 s, 2023-11-14T22:13:20Z`.
    pub fn origin(&self) -> Option<&str> {
        self.origin.as_deref()
    }

    /// Says how the table was read where its header does not say all, a sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Says what is implausible in the table, a sentence each.
    pub fn doubts(&self) -> &[String] {
        &self.doubts
    }

    /// The time after which the table repeats where nothing else says it: the last row holds as long as the
    /// row before it, or a second if there is none. It is a whole number of milliseconds.
    pub fn period(&self) -> Duration {
        let last = self.up.last().map_or(Duration::ZERO, |(time, _)| *time);
        let step = match &self.up[..] {
            [.., (before, _), (last, _)] if last > before => last.saturating_sub(*before),
            _ => Duration::from_secs(1),
        };
        Duration::from_millis(last.saturating_add(step).as_nanos().div_ceil(1_000_000))
    }

    /// Writes the table with times that count from its first row.
    pub fn written_from_zero(&self) -> String {
        let rows_of: Vec<(&str, &ChangeRows)> = match &self.down {
            None => vec![("", &self.up)],
            Some(down) => vec![("up_", &self.up), ("down_", down)],
        };
        let mut columns: Vec<(String, &ChangeRows, CellOf)> = Vec::new();
        for (prefix, rows) in rows_of {
            for (name, cell) in WRITTEN_COLUMNS {
                if rows.iter().any(|(_, values)| cell(values).is_some()) {
                    columns.push((format!("{prefix}{name}"), rows, cell));
                }
            }
        }
        let mut text = "time_s".to_owned();
        columns.iter().for_each(|(name, ..)| text.extend([",", name.as_str()]));
        text.push('\n');
        let first = self.up.first().map_or(Duration::ZERO, |(time, _)| *time);
        for (row, (time, _)) in self.up.iter().enumerate() {
            let _ = write!(text, "{}", time.saturating_sub(first).as_secs_f64());
            for (_, rows, cell) in &columns {
                let value = rows.get(row).and_then(|(_, values)| cell(values));
                let _ = match value {
                    Some(value) => write!(text, ",{value}"),
                    None => write!(text, ","),
                };
            }
            text.push('\n');
        }
        text
    }
}

/// Returns the value of a column that is written.
type CellOf = fn(&LinkValues) -> Option<f64>;

/// The columns that are written, without their direction.
const WRITTEN_COLUMNS: [(&str, CellOf); 3] = [
    ("rate_bps", |values| match values.rate {
        Some(RateModel::Fixed(rate)) => Some(rate.as_bps() as f64),
        _ => None,
    }),
    ("delay_ms", |values| values.delay.map(Duration::as_millis_f64)),
    ("loss", |values| values.loss.as_ref().map(LossModel::mean)),
];

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Quantity {
    Time(TimeColumn),
    /// The column's unit in bit/s.
    Rate(f64),
    /// The column's unit in nanoseconds.
    Delay(f64),
    /// A round trip. The column's unit in nanoseconds.
    RoundTrip(f64),
    /// The number that is a share of 1 in the column's unit.
    Loss(f64),
}

/// A column, and the direction of a path that it is about.
#[derive(Clone, Debug, PartialEq)]
struct Column {
    /// As the header has it.
    name: String,
    quantity: Quantity,
    /// `None` if it is about both directions.
    direction: Option<Direction>,
    /// The number of rows in which it is empty.
    empty_rows: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// Every column that a header may name.
const COLUMNS: [(&str, Quantity); 16] = [
    ("time_s", Quantity::Time(TimeColumn::Number(1e9))),
    ("time_ms", Quantity::Time(TimeColumn::Number(1e6))),
    ("time_us", Quantity::Time(TimeColumn::Number(1e3))),
    ("time_ns", Quantity::Time(TimeColumn::Number(1.0))),
    ("time", Quantity::Time(TimeColumn::Date)),
    ("rate_bps", Quantity::Rate(1.0)),
    ("rate_kbps", Quantity::Rate(1e3)),
    ("rate_mbps", Quantity::Rate(1e6)),
    ("delay_s", Quantity::Delay(1e9)),
    ("delay_ms", Quantity::Delay(1e6)),
    ("delay_us", Quantity::Delay(1e3)),
    ("rtt_s", Quantity::RoundTrip(1e9)),
    ("rtt_ms", Quantity::RoundTrip(1e6)),
    ("rtt_us", Quantity::RoundTrip(1e3)),
    ("loss", Quantity::Loss(1.0)),
    ("loss_percent", Quantity::Loss(100.0)),
];

/// No delay is longer, and no rate higher: 11 days and a half, and 100 Tb/s, as in scenarios.
const MOST_NANOS: f64 = 1e15;
const MOST_BPS: f64 = 1e14;

impl FromStr for ChangeTable {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        let lines = (1..).zip(
            without_mark(text).lines().map(|line| line.split_once('#').map_or(line, |(before, _)| before)),
        );
        let mut lines = lines.filter(|(_, line)| !line.trim().is_empty());
        let Some((line, first)) = lines.next() else {
            return Err(TraceError { line: 1, mistake: TraceMistake::Empty });
        };
        let at_line = |line: usize| move |mistake| TraceError { line, mistake };
        let Header { mut columns, separator } = Header::read(first).map_err(at_line(line))?;
        let mut clock = Clock::new(time_column(&columns));
        let mut rows: Vec<Row> = Vec::new();
        for (line, cells) in lines {
            let row = Row::read(&mut columns, separator, cells, &mut clock, rows.last());
            rows.push(row.map_err(at_line(line))?);
        }
        if rows.is_empty() {
            return Err(TraceError { line, mistake: TraceMistake::NoRows });
        }
        let has_directions = columns.iter().any(|column| column.direction.is_some());
        let down: Option<Arc<ChangeRows>> =
            has_directions.then(|| rows.iter().map(|row| (row.at, row.down.clone())).collect());
        let up: Arc<ChangeRows> = rows.into_iter().map(|row| (row.at, row.up)).collect();
        Ok(Self {
            notes: notes(&columns).into(),
            doubts: doubts(&columns, &clock, &up, down.as_deref()).into(),
            origin: clock.origin().map(Arc::from),
            up,
            down,
        })
    }
}

/// Says how the columns were read.
fn notes(columns: &[Column]) -> Vec<String> {
    let mut notes = Vec::new();
    for column in columns {
        let name = &column.name;
        if matches!(column.quantity, Quantity::RoundTrip(_)) {
            notes.push(format!("half of {name} is the delay of each direction"));
        }
        if column.empty_rows > 0 {
            let rows = counted(column.empty_rows, "row");
            notes.push(format!("{name} is empty in {rows}, where the value before holds"));
        }
    }
    notes
}

/// Says what is implausible in a table.
fn doubts(columns: &[Column], clock: &Clock, up: &ChangeRows, down: Option<&ChangeRows>) -> Vec<String> {
    let mut doubts: Vec<String> = clock.doubt().map(str::to_owned).into_iter().collect();
    // Both directions have the same times.
    let of_times = [
        doubts::missing_rows(up),
        doubts::times_twice(up),
        doubts::implausible_steps(up, time_column(columns)),
    ];
    doubts.extend(of_times.into_iter().flatten());
    let unequal = down.and_then(|down| doubts::unequal_directions(up, down));
    for (direction, rows) in [(Direction::Up, Some(up)), (Direction::Down, down)] {
        let Some(rows) = rows else { continue };
        for column in columns.iter().filter(|column| column.direction.is_none_or(|of| of == direction)) {
            let doubt = match column.quantity {
                Quantity::Rate(_) if unequal.is_some() => None,
                Quantity::Rate(unit) => doubts::implausible_rates(rows, unit),
                Quantity::Delay(unit) => doubts::implausible_delays(rows, unit, "delay"),
                Quantity::RoundTrip(unit) => doubts::implausible_delays(rows, unit, "rtt"),
                Quantity::Loss(1.0) => doubts::implausible_losses(rows),
                Quantity::Loss(_) | Quantity::Time(_) => None,
            };
            // A column of both directions is doubted once.
            doubts.extend(doubt.filter(|_| column.direction.is_some() || direction == Direction::Up));
        }
    }
    doubts.extend(unequal);
    doubts
}

/// What separates the cells of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    Char(char),
    Blanks,
}

/// In the order in which they are looked for: a comma and a blank may be parts of a number or a date.
const SEPARATORS: [Separator; 4] =
    [Separator::Char(';'), Separator::Char('\t'), Separator::Char(','), Separator::Blanks];

impl Separator {
    /// The separator that a header has.
    fn of(header: &str) -> Self {
        let has = |separator: &&Self| matches!(separator, Self::Char(between) if header.contains(*between));
        SEPARATORS.iter().find(has).copied().unwrap_or(Self::Blanks)
    }

    /// The cells of a line. Cells may be empty, unless blanks are between them.
    fn split(self, line: &str) -> Vec<&str> {
        match self {
            Self::Char(between) => line.split(between).map(str::trim).collect(),
            Self::Blanks => {
                let mut cells: Vec<&str> = Vec::new();
                for cell in line.split_whitespace() {
                    let date = cells.last().filter(|before| is_day(before) && cell.contains(':')).copied();
                    match date {
                        Some(day) => {
                            cells.pop();
                            // Both are parts of the line.
                            let begin = day.as_ptr() as usize - line.as_ptr() as usize;
                            let end = cell.as_ptr() as usize - line.as_ptr() as usize + cell.len();
                            cells.push(&line[begin..end]);
                        }
                        None => cells.push(cell),
                    }
                }
                cells
            }
        }
    }

    /// The `count` cells of a row. A line may end with a separator.
    fn split_into(self, line: &str, count: usize) -> Option<Vec<&str>> {
        let mut cells = self.split(line);
        if cells.len() == count + 1 && cells.last() == Some(&"") {
            cells.pop();
        }
        (cells.len() == count).then_some(cells)
    }
}

/// Whether a cell is the day of a date: `2026-11-29`.
fn is_day(cell: &str) -> bool {
    let bytes = cell.as_bytes();
    bytes.len() == 10 && bytes[4] == b'-' && bytes[7] == b'-'
}

/// What the first line says.
struct Header {
    columns: Vec<Column>,
    separator: Separator,
}

impl Header {
    /// Reads the columns that a header names.
    fn read(line: &str) -> Result<Self, TraceMistake> {
        let separator = Separator::of(line);
        let mut columns: Vec<Column> = Vec::new();
        for name in separator.split(line).into_iter().filter(|name| !name.is_empty()) {
            // Capital letters do not matter, but for the B of bytes: all rates are in bits.
            if let Some(prefix) = name.strip_suffix("Bps") {
                let letter = prefix.chars().last().filter(|letter| "kMG".contains(*letter));
                let bits = letter.map_or_else(String::new, |letter| letter.to_ascii_lowercase().to_string());
                return Err(TraceMistake::RateInBytes { found: quoted(name), bits });
            }
            let Some(column) = Column::named(&name.to_ascii_lowercase()) else {
                return Err(TraceMistake::NoHeader { found: quoted(name) });
            };
            if columns.iter().any(|other| other.overlaps(&column)) {
                return Err(TraceMistake::ColumnTwice { found: quoted(name) });
            }
            columns.push(column);
        }
        let is_time = |column: &Column| matches!(column.quantity, Quantity::Time(_));
        let times = columns.iter().filter(|column| is_time(column)).count();
        if times == 1 && columns.len() == 1 {
            return Err(TraceMistake::NoValueColumn { found: quoted(line.trim()) });
        }
        if times == 0 || columns.len() < 2 {
            return Err(TraceMistake::NoHeader { found: quoted(line.trim()) });
        }
        Ok(Self { columns, separator })
    }
}

/// The column of times. A header has one.
fn time_column(columns: &[Column]) -> TimeColumn {
    let times = columns.iter().find_map(|column| match column.quantity {
        Quantity::Time(times) => Some(times),
        _ => None,
    });
    times.unwrap_or(TimeColumn::Number(1e9))
}

impl Column {
    /// The column of this name, in small letters: `rate_mbps`, `up_delay_ms`, or `up_mbps` for
    /// `up_rate_mbps`.
    fn named(name: &str) -> Option<Self> {
        let known = |name: &str| COLUMNS.iter().find(|(known, _)| *known == name).map(|(_, it)| *it);
        let column = |quantity, direction| Self { name: name.to_owned(), quantity, direction, empty_rows: 0 };
        if let Some(quantity) = known(name) {
            return Some(column(quantity, None));
        }
        let up = name.strip_prefix("up_").map(|rest| (Direction::Up, rest));
        let down = name.strip_prefix("down_").map(|rest| (Direction::Down, rest));
        let (direction, rest) = up.or(down)?;
        let quantity = known(rest).or_else(|| known(&format!("rate_{rest}")))?;
        let is_of_both = matches!(quantity, Quantity::Time(_) | Quantity::RoundTrip(_));
        (!is_of_both).then(|| column(quantity, Some(direction)))
    }

    /// Whether both columns say the same quantity of the same direction.
    fn overlaps(&self, other: &Self) -> bool {
        let are_apart = matches!((self.direction, other.direction), (Some(one), Some(two)) if one != two);
        self.quantity.is_same(other.quantity) && !are_apart
    }
}

impl Quantity {
    /// Whether both are the same quantity, perhaps in different units.
    fn is_same(self, other: Self) -> bool {
        let is_delay = |quantity| matches!(quantity, Self::Delay(_) | Self::RoundTrip(_));
        let is_same = core::mem::discriminant(&self) == core::mem::discriminant(&other);
        is_same || (is_delay(self) && is_delay(other))
    }
}

/// The values of one line.
#[derive(Default)]
struct Row {
    at: Duration,
    up: LinkValues,
    down: LinkValues,
}

impl Row {
    fn read(
        columns: &mut [Column],
        separator: Separator,
        line: &str,
        clock: &mut Clock,
        before: Option<&Self>,
    ) -> Result<Self, TraceMistake> {
        let mut row = Self::default();
        // A row may have other separators than the header.
        let candidates = [separator].into_iter().chain(SEPARATORS);
        let split = |separator: Separator| Some((separator, separator.split_into(line, columns.len())?));
        let Some((separator, cells)) = candidates.into_iter().find_map(split) else {
            let found = separator.split(line).len();
            let has_comma = separator == Separator::Char(',') && found > columns.len();
            return Err(TraceMistake::OtherColumns { found, expected: columns.len(), has_comma });
        };
        for (cell, column) in cells.into_iter().zip(columns) {
            let decimal = cell.replace(',', ".");
            let cell = if separator == Separator::Char(',') { cell } else { decimal.as_str() };
            if let Quantity::Time(_) = column.quantity {
                row.at = clock.read(cell)?;
                continue;
            }
            let (up, down) = match column.direction {
                None => (true, true),
                Some(direction) => (direction == Direction::Up, direction == Direction::Down),
            };
            if cell.is_empty() {
                if matches!(column.quantity, Quantity::Rate(_)) {
                    return Err(TraceMistake::EmptyRate { column: column.name.clone() });
                }
                column.empty_rows += 1;
                if let Some(before) = before {
                    let held = |values: &mut LinkValues, before: &LinkValues| match column.quantity {
                        Quantity::Loss(_) => values.loss = before.loss.clone(),
                        _ => values.delay = before.delay,
                    };
                    if up {
                        held(&mut row.up, &before.up);
                    }
                    if down {
                        held(&mut row.down, &before.down);
                    }
                }
                continue;
            }
            let value = Value::read(cell, column.quantity)?;
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

fn nanos(number: f64) -> Duration {
    Duration::from_nanos(number.round() as u64)
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
            Quantity::RoundTrip(unit) => Self::Delay(nanos(number(unit, MOST_NANOS)? / 2.0)),
            Quantity::Delay(unit) => Self::Delay(nanos(number(unit, MOST_NANOS)?)),
            Quantity::Time(_) => Self::Delay(Duration::ZERO),
            Quantity::Loss(unit) => {
                if unit == 1.0
                    && cell.parse().is_ok_and(|share: f64| (1.0..=100.0).contains(&share) && share > 1.0)
                {
                    return Err(TraceMistake::PerCentAsShare { found: quoted(cell) });
                }
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

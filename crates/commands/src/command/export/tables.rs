//! The flat tables of a run: messages, series, repetitions, cells and links.
//!
//! A row holds the figures of one repetition, or statistics over all repetitions, but never both.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Write};

use serde::Deserialize;
use serde_json::Value;
use talkpath_measure::RunRecord;
use talkpath_measure::export::{
    Column, ColumnKind, Field, TableFormat, TableWriter, message_columns, message_row, series_columns,
    series_row,
};
use talkpath_measure::figures::{FLOW, GROUP, Getter, LINK, Table};
use talkpath_measure::record_file::{
    PacketRow, PacketRows, RecordError, SeriesRow, SeriesRows, packet_rows, read_packets, read_series,
    series_rows,
};
use talkpath_measure::summary::{RunSummary, Spread, Summary};

use super::swept::{Swept, common, kind_of};
use crate::again::Repetitions;
use crate::arenas::Arenas;
use crate::args::ExportTable;
use crate::failure::Failure;
use crate::summary_file::{read_summary, refuse_later_format};
use crate::terminal::Terminal;
use talkpath_experiment::part::{PACKETS, SERIES, SUMMARY};
use talkpath_experiment::run_dir::RunDir;
use talkpath_experiment::store::whole::{find_file, open_file, unexpected_json};

/// Writes `table` of the run in `dir` to `out`. `unwritten` makes the failure for a failed write.
pub(super) fn write(
    (dir, arenas, terminal): (&RunDir, &dyn Arenas, Terminal),
    table: ExportTable,
    format: TableFormat,
    out: impl Write + Send,
    unwritten: impl Fn(io::Error) -> Failure,
) -> Result<(), Failure> {
    let summary = || read_summary(dir, terminal);
    let result = match table {
        ExportTable::Messages => return MESSAGES.write((dir, arenas), format, out, unwritten),
        ExportTable::Series => return POINTS.write((dir, arenas), format, out, unwritten),
        ExportTable::Repetitions => repetitions(&summary()?, format, out, "flow", |run| {
            let groups = run.groups.iter().map(|(name, group)| (name, known(&GROUP, &**group)));
            run.flows.iter().map(|(name, flow)| (name, known(&FLOW, &**flow))).chain(groups).collect()
        }),
        ExportTable::Links => repetitions(&summary()?, format, out, "link", |run| {
            run.links.iter().map(|(name, link)| (name, known(&LINK, &**link))).collect()
        }),
        ExportTable::Cells => cells(&summary()?, format, out),
    };
    result.map_err(|why| failed(why, unwritten))
}

fn failed(why: RecordError, unwritten: impl Fn(io::Error) -> Failure) -> Failure {
    match why {
        RecordError::Io(why) => unwritten(why),
        other => unwritten(io::Error::other(other)),
    }
}

/// The table of messages: one row for each message and direction.
const MESSAGES: RowTable<PacketRow, PacketRows<File>> = RowTable {
    file: PACKETS,
    columns: message_columns,
    cell: |row| row.cell,
    fill: message_row,
    read: read_packets,
    again: |record| Box::new(packet_rows(record)),
};

/// The table of series: one row for each point of a quantity over time.
const POINTS: RowTable<SeriesRow, SeriesRows<File>> = RowTable {
    file: SERIES,
    columns: series_columns,
    cell: |row| row.cell,
    fill: series_row,
    read: read_series,
    again: |record| Box::new(series_rows(record)),
};

/// A table whose rows come from a record file. If the run has no such file, they come from running it again.
struct RowTable<Row, Stored> {
    /// The name of the record file.
    file: &'static str,
    /// Makes the columns of the table, given the columns of the swept keys.
    columns: fn(&[Column]) -> Vec<Column>,
    /// The index of the cell of a row.
    cell: fn(&Row) -> u64,
    /// Puts a row, and the swept values of its cell, into fields.
    fill: fn(&Row, &[Field], &mut Vec<Field>),
    read: fn(File) -> Result<Stored, RecordError>,
    /// The rows of a repetition that was run again.
    again: for<'r> fn(&'r RunRecord) -> Box<dyn Iterator<Item = Row> + 'r>,
}

impl<Row, Stored: Iterator<Item = Result<Row, RecordError>>> RowTable<Row, Stored> {
    /// Writes the table of the run in `dir`. Only one row group or one repetition is in memory at a time.
    fn write(
        &self,
        (dir, arenas): (&RunDir, &dyn Arenas),
        format: TableFormat,
        out: impl Write + Send,
        unwritten: impl Fn(io::Error) -> Failure,
    ) -> Result<(), Failure> {
        let swept = swept_of(dir)?;
        let columns = (self.columns)(&swept.columns);
        let mut table = TableWriter::new(columns, format, out).map_err(|why| failed(why, &unwritten))?;
        let mut fields = Vec::new();
        let mut add = |cell: u64, row: &Row| {
            (self.fill)(row, swept.fields(cell), &mut fields);
            table.row(&fields).map_err(|why| failed(why, &unwritten))
        };
        match stored(dir, self.file, self.read)? {
            Some(rows) => {
                for row in rows {
                    let row = row.map_err(|why| unreadable(dir, self.file, &why))?;
                    add((self.cell)(&row), &row)?;
                }
            }
            None => Repetitions::open(dir, &dir.file(self.file), arenas)?
                .each(|_| true, |record| (self.again)(&record).try_for_each(|row| add(record.cell, &row)))?,
        }
        table.finish().map_err(|why| failed(why, &unwritten))
    }
}

/// Opens the record file `name` of `dir`, or returns `None` if it does not exist.
fn stored<T>(
    dir: &RunDir,
    name: &str,
    read: impl Fn(File) -> Result<T, RecordError>,
) -> Result<Option<T>, Failure> {
    let path = dir.file(name);
    let found = find_file(&path).map_err(|why| Failure::read(&path, &why))?;
    found.map(|file| read(file).map_err(|why| unreadable(dir, name, &why))).transpose()
}

fn unreadable(dir: &RunDir, name: &str, why: &RecordError) -> Failure {
    Failure::Usage(format!("cannot read {}: {why}", dir.file(name).display()))
}

/// Reads only the swept values of a run. The whole summary, which may have many repetitions, would take too
/// much memory.
fn swept_of(dir: &RunDir) -> Result<Swept, Failure> {
    #[derive(Deserialize)]
    struct Cells {
        cells: Vec<Cell>,
    }
    #[derive(Deserialize)]
    struct Cell {
        cell: u64,
        sweep: BTreeMap<String, Value>,
    }
    refuse_later_format(dir)?;
    let path = dir.file(SUMMARY);
    let file = open_file(&path).map_err(|why| Failure::read(&path, &why))?;
    let Cells { cells } =
        serde_json::from_reader(BufReader::new(file)).map_err(|why| unexpected_json(&path, &why))?;
    Ok(Swept::new(cells.iter().map(|cell| (cell.cell, &cell.sweep))))
}

/// The name of a flow, group or link, and its figures by their paths.
type NamedFigures<'a> = (&'a String, Vec<(String, Field)>);

/// Writes a table with a column for each figure. It has a row for each flow, each group of copies or each
/// link in each repetition that counts. The row of a group has the name of the flow that was copied.
fn repetitions(
    summary: &Summary,
    format: TableFormat,
    out: impl Write + Send,
    what: &str,
    of: fn(&RunSummary) -> Vec<NamedFigures<'_>>,
) -> Result<(), RecordError> {
    let swept = Swept::new(summary.runs.iter().map(|run| (run.cell, &*run.sweep)));
    // The figures are read twice: now for the columns, and later for the rows.
    let mut figures: Vec<(String, ColumnKind)> = Vec::new();
    for (_, entry) in summary.counted_runs().flat_map(of) {
        add_columns(&entry, &mut figures);
    }
    let mut columns =
        vec![Column::new("cell", ColumnKind::Integer), Column::new("repetition", ColumnKind::Integer)];
    columns.extend_from_slice(&swept.columns);
    columns.push(Column::new("seed", ColumnKind::Unsigned));
    columns.push(Column::new(what, ColumnKind::Text));
    columns.extend(figures.iter().map(|(path, kind)| Column::new(path, *kind)));
    let mut table = TableWriter::new(columns, format, out)?;
    for run in summary.counted_runs() {
        for (name, entry) in of(run) {
            let mut fields = vec![Field::integer(run.cell), Field::integer(run.repetition)];
            fields.extend_from_slice(swept.fields(run.cell));
            fields.extend([Field::Unsigned(run.seed), Field::text(name)]);
            let mut found: BTreeMap<String, Field> = entry.into_iter().collect();
            fields.extend(figures.iter().map(|(path, _)| found.remove(path).unwrap_or(Field::Unknown)));
            table.row(&fields)?;
        }
    }
    table.finish()
}

/// Writes a table with a row for each figure of each flow and group in each cell. A row has statistics over
/// the repetitions.
fn cells(summary: &Summary, format: TableFormat, out: impl Write + Send) -> Result<(), RecordError> {
    let swept = Swept::new(summary.cells.iter().map(|cell| (cell.cell, &*cell.sweep)));
    let mut columns = vec![Column::new("cell", ColumnKind::Integer)];
    columns.extend_from_slice(&swept.columns);
    let rest = [
        ("repetitions", ColumnKind::Integer),
        ("flow", ColumnKind::Text),
        ("figure", ColumnKind::Text),
        ("median", ColumnKind::Number),
        ("mean", ColumnKind::Number),
        ("mean_ci95_low", ColumnKind::Number),
        ("mean_ci95_high", ColumnKind::Number),
    ];
    columns.extend(rest.map(|(name, kind)| Column::new(name, kind)));
    let mut table = TableWriter::new(columns, format, out)?;
    for cell in &summary.cells {
        for (flow, figures) in cell.flows.iter().chain(&cell.groups) {
            for (figure, Spread { median, mean, ci95, n }) in figures.iter() {
                let mut fields = vec![Field::integer(cell.cell)];
                fields.extend_from_slice(swept.fields(cell.cell));
                fields.extend([Field::integer(n.unwrap_or(cell.n)), Field::text(flow), Field::text(figure)]);
                fields.extend([Field::Number(*median), Field::Number(*mean)]);
                let end = |end: Option<f64>| end.map_or(Field::Unknown, Field::Number);
                fields.extend([end(ci95.map(|(low, _)| low)), end(ci95.map(|(_, high)| high))]);
                table.row(&fields)?;
            }
        }
    }
    table.finish()
}

/// Returns the known figures of `of` with their paths, in the order of `table`.
fn known<T>(table: &'static Table<T>, of: &T) -> Vec<(String, Field)> {
    let mut fields = Vec::new();
    for figure in table.rows() {
        let field = match figure.get {
            Getter::Count(get) => get(of).map(Field::integer),
            Getter::Number(_) => figure.number(of).map(Field::Number),
            Getter::Flag(get) => get(of).map(Field::Flag),
            Getter::Word(get) => get(of).map(Field::text),
            Getter::Counts(get) => {
                let counts = get(of).into_iter().flatten();
                let path = |name: &String| format!("{}.{name}", figure.path);
                fields.extend(counts.map(|(name, count)| (path(name), Field::integer(*count))));
                None
            }
        };
        fields.extend(field.map(|field| (figure.path.to_owned(), field)));
    }
    fields
}

/// Adds a column for each field that has none. A new column comes after the column of the field before it.
fn add_columns(fields: &[(String, Field)], columns: &mut Vec<(String, ColumnKind)>) {
    let mut next = 0;
    for (path, field) in fields {
        let Some(kind) = kind_of(field) else { continue };
        match columns.iter().position(|(other, _)| other == path) {
            Some(at) => {
                columns[at].1 = common(columns[at].1, kind);
                next = at + 1;
            }
            None => {
                columns.insert(next, (path.clone(), kind));
                next += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use talkpath_fixtures::{run_summary, summary};
    use talkpath_measure::summary::{FlowSummary, IpSeen, IpSummary};

    use super::*;

    #[test]
    fn a_seed_keeps_all_its_64_bits() {
        let with_seed = |repetition, seed| {
            let flows = [("call".to_owned(), Box::new(FlowSummary::default()))].into();
            RunSummary { seed, flows, ..run_summary(repetition) }
        };
        let summary = summary(vec![with_seed(0, 1), with_seed(1, u64::MAX - 2)], 2);
        let mut out = Vec::new();
        repetitions(&summary, TableFormat::Csv, &mut out, "flow", |run| {
            run.flows.keys().map(|name| (name, Vec::new())).collect()
        })
        .unwrap();
        let seeds: Vec<String> = String::from_utf8(out)
            .unwrap()
            .lines()
            .map(|line| line.split(',').rev().nth(1).unwrap().to_owned())
            .collect();
        assert_eq!(seeds, ["seed", "1", "18446744073709551613"]);
    }

    #[test]
    fn counts_by_name_have_a_column_each_at_their_place() {
        let forward =
            IpSeen { dscp: Some([("EF".to_owned(), 7)].into()), ttl_min: Some(60), ..IpSeen::default() };
        let ip = IpSummary { dscp: Some("EF".to_owned()), forward, back: None };
        let found = known(&FLOW, &FlowSummary { ip: Some(Box::new(ip)), ..FlowSummary::default() });
        let of_ip: Vec<_> = found.iter().filter(|(path, _)| path.starts_with("ip.")).collect();
        let field = |path: &str, field| (path.to_owned(), field);
        assert_eq!(
            of_ip,
            [
                &field("ip.dscp", Field::text("EF")),
                &field("ip.forward.dscp.EF", Field::Integer(7)),
                &field("ip.forward.ttl_min", Field::Integer(60)),
            ]
        );
    }

    #[test]
    fn columns_come_in_the_order_of_the_summary_whoever_has_them_first() {
        let mut columns = Vec::new();
        let of = |paths: &[&str]| -> Vec<_> {
            paths.iter().map(|path| ((*path).to_owned(), Field::Integer(1))).collect()
        };
        add_columns(&of(&["sent", "lost"]), &mut columns);
        add_columns(&of(&["sent", "call.mos", "lost", "goodput"]), &mut columns);
        add_columns(&[("call.mos".to_owned(), Field::Number(4.0))], &mut columns);
        let names: Vec<_> = columns.iter().map(|(path, kind)| format!("{path} {kind:?}")).collect();
        assert_eq!(names, ["sent Integer", "call.mos Number", "lost Integer", "goodput Integer"]);
    }
}

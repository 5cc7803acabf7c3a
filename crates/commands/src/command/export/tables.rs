//! The flat tables of a run: messages, series, repetitions, cells and links.
//!
//! A row holds the figures of one repetition, or statistics over all repetitions, but never both.

use std::collections::{BTreeMap, BTreeSet};
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
use talkpath_measure::summary::{ProgramRunSummary, RunSummary, Spread, Summary};

use super::source::ExportSource;
use super::swept::{Swept, common_kind, kind_of};
use crate::again::Repetitions;
use crate::args::ExportTable;
use crate::failure::Failure;
use crate::summary_file::{read_summary, refuse_later_format};
use talkpath_experiment::part::{PACKETS, SERIES, SUMMARY};
use talkpath_experiment::run_dir::RunDir;
use talkpath_experiment::store::whole::{find_file, open_file, unexpected_json};

/// The table of messages: one row for each message and direction.
const MESSAGES: RowTable<PacketRow, PacketRows<File>> = RowTable {
    file: PACKETS,
    columns: message_columns,
    cell: |row| row.cell,
    fill: message_row,
    read: read_packets,
    rows_of_record: |record| Box::new(packet_rows(record)),
};

/// The table of series: one row for each point of a quantity over time.
const SERIES_POINTS: RowTable<SeriesRow, SeriesRows<File>> = RowTable {
    file: SERIES,
    columns: series_columns,
    cell: |row| row.cell,
    fill: series_row,
    read: read_series,
    rows_of_record: |record| Box::new(series_rows(record)),
};

/// Writes a table of the run to `out`. `write_failure` makes the failure for a failed write.
pub(super) fn write(
    source: &ExportSource<'_>,
    table: ExportTable,
    format: TableFormat,
    out: impl Write + Send,
    write_failure: impl Fn(io::Error) -> Failure,
) -> Result<(), Failure> {
    let summary = || read_summary(&source.dir, source.terminal);
    let result = match table {
        ExportTable::Messages => return MESSAGES.write(source, format, out, write_failure),
        ExportTable::Series => return SERIES_POINTS.write(source, format, out, write_failure),
        ExportTable::Repetitions => write_repetitions(&summary()?, format, out, "flow", |run| {
            let groups = run.groups.iter().map(|(name, group)| (name, known_fields(&GROUP, &**group)));
            run.flows.iter().map(|(name, flow)| (name, known_fields(&FLOW, &**flow))).chain(groups).collect()
        }),
        ExportTable::Links => write_repetitions(&summary()?, format, out, "link", |run| {
            run.links.iter().map(|(name, link)| (name, known_fields(&LINK, &**link))).collect()
        }),
        ExportTable::Cells => write_cells(&summary()?, format, out),
        ExportTable::Program => {
            let summary = summary()?;
            if summary.program.is_none() {
                let path = source.dir.path().display();
                return Err(Failure::Usage(format!(
                    "{path}: --table program: the scenario of this run has no [program] whose figures were read"
                )));
            }
            write_program(&summary, format, out)
        }
    };
    result.map_err(|error| table_failure(error, write_failure))
}

fn table_failure(error: RecordError, write_failure: impl Fn(io::Error) -> Failure) -> Failure {
    match error {
        RecordError::Io(error) => write_failure(error),
        other => write_failure(io::Error::other(other)),
    }
}

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
    rows_of_record: for<'r> fn(&'r RunRecord) -> Box<dyn Iterator<Item = Row> + 'r>,
}

impl<Row, Stored: Iterator<Item = Result<Row, RecordError>>> RowTable<Row, Stored> {
    /// Writes the table of the run in `dir`. Only one row group or one repetition is in memory at a time.
    fn write(
        &self,
        source: &ExportSource<'_>,
        format: TableFormat,
        out: impl Write + Send,
        write_failure: impl Fn(io::Error) -> Failure,
    ) -> Result<(), Failure> {
        let ExportSource { dir, arenas, .. } = source;
        let swept = swept_keys(dir)?;
        let columns = (self.columns)(&swept.columns);
        let failure = |error| table_failure(error, &write_failure);
        let mut table = TableWriter::new(columns, format, out).map_err(failure)?;
        let mut fields = Vec::new();
        let mut add_row = |cell: u64, row: &Row| {
            (self.fill)(row, swept.fields(cell), &mut fields);
            table.row(&fields).map_err(failure)
        };
        if let Some(rows) = open_rows(dir, self.file, self.read)? {
            for row in rows {
                let row = row.map_err(|error| unreadable(dir, self.file, &error))?;
                add_row((self.cell)(&row), &row)?;
            }
        } else {
            let mut repetitions = Repetitions::open(dir, &dir.file(self.file), *arenas)?;
            repetitions.each(
                |_| true,
                |record| (self.rows_of_record)(&record).try_for_each(|row| add_row(record.cell, &row)),
            )?;
        }
        table.finish().map_err(failure)
    }
}

/// Opens the record file `name` of `dir`, or returns `None` if it does not exist.
fn open_rows<T>(
    dir: &RunDir,
    name: &str,
    read: impl Fn(File) -> Result<T, RecordError>,
) -> Result<Option<T>, Failure> {
    let path = dir.file(name);
    let Some(file) = find_file(&path).map_err(|error| Failure::read(&path, &error))? else { return Ok(None) };
    read(file).map(Some).map_err(|error| unreadable(dir, name, &error))
}

fn unreadable(dir: &RunDir, name: &str, error: &RecordError) -> Failure {
    Failure::Usage(format!("cannot read {}: {error}", dir.file(name).display()))
}

/// Reads only the swept values of a run. The whole summary, which may have many repetitions, would take too
/// much memory.
fn swept_keys(dir: &RunDir) -> Result<Swept, Failure> {
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
    let file = open_file(&path).map_err(|error| Failure::read(&path, &error))?;
    let Cells { cells } =
        serde_json::from_reader(BufReader::new(file)).map_err(|error| unexpected_json(&path, &error))?;
    Ok(Swept::new(cells.iter().map(|cell| (cell.cell, &cell.sweep))))
}

/// The name of a flow, group or link, and its figures by their paths.
type NamedFigures<'a> = (&'a String, Vec<(String, Field)>);

/// Writes a table with a column for each figure. It has a row for each flow, each group of copies or each
/// link in each repetition that counts. The row of a group has the name of the flow that was copied.
fn write_repetitions(
    summary: &Summary,
    format: TableFormat,
    out: impl Write + Send,
    name_column: &str,
    figures_of_run: fn(&RunSummary) -> Vec<NamedFigures<'_>>,
) -> Result<(), RecordError> {
    let swept = Swept::new(summary.runs.iter().map(|run| (run.cell, &*run.sweep)));
    // The figures are read twice: now for the columns, and later for the rows.
    let mut figure_columns: Vec<FigureColumn> = Vec::new();
    for (_, figures) in summary.counted_runs().flat_map(figures_of_run) {
        add_columns(&figures, &mut figure_columns);
    }
    let mut columns =
        vec![Column::new("cell", ColumnKind::Integer), Column::new("repetition", ColumnKind::Integer)];
    columns.extend_from_slice(&swept.columns);
    columns.push(Column::new("seed", ColumnKind::Unsigned));
    columns.push(Column::new(name_column, ColumnKind::Text));
    columns.extend(figure_columns.iter().map(|figure| Column::new(&figure.path, figure.kind)));
    let mut table = TableWriter::new(columns, format, out)?;
    for run in summary.counted_runs() {
        for (name, figures) in figures_of_run(run) {
            let mut fields = vec![Field::integer(run.cell), Field::integer(run.repetition)];
            fields.extend_from_slice(swept.fields(run.cell));
            fields.extend([Field::Unsigned(run.seed), Field::text(name)]);
            let mut known: BTreeMap<String, Field> = figures.into_iter().collect();
            for FigureColumn { path, .. } in &figure_columns {
                fields.push(known.remove(path).unwrap_or(Field::Unknown));
            }
            table.row(&fields)?;
        }
    }
    table.finish()
}

/// Writes a table with a row for each repetition in which the program of the user ran. A figure is unknown
/// in a repetition that has failed.
fn write_program(summary: &Summary, format: TableFormat, out: impl Write + Send) -> Result<(), RecordError> {
    let swept = Swept::new(summary.runs.iter().map(|run| (run.cell, &*run.sweep)));
    let outcomes = || summary.counted_runs().filter_map(|run| Some((run, run.program.as_deref()?)));
    let names: BTreeSet<&String> = outcomes().flat_map(|(_, program)| program.figures.keys()).collect();
    let mut columns =
        vec![Column::new("cell", ColumnKind::Integer), Column::new("repetition", ColumnKind::Integer)];
    columns.extend_from_slice(&swept.columns);
    columns.extend([
        Column::new("seed", ColumnKind::Unsigned),
        Column::new("failure", ColumnKind::Text),
        Column::new("seconds", ColumnKind::Number),
    ]);
    columns.extend(names.iter().map(|name| Column::new(&format!("figures.{name}"), ColumnKind::Number)));
    let mut table = TableWriter::new(columns, format, out)?;
    for (run, ProgramRunSummary { failure, seconds, figures }) in outcomes() {
        let mut fields = vec![Field::integer(run.cell), Field::integer(run.repetition)];
        fields.extend_from_slice(swept.fields(run.cell));
        let failure = failure.as_deref().map_or(Field::Unknown, Field::text);
        fields.extend([Field::Unsigned(run.seed), failure, Field::Number(*seconds)]);
        let figure = |name: &&String| figures.get(*name).copied().flatten();
        fields.extend(names.iter().map(|name| figure(name).map_or(Field::Unknown, Field::Number)));
        table.row(&fields)?;
    }
    table.finish()
}

/// Writes a table with a row for each figure of each flow, of each group and of the program in each cell. A
/// row has statistics over the repetitions.
fn write_cells(summary: &Summary, format: TableFormat, out: impl Write + Send) -> Result<(), RecordError> {
    let swept = Swept::new(summary.cells.iter().map(|cell| (cell.cell, &*cell.sweep)));
    let mut columns = vec![Column::new("cell", ColumnKind::Integer)];
    columns.extend_from_slice(&swept.columns);
    let statistics = [
        ("repetitions", ColumnKind::Integer),
        ("flow", ColumnKind::Text),
        ("figure", ColumnKind::Text),
        ("median", ColumnKind::Number),
        ("mean", ColumnKind::Number),
        ("mean_ci95_low", ColumnKind::Number),
        ("mean_ci95_high", ColumnKind::Number),
    ];
    columns.extend(statistics.map(|(name, kind)| Column::new(name, kind)));
    let mut table = TableWriter::new(columns, format, out)?;
    for cell in &summary.cells {
        let program = (PROGRAM, &cell.program);
        let flows = cell.flows.iter().chain(&cell.groups).map(|(name, figures)| (name.as_str(), figures));
        for (flow, figures) in flows.chain([program]) {
            for (figure, Spread { median, mean, ci95, n }) in figures.iter() {
                let mut fields = vec![Field::integer(cell.cell)];
                fields.extend_from_slice(swept.fields(cell.cell));
                fields.extend([Field::integer(n.unwrap_or(cell.n)), Field::text(flow), Field::text(figure)]);
                fields.extend([Field::Number(*median), Field::Number(*mean)]);
                fields.extend(match ci95 {
                    Some((low, high)) => [Field::Number(*low), Field::Number(*high)],
                    None => [Field::Unknown, Field::Unknown],
                });
                table.row(&fields)?;
            }
        }
    }
    table.finish()
}

/// Returns the known figures of a flow, a group or a link with their paths, in the order of `table`.
fn known_fields<T>(table: &'static Table<T>, owner: &T) -> Vec<(String, Field)> {
    let mut fields = Vec::new();
    for figure in table.rows() {
        let field = match figure.get {
            Getter::Count(get) => get(owner).map(Field::integer),
            Getter::Number(_) => figure.number(owner).map(Field::Number),
            Getter::Flag(get) => get(owner).map(Field::Flag),
            Getter::Word(get) => get(owner).map(Field::text),
            Getter::Counts(get) => {
                let counts = get(owner).into_iter().flatten();
                let path = |name: &String| format!("{}.{name}", figure.path);
                fields.extend(counts.map(|(name, count)| (path(name), Field::integer(*count))));
                None
            }
        };
        fields.extend(field.map(|field| (figure.path.to_owned(), field)));
    }
    fields
}

/// The name of the program of the user in the column `flow` of the table of cells. No flow beside a program
/// has this name.
const PROGRAM: &str = "program";

/// The column of a figure.
struct FigureColumn {
    path: String,
    kind: ColumnKind,
}

/// Adds a column for each field that has none. A new column comes after the column of the field before it.
fn add_columns(fields: &[(String, Field)], columns: &mut Vec<FigureColumn>) {
    let mut next = 0;
    for (path, field) in fields {
        let Some(kind) = kind_of(field) else { continue };
        if let Some(index) = columns.iter().position(|column| column.path == *path) {
            columns[index].kind = common_kind(columns[index].kind, kind);
            next = index + 1;
        } else {
            columns.insert(next, FigureColumn { path: path.clone(), kind });
            next += 1;
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
        write_repetitions(&summary, TableFormat::Csv, &mut out, "flow", |run| {
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
        let ip = IpSummary { dscp: Some("EF".to_owned()), forward, ..IpSummary::default() };
        let found = known_fields(&FLOW, &FlowSummary { ip: Some(Box::new(ip)), ..FlowSummary::default() });
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
        let fields = |paths: &[&str]| -> Vec<_> {
            paths.iter().map(|path| ((*path).to_owned(), Field::Integer(1))).collect()
        };
        add_columns(&fields(&["sent", "lost"]), &mut columns);
        add_columns(&fields(&["sent", "call.mos", "lost", "goodput"]), &mut columns);
        add_columns(&[("call.mos".to_owned(), Field::Number(4.0))], &mut columns);
        let names: Vec<_> =
            columns.iter().map(|column| format!("{} {:?}", column.path, column.kind)).collect();
        assert_eq!(names, ["sent Integer", "call.mos Number", "lost Integer", "goodput Integer"]);
    }
}

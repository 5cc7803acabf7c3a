//! `talkpath export`: a run's records for other tools.

mod swept;
mod tables;

use std::fs;
use std::io::{self, BufWriter, Write};

use talkpath_emu::{CaptureError, export_capture};
use talkpath_measure::export::TableFormat;
use talkpath_measure::record_file::RecordError;
use talkpath_measure::summary::Summary;
use talkpath_scenario::IpVersion;
use talkpath_sim::capture::{CaptureEnd, CaptureOptions, capture};
use talkpath_sim::journey::{journeys, write_nam};
use talkpath_sim::qlog::qlog;

use crate::again::Again;
use crate::arenas::interrupted;
use crate::args::{CaptureAt, ExportArgs, ExportFormat, ExportTable, flag_word};
use crate::failure::Failure;
use crate::interrupt;
use crate::part::{CAPTURES, LOG, SUMMARY, unwritten};
use crate::run_dir::{PartId, RunDir, read_json, write_whole};
use crate::summary_file::has_summary;
use crate::terminal::{Terminal, output_failure};

/// Writes to a file, or to standard output.
pub(crate) fn run(args: &ExportArgs, terminal: Terminal) -> Result<(), Failure> {
    let dir = RunDir::open(&args.run)?;
    has_summary(&dir)?;
    let has_tables = matches!(args.format, ExportFormat::Csv | ExportFormat::Jsonl | ExportFormat::Parquet);
    if args.table.is_some() && !has_tables {
        return Err(Failure::Usage(format!(
            "--table belongs to --format csv, jsonl and parquet, not to {}",
            flag_word(&args.format)
        )));
    }
    match &args.output {
        Some(path) => write_whole(path, |writer| {
            export(&dir, args, terminal, writer, |why| unwritten(path, RecordError::Io(why)))
        }),
        None => {
            let mut output = BufWriter::new(io::stdout());
            export(&dir, args, terminal, &mut output, output_failure)?;
            output.flush().map_err(output_failure)
        }
    }
}

/// What an emulated run has kept of its packets.
fn captured(
    dir: &RunDir,
    args: &ExportArgs,
    writer: &mut impl Write,
    unwritten: impl Fn(io::Error) -> Failure,
) -> Result<(), Failure> {
    let name = PartId { cell: args.cell, repetition: args.repetition }.file_name();
    let path = dir.file(CAPTURES).join(name);
    let file = fs::read(&path).map_err(|why| match why.kind() {
        io::ErrorKind::NotFound => Failure::Usage(format!(
            "{}: not there: only runs with --arena emu --capture keep their packets",
            path.display()
        )),
        _ => Failure::read(&path, &why),
    })?;
    export_capture(&file, args.at == CaptureAt::Far, args.encapsulated, writer).map_err(|why| match why {
        CaptureError::Io(why) => unwritten(why),
        damaged @ CaptureError::Damaged => Failure::Usage(format!("{}: {damaged}", path.display())),
    })
}

/// Runs the simulation of `dir` again, with a capture.
fn capture_again(
    dir: &RunDir,
    args: &ExportArgs,
    writer: &mut impl Write,
    unwritten: impl Fn(io::Error) -> Failure,
) -> Result<(), Failure> {
    if read_json::<Summary>(&dir.file(SUMMARY))?.arena == "emu" {
        return captured(dir, args, writer, unwritten);
    }
    let again = Again::load(dir, &args.run, PartId { cell: args.cell, repetition: args.repetition })?;
    if again.scenario.ip == IpVersion::V6 {
        let why = "the simulator writes its packets with IPv4's headers, and this cell has ip = \"ipv6\"";
        return Err(Failure::Usage(format!("{}: {why}", args.run.display())));
    }
    let stop = interrupt::install()?;
    let options = CaptureOptions { end: capture_end(args), encapsulated: args.encapsulated };
    capture(&again.scenario, &again.plan(None, &stop), options, writer).map_err(unwritten)
}

/// Runs the simulation of `dir` again, and writes its QUIC connections as qlog.
fn qlog_again(
    dir: &RunDir,
    args: &ExportArgs,
    writer: &mut impl Write,
    unwritten: impl Fn(io::Error) -> Failure,
) -> Result<(), Failure> {
    let again = Again::load(dir, &args.run, PartId { cell: args.cell, repetition: args.repetition })?;
    if !again.scenario.flows.iter().any(|flow| flow.transport.as_quic().is_some()) {
        return Err(Failure::Usage(format!("{}: this cell has no flow over QUIC", args.run.display())));
    }
    let stop = interrupt::install()?;
    qlog(&again.scenario, &again.plan(None, &stop), capture_end(args), writer).map_err(unwritten)
}

fn capture_end(args: &ExportArgs) -> CaptureEnd {
    match args.at {
        CaptureAt::Near => CaptureEnd::Near,
        CaptureAt::Far => CaptureEnd::Far,
    }
}

/// Runs the simulation of `dir` again, and writes its hops as nam reads them.
fn nam_again(
    dir: &RunDir,
    args: &ExportArgs,
    writer: &mut impl Write,
    unwritten: impl Fn(io::Error) -> Failure,
) -> Result<(), Failure> {
    let again = Again::load(dir, &args.run, PartId { cell: args.cell, repetition: args.repetition })?;
    let stop = interrupt::install()?;
    let window = again.window(&args.from, args.length.as_deref())?;
    let seen =
        journeys(&again.scenario, &again.plan(None, &stop), window, usize::MAX).ok_or_else(interrupted)?;
    match write_nam(&again.scenario, &seen, &stop, writer).map_err(unwritten)? {
        true => Ok(()),
        false => Err(interrupted()),
    }
}

fn export(
    dir: &RunDir,
    args: &ExportArgs,
    terminal: Terminal,
    writer: &mut (impl Write + Send),
    unwritten: impl Fn(io::Error) -> Failure,
) -> Result<(), Failure> {
    let format = args.format;
    if format == ExportFormat::Pcapng {
        return capture_again(dir, args, writer, unwritten);
    }
    if format == ExportFormat::Qlog {
        return qlog_again(dir, args, writer, unwritten);
    }
    if format == ExportFormat::Nam {
        return nam_again(dir, args, writer, unwritten);
    }
    if format == ExportFormat::Log {
        let path = dir.file(LOG);
        let log = fs::read(&path).map_err(|why| Failure::read(&path, &why))?;
        return writer.write_all(&log).map_err(unwritten);
    }
    let format = match format {
        ExportFormat::Csv => TableFormat::Csv,
        ExportFormat::Jsonl => TableFormat::Jsonl,
        _ => TableFormat::Parquet,
    };
    let table = args.table.unwrap_or(ExportTable::Messages);
    tables::write((dir, terminal), table, format, writer, unwritten)
}

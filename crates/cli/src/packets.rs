//! A run's packets for other tools, for `talkpath export`: those that an emulated run has kept, and those of
//! a simulated run that runs once more.

use std::fs;
use std::io::{self, Write};

use talkpath_commands::again::Again;
use talkpath_commands::arenas::interrupted;
use talkpath_commands::args::{CaptureAt, ExportArgs, ExportFormat};
use talkpath_commands::failure::Failure;
use talkpath_commands::interrupt;
use talkpath_commands::part::CAPTURES;
use talkpath_commands::run_dir::{PartId, RunDir};
use talkpath_commands::summary_file::arena_of;
use talkpath_emu::{CaptureError, export_capture};
use talkpath_scenario::IpVersion;
use talkpath_sim::capture::{CaptureEnd, CaptureOptions, capture};
use talkpath_sim::journey::{journeys, write_nam};
use talkpath_sim::qlog::qlog;

/// Writes them as pcapng, qlog or nam.
pub(crate) fn export_packets(
    dir: &RunDir,
    args: &ExportArgs,
    writer: &mut dyn Write,
    unwritten: &dyn Fn(io::Error) -> Failure,
) -> Result<(), Failure> {
    match args.format {
        ExportFormat::Qlog => qlog_again(dir, args, writer, unwritten),
        ExportFormat::Nam => nam_again(dir, args, writer, unwritten),
        _ => capture_again(dir, args, writer, unwritten),
    }
}

/// What an emulated run has kept of its packets.
fn captured(
    dir: &RunDir,
    args: &ExportArgs,
    writer: &mut dyn Write,
    unwritten: &dyn Fn(io::Error) -> Failure,
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
    writer: &mut dyn Write,
    unwritten: &dyn Fn(io::Error) -> Failure,
) -> Result<(), Failure> {
    if arena_of(dir)? == "emu" {
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
    writer: &mut dyn Write,
    unwritten: &dyn Fn(io::Error) -> Failure,
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
    writer: &mut dyn Write,
    unwritten: &dyn Fn(io::Error) -> Failure,
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

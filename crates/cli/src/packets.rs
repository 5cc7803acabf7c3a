//! Exports the packets of a run for `talkpath export`. An emulated run has kept its packets. A simulated run
//! is run again to get them.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use talkpath_commands::again::Again;
use talkpath_commands::arenas::interrupted;
use talkpath_commands::args::{CaptureAt, ExportArgs, ExportFormat};
use talkpath_commands::failure::Failure;
use talkpath_commands::interrupt;
use talkpath_commands::scenario_file::load_file;
use talkpath_commands::summary_file::head_of;
use talkpath_emu::{Calls, CaptureError, export_capture};
use talkpath_experiment::part::{CAPTURES, QLOGS};
use talkpath_experiment::run_dir::{PartId, RunDir, SCENARIO};
use talkpath_model::{IpVersion, LinkIndex, Scenario};
use talkpath_scenario::Options;
use talkpath_sim::capture::{CaptureEnd, CaptureOptions, CapturePlace, capture};
use talkpath_sim::journey::{journeys, write_nam};
use talkpath_sim::qlog::qlog;

/// Writes the packets of one repetition as pcapng, qlog or nam.
pub(crate) fn export_packets(
    dir: &RunDir,
    args: &ExportArgs,
    writer: &mut dyn Write,
    unwritten: &dyn Fn(io::Error) -> Failure,
) -> Result<(), Failure> {
    let id = PartId { cell: args.cell, repetition: args.repetition };
    let head = head_of(dir)?;
    if args.format == ExportFormat::Pcapng && head.arena == "emu" {
        return export_kept_packets(dir, args, id, writer, unwritten);
    }
    if args.format == ExportFormat::Qlog && head.arena != "sim" {
        return export_kept_qlog(dir, args, id, writer, unwritten);
    }
    let again = Again::load(dir, &head, &args.run, id)?;
    let unusable = |why: &str| Failure::Usage(format!("{}: {why}", args.run.display()));
    let stop = interrupt::install()?;
    let plan = again.plan(None, &stop);
    match args.format {
        ExportFormat::Pcapng if again.scenario.ip == IpVersion::V6 => {
            let why = "the simulator writes its packets with IPv4's headers, and this cell has ip = \"ipv6\"";
            return Err(unusable(why));
        }
        ExportFormat::Pcapng => {
            let at = capture_place(args, &again.scenario)?;
            let options = CaptureOptions { at, encapsulated: args.encapsulated };
            capture(&again.scenario, &plan, options, writer).map_err(|why| match why.kind() {
                io::ErrorKind::InvalidInput => unusable(&why.to_string()),
                _ => unwritten(why),
            })?;
        }
        ExportFormat::Qlog => {
            if !again.scenario.flows.iter().any(|flow| flow.transport.as_quic().is_some()) {
                return Err(unusable("this cell has no flow over QUIC"));
            }
            qlog(&again.scenario, &plan, capture_end(args)?, writer).map_err(unwritten)?;
        }
        ExportFormat::Nam => {
            let window = again.window(&args.from, args.length.as_deref())?;
            let journeys = journeys(&again.scenario, &plan, window, usize::MAX).ok_or_else(interrupted)?;
            write_nam(&again.scenario, &journeys, &stop, writer).map_err(unwritten)?;
        }
        ExportFormat::Csv | ExportFormat::Jsonl | ExportFormat::Parquet | ExportFormat::Log => {
            return Err(unusable("tables and logs have no packets"));
        }
    }
    // If the user stopped the simulation, only the beginning of the packets was written.
    if stop.load(Ordering::Relaxed) { Err(interrupted()) } else { Ok(()) }
}

/// Writes the packets that an emulated run has kept.
fn export_kept_packets(
    dir: &RunDir,
    args: &ExportArgs,
    id: PartId,
    writer: &mut dyn Write,
    unwritten: &dyn Fn(io::Error) -> Failure,
) -> Result<(), Failure> {
    let (path, file) =
        read_kept(dir, CAPTURES, id, "only runs with --arena emu --capture keep their packets")?;
    // A scenario of another version may not be understood any more. Its calls stay as they travelled.
    let plan = load_file(&dir.file(SCENARIO), &Options::default()).ok();
    let calls = plan.as_ref().and_then(|plan| plan.cell(id.cell)).map(|cell| Calls::of(&cell.scenario));
    let (far, calls) = (capture_end(args)? == CaptureEnd::Far, calls.unwrap_or_default());
    export_capture(&file, far, args.encapsulated, &calls, writer).map_err(|why| match why {
        CaptureError::Io(why) => unwritten(why),
        damaged @ CaptureError::Damaged => Failure::Usage(format!("{}: {damaged}", path.display())),
    })
}

/// Writes the qlog that an emulated or a live run has kept.
fn export_kept_qlog(
    dir: &RunDir,
    args: &ExportArgs,
    id: PartId,
    writer: &mut dyn Write,
    unwritten: &dyn Fn(io::Error) -> Failure,
) -> Result<(), Failure> {
    if capture_end(args)? == CaptureEnd::Far {
        return Err(Failure::Usage(
            "--at far: a run over real sockets keeps the qlog of its near end".to_owned(),
        ));
    }
    let (_, file) = read_kept(dir, QLOGS, id, "only runs over QUIC with --qlog keep it")?;
    writer.write_all(&file).map_err(unwritten)
}

/// Reads the file of a repetition that a run has kept in `folder`; `who` says which runs keep it.
fn read_kept(dir: &RunDir, folder: &str, id: PartId, who: &str) -> Result<(PathBuf, Vec<u8>), Failure> {
    let path = dir.file(folder).join(id.file_name());
    match fs::read(&path) {
        Ok(file) => Ok((path, file)),
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            Err(Failure::Usage(format!("{}: not there: {who}", path.display())))
        }
        Err(why) => Err(Failure::read(&path, &why)),
    }
}

/// Returns the end of the flows at which packets are recorded. Refuses a link, which is a place for pcapng of
/// a simulated run alone.
fn capture_end(args: &ExportArgs) -> Result<CaptureEnd, Failure> {
    match &args.at {
        CaptureAt::Near => Ok(CaptureEnd::Near),
        CaptureAt::Far => Ok(CaptureEnd::Far),
        CaptureAt::Link(name) => Err(Failure::Usage(format!(
            "--at {name}: expected near or far; a link's name is for --format pcapng of a simulated run"
        ))),
    }
}

/// Returns the place of a capture of a simulated run. Refuses a name that is no link.
fn capture_place(args: &ExportArgs, scenario: &Scenario) -> Result<CapturePlace, Failure> {
    let CaptureAt::Link(name) = &args.at else { return Ok(CapturePlace::End(capture_end(args)?)) };
    let links = || (0..).map(LinkIndex).zip(&scenario.links);
    if let Some((index, _)) = links().find(|(_, link)| link.name == *name) {
        return Ok(CapturePlace::Link(index));
    }
    let names: Vec<&str> = links().take(MOST_LINKS).map(|(_, link)| link.name.as_str()).collect();
    let more = if scenario.links.len() > MOST_LINKS { ", ..." } else { "" };
    Err(Failure::Usage(format!(
        "--at {name}: expected near, far, or the name of a link, for the host or router where it begins: {}{more}",
        names.join(", ")
    )))
}

/// The most links that a message names. We chose 12, so that it stays a line or two.
const MOST_LINKS: usize = 12;

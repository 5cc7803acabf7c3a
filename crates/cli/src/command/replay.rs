//! `talkpath replay` computes the decisions of the emulator again from its log of arrivals.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use talkpath_commands::args::ReplayArgs;
use talkpath_commands::failure::Failure;
use talkpath_commands::scenario_file::load_file;
use talkpath_commands::terminal::Terminal;
use talkpath_emu::{log_header, replay};
use talkpath_experiment::part::ARRIVALS;
use talkpath_experiment::run_dir::{RunDir, SCENARIO};
use talkpath_scenario::Options;
use talkpath_units::counted;

/// Replays the log of every repetition. The first difference is a failure.
pub(crate) fn run(args: &ReplayArgs, terminal: Terminal) -> Result<(), Failure> {
    let dir = RunDir::open(&args.run)?;
    let plan = load_file(&dir.file(SCENARIO), &Options::default())?;
    for path in logs(&dir)? {
        let unusable = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
        let bytes = fs::read(&path).map_err(|why| Failure::read(&path, &why))?;
        let header = log_header(&bytes).map_err(|why| unusable(why.to_string()))?;
        let cell = plan.cells.iter().find(|cell| cell.index == header.cell).ok_or_else(|| {
            unusable(format!("it is of cell {}, which {SCENARIO} does not have", header.cell))
        })?;
        let report = replay(&bytes, &cell.scenario)
            .map_err(|why| Failure::NotHeld(format!("{}: {why}", path.display())))?;
        let until = if report.is_truncated { ", up to where the log was full" } else { "" };
        terminal.result(&format!(
            "cell {} repetition {}: {}, the same {}, {} and {} again{until}\n",
            header.cell,
            header.repetition,
            counted(report.arrivals, "arrival"),
            counted(report.departed, "departure"),
            counted(report.dropped, "drop"),
            counted(report.lost, "loss")
        ))?;
    }
    Ok(())
}

/// Lists the logs of arrivals in the run directory.
fn logs(dir: &RunDir) -> Result<Vec<PathBuf>, Failure> {
    let folder = dir.file(ARRIVALS);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(why) if why.kind() == ErrorKind::NotFound => {
            return Err(Failure::Usage(format!(
                "{}: no log of arrivals in it: only runs with --arena emu and --records all keep one",
                dir.path().display()
            )));
        }
        Err(why) => return Err(Failure::read(&folder, &why)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(|why| Failure::read(&folder, &why))?.path());
    }
    paths.sort();
    Ok(paths)
}

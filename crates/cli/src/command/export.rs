//! `talkpath export`: a run's records for other tools.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};

use talkpath_measure::export::{export_csv, export_jsonl};
use talkpath_measure::record_file::{RecordError, read_packets};

use crate::args::{ExportArgs, ExportFormat};
use crate::failure::Failure;
use crate::part::{LOG, PACKETS, unwritten};
use crate::run_dir::{RunDir, write_whole};
use crate::terminal::output_failure;

/// Writes to a file, or to standard output.
pub(crate) fn run(args: &ExportArgs) -> Result<(), Failure> {
    if args.format == ExportFormat::Pcapng {
        return Err(Failure::Usage("--format pcapng is not available yet: use csv, jsonl or log".to_owned()));
    }
    let dir = RunDir::open(&args.run)?;
    match &args.output {
        Some(path) => write_whole(path, |writer| {
            export(&dir, args.format, writer, |why| unwritten(path, RecordError::Io(why)))
        }),
        None => {
            let mut output = BufWriter::new(io::stdout().lock());
            export(&dir, args.format, &mut output, output_failure)?;
            output.flush().map_err(output_failure)
        }
    }
}

fn export(
    dir: &RunDir,
    format: ExportFormat,
    writer: &mut impl Write,
    unwritten: impl Fn(io::Error) -> Failure,
) -> Result<(), Failure> {
    if format == ExportFormat::Log {
        let path = dir.file(LOG);
        let log = fs::read(&path).map_err(|why| Failure::read(&path, &why))?;
        return writer.write_all(&log).map_err(unwritten);
    }
    let path = dir.file(PACKETS);
    let unreadable = |why: &RecordError| Failure::Usage(format!("cannot read {}: {why}", path.display()));
    let file = File::open(&path).map_err(|why| match why.kind() {
        io::ErrorKind::NotFound => Failure::Usage(format!(
            "{}: not there: the run was made with --records none or summary, or did not end",
            path.display()
        )),
        _ => Failure::read(&path, &why),
    })?;
    let rows = read_packets(file).map_err(|why| unreadable(&why))?;
    // What reading and what writing refuse is told apart by who raised it.
    let mut read_failure = None;
    let rows = rows.map_while(|row| row.map_err(|why| read_failure = Some(unreadable(&why))).ok()).map(Ok);
    let written = match format {
        ExportFormat::Csv => export_csv(rows, writer),
        _ => export_jsonl(rows, writer),
    };
    match (read_failure, written) {
        (Some(failure), _) => Err(failure),
        (None, Err(RecordError::Io(why))) => Err(unwritten(why)),
        (None, Err(why)) => Err(unreadable(&why)),
        (None, Ok(())) => Ok(()),
    }
}

//! `talkpath export` writes the records of a run in the formats of other tools.

mod swept;
mod tables;

use std::io::{self, BufWriter, Read, Write};

use talkpath_measure::export::TableFormat;

use crate::arenas::Arenas;
use crate::args::{ExportArgs, ExportFormat, ExportTable};
use crate::failure::Failure;
use crate::output_file::{refuse_records, write_named};
use crate::summary_file::check_ended;
use crate::terminal::{Terminal, output_failure};
use talkpath_experiment::part::LOG;
use talkpath_experiment::run_dir::RunDir;
use talkpath_experiment::store::whole::open_file;

/// Writes the export to a file, or to standard output.
pub fn run(args: &ExportArgs, arenas: &dyn Arenas, terminal: Terminal) -> Result<(), Failure> {
    let dir = RunDir::open(&args.run)?;
    check_ended(&dir)?;
    if let Some(path) = &args.output {
        refuse_records("-o", path, &[dir.path()], None)?;
    }
    match &args.output {
        Some(path) => write_named(path, |writer| {
            export(&dir, args, arenas, terminal, writer, |why| Failure::write(path, why))
        }),
        None => {
            let mut output = BufWriter::new(io::stdout());
            export(&dir, args, arenas, terminal, &mut output, output_failure)?;
            output.flush().map_err(output_failure)
        }
    }
}

/// Writes the export in its format to `writer`. `unwritten` makes the failure for a failed write.
fn export(
    dir: &RunDir,
    args: &ExportArgs,
    arenas: &dyn Arenas,
    terminal: Terminal,
    writer: &mut (impl Write + Send),
    unwritten: impl Fn(io::Error) -> Failure,
) -> Result<(), Failure> {
    let format = args.format;
    if matches!(format, ExportFormat::Pcapng | ExportFormat::Qlog | ExportFormat::Nam) {
        return arenas.export_packets(dir, args, writer, &unwritten);
    }
    if format == ExportFormat::Log {
        let path = dir.file(LOG);
        let mut log = Vec::new();
        let read = open_file(&path).and_then(|mut file| file.read_to_end(&mut log));
        read.map_err(|why| Failure::read(&path, &why))?;
        return writer.write_all(&log).map_err(unwritten);
    }
    let format = match format {
        ExportFormat::Csv => TableFormat::Csv,
        ExportFormat::Jsonl => TableFormat::Jsonl,
        _ => TableFormat::Parquet,
    };
    let table = args.table.unwrap_or(ExportTable::Messages);
    tables::write((dir, arenas, terminal), table, format, writer, unwritten)
}

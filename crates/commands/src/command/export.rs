//! `talkpath export` writes the records of a run in the formats of other tools.

mod source;
mod swept;
mod tables;

use std::io::{self, BufWriter, Read, Write};

use talkpath_measure::export::TableFormat;

use self::source::ExportSource;
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
    let source = ExportSource { dir, arenas, terminal };
    if let Some(path) = &args.output {
        return write_named(path, |writer| {
            export(&source, args, writer, |error| Failure::write(path, error))
        });
    }
    let mut output = BufWriter::new(io::stdout());
    export(&source, args, &mut output, output_failure)?;
    output.flush().map_err(output_failure)
}

/// Writes the export in its format to `writer`. `write_failure` makes the failure for a failed write.
fn export(
    source: &ExportSource<'_>,
    args: &ExportArgs,
    writer: &mut (impl Write + Send),
    write_failure: impl Fn(io::Error) -> Failure,
) -> Result<(), Failure> {
    let table_format = match args.format {
        ExportFormat::Pcapng | ExportFormat::Qlog | ExportFormat::Nam => {
            return source.arenas.export_packets(&source.dir, args, writer, &write_failure);
        }
        ExportFormat::Log => return writer.write_all(&read_log(&source.dir)?).map_err(write_failure),
        ExportFormat::Csv => TableFormat::Csv,
        ExportFormat::Jsonl => TableFormat::Jsonl,
        ExportFormat::Parquet => TableFormat::Parquet,
    };
    let table = args.table.unwrap_or(ExportTable::Messages);
    tables::write(source, table, table_format, writer, write_failure)
}

fn read_log(dir: &RunDir) -> Result<Vec<u8>, Failure> {
    let path = dir.file(LOG);
    let mut log = Vec::new();
    open_file(&path)
        .and_then(|mut file| file.read_to_end(&mut log))
        .map_err(|error| Failure::read(&path, &error))?;
    Ok(log)
}

//! `talkpath trace` describes a trace or lines of `tc`, and converts them to the form that a scenario reads.
//! `talkpath trace record` makes one of the user's own line.
//!
//! - *tc* is the Linux command that shapes traffic. A line of tc describes the link in one direction.
//! - A *Mahimahi* file is a list of deliveries: each line has the time at which one packet was delivered.
//! - A *table of changes* is a CSV file. Its first line names its columns, and each further row sets values
//!   of a link at a time.
//! - A *netem-trace* file is JSON of the crate netem-trace, which becomes a table of changes.
//! - A *capture* is a file of packets, pcap or pcapng. A stream of RTP in it becomes a table of changes.
//!
//! Begin to read with [`run`].

mod record;

use std::path::Path;

use talkpath_path::{ChangeTable, without_mark};
use talkpath_scenario::doubts_about_rates;

use crate::args::{DescribedTrace, TraceAction, TraceArgs, TraceKind};
use crate::command::Context;
use crate::failure::Failure;
use crate::output_file::write_named_bytes;
use crate::path_file::deliveries::Deliveries;
use crate::path_file::netem_trace::NetemTrace;
use crate::path_file::rtp::{self, StreamPath, StreamWanted};
use crate::path_file::table::describe_table;
use crate::path_file::{guess_kind, is_toml, no_kind, tc_links};
use crate::scenario_file::read_text;
use crate::terminal::Terminal;

/// Describes the trace on the terminal, or records one.
///
/// # Errors
/// Returns [`Failure`] as `describe` and `record::run` do.
pub fn run(args: &TraceArgs, context: Context<'_>) -> Result<(), Failure> {
    match &args.action {
        Some(TraceAction::Record(record)) => record::run(record, context),
        None => describe(&args.described, context.terminal),
    }
}

/// Describes the trace on the terminal. With `-o`, the command also converts the trace to the form that a
/// scenario reads, and writes it to a file.
///
/// # Errors
/// Returns [`Failure`] if the file cannot be read, if the text is not of the kind that `--as` names, if its
/// kind cannot be guessed, or if the output cannot be written.
fn describe(args: &DescribedTrace, terminal: Terminal) -> Result<(), Failure> {
    let file = args.file();
    let name = file.display().to_string();
    let is_rtp = args.kind.map_or_else(|| rtp::is_capture(file), |kind| kind == TraceKind::Rtp);
    if is_rtp {
        return convert_capture(args, terminal);
    }
    refuse_flags_of_captures(args)?;
    // Instead of a file name, the user may give a line of tc.
    let text = if tc_links::is_tc_line(&name) { name.clone() } else { read_text(file)? };
    let text = without_mark(&text).to_owned();
    let usage_error = |message: String| Failure::Usage(format!("{name}: {message}"));
    let output = args.output.as_deref();
    match args.kind.or_else(|| guess_kind(&text)) {
        Some(TraceKind::Tc) => {
            let links = tc_links::read_links(&text).map_err(usage_error)?;
            let directions = tc_links::directions_in_words(&links);
            terminal.result(&format!("{}# {directions}\n", tc_links::describe_links(&links)))?;
            for doubt in tc_links::doubts(&links) {
                terminal.warning(doubt);
            }
            let Some(output) = output else { return Ok(()) };
            let path_file = tc_links::path_file(&links).map_err(usage_error)?;
            write_output(output, &path_file, terminal)
        }
        Some(TraceKind::Csv) => {
            let table = read_table(&name, &text)?;
            terminal.result(&format!("{name}: {}\n", describe_table(&table)))?;
            warn_of_table(&name, &table, terminal);
            let Some(output) = output else { return Ok(()) };
            write_output(output, &table.written_from_zero(), terminal)
        }
        Some(TraceKind::NetemTrace) => {
            let trace = NetemTrace::read(&text).map_err(usage_error)?;
            let table_text = trace.as_table();
            let table = read_table(&name, &table_text)?;
            terminal.result(&format!("{name}: {}; {}\n", describe_table(&table), trace.ending()))?;
            warn_of_table(&name, &table, terminal);
            let Some(output) = output else { return Ok(()) };
            write_output(output, &table_text, terminal)
        }
        Some(TraceKind::Mahimahi) => {
            let deliveries = Deliveries::read(&text, args.unit).map_err(usage_error)?;
            terminal.result(&format!("{name}: {}\n", deliveries.in_words()))?;
            let converted = deliveries.as_trace();
            if let Ok(trace) = converted.parse()
                && let Some(doubts) = doubts_about_rates(&trace, &name)
            {
                terminal.warning(&format!("{name}: {doubts}"));
            }
            let Some(output) = output else { return Ok(()) };
            write_output(output, &converted, terminal)
        }
        // A capture is no text.
        Some(TraceKind::Rtp) => convert_capture(args, terminal),
        None if is_toml(&text) => Err(usage_error(format!(
            "this is TOML: `talkpath check {name}` says what a path file or a scenario holds"
        ))),
        None => Err(usage_error(no_kind(&text))),
    }
}

fn read_table(name: &str, text: &str) -> Result<ChangeTable, Failure> {
    text.parse().map_err(|message| Failure::Usage(format!("{name}: {message}")))
}

/// Warns of what is implausible in a table.
fn warn_of_table(name: &str, table: &ChangeTable, terminal: Terminal) {
    for doubt in table.doubts() {
        terminal.warning(&format!("{name}: {doubt}"));
    }
}

/// Describes a stream of RTP in a capture. With `-o`, it is written as a table of changes.
fn convert_capture(args: &DescribedTrace, terminal: Terminal) -> Result<(), Failure> {
    let name = args.file().display().to_string();
    let wanted = StreamWanted { stream: args.stream.clone(), one_way: args.one_way };
    let StreamPath { description, table, doubts } =
        StreamPath::read(args.file(), &name, &wanted).map_err(Failure::Usage)?;
    terminal.result(&format!("{description}\n"))?;
    for doubt in doubts {
        terminal.warning(&format!("{name}: {doubt}"));
    }
    match args.output.as_deref() {
        Some(output) => write_output(output, &table, terminal),
        None => terminal.result("-o FILE writes it as a table for `file` of [[change]]; `compare --path CAPTURE --line 50/10` takes it with rates of yours\n"),
    }
}

/// Refuses the flags that are about captures.
fn refuse_flags_of_captures(args: &DescribedTrace) -> Result<(), Failure> {
    let flags = [("--stream", args.stream.is_some()), ("--one-way", args.one_way.is_some())];
    match flags.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => {
            let name = args.file().display();
            Err(Failure::Usage(format!(
                "{flag} is about a capture, and {name} does not begin as pcap or pcapng does"
            )))
        }
    }
}

fn write_output(output: &Path, text: &str, terminal: Terminal) -> Result<(), Failure> {
    write_named_bytes(output, text.as_bytes())?;
    terminal.result(&format!("Written: {}\n", output.display()))
}

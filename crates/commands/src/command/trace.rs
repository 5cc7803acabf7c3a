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

mod deliveries;
mod netem_trace;
mod record;
mod rtp;
mod tc;

use std::path::Path;

use talkpath_path::{ChangeTable, LinkValues, LossModel, RateModel};
use talkpath_scenario::doubts_about_rates;
use talkpath_units::{Duration, Rate, counted};

use self::deliveries::Deliveries;
use self::netem_trace::NetemTrace;
use self::rtp::StreamPath;
use self::tc::TcLink;
use crate::args::{DescribedTrace, TraceAction, TraceArgs, TraceKind};
use crate::command::Context;
use crate::failure::Failure;
use crate::output_file::write_named_bytes;
use crate::path_changes::rate as format_rate;
use crate::scenario_file::read_text;
use crate::terminal::Terminal;

/// A percentage is printed with at most seven decimals.
const STEPS_PER_PERCENT: f64 = 1e7;

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
    let text = if tc::is_tc_line(&name) { name.clone() } else { read_text(file)? };
    let usage_error = |message: String| Failure::Usage(format!("{name}: {message}"));
    let output = args.output.as_deref();
    match args.kind.or_else(|| guess_kind(&text)) {
        Some(TraceKind::Tc) => {
            let links = read_tc_links(&text).map_err(usage_error)?;
            terminal.result(&describe_tc_links(&links))?;
            let Some(output) = output else { return Ok(()) };
            let path_file = write_path_file(&links).map_err(usage_error)?;
            write_output(output, &path_file, terminal)
        }
        Some(TraceKind::Csv) => {
            let table: ChangeTable =
                text.parse().map_err(|message| Failure::Usage(format!("{name}: {message}")))?;
            terminal.result(&format!("{name}: {}\n", describe_table(&table)))?;
            if output.is_some() {
                let message = "it is in the form that `file` of [[change]] reads; -o has nothing to convert";
                return Err(usage_error(message.to_owned()));
            }
            Ok(())
        }
        Some(TraceKind::NetemTrace) => {
            let trace = NetemTrace::read(&text).map_err(usage_error)?;
            let table_text = trace.as_table();
            let table: ChangeTable =
                table_text.parse().map_err(|message| Failure::Usage(format!("{name}: {message}")))?;
            terminal.result(&format!("{name}: {}; {}\n", describe_table(&table), trace.ending()))?;
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
        None => Err(usage_error(
            "found neither whole numbers, a header, a line of tc nor JSON. For a table of times and values add a first line that \
             names its columns, such as `time_s rate_mbps`; --as says what a file is"
                .to_owned(),
        )),
    }
}

/// Describes a stream of RTP in a capture. With `-o`, it is written as a table of changes.
fn convert_capture(args: &DescribedTrace, terminal: Terminal) -> Result<(), Failure> {
    let StreamPath { description, table } = StreamPath::read(args)?;
    terminal.result(&format!("{description}\n"))?;
    match args.output.as_deref() {
        Some(output) => write_output(output, &table, terminal),
        None => terminal.result("-o FILE writes it as a table for `file` of [[change]]\n"),
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

/// Guesses the kind of a trace by its first line that is neither empty nor a comment. Returns `None` if the
/// line fits no kind.
fn guess_kind(text: &str) -> Option<TraceKind> {
    let mut lines = text.lines().map(str::trim);
    let first_line = lines.find(|line| !line.is_empty() && !line.starts_with('#'))?;
    if tc::is_tc_line(first_line) {
        return Some(TraceKind::Tc);
    }
    if first_line.starts_with('{') {
        return Some(TraceKind::NetemTrace);
    }
    // The header of a table names its columns, such as `time_s`. Names that are not known are refused with
    // those that are.
    if first_line.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Some(TraceKind::Csv);
    }
    // A line of a Mahimahi file is a whole number.
    let is_whole_number = first_line.bytes().all(|byte| byte.is_ascii_digit());
    is_whole_number.then_some(TraceKind::Mahimahi)
}

/// Describes a table of changes: the number of its rows, its first and last time, and the extremes of each
/// value, such as `2 rows from 0 s to 1500 ms; loss 0 to 2.5 %`, for each direction if they differ.
fn describe_table(table: &ChangeTable) -> String {
    let (up, down) = table.directions();
    let first_time = up.first().map_or(Duration::ZERO, |(time, _)| *time);
    let last_time = up.last().map_or(Duration::ZERO, |(time, _)| *time);
    let mut parts = vec![format!("{} from {first_time} to {last_time}", counted(up.len(), "row"))];
    if let Some(origin) = table.origin() {
        parts.push(format!("times count from the first one, {origin} s"));
    }
    match down {
        None => parts.extend(describe_rows(up)),
        Some(down) => {
            for (name, rows) in [("up", up), ("down", down)] {
                parts.push(format!("{name}: {}", describe_rows(rows).join(", ")));
            }
        }
    }
    parts.join("; ")
}

/// Describes the extremes of each value in the rows.
fn describe_rows(rows: &[(Duration, LinkValues)]) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(Extremes { least, most }) = find_extremes(rows, fixed_rate_bps) {
        parts.push(format!("rate {} to {}", format_bps(least), format_bps(most)));
    }
    if let Some(Extremes { least, most }) = find_extremes(rows, delay_ms) {
        parts.push(format!("delay {least} to {most} ms"));
    }
    if let Some(Extremes { least, most }) = find_extremes(rows, mean_loss) {
        parts.push(format!("loss {} to {} %", as_percent(least), as_percent(most)));
    }
    if parts.is_empty() {
        parts.push("nothing".to_owned());
    }
    parts
}

/// The smallest and the largest value in a column of a table.
struct Extremes {
    least: f64,
    most: f64,
}

/// Finds the extremes of one column, which `column` reads from a row. Returns `None` if no row has a value in
/// this column.
fn find_extremes(
    rows: &[(Duration, LinkValues)],
    column: fn(&LinkValues) -> Option<f64>,
) -> Option<Extremes> {
    let mut sorted: Vec<f64> = rows.iter().filter_map(|(_, row)| column(row)).collect();
    sorted.sort_by(f64::total_cmp);
    Some(Extremes { least: *sorted.first()?, most: *sorted.last()? })
}

/// Returns the rate of a row in bit/s, if the row sets a fixed rate.
fn fixed_rate_bps(row: &LinkValues) -> Option<f64> {
    match row.rate {
        Some(RateModel::Fixed(rate)) => Some(rate.as_bps() as f64),
        _ => None,
    }
}

fn delay_ms(row: &LinkValues) -> Option<f64> {
    row.delay.map(Duration::as_millis_f64)
}

/// Returns the mean loss that a row sets, as a share from 0 to 1.
fn mean_loss(row: &LinkValues) -> Option<f64> {
    row.loss.as_ref().map(LossModel::mean)
}

/// Converts a share to percent. Many decimal numbers have no exact binary form, so the product alone might be
/// 2.5000000000000004. Rounding removes such an error.
fn as_percent(share: f64) -> f64 {
    (share * (100.0 * STEPS_PER_PERCENT)).round() / STEPS_PER_PERCENT
}

fn format_bps(bps: f64) -> String {
    format_rate(Rate::from_bps(bps as u64))
}

/// A line of tc as the user wrote it, and the link that it describes.
#[derive(Debug)]
struct LinkOfLine {
    line: String,
    link: TcLink,
}

/// Reads every line of tc in `text`, and ignores all other lines. Returns at least one link. A line that
/// hangs below another one of the same device (`parent`) is a part of the same link.
///
/// # Errors
/// Returns the number of the first line that cannot be read, and the reason. Returns an error, too, if there
/// is no line of tc.
fn read_tc_links(text: &str) -> Result<Vec<LinkOfLine>, String> {
    let mut links = Vec::new();
    for (line_number, line) in (1_u32..).zip(text.lines()) {
        if tc::is_tc_line(line) {
            let link = tc::parse_line(line).map_err(|message| format!("line {line_number}: {message}"))?;
            let (device, hangs_below) = tc::device(line);
            let upper = links
                .iter_mut()
                .rev()
                .find(|upper: &&mut LinkOfLine| hangs_below && tc::device(&upper.line).0 == device);
            match upper {
                Some(upper) => {
                    upper.line = format!("{}; {}", upper.line, line.trim());
                    upper.link.attach(link);
                }
                None => links.push(LinkOfLine { line: line.trim().to_owned(), link }),
            }
        }
    }
    if links.is_empty() { Err("found no line of tc".to_owned()) } else { Ok(links) }
}

/// Describes each link by its line of tc, its keys in a scenario, and notes about what is not converted.
fn describe_tc_links(links: &[LinkOfLine]) -> String {
    let mut text = String::new();
    for LinkOfLine { line, link } in links {
        text.push_str(&format!("# {line}\n{}\n", link.keys.join("\n")));
        for note in &link.notes {
            text.push_str(&format!("# note: {note}\n"));
        }
        text.push('\n');
    }
    text
}

/// Writes a path file. The first link becomes the table `[up]`, and the second one the table `[down]`. If
/// there is only one link, nothing is known of the download, so `[down]` gets an unlimited rate.
///
/// # Errors
/// Returns an error if there are not one or two links.
fn write_path_file(links: &[LinkOfLine]) -> Result<String, String> {
    let (up, down) = match links {
        [up] => (toml_table("up", up), "[down]\nrate = \"unlimited\"\n".to_owned()),
        [up, down] => (toml_table("up", up), toml_table("down", down)),
        _ => {
            return Err(format!(
                "found {} lines of tc; a path has two directions: give a file with the line of `up` and that of `down`",
                links.len()
            ));
        }
    };
    Ok(format!("{up}\n{down}"))
}

/// Writes a link as a TOML table, with its line of tc as a comment.
fn toml_table(table_name: &str, LinkOfLine { line, link }: &LinkOfLine) -> String {
    format!("# {line}\n[{table_name}]\n{}\n", link.keys.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_first_line() {
        assert_eq!(guess_kind("\n# remark\n0\n5\n"), Some(TraceKind::Mahimahi));
        assert_eq!(guess_kind("time_s,rate_mbps\n0,1\n"), Some(TraceKind::Csv));
        assert_eq!(guess_kind("sudo tc qdisc add dev lo root netem delay 5ms\n"), Some(TraceKind::Tc));
        assert_eq!(guess_kind("time,throughput\n0,1\n"), Some(TraceKind::Csv));
        assert_eq!(guess_kind("0 48.2\n1 51.9\n"), None);
        assert_eq!(guess_kind(" {\"StaticBwConfig\": {}}\n"), Some(TraceKind::NetemTrace));
    }

    #[test]
    fn a_table_is_told_with_its_times_and_extremes() {
        let table: ChangeTable = "time_s rate_mbps loss_percent\n0 48.2 0\n1.5 0 2.5\n".parse().unwrap();
        assert_eq!(
            describe_table(&table),
            "2 rows from 0 s to 1500 ms; rate 0 kb/s to 48.2 Mb/s; loss 0 to 2.5 %"
        );
        let ways = "time_us up_mbps down_mbps delay_ms\n1700000000000000 5 50 20\n1700000001000000 7 40 25\n";
        assert_eq!(
            describe_table(&ways.parse().unwrap()),
            "2 rows from 0 s to 1 s; times count from the first one, 1700000000 s; up: rate 5 Mb/s to 7 Mb/s, delay 20 to 25 ms; \
             down: rate 40 Mb/s to 50 Mb/s, delay 20 to 25 ms"
        );
    }

    #[test]
    fn one_line_of_tc_is_the_upload_of_a_path_and_two_are_both_directions() {
        let line = "tc qdisc add dev eth0 root tbf rate 1mbit burst 32kbit latency 400ms";
        let one = write_path_file(&read_tc_links(line).unwrap()).unwrap();
        assert!(one.contains("[up]\nshaper = ") && one.ends_with("[down]\nrate = \"unlimited\"\n"), "{one}");
        let two = write_path_file(&read_tc_links(&format!("{line}\n{line}\n")).unwrap()).unwrap();
        assert_eq!(two.matches("shaper = ").count(), 2);
        let three = read_tc_links(&[line; 3].join("\n")).unwrap();
        assert!(write_path_file(&three).unwrap_err().contains("found 3 lines"));
        assert!(read_tc_links("echo").unwrap_err().contains("no line of tc"));
        let classes = "tc qdisc add dev eth0 root handle 1: htb default 10\n\
                       tc class add dev eth0 parent 1: classid 1:10 htb rate 2mbit\n\
                       tc qdisc add dev eth0 parent 1:10 handle 10: netem delay 40ms\n";
        let joined = write_path_file(&read_tc_links(classes).unwrap()).unwrap();
        assert!(joined.contains("[up]\nrate = \"2 Mbps\"\ndelay = \"40 ms\"\nqueue = "), "{joined}");
    }
}

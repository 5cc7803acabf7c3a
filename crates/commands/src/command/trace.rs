//! `talkpath trace` says what a trace or a line of tc holds, and writes it in the form that a scenario reads.

mod deliveries;
mod tc;

use std::path::Path;

use talkpath_path::{ChangeTable, LinkValues, RateModel};
use talkpath_units::{Duration, counted};

use self::deliveries::Deliveries;
use self::tc::TcLink;
use crate::args::{TraceArgs, TraceKind};
use crate::failure::Failure;
use crate::output_file::write_named_bytes;
use crate::path_changes::rate;
use crate::scenario_file::read;
use crate::terminal::Terminal;

/// Prints what the trace holds. With `-o` it also writes the trace as a scenario reads it.
///
/// # Errors
/// Returns [`Failure`] if the file cannot be read, if it is no such trace, or if the output cannot be
/// written.
pub fn run(args: &TraceArgs, terminal: Terminal) -> Result<(), Failure> {
    let name = args.file.display().to_string();
    // A line of tc may stand on the command line itself.
    let text = if tc::is_tc(&name) { name.clone() } else { read(&args.file)? };
    let refuse = |why: String| Failure::Usage(format!("{name}: {why}"));
    match args.kind.or_else(|| kind_of(&text)) {
        Some(TraceKind::Tc) => {
            let links = links_of_tc(&text).map_err(refuse)?;
            terminal.result(&links_in_words(&links))?;
            write(args.output.as_deref(), || path_of(&links).map_err(refuse), terminal)
        }
        Some(TraceKind::Csv) => {
            let table: ChangeTable = text.parse().map_err(|why| Failure::Usage(format!("{name}:{why}")))?;
            terminal.result(&format!("{name}: {}\n", table_in_words(&table)))?;
            let ready = "it is in the form that `file` of [[change]] reads; -o has nothing to convert";
            write(args.output.as_deref(), || Err(refuse(ready.to_owned())), terminal)
        }
        Some(TraceKind::Mahimahi) => {
            let deliveries = Deliveries::read(&text, args.unit).map_err(refuse)?;
            terminal.result(&format!("{name}: {}\n", deliveries.in_words()))?;
            write(args.output.as_deref(), || Ok(deliveries.as_trace()), terminal)
        }
        None => Err(refuse(
            "found neither whole numbers, a header nor a line of tc. For a table of times and values add a first line that \
             names its columns, such as `time_s rate_mbps`; --as says what a file is"
                .to_owned(),
        )),
    }
}

/// Writes what `made` gives to `target`, if there is one.
fn write(
    target: Option<&Path>,
    made: impl FnOnce() -> Result<String, Failure>,
    terminal: Terminal,
) -> Result<(), Failure> {
    let Some(target) = target else { return Ok(()) };
    write_named_bytes(target, made()?.as_bytes())?;
    terminal.result(&format!("Written: {}\n", target.display()))
}

/// What a file most likely is, by its first line with anything in it. `None` if it is nothing that is known.
fn kind_of(text: &str) -> Option<TraceKind> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let first = lines.next()?;
    if tc::is_tc(first) {
        return Some(TraceKind::Tc);
    }
    if first.starts_with("time_") {
        return Some(TraceKind::Csv);
    }
    first.bytes().all(|byte| byte.is_ascii_digit()).then_some(TraceKind::Mahimahi)
}

fn table_in_words(table: &ChangeTable) -> String {
    let rows = table.rows();
    let first = rows.first().map_or(Duration::ZERO, |(time, _)| *time);
    let last = rows.last().map_or(Duration::ZERO, |(time, _)| *time);
    let mut parts = vec![format!("{} from {first} to {last}", counted(rows.len(), "row"))];
    let values = |pick: fn(&LinkValues) -> Option<f64>| {
        let mut found: Vec<f64> = rows.iter().filter_map(|(_, values)| pick(values)).collect();
        found.sort_by(f64::total_cmp);
        Some((*found.first()?, *found.last()?))
    };
    let bps = |values: &LinkValues| match values.rate {
        Some(RateModel::Fixed(rate)) => Some(rate.as_bps() as f64),
        _ => None,
    };
    if let Some((least, most)) = values(bps) {
        parts.push(format!("rate {} to {}", rate_of(least), rate_of(most)));
    }
    if let Some((least, most)) = values(|values| Some(values.delay?.as_millis_f64())) {
        parts.push(format!("delay {least} to {most} ms"));
    }
    if let Some((least, most)) = values(|values| Some(values.loss.as_ref()?.mean())) {
        parts.push(format!("loss {} to {} %", percent(least), percent(most)));
    }
    parts.join("; ")
}

fn percent(share: f64) -> f64 {
    // Nine digits hide what the multiplication by 100 adds to a decimal number.
    (share * 1e9).round() / 1e7
}

/// A rate of a whole number of bits a second in words.
fn rate_of(bps: f64) -> String {
    rate(talkpath_units::Rate::from_bps(bps as u64))
}

/// The links of all lines of tc in `text`.
///
/// # Errors
/// Returns the first line that cannot be read, and why.
fn links_of_tc(text: &str) -> Result<Vec<(String, TcLink)>, String> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| tc::is_tc(line));
    let links: Vec<(String, TcLink)> = lines
        .map(|(number, line): (u32, &str)| {
            let link = tc::read(line).map_err(|why| format!("line {number}: {why}"))?;
            Ok((line.trim().to_owned(), link))
        })
        .collect::<Result<_, String>>()?;
    if links.is_empty() { Err("found no line of tc".to_owned()) } else { Ok(links) }
}

fn links_in_words(links: &[(String, TcLink)]) -> String {
    let mut text = String::new();
    for (line, TcLink { keys, notes }) in links {
        text += &format!("# {line}\n{}\n", keys.join("\n"));
        for note in notes {
            text += &format!("# note: {note}\n");
        }
        text.push('\n');
    }
    text
}

/// A path file: the first line is `up`, and the second one `down`.
///
/// # Errors
/// Returns how many lines there are, if there are more than two.
fn path_of(links: &[(String, TcLink)]) -> Result<String, String> {
    let (up, down) = match links {
        [up] => (up, None),
        [up, down] => (up, Some(down)),
        more => {
            return Err(format!(
                "found {} lines of tc; a path has two directions: give a file with the line of `up` and that of `down`",
                more.len()
            ));
        }
    };
    let table = |name: &str, (line, link): &(String, TcLink)| {
        format!("# {line}\n[{name}]\n{}\n", link.keys.join("\n"))
    };
    // A line of tc is for one direction. Nothing is known of the other one.
    let down = down.map_or_else(|| "[down]\nrate = \"unlimited\"\n".to_owned(), |down| table("down", down));
    Ok(format!("{}\n{down}", table("up", up)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_first_line() {
        assert_eq!(kind_of("\n# remark\n0\n5\n"), Some(TraceKind::Mahimahi));
        assert_eq!(kind_of("time_s,rate_mbps\n0,1\n"), Some(TraceKind::Csv));
        assert_eq!(kind_of("sudo tc qdisc add dev lo root netem delay 5ms\n"), Some(TraceKind::Tc));
        assert_eq!(kind_of("0 48.2\n1 51.9\n"), None);
    }

    #[test]
    fn a_table_is_told_with_its_times_and_extremes() {
        let table: ChangeTable = "time_s rate_mbps loss_percent\n0 48.2 0\n1.5 0 2.5\n".parse().unwrap();
        assert_eq!(
            table_in_words(&table),
            "2 rows from 0 s to 1500 ms; rate 0 kb/s to 48.2 Mb/s; loss 0 to 2.5 %"
        );
    }

    #[test]
    fn one_line_of_tc_is_the_upload_of_a_path_and_two_are_both_directions() {
        let line = "tc qdisc add dev eth0 root tbf rate 1mbit burst 32kbit latency 400ms";
        let one = path_of(&links_of_tc(line).unwrap()).unwrap();
        assert!(one.contains("[up]\nshaper = ") && one.ends_with("[down]\nrate = \"unlimited\"\n"), "{one}");
        let two = path_of(&links_of_tc(&format!("{line}\n{line}\n")).unwrap()).unwrap();
        assert_eq!(two.matches("shaper = ").count(), 2);
        let three = links_of_tc(&[line; 3].join("\n")).unwrap();
        assert!(path_of(&three).unwrap_err().contains("found 3 lines"));
        assert!(links_of_tc("echo").unwrap_err().contains("no line of tc"));
    }
}

//! `talkpath send` sends one file, and `talkpath burst` one burst of messages, to a host that runs
//! `talkpath serve`. Each command writes a scenario with one flow. After that it is a run like any other.

use std::path::Path;

use talkpath_measure::summary::{FileSummary, RunSummary, Summary};
use talkpath_report::run_table;
use talkpath_scenario::{Options, Plan, Setting, Source, fitting_name};
use talkpath_units::{Duration, counted};

use super::run::run_plan;
use super::{Conclusion, Context, again, conclude};
use crate::args::{BurstArgs, SendArgs, TransferArgs, quoted};
use crate::failure::Failure;
use crate::output_file::refuse_junit;
use crate::place;
use crate::running::Outcome;
use crate::scenario_file::load_source_beside;
use crate::terminal::table_style;
use talkpath_experiment::choice::ArenaKind;
use talkpath_experiment::part::LOG;
use talkpath_experiment::place::Place;

/// The flow's name in thresholds (docs/reference/interface.md).
const FLOW: &str = "transfer";
const WORKLOAD: &str = "flow.transfer.workload";
/// How long a transfer runs at most over a transport that repairs losses (docs/reference/interface.md).
const RELIABLE_DURATION: &str = "10 min";

/// Sends a file. The far host checks its SHA-256.
pub fn send(args: &SendArgs, context: Context<'_>) -> Result<(), Failure> {
    let file = args.file.to_string_lossy();
    let file_name = args.file.file_name().map_or(file.clone(), |name| name.to_string_lossy());
    let source = Setting::by(&format!("send {file}"), &format!("{WORKLOAD}.source"), quoted(&file));
    let transfer = Transfer {
        run_name: format!("{file_name} to {}", args.transfer.to),
        workload: "file",
        workload_keys: vec![source],
        default_transport: "tcp",
        lossy_duration: "60 s",
    };
    transfer.run(&args.transfer, context)
}

/// Sends messages as fast as the transport takes them.
pub fn burst(args: &BurstArgs, context: Context<'_>) -> Result<(), Failure> {
    let BurstArgs { size, count, transfer: flags } = args;
    let PayloadSize { value, words } = payload_size(size);
    let transfer = Transfer {
        run_name: format!("{} of {words} to {}", counted(*count, "message"), flags.to),
        workload: "burst",
        workload_keys: vec![
            Setting::by(&format!("--size {size}"), &format!("{WORKLOAD}.size"), quoted(&value)),
            Setting::by(&format!("--count {count}"), &format!("{WORKLOAD}.count"), count.to_string()),
        ],
        default_transport: "udp",
        lossy_duration: "10 s",
    };
    transfer.run(flags, context)
}

/// The payload that `--size` asks for.
#[derive(Debug, PartialEq, Eq)]
struct PayloadSize {
    /// The size with a unit of the scenario language.
    value: String,
    /// The size in the name of the run.
    words: String,
}

/// Reads `--size`. A number without a unit is in bytes. The scenario language has no `KB`, because some mean
/// 1000 B by it and others 1024 B. Spoor (2014, appendix B) means 1024 B, so `burst` reads it so and says it.
fn payload_size(size: &str) -> PayloadSize {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number_of_kb = size.strip_suffix("KB").map(str::trim_end).filter(|number| is_number(number));
    if let Some(number) = number_of_kb {
        return PayloadSize { value: format!("{number} KiB"), words: format!("{size} (a KB is 1024 B)") };
    }
    let value = if is_number(size) { format!("{size} B") } else { size.to_owned() };
    PayloadSize { words: value.clone(), value }
}

/// The scenario that a command writes: one flow to one host.
struct Transfer {
    run_name: String,
    /// The kind of the flow's workload: `file` or `burst`.
    workload: &'static str,
    /// The keys that only this workload has.
    workload_keys: Vec<Setting>,
    /// The transport that is used if the user names none.
    default_transport: &'static str,
    /// How long the flow runs at most over a transport that does not repair losses. What is lost there never
    /// arrives, so it makes no sense to wait for ten minutes.
    lossy_duration: &'static str,
}

impl Transfer {
    fn run(&self, args: &TransferArgs, context: Context<'_>) -> Result<(), Failure> {
        args.family.only()?;
        let ip = args.family.versions();
        let place =
            Place { ip, key_file: args.key_file.clone(), ..Place::new(ArenaKind::Live, Some(&args.to)) };
        let plan = self.plan(args)?;
        refuse_junit(args.demand.junit.as_deref(), &[])?;
        // A repetition that the machine disturbed has sent its data all the same, so it does not run again.
        let run_once = Place { run_again: Some(Duration::ZERO), ..place.clone() };
        let mut outcome = run_plan(&plan, run_once, false, None, context)?;
        if self.workload == "file" && outcome.failure.is_none() {
            outcome.failure = incomplete_file(&outcome.summary);
        }
        conclude_transfer(outcome, &place, args, context)
    }

    fn plan(&self, args: &TransferArgs) -> Result<Plan, Failure> {
        if let Some(duration) = &args.duration {
            return self.plan_with_duration(duration, args);
        }
        // Whether the transport repairs losses is known only when the plan has been made.
        let plan = self.plan_with_duration(self.lossy_duration, args)?;
        if repairs_losses(&plan) {
            return self.plan_with_duration(RELIABLE_DURATION, args);
        }
        Ok(plan)
    }

    fn plan_with_duration(&self, duration: &str, args: &TransferArgs) -> Result<Plan, Failure> {
        // The delay of a network is not known. So messages in flight at the end of the run have 5 s to
        // arrive.
        let source = Source::new(format!("talkpath {}", self.workload), "drain = \"5 s\"");
        let options =
            Options { set: self.settings(duration, args), repeat: Some(args.repeat), ..Options::default() };
        load_source_beside(Path::new(""), &source, &options)
    }

    fn settings(&self, duration: &str, args: &TransferArgs) -> Vec<Setting> {
        let transport = args.transport.as_deref().unwrap_or(self.default_transport);
        let flow = format!("{{ {FLOW} = {{ workload = {{ kind = \"{}\" }} }} }}", self.workload);
        let mut settings = vec![
            Setting::by("talkpath", "name", quoted(&fitting_name(&self.run_name))),
            Setting::by(&format!("--duration {duration}"), "duration", quoted(duration)),
            Setting::by("talkpath", "flow", flow),
            Setting::by(
                &format!("--transport {transport}"),
                &format!("flow.{FLOW}.transport"),
                quoted(transport),
            ),
        ];
        settings.extend(self.workload_keys.iter().cloned());
        settings.extend(args.demand.settings());
        settings
    }
}

/// Returns whether the transport of every flow sends lost data again.
fn repairs_losses(plan: &Plan) -> bool {
    let mut flows = plan.cells.iter().flat_map(|cell| &cell.scenario.flows);
    flows.all(|flow| flow.transport.kind().features().is_reliable)
}

/// Prints the table of the run, whether each file arrived, the place of the log and the command that sends
/// again.
fn conclude_transfer(
    outcome: Outcome,
    place: &Place,
    args: &TransferArgs,
    context: Context<'_>,
) -> Result<(), Failure> {
    let table = run_table(&outcome.summary, &table_style(args.tables));
    let table = format!("{}\n{}", table.trim_end(), file_lines(&outcome.summary));
    let again = again(&outcome.dir, &place::as_flags(place));
    let next_commands = format!("Log: {}\n{again}", outcome.dir.file(LOG).display());
    let conclusion = Conclusion { table: &table, next_commands: &next_commands, demand: Some(&args.demand) };
    conclude(outcome, &conclusion, context)
}

/// Writes a line for each file in each repetition: whether the file arrived as it was sent.
fn file_lines(summary: &Summary) -> String {
    let flows = summary.runs.iter().flat_map(|run| run.flows.values());
    flows.filter_map(|flow| flow.file.as_deref()).map(file_line).collect()
}

fn file_line(file: &FileSummary) -> String {
    let state = if file.intact == Some(true) {
        format!("intact, SHA-256 {}", file.sha256)
    } else if let Some(received) = file.received_bytes {
        format!("NOT intact: {received} B arrived, {} ranges are missing", file.missing_ranges)
    } else {
        "NOT known to have arrived: the far end went away".to_owned()
    };
    format!("\n{}, {} B: {state}", file.name, file.bytes)
}

/// Returns a failure if a file did not arrive as it was sent in all repetitions.
fn incomplete_file(summary: &Summary) -> Option<Failure> {
    let is_whole = |run: &&RunSummary| {
        run.flows.values().all(|flow| flow.file.as_ref().is_some_and(|file| file.intact == Some(true)))
    };
    let repetitions = summary.runs.len();
    let incomplete = repetitions - summary.runs.iter().filter(is_whole).count();
    if incomplete == 0 {
        return None;
    }
    let times = if repetitions > 1 { format!(" {incomplete} of {repetitions} times") } else { String::new() };
    Some(Failure::NotHeld(format!("the file did not arrive whole{times}")))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        transfer: TransferArgs,
    }

    fn plan(what: &str, transport: &str) -> Plan {
        let line = Line::parse_from(["send", "--to", "far", "--transport", transport]);
        let transfer = Transfer {
            run_name: what.to_owned(),
            workload: "burst",
            workload_keys: vec![
                Setting::by("", &format!("{WORKLOAD}.size"), quoted("128 B")),
                Setting::by("", &format!("{WORKLOAD}.count"), "9"),
            ],
            default_transport: "udp",
            lossy_duration: "60 s",
        };
        transfer.plan(&line.transfer).unwrap_or_else(|_| panic!("{what} over {transport}"))
    }

    #[test]
    fn a_transport_that_repairs_losses_has_ten_minutes_and_any_other_has_one() {
        for (transport, minutes) in [
            ("tcp", 10),
            ("quic-stream", 10),
            ("quic-stream-per-message", 10),
            ("quic-datagram", 1),
            ("udp", 1),
        ] {
            let duration = plan("a file", transport).cells[0].scenario.duration;
            assert_eq!(duration, Duration::from_secs(60 * minutes), "{transport}");
        }
    }

    #[test]
    fn a_size_in_kb_is_read_as_1024_b_and_says_so() {
        let of = |size: &str| {
            let PayloadSize { value, words } = payload_size(size);
            (value, words)
        };
        assert_eq!(of("60KB"), ("60 KiB".to_owned(), "60KB (a KB is 1024 B)".to_owned()));
        assert_eq!(of("1 KB").0, "1 KiB");
        // What the scenario language reads, or refuses, is left to it.
        for (size, value) in [("128", "128 B"), ("60kB", "60kB"), ("KB", "KB"), ("1.5KB", "1.5KB")] {
            assert_eq!(of(size), (value.to_owned(), value.to_owned()));
        }
    }

    #[test]
    fn a_file_with_a_long_name_can_be_sent() {
        assert_eq!(plan(&format!("{}\n to far", "x".repeat(250)), "tcp").name, "x".repeat(200));
    }
}

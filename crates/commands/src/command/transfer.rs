//! `talkpath send` and `talkpath burst`: one file, or one burst of messages, to a host that runs
//! `talkpath serve`. The scenario is made here; beyond that it is a run like any other.

use std::path::Path;

use talkpath_measure::summary::{FileSummary, RunSummary, Summary};
use talkpath_report::run_table;
use talkpath_scenario::{Options, Plan, Setting, Source, fitting_name};
use talkpath_units::{Duration, counted};

use super::run::run_plan;
use super::{again, conclude};
use crate::arenas::Arenas;
use crate::args::{BurstArgs, Common, SendArgs, TransferArgs, quoted};
use crate::failure::Failure;
use crate::output_file::refuse_junit;
use crate::place;
use crate::scenario_file::load_source_beside;
use crate::terminal::{Terminal, table_style};
use talkpath_experiment::choice::ArenaKind;
use talkpath_experiment::part::LOG;
use talkpath_experiment::place::Place;

/// Sends a file; the far end checks its SHA-256.
pub fn send(
    args: &SendArgs,
    common: &Common,
    arenas: &dyn Arenas,
    terminal: Terminal,
) -> Result<(), Failure> {
    let file = args.file.to_string_lossy();
    let name = args.file.file_name().map_or(file.clone(), |name| name.to_string_lossy());
    let transfer = Transfer {
        what: format!("{name} to {}", args.transfer.to),
        kind: "file",
        keys: vec![Setting::by(&format!("send {file}"), &format!("{WORKLOAD}.source"), quoted(&file))],
        transport: "tcp",
        lossy_duration: "60 s",
    };
    transfer.run(&args.transfer, common, arenas, terminal)
}

/// Sends messages as fast as the transport takes them.
pub fn burst(
    args: &BurstArgs,
    common: &Common,
    arenas: &dyn Arenas,
    terminal: Terminal,
) -> Result<(), Failure> {
    let BurstArgs { size, count, transfer } = args;
    let is_number = !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_digit());
    let with_unit = if is_number { format!("{size} B") } else { size.clone() };
    let keys = vec![
        Setting::by(&format!("--size {size}"), &format!("{WORKLOAD}.size"), quoted(&with_unit)),
        Setting::by(&format!("--count {count}"), &format!("{WORKLOAD}.count"), count.to_string()),
    ];
    let what = format!("{} of {with_unit} to {}", counted(*count, "message"), transfer.to);
    Transfer { what, kind: "burst", keys, transport: "udp", lossy_duration: "10 s" }
        .run(transfer, common, arenas, terminal)
}

/// One flow, as the command makes it.
struct Transfer {
    /// The run's name.
    what: String,
    /// The workload.
    kind: &'static str,
    /// The workload's own keys.
    keys: Vec<Setting>,
    /// What carries it unless the user says so.
    transport: &'static str,
    /// How long it runs at most over a transport that repairs no loss: what is lost there never comes.
    lossy_duration: &'static str,
}

impl Transfer {
    fn run(
        &self,
        args: &TransferArgs,
        common: &Common,
        arenas: &dyn Arenas,
        terminal: Terminal,
    ) -> Result<(), Failure> {
        let place = Place { key_file: args.key_file.clone(), ..Place::of(ArenaKind::Live, Some(&args.to)) };
        let plan = self.plan(args)?;
        refuse_junit(args.demand.junit.as_deref(), &[])?;
        // What was sent has arrived, whatever the machine did meanwhile.
        let once = Place { run_again: Some(Duration::ZERO), ..place.clone() };
        let mut outcome = run_plan(&plan, once, false, common, arenas, terminal)?;
        if self.kind == "file" {
            outcome.failure = outcome.failure.or_else(|| not_whole(&outcome.summary));
        }
        let again = again(&outcome.dir, &place::flags(&place));
        let next_commands = format!("Log: {}\n{again}", outcome.dir.file(LOG).display());
        let table = run_table(&outcome.summary, &table_style(args.tables));
        let table = format!("{}\n{}", table.trim_end(), arrived(&outcome.summary));
        let junit = args.demand.junit.as_deref();
        conclude(outcome, &table, &next_commands, junit, common, args.strict, terminal)
    }

    fn plan(&self, args: &TransferArgs) -> Result<Plan, Failure> {
        let source = Source::new(format!("talkpath {}", self.kind), "drain = \"5 s\"");
        let load = |duration: &str| {
            let options =
                Options { set: self.settings(args, duration), seed: None, repeat: Some(args.repeat) };
            load_source_beside(Path::new(""), &source, &options)
        };
        match &args.duration {
            Some(duration) => load(duration),
            // The plan says which transport it is.
            None => match load(self.lossy_duration)? {
                plan if repairs_losses(&plan) => load(LONGEST),
                plan => Ok(plan),
            },
        }
    }

    fn settings(&self, args: &TransferArgs, duration: &str) -> Vec<Setting> {
        let transport = args.transport.as_deref().unwrap_or(self.transport);
        let own = "talkpath";
        let flow = format!("{{ {FLOW} = {{ workload = {{ kind = \"{}\" }} }} }}", self.kind);
        let mut set = vec![
            Setting::by(own, "name", quoted(&fitting_name(&self.what))),
            Setting::by(&format!("--duration {duration}"), "duration", quoted(duration)),
            Setting::by(own, "flow", flow),
            Setting::by(
                &format!("--transport {transport}"),
                &format!("flow.{FLOW}.transport"),
                quoted(transport),
            ),
        ];
        set.extend(self.keys.iter().cloned());
        set.extend(args.demand.settings());
        set
    }
}

/// Whether what is lost is sent again.
fn repairs_losses(plan: &Plan) -> bool {
    let mut flows = plan.cells.iter().flat_map(|cell| &cell.scenario.flows);
    flows.all(|flow| flow.transport.kind().features().is_reliable)
}

/// Of a file, a line a repetition: whether it arrived as it was sent.
fn arrived(summary: &Summary) -> String {
    let files =
        summary.runs.iter().flat_map(|run| run.flows.values()).filter_map(|flow| flow.file.as_deref());
    let line = |file: &FileSummary| {
        let state = match (file.intact, file.received_bytes) {
            (Some(true), _) => format!("intact, SHA-256 {}", file.sha256),
            (_, Some(received)) => {
                format!("NOT intact: {received} B arrived, {} ranges are missing", file.missing_ranges)
            }
            (_, None) => "NOT known to have arrived: the far end went away".to_owned(),
        };
        format!("\n{}, {} B: {state}", file.name, file.bytes)
    };
    files.map(line).collect()
}

/// That a file did not arrive as it was sent, in one of the repetitions or more.
fn not_whole(summary: &Summary) -> Option<Failure> {
    let is_whole = |run: &&RunSummary| {
        run.flows.values().all(|flow| flow.file.as_ref().is_some_and(|file| file.intact == Some(true)))
    };
    let (all, whole) = (summary.runs.len(), summary.runs.iter().filter(is_whole).count());
    let times = if all > 1 { format!(" {} of {all} times", all - whole) } else { String::new() };
    (whole < all).then(|| Failure::NotHeld(format!("the file did not arrive whole{times}")))
}

/// docs/reference/interface.md: the flow's name, for thresholds.
const FLOW: &str = "transfer";
const WORKLOAD: &str = "flow.transfer.workload";
/// docs/reference/interface.md: how long a transfer over a reliable transport runs at most.
const LONGEST: &str = "10 min";

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
            what: what.to_owned(),
            kind: "burst",
            keys: vec![
                Setting::by("", &format!("{WORKLOAD}.size"), quoted("128 B")),
                Setting::by("", &format!("{WORKLOAD}.count"), "9"),
            ],
            transport: "udp",
            lossy_duration: "60 s",
        };
        transfer.plan(&line.transfer).unwrap_or_else(|_| panic!("{what} over {transport}"))
    }

    #[test]
    fn what_repairs_its_losses_has_ten_minutes_and_all_else_one() {
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
    fn a_file_with_a_long_name_can_be_sent() {
        assert_eq!(plan(&format!("{}\n to far", "x".repeat(250)), "tcp").name, "x".repeat(200));
    }
}

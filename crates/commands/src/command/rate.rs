//! `talkpath rate`: the calls in a capture, rated as a run is.
//!
//! ```text
//! capture ─► talkpath_capture ─► RunRecord ─► Summary ─► thresholds ─► tables, report.html, summary.json
//! ```
//!
//! There is no scenario, so the directory has neither scenario.toml nor parts. summary.json has two keys more
//! than that of a run: `streams` and `capture`.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json as json_value};
use talkpath_capture::{Capture, Counts, Options as CaptureOptions};
use talkpath_experiment::part::{PACKETS, REPORT, SUMMARY, record_write_error};
use talkpath_experiment::provenance::provenance;
use talkpath_experiment::run_dir::RunDir;
use talkpath_experiment::stopwatch::Stopwatch;
use talkpath_experiment::store::whole::{write_bytes, write_whole};
use talkpath_experiment::{choice::Records, json::json};
use talkpath_measure::chart_data::cell_chart_data;
use talkpath_measure::record_file::write_packets;
use talkpath_measure::summarise::{cell_summaries, summarise};
use talkpath_measure::summary::{CAPTURE, Clock, SUMMARY_FORMAT, Summary, Understood};
use talkpath_measure::warning;
use talkpath_report::{Page, Sounds, comparisons, html, run_table};
use talkpath_scenario::{Options, Plan, Source, load};
use talkpath_units::counted;

use super::{Conclusion, Context, print_as_text};
use crate::args::{Common, JsonDetail, RateArgs, ReadingArgs};
use crate::capture_file::{capture_options, read_capture};
use crate::failure::Failure;
use crate::output_file::refuse_junit;
use crate::terminal::{self, Terminal, shell_path, shell_word};
use crate::thresholds::{self, ScorelessCall};

/// Rates the streams of a capture, and prints what came of it.
///
/// # Errors
/// Returns the gravest of what did not hold. A capture that is damaged is rated as far as it can be read, and
/// is an error nevertheless.
pub fn run(args: &RateArgs, context: Context<'_>) -> Result<(), Failure> {
    let Context { common, arenas, terminal } = context;
    refuse_junit(args.demand.junit.as_deref(), &[])?;
    let demanded = demanded(args)?;
    let watch = Stopwatch::start();
    let options = CaptureOptions { names: args.names, ..capture_options(&args.reading) };
    let (capture, damage) = read_capture(&args.capture, &options)?;
    let scoreless = capture
        .streams
        .iter()
        .filter_map(|stream| Some(ScorelessCall { flow: &stream.flow, why: stream.not_rated.as_deref()? }));
    thresholds::refuse_scoreless(&demanded, &scoreless.collect::<Vec<_>>())?;
    let source = RatedFile { path: &args.capture, reading: &args.reading, capture: &capture, watch: &watch };
    let mut summary = source.summary(damage.clone(), arenas.revision());
    summary.thresholds = thresholds::judge(&demanded, &summary);
    let written = source.write(common, &summary, None);
    let (dir, failure) = match written {
        Ok(dir) => (Some(dir), None),
        Err(why) => (None, Some(why)),
    };
    let printed = print(args, common, &capture, &summary, dir.as_ref(), terminal);
    let judged = summary.thresholds.as_slice();
    let junit = args.demand.junit.as_deref();
    let unwritten = junit.and_then(|path| thresholds::write_junit(path, &summary.name, judged).err());
    let threshold = thresholds::failure(judged, common.json() || common.quiet);
    let damage = damage.map(Failure::Usage);
    terminal.end_with([failure, damage, thresholds::unknown(judged), threshold, printed.err(), unwritten])
}

/// Makes a plan that has the thresholds of the command line. The flows of a capture are known after it was
/// read, as those of a program are, so the plan has a program in the place of flows.
fn demanded(args: &RateArgs) -> Result<Plan, Failure> {
    let source = Source::new(OURS, NO_SCENARIO);
    let options = Options { set: args.demand.settings().collect(), ..Options::default() };
    let plan = load(&source, &options).map_err(|mistakes| Failure::Usage(mistakes.to_string()))?;
    thresholds::refuse_unknown_figures(&plan)?;
    Ok(plan)
}

/// A capture that was read.
#[derive(Clone, Copy)]
pub(super) struct RatedFile<'a> {
    pub(super) path: &'a Path,
    pub(super) reading: &'a ReadingArgs,
    pub(super) capture: &'a Capture,
    pub(super) watch: &'a Stopwatch,
}

impl RatedFile<'_> {
    /// Computes all figures but those of thresholds. `damage` says where the file is damaged, if it is.
    pub(super) fn summary(&self, damage: Option<String>, revision: Option<String>) -> Summary {
        let mut summary = figures(self.path, self.capture, self.watch);
        summary.provenance = Some(provenance(revision));
        summary.warnings.extend(damage);
        warning::sort(&mut summary.warnings);
        summary.comparisons = comparisons(&summary);
        summary.wall_s = self.watch.wall_s();
        summary.cpu_s = self.watch.cpu_s();
        summary
    }

    /// Writes the directory of the capture, with the page, the summary and the rows. The page plays `sounds`.
    pub(super) fn write(
        &self,
        common: &Common,
        summary: &Summary,
        sounds: Option<&Sounds>,
    ) -> Result<RunDir, Failure> {
        let capture = self.capture;
        let name = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let started = self.watch.started_for_file_name();
        let mut dir = RunDir::create(&common.out, &started, &format!("rate {name}"))?;
        // A capture has no parts.
        dir.remove_parts()?;
        write_bytes(&dir.file(SUMMARY), &json(&value(capture, summary, true)))?;
        if common.records() >= Records::All {
            let path = dir.file(PACKETS);
            write_whole(&path, |writer| {
                write_packets(&capture.record, writer).map_err(|why| record_write_error(&path, why))
            })?;
        }
        let page = Page {
            summary,
            chart_data: &[cell_chart_data(&capture.record, "")],
            scenario_toml: "",
            command: &self.command_again(),
            changes: &[],
            network: None,
            sounds,
        };
        write_bytes(&dir.file(REPORT), html(&page).as_bytes())?;
        Ok(dir)
    }

    /// The command that rates the capture again.
    fn command_again(&self) -> String {
        let mut text = format!("talkpath rate {}", shell_path(self.path));
        for (number, encoding) in &self.reading.payload_type {
            let rate = encoding.clock_rate.map_or_else(String::new, |rate| format!("/{rate}"));
            text += &format!(" --payload-type {}", shell_word(&format!("{number}={}{rate}", encoding.name)));
        }
        if let Some(codec) = self.reading.codec {
            text += &format!(" --codec {}", codec.name());
        }
        if let Some(one_way) = self.reading.one_way {
            text += &format!(" --one-way {}ms", one_way.as_millis_f64());
        }
        text
    }
}

/// Computes all figures but what is compared and judged.
fn figures(path: &Path, capture: &Capture, watch: &Stopwatch) -> Summary {
    let record = &capture.record;
    let mut run = summarise(record, &BTreeMap::new());
    for (name, figures) in &capture.figures {
        if let Some(flow) = run.flows.get_mut(name) {
            flow.rtp_stream = Some(*figures);
        }
    }
    let runs = vec![run];
    let Counts { packets, udp, .. } = capture.counts;
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let setting = format!(
        "{} of RTP among {} of the capture, {udp} of them UDP",
        counted(capture.streams.len(), "stream"),
        counted(packets, "packet")
    );
    Summary {
        format: SUMMARY_FORMAT,
        talkpath: env!("CARGO_PKG_VERSION").to_owned(),
        name: talkpath_units::printable(&file, LONGEST_NAME),
        arena: CAPTURE.to_owned(),
        started: watch.started(),
        wall_s: 0.0,
        cpu_s: 0.0,
        valid: true,
        warnings: record.warnings.clone(),
        percentiles: "exact".to_owned(),
        clock: Clock::from(&record.clock),
        cells: cell_summaries(&runs),
        runs,
        program: None,
        comparisons: Vec::new(),
        thresholds: Vec::new(),
        provenance: None,
        understood: Understood { setting: vec![setting], ..Understood::default() },
    }
}

/// The summary with what only a capture has. `with_runs` says whether it has the figures of the only
/// repetition a second time, as those of a run.
fn value(capture: &Capture, summary: &Summary, with_runs: bool) -> Value {
    let mut value = serde_json::to_value(summary).unwrap_or_default();
    if let Value::Object(keys) = &mut value {
        if !with_runs {
            keys.shift_remove("runs");
        }
        let streams = serde_json::to_value(&capture.streams).unwrap_or_default();
        keys.insert("streams".to_owned(), streams);
        let damaged_at = capture.damage.as_ref().map(|damage| damage.at);
        let Counts { packets, udp, fragments, unknown, beyond_limit } = capture.counts;
        keys.insert(
            "capture".to_owned(),
            json_value!({
                "packets": packets,
                "udp": udp,
                "fragments": fragments,
                "unknown": unknown,
                "beyond_limit": beyond_limit,
                "damaged_at": damaged_at,
            }),
        );
    }
    value
}

fn print(
    args: &RateArgs,
    common: &Common,
    capture: &Capture,
    summary: &Summary,
    dir: Option<&RunDir>,
    terminal: Terminal,
) -> Result<(), Failure> {
    if common.json() {
        for warning in summary.warnings.iter().filter(|warning| !warning::is_note(warning)) {
            terminal.warning(warning);
        }
        let with_runs = common.json_detail == Some(JsonDetail::WithRuns);
        return terminal::print(&json(&value(capture, summary, with_runs)));
    }
    let table = run_table(summary, &terminal::table_style(args.tables));
    match dir {
        Some(dir) => {
            let conclusion = Conclusion { table: &table, next_commands: "", demand: Some(&args.demand) };
            print_as_text(dir, summary, &conclusion, terminal)
        }
        None => terminal.result(&format!("{}\n{}", table.trim_end(), thresholds::lines(&summary.thresholds))),
    }
}

/// The command in messages about thresholds.
const OURS: &str = "talkpath rate";
/// Stands for the scenario that a capture does not have.
const NO_SCENARIO: &str = "name = \"capture\"\nduration = \"1 s\"\npath = \"lan\"\nflow = {}\n\
                           [program]\ncommand = [\"capture\"]\n";
/// The longest name of a capture on its page. We chose 100 characters.
const LONGEST_NAME: usize = 100;

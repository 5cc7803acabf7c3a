//! `talkpath campaign` checks and runs a campaign, prints its status, copies its records and writes its
//! report.

use std::path::Path;

use serde_json::json;
use talkpath_campaign::{
    Entry, Failing, Findings, Measurement, Plan, Recorded, Status, StoreStatus, Uploads, findings, millis,
    status,
};
use talkpath_measure::summary::Summary;
use talkpath_report::campaign_page;
use talkpath_scenario::campaign_key_tables;

use crate::args::{CampaignArgs, CampaignCheckArgs, CampaignCommand, CampaignFileArgs, CampaignPushArgs};
use crate::args::{CampaignReportArgs, CampaignRunArgs, Common};
use crate::campaign::coordinate::coordinate;
use crate::campaign::hosts::HostChecks;
use crate::campaign::judged;
use crate::campaign::load::Loaded;
use crate::campaign::now;
use crate::campaign::push::{Copied, Push, Scope, quoted_command, uploads};
use crate::campaign::store::Store;
use crate::failure::Failure;
use crate::interrupt;
use crate::output_file::{refuse_records, write_named_bytes};
use crate::terminal::{Terminal, print};
use talkpath_experiment::json::json;
use talkpath_experiment::part::REPORT;
use talkpath_units::counted;

/// Runs the subcommand.
pub fn run(args: &CampaignArgs, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    match &args.command {
        CampaignCommand::Check(args) => check(args, common, terminal),
        CampaignCommand::Run(args) => run_campaign(args, common, terminal),
        CampaignCommand::Status(args) => print_status(args, common, terminal),
        CampaignCommand::Push(args) => push(args, common, terminal),
        CampaignCommand::Report(args) => report(args, common, terminal),
    }
}

/// Checks the campaign file, and with `--hosts` also the hosts.
fn check(args: &CampaignCheckArgs, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    let Some(file) = &args.file else { return print(campaign_key_tables().as_bytes()) };
    let loaded = Loaded::read(file)?;
    let campaign = &loaded.campaign;
    let plan = Plan::new(campaign, String::new(), "", now())
        .map_err(|error| Failure::Usage(format!("{}: schedule: {error}", file.display())))?;
    let mut slot_seconds = 0;
    for measure in &campaign.measures {
        for pair in &measure.pairs {
            let prepared = loaded.prepared(&measure.name, &campaign.hosts[pair.far]);
            slot_seconds += prepared.map_or(0, |prepared| prepared.expected.as_millis() / 1000);
        }
    }
    let when = match (campaign.schedule.start, plan.measurements.as_slice()) {
        (Some(_), [first, .., last]) => format!("from {} to {}", first.local, last.local),
        (Some(_), [only]) => format!("from {} to {}", only.local, only.local),
        _ => "from its first run on".to_owned(),
    };
    let valid = format!(
        "{}: valid: \"{}\", {}, {}, {when} ({}); the measurements of one time take up to {slot_seconds} s together\n",
        file.display(),
        campaign.name,
        counted(campaign.hosts.len(), "host"),
        counted(plan.measurements.len(), "measurement"),
        plan.zone,
    );
    if !args.hosts {
        return terminal.result(&valid);
    }
    let checks = HostChecks::run(&loaded)?;
    let printed = if common.json() {
        print(&json(&checks))
    } else {
        terminal.result(&format!("{valid}{}", checks.text()))
    };
    let failed = match checks.failed() {
        0 => None,
        1 => Some(Failure::far_end(format!("1 of {} hosts and pairs does not work", checks.tried()))),
        failed => {
            Some(Failure::far_end(format!("{failed} of {} hosts and pairs do not work", checks.tried())))
        }
    };
    terminal.end_with([failed, printed.err()])
}

/// Runs the measurements, writes the report, and prints the status.
fn run_campaign(args: &CampaignRunArgs, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    let loaded = Loaded::read(&args.file.file)?;
    let store = Store::new(&args.file, &loaded, &common.out);
    let (plan, entries) = coordinate(&loaded, &store, common, terminal)?;
    let status = with_store(status(&plan, &entries, loaded.campaign.schedule.retry, now()), &loaded, &store);
    let findings = write_report(&loaded, &store, &plan, &entries, &store.file(REPORT))?;
    let printed = if common.json() {
        print(&json(&findings))
    } else {
        let (status, invalid) = (status_text(&status, &store), not_valid_text(&findings));
        let thresholds = judged::text(&findings.thresholds);
        let report = store.file(REPORT);
        terminal.result(&format!("{status}{invalid}{thresholds}\nReport: {}\n", report.display()))
    };
    let (missing, not_valid) = (status.abandoned, findings.not_valid.len());
    let strict = (args.strict && (missing > 0 || not_valid > 0)).then(|| {
        Failure::NotHeld(format!(
            "--strict: {missing} of {} were not measured, and {not_valid} of {} measured are not valid",
            status.planned, status.done
        ))
    });
    terminal.end_with([strict, judged::failure(&findings.thresholds), printed.err()])
}

fn print_status(args: &CampaignFileArgs, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    let loaded = Loaded::read(&args.file)?;
    let store = Store::new(args, &loaded, &common.out);
    let (plan, entries) = (store.plan(&loaded)?, store.entries()?);
    let status = with_store(status(&plan, &entries, loaded.campaign.schedule.retry, now()), &loaded, &store);
    if common.json() {
        return print(&json(&status));
    }
    let findings = read_findings(&loaded, &store, &plan, &entries)?;
    let (status, invalid) = (status_text(&status, &store), not_valid_text(&findings));
    terminal.result(&format!("{status}{invalid}{}", judged::text(&findings.thresholds)))
}

/// Copies records that were not copied before.
fn push(args: &CampaignPushArgs, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    let file = &args.file;
    let loaded = Loaded::read(&file.file)?;
    let Some(command) = &loaded.campaign.store_command else {
        return Err(Failure::Usage(format!(
            "{}: missing `store_command`, such as store_command = [\"rclone\", \"copyto\", \"{{file}}\", \"REMOTE:BUCKET/{{key}}\"]",
            file.file.display()
        )));
    };
    let store = Store::new(file, &loaded, &common.out);
    let plan = store.plan(&loaded)?;
    let push = Push::new(command, &loaded.campaign.name, store, &interrupt::install()?);
    let scope = if args.all { Scope::Every } else { Scope::Left };
    let Copied { files, bytes, before } = push.all(&plan.measurements, scope)?;
    if common.json() {
        let store = push.name();
        return print(&json(&json!({ "store": store, "copied": files, "bytes": bytes, "before": before })));
    }
    let before = counted(before, "measurement");
    let name = push.name();
    terminal.result(&format!("{files} files copied ({bytes} B) by `{name}`; {before} copied before\n"))
}

/// Adds to `status` what was copied to the store of the campaign file.
fn with_store(mut status: Status, loaded: &Loaded, store: &Store) -> Status {
    status.store = loaded.campaign.store_command.as_ref().map(|command| {
        let command = quoted_command(command);
        let Uploads { there, failing, .. } = uploads(store, &command);
        StoreStatus { command, there: there.len() as u64, failing }
    });
    status
}

fn report(args: &CampaignReportArgs, common: &Common, terminal: Terminal) -> Result<(), Failure> {
    let loaded = Loaded::read(&args.file.file)?;
    let store = Store::new(&args.file, &loaded, &common.out);
    if let Some(path) = &args.output {
        refuse_records("-o", path, &[store.path()], Some(REPORT))?;
    }
    let target = args.output.clone().unwrap_or_else(|| store.file(REPORT));
    let findings = write_report(&loaded, &store, &store.plan(&loaded)?, &store.entries()?, &target)?;
    if common.json() {
        return print(&json(&findings));
    }
    terminal.result(&format!("Report: {}\n", target.display()))
}

/// Writes the page of the report, and returns the findings that it shows.
fn write_report(
    loaded: &Loaded,
    store: &Store,
    plan: &Plan,
    entries: &[Entry],
    target: &Path,
) -> Result<Findings, Failure> {
    let findings = read_findings(loaded, store, plan, entries)?;
    write_named_bytes(target, campaign_page(&findings).as_bytes())?;
    Ok(findings)
}

/// Reads the summaries of all records, and computes the findings.
fn read_findings(
    loaded: &Loaded,
    store: &Store,
    plan: &Plan,
    entries: &[Entry],
) -> Result<Findings, Failure> {
    let summaries = store.summaries(plan)?;
    let records = records(plan, &summaries);
    let found = findings(plan, &records, entries, now(), env!("CARGO_PKG_VERSION"));
    Ok(Findings { thresholds: judged::judge(loaded, plan, &summaries), ..found })
}

/// Joins each summary with its measurement, whose index in the plan comes with the summary.
pub(crate) fn records<'a>(plan: &'a Plan, summaries: &'a [(usize, Summary)]) -> Vec<Recorded<'a>> {
    let mut records = Vec::new();
    for (index, summary) in summaries {
        records.push(Recorded { measurement: &plan.measurements[*index], summary });
    }
    records
}

/// Writes the status: a few lines, a table of the hosts, and which measurements failed and why.
fn status_text(status: &Status, store: &Store) -> String {
    let Status { name, planned, done, abandoned, begun, overdue, later, .. } = status;
    let at_work = if store.is_at_work() { "a coordinator is at work" } else { "no coordinator is at work" };
    let mut text = format!(
        "{name}: {done} of {planned} measured, {abandoned} not measured, {begun} begun, {overdue} due, {later} later; {at_work}\n"
    );
    if let Some(next) = &status.next {
        text += &format!("Next: {}, {} > {}, {}\n", next.local, next.near, next.far, next.measure);
    }
    if let Some(StoreStatus { command, there, failing }) = &status.store {
        let why = failing.as_ref().map_or(String::new(), |why| format!("; the last attempt: {why}"));
        text += &format!("Copied by `{command}`: {there} of {done} measured{why}\n");
    }
    let width = status.hosts.iter().map(|host| host.host.len()).max().unwrap_or(0).max(4);
    text += &format!("\n{:width$}  planned  measured  missing  failures\n", "host");
    for host in &status.hosts {
        let last = last_text(host.last_failure.as_ref());
        let rests = host.rests_until.as_ref().map_or(String::new(), |until| format!("; rests until {until}"));
        text += &format!(
            "{:width$}  {:>7}  {:>8}  {:>7}  {:>8}{last}{rests}\n",
            host.host, host.planned, host.done, host.abandoned, host.failures
        );
    }
    if status.failures_elsewhere > 0 {
        let last = last_text(status.last_failure_elsewhere.as_ref());
        text +=
            &format!("{:width$}  {:>26}  {:>8}{last}\n", "?", "at no known host", status.failures_elsewhere);
    }
    let mut failing = Vec::new();
    for entry in &status.failing {
        failing.push(measurement_line(&entry.measurement, &reason_and_next_try(entry, millis(now()))));
    }
    text += &shortened_list("To be tried again", &failing, "--json");
    let missing = status.missing.iter().map(|entry| measurement_line(&entry.measurement, &entry.why));
    text + &shortened_list("Not measured", &missing.collect::<Vec<_>>(), "--json")
}

fn last_text(why: Option<&String>) -> String {
    why.map_or(String::new(), |why| format!("  last: {why}"))
}

/// Says why a measurement failed, and when it is tried again.
fn reason_and_next_try(failing: &Failing, now_ms: u64) -> String {
    match (&failing.next_try, failing.next_try_ms) {
        (Some(_), Some(at)) if at <= now_ms => {
            format!("{}; next try: as soon as its hosts are free", failing.why)
        }
        (Some(next), _) => format!("{}; next try: {next}", failing.why),
        (None, _) => format!("{}; not tried again: its window ends first", failing.why),
    }
}

/// Lists the measurements whose figures are not valid.
fn not_valid_text(findings: &Findings) -> String {
    let not_valid = &findings.not_valid;
    let lines: Vec<String> =
        not_valid.iter().map(|invalid| measurement_line(&invalid.measurement, &invalid.why)).collect();
    shortened_list("Not valid, their figures may be the machines'", &lines, "`campaign report --json`")
}

fn measurement_line(measurement: &Measurement, why: &str) -> String {
    let Measurement { local, near, far, measure, .. } = measurement;
    format!("  {local}, {near} > {far}, {measure}: {why}\n")
}

/// A list shows at most this many measurements. We chose 20 so that the list fits on a screen.
const MAX_LISTED: usize = 20;

/// Joins the first lines of a list below its title. If the list is too long, the text says that `whole_list`
/// has the whole list.
fn shortened_list(title: &str, lines: &[String], whole_list: &str) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let listed: String = lines.iter().take(MAX_LISTED).map(String::as_str).collect();
    let more = match lines.len().saturating_sub(MAX_LISTED) {
        0 => String::new(),
        count => format!("  and {count} more; {whole_list} has all\n"),
    };
    format!("\n{title}:\n{listed}{more}")
}

//! `talkpath monitor` measures one pair of hosts until the user stops it.
//!
//! ```text
//!  scheduler, sessions (live::Monitor) ─► this thread: intervals ─► records, totals, events ─► output thread
//!                                          HTTP thread ◄── totals ──► textfile thread
//! ```

use std::fs::Permissions;
use std::io::{self, IsTerminal, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use chrono::SecondsFormat;
use talkpath_arena::{MonitorEvent, MonitorSession};
use talkpath_measure::summary::{CallSummary, DelayMs};
use talkpath_scenario::{Options, Plan, Setting, Source};
use talkpath_system::clock::monotonic;
use talkpath_system::descriptors::raise_descriptor_limit;
use talkpath_units::{Duration, counted};

use crate::arenas::{Arenas, Monitored, no_thread};
use crate::args::{Common, MonitorArgs, quoted};
use crate::dashboard::{Dashboard, Reading};
use crate::failure::Failure;
use crate::interrupt;
use crate::monitor::alerts::{Alerts, ThresholdState, as_repetition};
use crate::monitor::events::{self, MonitorStart, MonitoredFlow};
use crate::monitor::http::BindError;
use crate::monitor::interval::{Interval, split};
use crate::monitor::openmetrics::{Format, MonitorState, render};
use crate::monitor::printer::Printer;
use crate::monitor::records::{RecordOptions, Recorder, folder};
use crate::monitor::totals::Totals;
use crate::monitor::{Epoch, http};
use crate::output_file::write_named;
use crate::scenario_file::{load_file, load_source};
use crate::terminal::{self, Terminal};
use crate::thresholds;
use talkpath_experiment::choice::{ArenaKind, Records};
use talkpath_experiment::place::Place;
use talkpath_experiment::provenance::provenance;

/// Over how many intervals thresholds are judged unless --over says it. We chose six because they are a
/// minute at the usual interval.
const JUDGED_INTERVALS: usize = 6;
/// The thresholds are judged over at most this many intervals, which are kept in memory. Chosen: each takes
/// some kilobytes for each flow.
const MAX_JUDGED_INTERVALS: usize = 1000;
/// The shortest session. We chose 10 s because each session costs some exchanges with the server at its
/// beginning and end.
const SHORTEST_SESSION: Duration = Duration::from_secs(10);
/// How often the textfile is written. Prometheus reads node_exporter every 15 s or less often (the examples
/// of Prometheus).
const TEXTFILE_EVERY: StdDuration = StdDuration::from_secs(10);
/// How often a waiting thread checks whether the monitor has ended.
const CHECK_INTERVAL: StdDuration = StdDuration::from_millis(50);

/// Measures until Ctrl-C, which is the normal end of a monitor.
pub fn run(
    args: &MonitorArgs,
    common: &Common,
    arenas: &dyn Arenas,
    terminal: Terminal,
) -> Result<(), Failure> {
    let session = session_length(args)?;
    let plan = session_plan(args, session)?;
    thresholds::refuse_unknown_figures(&plan)?;
    let window = judged_intervals(args)?;
    let listener = args.metrics.map(|address| listen(address, args.metrics_open, terminal)).transpose()?;
    let key = args.key_file.as_deref().map(|file| arenas.read_key(file)).transpose()?;
    let interrupt = interrupt::install()?;
    raise_descriptor_limit();
    let state = SharedState {
        epoch: Epoch::now(),
        to: &args.to,
        totals: Mutex::default(),
        measured_until_ns: AtomicI64::new(0),
        is_over: AtomicBool::new(false),
    };
    let has_records = common.records() != Records::None;
    let recorder = has_records.then(|| recorder(args, common, arenas, &plan, terminal));
    let mut output = MonitorOutput {
        args,
        arenas,
        terminal,
        state: &state,
        epoch: state.epoch,
        recorder,
        alerts: Alerts::new(&plan, window),
        interrupt: &interrupt,
        dashboard: terminal.shows_dashboard().then(|| Dashboard::new(false)),
        printer: printer(args.json_stream, &interrupt, terminal)?,
        next_interval: 0,
    };
    let ip = args.family.only()?;
    output.begin(&plan, session)?;
    let monitored = Monitored {
        host: &args.to,
        ip,
        key: key.as_deref(),
        clocks_synchronised: args.clocks_synchronised,
        scenario: &plan.cells[0].scenario,
        series: has_records.then_some(common.series),
        interrupt: &interrupt,
        measured_until_ns: &state.measured_until_ns,
    };
    let (measured, written) = thread::scope(|scope| {
        let measured = start_metrics(scope, &state, listener.as_ref(), args.textfile.as_deref(), terminal)
            .map_err(|why| no_thread(&why))
            .and_then(|()| arenas.monitor(&monitored, &mut |happening| output.take(happening)));
        let written = output.end();
        // The threads of the metrics end when they see the flag.
        state.is_over.store(true, Ordering::Relaxed);
        (measured, written)
    });
    terminal.end_with([measured.err(), written.err()])
}

/// Starts the threads that serve the metrics at `listener` and that keep them in the file `textfile`.
fn start_metrics<'scope>(
    scope: &'scope Scope<'scope, '_>,
    state: &'scope SharedState<'_>,
    listener: Option<&'scope TcpListener>,
    textfile: Option<&'scope Path>,
    terminal: Terminal,
) -> io::Result<()> {
    if let Some(listener) = listener {
        let serve = move || http::serve(listener, &state.is_over, &|format| state.render(format));
        thread::Builder::new().spawn_scoped(scope, serve)?;
    }
    if let Some(path) = textfile {
        let keep = move || keep_textfile(path, state, terminal);
        thread::Builder::new().spawn_scoped(scope, keep)?;
    }
    Ok(())
}

/// Opens the socket at which the metrics are served.
fn listen(address: SocketAddr, is_open: bool, terminal: Terminal) -> Result<TcpListener, Failure> {
    let listener = http::bind(address, is_open).map_err(|error| match error {
        BindError::NotLoopback(what) => Failure::Usage(what),
        BindError::Unavailable(what) => Failure::unavailable(what, "--metrics takes another port"),
    })?;
    if let Ok(address) = listener.local_addr() {
        terminal.note(&format!("metrics: http://{address}/metrics"));
    }
    Ok(listener)
}

/// Starts the thread that prints events, or lines for a person.
fn printer(is_json: bool, interrupt: &Arc<AtomicBool>, terminal: Terminal) -> Result<Printer, Failure> {
    let left_out: fn(u64) -> Vec<u8> = if is_json {
        |count| {
            let events = counted(count, "event");
            events::error(&format!("nobody read standard output: {events} left out here"))
        }
    } else {
        |count| {
            let lines = counted(count, "line");
            format!("nobody read standard output: {lines} left out here\n").into_bytes()
        }
    };
    Printer::start(Box::new(terminal::print), left_out, Arc::clone(interrupt), terminal)
}

/// The duration of a session, which is a whole number of intervals.
fn session_length(args: &MonitorArgs) -> Result<Duration, Failure> {
    let interval = args.interval.as_nanos();
    match args.session {
        None => Ok(Duration::from_nanos(SHORTEST_SESSION.as_nanos().div_ceil(interval).max(1) * interval)),
        Some(session) if session.as_nanos().is_multiple_of(interval) => Ok(session),
        Some(session) => Err(Failure::Usage(format!(
            "--session {session} is not a whole number of intervals of {}",
            args.interval
        ))),
    }
}

/// Over how many intervals the thresholds are judged.
fn judged_intervals(args: &MonitorArgs) -> Result<usize, Failure> {
    let Some(over) = args.over else { return Ok(JUDGED_INTERVALS) };
    let intervals = over.as_nanos().div_ceil(args.interval.as_nanos().max(1));
    usize::try_from(intervals).ok().filter(|count| *count <= MAX_JUDGED_INTERVALS).ok_or_else(|| {
        Failure::Usage(format!(
            "--over {over} is {intervals} intervals of {}; expected at most {MAX_JUDGED_INTERVALS}",
            args.interval
        ))
    })
}

/// Makes the plan of one session: the scenario of the user, or one flow.
fn session_plan(args: &MonitorArgs, session: Duration) -> Result<Plan, Failure> {
    let own = "talkpath monitor";
    let length = format!("{} ns", session.as_nanos());
    let mut set = vec![
        Setting::by("--session", "duration", quoted(&length)),
        Setting::by(own, "warm_up", quoted("0 s")),
        Setting::by(own, "repeat", "1"),
    ];
    if args.scenario.is_none() {
        let workload = args.workload;
        let flow = workload.flow();
        let option = format!("--transport {}", args.transport);
        set.extend([
            Setting::by(own, "name", quoted(&format!("monitor of {}", args.to))),
            Setting::by(&format!("--workload {}", workload.name()), "flow", workload.flow_alone()),
            Setting::by(&option, &format!("flow.{flow}.transport"), quoted(&args.transport)),
        ]);
        if args.flows > 1 {
            let option = format!("--flows {}", args.flows);
            set.push(Setting::by(&option, &format!("flow.{flow}.count"), args.flows.to_string()));
        }
    }
    set.extend(args.set.iter().cloned().map(Setting::from));
    set.extend(args.thresholds.settings());
    let options = Options { set, ..Options::default() };
    let plan = match &args.scenario {
        Some(path) => load_file(path, &options)?,
        None => load_source(&Source::new(own, "drain = \"2 s\""), &options)?,
    };
    match plan.cells.as_slice() {
        [_] => Ok(plan),
        cells => Err(Failure::Usage(format!(
            "the scenario sweeps {}, and a monitor measures one thing for ever: leave [sweep] out",
            counted(cells.len(), "cell")
        ))),
    }
}

/// Describes how and where the records are kept.
fn recorder<'a>(
    args: &MonitorArgs,
    common: &Common,
    arenas: &'a dyn Arenas,
    plan: &'a Plan,
    terminal: Terminal,
) -> Recorder<'a> {
    let place = Place {
        ip: args.family.versions(),
        key_file: args.key_file.clone(),
        clocks_synchronised: args.clocks_synchronised,
        ..Place::new(ArenaKind::Live, Some(&args.to))
    };
    let options = RecordOptions {
        folder: folder(&common.out, &args.to),
        records: common.records(),
        series: common.series,
        place,
        arenas,
        rotate: args.rotate,
        keep: args.keep,
        terminal,
    };
    Recorder::new(options, plan)
}

/// The state that the threads share.
struct SharedState<'a> {
    epoch: Epoch,
    /// The host that is measured, as the user wrote it.
    to: &'a str,
    totals: Mutex<Totals>,
    /// [`Monitored::measured_until_ns`].
    measured_until_ns: AtomicI64,
    /// Becomes true when the monitor has ended.
    is_over: AtomicBool,
}

impl SharedState<'_> {
    fn totals(&self) -> MutexGuard<'_, Totals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn render(&self, format: Format) -> String {
        let now_ns = monotonic();
        let is_up = now_ns < self.measured_until_ns.load(Ordering::Relaxed);
        let (epoch, to) = (self.epoch.anchored(), self.to);
        render(&MonitorState { totals: &self.totals(), epoch, to, is_up, now_ns }, format)
    }
}

/// Writes the metrics to `path` every [`TEXTFILE_EVERY`], and once more at the end. The file is written under
/// a temporary name, which the collector does not read, and renamed when it is complete.
fn keep_textfile(path: &Path, state: &SharedState<'_>, terminal: Terminal) {
    let mut has_failed = false;
    loop {
        let is_last = state.is_over.load(Ordering::Relaxed);
        match write_for_everybody(path, state.render(Format::Text).as_bytes()) {
            Ok(()) => has_failed = false,
            Err(_) if has_failed => {}
            Err(why) => {
                terminal.warning(&format!("{why}; it is tried again"));
                has_failed = true;
            }
        }
        if is_last {
            return;
        }
        let next = StdInstant::now() + TEXTFILE_EVERY;
        while StdInstant::now() < next && !state.is_over.load(Ordering::Relaxed) {
            thread::sleep(CHECK_INTERVAL);
        }
    }
}

/// Writes a file that every user may read, because the collector runs as another user. The umask of this
/// process does not matter.
fn write_for_everybody(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_named(path, |writer| {
        let readable = Permissions::from_mode(0o644);
        let set = writer.get_ref().set_permissions(readable);
        set.and_then(|()| writer.write_all(bytes)).map_err(|why| Failure::write(path, why))
    })
}

/// Takes what a monitor measures, and updates standard output, the totals and the records.
struct MonitorOutput<'a> {
    args: &'a MonitorArgs,
    arenas: &'a dyn Arenas,
    terminal: Terminal,
    state: &'a SharedState<'a>,
    /// Converts CLOCK_MONOTONIC into times of day, for the events.
    epoch: Epoch,
    recorder: Option<Recorder<'a>>,
    alerts: Alerts<'a>,
    /// Ends the monitor when it becomes true.
    interrupt: &'a AtomicBool,
    /// Draws the intervals, if `--tui` is given and a person watches.
    dashboard: Option<Dashboard>,
    printer: Printer,
    /// The number of the next interval.
    next_interval: u64,
}

impl MonitorOutput<'_> {
    /// Prints the event `start`, and tidies up the records of earlier monitors.
    fn begin(&mut self, plan: &Plan, session: Duration) -> Result<(), Failure> {
        let scenario = &plan.cells[0].scenario;
        let sizes = self.arenas.constant_sizes(scenario)?;
        let size = |index: usize| sizes.get(index).copied().flatten();
        let machine = provenance(None);
        let flows = scenario.flows.iter().enumerate();
        let start = MonitorStart {
            epoch: self.epoch,
            system: format!("{} {}", machine.kernel, machine.host),
            host: &self.args.to,
            flows: flows
                .map(|(index, flow)| MonitoredFlow {
                    name: flow.name.clone(),
                    transport: flow.transport_name.clone(),
                    message_bytes: size(index),
                })
                .collect(),
            interval_s: self.args.interval.as_secs_f64(),
            session_s: session.as_secs_f64(),
        };
        if let Some(recorder) = &self.recorder {
            self.terminal.note(&format!("records: {}", recorder.folder().display()));
            // The monitor measures even if the records of an earlier one cannot be cleaned up.
            if let Err(why) = recorder.clean_up() {
                self.terminal.error(&format!("{why}; it is measured all the same"));
            }
        }
        self.report(&events::start(&start), || format!("monitoring {}\n", start.host));
        self.state.totals().thresholds = self.alerts.states().to_vec();
        Ok(())
    }

    /// Takes one event of the monitor.
    fn take(&mut self, happening: MonitorEvent) {
        self.epoch = self.epoch.anchored();
        match happening {
            MonitorEvent::Measured(measured) => self.take_session(*measured),
            MonitorEvent::Down { from_ns, why } => {
                self.state.totals().go_down(from_ns);
                let at = self.clock(from_ns);
                self.report(&events::outage(self.epoch, from_ns, &why), || format!("{at}  OUTAGE: {why}\n"));
            }
            MonitorEvent::Up { from_ns, to_ns, attempts } => {
                self.state.totals().come_up(to_ns);
                let (at, seconds) = (self.clock(to_ns), (to_ns - from_ns) as f64 / 1e9);
                self.report(&events::recovered(self.epoch, from_ns, to_ns, attempts), || {
                    format!("{at}  measured again after {seconds:.1} s\n")
                });
            }
        }
    }

    /// Splits a session into intervals, keeps its record, and reports the intervals.
    fn take_session(&mut self, measured: MonitorSession) {
        if let Some(Err(why)) = self.recorder.as_mut().map(Recorder::rotate_if_full) {
            self.complain(&why);
        }
        let intervals = split(&measured, self.args.interval);
        let at = self.epoch.wall(measured.start_ns);
        if let (Some(recorder), Some(record)) = (&mut self.recorder, measured.record)
            && let Err(why) = recorder.add_session(record, at)
        {
            self.state.totals().unrecorded += 1;
            self.complain(&why);
        }
        for interval in intervals {
            self.state.totals().add(&interval);
            let line = events::interval(self.epoch, self.next_interval, &interval);
            let at = self.clock(interval.start_ns);
            self.report(&line, || lines_for_person(&at, &interval));
            for warning in &interval.warnings {
                self.terminal.detail(&format!("{at}  {warning}"));
            }
            self.next_interval += 1;
            self.judge(&interval);
            self.draw(&interval);
        }
    }

    /// Draws the interval, the thresholds and the sums so far.
    fn draw(&self, interval: &Interval) {
        let Some(dashboard) = &self.dashboard else { return };
        let totals = self.state.totals();
        let sum = totals.sum();
        let seconds = totals.measured.as_secs_f64();
        let last_line = format!(
            "{} of {} to {}, {:.0} s; {} sent, {:.2} % lost; {}",
            counted(totals.intervals, "interval"),
            self.args.interval,
            self.args.to,
            seconds,
            sum.sent,
            sum.lost_percent(),
            counted(totals.outages, "outage"),
        );
        let lines = self.alerts.states().iter().filter(|state| state.outcome.is_some());
        dashboard.show(Reading {
            runs: &[as_repetition(interval, 0)],
            place: "",
            lines: lines.map(ThresholdState::line).collect(),
            last_line,
            share: None,
        });
    }

    /// Judges the thresholds, reports what has changed, and ends the monitor if that is wanted.
    fn judge(&mut self, interval: &Interval) {
        let changes = self.alerts.add(interval);
        let end_ns = interval.start_ns.saturating_add_unsigned(interval.length.as_nanos());
        let at = self.clock(end_ns);
        for change in &changes {
            let line = events::threshold(self.epoch, end_ns, change);
            self.report(&line, || format!("{at}  {}\n", change.line()));
        }
        if !changes.is_empty() {
            self.state.totals().thresholds = self.alerts.states().to_vec();
        }
        if self.args.until_fails && self.alerts.states().iter().any(|state| state.has_failed) {
            self.interrupt.store(true, Ordering::Relaxed);
        }
    }

    /// Reports the end of the monitor, and completes the records. The failure is about what could not be
    /// written, or about thresholds.
    fn end(mut self) -> Result<(), Failure> {
        self.epoch = self.epoch.anchored();
        // What follows is printed on the first screen of the terminal.
        drop(self.dashboard.take());
        let end_ns = monotonic();
        let line = events::end(self.epoch, end_ns, &self.state.totals());
        let sum = self.state.totals().sum();
        self.report(&line, || {
            format!(
                "{} sent, {} received, {} lost ({:.3} %)\n",
                sum.sent,
                sum.received,
                sum.lost,
                sum.lost_percent()
            )
        });
        let kept = self.recorder.as_mut().map_or(Ok(()), Recorder::rotate);
        let threshold = self.alerts.failure();
        self.terminal.end_with([kept.err(), threshold, self.printer.end().err()])
    }

    /// Prints the event `line` or, without `--json-stream`, the `words` for a person. The event is recorded
    /// in both cases.
    fn report(&mut self, line: &[u8], words: impl FnOnce() -> String) {
        if let Some(Err(why)) = self.recorder.as_mut().map(|recorder| recorder.add_events(line)) {
            self.complain(&why);
        }
        if self.args.json_stream {
            self.printer.print(line.to_vec());
        } else if !self.terminal.is_quiet() && (self.dashboard.is_none() || !io::stdout().is_terminal()) {
            self.printer.print(words().into_bytes());
        }
    }

    /// Reports that records could not be written. The monitor goes on, and tries again.
    fn complain(&mut self, why: &Failure) {
        if let Some(dashboard) = &self.dashboard {
            dashboard.hide();
        }
        self.terminal.error(&format!("{why}; the monitor continues"));
        if self.args.json_stream {
            self.printer.print(events::error(&why.to_string()));
        }
    }

    /// Writes the time of day at a time of CLOCK_MONOTONIC.
    fn clock(&self, monotonic_ns: i64) -> String {
        self.epoch.wall(monotonic_ns).to_rfc3339_opts(SecondsFormat::Secs, true)
    }
}

/// Writes a line for each flow of an interval, for a person.
fn lines_for_person(at: &str, interval: &Interval) -> String {
    let mut lines = String::new();
    for flow in &interval.flows {
        let counts = &flow.counts;
        let delay = |name: &str, delays: &Option<DelayMs>| match delays {
            Some(DelayMs { p50, p95, max, .. }) => {
                format!(", {name} {p50:.3} ms (p95 {p95:.3}, max {max:.3})")
            }
            None => String::new(),
        };
        let figures = &flow.figures;
        let mos = figures.call.as_deref().map_or(String::new(), score);
        lines.push_str(&format!(
            "{at}  {}: {} sent, {} lost ({:.2} %){}{}{mos}\n",
            flow.name,
            counts.sent,
            counts.lost,
            counts.lost_percent(),
            delay("round trip", &figures.round_trip_delay_ms),
            delay("one way", &figures.one_way_delay_ms),
        ));
    }
    if !interval.valid && !interval.flows.is_empty() {
        lines.push_str(&format!("{at}  not valid: a host disturbed it; --verbose says how\n"));
    }
    if let Some(why) = &interval.cut {
        lines.push_str(&format!("{at}  cut short: {why}\n"));
    }
    lines
}

/// Writes the score of a call. If another receiver changes whether the call is usable, both scores
/// are named.
fn score(call: &CallSummary) -> String {
    let mos = match call.mos {
        Some(mos) => format!("MOS {mos:.2}"),
        None => {
            let beyond: Vec<String> = call.beyond_model().map(ToString::to_string).collect();
            format!("no MOS, not usable: {}", beyond.join(", "))
        }
    };
    match &call.receiver_matters {
        None => format!(", {mos}"),
        Some(other) => format!(", {mos} ({} playout; {}: {:.2})", call.playout, other.playout, other.mos),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_can_read_the_textfile() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("talkpath.prom");
        // A file of an earlier version, which only its user could read.
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
        write_for_everybody(&path, b"new").unwrap();
        rustix::process::umask(before);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
    }
}

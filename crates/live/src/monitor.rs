//! Measures between one pair of hosts without end. Sessions follow each other without a gap.
//!
//! ```text
//!  session 0   ├── its messages are due ──┤ drain, report
//!  session 1                 prepare, wait ├── its messages are due ──┤ drain, report
//!  session 2                                             prepare, wait ├── its messages are due ── ...
//! ```
//!
//! A session ends and the next one begins at the same nanosecond of CLOCK_MONOTONIC. So each message is due
//! in exactly one session. For a short time both sessions exist: the earlier one waits for its last
//! messages, which are still in the network.
//!
//! Why not one session without an end? The server would have to send its rows during the run, and the two
//! clocks would be compared only once in weeks. With sessions the server needs nothing new. Its limits of
//! rows, time and sessions hold. Both hosts keep the rows of at most two sessions. The clocks are compared
//! for each session. An outage is the time in which no session could begin.
//!
//! Left out: connections that outlive a session. Over TCP and DCCP every session opens its own connections.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, Scope, ScopedJoinHandle, scope, sleep};
use std::time::Duration as StdDuration;

use talkpath_arena::{ArenaError, Happening, MonitorSession, RunPlan};
use talkpath_kernel::clock::monotonic;
use talkpath_kernel::random::random;
use talkpath_measure::RunRecord;
use talkpath_measure::series::SeriesDetail;
use talkpath_model::Scenario;
use talkpath_units::{Duration, Instant};

use crate::client::{BegunRun, LiveArena, LiveOptions, PreparedRun};

/// A measurement without end.
pub struct Monitor<'a> {
    /// The host that runs a [`crate::Server`], as [`LiveArena::connect`] takes it. Its name is resolved anew
    /// after each outage.
    pub host: &'a str,
    /// How to reach the server.
    pub options: LiveOptions,
    /// The scenario that each session measures. A session is as long as the scenario.
    pub scenario: &'a Scenario,
    /// How sessions sample state over time.
    pub series: Option<SeriesDetail>,
    /// Becomes true when the user wants to stop.
    pub interrupt: &'a AtomicBool,
    /// The monitor writes the time at which the running session stops sending, ns of CLOCK_MONOTONIC. The
    /// value is 0 if no session runs.
    pub measured_until_ns: &'a AtomicI64,
}

/// A message from the scheduler to the thread that reports, in the order of the sessions.
enum Entry<'scope> {
    /// A session that will begin, or has begun.
    Session {
        /// CLOCK_MONOTONIC when the session begins.
        start_ns: i64,
        thread: ScopedJoinHandle<'scope, MonitorSession>,
    },
    /// No session runs, because the next one could not begin for this reason.
    Failed(String),
}

/// The number of consecutive failures. A failure is a session that could not begin, or that was cut short at
/// once. The number sets the back-off.
#[derive(Default)]
struct Failures(AtomicU32);

impl Failures {
    /// Counts a failure. Returns how long to wait before the next attempt, in ns.
    fn count(&self) -> i64 {
        back_off_ns(self.0.fetch_add(1, Ordering::Relaxed))
    }

    /// Forgets the failures, because a session has lasted.
    fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// The progress of a session. The session's thread writes it, and the scheduler reads it.
#[derive(Default)]
struct Progress {
    /// The time since the session began, ns.
    now_ns: AtomicU64,
    is_over: AtomicBool,
    /// The failures before the session, which are forgotten once the session has lasted.
    failures: Arc<Failures>,
}

impl Progress {
    /// Notes that a session of `length` has come to `now_ns` since its beginning.
    fn note(&self, now_ns: u64, length: Duration) {
        self.now_ns.store(now_ns, Ordering::Relaxed);
        if now_ns >= lasting_ns(length) {
            self.failures.forget();
        }
    }
}

/// Returns the time after which a session of `length` counts as one that has lasted, ns.
fn lasting_ns(length: Duration) -> u64 {
    length.as_nanos().min(LASTING_NS)
}

/// The session that began last.
struct Current {
    end_ns: i64,
    length: Duration,
    progress: Arc<Progress>,
}

impl Current {
    /// Whether the session ended before its planned end.
    fn ended_early(&self) -> bool {
        self.progress.is_over.load(Ordering::Acquire)
            && self.progress.now_ns.load(Ordering::Relaxed) < self.length.as_nanos()
    }

    /// Whether the session ended so early that it counts as a failure.
    fn counts_as_failure(&self) -> bool {
        self.ended_early() && self.progress.now_ns.load(Ordering::Relaxed) < lasting_ns(self.length)
    }

    /// Whether the session still sends.
    fn is_running(&self) -> bool {
        !self.ended_early() && monotonic() < self.end_ns
    }
}

impl Monitor<'_> {
    /// Measures until the user stops the monitor. `handle` is called in this thread, session after session.
    ///
    /// # Errors
    /// Returns [`ArenaError::Unavailable`] if this host cannot run the first session. Returns
    /// [`ArenaError::Unsupported`] or [`ArenaError::Unwelcome`] if the server or this host refuses and no
    /// session has begun before. All later errors are outages. A server that does not answer is an outage,
    /// too.
    pub fn run(&self, handle: &mut dyn FnMut(Happening)) -> Result<(), ArenaError> {
        let mut timeline = Timeline { end_ns: monotonic(), has_begun: false, down: None, cut: None };
        scope(|scope| {
            let (entries, receiver) = channel();
            let scheduling = move || self.schedule(scope, &entries);
            let scheduler = Builder::new().spawn_scoped(scope, scheduling).map_err(ArenaError::no_thread)?;
            for entry in receiver {
                match entry {
                    Entry::Failed(why) => timeline.take_failure(why, handle),
                    Entry::Session { start_ns, thread } => {
                        // A reported outage ends when the next session begins. Without this wait the end
                        // would be reported only when that session is over.
                        if timeline.down.is_some() {
                            self.wait_until(start_ns, || thread.is_finished());
                            if monotonic() >= start_ns {
                                timeline.take_start(start_ns, handle);
                            }
                        }
                        // A session that the user stopped before it began is neither measured nor an outage.
                        let is_reported = |measured: &MonitorSession| {
                            measured.length != Duration::ZERO || !self.interrupt.load(Ordering::Relaxed)
                        };
                        if let Some(measured) = thread.join().ok().filter(is_reported) {
                            timeline.take_session(measured, handle);
                        }
                    }
                }
            }
            scheduler.join().unwrap_or_else(|_| Err(ArenaError::far_end("the scheduler failed".to_owned())))
        })
    }

    /// Begins session after session. Each is prepared while the one before it runs.
    fn schedule<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        entries: &Sender<Entry<'scope>>,
    ) -> Result<(), ArenaError> {
        let (mut arena, mut current) = (None, None::<Current>);
        let (mut number, mut is_first) = (0, true);
        let failures = Arc::<Failures>::default();
        while !self.interrupt.load(Ordering::Relaxed) {
            if current.take_if(|current| current.counts_as_failure()).is_some() {
                self.measured_until_ns.store(0, Ordering::Relaxed);
                self.wait_until(monotonic() + failures.count(), || false);
                continue;
            }
            // The next session begins when the current session ends. If the current session was cut short,
            // the next session begins as soon as possible.
            let next_start_ns =
                current.as_ref().filter(|current| !current.ended_early()).map(|current| current.end_ns);
            let prepared = self.prepare(&mut arena, number);
            let begun = prepared.and_then(|prepared| prepared.begin(next_start_ns));
            match begun.and_then(|begun| self.start(begun, number, scope, &failures)) {
                Ok((session, begun)) => {
                    let end_ns = begun.end_ns;
                    self.measured_until_ns.store(end_ns, Ordering::Relaxed);
                    if entries.send(session).is_err() {
                        return Ok(());
                    }
                    (number, is_first) = (number + 1, false);
                    let begun = current.insert(begun);
                    self.wait_until(end_ns - PREPARE_AHEAD_NS, || begun.ended_early());
                    if begun.ended_early() {
                        self.measured_until_ns.store(0, Ordering::Relaxed);
                    }
                }
                Err(ArenaError::Interrupted { .. }) => return Ok(()),
                Err(error @ ArenaError::Unavailable { .. }) if is_first => return Err(error),
                // The server has never accepted this key or this plan. If it accepted them before, it may do
                // so again, and the monitor keeps trying.
                Err(error @ (ArenaError::Unwelcome(_) | ArenaError::Unsupported(_))) if number == 0 => {
                    return Err(error);
                }
                Err(error) => {
                    (arena, is_first) = (None, false);
                    if !current.as_ref().is_some_and(Current::is_running) {
                        self.measured_until_ns.store(0, Ordering::Relaxed);
                        if entries.send(Entry::Failed(error.to_string())).is_err() {
                            return Ok(());
                        }
                    }
                    self.wait_until(monotonic() + failures.count(), || false);
                }
            }
        }
        Ok(())
    }

    fn prepare<'s>(
        &'s self,
        arena: &mut Option<LiveArena>,
        number: u64,
    ) -> Result<PreparedRun<'s>, ArenaError> {
        let arena = match arena {
            Some(arena) => arena,
            None => arena.insert(LiveArena::connect(self.host, self.options.clone())?),
        };
        let plan = RunPlan {
            cell: 0,
            repetition: number,
            seed: self.scenario.seed.repetition(number),
            series: self.series,
            rows: true,
            interrupt: self.interrupt,
            progress: &|_| {},
        };
        arena.prepare(self.scenario, plan)
    }

    /// Starts the thread of session `number`.
    fn start<'scope>(
        &'scope self,
        begun: BegunRun<'scope>,
        number: u64,
        scope: &'scope Scope<'scope, '_>,
        failures: &Arc<Failures>,
    ) -> Result<(Entry<'scope>, Current), ArenaError> {
        let (start_ns, length) = (begun.start_ns(), self.scenario.duration);
        let progress = Arc::new(Progress { failures: Arc::clone(failures), ..Progress::default() });
        let shared = Arc::clone(&progress);
        let session = move || {
            catch_panic(number, start_ns, length, &shared, || measure(begun, number, length, &shared))
        };
        let thread = Builder::new().spawn_scoped(scope, session);
        let thread = thread
            .map_err(|error| ArenaError::far_end(format!("this host gives a session no thread: {error}")))?;
        let current = Current { end_ns: start_ns.saturating_add(nanoseconds(length)), length, progress };
        Ok((Entry::Session { start_ns, thread }, current))
    }

    /// Waits until CLOCK_MONOTONIC shows `until_ns`. The wait ends earlier if `is_over` returns true, or if
    /// the user stops the monitor.
    fn wait_until(&self, until_ns: i64, is_over: impl Fn() -> bool) {
        while !self.interrupt.load(Ordering::Relaxed) && !is_over() {
            let left = u64::try_from(until_ns - monotonic()).unwrap_or(0);
            if left == 0 {
                return;
            }
            sleep(StdDuration::from_nanos(left).min(SLICE));
        }
    }
}

/// Runs `session`. If it panics, returns a session without a record that was cut short at that moment. A
/// report then says that the time before the panic was not measured.
fn catch_panic(
    number: u64,
    start_ns: i64,
    length: Duration,
    progress: &Progress,
    session: impl FnOnce() -> MonitorSession,
) -> MonitorSession {
    catch_unwind(AssertUnwindSafe(session)).unwrap_or_else(|_| {
        let length = length.min(measured_length(progress, None, false));
        progress.is_over.store(true, Ordering::Release);
        let cut = Some("a fault of talkpath ended the session; its message is on standard error".to_owned());
        MonitorSession { number, start_ns, length, record: None, cut }
    })
}

/// Runs a session until its end, or until an error ends it.
fn measure(begun: BegunRun<'_>, number: u64, length: Duration, progress: &Progress) -> MonitorSession {
    let start_ns = begun.start_ns();
    let note_time = |now: Instant| progress.note(now.as_nanos(), length);
    let ended = begun.watched_by(&note_time).run();
    let is_interrupted = matches!(ended, Err(ArenaError::Interrupted { .. }));
    let (record, cut) = match ended {
        Ok(record) => (Some(record), None),
        Err(ArenaError::FarEnd { what, partial }) => (partial.map(|record| *record), Some(what)),
        Err(ArenaError::Interrupted { partial }) => {
            (partial.map(|record| *record), Some("interrupted".to_owned()))
        }
        Err(error) => (None, Some(error.to_string())),
    };
    let measured = match &cut {
        None => length,
        Some(_) => length.min(measured_length(progress, record.as_ref(), is_interrupted)),
    };
    progress.note(measured.as_nanos(), length);
    progress.is_over.store(true, Ordering::Release);
    MonitorSession { number, start_ns, length: measured, record, cut }
}

/// Returns how much of a session was measured before it was cut short. All messages in the session's record
/// are due before that time. The time is zero if the user stopped the session before it began. The record may
/// then hold a message that is due at the beginning, but that message is not lost.
fn measured_length(progress: &Progress, record: Option<&RunRecord>, is_interrupted: bool) -> Duration {
    let now_ns = progress.now_ns.load(Ordering::Relaxed);
    if is_interrupted && now_ns == 0 {
        return Duration::ZERO;
    }
    let messages = record.iter().flat_map(|record| &record.flows).flat_map(|flow| &flow.forward.messages);
    let last_due = messages.map(|message| message.due.as_nanos() + 1).max().unwrap_or(0);
    Duration::from_nanos(now_ns.max(last_due))
}

/// The timeline of the monitor. It finds the times without a session between the sessions.
struct Timeline {
    /// CLOCK_MONOTONIC up to which everything has been reported.
    end_ns: i64,
    has_begun: bool,
    /// The number of sessions that could not begin during the outage; `None` if no outage is reported.
    down: Option<u64>,
    /// The reason why the last session was cut short, if it was.
    cut: Option<String>,
}

impl Timeline {
    fn take_failure(&mut self, why: String, handle: &mut dyn FnMut(Happening)) {
        if self.down.is_none() {
            handle(Happening::Down { from_ns: self.end_ns, why });
        }
        *self.down.get_or_insert(0) += 1;
    }

    /// Reports the end of an outage, because a session has begun.
    fn take_start(&mut self, start_ns: i64, handle: &mut dyn FnMut(Happening)) {
        if let Some(attempts) = self.down.take() {
            let from_ns = self.end_ns;
            self.end_ns = start_ns.max(from_ns);
            handle(Happening::Up { from_ns, to_ns: self.end_ns, attempts });
        }
    }

    fn take_session(&mut self, measured: MonitorSession, handle: &mut dyn FnMut(Happening)) {
        let (start_ns, from_ns) = (measured.start_ns, self.end_ns);
        if self.has_begun && start_ns > from_ns && self.down.is_none() {
            let why = self.cut.take().unwrap_or_else(|| "the next session was not ready in time".to_owned());
            handle(Happening::Down { from_ns, why });
            self.down = Some(0);
        }
        self.take_start(start_ns, handle);
        self.has_begun = true;
        self.end_ns = self.end_ns.max(start_ns.saturating_add(nanoseconds(measured.length)));
        self.cut.clone_from(&measured.cut);
        handle(Happening::Measured(Box::new(measured)));
    }
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// Returns how long to wait before the next attempt after `attempts` earlier failures in a row, ns. The wait
/// doubles with each failure, up to a minute. A quarter of the wait is drawn at random, so that the clients
/// of one server do not all come back at once.
fn back_off_ns(attempts: u32) -> i64 {
    let longest = FIRST_BACK_OFF_NS.saturating_mul(1 << attempts.min(16)).min(LAST_BACK_OFF_NS);
    // Without a random number the wait is the longest one.
    let [drawn] = random::<1>().unwrap_or([255]);
    longest - longest / 4 * i64::from(255 - drawn) / 255
}

/// The time from the preparation of a session to its beginning (chosen: nine round trips over a satellite
/// take 5.4 s, and both hosts must agree on the beginning 1.7 s ahead).
const PREPARE_AHEAD_NS: i64 = 8_000_000_000;
/// A session that lasted this long does not count as a failure, whatever ended it (chosen: half of the
/// shortest usual session, which has a single interval of 10 s).
const LASTING_NS: u64 = 5_000_000_000;
/// The shortest wait between attempts (chosen: a restarted server is found soon).
const FIRST_BACK_OFF_NS: i64 = 1_000_000_000;
/// The longest wait between attempts (chosen: a server that is away for long is asked once a minute).
const LAST_BACK_OFF_NS: i64 = 60_000_000_000;
/// How often a wait checks whether it has to end.
const SLICE: StdDuration = StdDuration::from_millis(50);

#[cfg(test)]
mod tests {
    use talkpath_measure::{Fate, FlowInfo, FlowRecord, MessageRecord};
    use talkpath_units::Bytes;

    use super::*;

    fn reported(steps: impl IntoIterator<Item = Result<MonitorSession, &'static str>>) -> Vec<String> {
        let mut timeline = Timeline { end_ns: 1_000, has_begun: false, down: None, cut: None };
        let mut lines = Vec::new();
        let mut handle = |happening| {
            lines.push(match happening {
                Happening::Measured(session) => format!("{} from {}", session.number, session.start_ns),
                Happening::Down { from_ns, why } => format!("down {from_ns} {why}"),
                Happening::Up { from_ns, to_ns, attempts } => format!("up {from_ns} {to_ns} {attempts}"),
            });
        };
        for step in steps {
            match step {
                Ok(measured) => timeline.take_session(measured, &mut handle),
                Err(why) => timeline.take_failure(why.to_owned(), &mut handle),
            }
        }
        lines
    }

    fn session(number: u64, start_ns: i64, length_ns: u64, cut: Option<&str>) -> MonitorSession {
        let length = Duration::from_nanos(length_ns);
        MonitorSession { number, start_ns, length, record: None, cut: cut.map(str::to_owned) }
    }

    #[test]
    fn a_session_that_panics_is_one_that_was_cut_short_there() {
        let progress = Arc::<Progress>::default();
        let current =
            Current { end_ns: 1_600, length: Duration::from_nanos(100), progress: Arc::clone(&progress) };
        let measured = catch_panic(3, 1_500, current.length, &progress, || {
            progress.now_ns.store(40, Ordering::Relaxed);
            panic!("as a fault would");
        });
        assert!(current.counts_as_failure(), "the next one waits");
        assert_eq!((measured.number, measured.length), (3, Duration::from_nanos(40)));
        assert!(measured.record.is_none() && measured.cut.is_some());
    }

    /// The record of a session whose one message, due at its beginning, was sent at a time that this host
    /// does not know: its sender's log did not come, or it was not sent.
    fn record_of(received: Option<Instant>) -> RunRecord {
        let row = MessageRecord {
            seq: 0,
            size: Bytes::new(160),
            due: Instant::ZERO,
            sent: None,
            wire: None,
            received,
            fate: if received.is_some() { Fate::Delivered } else { Fate::Unfinished },
            drop_cause: None,
            copies: u32::from(received.is_some()),
            transmissions: 0,
        };
        let mut flow = FlowRecord::new(FlowInfo::on_a_clock("call"));
        flow.forward.messages.push(row);
        RunRecord { flows: vec![flow], ..RunRecord::default() }
    }

    #[test]
    fn a_session_that_the_user_stops_counts_from_its_beginning_to_the_stop_whatever_was_sent() {
        let progress = |now_ns| Progress { now_ns: AtomicU64::new(now_ns), ..Progress::default() };
        let received = record_of(Some(Instant::from_millis(3)));
        let not_sent = record_of(None);
        for record in [Some(&received), Some(&not_sent), None] {
            let length = |now_ns| measured_length(&progress(now_ns), record, true);
            assert_eq!(length(8_000_000_000), Duration::from_secs(8), "{record:?}");
            assert_eq!(length(0), Duration::ZERO, "it had not begun: {record:?}");
        }
    }

    #[test]
    fn sessions_that_touch_have_no_outage_between_them() {
        let lines = reported([Ok(session(0, 1_500, 100, None)), Ok(session(1, 1_600, 100, None))]);
        assert_eq!(lines, ["0 from 1500", "1 from 1600"]);
    }

    #[test]
    fn every_moment_without_a_session_is_in_an_outage_with_its_cause() {
        let lines = reported([
            Err("refused"),
            Err("refused"),
            Ok(session(0, 1_500, 40, Some("gone"))),
            Ok(session(1, 1_600, 100, None)),
            Ok(session(2, 1_701, 100, None)),
            Err("silent"),
        ]);
        assert_eq!(
            lines,
            [
                "down 1000 refused",
                "up 1000 1500 2",
                "0 from 1500",
                "down 1540 gone",
                "up 1540 1600 0",
                "1 from 1600",
                "down 1700 the next session was not ready in time",
                "up 1700 1701 0",
                "2 from 1701",
                "down 1801 silent",
            ]
        );
    }

    #[test]
    fn sessions_that_are_cut_at_once_become_rarer_until_one_lasts() {
        let failures = Arc::<Failures>::default();
        let cut = |length_ms: u64, at_ms: u64| {
            let (length, at) = (Duration::from_millis(length_ms), Duration::from_millis(at_ms));
            let progress = Arc::new(Progress { failures: Arc::clone(&failures), ..Progress::default() });
            progress.note(at.as_nanos(), length);
            progress.is_over.store(true, Ordering::Release);
            let current = Current { end_ns: 0, length, progress };
            current.counts_as_failure().then(|| failures.count() / 500_000_000)
        };
        // From three quarters of 1, 2 and 4 s, in halves of a second.
        for expected in [1..=2, 3..=4, 6..=8] {
            assert!(cut(10_000, 20).is_some_and(|wait| expected.contains(&wait)));
        }
        assert_eq!((cut(10_000, 6_000), cut(1_000, 1_000)), (None, None));
        assert!(cut(1_000, 900).is_some_and(|wait| (1..=2).contains(&wait)));
    }

    #[test]
    fn attempts_become_rarer_up_to_a_minute() {
        for (attempts, longest) in [(0, 1), (1, 2), (5, 32), (6, 60), (u32::MAX, 60)] {
            let longest = longest * 1_000_000_000;
            let wait = back_off_ns(attempts);
            assert!((longest / 4 * 3..=longest).contains(&wait), "{attempts}: {wait}");
        }
    }
}

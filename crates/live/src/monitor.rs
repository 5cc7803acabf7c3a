//! Monitors one pair of hosts for ever: sessions follow each other without a gap.
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
//! Why not one session without an end? The server would have to hand over rows during the run, and the two
//! clocks would be compared once for weeks. With sessions the server needs nothing new: its limits of rows,
//! time and sessions hold, both hosts keep the rows of at most two sessions, the clocks are compared for each
//! session, and an outage is the time in which no session could begin.
//!
//! Left out: connections that outlive a session. Over TCP and DCCP every session opens its own.

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

/// What is measured without end.
pub struct Monitor<'a> {
    /// The host that runs a [`crate::Server`], as [`LiveArena::connect`] takes it. Its name is resolved anew
    /// after each outage.
    pub host: &'a str,
    /// How to reach it.
    pub options: LiveOptions,
    /// What one session measures; its duration is the session's.
    pub scenario: &'a Scenario,
    /// How sessions sample state over time.
    pub series: Option<SeriesDetail>,
    /// Becomes true when the user wants to stop.
    pub interrupt: &'a AtomicBool,
    /// The monitor writes here until when the running session sends: ns of CLOCK_MONOTONIC, 0 if none runs.
    pub measured_until_ns: &'a AtomicI64,
}

/// What the scheduler hands on, in order.
enum Entry<'scope> {
    Session {
        /// CLOCK_MONOTONIC of its beginning.
        start_ns: i64,
        thread: ScopedJoinHandle<'scope, MonitorSession>,
    },
    /// A session could not begin, and no other is running; why.
    Failed(String),
}

/// Consecutive failures: sessions that could not begin, or that were cut at once. It sets the back-off.
#[derive(Default)]
struct Attempts(AtomicU32);

impl Attempts {
    /// Counts a failure. Returns how long to wait before the next attempt, in ns.
    fn fail(&self) -> i64 {
        back_off_ns(self.0.fetch_add(1, Ordering::Relaxed))
    }

    /// Forgets the failures: a session has lasted.
    fn end(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// How far a session has come. Its thread writes it, the scheduler reads it.
#[derive(Default)]
struct Reach {
    /// ns into the session.
    now_ns: AtomicU64,
    is_over: AtomicBool,
    /// The failures before it, which are forgotten once it has lasted.
    attempts: Arc<Attempts>,
}

impl Reach {
    /// Notes that the session, which has this `length`, is at `now_ns`.
    fn note_progress(&self, now_ns: u64, length: Duration) {
        self.now_ns.store(now_ns, Ordering::Relaxed);
        if now_ns >= lasting_ns(length) {
            self.attempts.end();
        }
    }
}

/// How far a session of `length` must come to count as one that has lasted, in ns.
fn lasting_ns(length: Duration) -> u64 {
    length.as_nanos().min(LASTING_NS)
}

/// The session that began last.
struct Current {
    end_ns: i64,
    length: Duration,
    reach: Arc<Reach>,
}

impl Current {
    /// Whether the session ended before its time.
    fn ended_early(&self) -> bool {
        self.reach.is_over.load(Ordering::Acquire)
            && self.reach.now_ns.load(Ordering::Relaxed) < self.length.as_nanos()
    }

    /// Whether it ended so early that it counts as a failure.
    fn counts_as_failure(&self) -> bool {
        self.ended_early() && self.reach.now_ns.load(Ordering::Relaxed) < lasting_ns(self.length)
    }

    /// Whether the session still sends.
    fn is_running(&self) -> bool {
        !self.ended_early() && monotonic() < self.end_ns
    }
}

impl Monitor<'_> {
    /// Measures until the user stops it; `handle` is called in this thread, session after session.
    ///
    /// # Errors
    /// [`ArenaError::Unavailable`] if this host cannot run the first session; [`ArenaError::Unsupported`] and
    /// [`ArenaError::Unwelcome`] if no session has begun yet. All later errors are outages, and so is a far
    /// end that does not answer.
    pub fn run(&self, handle: &mut dyn FnMut(Happening)) -> Result<(), ArenaError> {
        let mut timeline = Timeline { end_ns: monotonic(), has_begun: false, down: None, cut: None };
        scope(|scope| {
            let (entries, coming) = channel();
            let scheduling = move || self.schedule(scope, &entries);
            let scheduler = Builder::new().spawn_scoped(scope, scheduling).map_err(ArenaError::no_thread)?;
            for entry in coming {
                match entry {
                    Entry::Failed(why) => timeline.take_failure(why, handle),
                    Entry::Session { start_ns, thread } => {
                        // An outage that was reported ends when the next session begins, not when that
                        // session is over.
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
        let attempts = Arc::<Attempts>::default();
        while !self.interrupt.load(Ordering::Relaxed) {
            if current.take_if(|current| current.counts_as_failure()).is_some() {
                self.measured_until_ns.store(0, Ordering::Relaxed);
                self.wait_until(monotonic() + attempts.fail(), || false);
                continue;
            }
            // The next session begins when the present one ends, or as soon as it can if that was cut short.
            let next =
                current.as_ref().filter(|current| !current.ended_early()).map(|current| current.end_ns);
            let prepared = self.prepare(&mut arena, number);
            let begun = prepared.and_then(|prepared| prepared.begin(next));
            match begun.and_then(|begun| self.start(begun, number, scope, &attempts)) {
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
                    self.wait_until(monotonic() + attempts.fail(), || false);
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
        attempts: &Arc<Attempts>,
    ) -> Result<(Entry<'scope>, Current), ArenaError> {
        let (start_ns, length) = (begun.start_ns(), self.scenario.duration);
        let reach = Arc::new(Reach { attempts: Arc::clone(attempts), ..Reach::default() });
        let theirs = Arc::clone(&reach);
        let session = move || {
            or_cut_by_a_panic(number, start_ns, length, &theirs, || measure(begun, number, length, &theirs))
        };
        let thread = Builder::new().spawn_scoped(scope, session);
        let thread = thread
            .map_err(|error| ArenaError::far_end(format!("this host gives a session no thread: {error}")))?;
        let current = Current { end_ns: start_ns.saturating_add(nanoseconds(length)), length, reach };
        Ok((Entry::Session { start_ns, thread }, current))
    }

    /// Waits until `until_ns` of CLOCK_MONOTONIC, until `is_over`, or until the user stops it.
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

/// Runs `session`. If it panics, the result is a session that was cut short at that moment, without a record:
/// the time before it was not measured, and a report must say so.
fn or_cut_by_a_panic(
    number: u64,
    start_ns: i64,
    length: Duration,
    reach: &Reach,
    session: impl FnOnce() -> MonitorSession,
) -> MonitorSession {
    catch_unwind(AssertUnwindSafe(session)).unwrap_or_else(|_| {
        let length = length.min(reached(reach, None, false));
        reach.is_over.store(true, Ordering::Release);
        let cut = Some("a fault of talkpath ended the session; its message is on standard error".to_owned());
        MonitorSession { number, start_ns, length, record: None, cut }
    })
}

/// Runs a session to its end, or to what ended it.
fn measure(begun: BegunRun<'_>, number: u64, length: Duration, reach: &Reach) -> MonitorSession {
    let start_ns = begun.start_ns();
    let progress = |now: Instant| reach.note_progress(now.as_nanos(), length);
    let ended = begun.watched_by(&progress).run();
    let is_interrupted = matches!(ended, Err(ArenaError::Interrupted { .. }));
    let (record, cut) = match ended {
        Ok(record) => (Some(record), None),
        Err(ArenaError::FarEnd { what, partial }) => (partial.map(|record| *record), Some(what)),
        Err(ArenaError::Interrupted { partial }) => {
            (partial.map(|record| *record), Some("interrupted".to_owned()))
        }
        Err(error) => (None, Some(error.to_string())),
    };
    let reached = match &cut {
        None => length,
        Some(_) => length.min(reached(reach, record.as_ref(), is_interrupted)),
    };
    reach.note_progress(reached.as_nanos(), length);
    reach.is_over.store(true, Ordering::Release);
    MonitorSession { number, start_ns, length: reached, record, cut }
}

/// How much of a session was measured that was cut short: all messages in its record are due before that. It
/// is zero if the user stopped the session before it began. Its record may hold a message that is due at the
/// beginning, but that message is not lost.
fn reached(reach: &Reach, record: Option<&RunRecord>, is_interrupted: bool) -> Duration {
    let now_ns = reach.now_ns.load(Ordering::Relaxed);
    if is_interrupted && now_ns == 0 {
        return Duration::ZERO;
    }
    let messages = record.iter().flat_map(|record| &record.flows).flat_map(|flow| &flow.forward.messages);
    let last_due = messages.map(|message| message.due.as_nanos() + 1).max().unwrap_or(0);
    Duration::from_nanos(now_ns.max(last_due))
}

/// Puts the times without a session between the sessions.
struct Timeline {
    /// CLOCK_MONOTONIC until which everything is reported.
    end_ns: i64,
    has_begun: bool,
    /// How many sessions could not begin, if one is reported as missing.
    down: Option<u64>,
    /// Why the last session was cut short.
    cut: Option<String>,
}

impl Timeline {
    fn take_failure(&mut self, why: String, handle: &mut dyn FnMut(Happening)) {
        if self.down.is_none() {
            handle(Happening::Down { from_ns: self.end_ns, why });
        }
        *self.down.get_or_insert(0) += 1;
    }

    /// A session has begun: an outage is over.
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

/// How long to wait after failure number `attempts`, from 0: twice as long each time, up to a minute. A
/// quarter of the wait is drawn at random, so that the clients of one server do not all come back at once.
fn back_off_ns(attempts: u32) -> i64 {
    let longest = FIRST_BACK_OFF_NS.saturating_mul(1 << attempts.min(16)).min(LAST_BACK_OFF_NS);
    // Without a random number all wait for the longest.
    let [drawn] = random::<1>().unwrap_or([255]);
    longest - longest / 4 * i64::from(255 - drawn) / 255
}

/// How long before its beginning a session is prepared (chosen: nine round trips over a satellite take 5.4 s,
/// and both hosts must agree on the beginning 1.7 s ahead).
const PREPARE_AHEAD_NS: i64 = 8_000_000_000;
/// A session that lasted so long is no failure, whatever ends it (chosen: half of the shortest usual session,
/// which has a single interval of 10 s).
const LASTING_NS: u64 = 5_000_000_000;
/// The shortest and the longest wait between attempts (chosen: a restarted server is found soon, and one that
/// is away for long is asked once a minute).
const FIRST_BACK_OFF_NS: i64 = 1_000_000_000;
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
                Happening::Measured(it) => format!("{} from {}", it.number, it.start_ns),
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
        let reach = Arc::<Reach>::default();
        let current = Current { end_ns: 1_600, length: Duration::from_nanos(100), reach: Arc::clone(&reach) };
        let measured = or_cut_by_a_panic(3, 1_500, current.length, &reach, || {
            reach.now_ns.store(40, Ordering::Relaxed);
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
        let reach = |now_ns| Reach { now_ns: AtomicU64::new(now_ns), ..Reach::default() };
        let received = record_of(Some(Instant::from_millis(3)));
        let not_sent = record_of(None);
        for record in [Some(&received), Some(&not_sent), None] {
            let length = |now_ns| reached(&reach(now_ns), record, true);
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
        let attempts = Arc::<Attempts>::default();
        let cut = |length_ms: u64, at_ms: u64| {
            let (length, at) = (Duration::from_millis(length_ms), Duration::from_millis(at_ms));
            let reach = Arc::new(Reach { attempts: Arc::clone(&attempts), ..Reach::default() });
            reach.note_progress(at.as_nanos(), length);
            reach.is_over.store(true, Ordering::Release);
            let current = Current { end_ns: 0, length, reach };
            current.counts_as_failure().then(|| attempts.fail() / 500_000_000)
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

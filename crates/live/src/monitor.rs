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
//! We chose sessions instead of one run without an end, because the server then needs nothing new. In one
//! run, the server would have to send its rows during the run, and the two clocks would be compared only
//! once in weeks. With sessions the server's limits of rows, time and sessions hold, both hosts keep the rows
//! of at most two sessions, and the clocks are compared for each session.
//!
//! - *outage*: a time in which no session could begin.
//! - *failure*: a session that could not begin, or that was cut short at once. After several failures in a
//!   row the monitor waits longer before it tries again.
//!
//! `monitor/session.rs` runs one session. `monitor/timeline.rs` finds the outages between the sessions.
//!
//! Left out: connections that outlive a session. Over TCP and DCCP every session opens its own connections.

mod session;
mod timeline;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, Scope, ScopedJoinHandle, scope, sleep};
use std::time::Duration as StdDuration;

use talkpath_arena::{ArenaError, Happening, MonitorSession, RunPlan};
use talkpath_kernel::clock::monotonic;
use talkpath_measure::series::SeriesDetail;
use talkpath_model::Scenario;
use talkpath_units::Duration;

use self::session::{Failures, Progress, RunningSession, run_session};
use self::timeline::Timeline;
use crate::client::{BegunRun, LiveArena, LiveOptions, PreparedRun};

/// The time from the preparation of a session to its beginning, ns. We chose 8 s: nine round trips over a
/// satellite take 5.4 s, and both hosts must agree on the beginning 1.7 s ahead.
const PREPARE_AHEAD_NS: i64 = 8_000_000_000;
/// The interval at which a wait checks whether it has to end.
const WAIT_SLICE: StdDuration = StdDuration::from_millis(50);

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
enum SchedulerMessage<'scope> {
    /// A session will begin, or has begun.
    Session {
        /// CLOCK_MONOTONIC when the session begins.
        start_ns: i64,
        thread: ScopedJoinHandle<'scope, MonitorSession>,
    },
    /// The next session could not begin for this reason, and no other session runs.
    Failed(String),
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
        let mut timeline = Timeline::new(monotonic());
        scope(|scope| {
            let (sender, receiver) = channel();
            let scheduling = move || self.schedule(scope, &sender);
            let scheduler = Builder::new().spawn_scoped(scope, scheduling).map_err(ArenaError::no_thread)?;
            for message in receiver {
                match message {
                    SchedulerMessage::Failed(why) => timeline.record_failure(why, handle),
                    SchedulerMessage::Session { start_ns, thread } => {
                        self.report_session(start_ns, thread, &mut timeline, handle);
                    }
                }
            }
            scheduler.join().unwrap_or_else(|_| Err(ArenaError::far_end("the scheduler failed".to_owned())))
        })
    }

    /// Waits for the end of a session, and reports it.
    fn report_session(
        &self,
        start_ns: i64,
        thread: ScopedJoinHandle<'_, MonitorSession>,
        timeline: &mut Timeline,
        handle: &mut dyn FnMut(Happening),
    ) {
        // A reported outage ends when the next session begins. Without this wait the end would be reported
        // only when that session is over.
        if timeline.is_in_outage() {
            self.wait_until(start_ns, || thread.is_finished());
            if monotonic() >= start_ns {
                timeline.record_start(start_ns, handle);
            }
        }
        let Ok(measured) = thread.join() else { return };
        // A session that the user stopped before it began is neither measured nor an outage.
        let has_begun = measured.length != Duration::ZERO;
        if has_begun || !self.interrupt.load(Ordering::Relaxed) {
            timeline.record_session(measured, handle);
        }
    }

    /// Begins session after session. Each is prepared while the one before it runs.
    fn schedule<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        messages: &Sender<SchedulerMessage<'scope>>,
    ) -> Result<(), ArenaError> {
        let (mut arena, mut running) = (None, None::<RunningSession>);
        let (mut number, mut is_first) = (0, true);
        let failures = Arc::<Failures>::default();
        while !self.interrupt.load(Ordering::Relaxed) {
            if running.take_if(|running| running.counts_as_failure()).is_some() {
                self.measured_until_ns.store(0, Ordering::Relaxed);
                self.wait_until(monotonic() + failures.count(), || false);
                continue;
            }
            // The next session begins when the running session ends. If the running session was cut short,
            // the next one begins as soon as possible.
            let next_start_ns =
                running.as_ref().filter(|running| !running.ended_early()).map(|running| running.end_ns);
            let prepared = self.prepare(&mut arena, number);
            let begun = prepared.and_then(|prepared| prepared.begin(next_start_ns));
            match begun.and_then(|begun| self.start(begun, number, scope, &failures)) {
                Ok((session, begun)) => {
                    let end_ns = begun.end_ns;
                    self.measured_until_ns.store(end_ns, Ordering::Relaxed);
                    if messages.send(session).is_err() {
                        return Ok(());
                    }
                    (number, is_first) = (number + 1, false);
                    let begun = running.insert(begun);
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
                    if !running.as_ref().is_some_and(RunningSession::is_sending) {
                        self.measured_until_ns.store(0, Ordering::Relaxed);
                        if messages.send(SchedulerMessage::Failed(error.to_string())).is_err() {
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
    ) -> Result<(SchedulerMessage<'scope>, RunningSession), ArenaError> {
        let (start_ns, length) = (begun.start_ns(), self.scenario.duration);
        let progress = Arc::new(Progress::new(Arc::clone(failures)));
        let shared = Arc::clone(&progress);
        let session = move || run_session(begun, number, length, &shared);
        let thread = Builder::new().spawn_scoped(scope, session);
        let thread = thread
            .map_err(|error| ArenaError::far_end(format!("this host gives a session no thread: {error}")))?;
        let running = RunningSession::new(start_ns, length, progress);
        Ok((SchedulerMessage::Session { start_ns, thread }, running))
    }

    /// Waits until CLOCK_MONOTONIC shows `until_ns`. The wait ends earlier if `is_over` returns true, or if
    /// the user stops the monitor.
    fn wait_until(&self, until_ns: i64, is_over: impl Fn() -> bool) {
        while !self.interrupt.load(Ordering::Relaxed) && !is_over() {
            let left = u64::try_from(until_ns - monotonic()).unwrap_or(0);
            if left == 0 {
                return;
            }
            sleep(StdDuration::from_nanos(left).min(WAIT_SLICE));
        }
    }
}

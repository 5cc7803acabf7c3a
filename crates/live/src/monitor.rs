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
//! - *failure*: a session that could not begin, or a session that was cut short at once. After several
//!   failures in a row the monitor waits longer before it tries again.
//! - *back-off*: the wait after a failure.
//!
//! A monitor has three kinds of threads. The scheduler's thread begins the sessions, and each session runs in
//! a thread of its own. The user's thread waits for the sessions in their order, and reports them.
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

use talkpath_arena::{ArenaError, MonitorEvent, MonitorSession, RunPlan};
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

/// A message from the scheduler to the thread that reports. The messages are in the order of the sessions.
enum SchedulerMessage<'scope> {
    /// The server has agreed to a session, and the session's thread runs. The session may begin in the
    /// future.
    Session {
        /// CLOCK_MONOTONIC when the session begins.
        start_ns: i64,
        thread: ScopedJoinHandle<'scope, MonitorSession>,
    },
    /// A session could not begin for this reason, and no other session sends.
    Failed(String),
}

impl Monitor<'_> {
    /// Measures until the user stops the monitor. `handle` is called in this thread, session after session.
    ///
    /// # Errors
    /// - Returns [`ArenaError::Unavailable`] if this host lacks something that the first session needs.
    /// - Returns [`ArenaError::Unsupported`] or [`ArenaError::Unwelcome`] if the server or this host refuses
    ///   the session, and no session has begun before.
    /// - Returns [`ArenaError::FarEnd`] if the scheduler's thread panics.
    ///
    /// All other errors are outages, also before the first session. For example, a server that does not
    /// answer is an outage.
    pub fn run(&self, handle: &mut dyn FnMut(MonitorEvent)) -> Result<(), ArenaError> {
        let mut timeline = Timeline::new(monotonic());
        scope(|scope| {
            let (sender, receiver) = channel();
            let scheduler = Scheduler::new(self, scope, sender);
            let scheduler_thread =
                Builder::new().spawn_scoped(scope, move || scheduler.run()).map_err(ArenaError::no_thread)?;
            for message in receiver {
                match message {
                    SchedulerMessage::Failed(why) => timeline.record_failure(why, handle),
                    SchedulerMessage::Session { start_ns, thread } => {
                        self.report_session(start_ns, thread, &mut timeline, handle);
                    }
                }
            }
            scheduler_thread
                .join()
                .unwrap_or_else(|_| Err(ArenaError::far_end("the scheduler failed".to_owned())))
        })
    }

    /// Waits for the end of a session, and reports the session.
    fn report_session(
        &self,
        start_ns: i64,
        thread: ScopedJoinHandle<'_, MonitorSession>,
        timeline: &mut Timeline,
        handle: &mut dyn FnMut(MonitorEvent),
    ) {
        // An outage ends when the next session begins. The user wants to know at that time that the outage is
        // over, and not at the end of the session. So this thread waits for the session's beginning first.
        if timeline.is_in_outage() {
            self.wait_until(start_ns, || thread.is_finished());
            if monotonic() >= start_ns {
                timeline.record_start(start_ns, handle);
            }
        }
        let Ok(measured) = thread.join() else { return };
        // If the user stopped the session before it began, there is nothing to report. Nothing was measured,
        // and the server was not away.
        let was_stopped_before_start =
            measured.length == Duration::ZERO && self.interrupt.load(Ordering::Relaxed);
        if !was_stopped_before_start {
            timeline.record_session(measured, handle);
        }
    }

    fn is_stopped(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Waits until CLOCK_MONOTONIC shows `until_ns`. The wait ends earlier if `is_over` returns true, or if
    /// the user stops the monitor.
    fn wait_until(&self, until_ns: i64, is_over: impl Fn() -> bool) {
        while !self.is_stopped() && !is_over() {
            let remaining_ns = u64::try_from(until_ns - monotonic()).unwrap_or(0);
            if remaining_ns == 0 {
                return;
            }
            sleep(StdDuration::from_nanos(remaining_ns).min(WAIT_SLICE));
        }
    }
}

/// The part of a monitor that begins session after session. It prepares each session while the session before
/// is running.
struct Scheduler<'scope, 'env> {
    monitor: &'scope Monitor<'scope>,
    scope: &'scope Scope<'scope, 'env>,
    messages: Sender<SchedulerMessage<'scope>>,
    /// The server at the address that answered. `None` before the first attempt and after an error.
    server: Option<LiveArena>,
    /// The session that began last. `None` if no session has begun, or if the last session was a failure.
    last_session: Option<RunningSession>,
    /// The number of sessions that have begun. The next session has this number.
    sessions_begun: u64,
    /// True once the first attempt to begin a session has ended, whether a session began or not.
    has_tried: bool,
    failures: Arc<Failures>,
}

impl<'scope, 'env> Scheduler<'scope, 'env> {
    fn new(
        monitor: &'scope Monitor<'scope>,
        scope: &'scope Scope<'scope, 'env>,
        messages: Sender<SchedulerMessage<'scope>>,
    ) -> Self {
        Self {
            monitor,
            scope,
            messages,
            server: None,
            last_session: None,
            sessions_begun: 0,
            has_tried: false,
            failures: Arc::default(),
        }
    }

    /// Begins sessions until the user stops the monitor, or until an error ends the monitor.
    fn run(mut self) -> Result<(), ArenaError> {
        while !self.monitor.is_stopped() {
            if self.last_session.as_ref().is_some_and(RunningSession::was_cut_short_at_once) {
                self.last_session = None;
                self.publish_no_session();
                self.back_off();
                continue;
            }
            match self.begin_session().or_else(|error| self.handle_error(error)) {
                Ok(()) => {}
                Err(ArenaError::Interrupted { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Begins the next session, and waits until it is time to prepare the session after it.
    fn begin_session(&mut self) -> Result<(), ArenaError> {
        // The next session begins when the last session ends. If the last session was cut short, the next
        // session begins as soon as possible.
        let start_ns =
            self.last_session.as_ref().filter(|session| !session.ended_early()).map(|session| session.end_ns);
        let begun = self.prepare()?.begin(start_ns)?;
        let (session, message) = self.start_thread(begun)?;
        self.monitor.measured_until_ns.store(session.end_ns, Ordering::Relaxed);
        self.send(message)?;
        self.sessions_begun += 1;
        self.has_tried = true;
        self.monitor.wait_until(session.end_ns - PREPARE_AHEAD_NS, || session.ended_early());
        if session.ended_early() {
            self.publish_no_session();
        }
        self.last_session = Some(session);
        Ok(())
    }

    fn prepare(&mut self) -> Result<PreparedRun<'scope>, ArenaError> {
        let Monitor { host, scenario, series, interrupt, .. } = *self.monitor;
        let server = match &self.server {
            Some(server) => server,
            None => self.server.insert(LiveArena::connect(host, self.monitor.options.clone())?),
        };
        let plan = RunPlan {
            cell: 0,
            repetition: self.sessions_begun,
            seed: scenario.seed.repetition(self.sessions_begun),
            series,
            rows: true,
            interrupt,
            progress: &|_| {},
        };
        server.prepare(scenario, plan)
    }

    /// Starts the thread of a session that the server has agreed to. Returns the session as the scheduler
    /// watches it, and the message about it to the thread that reports.
    fn start_thread(
        &self,
        begun: BegunRun<'scope>,
    ) -> Result<(RunningSession, SchedulerMessage<'scope>), ArenaError> {
        let (number, start_ns, length) =
            (self.sessions_begun, begun.start_ns(), self.monitor.scenario.duration);
        let progress = Arc::new(Progress::new(Arc::clone(&self.failures)));
        let thread_progress = Arc::clone(&progress);
        let thread = Builder::new()
            .spawn_scoped(self.scope, move || run_session(begun, number, length, &thread_progress))
            // A lack of threads may pass. So the error is one after which the monitor tries again, also
            // before the first session. `ArenaError::no_thread` would end the monitor.
            .map_err(|error| ArenaError::far_end(format!("cannot start a thread for a session: {error}")))?;
        let session = RunningSession::new(start_ns, length, progress);
        Ok((session, SchedulerMessage::Session { start_ns, thread }))
    }

    /// Handles an error of an attempt to begin a session. Returns the error if it ends the monitor. Otherwise
    /// the attempt counts as a failure, and the next attempt follows after the back-off.
    fn handle_error(&mut self, error: ArenaError) -> Result<(), ArenaError> {
        let is_first_attempt = !self.has_tried;
        match error {
            ArenaError::Interrupted { .. } => return Err(error),
            ArenaError::Unavailable { .. } if is_first_attempt => return Err(error),
            // After a session has begun, a refusal is an outage, because this server has accepted the key and
            // the scenario before and may accept them again.
            ArenaError::Unwelcome(_) | ArenaError::Unsupported(_) if self.sessions_begun == 0 => {
                return Err(error);
            }
            _ => {}
        }
        self.has_tried = true;
        self.server = None;
        // While the last session still sends, no time is lost yet, so no outage begins.
        if !self.last_session.as_ref().is_some_and(RunningSession::is_sending) {
            self.publish_no_session();
            self.send(SchedulerMessage::Failed(error.to_string()))?;
        }
        self.back_off();
        Ok(())
    }

    /// Sends `message` to the thread that reports.
    ///
    /// # Errors
    /// Returns [`ArenaError::Interrupted`] if that thread has gone. Then the scheduler ends, too.
    fn send(&self, message: SchedulerMessage<'scope>) -> Result<(), ArenaError> {
        self.messages.send(message).map_err(|_| ArenaError::Interrupted { partial: None })
    }

    /// Tells the user of [`Monitor::measured_until_ns`] that no session sends.
    fn publish_no_session(&self) {
        self.monitor.measured_until_ns.store(0, Ordering::Relaxed);
    }

    /// Counts a failure, and waits before the next attempt.
    fn back_off(&self) {
        let back_off_ns = self.failures.add();
        self.monitor.wait_until(monotonic() + back_off_ns, || false);
    }
}

//! The threads of a repetition, from their start to their end.
//!
//! | thread | what it does | started | stopped |
//! | --- | --- | --- | --- |
//! | emulator | carries the packets | first | last, so that no packet is left in a device |
//! | readers | receive datagrams and serve connections | before the run | after the run |
//! | pacer | makes the ends send when their messages are due | before the run | after the run |
//! | connector | opens the connections of TCP | when the run begins | after the run |
//!
//! The calling thread waits until the run is over. It is over when all messages are delivered, when a program
//! of the user has ended, when the user interrupts it, or when a thread has failed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};

use talkpath_arena::{ArenaError, RunPlan};
use talkpath_kernel::clock::RunClock;
use talkpath_kernel::keep_awake::ShallowSleep;
use talkpath_kernel::log::sample_interval;
use talkpath_kernel::stolen::StolenTime;
use talkpath_kernel::sys::become_real_time;
use talkpath_kernel::threads::{
    StoresOnDrop, close_connections, pace, read_slowly, receive_datagrams, serve_connections,
};
use talkpath_kernel::udp_drops::UdpErrors;
use talkpath_model::Scenario;
use talkpath_units::{Duration, Instant};

use super::ends::{FlowEnds, SessionEnds};
use super::{LEAD, devices_failed};
use crate::connect::connect_flows;
use crate::emulator::{Emulated, Emulator};
use crate::realtime::OwnProcessor;
use crate::shell::{HostEntry, Program};
use crate::watch::DrainedSocket;
use crate::world::World;

/// The interval at which the calling thread checks whether the run is over.
const WATCH: Duration = Duration::from_millis(10);

/// A repetition whose hosts and ends are made.
pub(super) struct ReadyRun<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) plan: &'a RunPlan<'a>,
    pub(super) clock: RunClock,
    /// The emulator's processor, which all other threads leave to the emulator.
    pub(super) processor: &'a OwnProcessor,
    pub(super) ends: &'a mut SessionEnds,
}

/// A program of the user that is to be started, and the descriptors by which it enters the hosts.
pub(super) struct HostProgram<'a> {
    pub(super) program: &'a mut (dyn Program + 'static),
    pub(super) entries: [HostEntry; 2],
}

/// How the machine and the user disturbed a run.
#[derive(Default)]
pub(super) struct Disturbance {
    /// The failures of threads, flows and counters, in words.
    pub(super) failures: Vec<String>,
    /// For each flow, the sockets of its receiver and of its sender, as in [`FlowEnds::sockets`].
    pub(super) sockets: Vec<[Option<DrainedSocket>; 2]>,
    /// The UDP errors that the hosts' kernels counted. `None` if a kernel does not report them.
    pub(super) udp_errors: Option<UdpErrors>,
    /// The number of packets that the devices dropped.
    pub(super) device_drops: u64,
    pub(super) is_interrupted: bool,
    /// The share of all processors' time that a hypervisor gave to others during the run, 0 to 1.
    pub(super) stolen_share: Option<f64>,
}

impl ReadyRun<'_> {
    /// Runs the threads until the run is over.
    ///
    /// # Errors
    /// Returns an error if a thread or the program cannot be started, or if a device failed.
    pub(super) fn run(
        self,
        emulator: Emulator<'_>,
        program: Option<HostProgram<'_>>,
    ) -> Result<(Emulated, Disturbance), ArenaError> {
        let connecting = core::mem::take(&mut self.ends.connecting);
        let slow_receivers = core::mem::take(&mut self.ends.slow_receivers);
        let (run, clock, processor, ends) = (&self, self.clock, self.processor, &*self.ends);
        let (stop_ends, stop_emulator) = (AtomicBool::new(false), AtomicBool::new(false));
        let stop = &stop_ends;
        let paced = ends.paced();
        let _shallow_sleep = ShallowSleep::begin();
        let stolen_time = StolenTime::start();
        thread::scope(|scope| {
            // The scope waits for its threads, so the threads must end however this function ends.
            let _guards = [stop, &stop_emulator].map(StoresOnDrop);
            let emulating = spawn(scope, || emulator.run(processor, &stop_emulator))?;
            let mut end_threads = EndThreads { scope, processor, threads: Vec::new() };
            let has_connections = !connecting.is_empty();
            if has_connections {
                let interval = run.sample_interval();
                let serve = move || serve_connections(&ends.epoll, &ends.all, clock, interval, stop);
                end_threads.start(serve)?;
            }
            if !ends.datagrams.is_empty() {
                end_threads.start(move || receive_datagrams(&ends.datagrams, stop))?;
            }
            for (socket, end) in slow_receivers {
                end_threads.start(move || read_slowly(&socket, &end, clock, stop))?;
            }
            // The pacer waits for the beginning of the run by itself and in real time, because a busy machine
            // may delay this thread beyond the beginning.
            let pacing = spawn(scope, || {
                processor.leave();
                pace(&paced, clock, &ends.alarm, stop)
            })?;
            // The clock reads zero until the run begins. Without this sleep a connection that opens at zero
            // would open before the run.
            clock.sleep_until(Instant::ZERO, LEAD);
            if has_connections {
                end_threads.start(move || connect_flows(connecting, &ends.epoll, clock, stop))?;
            }
            let is_broken = || emulating.is_finished() || end_threads.has_ended();
            let is_interrupted = run.wait_until_over(program, &is_broken)?;
            if !is_interrupted && !is_broken() {
                let near: Vec<_> = ends.flows.iter().map(|flow| Arc::clone(&flow.near)).collect();
                close_connections(&near, clock);
            }
            stop.store(true, Ordering::Relaxed);
            let pacer_failure = pacing.join().is_err().then(|| "the pacer failed".to_owned());
            let mut failures: Vec<String> = pacer_failure.into_iter().chain(end_threads.join()).collect();
            stop_emulator.store(true, Ordering::Relaxed);
            let emulated =
                emulating.join().unwrap_or_else(|_| Err(io::Error::other("the emulator's thread failed")));
            // The sockets are drained after the emulator has stopped, so that nothing more comes.
            let sockets = ends.flows.iter().map(FlowEnds::drain_sockets).collect();
            failures.extend(ends.finish(run.scenario));
            let stolen_share = stolen_time.share();
            let disturbance =
                Disturbance { failures, sockets, is_interrupted, stolen_share, ..Disturbance::default() };
            Ok((emulated.map_err(devices_failed)?, disturbance))
        })
    }
    /// The interval at which the state of connections is sampled.
    fn sample_interval(&self) -> Duration {
        // Nobody knows how long a program will run.
        let has_program = self.scenario.program.is_some();
        sample_interval(if has_program { Duration::ZERO } else { self.scenario.duration })
    }

    /// Waits until the program has ended, or until all messages are delivered if there is no program. Returns
    /// true if the user has interrupted a run that does not count then.
    fn wait_until_over(
        &self,
        program: Option<HostProgram<'_>>,
        is_broken: &dyn Fn() -> bool,
    ) -> Result<bool, ArenaError> {
        match program {
            Some(program) => program.run(self.scenario, self.plan, self.clock, is_broken),
            None => Ok(self.wait_until_delivered(is_broken)),
        }
    }

    /// Waits until all messages are delivered, or until no message has arrived for the scenario's `drain`.
    /// Returns true if the user has interrupted the run.
    fn wait_until_delivered(&self, is_broken: &dyn Fn() -> bool) -> bool {
        let Self { scenario, plan, clock, ref ends, .. } = *self;
        let stop = Instant::ZERO + scenario.duration;
        loop {
            let now = clock.now();
            (plan.progress)(now);
            if plan.interrupt.load(Ordering::Relaxed) {
                return true;
            }
            if is_broken() {
                return false;
            }
            if now >= stop {
                let last_arrival = ends.flows.iter().map(FlowEnds::last_arrival).fold(stop, Instant::max);
                let is_drained = now > last_arrival.saturating_add(scenario.drain);
                if is_drained || ends.flows.iter().all(FlowEnds::is_delivered) {
                    return false;
                }
            }
            clock.sleep_until(now.saturating_add(WATCH), WATCH);
        }
    }
}

impl SessionEnds {
    /// Ends the logs. Returns for each flow that failed its name and the reason.
    fn finish(&self, scenario: &Scenario) -> Vec<String> {
        for end in &self.all {
            end.lock().finish();
        }
        let mut failures = Vec::new();
        for (flow, ends) in scenario.flows.iter().zip(&self.flows) {
            if let Some(reason) = &ends.near.lock().failure {
                failures.push(format!("flow {}: {reason}", flow.name));
            }
        }
        failures
    }
}

impl HostProgram<'_> {
    /// Starts the program and waits until it has ended. If the user interrupts the run, or if a thread of the
    /// run has ended, the program is asked to end. Returns true if the user has interrupted a run that does
    /// not count then.
    ///
    /// # Errors
    /// Returns an error if the program cannot be started.
    fn run(
        self,
        scenario: &Scenario,
        plan: &RunPlan<'_>,
        clock: RunClock,
        is_broken: &dyn Fn() -> bool,
    ) -> Result<bool, ArenaError> {
        let Self { program, entries } = self;
        let Some(described) = &scenario.program else { return Ok(false) };
        program.start(described, entries).map_err(|error| ArenaError::Unavailable {
            what: format!("the program cannot be started inside the network: {error}"),
            how: "see the limits of processes and open files (ulimit -u, ulimit -n)".to_owned(),
        })?;
        let mut is_interrupted = false;
        while !program.is_over() {
            let now = clock.now();
            (plan.progress)(now);
            is_interrupted = plan.interrupt.load(Ordering::Relaxed);
            if is_interrupted || is_broken() {
                program.ask_to_end();
            }
            clock.sleep_until(now.saturating_add(WATCH), WATCH);
        }
        Ok(is_interrupted && !program.counts_if_stopped())
    }
}

/// The threads that serve the ends of flows. They run in real time if that is allowed.
struct EndThreads<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    processor: &'env OwnProcessor,
    threads: Vec<ScopedJoinHandle<'scope, io::Result<()>>>,
}

impl<'scope> EndThreads<'scope, '_> {
    /// Starts a thread that runs `serve`.
    fn start(&mut self, serve: impl FnOnce() -> io::Result<()> + Send + 'scope) -> Result<(), ArenaError> {
        let processor = self.processor;
        self.threads.push(spawn(self.scope, move || {
            processor.leave();
            let _ = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(1));
            // Some times are taken when the thread wakes up, so the thread has to run at once. The error is
            // ignored here, because the emulator's report says whether real-time priority is allowed.
            let _ = become_real_time();
            serve()
        })?);
        Ok(())
    }

    /// Returns true if a thread has ended.
    fn has_ended(&self) -> bool {
        self.threads.iter().any(ScopedJoinHandle::is_finished)
    }

    /// Waits for all threads. Returns the failures in words.
    fn join(self) -> impl Iterator<Item = String> {
        self.threads.into_iter().filter_map(|thread| match thread.join() {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(format!("a thread of the endpoints ended: {error}")),
            Err(_) => Some("a thread of the endpoints failed".to_owned()),
        })
    }
}

fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    run: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, ArenaError> {
    thread::Builder::new().spawn_scoped(scope, run).map_err(ArenaError::no_thread)
}

impl Disturbance {
    /// Adds what the devices and the kernels of the hosts have counted.
    pub(super) fn add_kernel_counts(&mut self, world: &mut World) {
        match world.device_drops() {
            Ok(drops) => self.device_drops = drops.from_host + drops.to_host,
            Err(error) => self.failures.push(format!("what the devices dropped cannot be read: {error}")),
        }
        self.udp_errors = world.udp_errors();
    }
}

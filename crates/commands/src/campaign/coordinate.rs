//! The coordinator of a campaign. It does what the scheduler says, until all measurements are done or a
//! signal comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use talkpath_campaign::{Entry, Event, Fault, Measurement, Plan, Scheduler, Status, Step, millis, status};
use talkpath_units::{Instant, counted};

use super::attempt::Attempt;
use super::load::{Loaded, Prepared};
use super::now;
use super::push::{Push, Uploader};
use super::store::{OpenJournal, Opened, Store};
use crate::args::Common;
use crate::failure::Failure;
use crate::interrupt;
use crate::terminal::Terminal;
use talkpath_experiment::choice::Choice;

/// A coordinator that works on a campaign.
struct Coordinator<'a> {
    loaded: &'a Loaded,
    store: &'a Store,
    plan: &'a Plan,
    journal: OpenJournal,
    records: String,
    terminal: Terminal,
    stop: Arc<AtomicBool>,
    /// Becomes true when the coordinator ends, so that attempts that are still running end too.
    abort: Arc<AtomicBool>,
    workers: Vec<JoinHandle<()>>,
    ends: (Sender<End>, Receiver<End>),
    /// Copies the records of finished measurements, if the campaign file has a `store_command`.
    uploader: Option<Uploader>,
}

/// The index in the plan of a measurement that has ended, and its result.
type End = (usize, Result<(), Fault>);

/// Runs all planned measurements. Returns the plan, and the entries of the journal.
pub(crate) fn coordinate(
    loaded: &Loaded,
    store: &Store,
    common: &Common,
    terminal: Terminal,
) -> Result<(Plan, Vec<Entry>), Failure> {
    let stop = interrupt::install()?;
    let opened = store.begin(loaded)?;
    let campaign = &loaded.campaign;
    terminal.note(&opening_note(&opened, campaign.schedule.retry));
    let Opened { plan, journal, entries, .. } = opened;
    let at_once: Vec<u64> = campaign.hosts.iter().map(|host| host.at_once).collect();
    let mut scheduler = Scheduler::new(&plan, &at_once, campaign.schedule.retry, &entries, now());
    let uploader = uploader(loaded, store, &plan, terminal, &stop);
    let mut coordinator = Coordinator {
        loaded,
        store,
        plan: &plan,
        journal,
        records: common.records().word().to_owned(),
        terminal,
        stop,
        abort: Arc::new(AtomicBool::new(false)),
        workers: Vec::new(),
        ends: mpsc::channel(),
        uploader,
    };
    let ended = coordinator.work(&mut scheduler);
    coordinator.abort.store(true, Ordering::Relaxed);
    for worker in coordinator.workers.drain(..) {
        // If the worker panicked, the panic has printed a message.
        let _ = worker.join();
    }
    if let Some(uploader) = coordinator.uploader.take() {
        match &ended {
            Ok(()) => uploader.close(terminal),
            Err(_) => {
                coordinator.stop.store(true, Ordering::Relaxed);
                uploader.stopped();
            }
        }
    }
    ended?;
    drop(coordinator);
    let entries = store.entries()?;
    Ok((plan, entries))
}

/// Says what the directory of the campaign holds when a coordinator begins.
fn opening_note(opened: &Opened, retry: talkpath_units::Duration) -> String {
    let Opened { plan, entries, is_new, repaired, .. } = opened;
    let Status { planned, done, abandoned, begun, overdue, later, next, .. } =
        status(plan, entries, retry, now());
    let next = next.map_or_else(String::new, |next| format!("; next: {}", next.local));
    if *is_new {
        return format!("{}: planned {}, {overdue} due{next}", plan.name, counted(planned, "measurement"));
    }
    let cut = if begun > 0 { format!(", {begun} cut off and to be measured again") } else { String::new() };
    let lines = match repaired {
        0 => String::new(),
        repaired => format!("; of {repaired} more the records were whole, and the journal says so now"),
    };
    format!(
        "{}: goes on; found {done} of {planned} measured, {abandoned} not measured{cut}, {overdue} due, {later} later{next}{lines}",
        plan.name
    )
}

/// Starts the thread that copies records by the `store_command`, if the campaign has one. If the thread
/// cannot be started, the campaign measures all the same.
fn uploader(
    loaded: &Loaded,
    store: &Store,
    plan: &Plan,
    terminal: Terminal,
    stop: &Arc<AtomicBool>,
) -> Option<Uploader> {
    let campaign = &loaded.campaign;
    let push = Push::new(campaign.store_command.as_ref()?, &campaign.name, store.clone(), stop);
    let retry = Duration::from_nanos(campaign.schedule.retry.as_nanos());
    Uploader::start(push, plan, retry, terminal)
        .map_err(|why| terminal.warning(&format!("nothing is copied to the store: {why}")))
        .ok()
}

impl Coordinator<'_> {
    /// Does one step of the scheduler after another.
    fn work(&mut self, scheduler: &mut Scheduler<'_>) -> Result<(), Failure> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                let dir = self.store.path().display();
                return Err(Failure::interrupted(format!(
                    "interrupted; what was measured is in {dir}, and the same command goes on"
                )));
            }
            match scheduler.step(now()) {
                Step::Finished => return Ok(()),
                Step::Begin(at) => {
                    self.write(at, Event::Begun)?;
                    self.begin(at)?;
                }
                Step::Abandon(at, why) => {
                    self.terminal.warning(&format!("{}: not measured: {why}", self.named(at)));
                    self.write(at, Event::Abandoned { why })?;
                    scheduler.set_abandoned(at);
                }
                Step::Wait(until) => self.wait(until, scheduler)?,
            }
        }
    }

    /// Waits until a measurement ends, but not longer than `until` and not longer than [`A_MOMENT`].
    fn wait(&mut self, until: Option<Instant>, scheduler: &mut Scheduler<'_>) -> Result<(), Failure> {
        let wait = until.map_or(A_MOMENT, |until| Duration::from_nanos(until.since(now()).as_nanos()));
        match self.ends.1.recv_timeout(wait.clamp(Duration::from_millis(1), A_MOMENT)) {
            Ok((at, outcome)) => {
                // A measurement that a signal cut short has not failed. The next coordinator runs it again.
                if outcome.is_err() && self.stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let event = scheduler.finish(at, outcome, now());
                let name = self.named(at);
                match &event {
                    Event::Failed { why, .. } => self.terminal.warning(&format!("{name}: {why}")),
                    _ => self.terminal.note(&format!("{name}: measured")),
                }
                let is_measured = event == Event::Done;
                self.write(at, event)?;
                if is_measured && let Some(uploader) = &self.uploader {
                    uploader.measured();
                }
                Ok(())
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(()),
        }
    }

    /// Starts a thread that runs the measurement `at`.
    fn begin(&mut self, at: usize) -> Result<(), Failure> {
        self.workers.retain(|worker| !worker.is_finished());
        let attempt = self.attempt(&self.plan.measurements[at])?;
        let (report, stop, abort) = (self.ends.0.clone(), Arc::clone(&self.stop), Arc::clone(&self.abort));
        let worker = thread::Builder::new().spawn(move || {
            let is_over = || stop.load(Ordering::Relaxed) || abort.load(Ordering::Relaxed);
            // If the coordinator has ended meanwhile, the next one finds the records.
            let _ = report.send((at, attempt.run(&is_over)));
        });
        match worker {
            Ok(worker) => self.workers.push(worker),
            // The scheduler tries the measurement again, as after any fault of this machine.
            Err(why) => {
                let fault = Fault { why: format!("cannot start a thread: {why}"), host: None };
                let _ = self.ends.0.send((at, Err(fault)));
            }
        }
        Ok(())
    }

    /// Describes an attempt at `measurement`.
    fn attempt(&self, measurement: &Measurement) -> Result<Attempt, Failure> {
        let Measurement { id, near, far, measure, seed, .. } = measurement;
        let campaign = &self.loaded.campaign;
        let unknown =
            || Failure::Usage(format!("{}: its plan has what the file has not", self.store.path().display()));
        let (near, far) = (campaign.host(near).ok_or_else(unknown)?, campaign.host(far).ok_or_else(unknown)?);
        let Prepared { text, repetitions, expected } =
            self.loaded.prepared(measure, far).ok_or_else(unknown)?;
        Ok(Attempt {
            near: near.clone(),
            far: far.clone(),
            scenario: text.clone(),
            key_file: far.key_file.as_ref().map(|file| self.loaded.file(file)),
            seed: *seed,
            records: self.records.clone(),
            repetitions: *repetitions,
            limit: Duration::from_nanos(expected.as_nanos()) + TO_SPARE,
            draft: self.store.draft(id),
            target: self.store.records(id),
        })
    }

    /// Adds an event of the measurement `at` to the journal.
    fn write(&mut self, at: usize, event: Event) -> Result<(), Failure> {
        let id = self.plan.measurements[at].id.clone();
        self.journal.add(&Entry { at_ms: millis(now()), id, event })
    }

    /// Names the measurement `at` in messages.
    fn named(&self, at: usize) -> String {
        let Measurement { near, far, measure, day, local, .. } = &self.plan.measurements[at];
        format!("{local}, day {day}: {near} > {far}, {measure}")
    }
}

/// How often the coordinator checks for a signal.
const A_MOMENT: Duration = Duration::from_millis(200);
/// How much longer a measurement may take than its runs: for ssh, and for fetching the records (chosen).
const TO_SPARE: Duration = Duration::from_secs(60);

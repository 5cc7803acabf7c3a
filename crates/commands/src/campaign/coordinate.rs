//! The coordinator of a campaign. It does what the scheduler says, until all measurements are done or the
//! user stops it.
//!
//! Each attempt at a measurement runs in a thread of its own, and sends its result to the coordinator. Begin
//! to read with [`coordinate`], then `Coordinator::work`.

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
use crate::dashboard::{Dashboard, Reading};
use crate::failure::Failure;
use crate::interrupt;
use crate::terminal::Terminal;
use talkpath_experiment::choice::Choice;

/// The coordinator checks this often whether the user has stopped it. We chose 0.2 s because a person does
/// not notice a shorter delay.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// The coordinator waits at least this long, so that it does not spin.
const MIN_WAIT: Duration = Duration::from_millis(1);
/// A measurement may take this much longer than its runs. We chose 60 s for ssh, which needs up to 15 s to
/// connect, and for the transfer of the records.
const ATTEMPT_MARGIN: Duration = Duration::from_secs(60);

/// A coordinator that works on a campaign.
struct Coordinator<'a> {
    loaded: &'a Loaded,
    store: &'a Store,
    plan: &'a Plan,
    journal: OpenJournal,
    /// The value of `--records`.
    records_flag: String,
    terminal: Terminal,
    /// Becomes true when the user stops the coordinator.
    stop: Arc<AtomicBool>,
    /// Becomes true when the coordinator ends, so that attempts that are still running end too.
    abort: Arc<AtomicBool>,
    /// The threads of the attempts.
    workers: Vec<JoinHandle<()>>,
    report_end: Sender<AttemptEnd>,
    attempt_ends: Receiver<AttemptEnd>,
    /// Copies the records of finished measurements, if the campaign file has a `store_command`.
    uploader: Option<Uploader>,
    /// Draws the measurements, if `--tui` is given and a person watches.
    dashboard: Option<Dashboard>,
    measured: u64,
}

/// The result of an attempt that has ended.
struct AttemptEnd {
    /// The index of the measurement in the plan.
    index: usize,
    outcome: Result<(), Fault>,
}

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
    let done_before = status(&plan, &entries, campaign.schedule.retry, now()).done;
    let at_once: Vec<u64> = campaign.hosts.iter().map(|host| host.at_once).collect();
    let mut scheduler = Scheduler::new(&plan, &at_once, campaign.schedule.retry, &entries, now());
    let uploader = start_uploader(loaded, store, &plan, terminal, &stop);
    let (report_end, attempt_ends) = mpsc::channel();
    let mut coordinator = Coordinator {
        loaded,
        store,
        plan: &plan,
        journal,
        records_flag: common.records().word().to_owned(),
        terminal,
        stop,
        abort: Arc::new(AtomicBool::new(false)),
        workers: Vec::new(),
        report_end,
        attempt_ends,
        uploader,
        dashboard: terminal.shows_dashboard().then(|| Dashboard::new(false)),
        measured: done_before,
    };
    let result = coordinator.work(&mut scheduler);
    coordinator.end(result.is_ok());
    result?;
    drop(coordinator);
    let entries = store.entries()?;
    Ok((plan, entries))
}

/// Says what the directory of the campaign holds when a coordinator begins.
fn opening_note(opened: &Opened, retry: talkpath_units::Duration) -> String {
    let Opened { plan, entries, is_new, repaired, .. } = opened;
    let Status { planned, done, abandoned, begun, overdue, later, next, .. } =
        status(plan, entries, retry, now());
    let name = &plan.name;
    let next = next.map_or_else(String::new, |next| format!("; next: {}", next.local));
    if *is_new {
        return format!("{name}: planned {}, {overdue} due{next}", counted(planned, "measurement"));
    }
    let cut_off = match begun {
        0 => String::new(),
        _ => format!(", {begun} cut off and to be measured again"),
    };
    let added = match repaired {
        0 => String::new(),
        _ => format!("; {repaired} more had whole records, which were added to the journal"),
    };
    format!(
        "{name}: goes on; found {done} of {planned} measured, {abandoned} not measured{cut_off}, {overdue} due, {later} later{next}{added}"
    )
}

/// Starts the thread that copies records by the `store_command`, if the campaign has one. If the thread
/// cannot be started, the campaign measures all the same.
fn start_uploader(
    loaded: &Loaded,
    store: &Store,
    plan: &Plan,
    terminal: Terminal,
    stop: &Arc<AtomicBool>,
) -> Option<Uploader> {
    let campaign = &loaded.campaign;
    let push = Push::new(campaign.store_command.as_ref()?, &campaign.name, store.clone(), stop);
    let retry = Duration::from_nanos(campaign.schedule.retry.as_nanos());
    match Uploader::start(push, plan, retry, terminal) {
        Ok(uploader) => Some(uploader),
        Err(error) => {
            terminal.warning(&format!("nothing is copied to the store: {error}"));
            None
        }
    }
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
                Step::Begin(index) => {
                    self.write_event(index, Event::Begun)?;
                    self.begin(index)?;
                }
                Step::Abandon(index, why) => {
                    self.hide_dashboard();
                    self.terminal.warning(&format!("{}: not measured: {why}", self.measurement_name(index)));
                    self.write_event(index, Event::Abandoned { why })?;
                    scheduler.set_abandoned(index);
                }
                Step::Wait(until) => self.wait(until, scheduler)?,
            }
        }
    }

    /// Waits until a measurement ends, but not longer than `until` and not longer than
    /// [`SIGNAL_CHECK_INTERVAL`].
    fn wait(&mut self, until: Option<Instant>, scheduler: &mut Scheduler<'_>) -> Result<(), Failure> {
        let wait = match until {
            Some(until) => Duration::from_nanos(until.since(now()).as_nanos()),
            None => SIGNAL_CHECK_INTERVAL,
        };
        match self.attempt_ends.recv_timeout(wait.clamp(MIN_WAIT, SIGNAL_CHECK_INTERVAL)) {
            Ok(attempt_end) => self.finish(attempt_end, scheduler),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(()),
        }
    }

    /// Records the result of an attempt in the journal, and prints it.
    fn finish(&mut self, attempt_end: AttemptEnd, scheduler: &mut Scheduler<'_>) -> Result<(), Failure> {
        let AttemptEnd { index, outcome } = attempt_end;
        // A measurement that the user cut short has not failed. The next coordinator runs it again.
        if outcome.is_err() && self.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let name = self.measurement_name(index);
        let event = scheduler.finish(index, outcome, now());
        if let Event::Failed { why, .. } = &event {
            self.hide_dashboard();
            self.terminal.warning(&format!("{name}: {why}"));
        } else if self.dashboard.is_none() {
            self.terminal.note(&format!("{name}: measured"));
        }
        let is_measured = event == Event::Done;
        self.write_event(index, event)?;
        if is_measured {
            self.measured += 1;
            self.draw(index, &name);
        }
        if is_measured && let Some(uploader) = &self.uploader {
            uploader.measured();
        }
        Ok(())
    }

    fn hide_dashboard(&self) {
        if let Some(dashboard) = &self.dashboard {
            dashboard.hide();
        }
    }

    /// Draws the figures of a measurement that is done.
    fn draw(&self, index: usize, name: &str) {
        let Some(dashboard) = &self.dashboard else { return };
        let Measurement { id, near, far, measure, .. } = &self.plan.measurements[index];
        // Without the figures the measurement is counted all the same.
        let summary = self.store.summary(id).ok();
        let all = self.plan.measurements.len() as u64;
        dashboard.show(Reading {
            runs: summary.as_ref().map_or(&[][..], |summary| summary.runs.as_slice()),
            place: &format!("{near} > {far}, {measure}"),
            lines: Vec::new(),
            last_line: format!("{} of {} measured, last {name}", self.measured, counted(all, "measurement")),
            share: Some(self.measured as f64 / all.max(1) as f64),
        });
    }

    /// Starts a thread that makes an attempt at a measurement.
    fn begin(&mut self, index: usize) -> Result<(), Failure> {
        self.workers.retain(|worker| !worker.is_finished());
        let attempt = self.attempt(&self.plan.measurements[index])?;
        let report_end = self.report_end.clone();
        let (stop, abort) = (Arc::clone(&self.stop), Arc::clone(&self.abort));
        let worker = thread::Builder::new().spawn(move || {
            let is_cancelled = || stop.load(Ordering::Relaxed) || abort.load(Ordering::Relaxed);
            let outcome = attempt.run(&is_cancelled);
            // If the coordinator has ended meanwhile, the next one finds the records.
            let _ = report_end.send(AttemptEnd { index, outcome });
        });
        match worker {
            Ok(worker) => self.workers.push(worker),
            Err(error) => {
                // The scheduler tries the measurement again, as after any fault of this machine.
                let fault = Fault { why: format!("cannot start a thread: {error}"), host: None };
                let _ = self.report_end.send(AttemptEnd { index, outcome: Err(fault) });
            }
        }
        Ok(())
    }

    /// Waits for the attempts and the uploader to end. They are stopped, unless all measurements are done.
    fn end(&mut self, are_all_done: bool) {
        drop(self.dashboard.take());
        self.abort.store(true, Ordering::Relaxed);
        for worker in self.workers.drain(..) {
            // If the worker panicked, the panic has printed a message.
            let _ = worker.join();
        }
        let Some(uploader) = self.uploader.take() else { return };
        if are_all_done {
            uploader.close(self.terminal);
        } else {
            self.stop.store(true, Ordering::Relaxed);
            uploader.stopped();
        }
    }

    /// Describes an attempt at `measurement`.
    fn attempt(&self, measurement: &Measurement) -> Result<Attempt, Failure> {
        let Measurement { id, near, far, measure, seed, .. } = measurement;
        let campaign = &self.loaded.campaign;
        let unknown = || {
            Failure::Usage(format!(
                "{}: its plan has a host or measure that the campaign file does not have",
                self.store.path().display()
            ))
        };
        let (near, far) = (campaign.host(near).ok_or_else(unknown)?, campaign.host(far).ok_or_else(unknown)?);
        let Prepared { plan, repetitions, expected } =
            self.loaded.prepared(measure, far).ok_or_else(unknown)?;
        Ok(Attempt {
            near: near.clone(),
            far: far.clone(),
            scenario: plan.resolved.clone(),
            key_file: far.key_file.as_ref().map(|file| self.loaded.file(file)),
            seed: *seed,
            records_flag: self.records_flag.clone(),
            repetitions: *repetitions,
            limit: Duration::from_nanos(expected.as_nanos()) + ATTEMPT_MARGIN,
            draft: self.store.draft(id),
            target: self.store.records(id),
        })
    }

    /// Adds an event of a measurement to the journal.
    fn write_event(&mut self, index: usize, event: Event) -> Result<(), Failure> {
        let id = self.plan.measurements[index].id.clone();
        self.journal.add(&Entry { at_ms: millis(now()), id, event })
    }

    /// Returns the name of a measurement in messages.
    fn measurement_name(&self, index: usize) -> String {
        let Measurement { near, far, measure, day, local, .. } = &self.plan.measurements[index];
        format!("{local}, day {day}: {near} > {far}, {measure}")
    }
}

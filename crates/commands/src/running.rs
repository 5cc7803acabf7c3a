//! Runs experiments under this program. What happens in an experiment is written to the terminal, with a
//! progress bar if a person watches. An error that ends the experiment becomes the failure of the command.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use talkpath_experiment::choice::Records;
use talkpath_experiment::observer::{Disturbed, Event, Observer};
use talkpath_experiment::run_dir::RunDir;
use talkpath_experiment::run_options::RunOptions;
use talkpath_experiment::{Destination, Error, Experiment, PartOutcome};
use talkpath_measure::summary::Summary;
use talkpath_units::{Duration, counted};

use crate::dashboard::Dashboard;
use crate::failure::Failure;
use crate::interrupt;
use crate::progress_events::JsonEvents;
use crate::terminal::{Terminal, program, shell_path, shell_word};

/// The result of a whole run. A run that ended early has both the figures that were measured and the reason
/// why it ended.
pub(crate) struct Outcome {
    pub(crate) dir: RunDir,
    pub(crate) summary: Summary,
    pub(crate) failure: Option<Failure>,
}

/// The result of a part of a run, and why the part ended early if it did.
pub(crate) struct EndedPart {
    pub(crate) outcome: PartOutcome,
    pub(crate) failure: Option<Failure>,
}

/// Runs all of `experiment` in a new directory.
pub(crate) fn run(experiment: &Experiment<'_>, destination: Destination<'_>) -> Result<Outcome, Failure> {
    let stop = interrupt::install()?;
    let outcome = experiment.run(destination, &stop);
    run_outcome(experiment, outcome)
}

/// Runs all of `experiment` in a new directory, until `stop` is true.
pub(crate) fn run_until(
    experiment: &Experiment<'_>,
    destination: Destination<'_>,
    stop: &AtomicBool,
) -> Result<Outcome, Failure> {
    let outcome = experiment.run(destination, stop);
    run_outcome(experiment, outcome)
}

/// Runs the repetitions of `experiment` that are missing in `dir`. `options` is what the earlier process
/// wrote down about the run.
pub(crate) fn resume(
    experiment: &Experiment<'_>,
    dir: RunDir,
    options: RunOptions,
) -> Result<Outcome, Failure> {
    let stop = interrupt::install()?;
    let outcome = experiment.resume(dir, options, &stop);
    run_outcome(experiment, outcome)
}

/// Runs a part of a run in a new directory.
pub(crate) fn run_part(
    experiment: &Experiment<'_>,
    destination: Destination<'_>,
) -> Result<EndedPart, Failure> {
    let stop = interrupt::install()?;
    let outcome = experiment.run_part(destination, &stop);
    part_outcome(experiment, outcome)
}

/// Runs the repetitions of a part that are missing in `dir`. `options` is what the earlier process wrote down
/// about the part.
pub(crate) fn resume_part(
    experiment: &Experiment<'_>,
    dir: RunDir,
    options: RunOptions,
) -> Result<EndedPart, Failure> {
    let stop = interrupt::install()?;
    let outcome = experiment.resume_part(dir, options, &stop);
    part_outcome(experiment, outcome)
}

fn run_outcome(
    experiment: &Experiment<'_>,
    outcome: Result<talkpath_experiment::Outcome, Error>,
) -> Result<Outcome, Failure> {
    let outcome = outcome.map_err(|error| experiment_failure(error, experiment.records))?;
    let failure = outcome.failure.map(|error| early_end(error, experiment, &outcome.dir));
    Ok(Outcome { dir: outcome.dir, summary: outcome.summary, failure })
}

fn part_outcome(
    experiment: &Experiment<'_>,
    outcome: Result<PartOutcome, Error>,
) -> Result<EndedPart, Failure> {
    let mut outcome = outcome.map_err(|error| experiment_failure(error, experiment.records))?;
    let failure = outcome.failure.take().map(|error| early_end(error, experiment, &outcome.dir));
    Ok(EndedPart { outcome, failure })
}

/// Makes the failure for `error`, which ended `experiment` early. If `dir` holds finished repetitions, the
/// failure names the command that goes on with the run.
fn early_end(error: Error, experiment: &Experiment<'_>, dir: &RunDir) -> Failure {
    let mut help = String::new();
    if dir.has_parts() {
        help = format!("\nhelp: {} run --resume {}", program(), shell_path(dir.path()));
        if let Some(to) = &experiment.place.to {
            help += &format!(" --to {}", shell_word(to));
        }
    }
    let error = match error {
        Error::Interrupted(what) => Error::Interrupted(what + &help),
        Error::FarEnd(what) => Error::FarEnd(what + &help),
        other => other,
    };
    experiment_failure(error, experiment.records)
}

/// Makes the failure of the command for the `error` of an experiment. If a disk was full, the failure says
/// how the run needs less space or another disk.
pub(crate) fn experiment_failure(error: Error, records: Records) -> Failure {
    let is_disk_full = error.is_disk_full();
    let failure = Failure::from(error);
    if !is_disk_full {
        return failure;
    }
    let fewer_records = match records {
        Records::None => "",
        Records::Summary | Records::All => "`--records none` writes the figures alone; ",
    };
    failure.with_help(format!("{fewer_records}`--out DIR` names another folder for runs"))
}

/// Writes to the terminal what happens in an experiment.
pub(crate) struct TerminalObserver {
    terminal: Terminal,
    /// The records that the experiment writes.
    records: Records,
    /// The progress bar. It exists only while repetitions run.
    progress: RwLock<Option<Progress>>,
    has_bar: bool,
    /// Writes the events as JSON, if `--progress json` is given.
    events: Option<JsonEvents>,
    /// Draws the experiment, if `--tui` is given and a person watches.
    dashboard: Option<Dashboard>,
}

impl TerminalObserver {
    pub(crate) fn new(terminal: Terminal, records: Records) -> Self {
        let events = terminal.is_json().then(|| JsonEvents::new(terminal));
        let dashboard = terminal.shows_dashboard().then(|| Dashboard::new(terminal.is_verbose()));
        let has_bar = events.is_none() && dashboard.is_none();
        Self { terminal, records, progress: RwLock::new(None), has_bar, events, dashboard }
    }

    /// Makes an observer without a bar, because the terminal belongs to a program.
    pub(crate) fn without_bar(terminal: Terminal, records: Records) -> Self {
        Self { has_bar: false, dashboard: None, ..Self::new(terminal, records) }
    }

    fn progress(&self) -> RwLockReadGuard<'_, Option<Progress>> {
        self.progress.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts `progress` in the place of the progress bar, and returns the bar that was there before.
    fn replace_progress(&self, progress: Option<Progress>) -> Option<Progress> {
        let mut place = self.progress.write().unwrap_or_else(PoisonError::into_inner);
        core::mem::replace(&mut place, progress)
    }

    fn show_repetition(&self, cell: u64, repetition: u64, seed: u64, disturbed: Option<Disturbed<'_>>) {
        let state = match disturbed {
            None => "done".to_owned(),
            Some(Disturbed { other_runs, warnings }) => {
                format!("disturbed beside {}: {}", counted(other_runs, "other"), warnings.join("; "))
            }
        };
        self.terminal.detail(&format!("cell {cell} repetition {repetition} seed {seed}: {state}"));
    }
}

impl Observer for TerminalObserver {
    fn observe(&self, event: Event<'_>) {
        if self.events.as_ref().is_some_and(|events| events.print(&event))
            || self.dashboard.as_ref().is_some_and(|dashboard| dashboard.take(&event))
        {
            return;
        }
        match event {
            Event::Directory(path) => self.terminal.detail(&format!("run directory: {}", path.display())),
            Event::Begun { .. } if !self.has_bar => {}
            Event::Begun { repetitions, whole, .. } => {
                self.replace_progress(Some(Progress::start(self.terminal, repetitions, whole)));
            }
            Event::Advanced(path_time) => {
                if let Some(progress) = &*self.progress() {
                    progress.advance(path_time);
                }
            }
            Event::Counted => {
                if let Some(progress) = &*self.progress() {
                    progress.count_repetition();
                }
            }
            Event::Over => {
                if let Some(progress) = self.replace_progress(None) {
                    progress.clear();
                }
            }
            Event::Ended { id, seed, disturbed } => {
                self.show_repetition(id.cell, id.repetition, seed.get(), disturbed);
            }
            Event::Figures(_) => {}
            Event::RunsAgain { disturbed, again, at_most } => {
                self.terminal.note(&format!("{} (--run-again)", runs_again(disturbed, again, at_most)));
            }
            Event::CannotRun { cell, why } => {
                self.terminal.warning(&format!("cell {cell} cannot run here: {why}"));
            }
            Event::NotKeptAwake(why) => self.terminal.warning(&format!("--keep-awake does nothing: {why}")),
            Event::AlsoFailed(error) => {
                self.terminal.error(&experiment_failure(error, self.records).to_string());
            }
        }
    }
}

/// Says that `again` of the `disturbed` repetitions run again, and how much path time they add at most.
pub(crate) fn runs_again(disturbed: usize, again: usize, at_most: Duration) -> String {
    let which = if again == disturbed { "run".to_owned() } else { format!("{again} of them run") };
    let seconds = at_most.as_nanos().div_ceil(1_000_000_000);
    format!(
        "{} disturbed past the stated limits: {which} again, which adds at most {seconds} s of path time in all",
        counted(disturbed, "repetition")
    )
}

/// The progress of an experiment, and its bar on standard error.
struct Progress {
    terminal: Terminal,
    bar: ProgressBar,
    repetitions: u64,
    finished: AtomicU64,
    begun: Instant,
    /// When the last line was printed where no person watches a bar, in s since `begun`. 0 before the first.
    line_s: AtomicU64,
}

/// Where standard error is a file, a line says at most every 10 s how far the run is. We chose 10 s because a
/// shorter run needs no line, and a run of an hour has 360 lines.
const LINE_EVERY_S: u64 = 10;

impl Progress {
    /// Shows an empty bar for `repetitions` that take `path_time` together. The bar is hidden if no person
    /// watches.
    fn start(terminal: Terminal, repetitions: u64, path_time: Duration) -> Self {
        let target = if terminal.shows_progress() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(path_time.as_millis()), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}, {eta} left") {
            bar.set_style(style.progress_chars("=> "));
        }
        let (begun, line_s) = (Instant::now(), AtomicU64::new(0));
        let progress = Self { terminal, bar, repetitions, finished: AtomicU64::new(0), begun, line_s };
        progress.show_count();
        progress
    }

    /// Moves the bar by a stretch of path time.
    fn advance(&self, path_time: Duration) {
        self.bar.inc(path_time.as_millis());
    }

    /// Counts a repetition that has finished.
    fn count_repetition(&self) {
        self.finished.fetch_add(1, Ordering::Relaxed);
        self.show_count();
        if let Some(line) = self.line_after(self.begun.elapsed().as_secs()) {
            self.terminal.note(&line);
        }
    }

    /// The line to print after `seconds`. `None` if a bar is shown, or if the last line is too recent.
    fn line_after(&self, seconds: u64) -> Option<String> {
        let last = self.line_s.load(Ordering::Relaxed);
        let is_due = self.bar.is_hidden() && seconds >= last + LINE_EVERY_S;
        // Of the threads that finish repetitions at the same time, one prints the line.
        let is_ours =
            || self.line_s.compare_exchange(last, seconds, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        (is_due && is_ours()).then(|| format!("{} after {seconds} s", self.count_words()))
    }

    fn count_words(&self) -> String {
        let finished = self.finished.load(Ordering::Relaxed);
        format!("{finished} of {}", counted(self.repetitions, "repetition"))
    }

    fn show_count(&self) {
        self.bar.set_message(self.count_words());
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::path::Path;

    use super::*;

    #[test]
    fn lines_of_progress_are_at_least_ten_seconds_apart_also_after_a_long_repetition() {
        let progress = Progress {
            bar: ProgressBar::hidden(),
            ..Progress::start(Terminal::plain(), 20, Duration::from_secs(20))
        };
        let lines = [4, 100, 101, 109, 110].map(|seconds| progress.line_after(seconds).is_some());
        assert_eq!(lines, [false, true, false, false, true]);
    }

    #[test]
    fn what_runs_again_says_for_how_long_at_most() {
        let note = runs_again(3, 2, Duration::from_millis(49_001));
        assert_eq!(
            note,
            "3 repetitions disturbed past the stated limits: 2 of them run again, which adds at most 50 s of path \
             time in all"
        );
        assert!(
            runs_again(1, 1, Duration::from_secs(5))
                .starts_with("1 repetition disturbed past the stated limits: run again,")
        );
    }

    #[test]
    fn a_full_disk_has_what_helps_and_fewer_records_only_where_there_are_any() {
        let error = |kind: ErrorKind| Error::write(Path::new("packets.parquet"), kind.into());
        let help = |kind, records| experiment_failure(error(kind), records).to_string();
        assert!(help(ErrorKind::StorageFull, Records::All).ends_with(
            "help: `--records none` writes the figures alone; `--out DIR` names another folder for runs"
        ));
        assert!(
            help(ErrorKind::StorageFull, Records::None)
                .ends_with("help: `--out DIR` names another folder for runs")
        );
        assert!(!help(ErrorKind::PermissionDenied, Records::All).contains("help:"));
    }
}

//! How experiments run under this program: what happens in them is said on the terminal, with a bar if a
//! person watches, and how they ended becomes how the command ends.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use talkpath_experiment::choice::Records;
use talkpath_experiment::observer::{Disturbed, Event, Observer};
use talkpath_experiment::place::Place;
use talkpath_experiment::resumable::Resumable;
use talkpath_experiment::run_dir::RunDir;
use talkpath_experiment::{Destination, Error, Experiment, PartOutcome};
use talkpath_measure::summary::Summary;
use talkpath_units::{Duration, counted};

use crate::failure::Failure;
use crate::interrupt;
use crate::terminal::{Terminal, program, shell_path, shell_word};

/// What came of a whole run. One that ended early has both: what was measured, and why it ended.
pub(crate) struct Outcome {
    pub(crate) dir: RunDir,
    pub(crate) summary: Summary,
    pub(crate) failure: Option<Failure>,
}

/// Runs all of `experiment` in a new directory.
pub(crate) fn run(experiment: &Experiment<'_>, folder: Destination<'_>) -> Result<Outcome, Failure> {
    let stop = interrupt::install()?;
    ended(experiment, experiment.run(folder, &stop))
}

/// Runs what is missing of `experiment` in `dir`, which `begun` describes.
pub(crate) fn resume(experiment: &Experiment<'_>, dir: RunDir, begun: Resumable) -> Result<Outcome, Failure> {
    let stop = interrupt::install()?;
    ended(experiment, experiment.resume(dir, begun, &stop))
}

/// Runs a part of a run in a new directory; also returns why it ended early, if it did.
pub(crate) fn run_part(
    experiment: &Experiment<'_>,
    folder: Destination<'_>,
) -> Result<(PartOutcome, Option<Failure>), Failure> {
    let stop = interrupt::install()?;
    part_ended(experiment, experiment.run_part(folder, &stop))
}

/// Runs what is missing of a part of a run; also returns why it ended early, if it did.
pub(crate) fn resume_part(
    experiment: &Experiment<'_>,
    dir: RunDir,
    begun: Resumable,
) -> Result<(PartOutcome, Option<Failure>), Failure> {
    let stop = interrupt::install()?;
    part_ended(experiment, experiment.resume_part(dir, begun, &stop))
}

fn ended(
    experiment: &Experiment<'_>,
    outcome: Result<talkpath_experiment::Outcome, Error>,
) -> Result<Outcome, Failure> {
    let outcome = outcome.map_err(|why| failed(why, experiment.records))?;
    let failure = outcome.failure.map(|why| with_resume_command(why, experiment, &outcome.dir));
    Ok(Outcome { dir: outcome.dir, summary: outcome.summary, failure })
}

fn part_ended(
    experiment: &Experiment<'_>,
    outcome: Result<PartOutcome, Error>,
) -> Result<(PartOutcome, Option<Failure>), Failure> {
    let mut outcome = outcome.map_err(|why| failed(why, experiment.records))?;
    let failure = outcome.failure.take().map(|why| with_resume_command(why, experiment, &outcome.dir));
    Ok((outcome, failure))
}

/// What ended `experiment`, with the command that goes on with what `dir` holds.
fn with_resume_command(error: Error, experiment: &Experiment<'_>, dir: &RunDir) -> Failure {
    let resume = || {
        let Place { to, .. } = &experiment.place;
        let to = to.as_ref().map_or_else(String::new, |to| format!(" --to {}", shell_word(to)));
        format!("\nhelp: {} run --resume {}{to}", program(), shell_path(dir.path()))
    };
    let error = match error {
        Error::Interrupted(what) if dir.has_parts() => Error::Interrupted(what + &resume()),
        Error::FarEnd(what) if dir.has_parts() => Error::FarEnd(what + &resume()),
        other => other,
    };
    failed(error, experiment.records)
}

/// What `error` means for the command. What could not be written for want of room has what helps with it.
pub(crate) fn failed(error: Error, records: Records) -> Failure {
    let is_full = error.is_want_of_room();
    let failure = Failure::from(error);
    if !is_full {
        return failure;
    }
    let fewer = match records {
        Records::None => "",
        Records::Summary | Records::All => "`--records none` writes the figures alone; ",
    };
    failure.with_help(format!("{fewer}`--out DIR` names another folder for runs"))
}

/// Says on the terminal what happens in an experiment.
pub(crate) struct TerminalObserver {
    terminal: Terminal,
    /// What the experiment writes.
    records: Records,
    bar: RwLock<Option<Bar>>,
}

/// A bar on standard error, only if a person watches.
struct Bar {
    bar: ProgressBar,
    total: u64,
    done: AtomicU64,
}

impl TerminalObserver {
    pub(crate) const fn new(terminal: Terminal, records: Records) -> Self {
        Self { terminal, records, bar: RwLock::new(None) }
    }

    fn bar(&self) -> RwLockReadGuard<'_, Option<Bar>> {
        self.bar.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn put_bar(&self, bar: Option<Bar>) -> Option<Bar> {
        let mut place = self.bar.write().unwrap_or_else(PoisonError::into_inner);
        core::mem::replace(&mut place, bar)
    }
}

impl Observer for TerminalObserver {
    fn observe(&self, event: Event<'_>) {
        match event {
            Event::Directory(path) => self.terminal.detail(&format!("run directory: {}", path.display())),
            Event::Begun { repetitions, whole } => {
                self.put_bar(Some(Bar::new(self.terminal, repetitions, whole)));
            }
            Event::Advanced(by) => self.bar().iter().for_each(|it| it.bar.inc(by.as_millis())),
            Event::Counted => self.bar().iter().for_each(Bar::count),
            Event::Over => self.put_bar(None).iter().for_each(|it| it.bar.finish_and_clear()),
            Event::Ended { id, seed, disturbed } => {
                let told = match disturbed {
                    None => "done".to_owned(),
                    Some(Disturbed { others, warnings }) => {
                        format!("disturbed beside {}: {}", counted(others, "other"), warnings.join("; "))
                    }
                };
                let seed = seed.get();
                self.terminal
                    .detail(&format!("cell {} repetition {} seed {seed}: {told}", id.cell, id.repetition));
            }
            Event::RunsAgain { disturbed, again, at_most } => {
                self.terminal.note(&format!("{} (--run-again)", runs_again(disturbed, again, at_most)));
            }
            Event::CannotRun { cell, why } => {
                self.terminal.warning(&format!("cell {cell} cannot run here: {why}"));
            }
            Event::NotKeptAwake(why) => self.terminal.warning(&format!("--keep-awake does nothing: {why}")),
            Event::AlsoFailed(why) => self.terminal.error(&failed(why, self.records).to_string()),
        }
    }
}

/// That `again` of the `disturbed` repetitions run again, and the path time that it adds.
pub(crate) fn runs_again(disturbed: usize, again: usize, at_most: Duration) -> String {
    let which = if again == disturbed { "run".to_owned() } else { format!("{again} of them run") };
    let (count, seconds) = (counted(disturbed, "repetition"), at_most.as_nanos().div_ceil(1_000_000_000));
    format!(
        "{count} disturbed past the stated limits: {which} again, which adds at most {seconds} s of path time in all"
    )
}

impl Bar {
    /// `total` repetitions that take `whole` of path time in all.
    fn new(terminal: Terminal, total: u64, whole: Duration) -> Self {
        let target = match terminal.shows_progress() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(whole.as_millis()), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}, {eta} left") {
            bar.set_style(style.progress_chars("=> "));
        }
        let bar = Self { bar, total, done: AtomicU64::new(0) };
        bar.show();
        bar
    }

    fn count(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
        self.show();
    }

    fn show(&self) {
        let (done, total) = (self.done.load(Ordering::Relaxed), counted(self.total, "repetition"));
        self.bar.set_message(format!("{done} of {total}"));
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::path::Path;

    use super::*;

    #[test]
    fn what_runs_again_says_for_how_long_at_most() {
        let told = runs_again(3, 2, Duration::from_millis(49_001));
        assert_eq!(
            told,
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
        let help = |kind, records| failed(error(kind), records).to_string();
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

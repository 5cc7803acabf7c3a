//! A bar on standard error, only if a person watches.

use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use talkpath_units::{Duration, Instant};

use crate::terminal::Terminal;

/// How far all repetitions are together, in their own time.
pub(crate) struct Progress {
    bar: ProgressBar,
    total: u64,
    done: AtomicU64,
}

impl Progress {
    /// `count` repetitions that take `whole` of their own time in all.
    pub(crate) fn new(terminal: Terminal, count: u64, whole: Duration) -> Self {
        let target = match terminal.shows_progress() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(whole.as_millis()), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}, {eta} left") {
            bar.set_style(style.progress_chars("=> "));
        }
        let progress = Self { bar, total: count, done: AtomicU64::new(0) };
        progress.show();
        progress
    }

    /// One repetition begins.
    pub(crate) fn repetition(&self, duration: Duration) -> Repetition<'_> {
        Repetition { progress: self, reached: AtomicU64::new(0), end: duration.as_millis() }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn show(&self) {
        self.bar.set_message(format!("{} of {} repetitions", self.done.load(Ordering::Relaxed), self.total));
    }
}

/// How far one repetition is.
pub(crate) struct Repetition<'a> {
    progress: &'a Progress,
    reached: AtomicU64,
    end: u64,
}

impl Repetition<'_> {
    /// The repetition's own time is `now`.
    pub(crate) fn reach(&self, now: Instant) {
        self.reach_millis(now.as_nanos() / 1_000_000);
    }

    /// The repetition is over.
    pub(crate) fn finish(self) {
        self.reach_millis(self.end);
        self.progress.done.fetch_add(1, Ordering::Relaxed);
        self.progress.show();
    }

    /// The repetition does not count: it runs again.
    pub(crate) fn take_back(self) {
        let reached = self.reached.load(Ordering::Relaxed);
        let bar = &self.progress.bar;
        bar.set_position(bar.position().saturating_sub(reached));
    }

    fn reach_millis(&self, millis: u64) {
        let now = millis.min(self.end);
        let before = self.reached.fetch_max(now, Ordering::Relaxed);
        self.progress.bar.inc(now.saturating_sub(before));
    }
}

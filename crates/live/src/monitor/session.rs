//! One session of a monitor, and the wait before the next one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use talkpath_arena::{ArenaError, MonitorSession};
use talkpath_kernel::clock::monotonic;
use talkpath_kernel::random::random;
use talkpath_measure::RunRecord;
use talkpath_units::{Duration, Instant};

use crate::client::BegunRun;

/// The time after which a session does not count as a failure, whatever ended it, ns. We chose 5 s, which is
/// half of the shortest usual session: one interval of 10 s.
const LASTING_NS: u64 = 5_000_000_000;
/// The shortest wait between attempts, ns. We chose 1 s, so that a restarted server is found soon.
const FIRST_BACK_OFF_NS: i64 = 1_000_000_000;
/// The longest wait between attempts, ns. We chose 60 s, so that a server that is away for long is asked once
/// a minute.
const LAST_BACK_OFF_NS: i64 = 60_000_000_000;

/// Runs a session until its end, or until an error or a panic ends it.
pub(super) fn run_session(
    begun: BegunRun<'_>,
    number: u64,
    length: Duration,
    progress: &Progress,
) -> MonitorSession {
    let start_ns = begun.start_ns();
    catch_panic(number, start_ns, length, progress, || measure(begun, number, length, progress))
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
    let record_time = |now: Instant| progress.record(now.as_nanos(), length);
    let ended = begun.watched_by(&record_time).run();
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
    progress.record(measured.as_nanos(), length);
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

/// The progress of a session. The session's thread writes it, and the scheduler reads it.
#[derive(Default)]
pub(super) struct Progress {
    /// The time since the session began, ns.
    now_ns: AtomicU64,
    is_over: AtomicBool,
    /// The failures before the session, which are forgotten once the session has lasted.
    failures: Arc<Failures>,
}

impl Progress {
    pub(super) fn new(failures: Arc<Failures>) -> Self {
        Self { failures, ..Self::default() }
    }

    /// Records that a session of `length` has run for `now_ns`.
    fn record(&self, now_ns: u64, length: Duration) {
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
pub(super) struct RunningSession {
    /// CLOCK_MONOTONIC at the planned end.
    pub(super) end_ns: i64,
    length: Duration,
    progress: Arc<Progress>,
}

impl RunningSession {
    pub(super) fn new(start_ns: i64, length: Duration, progress: Arc<Progress>) -> Self {
        Self { end_ns: start_ns.saturating_add(nanoseconds(length)), length, progress }
    }

    /// Returns true if the session ended before its planned end.
    pub(super) fn ended_early(&self) -> bool {
        self.progress.is_over.load(Ordering::Acquire)
            && self.progress.now_ns.load(Ordering::Relaxed) < self.length.as_nanos()
    }

    /// Returns true if the session was cut short at once, which is a failure.
    pub(super) fn was_cut_short_at_once(&self) -> bool {
        self.ended_early() && self.progress.now_ns.load(Ordering::Relaxed) < lasting_ns(self.length)
    }

    /// Returns true if the session still sends.
    pub(super) fn is_sending(&self) -> bool {
        !self.ended_early() && monotonic() < self.end_ns
    }
}

/// The number of consecutive failures. A failure is a session that could not begin, or that was cut short at
/// once. The number sets the back-off.
#[derive(Default)]
pub(super) struct Failures(AtomicU32);

impl Failures {
    /// Counts a failure. Returns how long to wait before the next attempt, in ns.
    pub(super) fn add(&self) -> i64 {
        back_off_ns(self.0.fetch_add(1, Ordering::Relaxed))
    }

    /// Forgets the failures, because a session has lasted.
    fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
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

pub(super) fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use talkpath_measure::{Fate, FlowInfo, FlowRecord, MessageRecord};
    use talkpath_units::Bytes;

    use super::*;

    #[test]
    fn a_session_that_panics_is_one_that_was_cut_short_there() {
        let progress = Arc::<Progress>::default();
        let running = RunningSession {
            end_ns: 1_600,
            length: Duration::from_nanos(100),
            progress: Arc::clone(&progress),
        };
        let measured = catch_panic(3, 1_500, running.length, &progress, || {
            progress.now_ns.store(40, Ordering::Relaxed);
            panic!("as a fault would");
        });
        assert!(running.was_cut_short_at_once(), "the next one waits");
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
    fn sessions_that_are_cut_at_once_become_rarer_until_one_lasts() {
        let failures = Arc::<Failures>::default();
        let cut = |length_ms: u64, at_ms: u64| {
            let (length, at) = (Duration::from_millis(length_ms), Duration::from_millis(at_ms));
            let progress = Arc::new(Progress { failures: Arc::clone(&failures), ..Progress::default() });
            progress.record(at.as_nanos(), length);
            progress.is_over.store(true, Ordering::Release);
            let running = RunningSession { end_ns: 0, length, progress };
            running.was_cut_short_at_once().then(|| failures.add() / 500_000_000)
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

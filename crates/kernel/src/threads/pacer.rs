//! The pacer, the thread that makes ends send on time. It keeps a calendar with the next deadline of each
//! end: the time of its next message, or of a timer of its connection.
//!
//! ```text
//!  each turn:  take the deadlines that moved forward ─► serve each end that is due ─► sleep to the next deadline
//! ```
//!
//! The alarm (`alarm.rs`) ends the sleep early if a deadline moves forward.
//!
//! Begin to read with [`pace_with`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use talkpath_units::wheel::{Key, Wheel};
use talkpath_units::{Duration, Instant};

use super::MAX_SLEEP;
use crate::alarm::Alarm;
use crate::clock::RunClock;
use crate::end::SharedEnd;
use crate::sys::become_real_time;
use crate::throttle::Throttle;

/// The longest time from the start of the pacer to the beginning of the run.
const MAX_LEAD: Duration = Duration::from_secs(5);
/// The expected time between two deadlines. We chose that of 1,000 calls with a message every 20 ms.
const DEADLINE_INTERVAL: Duration = Duration::from_micros(20);
/// The interval at which the pacer asks all ends for their deadlines. Some events move a deadline without an
/// alarm, for example the opening of a connection.
const FULL_VISIT_INTERVAL: Duration = MAX_SLEEP;

/// The means by which a pacer may be punctual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Punctuality {
    /// True if the pacer runs in SCHED_FIFO where that is allowed. It then runs before all ordinary threads.
    pub real_time: bool,
    /// True if the pacer spins for the last 60 us before a deadline. Otherwise it wakes up about 60 us after
    /// it.
    pub spins: bool,
}

/// Runs the pacer with all means of punctuality, as [`pace_with`] does.
pub fn pace(ends: &[Arc<SharedEnd>], clock: RunClock, alarm: &Alarm, stop: &AtomicBool) -> Option<String> {
    pace_with(Punctuality { real_time: true, spins: true }, ends, clock, alarm, stop)
}

/// Runs the pacer until `stop` is set. It calls each end when its next message or timer is due. `alarm` wakes
/// the pacer if the deadline of an end moves forward. Returns the reason if the thread could not become a
/// real-time thread.
pub fn pace_with(
    punctuality: Punctuality,
    ends: &[Arc<SharedEnd>],
    clock: RunClock,
    alarm: &Alarm,
    stop: &AtomicBool,
) -> Option<String> {
    // With the default timer slack, the kernel may wake the thread 50 us late (prctl(2), PR_SET_TIMERSLACK).
    let _ = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(1));
    let real_time_error = if punctuality.real_time { become_real_time().err() } else { None };
    let mut calendar = Calendar::new(ends);
    let mut throttle = if punctuality.spins { Throttle::new() } else { Throttle::without_spinning() };
    // Before the run begins, the clock reads zero. So a flow that starts at zero would send too early.
    clock.sleep_until(Instant::ZERO, MAX_LEAD);
    while !stop.load(Ordering::Relaxed) {
        let turn = calendar.serve(ends, clock, alarm);
        throttle.count_deadlines(turn.met_deadlines);
        alarm.sleep_until(clock, turn.next_deadline, MAX_SLEEP, &mut throttle);
    }
    real_time_error.map(|error| error.to_string())
}

/// The next deadline of each end. The key of an end is its index.
struct Calendar {
    wheel: Wheel,
    /// The time of the last turn. No deadline in `wheel` is earlier.
    now: Instant,
    next_full_visit: Instant,
    /// The deadlines that have moved forward since the last turn. Empty between two turns.
    moved: Vec<(Key, Instant)>,
    /// The ends to visit in this turn. Empty between two turns.
    to_visit: Vec<Key>,
}

/// The result of one turn of the pacer.
struct Turn {
    next_deadline: Instant,
    /// The number of deadlines that the pacer has waited for, and that have come.
    met_deadlines: usize,
}

impl Calendar {
    fn new(ends: &[Arc<SharedEnd>]) -> Self {
        for (index, end) in ends.iter().enumerate() {
            end.lock().set_pacer_key(Key(u32::try_from(index).unwrap_or(u32::MAX)));
        }
        Self {
            wheel: Wheel::new(ends.len(), DEADLINE_INTERVAL),
            now: Instant::ZERO,
            next_full_visit: Instant::ZERO,
            moved: Vec::new(),
            to_visit: Vec::new(),
        }
    }

    /// Calls each end that is due, once.
    fn serve(&mut self, ends: &[Arc<SharedEnd>], clock: RunClock, alarm: &Alarm) -> Turn {
        alarm.take_moved_deadlines(&mut self.moved);
        for (key, deadline) in self.moved.drain(..) {
            self.wheel.arm(key, deadline.max(self.now));
        }
        self.now = clock.now();
        let is_full_visit = self.choose_ends_to_visit(ends.len());
        let mut met_deadlines = 0;
        for key in self.to_visit.drain(..) {
            let shared = &ends[key.0 as usize];
            let mut end = shared.lock();
            let is_due = end.poll_timeout().is_some_and(|timeout| timeout <= clock.now());
            if is_due {
                end.handle_timeout(clock.now());
            }
            if is_full_visit {
                end.note_visit();
            }
            let next = end.poll_timeout().unwrap_or(Instant::MAX).max(self.now);
            // An end in a burst is due again at once. The pacer does not wait for it, so it has met no
            // deadline.
            met_deadlines += usize::from(is_due && next > self.now);
            end.note_armed(next);
            self.wheel.arm(key, next);
            drop(end);
            if is_due {
                shared.step_ready();
            }
        }
        Turn { next_deadline: self.wheel.next().unwrap_or(Instant::MAX), met_deadlines }
    }

    /// Fills `to_visit` with the ends whose deadline has come, or with all ends if a full visit is due.
    /// Returns true if it is a full visit.
    fn choose_ends_to_visit(&mut self, ends: usize) -> bool {
        while let Some((_, key)) = self.wheel.pop(self.now) {
            self.to_visit.push(key);
        }
        if self.now < self.next_full_visit {
            return false;
        }
        self.next_full_visit = self.now.saturating_add(FULL_VISIT_INTERVAL);
        self.to_visit.clear();
        self.to_visit.extend((0..ends).filter_map(|index| u32::try_from(index).ok().map(Key)));
        true
    }
}

#[cfg(test)]
mod tests;

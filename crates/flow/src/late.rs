//! An application that is late to its own clock: a real one's timer wakes it some microseconds after the
//! time.
//!
//! Each message that the clock makes due is written a time uniform in [0, `most`) later; it keeps its due
//! time.

use talkpath_units::{Duration, Instant, Stream};

/// How late it is, drawn anew for each due time.
pub(crate) struct Late {
    most: Duration,
    stream: Stream,
    /// What it waits for, and when it will have woken up for that.
    due: Instant,
    until: Instant,
}

impl Late {
    pub(crate) const fn new(most: Duration, stream: Stream) -> Self {
        Self { most, stream, due: Instant::MAX, until: Instant::MAX }
    }

    /// When it wakes up for what is `due`, as far as that is drawn.
    pub(crate) fn wakes(&self, due: Instant) -> Instant {
        if self.due == due { self.until } else { due }
    }

    /// Whether it sleeps at `now` for what is `due` next.
    pub(crate) fn sleeps(&mut self, due: Instant, now: Instant) -> bool {
        if due != self.due {
            (self.due, self.until) = (due, due + self.stream.span(Duration::ZERO, self.most));
        }
        now < self.until
    }
}

#[cfg(test)]
mod tests {
    use talkpath_units::Seed;

    use super::*;

    #[test]
    fn each_due_time_has_a_wait_of_its_own_below_the_bound() {
        let most = Duration::from_micros(60);
        let mut late = Late::new(most, Seed::new(1).stream("late"));
        let mut waits = Vec::new();
        for frame in 1..50 {
            let due = Instant::from_millis(20 * frame);
            assert_eq!(late.wakes(due), due);
            assert!(late.sleeps(due, Instant::from_millis(20 * frame - 1)));
            let wakes = late.wakes(due);
            assert!(due <= wakes && wakes < due + most, "{wakes}");
            assert!(!late.sleeps(due, wakes) && late.wakes(due) == wakes);
            waits.push(wakes.since(due));
        }
        waits.sort_unstable();
        waits.dedup();
        assert!(waits.len() > 45, "{waits:?}");
    }
}

//! The seconds of a run in which messages were due that were lost or came after the deadline. They show
//! whether a change of the path is to blame. Only flows over a path that changes have them.
//!
//! ```text
//!  due          0 s      1 s      2 s      3 s
//!  lost          .        .       50        7        outage from 2 s to 3.1 s
//!  late          .        .        .        4
//!  bad seconds                 [2, 50, 0] [3, 7, 4]
//! ```

use talkpath_units::Duration;

use super::trip::Trip;

/// A second with bad messages: its number from the start of the run, how many messages that were due in it
/// are lost, and how many came after the deadline.
pub type BadSecond = (u32, u32, u32);

/// Bad messages are counted in this many seconds from the start of a run. We chose 3600 because few runs last
/// longer than an hour, and the list takes at most 60 kB in summary.json.
pub(crate) const MOST_SECONDS: u64 = 3600;

/// Counts the bad messages by the second in which they were due.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BadSeconds {
    /// `None` if the flow has no deadline: then no message is late.
    deadline: Option<Duration>,
    /// The bad seconds. They are in order, because messages come in the order in which they were due.
    seconds: Vec<BadSecond>,
}

impl BadSeconds {
    pub(crate) const fn new(deadline: Option<Duration>) -> Self {
        Self { deadline, seconds: Vec::new() }
    }

    /// Counts one more trip.
    #[inline]
    pub(crate) fn add(&mut self, trip: &Trip) {
        let is_late = match (trip.delay(), self.deadline) {
            (Some(delay), Some(deadline)) => i128::from(delay.as_nanos()) > i128::from(deadline.as_nanos()),
            _ => false,
        };
        if is_late || trip.is_missing() {
            self.add_bad(trip.due.as_nanos() / 1_000_000_000, is_late);
        }
    }

    #[cold]
    fn add_bad(&mut self, second: u64, is_late: bool) {
        if second >= MOST_SECONDS {
            return;
        }
        let second = second as u32;
        if self.seconds.last().is_none_or(|last| last.0 != second) {
            self.seconds.push((second, 0, 0));
        }
        if let Some((_, lost, late)) = self.seconds.last_mut() {
            *(if is_late { late } else { lost }) += 1;
        }
    }

    /// Forgets which messages were late, because the times are unknown.
    pub(crate) fn remove_times(&mut self) {
        self.deadline = None;
        self.seconds.retain_mut(|second| {
            second.2 = 0;
            second.1 > 0
        });
    }

    pub(crate) fn finish(self) -> Vec<BadSecond> {
        self.seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{flow, ms};

    #[test]
    fn lost_and_late_messages_count_in_the_second_in_which_they_were_due() {
        // A message each 20 ms: 50 a second. Those of the second second are lost, and five of the third late.
        let delays: Vec<Option<u64>> = (0..200_u64)
            .map(|number| match number {
                50..100 => None,
                100..105 => Some(400),
                _ => Some(30),
            })
            .collect();
        let call = flow(&delays);
        let mut counter = BadSeconds::new(Some(Duration::from_millis(150)));
        call.trips(&(ms(0)..ms(10_000))).iter().for_each(|trip| counter.add(trip));
        assert_eq!(counter.clone().finish(), [(1, 50, 0), (2, 0, 5)]);
        counter.remove_times();
        assert_eq!(counter.finish(), [(1, 50, 0)]);
    }
}

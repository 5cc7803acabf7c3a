//! Messages that arrived in time: by their deadline, or early enough for a conversation.

use talkpath_units::Duration;

use super::loss::{LossCounts, rate};
use super::runs::Runs;
use super::trip::Trip;

/// The limit of a one-way delay in a conversation. ITU-T G.114 (05/2003) finds that below it nearly every
/// application behaves as if there were no delay, and that no network should be planned for more than 400
/// ms. G.114 counts from mouth to ear. The delay that is measured here is the part of the network and the
/// transport.
pub const ONE_WAY_LIMIT: Duration = Duration::from_millis(150);
/// The limit of a round trip in a conversation: twice the one-way limit.
pub const ROUND_TRIP_LIMIT: Duration = Duration::from_millis(300);

/// Returns the longest delay of a message in time, if the scenario names no deadline. The delay counts from
/// the due time.
pub const fn limit(is_echo: bool) -> Duration {
    if is_echo { ROUND_TRIP_LIMIT } else { ONE_WAY_LIMIT }
}

/// Counts the trips that ended by a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InTime {
    /// The longest delay from the due time.
    deadline: Duration,
    count: u64,
    /// The runs of messages in time, and of those that are not.
    runs: Runs,
}

impl InTime {
    /// Makes a counter without trips.
    pub fn new(deadline: Duration) -> Self {
        Self { deadline, count: 0, runs: Runs::default() }
    }

    /// Counts one more trip.
    #[inline]
    pub fn add(&mut self, trip: &Trip) {
        let is_in_time = trip
            .delay()
            .is_some_and(|delay| i128::from(delay.as_nanos()) <= i128::from(self.deadline.as_nanos()));
        self.count += u64::from(is_in_time);
        self.runs.add(!is_in_time);
    }

    /// Returns how many of `trips` ended by the deadline.
    pub fn of(deadline: Duration, trips: &[Trip]) -> u64 {
        let mut in_time = Self::new(deadline);
        trips.iter().for_each(|trip| in_time.add(trip));
        in_time.count
    }

    /// Returns the share of messages in time, among all messages that the workload wanted to send. A message
    /// that was lost, refused or unfinished is not in time. Returns `None` if there was no message.
    pub fn share(self, counts: &LossCounts) -> Option<f64> {
        rate(self.count, counts.sent + counts.refused)
    }

    /// Returns how many independent messages tell as much about the share in time. Messages that are late,
    /// lost, refused or unfinished come in runs.
    pub fn independent(self) -> Option<f64> {
        self.runs.independent()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{flow, ms};
    use crate::{Fate, MessageRecord};

    #[test]
    fn what_is_late_lost_refused_or_unfinished_is_not_in_time() {
        let mut call = flow(&[Some(150), Some(151), None, Some(10), Some(10), Some(10)]);
        let without = |fate| MessageRecord { fate, received: None, ..call.forward.messages[3] };
        let (refused, unfinished) = (without(Fate::Refused), without(Fate::Unfinished));
        (call.forward.messages[4], call.forward.messages[5]) =
            (MessageRecord { seq: 4, ..refused }, MessageRecord { seq: 5, ..unfinished });
        let trips = call.trips(&(ms(0)..ms(1_000)));
        let mut in_time = InTime::new(limit(false));
        assert_eq!(in_time.share(&LossCounts::default()), None);
        trips.iter().for_each(|trip| in_time.add(trip));
        assert_eq!(in_time.count, 2, "150 ms is in time, 151 ms is not");
        assert_eq!(in_time.share(&LossCounts::of(&trips)), Some(2.0 / 6.0));
    }
}

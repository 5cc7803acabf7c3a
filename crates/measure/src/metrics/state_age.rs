//! The age of the newest state: how old what a receiver knows is, at each tick of the sender's clock.
//!
//! ```text
//!  state due     0 ──── 1 ──── 2 ──── 3 ──── 4        one each tick
//!  arrived          0      1         3  2             2 came after 3 and says nothing new
//!  age at a tick        1      1      2     1         ticks since the newest state that is there was due
//! ```
//!
//! A message of a game or a sensor replaces those before it. What counts is not when each came but how old
//! the newest is when the receiver needs it: at each tick, that is, at each message's due time. Before the
//! first state came there is none, and no age. As a trip ends, so an age does: at the far application, with
//! an echo back at the sender.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use talkpath_units::{Instant, SignedDuration};

use super::percentile::{PerMille, nearest_rank};
use super::trip::Trip;
use crate::summary::StateAgeMs;

/// Follows the newest state that is there, from tick to tick.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NewestState {
    /// States that come after the latest tick: when each comes, and when it was due.
    under_way: UnderWay,
    /// When the newest that is there was due.
    newest: Option<Instant>,
}

#[derive(Clone, Debug, Default)]
struct UnderWay(BinaryHeap<Reverse<(Instant, Instant)>>);

impl PartialEq for UnderWay {
    fn eq(&self, other: &Self) -> bool {
        self.0.clone().into_sorted_vec() == other.0.clone().into_sorted_vec()
    }
}

impl NewestState {
    /// The next message by number, whose due time is a tick: the age of the newest state at that tick.
    pub(crate) fn tick(&mut self, trip: &Trip) -> Option<SignedDuration> {
        if let Some(at) = trip.received() {
            self.under_way.0.push(Reverse((at, trip.due)));
        }
        while let Some(&Reverse((at, due))) = self.under_way.0.peek()
            && at <= trip.due
        {
            self.newest = self.newest.max(Some(due));
            self.under_way.0.pop();
        }
        self.newest.map(|newest| trip.due.signed_since(newest))
    }
}

/// The ages at the ticks of `trips`, all of a flow's, that `counts` picks; `None` if there is none.
pub(crate) fn statistics(trips: &[Trip], counts: impl Fn(&Trip) -> bool) -> Option<StateAgeMs> {
    let mut newest = NewestState::default();
    let ages = trips.iter().filter_map(|trip| newest.tick(trip).filter(|_| counts(trip)));
    let mut ages: Vec<_> = ages.collect();
    ages.sort_unstable();
    let at = |per_mille| nearest_rank(&ages, PerMille(per_mille)).map(SignedDuration::as_millis_f64);
    Some(StateAgeMs { p50: at(500)?, p99: at(990)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{flow, ms};

    /// The ages at the ticks of states that are due each 20 ms, in ms.
    fn ages(delays_ms: &[Option<u64>]) -> Vec<Option<f64>> {
        let mut newest = NewestState::default();
        let trips = flow(delays_ms).trips(&(ms(0)..Instant::MAX));
        trips.iter().map(|trip| newest.tick(trip).map(SignedDuration::as_millis_f64)).collect()
    }

    #[test]
    fn a_state_ages_from_its_due_time_until_a_newer_one_is_there() {
        // There at 20, 40, 75, 70 and 130 ms: the third after the fourth, which is newer.
        let ages = ages(&[Some(20), Some(20), Some(35), Some(10), Some(50), None, None]);
        let is = [None, Some(20.0), Some(20.0), Some(40.0), Some(20.0), Some(40.0), Some(60.0)];
        assert_eq!(ages, is);
    }

    #[test]
    fn an_outage_ages_what_is_there_and_a_late_crowd_counts_by_its_newest() {
        // Five wait for a retransmission and come at once, at 200 ms.
        let delays: Vec<_> =
            (0..12).map(|seq| Some(if (5..10).contains(&seq) { 200 - 20 * seq } else { 10 })).collect();
        let ages = ages(&delays);
        let at = |tick: usize| ages[tick].unwrap();
        assert_eq!((at(5), at(9), at(10), at(11)), (20.0, 100.0, 20.0, 20.0));
    }

    #[test]
    fn percentiles_are_of_the_ticks_that_count() {
        let trips = flow(&[Some(10); 100]).trips(&(ms(0)..Instant::MAX));
        let all = statistics(&trips, |_| true).unwrap();
        assert_eq!((all.p50, all.p99), (20.0, 20.0));
        assert_eq!(statistics(&trips, |_| false), None);
        let never = flow(&[None; 3]).trips(&(ms(0)..Instant::MAX));
        assert_eq!(statistics(&never, |_| true), None);
    }
}

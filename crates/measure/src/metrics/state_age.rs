//! The age of the newest state: how old the latest information of a receiver is, at each tick of the sender's
//! clock.
//!
//! ```text
//!  state due     0 ──── 1 ──── 2 ──── 3 ──── 4        one at each tick
//!  arrived          0      1         3  2             2 came after 3 and is of no use
//!  age at a tick        1      1      2     1         ticks since the newest state that has arrived was due
//! ```
//!
//! In a game or from a sensor, each message is a *state* that replaces the states before it. It does not
//! matter when each state arrives. It matters how old the newest state is when the receiver needs it, which
//! is at each tick. A tick is the due time of a message. Before the first state arrives there is no age. A
//! state of an echo flow has arrived when its echo is back at the sender.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use talkpath_units::{Histogram, Instant, SignedDuration};

use super::percentile::{PerMille, nearest_rank};
use super::trip::Trip;
use crate::summary::StateAgeMs;

/// Follows the newest state at the receiver, from tick to tick.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NewestState {
    /// The states that arrive after the latest tick.
    under_way: StatesUnderWay,
    /// The due time of the newest state that has arrived.
    newest_due: Option<Instant>,
}

/// States by the time of their arrival, the earliest first.
#[derive(Clone, Debug, Default)]
struct StatesUnderWay(BinaryHeap<Reverse<StateUnderWay>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct StateUnderWay {
    arrival: Instant,
    due: Instant,
}

impl PartialEq for StatesUnderWay {
    fn eq(&self, other: &Self) -> bool {
        // Two heaps with the same states may be ordered differently in memory.
        self.0.clone().into_sorted_vec() == other.0.clone().into_sorted_vec()
    }
}

impl NewestState {
    /// Adds the next message by number. Returns the age of the newest state at its due time, which is a tick.
    pub(crate) fn tick(&mut self, trip: &Trip) -> Option<SignedDuration> {
        let states = &mut self.under_way.0;
        if let Some(arrival) = trip.received() {
            states.push(Reverse(StateUnderWay { arrival, due: trip.due }));
        }
        while let Some(&Reverse(state)) = states.peek()
            && state.arrival <= trip.due
        {
            self.newest_due = self.newest_due.max(Some(state.due));
            states.pop();
        }
        self.newest_due.map(|newest_due| trip.due.signed_since(newest_due))
    }
}

/// Counts the ages of a flow during the run, without its rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StateAgeCounter {
    newest: NewestState,
    pub(crate) ages: Histogram,
}

impl StateAgeCounter {
    /// Adds the next message by number. Its tick counts if `is_counted` is true.
    pub(crate) fn tick(&mut self, trip: &Trip, is_counted: bool) {
        // A state before the counted ticks may still be the newest one later, so every tick is followed.
        let age = self.newest.tick(trip);
        if let Some(age) = age
            && is_counted
        {
            self.ages.record(age);
        }
    }
}

/// Returns the statistics of the ages at the ticks for which `is_counted` returns true. `trips` has all
/// messages of the flow. Returns `None` if there is no such age.
pub(crate) fn statistics(trips: &[Trip], is_counted: impl Fn(&Trip) -> bool) -> Option<StateAgeMs> {
    let mut newest = NewestState::default();
    let mut ages = Vec::new();
    for trip in trips {
        let age = newest.tick(trip);
        if is_counted(trip) {
            ages.extend(age);
        }
    }
    ages.sort_unstable();
    let percentile = |share| nearest_rank(&ages, PerMille(share)).map(SignedDuration::as_millis_f64);
    Some(StateAgeMs { p50: percentile(500)?, p99: percentile(990)? })
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

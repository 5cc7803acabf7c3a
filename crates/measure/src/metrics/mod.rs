//! The metrics: pure functions from a flow's records to figures, one file a metric.
//!
//! Definitions, formulas, units and sources for a reader of the figures are in docs/reference/metrics.md.
//! Each file cites the document that it follows.

pub(crate) mod beyond_least;
pub(crate) mod call;
pub mod confidence;
pub mod delay;
pub mod delay_in_words;
pub mod delay_variation;
pub mod e_model;
pub mod fairness;
pub(crate) mod frames;
pub mod gaps;
pub mod goodput;
pub mod histogram;
pub mod in_time;
pub mod legs;
pub mod loss;
pub mod percentile;
pub mod playout;
pub mod reordering;
pub mod settling;
pub mod share;
pub(crate) mod state_age;
pub mod time_to_receive;
pub mod trip;

use self::in_time::InTime;
use self::loss::{LossCounts, RunCounter};
use self::time_to_receive::Stamps;
use self::trip::Trip;
use crate::Terms;

/// The metrics that go through a flow's trips one by one. A run that keeps its rows and a run that does not
/// count with the same code.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TripCounters {
    pub(crate) counts: LossCounts,
    /// `None` if the flow has no deadline, or if it is not known which messages met it.
    pub(crate) in_time: Option<InTime>,
    pub(crate) loss_runs: RunCounter,
    pub(crate) stamps: Stamps,
}

impl TripCounters {
    /// Counters of a flow with these `terms`, before its first trip.
    pub(crate) fn new(terms: &Terms) -> Self {
        Self {
            counts: LossCounts::default(),
            in_time: terms.deadline.map(InTime::new),
            loss_runs: RunCounter::default(),
            stamps: Stamps::default(),
        }
    }

    /// Counts the next trip. Trips come in order of `seq`.
    #[inline(always)]
    pub(crate) fn add(&mut self, trip: &Trip) {
        // A counter that is left out here is an unused variable.
        let Self { counts, in_time, loss_runs, stamps } = self;
        counts.add(trip);
        in_time.iter_mut().for_each(|in_time| in_time.add(trip));
        loss_runs.add(trip);
        stamps.add(trip);
    }

    /// Removes what the times of trips need that are not known: their ends, or two clocks that agree.
    pub(crate) fn remove_times(&mut self) {
        self.in_time = None;
    }

    /// The counters after all of `trips`.
    pub(crate) fn of(terms: &Terms, trips: &[Trip]) -> Self {
        let mut counters = Self::new(terms);
        trips.iter().for_each(|trip| counters.add(trip));
        counters
    }
}

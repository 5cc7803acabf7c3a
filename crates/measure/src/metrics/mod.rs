//! The metrics: pure functions from the records of a flow to figures. Each metric has a file of its own,
//! which cites the document that it follows. docs/reference/metrics.md has the definitions, formulas and
//! units for a reader of the figures.

pub mod adaptive;
pub mod bad_seconds;
pub(crate) mod call;
pub mod certainty;
pub mod confidence;
pub mod delay;
pub mod delay_in_words;
pub mod delay_variation;
pub mod e_model;
pub mod fairness;
pub(crate) mod frames;
pub mod gaps;
pub mod goodput;
pub(crate) mod goodput_counter;
pub mod histogram;
pub mod in_time;
pub mod legs;
pub mod loss;
pub(crate) mod minimum_plus_wait;
pub(crate) mod payload_sizes;
pub mod percentile;
pub mod playout;
pub(crate) mod reassembly;
pub mod reordering;
pub(crate) mod runs;
pub mod settling;
pub mod share;
pub(crate) mod state_age;
pub mod time_to_receive;
pub(crate) mod timeline;
pub mod trip;
pub(crate) mod waits;
pub mod windows;

use talkpath_units::Duration;

use self::bad_seconds::BadSeconds;
use self::in_time::InTime;
use self::loss::{LossCounts, RunCounter};
use self::time_to_receive::{Stamps, error_adjusted_rate_pps, net_rate_pps};
use self::trip::{Passage, Trip};
use crate::Terms;
use crate::summary::FlowSummary;

/// The metrics that go through the messages of a flow one by one. Runs with rows and runs without rows use
/// the same code.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TripCounters {
    pub(crate) counts: LossCounts,
    /// `None` if the flow has no deadline, or if it is not known which messages met it.
    in_time: Option<InTime>,
    pub(crate) loss_runs: RunCounter,
    pub(crate) stamps: Stamps,
    /// `None` if the path does not change.
    bad_seconds: Option<BadSeconds>,
}

impl TripCounters {
    /// Makes the counters of a flow with these `terms`.
    pub(crate) fn new(terms: &Terms) -> Self {
        Self {
            counts: LossCounts::default(),
            in_time: terms.deadline.map(InTime::new),
            loss_runs: RunCounter::default(),
            stamps: Stamps::default(),
            bad_seconds: terms.path_changes.then(|| BadSeconds::new(terms.deadline)),
        }
    }

    /// Counts the next message in the order of `seq`.
    #[inline(always)]
    pub(crate) fn add(&mut self, passage: Passage<'_>) {
        // A counter that this function forgets is an unused variable, so the compiler warns.
        let Self { counts, in_time, loss_runs, stamps, bad_seconds } = self;
        let Passage { trip, .. } = passage;
        counts.add(trip);
        if let Some(in_time) = in_time {
            in_time.add(trip);
        }
        loss_runs.add(trip);
        stamps.add(trip);
        if let Some(bad_seconds) = bad_seconds {
            bad_seconds.add(trip);
        }
    }

    /// Removes the figures that need the times of trips, if these times are unknown.
    pub(crate) fn remove_times(&mut self) {
        self.in_time = None;
        self.bad_seconds.iter_mut().for_each(BadSeconds::remove_times);
    }

    /// Returns the counters of `trips`. `ways_out` has the one-way trip to the receiver of each of these
    /// messages. It is `None` if the clocks of the two hosts are not trusted.
    pub(crate) fn of(terms: &Terms, trips: &[Trip], ways_out: Option<&[Trip]>) -> Self {
        let mut counters = Self::new(terms);
        for (index, trip) in trips.iter().enumerate() {
            let out = ways_out.and_then(|ways_out| ways_out.get(index));
            debug_assert!(out.is_none_or(|out| out.seq == trip.seq), "one message");
            counters.add(Passage { trip, out });
        }
        counters
    }

    /// Returns the figures of these counters. All other figures of the flow are empty.
    pub(crate) fn figures(self) -> FlowSummary {
        // A counter that this function forgets is an unused variable, so the compiler warns.
        let Self { counts, in_time, loss_runs, stamps, bad_seconds } = self;
        let time_to_receive = stamps.first_to_last_received();
        let net_rate_pps = time_to_receive.and_then(|duration| net_rate_pps(counts.received, duration));
        FlowSummary {
            sent: counts.sent,
            received: counts.received,
            lost: counts.lost(),
            lost_forward: Some(counts.lost_forward),
            lost_return: Some(counts.lost_return),
            loss_rate: counts.loss_rate(),
            duplicates: counts.duplicates,
            unfinished: counts.unfinished,
            refused: counts.refused,
            expired: counts.expired,
            ledger: Some(counts.ledger()),
            loss_independent: loss_runs.independent(),
            loss_runs: loss_runs.finish(),
            bad_seconds: bad_seconds.map(BadSeconds::finish).unwrap_or_default(),
            in_time: in_time.and_then(|in_time| in_time.share(&counts)),
            in_time_independent: in_time.and_then(InTime::independent),
            net_rate_pps,
            error_adjusted_rate_pps: net_rate_pps.and_then(|rate| error_adjusted_rate_pps(rate, &counts)),
            first_to_last_received_ms: time_to_receive.map(Duration::as_millis_f64),
            ..FlowSummary::default()
        }
    }
}

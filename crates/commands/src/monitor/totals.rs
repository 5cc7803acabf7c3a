//! The totals of a monitor: sums and histograms of each flow over all intervals, and how long nothing was
//! measured. Their size does not grow with time.

use std::cell::Cell;
use std::collections::BTreeMap;

use talkpath_measure::summary::FlowSummary;
use talkpath_units::{Duration, Histogram};

use super::alerts::ThresholdState;
use super::interval::{Counts, Interval};

/// The totals since the monitor began.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// The totals of each flow of the scenario, by the name of the flow.
    pub(crate) flows: BTreeMap<String, FlowTotals>,
    pub(crate) intervals: u64,
    /// Intervals that the machine disturbed past its stated limits, or in which nothing was measured.
    pub(crate) invalid_intervals: u64,
    /// The length of all intervals together.
    pub(crate) measured: Duration,
    pub(crate) outages: u64,
    /// The length of all outages that are over, in ns.
    pub(crate) outage_ns: i64,
    /// The beginning of the current outage, if there is one, in ns of CLOCK_MONOTONIC.
    pub(crate) down_since_ns: Option<i64>,
    /// The largest value that [`Self::outage_counter_s`] has returned, in seconds.
    shown_outage_s: Cell<f64>,
    /// Sessions whose records could not be written.
    pub(crate) unrecorded: u64,
    /// The end of the last interval, in ns of CLOCK_MONOTONIC.
    pub(crate) last_end_ns: Option<i64>,
    /// How far the comparison of both clocks may be wrong in the last session, in ms: half of the smallest
    /// round trip, and the error that may have been added since the comparison.
    pub(crate) clock_uncertainty_ms: Option<f64>,
    /// The thresholds, in the order of the user.
    pub(crate) thresholds: Vec<ThresholdState>,
}

#[derive(Debug, Default)]
pub(crate) struct FlowTotals {
    pub(crate) transport: String,
    pub(crate) counts: Counts,
    pub(crate) round_trips: Histogram,
    pub(crate) one_way: Histogram,
    /// The figures of the last interval that has figures.
    pub(crate) last: FlowSummary,
}

impl Totals {
    pub(crate) fn add(&mut self, interval: &Interval) {
        self.intervals += 1;
        self.invalid_intervals += u64::from(!interval.valid);
        self.measured = self.measured.saturating_add(interval.length);
        let length_ns = i64::try_from(interval.length.as_nanos()).unwrap_or(i64::MAX);
        self.last_end_ns = Some(interval.start_ns.saturating_add(length_ns));
        self.clock_uncertainty_ms = interval
            .clock
            .as_ref()
            .and_then(|clock| Some(clock.uncertainty_ms? + clock.change_uncertainty_ms.unwrap_or(0.0)));
        for flow in &interval.flows {
            let totals = self.flows.entry(flow.name.clone()).or_default();
            totals.transport.clone_from(&flow.figures.transport);
            totals.counts.add(&flow.counts);
            totals.round_trips.merge(&flow.round_trips);
            totals.one_way.merge(&flow.one_way);
            totals.last = FlowSummary { breaks: Vec::new(), ..flow.figures.clone() };
        }
    }

    /// Notes that an outage began at `from_ns`.
    pub(crate) fn go_down(&mut self, from_ns: i64) {
        self.outages += 1;
        self.down_since_ns = Some(from_ns);
    }

    /// Notes that the outage ended at `to_ns`.
    pub(crate) fn come_up(&mut self, to_ns: i64) {
        if let Some(from_ns) = self.down_since_ns.take() {
            self.outage_ns += (to_ns - from_ns).max(0);
        }
    }

    /// Returns the length of all outages until `now_ns`, in seconds. The current outage counts too.
    pub(crate) fn outage_s(&self, now_ns: i64) -> f64 {
        let open_ns = self.down_since_ns.map_or(0, |from_ns| (now_ns - from_ns).max(0));
        (self.outage_ns + open_ns) as f64 / 1e9
    }

    /// Returns the length of all outages as a counter, which must never fall (OpenMetrics 1.0, "Counter").
    /// The monitor learns the end of an outage a little late, so the counter first runs too far. It then
    /// stays until the true length has reached it.
    pub(crate) fn outage_counter_s(&self, now_ns: i64) -> f64 {
        self.shown_outage_s.set(self.outage_s(now_ns).max(self.shown_outage_s.get()));
        self.shown_outage_s.get()
    }

    /// Returns the counts of all flows together.
    pub(crate) fn sum(&self) -> Counts {
        let mut sum = Counts::default();
        self.flows.values().for_each(|flow| sum.add(&flow.counts));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::interval::split;
    use crate::monitor::interval::tests::session;

    /// Everything that a total holds beyond its own fields.
    fn retained(totals: &Totals) -> usize {
        let of_flow = |flow: &FlowTotals| {
            let runs = flow.last.breaks.len() + flow.last.settling.as_ref().map_or(0, |_| 1);
            flow.round_trips.buckets().count() + flow.one_way.buckets().count() + runs
        };
        totals.flows.len() + totals.flows.values().map(of_flow).sum::<usize>()
    }

    #[test]
    fn totals_are_the_sums_of_the_intervals() {
        let (mut totals, mut sum) = (Totals::default(), Counts::default());
        for number in 0..3 {
            for interval in split(&session(number, 0, 10_000, 7), Duration::from_millis(900)) {
                sum.add(&interval.sum());
                totals.add(&interval);
            }
        }
        assert_eq!(totals.sum(), sum);
        assert_eq!((sum.sent, totals.intervals), (1_500, 36));
        assert_eq!(totals.measured, Duration::from_secs(30));
        assert_eq!(totals.flows["call"].one_way.count(), sum.received);
    }

    #[test]
    fn what_is_retained_does_not_grow_with_time() {
        let mut totals = Totals::default();
        let mut after = Vec::new();
        for number in 0..200 {
            split(&session(number, 0, 1_000, 7), Duration::from_secs(1))
                .iter()
                .for_each(|interval| totals.add(interval));
            after.push(retained(&totals));
        }
        assert_eq!(totals.sum().sent, 10_000);
        assert_eq!((after[0], after[199]), (after[199], after[0]), "{after:?}");
        assert!(after[0] < 10);
    }

    #[test]
    fn an_outage_counts_while_it_lasts_and_once() {
        let mut totals = Totals::default();
        totals.go_down(1_000_000_000);
        assert_eq!((totals.outages, totals.outage_s(3_000_000_000)), (1, 2.0));
        totals.come_up(4_000_000_000);
        totals.come_up(9_000_000_000);
        assert_eq!((totals.outages, totals.outage_s(9_000_000_000)), (1, 3.0));
    }

    #[test]
    fn the_counter_of_outages_stands_still_when_the_end_of_one_is_told_late() {
        let mut totals = Totals::default();
        totals.go_down(1_000_000_000);
        assert_eq!(totals.outage_counter_s(4_250_000_000), 3.25);
        totals.come_up(4_000_000_000);
        assert_eq!((totals.outage_counter_s(5_000_000_000), totals.outage_s(5_000_000_000)), (3.25, 3.0));
        totals.go_down(6_000_000_000);
        assert_eq!(totals.outage_counter_s(6_100_000_000), 3.25);
        assert_eq!(totals.outage_counter_s(7_000_000_000), 4.0);
    }
}

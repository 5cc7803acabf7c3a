//! Stops: times in which the emulator's thread did not run although it had work. The whole path stands still
//! then.
//!
//! The percentiles of the lateness of all packets do not show a stop. A stop of 100 ms delays few packets of
//! a call, and a thousandth of the packets of a fast transfer. So each figure is judged by the stop that it
//! can tolerate:
//!
//! | figures of a flow | they are valid as long as |
//! | --- | --- |
//! | the quantile q of its delays | at most (1 - q) / 4 of its messages were late by more than 1 ms |
//! | goodput, cwnd and queue, without a clock | no stop outlasts its queue, or a thousandth of the run |
//!
//! Both limits are chosen. By the first limit, the path causes at least three quarters of the delays beyond a
//! quantile. For the second limit: the model serves a queue during a stop too. If the queue lasts longer than
//! the stop, the link was never idle because of the stop.

use talkpath_measure::LateFlow;
use talkpath_measure::metrics::percentile::PerMille;
use talkpath_units::{Duration, Instant, counted, is_or_are, times};

/// The stops of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stops {
    pub(crate) count: u64,
    /// The time of all stops together.
    pub(crate) total: Duration,
    pub(crate) longest: Duration,
}

impl Stops {
    /// Records a stop if the thread runs at `now` and should have run at `expected`.
    pub(crate) fn record(&mut self, expected: Instant, now: Instant) {
        let away = now.since(expected);
        if away > STOP && expected > Instant::ZERO {
            self.count += 1;
            self.total = self.total.saturating_add(away);
            self.longest = self.longest.max(away);
        }
    }

    /// The warning about the stops. `None` if there were none.
    pub(crate) fn warning(&self) -> Option<String> {
        let ms = Duration::as_millis_f64;
        if self.count == 0 {
            return None;
        }
        let times = times(self.count);
        let (total, longest) = (ms(self.total), ms(self.longest));
        Some(format!("the path stood still {times}, {total:.1} ms in all, at most {longest:.1} ms"))
    }
}

/// How the machine disturbed one flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FlowLateness {
    /// How often a packet of the flow was late by more than [`LATE`], in either direction. Acknowledgements
    /// count too.
    pub(crate) packets: LateFlow,
    /// The longest stop that the flow's queue tolerates. `None` for a flow with a clock.
    pub(crate) tolerated_stop: Option<Duration>,
}

impl FlowLateness {
    /// The warning that names the figures of the flow that are not valid, and why. `None` if all are valid.
    pub(crate) fn judge(&self, stops: &Stops) -> Option<String> {
        let LateFlow { name, messages, late } = &self.packets;
        if let Some(tolerated) = self.tolerated_stop {
            return (stops.longest > tolerated).then(|| {
                format!(
                    "flow {name}: a stop of {:.1} ms is longer than the {:.1} ms that its queue bears, so its goodput, cwnd \
                     and queue are not the path's alone",
                    stops.longest.as_millis_f64(),
                    tolerated.as_millis_f64()
                )
            });
        }
        let invalid: Vec<&str> = QUANTILES
            .into_iter()
            .filter(|(_, quantile)| !self.packets.bears(*quantile))
            .map(|(word, _)| word)
            .collect();
        (!invalid.is_empty()).then(|| {
            format!(
                "flow {name}: the machine made packets late by more than 1 ms {}, for {}, so \
                 its {} {} not the path's alone",
                counted(*late, "time"),
                counted(*messages, "message"),
                invalid.join(", "),
                is_or_are(invalid.len() as u64)
            )
        })
    }

    /// Returns true if the flow has a clock. Its delays are then judged by the number of late packets.
    pub(crate) const fn is_clocked(&self) -> bool {
        self.tolerated_stop.is_none()
    }
}

/// The quantiles by which a flow is judged.
const QUANTILES: [(&str, PerMille); 3] =
    [("p50", PerMille(500)), ("p90", PerMille(900)), ("p99", PerMille(990))];
/// The lateness of the thread from which on there is a stop (the limit of the emulator's lateness).
const STOP: Duration = Duration::from_millis(1);
/// The lateness of a packet above which it counts against the quantiles of its flow.
pub(crate) const LATE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn call(messages: u64, late: u64) -> Option<String> {
        let packets = LateFlow { name: "call".to_owned(), messages, late };
        FlowLateness { packets, tolerated_stop: None }.judge(&Stops::default())
    }

    #[test]
    fn a_quantile_falls_when_more_than_a_quarter_of_what_lies_beyond_it_was_late() {
        assert_eq!((call(1000, 0), call(1000, 2)), (None, None));
        let says = |late| call(1000, late).unwrap();
        assert!(says(3).contains("so its p99 is not") && says(25).contains("so its p99 is not"));
        assert!(says(26).contains("so its p90, p99 are not"), "{}", says(26));
        assert!(says(126).contains("so its p50, p90, p99 are not"));
        assert!(call(50, 1).is_some(), "its p99 is its largest");
    }

    #[test]
    fn a_transfer_bears_a_stop_that_its_queue_outlasts() {
        let judged = |stop_ms: u64| {
            let tolerated_stop = Some(Duration::from_millis(20));
            let packets = LateFlow { name: "bulk".to_owned(), ..LateFlow::default() };
            let flow = FlowLateness { packets, tolerated_stop };
            let mut stops = Stops::default();
            stops.record(Instant::from_secs(1), Instant::from_millis(1000 + stop_ms));
            flow.judge(&stops)
        };
        assert_eq!(judged(20), None);
        assert!(judged(100).unwrap().contains("a stop of 100.0 ms is longer than the 20.0 ms"));
    }

    #[test]
    fn stops_are_counted_from_a_millisecond_on_and_only_during_the_run() {
        let mut stops = Stops::default();
        stops.record(Instant::ZERO, Instant::from_secs(3));
        for (at, away_us) in [(1000, 1_000), (2000, 1_001), (3000, 99_000)] {
            let expected = Instant::from_millis(at);
            stops.record(expected, expected.saturating_add(Duration::from_micros(away_us)));
        }
        assert_eq!((stops.count, stops.longest), (2, Duration::from_millis(99)));
        assert_eq!(
            stops.warning().unwrap(),
            "the path stood still 2 times, 100.0 ms in all, at most 99.0 ms"
        );
        assert_eq!(Stops::default().warning(), None);
    }
}

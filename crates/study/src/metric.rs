//! The metrics of a study.
//!
//! A *metric* is a number that a study reads of each run. Its name is one of these:
//!
//! - a *path* into the run's summary, such as `flows.call.loss_rate`;
//! - the name of a *derived* metric, which the study computes from other metrics ([`Derived`]).

mod derived;
mod path;
mod range;
mod unit;
mod unknown;
mod value;

pub use self::derived::{Derived, Metrics, Units};
pub(crate) use self::path::{ValueRange, figure_at};
pub(crate) use self::range::value_range;
pub(crate) use self::unit::unit;
pub(crate) use self::unknown::unknown_metric;
pub(crate) use self::value::{OVER_TIME, WATCHED, value};

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;
    use talkpath_measure::figures::Unit;

    use super::*;

    fn run() -> Json {
        serde_json::json!({
            "flows": {
                "call": { "is_steady": false, "loss_rate": 0.25, "loss_runs": { "histogram": [7, 2] }, "rtt": null, "verdict": "great" },
                "nagle-1": { "rtt": { "p50": 20.0 } },
                "nagle-2": { "rtt": { "p50": 40.0 } },
                "nagle-10": { "rtt": { "p50": 60.0 } },
            },
            "groups": { "ftp": { "goodput_bps": 5.0 } },
        })
    }

    #[test]
    fn a_path_leads_through_tables_and_lists_and_a_group_of_one_is_its_flow() {
        let value_of = |path| value(&run(), path, &Metrics::new());
        assert_eq!(value_of("flows.call.loss_runs.histogram.1"), Some(2.0));
        assert_eq!(value_of("groups.call.loss_rate"), Some(0.25));
        assert_eq!(value_of("groups.ftp.goodput_bps"), Some(5.0));
        assert_eq!(value_of("flows.call.rtt"), None);
        assert_eq!(value_of("links.wan.dropped"), None);
        assert_eq!(value_of("flows.call.verdict=great"), Some(1.0));
        assert_eq!(value_of("flows.call.verdict=bad"), Some(0.0));
        assert_eq!(value_of("flows.call.is_steady=false"), Some(1.0));
        assert_eq!(value_of("flows.call.word=bad"), None);
    }

    #[test]
    fn a_metric_has_the_unit_that_is_stated_or_that_its_parts_share_and_never_that_of_its_name() {
        let text = |text: &str| text.to_owned();
        let (p90, mean) = ("flows.*.round_trip_delay_ms.p90", "flows.udp.one_way_delay_ms.mean");
        let metrics = Metrics::from([
            (text("excess"), Derived::Difference(text(p90), text(mean))),
            (text("mean"), Derived::Mean(vec![text("excess"), text(p90)])),
            (text("half_ms"), Derived::Scaled(text(p90), 0.5)),
            (text("half"), Derived::Scaled(text(p90), 0.5)),
            (text("mixed_ms"), Derived::Sum(vec![text(p90), text("flows.udp.goodput_bps")])),
            (text("times_ms"), Derived::Ratio(text(p90), text(mean))),
            (text("log_ms"), Derived::Mean(vec![text("log.call.end_timestamp")])),
            (text("circle"), Derived::Sum(vec![text("circle")])),
        ]);
        let stated = Units::from([(text("half"), Unit::Ms)]);
        let unit_of = |name| unit(name, &metrics, &stated);
        for name in ["excess", "mean", "half", p90] {
            assert_eq!(unit_of(name), Some(Unit::Ms), "{name}");
        }
        for name in ["half_ms", "mixed_ms", "times_ms", "log_ms", "circle", "delay_ms"] {
            assert_eq!(unit_of(name), None, "{name}");
        }
    }

    #[test]
    fn a_study_makes_numbers_of_others_and_knows_none_where_one_is_unknown() {
        let text = |text: &str| text.to_owned();
        let metrics = Metrics::from([
            (text("slow"), Derived::Share { paths: vec![text("flows.nagle-*.rtt.p50")], above: 30.0 }),
            (text("mean"), Derived::Mean(vec![text("flows.nagle-*.rtt.p50")])),
            (text("excess"), Derived::Difference(text("mean"), text("flows.nagle-1.rtt.p50"))),
            (text("times"), Derived::Ratio(text("excess"), text("flows.call.loss_rate"))),
            (text("unknown"), Derived::Sum(vec![text("mean"), text("flows.call.rtt.p50")])),
            (text("circle"), Derived::Sum(vec![text("circle")])),
            (text("half"), Derived::Scaled(text("mean"), 0.5)),
        ]);
        let value_of = |name| value(&run(), name, &metrics);
        assert_eq!(value_of("slow"), Some(2.0 / 3.0));
        assert_eq!(
            (value_of("mean"), value_of("excess"), value_of("times")),
            (Some(40.0), Some(20.0), Some(80.0))
        );
        assert_eq!((value_of("unknown"), value_of("circle"), value_of("half")), (None, None, Some(20.0)));
    }
}

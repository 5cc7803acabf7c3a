//! Removes the figures of a flow that the machine bent, if it made packets of the flow late and disturbed the
//! run in no other way. The other figures of the flow are still figures of the path. A removed figure is
//! `null`, as if the arena could not know it.
//!
//! | figure | it is a figure of the path as long as |
//! | --- | --- |
//! | a quantile of delays | the flow bears that quantile ([`LateFlow::bears`]) |
//! | a mean of delays | the flow bears the 90th percentile |
//! | the largest delay, a call, what a flow is judged by, RTP's jitter | the flow bears the 99th percentile |
//! | the smallest delay, counts, shares lost, rates | always: the machine made packets late and lost none |
//!
//! We chose the 90th percentile for a mean because fewer late packets hardly move it.
//!
//! The figures of a group pool its flows. A figure of a group is removed if the figure of one of its flows
//! is.

use serde_json::Value as Json;
use talkpath_measure::LateFlow;
use talkpath_measure::figures::{FLOW, GROUP, Unit};
use talkpath_measure::metrics::percentile::PerMille;

use crate::over_time::is_flow_or_copy;

/// Removes the figures that the late packets of `late_flows` bent from `run`, a summary as JSON.
pub(crate) fn remove_bent_figures(run: &mut Json, late_flows: &[LateFlow]) {
    for late_flow in late_flows {
        if let Some(flow) = run["flows"].get_mut(&late_flow.name) {
            for figure in FLOW.rows() {
                remove_if_bent(flow, figure.path, figure.unit, late_flow);
            }
        }
        let Some(groups) = run["groups"].as_object_mut() else { continue };
        for (name, group) in groups {
            if is_flow_or_copy(&late_flow.name, name) {
                for figure in GROUP.rows() {
                    remove_if_bent(group, figure.path, figure.unit, late_flow);
                }
            }
        }
    }
}

/// Sets the figure at `path` of a flow or a group to `null`, if `late_flow` does not bear the quantile that
/// the figure needs.
fn remove_if_bent(figures: &mut Json, path: &str, unit: Unit, late_flow: &LateFlow) {
    let Some(quantile) = needed_quantile(path, unit) else { return };
    if late_flow.bears(quantile) {
        return;
    }
    let mut names = path.split('.');
    if let Some(figure) = names.try_fold(figures, |table, name| table.get_mut(name)) {
        *figure = Json::Null;
    }
}

/// Returns the quantile that a flow must bear so that its figure at `path` is a figure of the path. Returns
/// `None` if late packets never bend the figure.
fn needed_quantile(path: &str, unit: Unit) -> Option<PerMille> {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let is_rated = path.starts_with("call.") || path.starts_with("judged") || name == "in_time";
    if is_rated || path == "rtp_jitter_ms" {
        return Some(PerMille(990));
    }
    if name.ends_with("_ms_p50_mean") {
        return Some(PerMille(500));
    }
    // No message waits for the opening of a flow or for a turn of its own sender. The other figures without a
    // parent are not delays of messages, either.
    let is_delay = unit == Unit::Ms && !matches!(parent, "" | "turn_round_ms");
    if !is_delay {
        return None;
    }
    match name {
        "min" => None,
        "mean" => Some(PerMille(900)),
        _ => Some(quantile(name).unwrap_or(PerMille(990))),
    }
}

/// Reads the name of a percentile: `p90` is 900 per mille, `p999` is 999 per mille.
fn quantile(name: &str) -> Option<PerMille> {
    let digits = name.strip_prefix('p').filter(|digits| digits.len() <= 3)?;
    digits.parse::<u16>().ok().map(|number| PerMille(number * 10_u16.pow(3 - digits.len() as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(name: &str, messages: u64, late: u64) -> LateFlow {
        LateFlow { name: name.to_owned(), messages, late }
    }

    fn run() -> Json {
        let trip = serde_json::json!({ "min": 1.0, "mean": 2.0, "p50": 2.0, "p90": 3.0, "p99": 4.0, "p999": 5.0, "max": 6.0 });
        let flow = serde_json::json!({
            "loss_rate": 0.0, "goodput_bps": 64e3, "in_time": 1.0, "round_trip_delay_ms": trip,
            "call": { "mos": 4.2 }, "opening_ms": 3.0
        });
        let group = serde_json::json!({
            "loss_rate": 0.0, "round_trip_delay_ms_p50_mean": 2.0, "judged": { "by": "mos", "worst": 4.2 }
        });
        serde_json::json!({ "flows": { "call-1": flow, "call-2": flow }, "groups": { "call": group } })
    }

    #[test]
    fn a_figure_falls_with_the_quantile_that_it_needs_and_counts_never_do() {
        let left = |count: u64| {
            let mut run = run();
            remove_bent_figures(&mut run, &[late("call-1", 1000, count)]);
            assert_eq!(run["flows"]["call-2"], self::run()["flows"]["call-2"], "it was not late");
            let flow = &run["flows"]["call-1"];
            assert!(flow["loss_rate"] == 0.0 && flow["goodput_bps"] == 64e3 && flow["opening_ms"] == 3.0);
            let trip = flow["round_trip_delay_ms"].as_object().unwrap().clone();
            let known = trip.iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name.as_str());
            (known.collect::<Vec<_>>().join(" "), !flow["call"]["mos"].is_null(), !flow["in_time"].is_null())
        };
        assert_eq!(left(1), ("min mean p50 p90 p99 max".to_owned(), true, true));
        assert_eq!(left(3), ("min mean p50 p90".to_owned(), false, false));
        assert_eq!(left(26), ("min p50".to_owned(), false, false));
        assert_eq!(left(126), ("min".to_owned(), false, false));
    }

    #[test]
    fn a_group_falls_with_the_first_of_its_flows() {
        let mut run = run();
        remove_bent_figures(&mut run, &[late("call-2", 1000, 130), late("other", 1000, 1000)]);
        let group = &run["groups"]["call"];
        assert!(
            group["round_trip_delay_ms_p50_mean"].is_null() && group["judged"]["worst"].is_null(),
            "{group}"
        );
        assert!(group["loss_rate"] == 0.0, "{group}");
    }

    #[test]
    fn every_delay_of_a_flow_needs_a_quantile_but_the_smallest_and_what_no_message_waits_for() {
        let of = |path: &str| needed_quantile(path, FLOW.row(path).unit);
        assert_eq!(of("round_trip_delay_ms.p999"), Some(PerMille(999)));
        assert_eq!(of("one_way_delay_ms.mean"), Some(PerMille(900)));
        assert_eq!(of("ipdv_ms.p95"), Some(PerMille(950)));
        assert_eq!(of("state_age_ms.p50"), Some(PerMille(500)));
        assert_eq!((of("rtp_jitter_ms"), of("call.mos")), (Some(PerMille(990)), Some(PerMille(990))));
        for path in
            ["one_way_delay_ms.min", "lost", "loss_rate", "goodput_bps", "opening_ms", "turn_round_ms.p99"]
        {
            assert_eq!(of(path), None, "{path}");
        }
    }
}

//! Which figures of a flow are the path's, where the machine made its packets late and disturbed the run in
//! no other way. The others are taken out of the summary, as if the arena could not know them.
//!
//! | figure | it is the path's as long as |
//! | --- | --- |
//! | a quantile of delays | the flow bears that quantile ([`LateFlow::bears`]) |
//! | a mean of delays | the flow bears the 90th percentile (chosen) |
//! | the largest delay, a call, what a flow is judged by, RTP's jitter | the flow bears the 99th percentile |
//! | the smallest delay, counts, shares lost, rates | always: the machine made packets late and lost none |
//!
//! A group's figures pool its flows: they are taken out if those of one flow are.

use serde_json::Value as Json;
use talkpath_measure::LateFlow;
use talkpath_measure::figures::{FLOW, GROUP, Unit};
use talkpath_measure::metrics::percentile::PerMille;

use crate::over_time::is_flow_of;

/// Takes those figures out of `run`, a summary, that are not the path's, since packets of these flows were
/// `late`.
pub(crate) fn take_out(run: &mut Json, late: &[LateFlow]) {
    let flows = || FLOW.rows().map(|figure| (figure.path, figure.unit));
    let groups = || GROUP.rows().map(|figure| (figure.path, figure.unit));
    for flow in late {
        if let Some(summary) = run["flows"].get_mut(&flow.name) {
            take_out_of(summary, flow, flows());
        }
        let Some(all) = run["groups"].as_object_mut() else { continue };
        for (_, summary) in all.iter_mut().filter(|(group, _)| is_flow_of(&flow.name, group)) {
            take_out_of(summary, flow, groups());
        }
    }
}

/// Takes those of `figures` out of `summary` that `flow` does not bear.
fn take_out_of(summary: &mut Json, flow: &LateFlow, figures: impl Iterator<Item = (&'static str, Unit)>) {
    for (path, unit) in figures {
        if needed_quantile(path, unit).is_some_and(|quantile| !flow.bears(quantile)) {
            let mut names = path.split('.');
            if let Some(value) = names.try_fold(&mut *summary, |below, name| below.get_mut(name)) {
                *value = Json::Null;
            }
        }
    }
}

/// The quantile that a flow must bear for its figure at `path` to be the path's; `None` if the figure is the
/// path's whatever was late.
fn needed_quantile(path: &str, unit: Unit) -> Option<PerMille> {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let is_rated = path.starts_with("call.") || path.starts_with("judged") || name == "in_time";
    if is_rated {
        return Some(PerMille(990));
    }
    if name.ends_with("_ms_p50_mean") {
        return Some(PerMille(500));
    }
    if unit != Unit::Ms || matches!(parent, "" | "turn_round_ms") && name != "rtp_jitter_ms" {
        return None;
    }
    match name {
        "min" => None,
        "mean" => Some(PerMille(900)),
        _ => Some(quantile(name).unwrap_or(PerMille(990))),
    }
}

/// `p90` as 900, `p999` as 999.
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
            take_out(&mut run, &[late("call-1", 1000, count)]);
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
        take_out(&mut run, &[late("call-2", 1000, 130), late("other", 1000, 1000)]);
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

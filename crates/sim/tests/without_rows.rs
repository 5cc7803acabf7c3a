//! A run without rows gives the summary of a run with them: exact but for percentiles, which are off by a
//! stated share.

use std::collections::BTreeMap;

use crate::common;
use talkpath_measure::summarise::{flow_metrics, summarise};
use talkpath_units::Histogram;

const SCENARIO: &str = r#"
name = "calls beside an upload"
duration = "40 s"
warm_up = "3 s"
path = "home-adsl"

[flow.call]
transport = "udp"
workload = { kind = "voice", codec = "g711", echo = true }

[flow.stream-call]
transport = "tcp"
workload = { kind = "voice", codec = "g711", echo = true, echo_write = "per-read" }

[flow.one-way]
transport = "tcp-nodelay"
workload = { kind = "cbr", rate = "100 kbps", size = "500 B" }
send_jitter = "3 ms"

[flow.burst]
transport = "udp"
workload = { kind = "burst", count = 30, size = "1200 B", repeat = 20, gap = "1 s", deadline = "200 ms" }

[flow.state]
transport = "tcp"
workload = { kind = "cbr", message_rate = "30 Hz", size = "100 B", state = true, deadline = "60 ms" }

[flow.state-echo]
transport = "udp"
workload = { kind = "cbr", message_rate = "60 Hz", size = "50 B", state = true, echo = true }

[flow.fixed-call]
transport = "udp"
workload = { kind = "voice", playout = { kind = "fixed", delay = "40 ms" }, concealment = "g711-appendix-i" }
direction = "both"

[flow.upload]
transport = "tcp"
workload = { kind = "bulk" }
start = "5 s"
"#;

#[test]
fn a_summary_without_rows_differs_by_no_more_than_the_histograms_error() {
    let (rows, none) = (common::run(SCENARIO), common::run_without_rows(SCENARIO));
    assert!(none.flows.iter().all(|flow| flow.forward.messages.is_empty() && flow.forward.reads.is_empty()));
    let (exact, told) = (summarise(&rows, &BTreeMap::new()), summarise(&none, &BTreeMap::new()));
    assert_eq!(exact.links, told.links);
    for (name, flow) in &exact.flows {
        let told = &told.flows[name];
        assert!(flow.received > 20, "{name} is no test: {}", flow.received);
        assert_eq!((&flow.loss_runs, &flow.verdict), (&told.loss_runs, &told.verdict), "{name}");
        let (exact, told) = (flow_metrics(flow), flow_metrics(told));
        assert_eq!(exact.len(), told.len(), "{name}");
        for ((metric, exact), (other, told)) in exact.into_iter().zip(told) {
            let is_percentile = metric.contains(".p");
            // Delays under a microsecond share a bucket.
            let slack = if is_percentile {
                exact.abs() * Histogram::RELATIVE_ERROR + 0.001
            } else {
                exact.abs() * 1e-12
            };
            assert_eq!(metric, other);
            assert!((told - exact).abs() <= slack, "{name}: {metric} is {told} for {exact}");
        }
    }
}

#[test]
fn two_runs_without_rows_are_equal() {
    assert_eq!(common::run_without_rows(SCENARIO), common::run_without_rows(SCENARIO));
}

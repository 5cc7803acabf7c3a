//! A call over each of DCCP's congestion controls, on a path with and without delay: what must hold for any.

use crate::common;
use talkpath_measure::summarise::summarise;
use talkpath_measure::{DropCause, Fate, RunRecord};

fn call(transport: &str, one_way_ms: u64) -> RunRecord {
    common::run(&format!(
        r#"
        name = "call"
        duration = "30 s"
        [path]
        up = {{ rate = "1 Gbps", delay = "{one_way_ms} ms" }}
        down = {{ rate = "1 Gbps", delay = "{one_way_ms} ms" }}
        [flow.call]
        transport = "{transport}"
        workload = {{ kind = "voice", rtp = false, codec = "g711", echo = true }}
        "#
    ))
}

/// The same where nothing takes any time: the round trip is zero to the nanosecond.
fn call_within_a_host(transport: &str) -> RunRecord {
    common::run(&format!(
        r#"
        name = "call"
        duration = "30 s"
        [path]
        up = {{ delay = "0 ms" }}
        down = {{ delay = "0 ms" }}
        [flow.call]
        transport = "{transport}"
        workload = {{ kind = "voice", rtp = false, codec = "g711", echo = true }}
        "#
    ))
}

fn holds_for_any(record: &RunRecord, name: &str) {
    let forward = &record.flows[0].forward;
    let echo = record.flows[0].echo.as_ref().expect("the call has an echo");
    // A frame each 20 ms for 30 s, less what is due before the connection is open.
    assert!((1_490..=1_500).contains(&forward.messages.len()), "{name}: {}", forward.messages.len());
    let delivered = forward.count(Fate::Delivered);
    assert_eq!(echo.messages.len(), delivered, "{name}: what arrived was written back");
    for link in &record.links {
        assert_eq!((link.lost, link.dropped), (0, 0), "{name}");
    }
    for leg in [forward, echo] {
        // The path loses nothing, so what is missing found no room in the sender's own queue.
        let unsent = leg.messages.iter().filter(|row| row.drop_cause == Some(DropCause::SendQueue)).count();
        assert_eq!(leg.count(Fate::Missing), unsent, "{name}");
    }
    let goodput = summarise(record, &Default::default()).flows["call"].goodput_bps.expect("frames arrived");
    assert!(goodput <= 64_000.0 * 1.001, "{name}: {goodput}");
    // 29 s of 30 at the least: each congestion control has found the codec's rate by then.
    assert!(delivered >= 1_300, "{name}: {delivered} frames arrived");
}

#[test]
fn a_call_is_conserved_repeatable_and_within_the_codecs_rate() {
    for transport in ["dccp-ccid2", "dccp-ccid3", "dccp-ccid4"] {
        for (name, run) in [
            ("40 ms", &(|| call(transport, 20)) as &dyn Fn() -> RunRecord),
            ("serialisation alone", &|| call(transport, 0)),
            ("nothing", &|| call_within_a_host(transport)),
        ] {
            let record = run();
            holds_for_any(&record, &format!("{transport}, {name}"));
            assert_eq!(record, run(), "{transport}, {name}");
        }
    }
}

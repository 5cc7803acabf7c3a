//! A far host whose clock is wrong: what the probes tell of it, which figures stand, and which do not.

use crate::common;
use talkpath_measure::RunRecord;
use talkpath_measure::judge::judge;
use talkpath_measure::summarise::summarise;
use talkpath_measure::summary::Basis;

/// A call with its echo, and one from the far host, over 30 ms there and 10 ms back; `clock` is the far
/// host's.
fn run(clock: &str) -> RunRecord {
    common::run(&format!(
        r#"
        name = "wrong clock"
        duration = "40 s"
        {clock}
        [path]
        up = {{ rate = "1 Gbps", delay = "30 ms" }}
        down = {{ rate = "1 Gbps", delay = "10 ms" }}
        [flow.call]
        transport = "tcp-nodelay"
        workload = {{ kind = "voice", codec = "g711", echo = true }}
        [flow.back]
        transport = "udp"
        workload = "voice"
        direction = "down"
        "#
    ))
}

fn one_way_ms(record: &RunRecord, flow: &str) -> Option<f64> {
    summarise(record, &Default::default()).flows[flow].one_way_delay_ms.as_ref().map(|delay| delay.p50)
}

fn round_trip_ms(record: &RunRecord) -> f64 {
    let summary = summarise(record, &Default::default());
    summary.flows["call"].round_trip_delay_ms.as_ref().expect("echoes came back").p50
}

#[test]
fn a_clock_that_is_off_and_steady_is_corrected_within_half_the_round_trip() {
    let right = run("");
    for offset in ["200 ms", "5 s"] {
        let record = run(&format!("far_clock = {{ offset = \"{offset}\" }}"));
        let clock = &record.clock;
        assert!(clock.trusted, "{}", clock.why);
        let milliseconds = if offset == "5 s" { 5000.0 } else { 200.0 };
        assert!((clock.offset_ms.unwrap() - milliseconds).abs() <= clock.uncertainty_ms.unwrap());
        // No exchange can tell 30 ms there and 10 ms back from 20 and 20 (RFC 5905 §8).
        for (flow, truth) in [("call", 30.0), ("back", 10.0)] {
            let shown = one_way_ms(&record, flow).unwrap();
            assert!((shown - 20.0).abs() < 0.1, "{flow}: {shown} ms");
            assert!((shown - truth).abs() <= clock.uncertainty_ms.unwrap());
        }
        assert!((round_trip_ms(&record) - round_trip_ms(&right)).abs() < 0.01, "both stamps are one host's");
        assert_eq!(record.flows.len(), 2, "the probes are no flow of the scenario");
    }
}

#[test]
fn a_slow_drift_is_found_and_followed_and_a_fast_one_refused() {
    let slow = run("far_clock = { offset = \"1 s\", skew = 400 }");
    assert!(slow.clock.trusted, "{}", slow.clock.why);
    let skew = slow.clock.skew_ppm.expect("16 ms in 40 s are more than the round trips scatter");
    assert!((skew - 400.0).abs() < 2.0, "{skew} ppm");
    assert!((one_way_ms(&slow, "call").unwrap() - 20.0).abs() < 0.5);
    let fast = run("far_clock = { skew = 5000 }");
    assert!(!fast.clock.trusted);
    assert!((fast.clock.skew_ppm.unwrap() - 5000.0).abs() < 100.0, "{:?}", fast.clock.skew_ppm);
    assert_eq!((one_way_ms(&fast, "call"), one_way_ms(&fast, "back")), (None, None));
}

#[test]
fn a_clock_that_jumps_and_is_back_at_the_end_gives_no_one_way_figure_and_leaves_round_trips() {
    let right = run("");
    let record = run("far_clock = { jump = \"100 ms\", jump_every = \"12 s\" }");
    assert!(!record.clock.trusted, "{}", record.clock.why);
    assert!(record.clock.why.contains("100.0"), "{}", record.clock.why);
    assert_eq!((one_way_ms(&record, "call"), one_way_ms(&record, "back")), (None, None));
    assert!((round_trip_ms(&record) - round_trip_ms(&right)).abs() < 0.01);
}

/// Two flows, one each way: the offset falls out of the sum of their delays.
#[test]
fn a_call_of_two_flows_between_untrusted_clocks_is_rated_by_half_the_round_trip() {
    let record = common::run(
        r#"
        duration = "40 s"
        far_clock = { offset = "1 s", skew = 5000 }
        [path]
        up = { rate = "1 Gbps", delay = "30 ms" }
        down = { rate = "1 Gbps", delay = "10 ms" }
        [flow.call]
        transport = "udp"
        workload = "voice"
        direction = "both"
        "#,
    );
    assert!(!record.clock.trusted, "{}", record.clock.why);
    let run = summarise(&record, &Default::default());
    for name in ["call-up", "call-down"] {
        let call = run.flows[name].call.as_ref().expect("both are rated");
        assert_eq!((call.basis, call.late, call.missing), (Basis::HalfRoundTrip, 0, 0), "{name}");
        // Half of 40 ms, a frame until it is due, half a block of the receiver, and the 25 ms by which its
        // delay grew before its first target.
        let delay = call.mouth_to_ear_ms.as_ref().expect("frames were played");
        assert!((delay.mean - 70.0).abs() < 0.5, "{name}: {delay:?}");
        assert_eq!(run.flows[name].in_time, None);
    }
    assert_eq!(judge(&run, "call").map(|judged| judged.basis), Some(Basis::HalfRoundTrip));
}

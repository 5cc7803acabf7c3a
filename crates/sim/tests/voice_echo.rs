//! Voice echo over UDP, TCP and TCP_NODELAY against what a Linux kernel does (docs/models/transports.md,
//! "Nagle and echo").
//!
//! At each end Nagle's algorithm holds what is written while a small segment is unacknowledged, for up to a
//! round trip. With one write per read the echo carries the acknowledgement and leaves at once: 1.9 round
//! trips at the 90th percentile. With one write per message the kernel releases what it held when the
//! acknowledgement arrives, before the application writes, and the new echoes are held in turn: 2.9.

use crate::common;
use talkpath_measure::summarise::summarise;

/// 90th percentile of the round-trip delay, in round trips of the path.
fn p90_in_round_trips(transport: &str, echo_write: &str, rtt_ms: u64) -> f64 {
    p90(transport, echo_write, rtt_ms, r#"{ kind = "none" }"#)
}

/// The same where every thousandth packet is lost: one within the warm-up, one after it.
fn p90_with_one_loss(transport: &str, echo_write: &str, rtt_ms: u64) -> f64 {
    p90(transport, echo_write, rtt_ms, r#"{ kind = "periodic", period = 1000 }"#)
}

fn p90(transport: &str, echo_write: &str, rtt_ms: u64, loss: &str) -> f64 {
    in_round_trips(transport, echo_write, rtt_ms, &format!("up.loss = {loss}"), "").1
}

/// Median and 90th percentile, with a line more for the path and one for the flow.
fn in_round_trips(
    transport: &str,
    echo_write: &str,
    rtt_ms: u64,
    path_line: &str,
    flow_line: &str,
) -> (f64, f64) {
    let one_way = rtt_ms as f64 / 2.0;
    let record = common::run(&format!(
        r#"
        name = "echo"
        duration = "60 s"
        warm_up = "35 s"
        [path]
        up.rate = "1 Gbps"
        up.delay = "{one_way} ms"
        down.rate = "1 Gbps"
        down.delay = "{one_way} ms"
        {path_line}
        [flow.call]
        transport = "{transport}"
        workload = {{ kind = "voice", rtp = false, codec = "g711", echo = true, echo_write = "{echo_write}" }}
        {flow_line}
        "#
    ));
    let summary = summarise(&record, &Default::default());
    let call = &summary.flows["call"];
    assert_eq!(call.lost, 0);
    assert!(call.received > 1_200, "{} echoes", call.received);
    let delays = call.round_trip_delay_ms.as_ref().expect("echoes came back");
    (delays.p50 / rtt_ms as f64, delays.p90 / rtt_ms as f64)
}

#[test]
fn udp_and_nodelay_take_one_round_trip() {
    for rtt_ms in [10, 100, 230] {
        for transport in ["udp", "tcp-nodelay"] {
            let p90 = p90_in_round_trips(transport, "per-message", rtt_ms);
            assert!((1.0..1.05).contains(&p90), "{transport} at {rtt_ms} ms: {p90}");
        }
    }
}

#[test]
fn nagle_takes_nearly_two_round_trips_when_the_echo_is_written_per_read() {
    for rtt_ms in [80, 100, 140] {
        let p90 = p90_in_round_trips("tcp", "per-read", rtt_ms);
        assert!((1.7..2.05).contains(&p90), "at {rtt_ms} ms: {p90}");
    }
}

#[test]
fn nagle_takes_nearly_three_round_trips_when_the_echo_is_written_per_message() {
    for rtt_ms in [80, 100, 140] {
        let p90 = p90_in_round_trips("tcp", "per-message", rtt_ms);
        assert!((2.6..3.05).contains(&p90), "at {rtt_ms} ms: {p90}");
    }
}

#[test]
fn full_segments_leave_at_once_and_shorten_the_wait_on_long_paths() {
    let per_message = p90_in_round_trips("tcp", "per-message", 230);
    let per_read = p90_in_round_trips("tcp", "per-read", 230);
    assert!((1.75..2.2).contains(&per_message), "{per_message}");
    assert!((1.5..1.9).contains(&per_read), "{per_read}");
}

#[test]
fn a_short_round_trip_has_two_stable_states_and_one_lost_packet_picks_the_slow_one() {
    // A frame that finds nothing unacknowledged leaves at once, and its echo is back before the next: nothing
    // is ever held. One loss makes two frames travel together; the second echo waits for an acknowledgement
    // that the near end delays until its next frame, and so it stays.
    let undisturbed = p90_in_round_trips("tcp", "per-message", 16);
    let disturbed = p90_with_one_loss("tcp", "per-message", 16);
    assert!((1.0..1.05).contains(&undisturbed), "{undisturbed}");
    assert!((2.0..2.6).contains(&disturbed), "{disturbed}");
    // Written per read, both frames come back in one segment with the acknowledgement: there is no slow
    // state.
    let per_read = p90_with_one_loss("tcp", "per-read", 16);
    assert!((1.0..1.05).contains(&per_read), "{per_read}");
}

/// Where a round trip holds more than a full segment of frames, the far application may write its echoes
/// before the acknowledgement of its last ones comes, and fill a segment with them, or after it. An
/// application that needs a moment to wake up loses that race sooner or later, and then the connection stays
/// so: a kernel's median was 431 ms at 271 ms and 382 ms at 242 ms, in every run.
#[test]
fn an_application_that_needs_a_moment_to_wake_up_settles_in_the_slower_of_two_states() {
    let median = |rtt_ms, flow_line| in_round_trips("tcp", "per-message", rtt_ms, "", flow_line).0;
    let woken = r#"wake_up = "100 us""#;
    for (rtt_ms, kernel_ms) in [(271, 431.0), (242, 382.0)] {
        let median = median(rtt_ms, woken) * rtt_ms as f64;
        assert!((0.97..1.03).contains(&(median / kernel_ms)), "at {rtt_ms} ms: {median} ms");
    }
    let prompt = median(271, "") * 271.0;
    assert!((400.0..410.0).contains(&prompt), "{prompt} ms");
}

/// The repair of a lost echo leaves before the data that showed the loss is taken, so that the near end's
/// next frame does not take over the part of an acknowledgement, and the connection is in its fast state
/// again.
#[test]
fn a_lost_echo_does_not_slow_a_short_round_trip_for_good() {
    let loss = r#"down.loss = { kind = "periodic", period = 1000 }"#;
    let (p50, p90) = in_round_trips("tcp", "per-read", 10, loss, "");
    assert!((1.0..1.05).contains(&p50) && (1.0..1.05).contains(&p90), "{p50} {p90}");
}

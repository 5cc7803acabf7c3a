//! What held messages back is found in each transport: each cause is planted, and a path that plants none
//! shows none.

use std::collections::BTreeMap;

use talkpath_measure::summarise::summarise;
use talkpath_measure::summary::{HeldMs, WaitMs, WaitsSummary};

use crate::common;

const CLEAN: &str = "";
const LOSSY: &str = "loss = 0.03, ";
/// A message of 200 B every 20 ms, as a call has it.
const CALL: &str = r#"{ kind = "cbr", message_rate = "50 Hz", size = "200 B" }"#;
/// 1 Mb/s in packets of nearly full size.
const STREAM: &str = r#"{ kind = "cbr", rate = "1 Mbps", size = "1000 B" }"#;

/// The waits of a flow of 20 s over a path with a round trip of 100 ms.
fn waits(transport: &str, workload: &str, uplink: &str) -> WaitsSummary {
    let text = format!(
        r#"
        duration = "20 s"
        [path]
        up = {{ {uplink}rate = "10 Mbps", delay = "50 ms" }}
        down = {{ rate = "10 Mbps", delay = "50 ms" }}
        [flow.a]
        transport = {transport}
        workload = {workload}
        "#
    );
    let summary = summarise(&common::run(&text), &BTreeMap::new());
    let flow = &summary.flows["a"];
    assert!(flow.received > 100, "{transport} is no test: {}", flow.received);
    flow.waits.as_deref().copied().unwrap_or_default()
}

/// The longest time that a cause held data back, and its share of all these times.
fn share(waits: &WaitsSummary, cause: fn(&HeldMs) -> Option<f64>) -> f64 {
    let held = waits.held_ms.unwrap_or_default();
    let all = [held.congestion_window, held.receiver_window, held.nagle, held.pacing];
    cause(&held).unwrap_or(0.0) / all.into_iter().flatten().sum::<f64>().max(1e-9)
}

fn at_p90(wait: Option<WaitMs>) -> f64 {
    wait.map_or(0.0, |wait| wait.p90)
}

#[test]
fn a_call_over_a_clean_path_waits_for_nothing_but_nagle() {
    for transport in
        ["udp", "tcp-nodelay", "quic-datagram", "quic-stream", "quic-stream-per-message", "dccp-ccid2"]
    {
        let WaitsSummary { for_room_ms, in_transport_ms, for_lost_ms, .. } =
            waits(&format!("\"{transport}\""), CALL, CLEAN);
        assert_eq!((for_room_ms, for_lost_ms), (None, None), "{transport}");
        assert!(in_transport_ms.is_none_or(|wait| wait.p90 < 1.0), "{transport}: {in_transport_ms:?}");
    }
    let waits = waits("\"tcp\"", CALL, CLEAN);
    assert!(at_p90(waits.in_transport_ms) > 50.0, "a round trip is 100 ms: {waits:?}");
    assert!(share(&waits, |held| held.nagle) > 0.9, "{waits:?}");
}

#[test]
fn losses_close_the_congestion_window_of_quic_and_of_dccp_with_ccid_2() {
    for transport in ["\"quic-datagram\"", "\"dccp-ccid2\""] {
        let waits = waits(transport, STREAM, LOSSY);
        assert!(at_p90(waits.in_transport_ms) > 20.0, "{transport}: {waits:?}");
        assert!(share(&waits, |held| held.congestion_window) > 0.5, "{transport}: {waits:?}");
    }
}

#[test]
fn a_rate_that_follows_losses_makes_messages_wait_for_their_turn() {
    let waits = waits("\"dccp-ccid3\"", STREAM, LOSSY);
    assert!(at_p90(waits.in_transport_ms) > 20.0, "{waits:?}");
    assert!(share(&waits, |held| held.pacing) > 0.9, "{waits:?}");
}

#[test]
fn a_small_receive_window_holds_a_stream_back() {
    let small = r#"{ kind = "tcp-nodelay", stack = "rfc", rwnd = "6 kB", send_buffer = "1 MB" }"#;
    let held = waits(small, STREAM, CLEAN);
    assert!(at_p90(held.in_transport_ms) > 20.0, "{held:?}");
    assert!(share(&held, |held| held.receiver_window) > 0.9, "{held:?}");
    let wide = waits("\"tcp-nodelay\"", STREAM, CLEAN);
    assert!(share(&wide, |held| held.receiver_window) < 0.1, "{wide:?}");
}

#[test]
fn a_full_send_buffer_makes_messages_wait_for_room() {
    let small = r#"{ kind = "tcp-nodelay", send_buffer = "10 kB" }"#;
    let full = waits(small, STREAM, CLEAN);
    assert!(at_p90(full.for_room_ms) > 20.0, "{full:?}");
    assert_eq!(waits("\"tcp-nodelay\"", CALL, CLEAN).for_room_ms, None);
}

#[test]
fn what_is_lost_delays_a_whole_stream_and_on_streams_of_their_own_one_message() {
    let p90 = |transport: &str| at_p90(waits(transport, CALL, LOSSY).for_lost_ms);
    for transport in ["\"tcp-nodelay\"", "\"quic-stream\""] {
        assert!(p90(transport) > 20.0, "{transport}: {}", p90(transport));
    }
    let apart = waits("\"quic-stream-per-message\"", CALL, LOSSY).for_lost_ms.expect("some were lost");
    assert!(apart.p90 == 0.0 && apart.p99 > 50.0, "3 in 100 are lost: {apart:?}");
    for transport in ["\"udp\"", "\"quic-datagram\"", "\"dccp-ccid2\""] {
        assert_eq!(waits(transport, CALL, LOSSY).for_lost_ms, None, "{transport} sends nothing again");
    }
}

//! What a client that was let in may take from the server, and what it may not.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::quiet::undisturbed;
use crate::support::raw::{RawClient, flow, voice};
use crate::support::{self, Serving, cbr, down, run, scenario};
use serde_json::json;
use talkpath_arena::ArenaError;

#[test]
fn who_pipelines_questions_and_reads_no_answers_is_read_no_further_until_it_reads() {
    undisturbed(|| {
        let server = Serving::loopback();
        let mut client = RawClient::welcomed(server.address);
        let flows = vec![flow("udp", &voice(), true); 32];
        assert!(client.session(&flows, 60_000)["ready"].is_object());
        // The server keeps 1 MiB of answers and the kernels' buffers hold some; the next question waits here.
        let most = 200_000;
        for (question, answer) in [("{\"probe\":{\"number\":1}}", "probe"), ("\"ask\"", "progress")] {
            // Blanks, so that the kernels' buffers hold fewer of them.
            let line = &format!("{question}{}\n", " ".repeat(if answer == "probe" { 20 } else { 300 }));
            if answer == "progress" {
                client.go();
            }
            let sent = client.pipeline(line, most, Duration::from_millis(400));
            assert!(sent < most, "{sent} x {line:?} were taken without an answer read");
            // Others are served meanwhile.
            assert!(run(server.address, &scenario(100, vec![support::voice("call", "udp")])).is_ok());
            for number in 0..sent {
                let heard = client.hear();
                assert!(heard[answer].is_object(), "answer {number} of {sent}: {heard}");
            }
        }
        client.say(&json!("stop"));
        assert!(client.hear()["stopped"].is_object());
    });
}

/// 5,404 sessions that began and left within 5 s made 865 kB of log.
#[test]
fn sessions_that_carry_nothing_have_few_lines_of_the_log() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&lines);
    let options = talkpath_live::ServeOptions {
        bind: vec!["127.0.0.1:0".parse().unwrap()],
        ..talkpath_live::ServeOptions::default()
    };
    let mut server = Serving::logged(options, move |line| log.lock().unwrap().push(line.to_owned()));
    for number in 0..60 {
        let mut client = RawClient::welcomed(server.address);
        // Some leave before it begins, some are over before anything can have moved.
        assert!(client.session(&[flow("udp", &voice(), true)], 1_000)["ready"].is_object(), "{number}");
        if number % 2 == 0 {
            client.go();
        }
        client.say(&json!("bye"));
        assert!(client.is_closed_within(Duration::from_secs(5)));
    }
    // One that measures has its line whatever the others do.
    assert!(run(server.address, &scenario(600, vec![support::voice("call", "udp")])).is_ok());
    server.kill();
    let lines = lines.lock().unwrap();
    assert_eq!(lines.len(), 12, "{lines:?}");
    assert!(lines[10].contains("received 30 messages"), "{lines:?}");
    // The client by hand asks for the version first, each time, and is refused.
    assert_eq!(lines[11], "and 110 more were refused, or left at once or without a message, within a minute");
}

#[test]
fn a_session_of_as_many_flows_as_a_server_takes_is_read_whole() {
    let limits = talkpath_live::Limits { flows: 4_000, ..talkpath_live::Limits::default() };
    let server = Serving::at("127.0.0.1:0", None, limits);
    let mut client = RawClient::welcomed(server.address);
    // One too many, so that nobody opens their sockets: 550 kB, twice what a server of 64 flows reads.
    let flows = vec![flow("udp", &voice(), true); 4_001];
    let answer = client.session(&flows, 1_000);
    let why = answer["refused"]["why"].as_str().unwrap();
    assert_eq!(
        why,
        "4001 flows; this server takes 1 to 4000; started with `serve --max-flows N` it takes more"
    );
}

#[test]
fn far_more_flows_than_a_server_takes_are_refused_with_the_flag_that_takes_them() {
    let server = Serving::loopback();
    let flows = (0..4_000).map(|n| support::voice(&format!("call-{n}"), "udp")).collect();
    let lost = run(server.address, &scenario(100, flows));
    let Err(error) = lost else { panic!("{:?}", lost.map(drop)) };
    let why = error.to_string();
    assert!(why.contains("4000 flows") && why.contains("--max-flows 4000"), "{why}");
}

#[test]
fn a_plan_of_more_messages_a_second_than_the_pacer_has_time_for_is_refused_by_flow_rate_and_bound() {
    let server = Serving::loopback();
    // 16,700 messages of 1 B a second are 133.6 kbps: no limit of bits tells.
    let flood = down(cbr("flood", "udp", 134, 1));
    let call = down(support::voice("call", "udp"));
    let refused = run(server.address, &scenario(100, vec![call.clone(), flood]));
    let Err(ArenaError::Unsupported(why)) = refused else { panic!("{:?}", refused.map(drop)) };
    for part in ["flow flood: ", "16750 messages a second", "16800 with the other flows", "at most 10000"] {
        assert!(why.contains(part), "no `{part}` in: {why}");
    }
    let calls = vec![down(cbr("fast", "udp", 134 / 4, 1)), call];
    assert!(run(server.address, &scenario(100, calls)).is_ok());
}

#[test]
fn what_udp_is_given_at_one_moment_counts_as_sent_within_a_second() {
    let server = Serving::loopback();
    let burst = |count: u64, size: u64, gap_ns: u64| {
        let burst = json!({ "count": count, "size": size, "repeat": 10, "gap_ns": gap_ns });
        json!({ "burst": burst })
    };
    let bulk = |bytes: u64| json!({ "bulk": { "bytes": bytes } });
    let second = 1_000_000_000;
    // The most that is taken, and what is refused for one more.
    for (transport, workload, is_up, refused_for) in [
        ("udp", burst(1000, 100, 0), false, None),
        ("udp", burst(1001, 100, 0), false, Some("10010 messages a second")),
        ("udp", burst(5000, 100, second), false, None),
        ("udp", burst(5001, 100, second), false, Some("10002 messages a second")),
        ("udp", burst(191, 65_507, 0), false, Some("1000946960 bps")),
        ("udp", bulk(125_000_000), false, None),
        ("udp", bulk(125_000_001), false, Some("1000000008 bps")),
        // The client sends these, and TCP waits for the network.
        ("udp", burst(1001, 100, 0), true, None),
        ("tcp", burst(1001, 100, 0), false, None),
        ("tcp", bulk(1 << 40), false, None),
    ] {
        let mut client = RawClient::welcomed(server.address);
        let answer = client.session(&[flow(transport, &workload, is_up)], 1000);
        let why = answer["refused"]["why"].as_str();
        let is_as_expected = match refused_for {
            None => answer["ready"].is_object(),
            Some(part) => why.is_some_and(|why| why.contains(part)),
        };
        assert!(is_as_expected, "{transport} {workload}, up {is_up}: {answer}");
    }
}

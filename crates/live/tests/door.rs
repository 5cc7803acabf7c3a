//! Attacks on the server's places: at its door, and for sessions.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use talkpath_arena::ArenaError;
use talkpath_kernel::descriptors;
use talkpath_live::{Key, Limits};

use crate::support::flood::{attacker, flood};
use crate::support::quiet::skip;
use crate::support::raw::{RawClient, flow, voice};
use crate::support::way::{Passing, way};
use crate::support::{self, Serving, run, run_with, scenario};

fn one_call() -> talkpath_model::Scenario {
    scenario(100, vec![support::voice("call", "udp")])
}

/// The flood that locked everybody out was 700 connections a second at a round trip of 50 ms, 35 a step. Here
/// all places are taken, and 300 more come before anything that either end says.
#[test]
fn a_key_holder_gets_in_beside_1500_connections_from_one_address_and_from_a_thousand() {
    descriptors::raise_to(20_000);
    if descriptors::limit() < 8192 {
        skip(format_args!("this user may have only {} descriptors", descriptors::limit()));
        return;
    }
    for addresses in [1, 1000] {
        let key = || Key::new(b"0123456789abcdef0123456789abcdef").unwrap();
        let server = Serving::at("127.0.0.1:0", Some(key()), Limits::default());
        let (address, waves) = (server.address, Arc::new(AtomicU32::new(0)));
        let open = Arc::new(Mutex::new(Vec::new()));
        let (wave, more) = (Arc::clone(&waves), Arc::clone(&open));
        let stream = Box::new(move |passing: Passing<'_>| {
            if passing.number < 5 {
                let begin = wave.fetch_add(1, Ordering::Relaxed) * 300;
                let flood = flood(address, begin..begin + 300, addresses);
                more.lock().unwrap().extend(flood);
            }
            true
        });
        let way = way(address, stream, Box::new(|_| true));
        for attempt in 0..2 {
            *open.lock().unwrap() = flood(address, 0..1500, addresses);
            let record = run_with(way, &one_call(), Some(key()), &AtomicBool::new(false));
            assert!(record.is_ok(), "attempt {attempt}, {addresses}: {:?}", record.map(drop));
        }
        assert!(waves.load(Ordering::Relaxed) >= 2 * 7, "the flood came between the steps");
    }
}

#[test]
fn sessions_that_never_begin_give_their_places_back() {
    let limits = Limits { sessions: 4, prepare_s: 2, ..Limits::default() };
    let server = Serving::at("127.0.0.1:0", None, limits);
    let hold = |number| {
        let mut client = RawClient::welcomed_from(attacker(number), server.address);
        let answer = client.session(&[flow("udp", &voice(), true)], 1000);
        (client, answer)
    };
    let mut holders: Vec<RawClient> = [0, 0, 1, 1].map(|number| hold(number).0).into();
    let (_, refused) = hold(0);
    let why = refused["busy"]["why"].as_str().unwrap_or_else(|| panic!("{refused}"));
    assert!(why.contains("sessions are taken"), "{why}");
    let Err(ArenaError::FarEnd { what, .. }) = run(server.address, &one_call()) else {
        panic!("all places are taken")
    };
    assert!(what.contains("all its sessions are taken (4 at once)"), "{what}");
    assert_gone_although_they_probe(&mut holders);
    assert!(run(server.address, &one_call()).is_ok());
}

#[test]
fn one_address_has_half_of_the_sessions() {
    let server = Serving::at("127.0.0.1:0", None, Limits { sessions: 4, ..Limits::default() });
    let mut clients = Vec::new();
    for (number, expected) in
        [(0, "ready"), (0, "ready"), (0, "busy"), (1, "ready"), (1, "ready"), (2, "busy")]
    {
        let mut client = RawClient::welcomed_from(attacker(number), server.address);
        let answer = client.session(&[flow("udp", &voice(), true)], 1000);
        assert!(answer[expected].is_object(), "address {number}: {answer}");
        clients.push(client);
    }
}

#[test]
fn a_session_that_never_fetches_its_report_ends() {
    let limits = Limits { report_s: 1, ..Limits::default() };
    let server = Serving::at("127.0.0.1:0", None, limits);
    let mut client = RawClient::welcomed(server.address);
    assert!(client.session(&[flow("udp", &voice(), true)], 100)["ready"].is_object());
    client.go();
    client.say(&json!("stop"));
    assert!(client.hear()["stopped"].is_object());
    assert_gone_although_they_probe(&mut [client]);
}

/// Each of `clients` probes without end, and the server ends its session all the same, with the reason.
fn assert_gone_although_they_probe(clients: &mut [RawClient]) {
    let begun = Instant::now();
    for client in clients {
        let why = loop {
            assert!(begun.elapsed() < Duration::from_secs(20), "it still holds its place");
            let Some(answer) = client.probe() else { break String::new() };
            if let Some(why) = answer["refused"]["why"].as_str() {
                break why.to_owned();
            }
            assert!(answer["probe"].is_object(), "{answer}");
            std::thread::sleep(Duration::from_millis(50));
        };
        assert!(why.contains("within"), "{why}");
    }
}

/// A server that goes on about its progress must not hold a client for ever.
#[test]
fn a_server_that_never_stops_telling_its_progress_is_left() {
    let server = false_server("welcome", 0, |request, stream| {
        let progress = json!({ "progress": {
            "flows": [{ "is_done": false, "sent": 0, "received": 0 }], "received_ns": 0, "sent_ns": 0,
            "trouble": null,
        } });
        if request == "stop" {
            while writeln!(stream, "{progress}").is_ok() {}
        }
        progress
    });
    let Err(ArenaError::FarEnd { what, .. }) = run(server, &one_call()) else { panic!("it cannot end well") };
    assert!(what.contains("broke the protocol"), "{what}");
}

#[test]
fn a_server_that_always_received_more_is_left_after_the_drain() {
    static RECEIVED: AtomicU32 = AtomicU32::new(0);
    let server = false_server("welcome", 0, |request, stream| {
        if request == "stop" {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
        let received = RECEIVED.fetch_add(10, Ordering::Relaxed) + 10;
        json!({ "progress": {
            "flows": [{ "is_done": false, "sent": 0, "received": received }], "received_ns": 0, "sent_ns": 0,
            "trouble": null,
        } })
    });
    let begun = Instant::now();
    assert!(matches!(run(server, &one_call()), Err(ArenaError::FarEnd { .. })));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn a_server_that_would_begin_in_an_hour_is_left() {
    let server = false_server("welcome", 3_600_000_000_000, |_, _| json!({}));
    let Err(ArenaError::FarEnd { what, .. }) = run(server, &one_call()) else { panic!("it cannot end well") };
    assert!(what.contains("later than any server"), "{what}");
}

#[test]
fn a_report_without_end_is_left_when_the_user_says_so() {
    let server = false_server("welcome", 0, |request, stream| match request {
        "stop" => json!({ "stopped": { "lateness_ns": null, "drops": {
            "by_sockets": null, "checksum_errors": null, "room_errors": null,
        }, "registrations": { "client": "127.0.0.1", "flows": [] } } }),
        "report" => {
            let rows = json!({ "rows": {
                "sent": [], "arrivals": [], "reads": [], "wires": [], "drops": [], "samples": [], "totals": null,
            } });
            while writeln!(stream, "{rows}").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
            json!({})
        }
        _ => json!({ "progress": {
            "flows": [{ "is_done": true, "sent": 0, "received": 5 }], "received_ns": 0, "sent_ns": 0,
            "trouble": null,
        } }),
    });
    let interrupt = AtomicBool::new(false);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(6));
            interrupt.store(true, Ordering::Relaxed);
        });
        let result = run_with(server, &one_call(), None, &interrupt);
        assert!(matches!(result, Err(ArenaError::Interrupted { .. })), "{result:?}");
    });
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[test]
fn a_server_of_another_version_is_told_in_a_sentence() {
    let older =
        "it speaks version 9 of the protocol, this client version 14; use the same talkpath at both ends";
    let server = false_server(older, 0, |_, _| json!({}));
    let Err(ArenaError::Unwelcome(what)) = run(server, &one_call()) else { panic!("it is too old") };
    assert!(what.contains(older), "{what}");
}

/// A server of one call without a key that lies: it greets with `welcome` or refuses with these words, has
/// the run begin at `start_ns`, and `answer` gives what it says while a run is under way.
fn false_server(
    greeting: &'static str,
    start_ns: i64,
    answer: fn(&str, &mut TcpStream) -> Value,
) -> SocketAddr {
    let (listener, datagrams, address) = support::listen();
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((size, from)) = datagrams.recv_from(&mut buffer) {
            if size == 32 {
                datagrams.send_to(b"TPA1\0\0\0\x07", from).unwrap();
            }
        }
    });
    let serve = move |mut stream: TcpStream| {
        let lines = BufReader::new(stream.try_clone().unwrap()).lines();
        for line in lines.map_while(Result::ok) {
            let request: Value = serde_json::from_str(&line).unwrap();
            let kind = request.as_str().or_else(|| request.as_object()?.keys().next().map(String::as_str));
            let said = match kind.unwrap() {
                "hello" if greeting == "welcome" => json!({ "welcome": {} }),
                "hello" => json!({ "refused": { "why": greeting } }),
                "session" => json!({ "ready": {
                    "flows": [{ "secret": "0".repeat(32), "token": 7 }], "warnings": [],
                } }),
                "probe" => json!({ "probe": {
                    "number": request["probe"]["number"], "received_ns": 0, "sent_ns": 0,
                } }),
                "go" => json!({ "going": { "start_ns": start_ns } }),
                "bye" => break,
                kind => answer(kind, &mut stream),
            };
            if writeln!(stream, "{said}").is_err() {
                break;
            }
        }
    };
    std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
    address
}

//! Somebody on the way between two ends that hold a key.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use talkpath_arena::ArenaError;
use talkpath_live::{Key, Limits};
use talkpath_measure::{Fate, RunRecord};
use talkpath_model::Flow;

use crate::support::quiet::undisturbed;
use crate::support::way::{Passes, way};
use crate::support::{Serving, TRANSPORTS, cbr, down, echoed, run_with, scenario};

fn key() -> Key {
    Key::new(b"0123456789abcdef0123456789abcdef").unwrap()
}

fn server() -> Serving {
    Serving::at("127.0.0.1:0", Some(key()), Limits::default())
}

fn keyed(address: SocketAddr, flows: Vec<Flow>) -> Result<RunRecord, ArenaError> {
    run_with(address, &scenario(200, flows), Some(key()), &AtomicBool::new(false))
}

fn call() -> Vec<Flow> {
    vec![echoed("call", "udp")]
}

fn untouched() -> Box<Passes> {
    Box::new(|_| true)
}

#[test]
fn nothing_of_a_session_can_be_read_on_the_way() {
    let server = server();
    let seen = Arc::new(Mutex::new([Vec::new(), Vec::new()]));
    let eye = Arc::clone(&seen);
    let stream: Box<Passes> = Box::new(move |passing| {
        eye.lock().unwrap()[usize::from(passing.is_up)].extend_from_slice(passing.bytes);
        true
    });
    keyed(way(server.address, stream, untouched()), call()).unwrap();
    for bytes in &*seen.lock().unwrap() {
        assert!(bytes.len() > 500);
        let text = String::from_utf8_lossy(bytes);
        for word in
            ["session", "ready", "secret", "probe", "going", "ask", "progress", "stopped", "rows", "bye"]
        {
            assert!(!text.contains(&format!("\"{word}\"")), "{word} in {text}");
        }
    }
}

/// Of 95 keyed runs through a proxy that altered digits, 64 ended as if nothing had been.
#[test]
fn no_piece_of_the_control_connection_can_be_changed() {
    let server = server();
    let change_from = |is_up: bool| {
        // The first pieces of either direction are the handshake; later ones the session and its run.
        for number in 0..12 {
            let was_changed = Arc::new(AtomicBool::new(false));
            let changed = Arc::clone(&was_changed);
            let stream: Box<Passes> = Box::new(move |passing| {
                if passing.number >= number && passing.is_up == is_up && passing.bytes.len() > 20 {
                    let middle = passing.bytes.len() / 2;
                    // In the hello that is filling, which nobody reads.
                    let at = if passing.bytes.starts_with(b"{") { 40.min(middle) } else { middle };
                    passing.bytes[at] ^= 1;
                    changed.store(true, Ordering::Relaxed);
                }
                true
            });
            let result = keyed(way(server.address, stream, untouched()), call());
            assert!(
                was_changed.load(Ordering::Relaxed) && result.is_err(),
                "up {is_up}, from piece {number} on"
            );
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| change_from(true));
        change_from(false);
    });
}

#[test]
fn a_datagram_that_was_changed_is_missing_and_the_others_are_exact() {
    let server = server();
    // The first datagram registers the flow.
    let datagram: Box<Passes> = Box::new(|passing| {
        if passing.bytes.len() == 160 && passing.bytes[7] == 3 {
            passing.bytes[100] ^= 1;
        }
        true
    });
    let record = keyed(way(server.address, untouched(), datagram), call()).unwrap();
    let fates: Vec<Fate> = record.flows[0].forward.messages.iter().map(|row| row.fate).collect();
    assert_eq!(fates.len(), 10);
    for (seq, fate) in fates.iter().enumerate() {
        let expected = if seq == 3 { Fate::Missing } else { Fate::Delivered };
        assert_eq!(*fate, expected, "message {seq}");
    }
}

#[test]
fn a_client_s_own_datagram_is_no_echo() {
    let server = server();
    let datagram: Box<Passes> = Box::new(|passing| !passing.is_up || passing.bytes.len() != 160);
    let record = keyed(way(server.address, untouched(), datagram), call()).unwrap();
    let echo = record.flows[0].echo.as_ref().unwrap();
    assert_eq!(echo.arrivals.len(), 10, "each echo once, and nothing else: {:?}", echo.arrivals);
}

#[test]
fn every_transport_and_size_is_measured_with_a_key_as_without_one() {
    undisturbed(|| {
        let server = server();
        let mut flows: Vec<Flow> = TRANSPORTS.map(|name| echoed(name, name)).to_vec();
        for size in [1, 7, 8, 15, 16, 20, 1464] {
            flows.push(cbr(&format!("up{size}"), "udp", size * 8 * 50 / 1000 + 1, size));
            flows.push(down(cbr(&format!("down{size}"), "udp", size * 8 * 50 / 1000 + 1, size)));
        }
        let record = keyed(server.address, flows).unwrap();
        for flow in &record.flows {
            let rows = &flow.echo.as_ref().unwrap_or(&flow.forward).messages;
            assert!(
                rows.len() > 3 && rows.iter().all(|row| row.fate == Fate::Delivered),
                "{}",
                flow.info.name
            );
        }
    });
}

//! Strangers at the server's door: they get nothing, or less than they sent, and hold no place.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use crate::support::flood::flood;
use crate::support::quiet::undisturbed;
use crate::support::raw::{self, RawClient, flow, version_of};
use crate::support::{Serving, run, scenario, voice};
use talkpath_live::{Limits, LiveArena, LiveOptions};
use talkpath_units::Seed;
use talkpath_wire::dccp::codec::{Carrier, Ports, encode};
use talkpath_wire::dccp::{DccpPacket, PacketKind, Seq, ServiceCode};

/// What the server answers to `bytes` until it closes, or for `ms`.
fn answer(address: SocketAddr, bytes: &[u8], ms: u64) -> (Vec<u8>, bool) {
    let mut stream = TcpStream::connect(address).unwrap();
    // The server may close before it has read all.
    let _ = stream.write_all(bytes);
    read_for(&mut stream, ms)
}

/// What comes within `ms`, and whether the connection then was closed.
fn read_for(stream: &mut TcpStream, ms: u64) -> (Vec<u8>, bool) {
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let deadline = Instant::now() + Duration::from_millis(ms);
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    while Instant::now() < deadline {
        match stream.read(&mut buffer) {
            Ok(0) => return (all, true),
            Ok(count) => all.extend_from_slice(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return (all, true),
        }
    }
    (all, false)
}

fn noise(size: usize) -> Vec<u8> {
    let mut stream = Seed::new(5).stream("noise");
    (0..size).map(|_| stream.bits() as u8).collect()
}

fn assert_serves(server: &Serving) {
    let record = run(server.address, &scenario(100, vec![voice("call", "udp")])).unwrap();
    assert_eq!(record.flows[0].forward.arrivals.len(), 5);
}

/// A hello that the server's version of the protocol does not refuse.
fn valid_hello(server: &Serving, filling: usize) -> String {
    hello(version_of(server.address), filling)
}

fn hello(version: u32, filling: usize) -> String {
    format!(
        "{{\"hello\":{{\"version\":{version},\"nonce\":\"{}\",\"filling\":\"{}\"}}}}\n",
        "0".repeat(32),
        ".".repeat(filling)
    )
}

/// The hello of our client that holds `key`.
fn hello_with(key: &[u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let key = talkpath_live::Key::new(key).unwrap();
    let client = std::thread::spawn(move || {
        let options = LiveOptions { key: Some(key), ..LiveOptions::default() };
        LiveArena::connect(&address, options).map(drop)
    });
    let mut hello = String::new();
    BufReader::new(listener.accept().unwrap().0).read_line(&mut hello).unwrap();
    assert!(client.join().unwrap().is_err(), "nobody answered");
    hello
}

#[test]
fn garbage_over_tcp_is_answered_by_silence() {
    undisturbed(|| {
        let server = Serving::loopback();
        let long = [b'{'; 100_000];
        let unknown = format!("{{\"data\":{{\"secret\":\"{}\"}}}}\n", "ab".repeat(16));
        for bytes in [
            &noise(100)[..],
            &noise(100_000),
            &long,
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            b"{}\n",
            b"{\"stop\":null}\n\"ask\"\n",
            b"{\"proof\":{\"proof\":\"00\"}}\n",
            unknown.as_bytes(),
            valid_hello(&server, 10).as_bytes(),
        ] {
            let (got, is_closed) = answer(server.address, bytes, 1500);
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(30)]).into_owned();
            assert!(got.is_empty(), "{shown}: {}", String::from_utf8_lossy(&got));
            assert!(is_closed, "{shown}: and is not waited for");
        }
        assert_serves(&server);
    });
}

#[test]
fn no_answer_is_longer_than_the_hello() {
    undisturbed(|| {
        let open = Serving::loopback();
        let key = talkpath_live::Key::new(b"0123456789abcdef0123456789abcdef").unwrap();
        let locked = Serving::at("127.0.0.1:0", Some(key), Limits::default());
        let right = version_of(open.address);
        let empty = hello(right, 512).replace(&"0".repeat(32), "");
        let wrong = hello(right, 512).replace(&"0".repeat(32), &"0".repeat(96));
        for (server, hello, what) in [
            (&open, hello(1, 512), "use the same talkpath"),
            (&locked, hello(1, 512), "use the same talkpath"),
            (&open, hello(2, 512), "use the same talkpath"),
            (&locked, hello(4_294_967_295, 512), "use the same talkpath"),
            (&open, hello(right, 512), "welcome"),
            (&locked, empty, "asks for a key"),
            (&locked, wrong, "not this server's"),
            (&locked, hello_with(b"0123456789abcdef0123456789abcdeX"), "not this server's"),
            (&locked, hello_with(b"0123456789abcdef0123456789abcdef"), "\"answer\":\""),
        ] {
            let (got, _) = answer(server.address, hello.as_bytes(), 300);
            let said = String::from_utf8_lossy(&got);
            assert!(said.contains(what), "{what}: {said}");
            assert!(got.len() <= hello.len(), "{} B for {} B: {said}", got.len(), hello.len());
        }
    });
}

#[test]
fn who_dawdles_is_dropped_after_two_seconds() {
    undisturbed(|| {
        let server = Serving::loopback();
        let mut stream = TcpStream::connect(server.address).unwrap();
        let begun = Instant::now();
        let mut is_closed = false;
        for byte in valid_hello(&server, 512).bytes() {
            // A byte at a time keeps the connection busy but not the door open.
            if stream.write_all(&[byte]).is_err() {
                is_closed = true;
                break;
            }
            let (got, closed) = read_for(&mut stream, 40);
            assert!(got.is_empty());
            if closed {
                is_closed = true;
                break;
            }
        }
        assert!(is_closed);
        let held = begun.elapsed();
        assert!((1500..4000).contains(&held.as_millis()), "{held:?}");
        assert_serves(&server);
    });
}

#[test]
fn idle_connections_beyond_the_places_push_out_their_own_and_hold_no_session() {
    undisturbed(|| {
        let server =
            Serving::at("127.0.0.1:0", None, Limits { strangers: 4, sessions: 1, ..Limits::default() });
        let mut idle = flood(server.address, 0..12, 1);
        assert_serves(&server);
        let closed = idle.iter_mut().filter_map(|stream| read_for(stream, 40).1.then_some(())).count();
        assert!(closed >= 8, "{closed} of 12 went for 4 places");
        // A client that says hello and nothing more has no session either.
        let (got, _) = answer(server.address, valid_hello(&server, 512).as_bytes(), 100);
        assert!(!got.is_empty());
        assert_serves(&server);
    });
}

/// What opens a DCCP connection (RFC 4340 §5.2), in UDP (RFC 6773).
fn dccp_request(seq: u64) -> Vec<u8> {
    let kind = PacketKind::Request { service: ServiceCode::NONE };
    let packet = DccpPacket::new(kind, Seq::new(seq), Seq::new(0));
    let mut bytes = Vec::new();
    encode(&packet, Ports { source: 49_153, destination: 7160 }, &[], Carrier::Udp, &mut bytes);
    bytes
}

/// What opens a QUIC connection (RFC 9000 §17.2.2): an Initial of `size` bytes, of version 1 or of one that a
/// server would answer with those it knows.
fn quic_initial(size: usize, version: u32) -> Vec<u8> {
    let mut bytes = vec![0xc3];
    bytes.extend(version.to_be_bytes());
    for id in [[1; 8], [2; 8]] {
        bytes.push(8);
        bytes.extend(id);
    }
    // No token, and a length of two octets.
    bytes.push(0);
    bytes.extend((0x4000 | (size as u16).saturating_sub(26)).to_be_bytes());
    bytes.resize(size.max(bytes.len()), 0x5a);
    bytes
}

/// A probe of the path, of at least 40 B, that asks for as long an answer as there is
/// (`kernel/src/path_probe.rs`).
fn path_probe(secret: &[u8], size: usize) -> Vec<u8> {
    let mut probe = [b"TPP1".as_slice(), secret, &[0, 7, 0xff, 0xff]].concat();
    probe.resize(size.max(40), 0);
    probe
}

#[test]
fn a_spray_of_datagrams_is_answered_by_nothing() {
    undisturbed(|| {
        let server = Serving::loopback();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut sent = 0;
        for size in (0..1400).step_by(7) {
            sent += socket.send_to(&noise(size), server.address).unwrap();
            let mut registration = b"TPR1".to_vec();
            registration.extend(noise(16));
            registration.extend([0; 12]);
            sent += socket.send_to(&registration, server.address).unwrap();
            sent += socket.send_to(&path_probe(&noise(16), size), server.address).unwrap();
            sent += socket.send_to(&dccp_request(size as u64), server.address).unwrap();
            for version in [1, 0x0a1a_2a3a] {
                sent += socket.send_to(&quic_initial(size, version), server.address).unwrap();
            }
        }
        assert!(sent > 100_000);
        socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let mut buffer = [0; 2048];
        assert!(socket.recv_from(&mut buffer).is_err(), "0 B for {sent} B");
        assert_serves(&server);
    });
}

#[test]
fn a_flow_answers_only_the_address_of_its_client_and_only_its_own_messages() {
    undisturbed(|| {
        let server = Serving::loopback();
        let mut control = TcpStream::connect(server.address).unwrap();
        control.write_all(valid_hello(&server, 512).as_bytes()).unwrap();
        assert!(!read_for(&mut control, 200).0.is_empty());
        let session = r#"{"session":{"flows":[{"transport":{"udp":{"receive_buffer":null}},"workload":{"voice":{"ptime_ns":20000000,"size":160}},"echo_per_read":false,"is_up":true,"start_ns":0,"due":"start"}],"warm_up_ns":0,"duration_ns":1000000000,"drain_ns":0}}"#;
        writeln!(control, "{session}").unwrap();
        let ready = String::from_utf8(read_for(&mut control, 200).0).unwrap();
        let after = |mark: &str| ready.split(mark).nth(1).unwrap().to_owned();
        let secret: Vec<u8> = (0..16)
            .map(|i| u8::from_str_radix(&after("\"secret\":\"")[2 * i..2 * i + 2], 16).unwrap())
            .collect();
        let token: u32 = after("\"token\":").split(['}', ',']).next().unwrap().parse().unwrap();
        let registration = [b"TPR1".as_slice(), &secret, &[0; 12]].concat();
        let exchange = |socket: &UdpSocket, packet: &[u8]| {
            socket.set_read_timeout(Some(Duration::from_millis(150))).unwrap();
            socket.send_to(packet, server.address).unwrap();
            let mut buffer = [0; 2048];
            socket.recv(&mut buffer).ok().map(|count| buffer[..count].to_vec())
        };
        let message = |token: u32| {
            let mut message = vec![0; 160];
            message[..4].copy_from_slice(&token.to_be_bytes());
            message
        };
        // All of 127/8 is this host, so another address of it is another host to the server.
        let elsewhere = UdpSocket::bind("127.0.0.2:0").unwrap();
        for packet in [registration.clone(), path_probe(&secret, 1400)] {
            assert_eq!(
                exchange(&elsewhere, &packet),
                None,
                "a secret is good from its client's address only"
            );
        }
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(exchange(&client, &message(token)), None, "not before the flow is registered");
        let answered = exchange(&client, &registration).expect("registered");
        assert!(answered.len() < registration.len());
        assert_eq!(exchange(&client, &message(token)), Some(message(token)));
        assert_eq!(exchange(&client, &message(token ^ 1)), None, "a wrong token");
        assert_eq!(exchange(&client, &message(token)[..100]), None, "a wrong size");
        let neighbour = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(exchange(&neighbour, &message(token)), None, "another port of the same host");
        for size in [40, 41, 1400] {
            let probe = path_probe(&secret, size);
            assert_eq!(exchange(&neighbour, &probe).map(|answer| answer.len()), Some(size), "as many bytes");
        }
        assert_eq!(exchange(&client, &message(token)), Some(message(token)), "a probe moves no flow");
    });
}

/// A session is continued by its secret alone. What its flows have then comes from the new address, and no
/// longer from the old one.
#[test]
fn nobody_continues_a_session_without_its_secret_and_who_does_is_served_at_the_new_address_alone() {
    undisturbed(|| {
        let server = Serving::loopback();
        let mut client = RawClient::welcomed(server.address);
        let ready = client.session(&[flow("udp", &raw::voice(), true)], 60_000);
        let ready = &ready["ready"];
        client.go();
        let (old, new) = ("127.0.0.1".parse().unwrap(), "127.0.0.2".parse().unwrap());
        let resume = |secret: &str| {
            let mut other = RawClient::welcomed_from(new, server.address);
            other.say(&serde_json::json!({ "resume": { "secret": secret } }));
            let heard = other.hear();
            (other, heard)
        };
        // The secret of a flow, and a guess.
        for secret in [ready["flows"][0]["secret"].as_str().unwrap(), &"0".repeat(32)] {
            let (_, heard) = resume(secret);
            assert!(heard["refused"]["why"].as_str().unwrap().contains("no such session"), "{heard}");
        }
        client.say(&serde_json::json!("ask"));
        assert!(client.hear()["progress"].is_object(), "it was not disturbed");
        let secret: [u8; 16] = {
            let text = ready["flows"][0]["secret"].as_str().unwrap();
            std::array::from_fn(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
        };
        let is_served_at = |ip: std::net::IpAddr| {
            let socket = UdpSocket::bind((ip, 0)).unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            let registration = talkpath_kernel::wire::registration(&talkpath_kernel::wire::Secret(secret));
            socket.send_to(&registration, server.address).unwrap();
            socket.recv(&mut [0; 64]).is_ok()
        };
        assert!(is_served_at(old) && !is_served_at(new));
        let (mut client, heard) = resume(ready["resume"].as_str().unwrap());
        assert_eq!(heard, "resumed");
        assert!(is_served_at(new) && !is_served_at(old));
        client.say(&serde_json::json!("stop"));
        assert!(client.hear()["stopped"].is_object(), "the run goes on to its end");
    });
}

#[test]
fn a_server_offers_other_ports_only_if_it_was_told_to_and_serves_on_each() {
    undisturbed(|| {
        let ports_of = |server: &Serving| {
            let mut client = RawClient::welcomed(server.address);
            let ready = client.session(&[flow("udp", &raw::voice(), true)], 1_000);
            ready["ready"]["ports"].clone()
        };
        assert!(ports_of(&Serving::loopback()).is_null());
        // A port that was free a moment ago.
        let also = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let options = talkpath_live::ServeOptions {
            bind: vec!["127.0.0.1:0".parse().unwrap()],
            also: vec![also],
            ..talkpath_live::ServeOptions::default()
        };
        let server = Serving::logged(options, |_| {});
        let ports = ports_of(&server);
        assert_eq!(ports, serde_json::json!([server.address.port(), also]));
        let at_other = SocketAddr::new(server.address.ip(), also);
        let record = run(at_other, &scenario(100, vec![voice("call", "udp")])).unwrap();
        assert_eq!(record.flows[0].forward.arrivals.len(), 5);
    });
}

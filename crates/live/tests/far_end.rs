//! A far end that dies, is no talkpath server, requires a key, or does not answer. Each gives one line, and
//! what was measured is kept.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::support::quiet::undisturbed;
use crate::support::relay::Relay;
use crate::support::{MACHINES, Serving, TRANSPORTS, echoed, run, run_with, scenario, voice};
use talkpath_arena::ArenaError;
use talkpath_live::{Key, Limits, LiveArena, LiveOptions};
use talkpath_measure::{Fate, RunRecord};

/// What an attempt to reach `address` says.
fn refusal(address: &str, key: Option<&[u8]>) -> String {
    let key = key.map(|key| Key::new(key).unwrap());
    match LiveArena::connect(address, LiveOptions { key, machines: MACHINES, ..LiveOptions::default() }) {
        Err(ArenaError::FarEnd { what, partial: None } | ArenaError::Unwelcome(what)) => {
            assert!(!what.contains('\n'), "one line: {what}");
            what
        }
        other => panic!("{other:?}"),
    }
}

/// A listener that treats each connection as `serve` says.
fn listener(serve: impl Fn(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
    address
}

#[test]
fn a_far_end_that_dies_leaves_what_was_measured() {
    undisturbed(|| {
        for transport in TRANSPORTS {
            let mut server = Serving::loopback();
            let address = server.address;
            let flow = echoed("call", transport);
            let client = std::thread::spawn(move || run(address, &scenario(5000, vec![flow])));
            std::thread::sleep(Duration::from_millis(900));
            let died = Instant::now();
            server.kill();
            let error = client.join().unwrap().unwrap_err();
            assert!(died.elapsed() < Duration::from_secs(3), "{transport}: told at once");
            let ArenaError::FarEnd { what, partial: Some(record) } = error else { panic!("{error:?}") };
            assert!(what.contains(&address.to_string()), "{what}");
            let flow = &record.flows[0];
            let echo = flow.echo.as_ref().unwrap();
            let returned = echo.count(Fate::Delivered);
            assert!((10..250).contains(&returned), "{transport}: {returned} round trips");
            assert!(flow.forward.messages.len() >= returned);
            assert!(flow.forward.messages[..returned - 1].iter().all(|row| row.fate == Fate::Delivered));
            assert!(
                echo.messages.iter().all(|row| row.received.is_some()),
                "an echo's row comes with its arrival"
            );
            assert!(!record.clock.trusted && !flow.info.clock_trusted);
        }
    });
}

#[test]
fn a_flow_whose_connection_is_reset_ends_alone() {
    undisturbed(|| {
        let server = Serving::loopback();
        let relay = Relay { reset_data_after: Some(Duration::from_millis(700)), ..Relay::default() };
        let address = relay.start(server.address);
        let flows = ["udp", "tcp-nodelay"].map(|name| echoed(name, name)).to_vec();
        let record = run(address, &scenario(2000, flows)).unwrap();
        assert!(record.valid, "the path ended a flow, no machine disturbed the run: {:?}", record.warnings);
        let [call, chat] = &record.flows[..] else { panic!() };
        let fates = |fate| chat.forward.count(fate);
        let of_call = call.echo.as_ref().unwrap();
        assert_eq!(of_call.count(Fate::Delivered), 100, "it goes to its end");
        assert_eq!(chat.forward.messages.len(), 100, "what was due after the reset is recorded, too");
        assert!((25..60).contains(&fates(Fate::Delivered)), "{} delivered", fates(Fate::Delivered));
        assert!(fates(Fate::NotOpen) > 40, "{} not open", fates(Fate::NotOpen));
        assert_eq!(fates(Fate::Unfinished), 0, "nothing of it will come");
        let warnings = record.warnings.join("\n");
        assert!(warnings.contains("flow tcp-nodelay: the data connection was reset 0."), "{warnings}");
        assert_eq!(call.counters.breaks, []);
        let [broken] = &chat.counters.breaks[..] else { panic!("{:?}", chat.counters.breaks) };
        assert!(
            (500..1200).contains(&(broken.from.as_nanos() / 1_000_000)) && broken.to.is_none(),
            "{broken:?}"
        );
        // Each end has its word for it: one saw a reset, the other may see a close.
        assert!(broken.why.contains("data connection"), "{broken:?}");
    });
}

/// The record of a call of 5 s with a server whose clock is wrong by `wrong_ns` of the seconds since it first
/// reported the run's progress.
fn run_beside_clock(wrong_ns: impl Fn(f64) -> f64 + Send + Sync + 'static) -> RunRecord {
    let server = Serving::loopback();
    let begun = OnceLock::new();
    let edit = move |line: String| {
        let mut answer: serde_json::Value = serde_json::from_str(&line).unwrap();
        if answer.get("progress").is_some() {
            begun.get_or_init(Instant::now);
        }
        let wrong_ns =
            begun.get().map_or(0.0, |begun: &Instant| wrong_ns(begun.elapsed().as_secs_f64())) as i64;
        for (kind, stamp) in
            ["progress", "probe"].into_iter().flat_map(|kind| [(kind, "received_ns"), (kind, "sent_ns")])
        {
            if let Some(stamp) = answer.get_mut(kind).and_then(|answer| answer.get_mut(stamp)) {
                *stamp = (stamp.as_i64().unwrap() + wrong_ns).into();
            }
        }
        answer.to_string()
    };
    let address = Relay { edit: Arc::new(edit), ..Relay::default() }.start(server.address);
    run(address, &scenario(5000, vec![echoed("call", "udp")])).unwrap()
}

#[test]
fn a_far_clock_that_is_slewed_or_set_and_set_back_during_the_run_is_not_trusted() {
    undisturbed(|| {
        let slewed = |at: f64| if at < 2.5 { at * 500e3 } else { (5.0 - at).max(0.0) * 500e3 };
        let stepped = |at: f64| if (1.5..3.0).contains(&at) { 300e6 } else { 0.0 };
        let (slewed, stepped, even) = std::thread::scope(|scope| {
            let slewed = scope.spawn(|| run_beside_clock(slewed));
            let stepped = scope.spawn(|| run_beside_clock(stepped));
            let even = run_beside_clock(|_| 0.0);
            (slewed.join().unwrap(), stepped.join().unwrap(), even)
        });
        for record in [&slewed, &stepped] {
            assert!(!record.clock.trusted && !record.flows[0].info.clock_trusted, "{}", record.clock.why);
            assert!(record.clock.why.contains("does not run evenly"), "{}", record.clock.why);
        }
        // The step is found to within what the round trips leave open.
        let is_found = ["299.", "300."].iter().any(|ms| stepped.clock.why.contains(ms));
        assert!(is_found, "{}", stepped.clock.why);
        let even = even.clock;
        assert!(even.trusted, "{}", even.why);
        assert!(even.uncertainty_ms.unwrap() + even.change_uncertainty_ms.unwrap() < 5.0, "{even:?}");
    });
}

#[test]
fn a_user_who_interrupts_keeps_what_was_measured() {
    undisturbed(|| {
        let server = Serving::loopback();
        let address = server.address;
        let interrupt = Arc::new(AtomicBool::new(false));
        let client = std::thread::spawn({
            let interrupt = Arc::clone(&interrupt);
            let flows = vec![echoed("call", "udp"), voice("other", "tcp")];
            move || run_with(address, &scenario(5000, flows), None, &interrupt)
        });
        std::thread::sleep(Duration::from_millis(900));
        interrupt.store(true, Ordering::Relaxed);
        let ArenaError::Interrupted { partial: Some(record) } = client.join().unwrap().unwrap_err() else {
            panic!()
        };
        for flow in &record.flows {
            let delivered = flow.forward.count(Fate::Delivered);
            assert!((10..250).contains(&delivered), "{}: {delivered}", flow.info.name);
            assert!(
                flow.forward.messages.iter().all(|row| row.fate != Fate::Missing),
                "nothing was lost on loopback"
            );
        }
    });
}

#[test]
fn what_is_no_server_is_told_from_one() {
    undisturbed(|| {
        let noise = listener(|mut stream| drop(stream.write_all(b"\x00\x17SSH-2.0-noise\r\n")));
        assert!(refusal(&noise.to_string(), None).contains("another service"));
        let http = listener(|mut stream| drop(stream.write_all(b"{\"error\": 1}\n")));
        assert!(refusal(&http.to_string(), None).contains("not talkpath's protocol"));
        let closing = listener(drop);
        assert!(refusal(&closing.to_string(), None).contains("closed the connection"));
        let silent = listener(|stream| {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_secs(8));
                drop(stream);
            });
        });
        let begun = Instant::now();
        assert!(refusal(&silent.to_string(), None).contains("said nothing"));
        assert!(begun.elapsed() < Duration::from_secs(6));
        let endless = listener(|mut stream| while stream.write_all(&[b'{'; 4096]).is_ok() {});
        assert!(refusal(&endless.to_string(), None).contains("not talkpath's protocol"));
    });
}

#[test]
fn a_host_that_is_not_there_says_so() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let what = refusal(&nobody.to_string(), None);
    assert!(
        what.contains("refused") && what.contains(&nobody.to_string()) && what.contains("talkpath serve"),
        "{what}"
    );
    assert!(refusal("no-such-host.invalid", None).contains("no such host: no-such-host.invalid"));
    assert!(refusal("127.0.0.1:99999", None).contains("1 to 65535"));
}

#[test]
fn a_key_must_be_the_same_at_both_ends() {
    undisturbed(|| {
        let key = b"0123456789abcdef0123456789abcdef";
        let server = Serving::at("127.0.0.1:0", Some(Key::new(key).unwrap()), Limits::default());
        let address = server.address.to_string();
        assert!(refusal(&address, None).contains("asks for a key"));
        assert!(refusal(&address, Some(b"another key entirely")).contains("the key is not this server's"));
        let run_of = scenario(100, vec![voice("call", "udp")]);
        let record =
            run_with(server.address, &run_of, Some(Key::new(key).unwrap()), &AtomicBool::new(false)).unwrap();
        assert_eq!(record.flows[0].forward.messages.len(), 5);
        let open = Serving::loopback();
        assert!(refusal(&open.address.to_string(), Some(key)).contains("does not ask for a key"));
    });
}

#[test]
fn another_version_is_refused_with_both_numbers_in_less_than_was_sent() {
    let server = Serving::loopback();
    let mut stream = TcpStream::connect(server.address).unwrap();
    let hello = format!(
        r#"{{"hello":{{"version":99,"nonce":"{}","filling":"{}"}}}}"#,
        "0".repeat(32),
        ".".repeat(512)
    );
    writeln!(stream, "{hello}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("version 17") && answer.contains("version 99"), "{answer}");
    assert!(answer.len() < hello.len());
    let other = listener(|mut stream| {
        let _ = stream.write_all(b"{\"refused\":{\"why\":\"it speaks version 2 of the protocol\"}}\n");
    });
    assert!(refusal(&other.to_string(), None).contains("refuses: it speaks version 2"));
}

#[test]
fn a_session_beyond_the_limits_is_refused_before_it_begins() {
    let limits = Limits { flows: 1, duration_s: 2, rate_bps: 100_000, ..Limits::default() };
    let server = Serving::at("127.0.0.1:0", None, limits);
    let refused = |ms, flows| match run(server.address, &scenario(ms, flows)) {
        Err(ArenaError::Unsupported(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(refused(100, vec![voice("a", "udp"), voice("b", "udp")]).contains("2 flows"));
    assert!(refused(3000, vec![voice("a", "udp")]).contains("duration"));
    let doubled = echoed("a", "udp");
    assert!(refused(100, vec![doubled]).contains("128000 bps"));
    assert!(run(server.address, &scenario(100, vec![voice("a", "udp")])).is_ok());
}

#[test]
fn a_server_whose_sessions_are_taken_says_so_and_serves_again_when_one_ends() {
    undisturbed(|| {
        let server = Serving::at("127.0.0.1:0", None, Limits { sessions: 1, ..Limits::default() });
        let address = server.address;
        let first = std::thread::spawn(move || run(address, &scenario(1000, vec![voice("call", "udp")])));
        std::thread::sleep(Duration::from_millis(400));
        match run(address, &scenario(100, vec![voice("call", "udp")])) {
            Err(ArenaError::FarEnd { what, partial: None }) => {
                assert!(what.contains("sessions are taken"), "{what}");
            }
            other => panic!("{other:?}"),
        }
        assert!(first.join().unwrap().is_ok());
        std::thread::sleep(Duration::from_millis(100));
        assert!(run(address, &scenario(100, vec![voice("call", "udp")])).is_ok());
    });
}

#[test]
fn ipv6_works_where_the_host_has_it() {
    undisturbed(|| {
        if TcpListener::bind("[::1]:0").is_err() {
            println!("SKIP: this host has no IPv6 loopback");
            return;
        }
        let server = Serving::at("[::]:0", None, Limits::default());
        let port = server.address.port();
        for address in [format!("[::1]:{port}"), format!("127.0.0.1:{port}")] {
            let flows = ["udp", "tcp"].map(|name| echoed(name, name)).to_vec();
            let record = run(address.parse().unwrap(), &scenario(200, flows)).unwrap();
            for flow in &record.flows {
                let echo = flow.echo.as_ref().unwrap();
                assert_eq!(echo.count(Fate::Delivered), 10, "{address}");
            }
        }
    });
}

#[test]
fn several_clients_measure_at_once() {
    undisturbed(|| {
        let server = Serving::loopback();
        let address = server.address;
        let clients: Vec<_> = (0..4)
            .map(|_| {
                let flows = ["udp", "tcp"].map(|name| echoed(name, name)).to_vec();
                std::thread::spawn(move || run(address, &scenario(600, flows)))
            })
            .collect();
        for client in clients {
            for flow in &client.join().unwrap().unwrap().flows {
                let echo = flow.echo.as_ref().unwrap();
                assert_eq!(echo.count(Fate::Delivered), 30);
            }
        }
    });
}

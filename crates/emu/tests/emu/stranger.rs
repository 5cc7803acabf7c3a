//! Another program in the place of one end: what it counts is what the arrival log has.

use std::net::UdpSocket;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use talkpath_arena::{Arena as _, ArenaError};
use talkpath_emu::{EmuArena, Stranger, read_directions, replay};
use talkpath_flow::Side;
use talkpath_model::Scenario;

use super::support::quiet::skip;
use super::support::shared::plan;
use super::support::{beside, scenario};

/// Datagrams that come to `socket`, until none has come for two seconds: how many, their bytes, and the
/// sequence number of the last.
fn count(socket: &UdpSocket) -> (usize, usize, u32) {
    socket.set_nonblocking(false).expect("the system takes it");
    socket.set_read_timeout(Some(Duration::from_millis(500))).expect("the system takes it");
    let (mut all, mut bytes, mut waits) = (0, 0, 0);
    let mut datagram = [0; 2000];
    while waits < 4 {
        match socket.recv(&mut datagram) {
            Ok(size) => (all, bytes, waits) = (all + 1, bytes + size, 0),
            Err(_) => waits += 1,
        }
    }
    let [_, _, _, _, a, b, c, d, ..] = datagram;
    (all, bytes, u32::from_be_bytes([a, b, c, d]))
}

#[test]
fn what_comes_to_a_stranger_is_what_the_arrival_log_let_through() {
    let _beside = beside();
    let scenario = scenario(
        r#"
        name = "stranger"
        duration = "2 s"
        drain = "500 ms"
        [path]
        up = { rate = "10 Mbps", delay = "10 ms", loss = 0.1 }
        down = { rate = "10 Mbps", delay = "10 ms" }
        [flow.call]
        transport = "udp"
        workload = { kind = "cbr", rate = "640 kbps", size = "400 B" }
        "#,
    );
    let mut thread = None;
    let mut take_socket = |socket| {
        thread = Some(std::thread::spawn(move || count(&UdpSocket::from(socket))));
        Ok(())
    };
    let mut stranger = Stranger { flow: 0, side: Side::Far, quic_keys: None, take_socket: &mut take_socket };
    let mut arena = EmuArena::default();
    let interrupt = AtomicBool::new(false);
    let (_, ours) = match arena.run_beside(&scenario, plan(&interrupt, &|_| {}), &mut stranger) {
        Ok(ran) => ran,
        Err(why @ ArenaError::Unavailable { .. }) => return skip(why),
        Err(why) => panic!("{why}"),
    };
    let (came, bytes, last) = thread.expect("the socket was given away").join().unwrap();
    let log = arena.take_arrival_log().unwrap();
    replay(&log, &scenario).unwrap();
    let [out, back] = read_directions(&log).unwrap();
    // 200 messages a second.
    assert!((390..=400).contains(&ours.sent), "{}", ours.sent);
    assert_eq!((ours.sent, ours.received), (out.arrived.len() as u64, 0));
    assert!(out.lost.len() > 10, "{}", out.lost.len());
    assert_eq!((came, bytes), (out.departed.len(), 400 * came));
    assert_eq!(came + out.lost.len(), out.arrived.len());
    assert!(out.arrived.iter().all(|&length| length == 408), "a UDP header and the message");
    assert_eq!(out.is_last_lost, u64::from(last) + 1 < ours.sent, "{last} of {}", ours.sent);
    assert!(back.arrived.is_empty() && !back.is_last_lost);
    // A run that is refused leaves nothing of the one before.
    assert!(arena.report().is_some());
    let mut nowhere = Stranger { flow: 1, side: Side::Far, quic_keys: None, take_socket: &mut |_| Ok(()) };
    let refused = arena.run_beside(&scenario, plan(&interrupt, &|_| {}), &mut nowhere);
    assert!(matches!(refused, Err(ArenaError::Unsupported(_))));
    assert!(arena.report().is_none());
}

/// The kernel cuts them before the path. They carry no message of ours, so that no number is known for them.
#[test]
fn every_fragment_of_a_strangers_datagrams_crosses_the_path() {
    let _beside = beside();
    let mut thread = None;
    let mut take_socket = |socket| {
        thread = Some(std::thread::spawn(move || {
            let socket = UdpSocket::from(socket);
            // The run begins meanwhile.
            std::thread::sleep(Duration::from_millis(500));
            for _ in 0..20 {
                std::thread::sleep(Duration::from_millis(10));
                assert_eq!(socket.send(&[0xa5; 3000]).expect("the socket takes it"), 3000);
            }
        }));
        Ok(())
    };
    let mut stranger = Stranger { flow: 0, side: Side::Near, quic_keys: None, take_socket: &mut take_socket };
    let mut arena = EmuArena::default();
    let interrupt = AtomicBool::new(false);
    let scenario = scenario(&CALL.replace("100 ms", "1500 ms"));
    let (record, ours) = match arena.run_beside(&scenario, plan(&interrupt, &|_| {}), &mut stranger) {
        Ok(ran) => ran,
        Err(why @ ArenaError::Unavailable { .. }) => return skip(why),
        Err(why) => panic!("{why}"),
    };
    thread.expect("the socket was given away").join().unwrap();
    let log = arena.take_arrival_log().unwrap();
    replay(&log, &scenario).unwrap();
    let [out, _] = read_directions(&log).unwrap();
    // 3008 B with UDP's header, of which two packets of 1500 B carry 1480 each.
    assert_eq!(out.arrived, [1480, 1480, 48].repeat(20));
    assert_eq!((out.departed.len(), out.lost.len(), ours.received), (60, 0, 0));
    assert!(!record.warnings.iter().any(|line| line.contains("no flow")), "{:?}", record.warnings);
}

#[test]
fn a_stranger_that_does_not_take_its_socket_is_a_far_end_that_fails_and_no_arena_that_is_missing() {
    let _beside = beside();
    let mut take_socket = |_| Err(std::io::ErrorKind::NotFound.into());
    let mut stranger = Stranger { flow: 0, side: Side::Far, quic_keys: None, take_socket: &mut take_socket };
    let interrupt = AtomicBool::new(false);
    let ended = EmuArena::default().run_beside(&call(""), plan(&interrupt, &|_| {}), &mut stranger);
    match ended.map(|_| ()) {
        Err(ArenaError::FarEnd { what, partial: None }) => assert!(what.contains("not found"), "{what}"),
        // Nothing was given away.
        Err(why @ ArenaError::Unavailable { .. }) if !why.to_string().contains("not found") => skip(why),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stranger_is_refused_in_a_flow_that_is_not_there_over_tcp_and_beside_a_far_clock() {
    let interrupt = AtomicBool::new(false);
    let why = |flow, scenario: &Scenario| {
        let mut take_socket = |_| panic!("nothing is given away");
        let mut stranger = Stranger { flow, side: Side::Far, quic_keys: None, take_socket: &mut take_socket };
        match EmuArena::default().run_beside(scenario, plan(&interrupt, &|_| {}), &mut stranger) {
            Err(ArenaError::Unsupported(why)) => why,
            other => panic!("{:?}", other.map(|_| ())),
        }
    };
    assert!(why(1, &call("")).contains("flow 1"));
    assert!(why(0, &scenario(&CALL.replace("udp", "tcp"))).contains("TCP"));
    assert!(why(0, &call("far_clock = { offset = \"2 s\" }")).contains("far_clock"));
}

fn call(more: &str) -> Scenario {
    scenario(&format!("{more}\n{CALL}"))
}

const CALL: &str = r#"
    name = "stranger"
    duration = "100 ms"
    drain = "100 ms"
    [path]
    up = { rate = "10 Mbps", delay = "10 ms" }
    down = { rate = "10 Mbps", delay = "10 ms" }
    [flow.call]
    transport = "udp"
    workload = { kind = "cbr", rate = "640 kbps", size = "400 B" }
"#;

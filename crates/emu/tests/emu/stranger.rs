//! Another program in the place of one end: what it counts is what the arrival log has.

use std::net::UdpSocket;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use talkpath_arena::{Arena as _, ArenaError};
use talkpath_emu::{EmuArena, Stranger, replay, ways};

use super::support::quiet::skip;
use super::support::shared::plan;
use super::support::{alone, scenario};

/// Datagrams that come to `socket`, until none has come for a second: how many, and their bytes.
fn count(socket: &UdpSocket) -> (usize, usize) {
    socket.set_nonblocking(false).expect("the system takes it");
    socket.set_read_timeout(Some(Duration::from_millis(500))).expect("the system takes it");
    let (mut all, mut bytes, mut waits) = (0, 0, 0);
    while waits < 4 {
        match socket.recv(&mut [0; 2000]) {
            Ok(size) => (all, bytes, waits) = (all + 1, bytes + size, 0),
            Err(_) => waits += 1,
        }
    }
    (all, bytes)
}

#[test]
fn what_comes_to_a_stranger_is_what_the_arrival_log_let_through() {
    let _alone = alone();
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
    let mut stranger = Stranger { flow: 0, is_sender: false, quic_keys: None, take_socket: &mut take_socket };
    let mut arena = EmuArena::default();
    let interrupt = AtomicBool::new(false);
    let (_, ours) = match arena.run_beside(&scenario, plan(&interrupt, &|_| {}), &mut stranger) {
        Ok(ran) => ran,
        Err(why @ ArenaError::Unavailable { .. }) => return skip(why),
        Err(why) => panic!("{why}"),
    };
    let (came, bytes) = thread.expect("the socket was given away").join().unwrap();
    let log = arena.take_arrival_log().unwrap();
    replay(&log, &scenario).unwrap();
    let [out, back] = ways(&log).unwrap();
    // 200 messages a second.
    assert!((390..=400).contains(&ours.sent), "{}", ours.sent);
    assert_eq!((ours.sent, ours.received), (out.arrived.len() as u64, 0));
    assert!(out.lost.len() > 10, "{}", out.lost.len());
    assert_eq!((came, bytes), (out.departed.len(), 400 * came));
    assert_eq!(came + out.lost.len(), out.arrived.len());
    assert!(out.arrived.iter().all(|&length| length == 408), "a UDP header and the message");
    assert!(back.arrived.is_empty());
}

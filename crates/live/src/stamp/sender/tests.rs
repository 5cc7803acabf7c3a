use talkpath_measure::Fate;

use super::*;

fn options(size: u64, dscps: Option<Dscps>) -> StampOptions {
    StampOptions {
        host: String::new(),
        ip: None,
        interval: Duration::ZERO,
        count: 1,
        size: Bytes::new(size),
        dscps,
        is_stateful: false,
        clocks_synchronised: false,
        wait: Duration::ZERO,
    }
}

/// What a reflector answers to the next packet that comes to `far`, and to whom.
fn answer(far: &UdpSocket) -> Option<(Vec<u8>, SocketAddr)> {
    let mut question = [0; BASE];
    let (_, from) = far.recv_from(&mut question).ok()?;
    let packet = SenderPacket::parse(&question)?;
    let answer = ReflectorPacket {
        sequence: packet.sequence,
        timestamp: packet.timestamp,
        error: packet.error,
        received: packet.timestamp,
        sender_sequence: packet.sequence,
        sender_timestamp: packet.timestamp,
        ..ReflectorPacket::default()
    };
    Some((answer.write().to_vec(), from))
}

#[test]
fn who_stops_it_still_has_the_answers_to_what_was_sent() {
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    far.set_read_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
    let host = far.local_addr().unwrap().to_string();
    let (interval, wait) = (Duration::from_millis(10), Duration::from_secs(20));
    let asked = StampOptions { host, interval, count: 5_000, wait, ..options(44, None) };
    let interrupt = AtomicBool::new(false);
    let run = std::thread::scope(|scope| {
        scope.spawn(|| {
            let first = answer(&far).unwrap();
            interrupt.store(true, Ordering::Relaxed);
            std::thread::sleep(std::time::Duration::from_millis(200));
            for (answer, from) in std::iter::once(first).chain(std::iter::from_fn(|| answer(&far))) {
                far.send_to(&answer, from).unwrap();
            }
        });
        send(&asked, &interrupt).unwrap()
    });
    let forward = &run.record.flows[0].forward.messages;
    assert!(forward.len() < 1_000, "{} were sent", forward.len());
    assert!(forward.iter().all(|message| message.fate == Fate::Delivered), "{forward:?}");
}

#[test]
fn a_stop_before_the_first_packet_says_nothing_of_the_reflector() {
    let host = "127.0.0.1:9".to_owned();
    let stopped = send(&StampOptions { host, ..options(44, None) }, &AtomicBool::new(true));
    assert!(matches!(stopped, Err(ArenaError::Interrupted { partial: None })), "{stopped:?}");
}

#[test]
fn an_answer_that_came_twice_does_not_end_the_wait_for_another() {
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    let host = far.local_addr().unwrap().to_string();
    let asked = StampOptions { host, count: 2, wait: Duration::from_secs(5), ..options(44, None) };
    let run = std::thread::scope(|scope| {
        scope.spawn(|| {
            for late_ms in [0, 300] {
                let (answer, from) = answer(&far).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(late_ms));
                for _ in 0..2 {
                    far.send_to(&answer, from).unwrap();
                }
            }
        });
        send(&asked, &AtomicBool::new(false)).unwrap()
    });
    let forward = &run.record.flows[0].forward.messages;
    assert!(forward.iter().all(|message| message.fate == Fate::Delivered), "{forward:?}");
    assert_eq!(run.losses, Some(DirectionLosses { forward: 0, back: 0 }));
}

/// Sends two packets to a reflector whose three threads each answer the first one with this many `copies`.
fn flooded(copies: usize) -> StampRun {
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    let host = far.local_addr().unwrap().to_string();
    let interval = Duration::from_millis(500);
    let asked = StampOptions { host, count: 2, interval, wait: Duration::from_secs(1), ..options(44, None) };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (first, from) = answer(&far).unwrap();
            std::thread::scope(|flood| {
                for _ in 0..3 {
                    flood.spawn(|| (0..copies).for_each(|_| drop(far.send_to(&first, from))));
                }
            });
            let (second, from) = answer(&far).unwrap();
            far.send_to(&second, from).unwrap();
        });
        send(&asked, &AtomicBool::new(false)).unwrap()
    })
}

#[test]
fn a_socket_that_drops_answers_is_said_and_takes_the_validity_from_the_run() {
    let says = |run: &StampRun| run.record.warnings.iter().any(|warning| warning.contains("no room"));
    // 60,000 answers of 44 B take 46 MB of the kernel's memory, and the socket has 0.2 MB.
    let run = flooded(20_000);
    assert!(!run.record.valid && says(&run), "{:?}", run.record.warnings);
    let run = flooded(1);
    assert!(run.record.valid && !says(&run), "{:?}", run.record.warnings);
}

#[test]
fn few_packets_compare_the_clocks_at_both_ends_of_the_run() {
    for (count, is_trusted) in [(1, false), (2, true), (8, true)] {
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        let host = far.local_addr().unwrap().to_string();
        let interval = Duration::from_millis(5);
        let asked = StampOptions { host, count, interval, wait: Duration::from_secs(5), ..options(44, None) };
        let run = std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..count {
                    let (answer, from) = answer(&far).unwrap();
                    far.send_to(&answer, from).unwrap();
                }
            });
            send(&asked, &AtomicBool::new(false)).unwrap()
        });
        let clock = &run.record.clock;
        assert_eq!(clock.trusted, is_trusted, "{count} packets: {}", clock.why);
    }
}

#[test]
fn a_packet_is_as_large_as_it_is_set_to_be() {
    for (size, dscps, expected) in [
        (44, None, 44),
        (48, None, 48),
        (1400, None, 1400),
        (52, Some(Dscps { packets: 46, answers: 46 }), 52),
        (100, Some(Dscps { packets: 0, answers: 1 }), 100),
    ] {
        assert_eq!(BASE + options(size, dscps).tlvs().len(), expected);
    }
    let dscps = Some(Dscps { packets: 1, answers: 1 });
    assert_eq!((StampOptions::min_size(None), StampOptions::min_size(dscps)), (44, 52));
    assert_eq!(BASE + options(46, None).tlvs().len(), 44, "less than a TLV's header stays out");
}

//! Files over every transport on loopback. What arrived is checked to the byte. It is kept only if the
//! receiver was started with a folder for it.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::sync::atomic::AtomicBool;

use crate::support::quiet::undisturbed;
use crate::support::raw::{RawClient, flow};
use crate::support::shared::{Folder, found};
use crate::support::{Serving, down, run, run_with, scenario, voice};
use serde_json::json;
use talkpath_live::{Key, Limits, ServeOptions};
use talkpath_measure::RunRecord;
use talkpath_model::{Flow, WorkloadConfig};
use talkpath_units::Bytes;

/// A file of `bytes` bytes over `transport`, in messages of `size`.
fn file(name: &str, transport: &str, source: &str, bytes: u64, size: u64) -> Flow {
    let header = Bytes::new(if transport == "udp" { 16 } else { 0 });
    let workload = WorkloadConfig::File {
        source: source.to_owned(),
        bytes: Bytes::new(bytes),
        size: Bytes::new(size),
        header,
    };
    Flow { workload, ..voice(name, transport) }
}

#[test]
fn a_file_over_loopback_is_checked_and_kept_where_that_was_asked_for() {
    undisturbed(|| {
        let (folder, kept) = (Folder::new("live"), Folder::new("kept"));
        let source = folder.file("talk.wav", 200_000);
        let flows =
            || ["udp", "tcp", "tcp-nodelay"].map(|name| file(name, name, &source, 200_000, 1400)).to_vec();
        let check = |record: &RunRecord| {
            for flow in &record.flows {
                let file = flow.file.as_ref().unwrap();
                assert_eq!((file.received, file.intact), (Some(Bytes::new(200_000)), Some(true)), "{file:?}");
            }
        };
        let record = run(Serving::loopback().address, &scenario(1000, flows())).unwrap();
        check(&record);
        assert!(record.flows.iter().all(|flow| flow.file.as_ref().unwrap().kept_as.is_none()));
        assert!(record.machine.as_ref().unwrap().real_time.is_some());

        let bind = vec!["127.0.0.1:0".parse().unwrap()];
        let limits = Limits { kept_bytes: 500_000, ..Limits::default() };
        let server = Serving::with(ServeOptions {
            bind,
            limits,
            keep: Some(kept.0.clone()),
            ..ServeOptions::default()
        });
        let record = run(server.address, &scenario(1000, flows())).unwrap();
        check(&record);
        let expected = ["receive-log.txt", "talk-2.wav", "talk.wav"];
        assert_eq!(kept.names(), expected, "the third would pass the server's limit");
        let log = std::fs::read_to_string(kept.0.join("receive-log.txt")).unwrap();
        let blocks: Vec<Vec<&str>> =
            log.trim_end().split("\n\n").map(|block| block.lines().collect()).collect();
        // The pieces of the datagrams have a header of 16 B: 200,000 / 1384 is 144.5.
        let (udp, tcp) = (&blocks[0], &blocks[1]);
        assert_eq!(
            udp[3..7],
            [
                "Packet size: 720 to 1400 bytes",
                "Packets received: 145",
                "Packets expected: 145",
                "Protocol: UDP"
            ]
        );
        assert_eq!(
            tcp[3..7],
            [
                "Packet size: 1200 to 1400 bytes",
                "Packets received: 143",
                "Packets expected: 143",
                "Protocol: TCP"
            ]
        );
        let names = ["Start timestamp: 20", "End timestamp: 20", "Transfer time: "];
        for block in &blocks {
            assert!(
                block.len() == 10 && block.iter().zip(names).all(|(line, name)| line.starts_with(name)),
                "{log}"
            );
        }
        assert_eq!(log.matches("\nFile: talk.wav\n").count(), 3, "{log}");
        assert_eq!(log.matches("\nArrived: intact\n").count(), 3, "{log}");
        assert!(
            record.warnings.iter().any(|line| line.contains("did not keep the file: its limit of 500000 B"))
        );
        for name in ["talk-2.wav", "talk.wav"] {
            assert!(std::fs::read(kept.0.join(name)).unwrap() == std::fs::read(&source).unwrap());
        }
    });
}

#[test]
fn a_server_without_a_folder_for_files_logs_transfers_where_that_was_asked_for() {
    let (folder, logged) = (Folder::new("sent"), Folder::new("logged"));
    let source = folder.file("talk.wav", 50_000);
    let server = Serving::with(ServeOptions {
        bind: vec!["127.0.0.1:0".parse().unwrap()],
        log: Some(logged.0.clone()),
        ..ServeOptions::default()
    });
    let flows = vec![file("f", "tcp", &source, 50_000, 65_536)];
    let record = run(server.address, &scenario(500, flows)).unwrap();
    assert_eq!(found(&record, "f").kept_as, None);
    assert_eq!(logged.names(), ["receive-log.txt"]);
    let log = std::fs::read_to_string(logged.0.join("receive-log.txt")).unwrap();
    assert!(log.contains("\nFile: talk.wav\n") && log.contains("\nArrived: intact\n"), "{log}");
}

#[test]
fn a_file_that_could_not_be_kept_takes_none_of_the_room_for_files() {
    let (folder, kept) = (Folder::new("room"), Folder::new("room-kept"));
    let source = folder.file("talk.wav", 50_000);
    let server = Serving::with(ServeOptions {
        bind: vec!["127.0.0.1:0".parse().unwrap()],
        limits: Limits { kept_bytes: 50_000, ..Limits::default() },
        keep: Some(kept.0.clone()),
        ..ServeOptions::default()
    });
    let send = || {
        let flows = vec![file("f", "tcp", &source, 50_000, 65_536)];
        let record = run(server.address, &scenario(500, flows)).unwrap();
        found(&record, "f").kept_as.clone()
    };
    std::fs::remove_dir(&kept.0).unwrap();
    assert_eq!(send(), None);
    std::fs::create_dir(&kept.0).unwrap();
    assert_eq!(send().as_deref(), Some("talk.wav"));
}

#[test]
fn one_address_has_half_of_the_memory_for_files_and_is_told_to_come_again() {
    let limits = Limits { held_bytes: 2_000, ..Limits::default() };
    let server = Serving::at("127.0.0.1:0", None, limits);
    let upload = |bytes: u64| {
        let header = json!({ "bytes": bytes, "size": 100, "header": 16 });
        let mut flow = flow("udp", &json!({ "file": header }), true);
        flow["file"] = json!({ "name": "f", "sha256": "0".repeat(64) });
        flow
    };
    let ask = |from: &str, bytes: u64| {
        let mut client = RawClient::welcomed_from(from.parse().unwrap(), server.address);
        let answer = client.session(&[upload(bytes)], 60_000);
        (client, answer)
    };
    let (first, ready) = ask("127.0.0.1", 1_000);
    assert!(ready["ready"].is_object(), "{ready}");
    for (from, bytes, word) in [("127.0.0.1", 1, "busy"), ("127.0.0.2", 1_001, "refused")] {
        let (_client, answer) = ask(from, bytes);
        let why = answer[word]["why"].as_str().unwrap_or_default();
        assert!(why.contains("1000 B for those of one address"), "{answer}");
    }
    let (_second, ready) = ask("127.0.0.2", 1_000);
    assert!(ready["ready"].is_object(), "others still have room: {ready}");
    let (_third, answer) = ask("127.0.0.3", 1);
    assert!(answer["busy"]["why"].as_str().unwrap_or_default().contains("2000 B of them taken"), "{answer}");
    drop(first);
    // The server sees that soon.
    assert!((0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        ask("127.0.0.3", 1_000).1["ready"].is_object()
    }));
}

#[test]
fn a_server_takes_no_more_files_than_it_holds_and_sends_none() {
    let folder = Folder::new("limits");
    let source = folder.file("talk.wav", 50_000);
    let server = Serving::at("127.0.0.1:0", None, Limits { held_bytes: 40_000, ..Limits::default() });
    let refused = |flow: Flow| run(server.address, &scenario(300, vec![flow])).unwrap_err().to_string();
    let why = refused(file("f", "udp", &source, 50_000, 1400));
    assert!(
        why.contains("files and QUIC connections of 50000 B; this server holds 20000 B for those of one"),
        "{why}"
    );
    // A stream that is not kept needs no memory.
    let record =
        run(server.address, &scenario(500, vec![file("f", "tcp", &source, 50_000, 65_536)])).unwrap();
    assert_eq!(found(&record, "f").intact, Some(true));
    assert!(refused(down(file("f", "tcp", &source, 50_000, 1400))).contains("a file goes up"));
    assert!(refused(file("f", "tcp", &source, 49_999, 1400)).contains("has not now"));
}

#[test]
fn bulk_over_udp_is_sent_as_the_socket_takes_it() {
    undisturbed(|| {
        let workload = WorkloadConfig::Bulk { bytes: Some(Bytes::new(400_000)) };
        let flow = Flow { workload, ..voice("bulk", "udp") };
        let record = run(Serving::loopback().address, &scenario(1000, vec![flow])).unwrap();
        let rows = &record.flows[0].forward.messages;
        assert_eq!(rows.iter().map(|row| row.size.get()).sum::<u64>(), 400_000);
        assert_eq!(rows.len(), 7, "six whole datagrams of 65,507 B and the rest");
        assert!(rows.iter().all(|row| row.received.is_some() && row.sent.is_some()));
        assert!(
            record.flows[0].counters.blocked.is_some()
                && record.flows[0].counters.cwnd_packets_mean.is_none()
        );
    });
}

#[test]
fn a_file_over_udp_is_intact_with_a_key() {
    let folder = Folder::new("keyed");
    let source = folder.file("talk.wav", 50_000);
    let key = || Key::new(b"0123456789abcdef0123456789abcdef").unwrap();
    let server = Serving::at("127.0.0.1:0", Some(key()), Limits::default());
    let flows = vec![file("f", "udp", &source, 50_000, 1400)];
    let record =
        run_with(server.address, &scenario(500, flows), Some(key()), &AtomicBool::new(false)).unwrap();
    assert_eq!(found(&record, "f").intact, Some(true));
}

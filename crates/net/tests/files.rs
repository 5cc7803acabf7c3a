//! Files over every transport, in the emulated arena and over loopback: what arrived is checked to the byte, what did not is
//! listed, and it is kept only where that was asked for.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

mod support;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use support::{Serving, down, plan, run, scenario, voice};
use talkpath_arena::{Arena, ArenaError};
use talkpath_measure::{FileRecord, RunRecord};
use talkpath_net::emu::{EmuArena, replay};
use talkpath_net::{Limits, ServeOptions};
use talkpath_scenario::{Files, Flow, Located, Options, Scenario, Source, WorkloadConfig, load_with_files};
use talkpath_units::Bytes;

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("talkpath-files-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A file of `size` bytes that repeat no earlier than after 251.
    fn file(&self, name: &str, size: usize) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, (0..size).map(|n| (n % 251) as u8 ^ (n / 251) as u8).collect::<Vec<_>>())
            .unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Names of files are their whole paths.
struct Whole;

impl Files for Whole {
    fn text(&self, name: &str) -> Result<String, String> {
        std::fs::read_to_string(name).map_err(|error| error.to_string())
    }

    fn locate(&self, name: &str) -> Result<Located, String> {
        let size = std::fs::metadata(name).map_err(|error| error.to_string())?.len();
        Ok(Located { path: name.to_owned(), size: Bytes::new(size) })
    }
}

/// A file of `bytes` bytes over `transport`, in messages of `size`.
fn file(name: &str, transport: &str, source: &str, bytes: u64, size: u64) -> Flow {
    let header = Bytes::new(if transport == "udp" { 8 } else { 0 });
    let workload = WorkloadConfig::File {
        source: source.to_owned(),
        bytes: Bytes::new(bytes),
        size: Bytes::new(size),
        header,
    };
    Flow { workload, ..voice(name, transport) }
}

fn found<'a>(record: &'a RunRecord, flow: &str) -> &'a FileRecord {
    let flow = record.flows.iter().find(|it| it.info.name == flow).unwrap();
    flow.file.as_ref().unwrap()
}

/// Runs `text` in the emulated arena and replays it; `None` where the machine does not allow it, which is printed.
fn emulate(text: &str) -> Option<RunRecord> {
    static ONE: Mutex<()> = Mutex::new(());
    let _alone = ONE.lock();
    let loaded = load_with_files(&Source::new("f.toml", text), &Options::default(), &Whole);
    let scenario: Scenario = loaded.unwrap_or_else(|why| panic!("{why}")).cells.remove(0).scenario;
    let mut arena = match EmuArena::open() {
        Ok(arena) => arena,
        Err(why @ ArenaError::Unavailable { .. }) => {
            eprintln!("SKIPPED: {why}");
            return None;
        }
        Err(why) => panic!("{why}"),
    };
    let interrupt = AtomicBool::new(false);
    let record = arena.run(&scenario, plan(&interrupt, &|_| {})).unwrap_or_else(|why| panic!("{why}"));
    eprintln!("{:?}", record.warnings);
    replay(&arena.take_arrival_log().unwrap(), &scenario).unwrap_or_else(|why| panic!("{why}"));
    Some(record)
}

#[test]
fn a_file_crosses_the_emulated_path_over_every_transport_and_both_ways() {
    let folder = Folder::new("emu");
    let source = folder.file("talk.wav", 300_000);
    let flow = |name: &str, transport: &str, more: &str| {
        format!(
            "[flow.{name}]\ntransport = \"{transport}\"\nworkload = {{ kind = \"file\", source = \"{source}\" }}\n{more}\n"
        )
    };
    let text = "duration = \"3 s\"\ndrain = \"500 ms\"\npath.up = { rate = \"50 Mbps\", delay = \"5 ms\" }\n\
                path.down = { rate = \"50 Mbps\", delay = \"5 ms\" }\n"
        .to_owned()
        + &flow("datagrams", "udp", "")
        + &flow("stream", "tcp", "")
        + &flow("prompt", "tcp-nodelay", "direction = \"down\"")
        + &flow("slow", "tcp", "receiver = { service = \"20 ms\" }");
    let Some(record) = emulate(&text) else { return };
    for name in ["datagrams", "stream", "prompt", "slow"] {
        let file = found(&record, name);
        assert_eq!((file.received, file.intact), (Some(Bytes::new(300_000)), Some(true)), "{name}: {file:?}");
        assert_eq!((file.name.as_str(), file.missing_ranges, &file.kept_as), ("talk.wav", 0, &None));
    }
    let datagrams = &record.flows[0].forward.messages;
    assert!(
        datagrams.iter().rev().skip(1).all(|row| row.size == Bytes::new(1472)),
        "what crosses 1500 B whole"
    );
    assert_eq!(datagrams.iter().map(|row| row.size.get() - 8).sum::<u64>(), 300_000);
}

#[test]
fn what_is_missing_of_a_file_over_udp_is_listed_by_its_bytes() {
    let folder = Folder::new("missing");
    let source = folder.file("talk.wav", 10_500);
    std::fs::write(folder.0.join("loss"), "0110 00000 0 1").unwrap();
    let text = format!(
        "duration = \"1 s\"\ndrain = \"300 ms\"\npath.down = {{ rate = \"1 Mbps\" }}\n\
         path.up = {{ rate = \"50 Mbps\", loss = {{ kind = \"trace\", file = \"{}\" }} }}\n\
         [flow.f]\ntransport = \"udp\"\nworkload = {{ kind = \"file\", source = \"{source}\", size = \"1008 B\" }}\n",
        folder.0.join("loss").display()
    );
    let Some(record) = emulate(&text) else { return };
    let file = found(&record, "f");
    assert_eq!((file.received, file.intact), (Some(Bytes::new(8000)), Some(false)));
    assert_eq!((&file.missing[..], file.missing_ranges), (&[(1000, 3000), (10_000, 10_500)][..], 2));
    assert!(record.warnings.iter().any(|line| line.contains("8000 of 10500 B arrived, 2 byte ranges")));
}

#[test]
fn a_replay_finds_no_difference_with_traces_fragments_several_links_and_super_packets() {
    let folder = Folder::new("replay");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.0.join(name), text).unwrap();
        folder.0.join(name).display().to_string()
    };
    // 20 Mbps in lumps of five packets, a loss in thirty, a delay that steps.
    let rate = write("rate", &(1..=100).map(|n| format!("{}\n", n / 5 * 3)).collect::<String>());
    let (loss, delay) = (write("loss", &("0".repeat(29) + "1")), write("delay", "0\n0.5\n1.25\n"));
    let text = format!(
        r#"
        duration = "2 s"
        [link.near]
        rate = {{ trace = "{rate}" }}
        jitter = {{ kind = "trace", file = "{delay}", reorder = true }}
        [link.far]
        rate = "30 Mbps"
        delay = "3 ms"
        mtu = "576 B"
        loss = {{ kind = "trace", file = "{loss}" }}
        [link.back]
        rate = "30 Mbps"
        delay = "3 ms"
        [flow.wide]
        transport = "udp"
        workload = {{ kind = "cbr", rate = "1 Mbps", size = "3000 B", echo = true }}
        route = ["near", "far"]
        return_route = ["back"]
        [flow.burst]
        transport = "udp"
        workload = {{ kind = "burst", count = 40, size = "300 B", repeat = 5, gap = "200 ms" }}
        route = ["near"]
        return_route = ["back"]
        [flow.bulk]
        transport = "tcp"
        direction = "down"
        workload = {{ kind = "bulk", bytes = "2 MB" }}
        route = ["back"]
        return_route = ["near"]
        "#
    );
    // `emulate` replays.
    let Some(record) = emulate(&text) else { return };
    let bulk = &record.flows[2].forward;
    assert_eq!(bulk.reads.iter().map(|read| read.1.get()).sum::<u64>(), 2_000_000);
    let burst = &record.flows[1].forward.messages;
    assert!(burst.len() == 200 && burst.iter().all(|row| row.received.is_some()));
    // Datagrams that left together came together, and none was merged with another.
    assert!(burst.iter().all(|row| row.copies == 1 && row.size == Bytes::new(300)));
}

#[test]
fn a_file_over_loopback_is_checked_and_kept_where_that_was_asked_for() {
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
    let server =
        Serving::with(ServeOptions { bind, limits, keep: Some(kept.0.clone()), ..ServeOptions::default() });
    let record = run(server.address, &scenario(1000, flows())).unwrap();
    check(&record);
    assert_eq!(kept.names(), ["talk-2.wav", "talk.wav"], "the third would pass the server's limit");
    assert!(record.warnings.iter().any(|line| line.contains("did not keep the file: its limit of 500000 B")));
    for name in kept.names() {
        assert!(std::fs::read(kept.0.join(name)).unwrap() == std::fs::read(&source).unwrap());
    }
}

#[test]
fn a_server_takes_no_more_files_than_it_holds_and_sends_none() {
    let folder = Folder::new("limits");
    let source = folder.file("talk.wav", 50_000);
    let server = Serving::at("127.0.0.1:0", None, Limits { held_bytes: 40_000, ..Limits::default() });
    let refused = |flow: Flow| run(server.address, &scenario(300, vec![flow])).unwrap_err().to_string();
    let why = refused(file("f", "udp", &source, 50_000, 1400));
    assert!(why.contains("files of 50000 B; this server holds 40000 B"), "{why}");
    // A stream that is not kept needs no memory.
    let record =
        run(server.address, &scenario(500, vec![file("f", "tcp", &source, 50_000, 65_536)])).unwrap();
    assert_eq!(found(&record, "f").intact, Some(true));
    assert!(refused(down(file("f", "tcp", &source, 50_000, 1400))).contains("a file goes up"));
    assert!(refused(file("f", "tcp", &source, 49_999, 1400)).contains("has not now"));
}

#[test]
fn bulk_over_udp_is_sent_as_the_socket_takes_it() {
    let workload = WorkloadConfig::Bulk { bytes: Some(Bytes::new(400_000)) };
    let flow = Flow { workload, ..voice("bulk", "udp") };
    let record = run(Serving::loopback().address, &scenario(1000, vec![flow])).unwrap();
    let rows = &record.flows[0].forward.messages;
    assert_eq!(rows.iter().map(|row| row.size.get()).sum::<u64>(), 400_000);
    assert_eq!(rows.len(), 7, "six whole datagrams of 65,507 B and the rest");
    assert!(rows.iter().all(|row| row.received.is_some() && row.sent.is_some()));
    assert!(
        record.flows[0].counters.blocked.is_some() && record.flows[0].counters.cwnd_packets_mean.is_none()
    );
}

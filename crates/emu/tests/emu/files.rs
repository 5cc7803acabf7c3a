//! Files over every transport on the emulated path: what arrived is checked to the byte, and what did not is
//! listed.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use crate::support::quiet::undisturbed;
use crate::support::run_scenario;
use crate::support::shared::{Folder, found};
use talkpath_kernel::wire::FILE_HEADER;
use talkpath_measure::RunRecord;
use talkpath_scenario::{Files, Located, Options, Source, load_with_files};
use talkpath_units::Bytes;

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

/// Runs `text`, whose names of files are their whole paths.
fn emulate(text: &str) -> Option<RunRecord> {
    let loaded = load_with_files(&Source::new("f.toml", text), &Options::default(), &Whole);
    let scenario = loaded.unwrap_or_else(|why| panic!("{why}")).cells.remove(0).scenario;
    Some(run_scenario(scenario)?.record)
}

#[test]
fn a_file_crosses_the_emulated_path_over_every_transport_and_both_ways() {
    undisturbed(|| {
        let folder = Folder::new("emu");
        let source = folder.file("talk.wav", 300_000);
        let flow = |name: &str, transport: &str, more: &str| {
            format!(
                "[flow.{name}]\ntransport = \"{transport}\"\nworkload = {{ kind = \"file\", source = \"{source}\" }}\n{more}\n"
            )
        };
        let text =
            "duration = \"3 s\"\ndrain = \"500 ms\"\npath.up = { rate = \"50 Mbps\", delay = \"5 ms\" }\n\
                path.down = { rate = \"50 Mbps\", delay = \"5 ms\" }\n"
                .to_owned()
                + &flow("datagrams", "udp", "")
                + &flow("stream", "tcp", "")
                + &flow("prompt", "tcp-nodelay", "direction = \"down\"")
                + &flow("slow", "tcp", "receiver = { service = \"20 ms\" }");
        let Some(record) = emulate(&text) else { return };
        for name in ["datagrams", "stream", "prompt", "slow"] {
            let file = found(&record, name);
            assert_eq!(
                (file.received, file.intact),
                (Some(Bytes::new(300_000)), Some(true)),
                "{name}: {file:?}"
            );
            assert_eq!((file.name.as_str(), file.missing_ranges, &file.kept_as), ("talk.wav", 0, &None));
        }
        let datagrams = &record.flows[0].forward.messages;
        assert!(
            datagrams.iter().rev().skip(1).all(|row| row.size == Bytes::new(1472)),
            "what crosses 1500 B whole"
        );
        assert_eq!(datagrams.iter().map(|row| row.size.get() - FILE_HEADER).sum::<u64>(), 300_000);
    });
}

#[test]
fn what_is_missing_of_a_file_over_udp_is_listed_by_its_bytes() {
    undisturbed(|| {
        let folder = Folder::new("missing");
        let source = folder.file("talk.wav", 10_500);
        std::fs::write(folder.0.join("loss"), "0110 00000 0 1").unwrap();
        let text = format!(
            "duration = \"1 s\"\ndrain = \"300 ms\"\npath.down = {{ rate = \"1 Mbps\" }}\n\
         path.up = {{ rate = \"50 Mbps\", loss = {{ kind = \"trace\", file = \"{}\" }} }}\n\
         [flow.f]\ntransport = \"udp\"\nworkload = {{ kind = \"file\", source = \"{source}\", size = \"1016 B\" }}\n",
            folder.0.join("loss").display()
        );
        let Some(record) = emulate(&text) else { return };
        let file = found(&record, "f");
        assert_eq!((file.received, file.intact), (Some(Bytes::new(8000)), Some(false)));
        assert_eq!((&file.missing[..], file.missing_ranges), (&[(1000, 3000), (10_000, 10_500)][..], 2));
        assert!(
            record
                .warnings
                .iter()
                .any(|line| line.contains("8000 of 10500 B arrived; 2 byte ranges missing"))
        );
    });
}

#[test]
fn a_replay_finds_no_difference_with_traces_fragments_several_links_and_super_packets() {
    undisturbed(|| {
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
        // `run_scenario` replays.
        let Some(record) = emulate(&text) else { return };
        let bulk = &record.flows[2].forward;
        assert_eq!(bulk.reads.iter().map(|read| read.1.get()).sum::<u64>(), 2_000_000);
        let burst = &record.flows[1].forward.messages;
        assert!(burst.len() == 200 && burst.iter().all(|row| row.received.is_some()));
        // Datagrams that left together came together, and none was merged with another.
        assert!(burst.iter().all(|row| row.copies == 1 && row.size == Bytes::new(300)));
    });
}

//! The emulated arena as a user sees it: the same files, a log of arrivals, and a replay that finds no
//! difference.

use std::fs;
use std::thread;
use std::time::Duration;

use crate::harness::{Bench, CALL, Seen, entries, journal_lines, names, read_json, wait_until};
use crate::quiet::undisturbed;

/// A bench with an emulated run of [`CALL`]; `None` where the machine does not allow it.
fn emulated_call() -> Option<Bench> {
    let bench = Bench::new();
    bench.file("call.toml", CALL);
    bench.emulate(&["run", "call.toml", "--arena", "emu"])?.succeeds();
    Some(bench)
}

#[test]
fn an_emulated_run_leaves_the_same_files_and_its_replay_finds_no_difference() {
    undisturbed(|| {
        let Some(bench) = emulated_call() else { return };
        let run = bench.only_run();
        let expected = [
            "arrivals",
            "log.txt",
            "packets.parquet",
            "report.html",
            "scenario.toml",
            "series.parquet",
            "summary.json",
        ];
        assert_eq!(names(&run), expected);
        let summary = read_json(&run.join("summary.json"));
        assert_eq!(summary["arena"], "emu");
        let call = &summary["runs"][0]["flows"]["call"];
        // The path's own delay is the floor of every round trip: twice 20 ms and the frames' serialisation.
        assert!(call["round_trip_delay_ms"]["min"].as_f64().unwrap() >= 41.5, "{call}");
        assert_eq!(call["received"], call["sent"]);

        let path = run.to_string_lossy();
        let seen = bench.run(&["replay", &path]);
        assert!(seen.succeeds().out.contains("again"), "{}", seen.out);
        // A log that was tampered with is found out, and one that is cut short does not panic.
        let log = run.join("arrivals").join("0-0");
        let bytes = fs::read(&log).unwrap();
        fs::write(&log, &bytes[..bytes.len() / 2]).unwrap();
        let seen = bench.run(&["replay", &path]);
        assert_ne!(seen.code, Some(101), "{}", seen.err);
        assert_ne!(seen.code, Some(0), "half a log is no proof: {}", seen.out);
    });
}

#[test]
fn a_killed_emulated_run_leaves_whole_repetitions_and_goes_on_from_them() {
    undisturbed(|| {
        let Some(bench) = emulated_call() else { return };
        let many = CALL.replace("duration = \"1 s\"", "duration = \"150 ms\"\nrepeat = 12");
        bench.file("many.toml", many);
        let mut child = bench.start(&["run", "many.toml", "--arena", "emu", "--out", "killed"]);
        let parts =
            || entries(&bench.path("killed")).pop().map(|run| journal_lines(&run)).unwrap_or_default();
        wait_until("a finished repetition", || !parts().is_empty());
        for wait_ms in [0, 37, 211, 430] {
            thread::sleep(Duration::from_millis(wait_ms));
            child.kill().unwrap();
            child.wait().unwrap();
            for part in parts() {
                let files = part["files"].as_array().unwrap().iter().map(|file| file[0].as_str().unwrap());
                let files: Vec<_> = files.collect();
                assert_eq!(files, ["packets.parquet", "arrivals", "series.parquet"], "{part}");
            }
            let run = entries(&bench.path("killed")).pop().unwrap();
            child = bench.start(&["run", "--resume", run.to_str().unwrap()]);
        }
        Seen::of_child(child).succeeds();
        let run = entries(&bench.path("killed")).pop().unwrap();
        assert_eq!(read_json(&run.join("summary.json"))["runs"].as_array().unwrap().len(), 12);
        bench.run(&["replay", run.to_str().unwrap()]).succeeds();
    });
}

#[test]
fn a_simulated_run_has_no_arrivals_to_replay() {
    let bench = Bench::new();
    bench.file("call.toml", CALL);
    bench.run(&["run", "call.toml"]).succeeds();
    let run = bench.only_run();
    bench.run(&["replay", &run.to_string_lossy()]).fails(2, &["--arena emu"]);
}

/// Each limit ends it at another step: the first namespace, a packet socket, a device, a flow's socket.
#[test]
fn an_emulator_without_descriptors_names_their_limit_and_not_the_kernels_configuration() {
    let Some(bench) = emulated_call() else { return };
    let mut failed = 0;
    for free in 2..=13 {
        let (mut command, limit) =
            bench.with_descriptors(free, "-n", &["run", "call.toml", "--arena", "emu"]);
        let seen = Seen::of(command.output().unwrap());
        // What is enough is enough.
        if seen.code == Some(0) {
            continue;
        }
        seen.fails(3, &["file descriptors", &format!(" {limit} "), "help: ", "ulimit -n"]);
        assert!(!seen.err.contains("CONFIG_") && !seen.err.contains("modprobe"), "-n {limit}: {}", seen.err);
        failed += 1;
    }
    assert!(failed >= 5, "{failed} limits were too low");
}

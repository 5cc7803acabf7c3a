//! Whatever a scenario file, a folder or a run directory holds: a clear line, the right exit code, nothing
//! half-written.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::harness::{Bench, SHORT, Seen};

/// `SHORT` with one line exchanged: what it was, what it becomes, the line on which the mistake is, what must
/// be said.
const MISTAKES: &[(&str, &str, usize, &str)] = &[
    // Misspelt keys, with the nearest known one.
    ("name = ", "nmae = ", 1, "name"),
    ("duration = ", "duratoin = ", 2, "duration"),
    ("path = ", "pth = ", 3, "path"),
    ("[flow.call]", "[flwo.call]", 5, "flow"),
    ("transport = ", "trasnport = ", 6, "transport"),
    ("workload = ", "wrokload = ", 7, "workload"),
    ("codec = ", "codek = ", 7, "codec"),
    ("echo = ", "ecoh = ", 7, "echo"),
    // Misspelt values.
    ("\"home-adsl\"", "\"home-asdl\"", 3, "home-adsl"),
    ("\"udp\"", "\"upd\"", 6, "udp"),
    ("\"voice\"", "\"vioce\"", 7, "voice"),
    ("\"g711\"", "\"g712\"", 7, "g711"),
    // Wrong units and types.
    ("\"2 s\"", "\"2 Mbps\"", 2, "2 Mbps"),
    ("\"2 s\"", "\"2 sec\"", 2, "2 sec"),
    ("\"2 s\"", "\"2\"", 2, "duration"),
    ("\"2 s\"", "2", 2, "unit"),
    ("\"2 s\"", "\"\"", 2, "duration"),
    ("\"2 s\"", "[]", 2, "duration"),
    ("echo = true", "echo = \"maybe\"", 7, "echo"),
    // Quantities out of any range.
    ("\"2 s\"", "\"-2 s\"", 2, "-2 s"),
    ("\"2 s\"", "\"0 s\"", 2, "duration"),
    ("\"2 s\"", "\"NaN s\"", 2, "NaN"),
    ("\"2 s\"", "\"inf s\"", 2, "inf"),
    ("\"2 s\"", "nan", 2, "duration"),
    ("\"2 s\"", "\"1e300 s\"", 2, "1e300"),
    ("\"2 s\"", "\"99999999999999999999 s\"", 2, "99999999999999999999"),
    ("path = \"home-adsl\"", "path = \"home-adsl\"\nrepeat = -1", 4, "repeat"),
    ("path = \"home-adsl\"", "path = \"home-adsl\"\nrepeat = 0", 4, "repeat"),
    (
        "path = \"home-adsl\"",
        "path = \"home-adsl\"\nrepeat = 99999999999999999999",
        4,
        "99999999999999999999",
    ),
    ("path = \"home-adsl\"", "path = \"home-adsl\"\nseed = -1", 4, "seed"),
    ("path = \"home-adsl\"", "path = \"home-adsl\"\nwarm_up = \"-1 ms\"", 4, "warm_up"),
    // Not TOML.
    ("\"2 s\"", "\"2 s", 2, ""),
    ("[flow.call]", "[flow.call", 5, ""),
    ("name = ", "duration = \"1 s\"\nname = ", 3, "duration"),
];

#[test]
fn every_mistake_is_shown_at_its_line_with_what_would_be_right() {
    let bench = Bench::new();
    for (was, becomes, line, says) in MISTAKES {
        assert!(SHORT.contains(was));
        bench.file("wrong.toml", SHORT.replacen(was, becomes, 1));
        let seen = bench.run(&["check", "wrong.toml"]);
        let place = format!("wrong.toml:{line}:");
        assert_eq!(seen.code, Some(2), "{becomes}: {}", seen.err);
        assert!(seen.err.contains(&place), "{becomes}: no {place} in: {}", seen.err);
        assert!(seen.err.contains(says), "{becomes}: no {says} in: {}", seen.err);
        assert!(!seen.err.contains("panicked") && seen.out.is_empty(), "{becomes}: {}", seen.err);
    }
}

#[test]
fn a_run_refuses_what_a_check_refuses_and_writes_nothing() {
    let bench = Bench::new();
    bench.file("wrong.toml", SHORT.replace("duration", "duratoin"));
    let check = bench.run(&["check", "wrong.toml"]);
    let run = bench.run(&["run", "wrong.toml"]);
    assert_eq!((check.code, &check.err), (run.code, &run.err));
    assert!(bench.runs().is_empty());
}

#[test]
fn all_mistakes_come_at_once() {
    let bench = Bench::new();
    bench.file(
        "wrong.toml",
        SHORT.replace("\"2 s\"", "2").replace("\"udp\"", "\"upd\"").replace("g711", "g712"),
    );
    let seen = bench.run(&["check", "wrong.toml"]);
    seen.fails(2, &["wrong.toml:2:", "wrong.toml:6:", "wrong.toml:7:", "3 mistakes"]);
}

#[test]
fn a_check_in_json_has_each_mistake_with_its_place_its_key_and_its_line() {
    let bench = Bench::new();
    bench.file("wrong.toml", SHORT.replace("\"2 s\"", "2"));
    let seen = bench.run(&["check", "wrong.toml", "--json=runs", "--set", "seed=x"]);
    assert_eq!(seen.code, Some(2), "{}", seen.err);
    let checked: serde_json::Value = serde_json::from_str(&seen.out).unwrap();
    assert_eq!((&checked["file"], &checked["valid"]), (&"wrong.toml".into(), &false.into()));
    let mistakes = checked["mistakes"].as_array().unwrap();
    let of = |key: &str| mistakes.iter().find(|it| it["key"] == key).unwrap();
    let duration = of("duration");
    assert_eq!((&duration["line"], &duration["text"]), (&2.into(), &"duration = 2".into()));
    assert!(duration["help"].as_str().unwrap().contains("2 s") && duration["option"].is_null());
    let seed = of("seed");
    assert_eq!(seed["option"], "--set seed=x");
    assert!(seed["line"].is_null() && seed["text"].is_null(), "{seed}");

    bench.file("right.toml", SHORT);
    let right = bench.run(&["check", "right.toml", "--json=runs", "--set", "repeat=3"]);
    let checked: serde_json::Value = serde_json::from_str(&right.succeeds().out).unwrap();
    assert_eq!((&checked["cells"], &checked["repetitions"]), (&1.into(), &3.into()));
    assert_eq!((&checked["mistakes"], &checked["valid"]), (&serde_json::json!([]), &true.into()));
}

#[test]
fn a_mistake_in_an_option_names_the_option() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    bench.run(&["run", "call.toml", "--set", "duratoin=3 s"]).fails(2, &["duratoin=3 s", "duration"]);
    bench.run(&["run", "call.toml", "--set", "duration=3"]).fails(2, &["duration=3"]);
    assert!(bench.runs().is_empty());
}

#[test]
fn what_is_no_scenario_file_is_said_in_one_line() {
    let bench = Bench::new();
    fs::create_dir(bench.path("folder")).unwrap();
    bench.file("empty.toml", "");
    bench.file("latin1.toml", b"name = \"a\"\n# caf\xe9\n");
    bench.file("zeros.toml", [0; 100]);
    File::create(bench.path("huge.toml")).unwrap().set_len(100_000_000).unwrap();
    let cases = [
        ("missing.toml", "missing.toml: no such file"),
        ("folder", "folder: a directory"),
        ("empty.toml", "empty.toml:1:1"),
        ("latin1.toml", "latin1.toml:2:6: not UTF-8"),
        ("zeros.toml", "zeros.toml:1:1"),
        ("huge.toml", "huge.toml: larger than 4 MiB"),
        ("/dev/zero", "/dev/zero: larger than 4 MiB"),
        ("empty.toml/x", "empty.toml/x"),
    ];
    for command in ["check", "run"] {
        for (file, says) in cases {
            bench.run(&[command, file]).fails(2, &[says]);
        }
    }
    assert!(bench.runs().is_empty());
}

#[test]
fn a_file_without_permission_is_said_in_one_line() {
    let bench = Bench::new();
    let path = bench.file("secret.toml", SHORT);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if File::open(&path).is_ok() {
        println!("skipped: this user may read everything");
        return;
    }
    bench.run(&["check", "secret.toml"]).fails(2, &["secret.toml: no permission"]);
}

#[test]
fn a_folder_that_cannot_be_written_is_exit_code_1() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    for out in ["call.toml", "call.toml/below", "/proc/nowhere"] {
        bench.run(&["run", "call.toml", "--out", out]).fails(1, &["cannot write", out]);
    }
}

#[test]
fn a_disk_that_fills_up_is_exit_code_1_and_leaves_no_half_file() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    // Files of at most one block of 512 or 1,024 B; without the trap the signal would kill instead of failing
    // the write.
    let program = env!("CARGO_BIN_EXE_talkpath");
    let script = format!("trap '' XFSZ; ulimit -f 1; exec '{program}' run call.toml");
    let mut shell = Command::new("sh");
    let seen = Seen::of(shell.args(["-c", &script]).current_dir(bench.path("")).output().unwrap());
    seen.fails(1, &["cannot write"]);
    for run in bench.runs() {
        for file in ["packets.parquet", "series.parquet", "summary.json", "report.html"] {
            assert!(!run.join(file).exists(), "{file} in {}", run.display());
        }
    }
}

#[test]
fn a_folder_that_is_no_run_directory_is_exit_code_2() {
    let bench = Bench::new();
    fs::create_dir(bench.path("empty")).unwrap();
    for command in [
        &["report", "empty"][..],
        &["report", "missing"],
        &["export", "empty", "--format", "csv"],
        &["run", "--resume", "empty"],
    ] {
        bench.run(command).fails(2, &["not a run directory"]);
    }
}

#[test]
fn a_damaged_run_directory_is_exit_code_2() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    bench.run(&["run", "call.toml"]).succeeds();
    let run = bench.only_run();
    let name = run.to_str().unwrap();
    let packets = run.join("packets.parquet");
    let whole = fs::read(&packets).unwrap();
    let half = &whole[..whole.len() / 2];
    for damage in [&b""[..], b"PAR1", half] {
        fs::write(&packets, damage).unwrap();
        bench.run(&["export", name, "--format", "csv"]).fails(2, &["packets.parquet"]);
        bench.run(&["report", name]).fails(2, &["packets.parquet"]);
    }
    // Of a file that is gone the simulation gives the rows again.
    fs::remove_file(&packets).unwrap();
    bench.run(&["export", name, "--format", "jsonl"]).succeeds();
    bench.run(&["report", name]).succeeds();
    fs::write(run.join("summary.json"), "{}").unwrap();
    bench.run(&["report", name]).fails(2, &["summary.json"]);
}

#[test]
fn what_is_not_available_yet_is_exit_code_2() {
    let bench = Bench::new();
    bench.run(&["export", "any", "--format", "pcap"]).fails(2, &["pcapng"]);
}

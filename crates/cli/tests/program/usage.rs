//! Flags, variables, exit codes and what goes to which stream.

use std::fs;
use std::net::TcpListener;
use std::process::Stdio;

use serde_json::json;

use crate::harness::{Bench, SHORT, Seen};

#[test]
fn wrong_usage_is_exit_code_2() {
    let bench = Bench::new();
    let cases: &[(&[&str], &str)] = &[
        (&[], "Usage:"),
        (&["juggle"], "unrecognized subcommand"),
        (&["fit"], "`fit` is not available yet"),
        (&["compare", "udp", "tcp"], "--transports udp,tcp"),
        (&["compare", "--transports", "udp"], "udp alone: a comparison needs two transports"),
        (&["compare", "--workload", "bulk", "--cc", "reno"], "--cc cubic,reno"),
        (
            &["compare", "--transports", "udp,sctp"],
            "--transports udp,sctp: flow.call.transport: \"sctp\" is not available yet",
        ),
        (&["compare", "--transports", "udp,webrtc"], "1 mistake in the options"),
        (&["man", "juggle"], "there is no such command"),
        (&["replay", "x"], "not a run directory"),
        (&["compare", "--no-such-flag"], "unexpected argument"),
        (&["run"], "SCENARIO.toml"),
        (&["check"], "SCENARIO.toml"),
        (&["compare", "--jobs", "0"], "expected a whole number from 1 to 4096"),
        (&["compare", "--jobs", "18446744073709551615"], "'--jobs <N>'"),
        (&["compare", "--jobs", "five"], "invalid value 'five' for '--jobs <N>'"),
        (&["compare", "--seed", "many"], "--seed"),
        (&["compare", "--seed", "-1"], "invalid value '-1' for '--seed"),
        (&["serve", "--bind", "7160"], "127.0.0.1:7160"),
        (&["compare", "--records", "some"], "--records"),
        (&["compare", "--path", "moon"], "home-adsl"),
        (&["compare", "--transports", "udp,smoke-signals"], "smoke-signals"),
        (&["compare", "--arena", "live"], "--to HOST"),
        (&["compare", "--arena", "sim", "--to", "localhost"], "--to belongs to --arena live"),
        (&["run", "x.toml", "--set", "novalue"], "KEY=VALUE"),
        (&["run", "x.toml", "-o", "here"], "`--out DIR` sets where the directories of runs are made"),
        (&["mos", "--codec", "amr"], "docs/reference/not-yet.md"),
        (&["compare", "--workload", "video"], "docs/reference/not-yet.md"),
        (&["compare", "--transports", "udp,srt"], "docs/reference/not-yet.md"),
        (&["compare", "--queue", "cake"], "docs/reference/not-yet.md"),
        (&["compare", "--set", "path.up.gap_model=1"], "docs/reference/not-yet.md"),
        (&["mos", "--loss", "101%"], "0% to 100%"),
        (&["compare", "--loss", "2"], "0% to 100%, or a number from 0 to below 1; did you mean 2%?"),
        (&["compare", "--loss", "1"], "did you mean 1% or 100%?"),
        (&["mos", "--loss", "1"], "did you mean 1% or 100%?"),
        (&["mos", "--loss", "1.0"], "did you mean 1% or 100%?"),
        (&["compare", "--set", "path.up.loss=1"], "did you mean 1% or 100%?"),
        (&["compare", "--sweep", "path.*.loss=0,0.5,1"], "did you mean 1% or 100%?"),
        (&["compare", "--require", "udp.loss_rate <= 1"], "did you mean 1% or 100%?"),
        (&["compare", "--up", "10/15", "--down", "10Mbps/15ms"], "units: bps, kbps, Mbps, Gbps"),
        (&["compare", "--to", "fe80::1"], "expected fe80::1%INTERFACE"),
        (&["compare", "--sweep", "path.*.loss=0,1,5%"], "did you mean 1% or 100%?"),
        (&["compare", "--transports", "tcp"], "a comparison needs two transports or more"),
        (&["mos", "--one-way", "150"], "without a unit"),
        (&["mos", "--burst-ratio", "nan"], "1 (loss at random)"),
        (&["mos", "--codec", "g729a", "--no-plc"], "conceals by itself"),
        (&["mos", "--plc", "--no-plc"], "cannot be used with"),
        (&["compare", "--no-plc", "--workload", "bulk"], "--no-plc belongs to --workload voice"),
    ];
    for (arguments, says) in cases {
        bench.run(arguments).fails(2, &[says]);
    }
    assert!(bench.runs().is_empty());
}

#[test]
fn help_version_completions_and_manual_go_to_standard_output() {
    let bench = Bench::new();
    let cases: &[(&[&str], &str)] = &[
        (&["--help"], "Exit codes:"),
        (&["completions", "bash"], "geo-satellite"),
        (&["completions", "zsh"], "dccp-ccid3"),
        (&["completions", "bash"], "sawashima-1997"),
        (&["man", "compare"], ".TH talkpath-compare"),
        (&["--version"], "talkpath 0."),
        (&["completions", "bash"], "_talkpath"),
        (&["man"], ".TH talkpath"),
        (&["doctor"], "sim"),
    ];
    for (arguments, says) in cases {
        let seen = bench.run(arguments);
        assert!(seen.succeeds().out.contains(says), "{arguments:?}: {}", seen.out);
        assert_eq!(seen.err, "");
    }
}

#[test]
fn the_help_of_compare_names_every_preset_and_says_what_two_sweeps_make() {
    let seen = Bench::new().run(&["compare", "--help"]);
    let help = seen.succeeds().out.split_whitespace().collect::<Vec<_>>().join(" ");
    let says = help.split_once("Presets: ").unwrap().1;
    let says = says.split_once(" (default").unwrap().0.replace(" and ", ", ");
    let named: Vec<&str> = says.split(", ").collect();
    let known: Vec<&str> = talkpath_scenario::presets().iter().map(|preset| preset.name).collect();
    assert_eq!(named, known);
    for said in [
        "The report of a sweep over two keys has heat maps",
        "`path.*.delay=50ms` for a round trip of 100 ms",
    ] {
        assert!(help.contains(said), "no {said} in {help}");
    }
}

#[test]
fn the_doctors_findings_come_as_json_too() {
    let seen = Bench::new().run(&["doctor", "--json"]);
    let told = seen.succeeds().summary();
    let subjects: Vec<_> =
        told["findings"].as_array().unwrap().iter().map(|it| it["subject"].as_str().unwrap()).collect();
    for subject in ["sim", "live", "emu", "real time", "preemption", "hypervisor", "TCP cc"] {
        assert!(subjects.contains(&subject), "{subject} in {subjects:?}");
    }
    assert!(told["findings"][0]["state"].as_str().unwrap().starts_with("ready: "), "{told}");
}

#[test]
fn a_number_that_is_none_is_answered_with_what_would_be_right() {
    let bench = Bench::new();
    for (arguments, says) in [
        (
            ["run", "x.toml", "--repeat", "many"],
            "'many' for '--repeat <N>': expected a whole number, such as 3",
        ),
        (["run", "x.toml", "--repeat", "-1"], "'-1' for '--repeat <N>': expected a whole number, such as 3"),
        (["run", "x.toml", "--jobs", "0"], "'0' for '--jobs <N>': expected a whole number from 1 to 4096"),
        (["run", "x.toml", "--seed", "99999999999999999999"], "'--seed <N>': the number is too large"),
        (
            ["run", "x.toml", "--fail-if", "call.mos"],
            "expected FLOW.FIGURE, >=, <=, >, <, == or != and a number, as in",
        ),
        (
            ["monitor", "--to", "h", "--metrics=9160"],
            "'--metrics <ADDR:PORT>': expected ADDR:PORT, as in 127.0.0.1:9160",
        ),
        (["serve", "--bind=127.0.0.1:0", "--key-file", "none"], "--key-file none: cannot be read: "),
        (
            ["serve", "--bind=127.0.0.1:0", "--key-file", "/dev/zero"],
            "--key-file /dev/zero: cannot be read: found more than 8192 B, expected a key",
        ),
        (["study", "keep", ".", "kept.json"], ".: no study.json in it"),
    ] {
        bench.run(&arguments).fails(2, &[says]);
    }
}

#[test]
fn a_command_without_a_result_refuses_json_and_ignores_the_variable() {
    let bench = Bench::new();
    let cases: &[&[&str]] = &[
        &["study", "show", "foderaro-1995"],
        &["study", "check", "foderaro-1995"],
        &["study", "new", "mine"],
        &["study", "keep", "run", "kept.json"],
        &["study", "fill", "page.md", "--from", "run"],
        &["campaign", "check", "campaign.toml"],
        &["report", "run"],
        &["export", "run", "--format", "csv"],
        &["play", "run"],
        &["replay", "run"],
        &["serve"],
        &["monitor", "--to", "127.0.0.1:9"],
        &["man"],
        &["check", "--keys"],
        &["stamp", "--reflect"],
    ];
    for &arguments in cases {
        let seen = bench.run(&[arguments, &["--json"]].concat());
        seen.fails(2, &["has no result to print as JSON: leave out --json", "help: "]);
        assert_eq!(seen.out, "");
    }
    assert!(!bench.path("mine").exists());
    let man = bench.command(&["man"]).env("TALKPATH_JSON", "1").output().unwrap();
    assert!(man.status.success());
    // The schema is JSON by itself.
    assert_eq!(bench.run(&["check", "--schema", "--json"]).succeeds().summary()["type"], "object");
    let studies = bench.run(&["study", "list", "--json"]).succeeds().summary();
    assert!(studies.as_array().unwrap().iter().any(|it| it["study"] == "foderaro-1995"), "{studies}");
}

/// Two of the figures that ITU-T G.107 gives: R 93.2 and, at 1 % loss, 75.3.
#[test]
fn a_call_is_rated_by_hand() {
    let bench = Bench::new();
    let seen = bench.run(&["mos"]);
    assert!(
        seen.succeeds().out.starts_with("MOS 4.41, R 93.2 of 93.2: users are very satisfied\n"),
        "{}",
        seen.out
    );
    for loss in ["1%", "0.01"] {
        let seen = bench.run(&["mos", "--codec", "g711", "--no-plc", "--loss", loss, "--json"]);
        let figures: serde_json::Value = serde_json::from_str(&seen.succeeds().out).unwrap();
        let of = |key: &str| (figures[key].as_f64().unwrap() * 10.0).round() / 10.0;
        assert_eq!((of("r"), of("mos"), of("id"), of("ie_eff")), (75.3, 3.8, 0.1, 17.9), "{figures}");
    }
}

/// ITU-T G.711 Appendix I at 1 % loss: R 93.2 - 95 / (1 + 25.1).
#[test]
fn mos_conceals_unless_it_is_told_not_to_and_plc_changes_nothing() {
    let bench = Bench::new();
    let of = |more: &[&str]| bench.run(&[&["mos", "--loss", "1%"], more].concat()).succeeds().out.clone();
    assert!(of(&[]).starts_with("MOS 4.33, R 89.6 of 93.2"), "{}", of(&[]));
    assert_eq!(of(&["--plc"]), of(&[]));
    assert!(of(&["--no-plc"]).starts_with("MOS 3.83, R 75.3 of 93.2"), "{}", of(&["--no-plc"]));
}

#[test]
fn mos_says_which_input_is_outside_of_the_model_and_rates_nothing_below_a_dead_call() {
    let bench = Bench::new();
    let out = |arguments: &[&str]| bench.run(&[&["mos"], arguments].concat()).succeeds().out.clone();
    let gap = ["--loss", "8.2%", "--burst-ratio", "37.6", "--one-way", "100ms"];
    let said = "Outside the model: burst ratio 37.6 (the table has 1 to 8, rated as the nearest of these)\n";
    assert!(out(&gap).ends_with(said), "{}", out(&gap));
    let held = out(&["--loss", "8.2%", "--burst-ratio", "8", "--one-way", "100ms"]);
    assert_eq!(out(&gap), format!("{held}{said}"));
    assert!(!held.contains("Outside"), "{held}");
    let far = out(&["--one-way", "2000ms", "--loss", "50%", "--burst-ratio", "10"]);
    assert!(far.starts_with("MOS 1.00, R 0.0 of 93.2: not recommended\n"), "{far}");
    for said in ["mouth to ear 2000 ms (the table has 0 to 500 ms", "loss 50.00 % (the table has 0 to 20 %"] {
        assert!(far.contains(said), "{far}");
    }
    for more in [&[][..], &["--no-plc"], &["--codec", "g729a"]] {
        let dead = out(&[&["--loss", "100%", "--one-way", "100ms"], more].concat());
        assert!(dead.starts_with("MOS 1.00, R 0.0 of 93.2"), "{dead}");
    }
    let json = bench.run(&[&["mos", "--json"], &gap[..]].concat());
    let json: serde_json::Value = serde_json::from_str(&json.succeeds().out).unwrap();
    let outside = json!([{ "input": "burst_ratio", "value": 37.6, "range": [1.0, 8.0] }]);
    assert_eq!(json["outside_model"], outside, "{json}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let bench = Bench::new();
    let mut child = bench.start(&["check", "--schema"]);
    drop(child.stdout.take());
    let seen = Seen::of_child(child);
    assert_eq!((seen.code, seen.err.as_str()), (Some(0), ""));
}

#[test]
fn a_full_device_behind_standard_output_is_said() {
    let bench = Bench::new();
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else {
        println!("skipped: this system has no /dev/full");
        return;
    };
    let child = bench.command(&["check", "--schema"]).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    Seen::of_child(child).fails(1, &["cannot write standard output"]);
}

#[test]
fn a_mistake_goes_before_a_result_that_cannot_be_printed() {
    let bench = Bench::new();
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else {
        println!("skipped: this system has no /dev/full");
        return;
    };
    bench.file("wrong.toml", SHORT.replace("\"udp\"", "\"upd\""));
    let mut command = bench.command(&["check", "wrong.toml", "--json"]);
    let child = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    Seen::of_child(child).fails(2, &["wrong.toml:6:", "1 mistake", "cannot write standard output"]);
    let mut child = bench.start(&["check", "wrong.toml", "--json"]);
    drop(child.stdout.take());
    Seen::of_child(child).fails(2, &["1 mistake"]);
}

#[test]
fn a_far_end_that_cannot_be_one_is_wrong_usage_whoever_is_asked() {
    let bench = Bench::new();
    let path = bench.file("call.toml", SHORT);
    let file = path.to_str().unwrap();
    let commands: [&[&str]; 6] =
        [&["burst"], &["send", file], &["run", file], &["compare"], &["stamp"], &["monitor"]];
    for (to, says) in [
        ("127.0.0.1:99999", "found the port \"99999\", expected a number from 1 to 65535"),
        ("127.0.0.1:notaport", "notaport"),
        (":abc", "abc"),
        (":7160", "found no host"),
        ("", "--to \"\": found no host"),
        ("[::1", "bracket"),
    ] {
        for command in commands {
            bench.run(&[command, &["--to", to]].concat()).fails(2, &["--to ", says]);
        }
        let mut command = bench.command(&["run", file]);
        Seen::of(command.env("TALKPATH_TO", to).output().unwrap()).fails(2, &[says]);
    }
    assert!(bench.runs().is_empty());
}

#[test]
fn the_json_summary_is_all_of_standard_output_and_the_file_holds_the_same() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    let seen = bench.run(&["run", "call.toml", "--json=runs"]);
    let summary = seen.succeeds().summary();
    assert_eq!(summary["name"], "short call");
    assert_eq!(summary["arena"], "sim");
    assert_eq!(summary["runs"][0]["flows"]["call"]["transport"], "udp");
    assert_eq!(fs::read_to_string(bench.only_run().join("summary.json")).unwrap(), seen.out);
}

#[test]
fn quiet_prints_nothing_where_nothing_is_wrong() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    let seen = bench.run(&["run", "call.toml", "--quiet"]);
    assert_eq!((seen.succeeds().out.as_str(), seen.err.as_str()), ("", ""));
    assert_eq!(bench.runs().len(), 1);
}

#[test]
fn a_variable_mirrors_its_flag_and_the_flag_wins() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    let run = |arguments: &[&str]| {
        let mut command = bench.command(arguments);
        command.env("TALKPATH_OUT", "elsewhere").env("TALKPATH_JSON", "runs").env("TALKPATH_SEED", "7");
        Seen::of(command.output().unwrap())
    };
    let seen = run(&["run", "call.toml"]);
    assert_eq!(seen.succeeds().summary()["runs"][0]["seed"], 7);
    assert_eq!(crate::harness::entries(&bench.path("elsewhere")).len(), 1);
    let seen = run(&["run", "call.toml", "--seed", "8"]);
    assert_eq!(seen.succeeds().summary()["runs"][0]["seed"], 8);
}

#[test]
fn a_flag_for_the_simulator_wins_over_a_variable_for_a_far_end() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    let mut command = bench.command(&["run", "call.toml", "--arena", "sim", "--json=runs"]);
    let seen = Seen::of(command.env("TALKPATH_TO", "nowhere.invalid").output().unwrap());
    assert_eq!(seen.succeeds().summary()["arena"], "sim");
}

/// What runs with variables set, and must end with `code` and say `says`.
type UnderVariables<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], i32, &'a str);

#[test]
fn a_typed_flag_wins_over_the_variable_of_an_option_that_excludes_it() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    bench.file("key", "0123456789abcdef0123456789abcdef");
    // Nobody listens there.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let sim = [
        ("TALKPATH_CAPTURE", "64"),
        ("TALKPATH_CLOCKS_SYNCHRONISED", "1"),
        ("TALKPATH_KEEP_AWAKE", "1"),
        ("TALKPATH_QLOG", "1"),
        ("TALKPATH_RUN_AGAIN", "1 min"),
    ];
    let nowhere = ["--bind", "127.0.0.1:0", "--keep", "nowhere"];
    let key = [&["serve", "--key-file", "key"], &nowhere[..]].concat();
    let open = [&["serve", "--open"], &nowhere[..]].concat();
    let both = [&["serve", "--key-file", "key", "--open"], &nowhere[..]].concat();
    let neither = [&["serve"], &nowhere[..]].concat();
    let line = ["compare", "--up", "9Mbps/5ms", "--down", "9Mbps/5ms", "--duration", "3s", "--repeat", "1"];
    let plc = ["compare", "--plc", "--duration", "3s", "--repeat", "1"];
    let no_plc = ["compare", "--no-plc", "--duration", "3s", "--repeat", "1"];
    let cases: &[UnderVariables<'_>] = &[
        (&[("TALKPATH_ARENA", "sim")], &["compare", "--to", &closed], 4, &closed),
        (&[("TALKPATH_ARENA", "emu")], &["run", "call.toml", "--to", &closed], 4, &closed),
        (&[("TALKPATH_KEEP_AWAKE", "1")], &["run", "call.toml", "--keep-awake"], 2, "--arena emu and live"),
        (&[], &["run", "call.toml", "--run-again", "5s"], 2, "--arena emu and live"),
        (&sim, &["run", "call.toml", "--arena", "sim"], 0, ""),
        (&[("TALKPATH_TO", &closed)], &line, 0, ""),
        (&[("TALKPATH_WORKLOAD", "bulk")], &plc, 0, ""),
        (&[("TALKPATH_WORKLOAD", "bulk")], &no_plc, 0, ""),
        (
            &[("TALKPATH_ARENA", "emu"), ("TALKPATH_STRICT", "1"), ("TALKPATH_JUNIT", "junit.xml")],
            &["run", "call.toml", "--shard", "1/1"],
            0,
            "",
        ),
        (
            &[("TALKPATH_ARENA", "sim"), ("TALKPATH_TO", &closed)],
            &["run", "call.toml"],
            2,
            "--to belongs to --arena live",
        ),
        (&[("TALKPATH_OPEN", "1")], &key, 3, "cannot keep files"),
        (&[("TALKPATH_KEY_FILE", "missing")], &open, 3, "cannot keep files"),
        (&[("TALKPATH_KEY_FILE", "key"), ("TALKPATH_OPEN", "0")], &neither, 3, "cannot keep files"),
        (
            &[("TALKPATH_KEY_FILE", "key"), ("TALKPATH_OPEN", "1")],
            &neither,
            2,
            "--key-file cannot be used with",
        ),
        (&[], &both, 2, "--key-file cannot be used with --open"),
        (&[("TALKPATH_CLOCKS_SYNCHRONISED", "1")], &["stamp", "--reflect"], 2, "--open for everybody"),
        (&[], &["stamp", "--reflect", "--clocks-synchronised"], 2, "cannot be used with --reflect"),
    ];
    for &(variables, arguments, code, says) in cases {
        let mut command = bench.command(arguments);
        let seen = Seen::of(command.envs(variables.iter().copied()).output().unwrap());
        assert_eq!(seen.code, Some(code), "{variables:?} {arguments:?}: {}", seen.err);
        assert!(seen.err.contains(says), "{variables:?} {arguments:?}: {}", seen.err);
    }
    assert!(!bench.path("junit.xml").exists());
}

#[test]
fn a_run_that_goes_on_knows_its_arena_and_its_seed_whatever_variables_say() {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    bench.run(&["run", "call.toml", "--shard", "1/1", "-o", "part"]).succeeds();
    let mut command = bench.command(&["run", "--resume", "part"]);
    command.env("TALKPATH_ARENA", "emu").env("TALKPATH_TO", "far").env("TALKPATH_SEED", "7");
    Seen::of(command.env("TALKPATH_REPEAT", "9").output().unwrap()).succeeds();
    bench.run(&["run", "--resume", "part", "--seed", "7"]).fails(2, &["another scenario (or seed"]);
}

#[test]
fn a_scenario_can_come_through_a_pipe() {
    let bench = Bench::new();
    let path = bench.file("call.toml", SHORT);
    let mut command = bench.command(&["check", "/dev/stdin"]);
    let seen = Seen::of(command.stdin(fs::File::open(path).unwrap()).output().unwrap());
    assert!(seen.succeeds().out.contains("valid"), "{}", seen.out);
}

#[test]
fn a_share_above_a_fifth_is_said_in_words_in_the_header_the_answer_and_the_page() {
    let bench = Bench::new();
    let lossy = [
        "compare",
        "--loss",
        "25%",
        "--alone",
        "--repeat",
        "2",
        "--duration",
        "2s",
        "--transports",
        "udp,tcp",
    ];
    let seen = bench.run(&lossy);
    let said = "The path loses 25 % of the packets each way.";
    assert_eq!(seen.succeeds().out.matches(said).count(), 2, "{}", seen.out);
    assert!(seen.out.contains("--loss 25%"), "what to type next is taken: {}", seen.out);
    let run = bench.only_run();
    let page = fs::read_to_string(run.join("report.html")).unwrap();
    assert_eq!(page.matches(said).count(), 2);
    let summary = crate::harness::read_json(&run.join("summary.json"));
    assert_eq!(summary["understood"]["losses"][0], said);
    let mos = bench.run(&["mos", "--one-way", "50ms", "--loss", "0.5"]);
    assert!(mos.succeeds().out.contains("50 % of the frames are not played"), "{}", mos.out);
    assert!(!bench.run(&["mos", "--loss", "0.5%"]).succeeds().out.contains("not played"));
}

#[test]
fn a_folder_that_cannot_be_written_names_the_flag_for_another() {
    let bench = Bench::new();
    bench.file("taken", "a file");
    let arguments =
        ["compare", "--out", "taken", "--repeat", "1", "--duration", "2s", "--transports", "udp,tcp"];
    bench.run(&arguments).fails(1, &["the folder taken", "`--out DIR` names another folder"]);
}

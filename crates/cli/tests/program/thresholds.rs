//! Thresholds over whole runs: exit codes, lines, JUnit's file, and what is refused before anything runs.

use std::fs;
use std::process::Stdio;

use crate::harness::{Bench, Seen, Served, wait_until};

const CALL: &str = "\
name = \"a call\"
duration = \"2 s\"
repeat = 2

[path]
up = { rate = \"1 Mbps\", delay = \"20 ms\" }
down = { rate = \"1 Mbps\", delay = \"20 ms\" }

[flow.call]
transport = \"udp\"
workload = { kind = \"voice\", echo = true }

[sweep]
\"path.up.loss\" = [0.0, 0.5]
";

#[test]
fn a_threshold_that_does_not_hold_is_exit_code_5_and_says_where() {
    let bench = Bench::new();
    bench.file("call.toml", CALL);
    let demands = ["--require", "call.in_time@path.up.loss=0 >= 98%", "--fail-if", "call.mos < 3.6"];
    let seen = bench.run(&[&["run", "call.toml", "--junit", "junit.xml"][..], &demands].concat());
    seen.fails(5, &["error: 1 of 2 thresholds do not hold\n"]);
    let lines: Vec<_> = seen.out.lines().filter(|line| line.contains("must be")).collect();
    assert_eq!(lines.len(), 2, "{}", seen.out);
    let holds =
        "holds  call.in_time@path.up.loss=0 1, must be >= 0.98 (path.up.loss=0.0; mean of 2 repetitions)";
    assert_eq!(lines[0], holds);
    assert!(
        lines[1].starts_with("FAILS  call.mos ") && lines[1].contains("must be >= 3.6 (path.up.loss=0.5; ")
    );
    assert!(lines[1].ends_with("fails in 1 of 2 cells)"), "{}", lines[1]);
    let junit = fs::read_to_string(bench.path("junit.xml")).unwrap();
    assert!(
        junit.contains("tests=\"2\" failures=\"1\"") && junit.contains("name=\"call.mos &gt;= 3.6\""),
        "{junit}"
    );
    // They stand in the resolved scenario: the run that is repeated demands the same.
    let scenario = bench.only_run().join("scenario.toml");
    let again = bench.run(&["run", scenario.to_str().unwrap(), "--quiet"]);
    again.fails(5, &["1 of 2 thresholds do not hold:\n  call.mos "]);
    assert_eq!(again.out, "");
}

/// The run's exit code is the threshold's, and JUnit's file is there, with `output` for standard output.
fn judged_without_output(output: impl Into<Stdio>) -> Seen {
    let bench = Bench::new();
    bench.file("call.toml", CALL);
    let arguments = ["run", "call.toml", "--junit", "junit.xml", "--require", "call.mos > 4.9"];
    let child = bench.command(&arguments).stdout(output).stderr(Stdio::piped()).spawn().unwrap();
    let seen = Seen::of_child(child);
    seen.fails(5, &["the threshold does not hold"]);
    assert!(bench.path("junit.xml").is_file());
    seen
}

#[test]
fn thresholds_are_judged_although_the_results_cannot_be_printed() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    judged_without_output(full).fails(5, &["cannot write standard output"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    judged_without_output(writer);
}

#[test]
fn what_holds_is_exit_code_0_and_the_summary_stands_alone() {
    let bench = Bench::new();
    bench.file(
        "call.toml",
        format!("{CALL}[thresholds]\n\"call.mos@path.up.loss=0\" = [\">= 3\", \"<= 4.5\"]\n"),
    );
    bench.run(&["run", "call.toml", "--json=runs"]).succeeds().summary();
    let link = ["--require", "link.down.queue_delay_ms.p95 <= 20", "--require", "link.up.lost >= 0"];
    let seen = bench.run(&[&["run", "call.toml"][..], &link].concat());
    assert_eq!(seen.succeeds().out.matches("\nholds  ").count(), 4, "{}", seen.out);
}

#[test]
fn a_bound_within_the_interval_is_exit_code_6_and_says_how_many_are_needed() {
    let bench = Bench::new();
    bench.file("call.toml", CALL);
    let fine = ["--require", "call.loss_rate@path.up.loss=0 <= 0.1%"];
    let seen = bench.run(&[&["run", "call.toml", "--json", "--junit", "junit.xml"][..], &fine].concat());
    seen.fails(
        6,
        &["the threshold is undecided", "0 to 0.015 with 200 messages", "about 2800 messages more"],
    );
    let threshold = &seen.summary()["thresholds"][0];
    assert_eq!((&threshold["outcome"], &threshold["needed"]), (&"undecided".into(), &3000.into()));
    assert_eq!((&threshold["statistic"], &threshold["messages"]), (&"mean".into(), &200.into()));
    let junit = fs::read_to_string(bench.path("junit.xml")).unwrap();
    assert!(junit.contains("failures=\"0\" errors=\"1\"") && junit.contains("type=\"undecided\""), "{junit}");
    assert!(junit.contains("<property name=\"needed\" value=\"3000\"/>"), "{junit}");
    let and = |other: &str| bench.run(&[&["run", "call.toml", "--require", other][..], &fine].concat());
    and("call.mos@path.up.loss=0.5 >= 4")
        .fails(5, &["1 of 2 thresholds do not hold", "1 of 2 thresholds are undecided"]);
    let seen = and("call.round_trip_delay_ms.p95.min@path.up.loss=0 <= 100");
    assert!(seen.fails(6, &[]).out.contains("; min of 2 repetitions)"), "{}", seen.out);
    // More messages decide.
    let enough = ["--set", "repeat=30"];
    bench.run(&[&["run", "call.toml"][..], &fine, &enough].concat()).succeeds();
}

#[test]
fn a_run_goes_on_until_its_thresholds_are_decided_or_its_time_is_over() {
    let bench = Bench::new();
    bench.file("call.toml", CALL);
    let until = |longest: &str, demand: &str| {
        let flag = format!("--until-decided={longest}");
        bench.run(&["run", "call.toml", "--json", &flag, "--require", demand])
    };
    let decided = until("10min", "call.loss_rate@path.up.loss=0 <= 1%");
    let threshold = &decided.succeeds().summary()["thresholds"][0];
    // At 99 % none of n messages shows 4.6 / n, and a repetition has 100: two, four and six of them are
    // tried.
    assert_eq!((&threshold["outcome"], &threshold["repetitions"]), (&"holds".into(), &6.into()));
    // The figure is at its bound, so that no number of repetitions decides.
    let coin = until("2s", "call.loss_rate@path.up.loss=0.5 <= 50%");
    let seen = coin.summary();
    if seen["thresholds"][0]["outcome"] == "undecided" {
        coin.fails(6, &["more do not fit into --until-decided 2 s"]);
    }
    assert!(seen["thresholds"][0]["repetitions"].as_u64().unwrap() > 2, "{seen}");
    bench.run(&["run", "call.toml", "--until-decided", "--shard", "1/2"]).fails(2, &["cannot be used with"]);
    bench.file("one.toml", CALL.replace("\n[sweep]\n\"path.up.loss\" = [0.0, 0.5]\n", ""));
    bench.run(&["run", "one.toml", "--until-decided"]).fails(2, &["nothing is to be decided"]);
}

#[test]
fn a_figure_that_is_not_known_does_not_hold() {
    let bench = Bench::new();
    bench.file("call.toml", CALL);
    let seen = bench.run(&["run", "call.toml", "--require", "call.cwnd_packets > 0"]);
    seen.fails(5, &["the threshold does not hold"]);
    assert!(seen.out.contains("FAILS  call.cwnd_packets is not known (null), must be > 0"), "{}", seen.out);
}

#[test]
fn a_figure_that_is_not_there_is_refused_before_the_run_if_that_is_known() {
    let bench = Bench::new();
    bench.file("call.toml", CALL);
    let before = [
        ("cal.mos >= 3", "--require \"cal.mos >= 3\": thresholds.cal.mos: there is no flow called \"cal\""),
        ("call.moss >= 3", "did you mean `mos"),
        ("call.in_tme >= 3", "did you mean `in_time`?"),
        ("link.upp.lost >= 3", "did you mean \"up\"?"),
        ("call.mos@path.up.los=0 >= 3", "did you mean `path.up.loss`?"),
        ("call.call.mso >= 3", "did you mean `call.mos`?"),
        ("call.mos", "expected FLOW.FIGURE"),
        ("mos >= 3.6", "did you mean `call.mos`?"),
        ("call.mos >= lots", "a number in the figure's own unit"),
    ];
    for (text, says) in before {
        bench.run(&["run", "call.toml", "--require", text]).fails(2, &[says]);
        assert!(bench.runs().is_empty(), "{text}: nothing ran");
    }
    // Copies together have it, and this call has none.
    bench
        .run(&["run", "call.toml", "--require", "call.jain_index >= 0.9"])
        .fails(2, &["the flow call has no figure `jain_index`"]);
    assert!(bench.only_run().join("summary.json").is_file(), "what was measured is kept");
}

#[test]
fn a_comparison_has_thresholds_too() {
    let bench = Bench::new();
    let compare =
        ["compare", "--transports", "udp,tcp", "--duration", "2s", "--repeat", "1", "--set", "seed=3"];
    let demand =
        ["--require", "call.mos@flow.call.transport=udp >= 4.6", "--require", "upload.goodput_bps > 0"];
    let seen = bench.run(&[&compare[..], &demand].concat());
    seen.fails(5, &["1 of 2 thresholds do not hold"]);
    assert!(seen.out.contains("(flow.call.transport=udp; mean of 1 repetition)\n"), "{}", seen.out);
}

#[test]
fn a_far_end_that_is_not_there_goes_before_a_threshold() {
    let bench = Bench::new();
    bench.file("call.toml", CALL.replace("\n[sweep]\n\"path.up.loss\" = [0.0, 0.5]\n", ""));
    let served = Served::start(&bench, &["--open"]);
    let address = served.address.clone();
    let run = ["run", "call.toml", "--to", &address, "--require", "call.mos >= 4.6"];
    let child = bench.start(&[&run[..], &["--set", "duration=30 s"]].concat());
    wait_until("a run begins", || !bench.runs().is_empty());
    std::thread::sleep(std::time::Duration::from_secs(1));
    drop(served);
    let seen = Seen::of_child(child);
    seen.fails(4, &[]);
    assert!(seen.out.contains("FAILS  call.mos"), "{}", seen.out);
}

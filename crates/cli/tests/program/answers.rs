//! What the answer and the lines beside it say of whole simulated runs, and what they do not.

use crate::harness::{Bench, Seen};

/// `text` as one line, with single spaces: a terminal breaks sentences anywhere.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn compare(bench: &Bench, more: &[&str]) -> Seen {
    bench.run(&[&["compare", "--duration", "2s", "--repeat", "2"][..], more].concat())
}

#[test]
fn one_transport_is_compared_with_itself_over_what_its_sender_can_choose() {
    let bench = Bench::new();
    let arguments = ["compare", "--codec", "opus", "--transports", "udp", "--alone", "--up", "1Mbps/30ms"];
    let sweeps =
        ["--sweep", "flow.call.workload.red=0,1", "--set", "path.up.loss={ mean = '5%', burst = 2 }"];
    let more = ["--down", "1Mbps/30ms", "--repeat", "5", "--duration", "20s"];
    let seen = bench.run(&[&arguments[..], &sweeps, &more].concat());
    let said = seen.succeeds().out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("flow.call.workload.red: 1 is best, MOS"), "{said}");
    assert!(said.contains("(95 % of the difference: ") && said.contains(" kb/s on IPv4 with "), "{said}");
}

#[test]
fn a_path_that_loses_all_says_that_nothing_got_through_and_nothing_of_equal_repetitions() {
    let bench = Bench::new();
    let seen = compare(&bench, &["--transports", "udp,tcp", "--loss", "100%", "--alone"]);
    let out = unwrapped(&seen.out);
    assert!(out.contains("TCP did not open. Nothing got through over UDP."), "{out}");
    assert!(!(out + &seen.err).contains("repetitions are the same"), "{}", seen.out);
}

#[test]
fn a_game_over_a_path_beyond_its_deadline_is_ranked_by_delay_and_the_deadline_is_said() {
    let bench = Bench::new();
    let seen = compare(
        &bench,
        &["--workload", "game-60hz", "--path", "geo-satellite", "--transports", "udp,tcp", "--alone"],
    );
    let out = unwrapped(&seen.succeeds().out);
    assert!(out.contains("not one of its messages meets its deadline of 100 ms"), "{out}");
    assert!(out.contains("by the p50 round trip: ") && out.contains("The path is too long"), "{out}");
    assert!(!out.contains("0.00 to 0.00"), "an interval of shares that are all zero says nothing: {out}");
}

#[test]
fn datagrams_that_are_cut_are_said_by_check_and_beside_the_answer() {
    let bench = Bench::new();
    let text = "duration = \"2 s\"\nrepeat = 2\n\
        [path]\nup = { rate = \"10 Mbps\", delay = \"10 ms\", loss = 0.02 }\ndown = { rate = \"10 Mbps\", delay = \"10 ms\" }\n\
        [flow.cam]\ntransport = \"udp\"\ndscp = \"EF\"\n\
        workload = { kind = \"cbr\", message_rate = \"30 Hz\", size = \"10417 B\" }\n";
    bench.file("cam.toml", text);
    let said = "8 fragments each: 2 % of packets are 15 % of messages.";
    let warned = "flow.cam.dscp: EF does nothing in `sim`";
    let checked = bench.run(&["check", "cam.toml"]);
    assert!(unwrapped(&checked.succeeds().out).contains(said), "{}", checked.out);
    assert!(unwrapped(&checked.err).contains(warned), "{}", checked.err);
    let ran = bench.run(&["run", "cam.toml"]);
    let out = unwrapped(&ran.succeeds().out);
    assert!(out.contains(said) && out.matches(warned).count() == 1, "{out}");
    let swept = ["--sweep", "flow.cam.transport=udp,tcp"];
    let answered = bench.run(&[&["run", "cam.toml"][..], &swept].concat());
    let out = unwrapped(&answered.succeeds().out);
    let answer = out.split("in time").nth(1).unwrap_or_default().to_owned();
    assert!(out.matches("2 % of packets are 15 % of messages (in 1 of 2 cells).").count() >= 1, "{answer}");
}

#[test]
fn a_queue_that_nobody_gave_is_said_where_it_decides() {
    let bench = Bench::new();
    let line = ["--up", "2Mbps/15ms", "--down", "50Mbps/15ms", "--transports", "udp,tcp"];
    let long = ["compare", "--duration", "20s", "--repeat", "2"];
    let assumed = bench.run(&[&long[..], &line].concat());
    assert!(
        unwrapped(&assumed.succeeds().out).contains("size is assumed: the scenario does not say"),
        "{}",
        assumed.out
    );
    let given = ["--up", "2Mbps/15ms/1000packets", "--down", "50Mbps/15ms", "--transports", "udp,tcp"];
    let given = bench.run(&[&long[..], &given].concat());
    assert!(!unwrapped(&given.succeeds().out).contains("the scenario does not say"), "{}", given.out);
}

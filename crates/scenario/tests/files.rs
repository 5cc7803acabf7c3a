//! Traces and files to be sent: read by whoever loads the scenario, named in mistakes at their place, and
//! part of the resolved form.

use std::collections::BTreeMap;

use talkpath_path::{DelayVariation, LossModel, RateModel};
use talkpath_scenario::{
    Diagnostics, Files, Located, Options, Plan, Setting, Source, WorkloadConfig, load_with_files,
};
use talkpath_units::Bytes;

/// Files by name; a file to be sent lies under /data.
struct Shelf(BTreeMap<String, String>);

impl Files for Shelf {
    fn text(&self, name: &str) -> Result<String, String> {
        self.0.get(name).cloned().ok_or_else(|| "no such file".to_owned())
    }

    fn locate(&self, name: &str) -> Result<Located, String> {
        let path = if name.starts_with('/') { name.to_owned() } else { format!("/data/{name}") };
        let size = Bytes::new(self.text(path.trim_start_matches("/data/"))?.len() as u64);
        Ok(Located { path, size })
    }
}

fn shelf(files: &[(&str, &str)]) -> Shelf {
    Shelf(files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect())
}

fn read(text: &str, set: &[(&str, &str)], files: &Shelf) -> Result<Plan, Diagnostics> {
    let set = set.iter().map(|(key, value)| Setting::new(*key, *value)).collect();
    let options = Options { set, ..Options::default() };
    load_with_files(&Source::new("dir/f.toml", text), &options, files)
}

fn scenario(up: &str) -> String {
    format!(
        "duration = \"1 s\"\npath.down = {{ rate = \"1 Mbps\" }}\npath.up = {{ {up} }}\n\
         [flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\n"
    )
}

/// Loads the resolved form with nothing but the plan's own traces, and holds it against `plan`.
fn assert_repeats(plan: &Plan, sent: &[(&str, &str)]) {
    let mut files = shelf(sent);
    files.0.extend(plan.traces.iter().map(|trace| (trace.name.clone(), trace.text.clone())));
    let again = read(&plan.resolved, &[], &files).unwrap_or_else(|why| panic!("{why}\n{}", plan.resolved));
    assert_eq!(again.cells, plan.cells, "{}", plan.resolved);
    assert_eq!((&again.resolved, &again.traces), (&plan.resolved, &plan.traces));
}

#[test]
fn a_link_plays_its_traces_and_the_resolved_form_does_so_beside_them() {
    let files = shelf(&[("../a/up.trace", "1\n2\n9\n"), ("loss/up.trace", "001"), ("delays", "0\n2.5\n")]);
    let text = scenario(
        "rate = { trace = \"../a/up.trace\" }, loss = { kind = \"trace\", file = \"loss/up.trace\" }, \
         jitter = { kind = \"trace\", file = \"delays\", reorder = true }",
    );
    let plan = read(&text, &[], &files).unwrap_or_else(|why| panic!("{why}"));
    let link = &plan.cells[0].scenario.links.iter().find(|link| link.name == "up").unwrap().config;
    assert_eq!(link.rate, RateModel::Trace("1\n2\n9".parse().unwrap()));
    assert_eq!(link.loss, LossModel::Trace("001".parse().unwrap()));
    let additions = "0\n2.5".parse().unwrap();
    assert_eq!(link.jitter, DelayVariation::Trace { additions, reorder: true });
    let names: Vec<_> = plan.traces.iter().map(|trace| trace.name.as_str()).collect();
    assert_eq!(names, ["traces/up.trace", "traces/up-2.trace", "traces/delays"]);
    assert_eq!(plan.warnings, []);
    assert_repeats(&plan, &[]);
}

#[test]
fn traces_can_be_set_and_swept() {
    let files = shelf(&[("a", "1\n"), ("b", "2\n"), ("l", "10")]);
    let text = scenario("rate = \"1 Mbps\"")
        + "[sweep]\n\"path.up.rate.trace\" = [\"a\", \"b\"]\n\"path.down.loss\" = [0, { kind = \"trace\", file = \"l\" }]\n";
    let plan = read(&text, &[("path.up.delay", "1 ms")], &files).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(plan.cells.len(), 4);
    let rate = |cell: usize| plan.cells[cell].scenario.links[0].config.rate.clone();
    assert_eq!(rate(3), RateModel::Trace("2".parse().unwrap()));
    assert_eq!(rate(0), RateModel::Trace("1".parse().unwrap()));
    assert_repeats(&plan, &[]);
    let set = read(&scenario("rate = \"1 Mbps\""), &[("path.up.rate.trace", "b")], &files);
    assert_eq!(set.unwrap().cells[0].scenario.links[0].config.rate, rate(2));
}

#[test]
fn a_mistake_in_a_trace_is_told_with_both_files_and_lines() {
    let files = shelf(&[("bad", "1\n5\n3\n"), ("marks", "01\n0y"), ("empty", "")]);
    for (up, wanted) in [
        ("rate = { trace = \"none\" }", "dir/f.toml:3:30: path.up.rate.trace: none: no such file"),
        ("rate = { trace = \"bad\" }", "path.up.rate.trace: bad:3: 3 ms comes after 5 ms"),
        ("loss = { kind = \"trace\", file = \"marks\" }", "path.up.loss.file: marks:2: 'y' is neither 0"),
        (
            "jitter = { kind = \"trace\", file = \"empty\" }",
            "path.up.jitter.file: empty:1: the trace is empty",
        ),
    ] {
        let why = read(&scenario(up), &[], &files).unwrap_err().to_string();
        assert!(why.contains(wanted) && why.lines().count() == 1, "{why}\nlacks {wanted}");
    }
}

#[test]
fn a_file_is_sent_in_messages_that_its_transport_carries_whole() {
    let sent = [("big.bin", "x".repeat(100_000)), ("small", "y".to_owned())];
    let sent: Vec<(&str, &str)> = sent.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let text = scenario("rate = \"1 Mbps\", mtu = \"1400 B\"").replace(
        "workload = \"voice\"",
        "workload = { kind = \"file\", source = \"big.bin\" }\n\
         [flow.other]\ntransport = \"tcp\"\nworkload = { kind = \"file\", source = \"small\", size = \"1 kB\" }",
    );
    let plan = read(&text, &[], &shelf(&sent)).unwrap_or_else(|why| panic!("{why}"));
    let workload = |flow: usize| plan.cells[0].scenario.flows[flow].workload.clone();
    let file = |source: &str, bytes, size, header| WorkloadConfig::File {
        source: source.to_owned(),
        bytes: Bytes::new(bytes),
        size: Bytes::new(size),
        header: Bytes::new(header),
    };
    assert_eq!(workload(0), file("/data/big.bin", 100_000, 1372, 16));
    assert_eq!(workload(1), file("/data/small", 1, 1000, 0));
    // 73.7 datagrams of 1356 B of the file.
    assert_eq!(workload(0).transfer_size(), Some(Bytes::new(100_000 + 74 * 16)));
    assert_eq!(workload(1).transfer_size(), Some(Bytes::new(1)));
    assert!(plan.traces.is_empty());
    assert_repeats(&plan, &sent);
    let empty = read(&text, &[], &shelf(&[("big.bin", ""), ("small", "y")])).unwrap_err().to_string();
    assert!(empty.contains("flow.call.workload.source: big.bin: the file is empty"), "{empty}");
}

#[test]
fn a_message_of_a_file_that_its_transport_cannot_carry_whole_is_refused() {
    let sent = shelf(&[("big.bin", "x")]);
    for transport in ["udp", "dccp-ccid2", "quic-datagram"] {
        let text = scenario("rate = \"1 Mbps\"").replace("\"udp\"", &format!("\"{transport}\"")).replace(
            "workload = \"voice\"",
            "workload = { kind = \"file\", source = \"big.bin\", size = \"64 KiB\" }",
        );
        let why = read(&text, &[], &sent).unwrap_err().to_string();
        assert!(why.contains("flow.call.workload: found messages of 65536 B, expected at most"), "{why}");
    }
}

#[test]
fn a_link_without_a_rate_says_that_nothing_waits_there() {
    let warnings = |up: &str| read(&scenario(up), &[], &shelf(&[])).unwrap().warnings;
    let found = warnings("delay = \"1 ms\"");
    assert_eq!(found.len(), 1);
    assert!(
        found[0].to_string().contains("path.up.rate: missing; without it nothing ever waits"),
        "{}",
        found[0]
    );
    assert_eq!(warnings("rate = \"unlimited\""), []);
}

#[test]
fn what_a_trace_was_read_as_is_said_also_in_the_resolved_form() {
    let ten_ms: String = (1..=1000).map(|line| format!("{}\n", 10 * line)).collect();
    let files = shelf(&[("../a/x.up", ten_ms.as_str()), ("l.txt", "0001"), ("d.txt", "0\n2.5\n")]);
    let text = scenario(
        "rate = { trace = \"../a/x.up\" }, loss = { kind = \"trace\", file = \"l.txt\" }, \
         jitter = { kind = \"trace\", file = \"d.txt\" }",
    );
    let plan = read(&text, &[], &files).unwrap_or_else(|why| panic!("{why}"));
    let lines = [
        "x.up: 1000 deliveries, 1.2 Mb/s in the mean, repeats after 10 s",
        "l.txt: 4 packets, 1 of them lost (25 %), repeats after these",
        "d.txt: 2 packets, 1.25 ms added in the mean and 2.5 ms at most, repeats after these",
    ];
    assert_eq!(plan.understood.traces, lines);
    assert_eq!(plan.understood.losses, ["The link up loses 25 % of the packets."]);
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
    let mut again = shelf(&[]);
    again.0.extend(plan.traces.iter().map(|trace| (trace.name.clone(), trace.text.clone())));
    // The resolved form writes out the queues that were assumed.
    let mut written_out = plan.understood.clone();
    written_out.assumed_queues.clear();
    // The resolved form names the receiver.
    written_out.renamed.clear();
    assert_eq!(read(&plan.resolved, &[], &again).unwrap().understood, written_out);
}

#[test]
fn a_trace_in_another_unit_or_from_another_beginning_is_warned_of() {
    let every = |from: u64, step: u64| -> String {
        (1..=1000_u64).map(|line| format!("{}\n", from + step * line)).collect()
    };
    let (epoch, micros, rare) = (every(1_402_530_000_000, 10), every(0, 10_000), every(0, 100_000));
    let dense = "1\n".repeat(20_000_000 / 1500 * 2);
    let files = shelf(&[
        ("epoch.up", &epoch),
        ("us.up", &micros),
        ("rare.up", &rare),
        ("dense.up", &dense),
        ("us.delay", "20000\n21000\n"),
        ("ns.up", &every(0, 10_000_000)),
        ("speeds.up", "2\n2\n3\n3\n4\n5\n5\n"),
        ("seconds.up", &(0..1000).map(|line| format!("{}\n", line / 100)).collect::<String>()),
        ("gaps.up", &"120\n".repeat(1000)),
        ("steady.up", "1\n1\n2\n2\n2\n"),
        ("us_short.delay", "1500\n1000\n"),
        ("s.delay", "0.005\n0.010\n"),
    ]);
    let warned = |up: &str| {
        let plan = read(&scenario(up), &[], &files).unwrap_or_else(|why| panic!("{why}"));
        let [warning] = plan.warnings.as_slice() else { panic!("{up}: {:?}", plan.warnings) };
        (warning.key.clone(), warning.message.clone())
    };
    let says = |up: &str, key: &str, words: &[&str]| {
        let (at, message) = warned(up);
        assert_eq!(at, key);
        words.iter().for_each(|word| assert!(message.contains(word), "{word}: {message}"));
    };
    let rate = "path.up.rate.trace";
    says(
        "rate = { trace = \"epoch.up\" }",
        rate,
        &[
            "the first delivery comes after",
            "subtract the first, which gives 1.2 Mb/s: `awk 'NR == 1",
            "epoch.up",
        ],
    );
    says("rate = { trace = \"us.up\" }", rate, &["uses 0.01 % of the trace", "Microseconds", "1.2 Mb/s"]);
    says("rate = { trace = \"rare.up\" }", rate, &["outside of 1 kb/s to 100 Gb/s"]);
    says("rate = { trace = \"dense.up\" }", rate, &["outside of 1 kb/s to 100 Gb/s"]);
    says(
        "rate = \"1 Mbps\", jitter = { kind = \"trace\", file = \"us.delay\" }",
        "path.up.jitter.file",
        &["adds up to 21 s", "read as milliseconds", "Microseconds"],
    );
    says(
        "rate = { trace = \"ns.up\" }",
        rate,
        &["Nanoseconds become milliseconds, which gives 1.2 Mb/s", "1000000"],
    );
    says("rate = { trace = \"speeds.up\" }", rate, &["lasts 5 ms and is repeated 200 times in the run"]);
    says("rate = { trace = \"seconds.up\" }", rate, &["lasts 9 ms and is repeated 111 times in the run"]);
    says("rate = { trace = \"gaps.up\" }", rate, &["all of its 1000 lines are 120 ms"]);
    let seconds = "rate = \"1 Mbps\", jitter = { kind = \"trace\", file = \"s.delay\" }";
    says(
        seconds,
        "path.up.jitter.file",
        &["adds 10 us to a packet's delay at most", "Seconds become milliseconds"],
    );
    let long = scenario("rate = \"1 Mbps\", jitter = { kind = \"trace\", file = \"us_short.delay\" }");
    let plan = read(&long.replace("\"1 s\"", "\"10 s\""), &[], &files).unwrap();
    let told = plan.warnings.iter().map(ToString::to_string).collect::<String>();
    assert!(told.contains("adds 1.25 s to a packet's delay in the mean"), "{told}");
    let steady = read(&scenario("rate = { trace = \"steady.up\" }"), &[], &files).unwrap();
    assert!(steady.warnings.is_empty(), "{:?}", steady.warnings);
}

#[test]
fn a_file_that_is_no_trace_is_told_the_form_of_one() {
    let files = shelf(&[("bad.csv", "time,kbps\n0,1200\n"), ("l", "yes\n"), ("d", "20 ms\n")]);
    for (up, words) in [
        ("rate = { trace = \"bad.csv\" }", "a line for each packet of 1500 B that the link can deliver"),
        ("loss = { kind = \"trace\", file = \"l\" }", "0 if it arrives, 1 if it is lost"),
        ("jitter = { kind = \"trace\", file = \"d\" }", "milliseconds that are added"),
    ] {
        let why = read(&scenario(up), &[], &files).unwrap_err().to_string();
        assert!(why.contains(words), "{up}: {why}");
    }
    let missing = read(&scenario("rate = { trace = \"none.up\" }"), &[], &files).unwrap_err().to_string();
    assert!(missing.contains("no such file") && !missing.contains("mahimahi"), "{missing}");
}

//! `talkpath rate`: captures of ours give the run's figures back, and tshark computes the same of any
//! capture.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Bench, names, read_json};

/// A call beside an upload, on a path that loses.
const CALL: &str = r#"
name = "a call to capture"
duration = "10 s"

[path]
up = { rate = "2 Mbps", delay = "20 ms", loss = 0.03, queue = { kind = "drop-tail", limit = "64 kB" } }
down = { rate = "2 Mbps", delay = "20 ms" }

[flow.call]
transport = "udp"
workload = { kind = "voice", codec = "g711" }

[flow.upload]
transport = "tcp"
workload = "bulk"
"#;

/// Two calls and a stream of Opus with SIP, in the crate that reads captures.
const THREE_STREAMS: &[u8] = include_bytes!("../../../capture/tests/data/three-streams.pcapng");

/// The only repetition's figures of each flow.
fn flows(summary: &Value) -> &Value {
    &summary["runs"][0]["flows"]
}

/// Makes a run of [`CALL`] and captures it at the far end. Returns the figures of the call.
fn captured_call(bench: &Bench) -> Value {
    bench.file("call.toml", CALL);
    let summary = bench.run(&["run", "call.toml", "--json=runs"]).succeeds().summary();
    let run = bench.only_run().to_string_lossy().into_owned();
    bench.run(&["export", &run, "--format", "pcapng", "--at", "far", "-o", "call.pcapng"]).succeeds();
    flows(&summary)["call"].clone()
}

#[test]
fn the_capture_of_a_run_gives_the_runs_loss_and_jitter_back() {
    let bench = Bench::new();
    let call = captured_call(&bench);
    let rated = bench.run(&["rate", "call.pcapng", "--one-way", "20ms", "--json=runs"]).succeeds().summary();
    let stream = &flows(&rated)["call-1"];
    assert!(call["lost"].as_u64().unwrap() > 3, "{call}");
    for key in ["sent", "received", "lost", "loss_rate"] {
        assert_eq!(stream[key], call[key], "{key}");
    }
    let differs_by = |path: &str| {
        let of = |flow: &Value| flow.pointer(path).unwrap().as_f64().unwrap();
        (of(stream) - of(&call)).abs()
    };
    for figure in ["delta_ms/min", "delta_ms/mean", "delta_ms/max", "jitter_ms/mean", "jitter_ms/max"] {
        assert!(differs_by(&format!("/rtp_stream/{figure}")) < 1e-6, "{figure}: {stream} {call}");
    }
    assert!(differs_by("/rtp_jitter_ms") < 1e-6, "{stream} {call}");
    // The fastest packet may have waited a little, too.
    assert!(differs_by("/one_way_delay_ms/p50") < 2.0, "{stream} {call}");
    assert!(differs_by("/call/mos") < 0.05, "{stream} {call}");
    // The run lasts until its end, and the capture until the last packet.
    let goodput = call["goodput_bps"].as_f64().unwrap();
    assert!(differs_by("/goodput_bps") < 0.01 * goodput, "{stream} {call}");
    assert_eq!(rated["streams"][0]["one_way_by"], "option");
}

#[test]
fn the_capture_of_a_run_in_opus_shows_its_coding_and_gives_the_runs_score_back() {
    let score_of = |coding: &str| {
        let bench = Bench::new();
        bench.file("call.toml", CALL.replace("codec = \"g711\"", coding));
        let summary = bench.run(&["run", "call.toml", "--json=runs"]).succeeds().summary();
        let run = bench.only_run().to_string_lossy().into_owned();
        bench.run(&["export", &run, "--format", "pcapng", "--at", "far", "-o", "call.pcapng"]).succeeds();
        let arguments =
            ["rate", "call.pcapng", "--one-way", "20ms", "--payload-type", "111=opus", "--json=runs"];
        let rated = bench.run(&arguments).succeeds().summary();
        let mos = |of: &Value, flow: &str| flows(of)[flow]["call"]["mos"].as_f64();
        (mos(&summary, "call"), mos(&rated, "call-1"), rated["streams"][0]["coding"].clone())
    };
    let (run, capture, coding) = score_of("codec = \"opus\", bitrate = \"32 kbps\", vbr = false");
    assert!((run.unwrap() - capture.unwrap()).abs() < 0.05, "{run:?} {capture:?}");
    assert_eq!((coding["bandwidth"].as_str(), coding["kbps"].as_f64()), (Some("swb"), Some(32.0)));
    let (run, capture, coding) = score_of("codec = \"opus\", fec = true");
    assert_eq!((run, capture, coding["fec"].as_bool()), (None, None, Some(true)));
}

#[test]
fn the_two_directions_of_a_call_are_between_the_same_two_hosts() {
    let bench = Bench::new();
    let both = CALL.replace("[flow.upload]", "direction = \"both\"\n[flow.upload]");
    bench.file("call.toml", both);
    bench.run(&["run", "call.toml", "--set", "duration=2 s"]).succeeds();
    let run = bench.only_run().to_string_lossy().into_owned();
    bench.run(&["export", &run, "--format", "pcapng", "--at", "far", "-o", "call.pcapng"]).succeeds();
    let rated = bench.run(&["rate", "call.pcapng", "--names", "--json=runs"]).succeeds().summary();
    let ends = |number: usize| {
        let stream = &rated["streams"][number];
        (stream["from"].as_str().unwrap().to_owned(), stream["to"].as_str().unwrap().to_owned())
    };
    let mut found = [ends(0), ends(1)];
    found.sort();
    let (near, far) = ("10.0.0.1:5004".to_owned(), "10.128.0.1:5004".to_owned());
    assert_eq!(found, [(near.clone(), far.clone()), (far, near)]);
}

/// Where a link begins is a host or a router, which sees both directions of a call.
#[test]
fn a_capture_at_one_place_has_both_directions_as_they_are_there() {
    let bench = Bench::new();
    let both = CALL.replace("[flow.upload]", "direction = \"both\"\n[flow.upload]");
    bench.file("call.toml", both.replace("down = { rate", "down = { loss = 0.05, rate"));
    let summary = bench.run(&["run", "call.toml", "--json=runs"]).succeeds().summary();
    let run = bench.only_run().to_string_lossy().into_owned();
    let lost = |flows: &Value, flow: &str| flows[flow]["lost"].as_u64().unwrap();
    let (up, down) = (lost(flows(&summary), "call-up"), lost(flows(&summary), "call-down"));
    assert!(up > 3 && down > 10, "{up} {down}");
    // The first host has lost nothing of what it sends. A stream is `up` if its first packet is there first.
    for (link, lost_before) in [("up", down), ("down", up)] {
        let export = ["export", &run, "--format", "pcapng", "--at", link, "-o", "place.pcapng"];
        bench.run(&export).succeeds();
        let rated = bench.run(&["rate", "place.pcapng", "--one-way", "20ms", "--json=runs"]);
        let rated = rated.succeeds().summary();
        assert_eq!(lost(flows(&rated), "call-1-up"), 0, "{link}");
        // A capture does not show packets that were lost before the first or behind the last one.
        let unseen = lost_before - lost(flows(&rated), "call-1-down");
        assert!(unseen <= 2, "{link}: {unseen} of {lost_before}");
        let conversation = &rated["runs"][0]["groups"]["call-1"]["judged"];
        let worse = &flows(&rated)["call-1-down"]["call"]["mos"];
        assert_eq!(
            (&conversation["worst"], conversation["worst_flow"].as_str()),
            (worse, Some("call-1-down"))
        );
        let said = bench.run(&["rate", "place.pcapng", "--one-way", "20ms"]).succeeds().out.clone();
        assert!(said.contains("in the worse direction (call-1-down), "), "{said}");
    }
    let wrong = ["export", &run, "--format", "pcapng", "--at", "middle", "-o", "place.pcapng"];
    bench.run(&wrong).fails(2, &["--at middle: expected near, far, or the name of a link", "up, down"]);
}

#[test]
fn a_router_sees_packets_as_they_come_to_it() {
    let bench = Bench::new();
    bench.file(
        "routed.toml",
        r#"
duration = "10 s"
[link.access]
rate = "10 Mbps"
delay = "10 ms"
loss = 0.05
[link.wan]
rate = "10 Mbps"
delay = "30 ms"
loss = 0.05
[link.back]
rate = "10 Mbps"
delay = "40 ms"
[flow.call]
transport = "udp"
workload = { kind = "voice", codec = "g711" }
route = ["access", "wan"]
return_route = ["back"]
"#,
    );
    let summary = bench.run(&["run", "routed.toml", "--json=runs"]).succeeds().summary();
    let run = bench.only_run().to_string_lossy().into_owned();
    let export = ["export", &run, "--format", "pcapng", "--at", "wan", "-o", "router.pcapng"];
    bench.run(&export).succeeds();
    let rated =
        bench.run(&["rate", "router.pcapng", "--one-way", "10ms", "--json=runs"]).succeeds().summary();
    let there = &flows(&rated)["call-1"];
    let lost_on = |link: &str| summary["runs"][0]["links"][link]["lost"].as_u64().unwrap();
    assert_eq!(there["lost"].as_u64(), Some(lost_on("access")), "{there}");
    assert!(lost_on("access") > 5 && lost_on("wan") > 5);
    assert!((there["one_way_delay_ms"]["min"].as_f64().unwrap() - 10.0).abs() < 0.01, "{there}");
}

/// What the sender does about loss, or in silence, and how it is heard: the packets have the speech of
/// others, are there twice, or are not sent.
#[test]
fn the_capture_of_a_run_that_repeats_speech_or_leaves_silence_out_gives_what_is_heard_back() {
    // With seed 1 the speaker is silent for most of ten seconds. With seed 4 the packets at the beginning of
    // a talkspurt are lost.
    for (sender, meaning, seed) in [
        ("codec = \"g711\", red = 1", "121=red/8000", "3"),
        ("codec = \"g711\", copies = 2", "0=PCMU", "3"),
        ("codec = \"g711\", dtx = true", "0=PCMU", "3"),
        ("codec = \"g711\", dtx = true, red = 2", "121=red/8000", "3"),
        ("codec = \"g711\", dtx = true, red = 2", "121=red/8000", "4"),
        ("codec = \"opus\", fec = true", "111=opus", "3"),
        ("codec = \"opus\", red = 1, vbr = false", "121=red/48000", "3"),
    ] {
        let bench = Bench::new();
        bench
            .file("call.toml", CALL.replace("codec = \"g711\"", sender).replace("loss = 0.03", "loss = 0.1"));
        let summary = bench.run(&["run", "call.toml", "--seed", seed, "--json=runs"]).succeeds().summary();
        let run = bench.only_run().to_string_lossy().into_owned();
        bench.run(&["export", &run, "--format", "pcapng", "--at", "far", "-o", "call.pcapng"]).succeeds();
        let arguments = ["rate", "call.pcapng", "--one-way", "20ms", "--payload-type", meaning];
        let opus = ["--payload-type", "111=opus", "--json=runs"];
        let rated = bench.run(&[&arguments[..], &opus[..]].concat()).succeeds().summary();
        let (call, heard) = (&flows(&summary)["call"]["call"], &flows(&rated)["call-1"]["call"]);
        let differs = |key: &str| match (call[key].as_f64(), heard[key].as_f64()) {
            (Some(run), Some(capture)) => (run - capture).abs(),
            (run, capture) => {
                if run == capture {
                    0.0
                } else {
                    9.0
                }
            }
        };
        // A capture does not show packets that were lost before the first or behind the last one.
        assert!(differs("concealed") < 0.005, "{sender}: {call} {heard}");
        assert!(differs("mos") < 0.1, "{sender}: {call} {heard}");
        let stream = &rated["streams"][0];
        let repaired = stream["repaired"].as_u64().unwrap();
        let is_repaired = sender.contains("red") || sender.contains("fec");
        assert_eq!(repaired > 5, is_repaired, "{sender}: {stream}");
        assert_eq!(stream["red"].is_u64(), sender.contains("red"), "{sender}: {stream}");
    }
}

#[test]
fn the_capture_of_an_emulated_run_gives_the_runs_loss_and_jitter_back() {
    let bench = Bench::new();
    bench.file("call.toml", CALL.replace("10 s", "3 s").replace("loss = 0.03", "loss = 0.1"));
    let Some(seen) = bench.emulate(&["run", "call.toml", "--arena", "emu", "--capture", "--json=runs"])
    else {
        return;
    };
    let summary = seen.succeeds().summary();
    let call = &flows(&summary)["call"];
    let run = bench.only_run().to_string_lossy().into_owned();
    bench.run(&["export", &run, "--format", "pcapng", "--at", "far", "-o", "call.pcapng"]).succeeds();
    let rated = bench.run(&["rate", "call.pcapng", "--one-way", "20ms", "--json=runs"]).succeeds().summary();
    let stream = &flows(&rated)["call-1"];
    let number = |flow: &Value, key: &str| flow[key].as_f64().unwrap();
    assert_eq!(stream["received"], call["received"], "{stream} {call}");
    // A capture does not show packets that were lost before the first or behind the last one.
    let unseen = number(call, "lost") - number(stream, "lost");
    assert!((0.0..=3.0).contains(&unseen) && number(stream, "lost") >= 3.0, "{stream} {call}");
    // The capture has the time of the emulator's write, and the run that of the far kernel.
    let differs = (number(stream, "rtp_jitter_ms") - number(call, "rtp_jitter_ms")).abs();
    assert!(differs < 1.0, "{stream} {call}");
}

#[test]
fn a_rated_capture_leaves_a_page_a_summary_and_rows() {
    let bench = Bench::new();
    bench.file("three.pcapng", THREE_STREAMS);
    let seen = bench.run(&["rate", "three.pcapng"]);
    seen.succeeds();
    assert!(seen.out.contains("50 ms is assumed for the fastest packet"), "{}", seen.out);
    let unrated =
        "call-2 has no opinion score: nobody published the impairment of opus as it is here (fb, CBR";
    let said = seen.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(unrated) && seen.out.contains("concealed"), "{}", seen.out);
    let run = bench.only_run();
    assert_eq!(names(&run), ["packets.parquet", "report.html", "summary.json"]);
    let page = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("talkpath rate three.pcapng") && !page.contains("The scenario as resolved"));
    let summary = read_json(&run.join("summary.json"));
    assert_eq!((&summary["arena"], summary["streams"].as_array().unwrap().len()), (&"capture".into(), 3));
    // Neither the page nor the summary has an address unless the user wants it.
    for text in [page, summary.to_string(), seen.out.clone()] {
        assert!(!text.contains("192.0.2.1") && !text.contains("2001:db8"), "{text}");
    }
    let named = bench.run(&["rate", "three.pcapng", "--names", "--records", "none"]);
    assert!(named.succeeds().out.contains("[2001:db8::1]:6002 to"), "{}", named.out);
}

#[test]
fn thresholds_are_about_each_call_of_the_capture() {
    let bench = Bench::new();
    bench.file("three.pcapng", THREE_STREAMS);
    let held =
        ["rate", "three.pcapng", "--require", "call-1.mos >= 2", "--require", "call-1-down.loss_rate <= 5%"];
    let seen = bench.run(&held);
    assert_eq!(seen.succeeds().out.matches("\nholds  ").count(), 2, "{}", seen.out);
    bench.run(&["rate", "three.pcapng", "--require", "call.loss_rate <= 1%"]).fails(5, &["does not hold"]);
    bench.run(&["rate", "three.pcapng", "--require", "call-2.rtp_jitter_ms <= 20"]).succeeds();
    // The third stream is Opus in full band, of which nobody published figures.
    let seen = bench.run(&["rate", "three.pcapng", "--require", "call.mos >= 2"]);
    seen.fails(2, &["threshold call.mos: call-2 has no score", "published are nb from 6", "`call-1.mos`"]);
    bench.run(&["rate", "three.pcapng", "--require", "call-2.call.concealed <= 50%"]).succeeds();
}

#[test]
fn what_cannot_be_read_says_where_and_what_can_be_read_is_shown() {
    let bench = Bench::new();
    let cut = THREE_STREAMS.len() - 10;
    bench.file("cut.pcapng", &THREE_STREAMS[..cut]);
    let seen = bench.run(&["rate", "cut.pcapng"]);
    seen.fails(2, &["cut.pcapng: the block that begins at byte", "the file ends within it"]);
    assert!(seen.out.contains("call-1"), "{}", seen.out);
    bench.file("text.pcapng", "not a capture at all\n");
    bench.run(&["rate", "text.pcapng"]).fails(2, &["text.pcapng: not a capture"]);
    bench.run(&["rate", "absent.pcapng"]).fails(2, &["absent.pcapng"]);
    bench.file("empty.pcapng", &THREE_STREAMS[..48]);
    bench.run(&["rate", "empty.pcapng"]).fails(2, &["found no stream of RTP: of 0 packets"]);
    bench.run(&["rate", "x.pcap", "--payload-type", "128=opus"]).fails(2, &["a number from 0 to 127"]);
    bench.run(&["rate", "x.pcap", "--payload-type", "97"]).fails(2, &["expected NUMBER=NAME"]);
    bench.run(&["rate", "x.pcap", "--one-way", "50"]).fails(2, &["without a unit"]);
}

/// tshark's table of the streams of `file`: for each SSRC the packets, the lost packets, and the smallest,
/// mean and largest time between arrivals and jitter as it prints them. `None` where tshark is not installed.
fn tsharks_streams(bench: &Bench, file: &str) -> Option<Vec<(String, Vec<String>)>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-d", "udp.port==5004,rtp", "-q", "-z", "rtp,streams", "-r"]);
    let Ok(output) = command.arg(bench.path(file)).output() else {
        eprintln!("SKIP: tshark is not installed");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    let table = String::from_utf8(output.stdout).unwrap();
    let mut streams = Vec::new();
    for line in table.lines().filter(|line| line.contains("0x")) {
        let words: Vec<&str> = line.split_whitespace().filter(|word| *word != "X").collect();
        let ssrc = words.iter().find(|word| word.starts_with("0x")).unwrap();
        let [packets, lost, _share, figures @ ..] = &words[words.len() - 9..] else { panic!("{line}") };
        let figures = [packets, lost].into_iter().chain(figures).map(|word| (*word).to_owned());
        streams.push(((*ssrc).to_owned(), figures.collect()));
    }
    Some(streams)
}

#[test]
fn loss_jitter_and_delta_are_those_of_tshark() {
    let bench = Bench::new();
    captured_call(&bench);
    bench.file("three.pcapng", THREE_STREAMS);
    for (file, count) in [("call.pcapng", 1), ("three.pcapng", 3)] {
        let Some(theirs) = tsharks_streams(&bench, file) else { return };
        assert_eq!(theirs.len(), count, "{file}: {theirs:?}");
        let summary = bench.run(&["rate", file, "--json=runs"]).succeeds().summary();
        for stream in summary["streams"].as_array().unwrap() {
            let flow = &flows(&summary)[stream["flow"].as_str().unwrap()];
            let mut ours = vec![flow["received"].to_string(), flow["lost"].to_string()];
            for part in ["delta_ms", "jitter_ms"] {
                for of in ["min", "mean", "max"] {
                    ours.push(format!("{:.3}", flow["rtp_stream"][part][of].as_f64().unwrap()));
                }
            }
            let (_, their) = theirs.iter().find(|(ssrc, _)| stream["ssrc"] == ssrc.as_str()).unwrap();
            assert_eq!(&ours, their, "{file}: {stream}");
        }
    }
}

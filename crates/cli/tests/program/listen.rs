//! `talkpath listen`: the sound of a run's call has its gaps where the records have them, and is the same
//! each time. A capture is heard as its packets have it.

use std::fs;

use serde_json::Value;

use crate::harness::{Bench, read_json};

/// A call on a path that loses, with a receiver that the test fills in.
const CALL: &str = r#"
name = "a call to hear"
duration = "20 s"

[path]
up = { rate = "2 Mbps", delay = "20 ms", jitter = { kind = "uniform", max = "30 ms" }, loss = 0.03 }
down = { rate = "2 Mbps", delay = "20 ms" }

[flow.call]
transport = "udp"
workload = { kind = "voice", codec = "g711", RECEIVER }
"#;

fn bench(receiver: &str) -> Bench {
    let bench = Bench::new();
    bench.file("call.toml", CALL.replace("RECEIVER", receiver));
    bench
}

/// The samples of a WAV file with one channel of 16 bits.
fn samples(bench: &Bench, name: &str) -> Vec<i16> {
    let bytes = fs::read(bench.path(name)).unwrap();
    assert_eq!((&bytes[..4], &bytes[36..40]), (&b"RIFF"[..], &b"data"[..]));
    bytes[44..].chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect()
}

/// Listens to the only run. Returns the figures of its sounds.
fn listen(bench: &Bench, arguments: &[&str]) -> Value {
    let run = bench.only_run().to_string_lossy().into_owned();
    let all = [&["listen", &run, "--json"], arguments].concat();
    bench.run(&all).succeeds().summary()
}

#[test]
fn the_gaps_of_the_sound_are_where_the_records_have_missing_frames() {
    let bench = bench(r#"playout = { kind = "fixed", delay = "60 ms" }, concealment = "none""#);
    bench.run(&["run", "call.toml"]).succeeds();
    let run = bench.only_run();
    let name = run.to_string_lossy().into_owned();
    let rows = bench.run(&["export", &name, "--format", "jsonl"]).succeeds().out.clone();
    let missing: Vec<bool> = rows
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|row| row["fate"] != "delivered")
        .collect();
    assert!(missing.iter().filter(|it| **it).count() > 10);
    let sounds = listen(&bench, &[]);
    let samples = samples(&bench, "call.wav");
    assert_eq!(samples.len(), 160 * missing.len());
    for (number, (frame, is_missing)) in samples.chunks(160).zip(&missing).enumerate() {
        // G.711 makes noise of the smallest steps out of silence.
        assert_eq!(frame.iter().all(|sample| *sample == 0), *is_missing, "frame {number}");
    }
    let call = read_json(&run.join("summary.json"))["runs"][0]["flows"]["call"]["call"].clone();
    let [played, late, lost] = ["played", "late", "missing"].map(|key| call[key].as_f64().unwrap());
    let concealed = sounds["sounds"][0]["concealed"].as_f64().unwrap();
    assert!((concealed - (late + lost) / (played + late + lost)).abs() < 1e-9, "{concealed} {call}");
    assert_eq!(sounds["sounds"][0]["mos"], call["mos"]);
}

#[test]
fn the_receiver_of_browsers_makes_up_as_much_as_the_run_says_and_the_same_sound_each_time() {
    let bench = bench(r#"playout = "adaptive""#);
    bench.run(&["run", "call.toml"]).succeeds();
    let with_rows = listen(&bench, &["-o", "first.wav"]);
    let sound = &with_rows["sounds"][0];
    let call = read_json(&bench.only_run().join("summary.json"))["runs"][0]["flows"]["call"]["call"].clone();
    let share = |value: &Value| value.as_f64().unwrap();
    assert!(share(&sound["concealed"]) > 0.01, "{sound}");
    assert!((share(&sound["concealed"]) - share(&call["concealed"])).abs() < 1e-9, "{sound} {call}");
    assert!(share(&sound["stretched"]) > 0.0);
    // Without rows the run is made again.
    fs::remove_file(bench.only_run().join("packets.parquet")).unwrap();
    listen(&bench, &["-o", "second.wav"]);
    let bytes = |name: &str| fs::read(bench.path(name)).unwrap();
    assert_eq!(bytes("first.wav"), bytes("second.wav"));
    let page = fs::read_to_string(bench.path("first.html")).unwrap();
    assert_eq!(page.matches("<audio").count(), 1);
    assert!(page.contains("src=\"data:audio/wav;base64,UklGR"), "the page has the sound in itself");
    assert!(page.contains("<rect class=\"heard-made-up\""));
}

#[test]
fn each_transport_has_a_file_of_its_own() {
    let bench = bench(r#"playout = "adaptive""#);
    bench.run(&["run", "call.toml", "--sweep", "flow.call.transport=udp,tcp,quic-datagram"]).succeeds();
    let sounds = listen(&bench, &["--transports", "udp,tcp", "--for", "2s"]);
    let files: Vec<&str> =
        sounds["sounds"].as_array().unwrap().iter().map(|sound| sound["file"].as_str().unwrap()).collect();
    assert_eq!(files, ["call-udp.wav", "call-tcp.wav"]);
    assert_eq!(samples(&bench, "call-tcp.wav").len(), 16_000);
    let only = listen(&bench, &["--cell", "2", "-o", "one.wav"]);
    assert_eq!(only["sounds"][0]["transport"], "quic-datagram");
    assert!(bench.path("one.wav").exists());
}

#[test]
fn the_report_of_a_run_plays_its_call_if_that_is_asked_for() {
    let bench = bench(r#"playout = "adaptive""#);
    bench.run(&["run", "call.toml", "--sweep", "flow.call.transport=udp,tcp"]).succeeds();
    let run = bench.only_run().to_string_lossy().into_owned();
    bench.run(&["report", &run]).succeeds();
    let page = bench.only_run().join("report.html");
    let silent = fs::read_to_string(&page).unwrap();
    assert!(!silent.contains("<audio"), "a page that nobody asked for is not larger");
    let heard = listen(&bench, &["--report", "-o", "x.wav"]);
    let text = fs::read_to_string(&page).unwrap();
    assert_eq!(text.matches("<audio").count(), 2);
    assert!(text.contains("<rect class=\"heard-made-up\"") && text.contains("<h3>UDP</h3>"));
    assert!(heard["page"].as_str().unwrap().ends_with("report.html"), "{heard}");
    assert!(bench.path("x-udp.wav").exists() && !bench.path("x.html").exists());
    // The rest of the page is as it was.
    bench.run(&["report", &run]).succeeds();
    assert!(fs::read_to_string(&page).unwrap() == silent, "the page differs");
}

/// A capture in the format pcap of a call in G.711 (mu-law) whose packets come at their times, without those
/// of `lost`. `code` is the code of each sample.
fn capture(lost: &[u32], mut code: impl FnMut(u32) -> u8) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend(word.to_le_bytes());
    }
    for number in 0..500_u32 {
        let codes: Vec<u8> = (0..160).map(|at| code(160 * number + at)).collect();
        if lost.contains(&number) {
            continue;
        }
        let mut packet = vec![0x45, 0, 0, 200, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        packet.extend([0x13, 0x88, 0x13, 0x88, 0, 180, 0, 0, 0x80, 0]);
        packet.extend((number as u16).to_be_bytes());
        packet.extend((160 * number).to_be_bytes());
        packet.extend([0, 0, 0, 7]);
        packet.extend(codes);
        let micros = 20_000 * number;
        for word in [micros / 1_000_000, micros % 1_000_000, packet.len() as u32, packet.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

#[test]
fn a_capture_is_heard_as_its_packets_have_it_and_with_the_recording_where_they_have_no_speech() {
    let bench = Bench::new();
    // A wave with a period of 80 samples, of which the mu-law has the magnitudes 0 to 2/3.
    let wave = |at: u32| 0xff - (at % 80).min(80 - at % 80) as u8;
    bench.file("call.pcap", capture(&[200, 201, 202], wave));
    let heard = bench.run(&["listen", "call.pcap", "--json"]).succeeds().summary();
    let sound = &heard["sounds"][0];
    assert_eq!((&sound["speech"], &sound["file"]), (&"packets".into(), &"call.wav".into()));
    assert_eq!((sound["flow"].as_str(), sound["transport"].as_str()), (Some("call-1"), None));
    let concealed = sound["concealed"].as_f64().unwrap();
    assert!((0.004..0.02).contains(&concealed), "three frames of 500: {sound}");
    let rated = bench.run(&["rate", "call.pcap", "--json=runs"]).succeeds().summary();
    let call = &rated["runs"][0]["flows"]["call-1"]["call"];
    assert_eq!((&sound["mos"], sound["concealed"].as_f64()), (&call["mos"], call["concealed"].as_f64()));
    // The wave is never negative, and speech is.
    let least = |name: &str| samples(&bench, name).into_iter().min().unwrap();
    assert!(least("call.wav") >= -200, "{}", least("call.wav"));
    let page = fs::read_to_string(bench.path("call.html")).unwrap();
    assert!(page.contains("the speech is that of the packets"));
    let mut state = 1_u32;
    let random = move |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    bench.file("secret.pcap", capture(&[], random));
    let heard = bench.run(&["listen", "secret.pcap", "-o", "secret.wav"]).succeeds().out.clone();
    assert!(heard.contains("the recording is heard, because the packets have random bytes"), "{heard}");
    assert!(least("secret.wav") < -1_000);
    // The page of `rate` plays it.
    let heard = bench.run(&["listen", "call.pcap", "--json", "--report", "-o", "x.wav"]).succeeds().summary();
    let file = bench.path(heard["page"].as_str().unwrap());
    let page = fs::read_to_string(&file).unwrap();
    assert!(page.contains("<audio") && page.contains("talkpath rate call.pcap"));
    assert!(!bench.path("x.html").exists());
    fs::remove_dir_all(file.parent().unwrap()).unwrap();
    bench.run(&["listen", "call.pcap", "--cell", "1"]).fails(2, &["--cell is for runs, and this is a file"]);
    bench
        .run(&["listen", "call.pcap", "--flow", "x"])
        .fails(2, &["no call of this name; the calls are `call-1`"]);
    bench
        .run(&["listen", "call.pcap", "-o", "call.pcap"])
        .fails(2, &["-o call.pcap: is read; name another file"]);
    let rated = bench.only_run().to_string_lossy().into_owned();
    bench.run(&["listen", &rated]).fails(2, &["listen to the capture itself"]);
}

#[test]
fn calls_of_a_capture_that_cannot_be_heard_are_named() {
    let bench = Bench::new();
    bench.file("three.pcapng", include_bytes!("../../../capture/tests/data/three-streams.pcapng"));
    let seen = bench.run(&["listen", "three.pcapng"]);
    let said = seen.succeeds().out.clone();
    for call in ["call-1-up", "call-1-down"] {
        assert!(said.contains(&format!("{call}.wav: {call}\n")), "{said}");
    }
    assert!(said.contains("because the capture has cut the speech of the packets"), "{said}");
    if cfg!(not(feature = "opus")) {
        assert!(seen.err.contains("call-2 is not heard: it is in opus"), "{}", seen.err);
    }
    let alone = ["listen", "three.pcapng", "--payload-type", "8=G729", "--flow", "call-1"];
    bench.run(&alone).fails(2, &["call-1-up is not heard: it is in g729a", "bcg729, is under the GPL"]);
}

/// Only a program with the feature `opus` has a coder for it: `cargo test -p talkpath --features opus`.
#[cfg(feature = "opus")]
#[test]
fn a_call_in_opus_is_heard_at_the_rate_of_its_bandwidth_with_its_gaps() {
    let bench = Bench::new();
    let opus = CALL.replace("codec = \"g711\", RECEIVER", "codec = \"opus\", fec = true");
    bench.file("call.toml", opus);
    bench.run(&["run", "call.toml"]).succeeds();
    let heard = listen(&bench, &[]);
    let sound = &heard["sounds"][0];
    assert_eq!((sound["codec"].as_str(), sound["rate_hz"].as_u64()), (Some("opus"), Some(24_000)));
    let call = read_json(&bench.only_run().join("summary.json"))["runs"][0]["flows"]["call"]["call"].clone();
    let share = |value: &Value| value.as_f64().unwrap();
    assert!((share(&sound["concealed"]) - share(&call["concealed"])).abs() < 1e-9, "{sound} {call}");
    let loud = samples(&bench, "call.wav").iter().filter(|sample| sample.unsigned_abs() > 1_000).count();
    assert!(loud > 20 * 24_000 / 20, "{loud} samples are loud: it is speech");
}

#[test]
fn what_cannot_be_heard_is_said() {
    let bench = bench(r#"playout = "adaptive""#);
    bench.run(&["run", "call.toml", "--set", "duration=2 s"]).succeeds();
    let run = bench.only_run().to_string_lossy().into_owned();
    let fails = |arguments: &[&str], says: &[&str]| {
        bench.run(&[&["listen", &run], arguments].concat()).fails(2, says);
    };
    fails(&["--transports", "tcp"], &["--transports tcp: the run has `call` over `udp`"]);
    fails(&["--flow", "upload"], &["--flow upload: no call of this name; the calls are `call`"]);
    fails(&["--cell", "3"], &["--cell 3: no such call in it"]);
    fails(&["--repetition", "9"], &["--repetition 9: cell 0 has no such repetition"]);
    fails(&["-o", &format!("{run}/summary.json")], &["name another file"]);
    bench.file("speech.wav", "this is text");
    fails(&["--input", "speech.wav"], &["--input speech.wav: it cannot be read as a WAV file"]);
    fails(&["--input", "gone.wav"], &["cannot read gone.wav"]);
    fails(&["--for", "1h"], &["--for"]);
    fails(&["--codec", "g711"], &["--codec is for captures, and this is a directory"]);
}

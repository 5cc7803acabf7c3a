//! `talkpath listen`: the sound of a run's call has its gaps where the records have them, and is the same
//! each time.

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
}

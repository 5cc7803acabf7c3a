use super::*;

#[test]
fn a_file_is_known_by_its_first_line() {
    assert_eq!(guess_kind("\n# remark\n0\n5\n"), Some(TraceKind::Mahimahi));
    assert_eq!(guess_kind("time_s,rate_mbps\n0,1\n"), Some(TraceKind::Csv));
    assert_eq!(guess_kind("sudo tc qdisc add dev lo root netem delay 5ms\n"), Some(TraceKind::Tc));
    assert_eq!(guess_kind("time,throughput\n0,1\n"), Some(TraceKind::Csv));
    assert_eq!(guess_kind("0 48.2\n1 51.9\n"), None);
    assert_eq!(guess_kind(" {\"StaticBwConfig\": {}}\n"), Some(TraceKind::NetemTrace));
    assert_eq!(guess_kind("[\n{\"StaticBwConfig\": {}}]\n"), Some(TraceKind::NetemTrace));
    assert_eq!((guess_kind("[up]\nrate = \"1 Mbps\"\n"), is_toml("# x\n[[change]]\n")), (None, true));
    assert_eq!((guess_kind("up = { rate = \"1 Mbps\" }\n"), is_toml("up.rate = 1\n")), (None, true));
    assert!(no_kind("qdisc netem 8001: root refcnt 2 limit 1000\n").contains("tc qdisc show"));
}

/// Writes a file into a folder of the test, and reads it as a path.
fn path(name: &str, text: &str) -> Result<PathText, String> {
    let folder = std::env::temp_dir().join(format!("talkpath-path-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    let read = read_path(&file, name);
    std::fs::remove_dir_all(&folder).unwrap();
    read
}

#[test]
fn each_kind_of_text_is_a_path() {
    let own = path("a.toml", "[up]\n[down]\n").unwrap();
    assert_eq!((own.file.as_deref(), own.text.as_str()), (Some("a.toml"), "[up]\n[down]\n"));
    let table = path("a.csv", "time_s,rate_mbps\n0,5\n1,7\n").unwrap();
    assert!(table.text.contains("file = \"a.csv\"\nevery = \"2000 ms\""), "{}", table.text);
    let json = path(
        "a.json",
        r#"{"RepeatedBwPatternConfig":{"pattern":[{"StaticBwConfig":{"bw":"12Mbps","duration":"1s"}},
           {"StaticBwConfig":{"bw":"24Mbps","duration":"2s"}}],"count":0}}"#,
    )
    .unwrap();
    assert!(
        json.text.contains("rate = \"20000 kbps\"") && json.text.contains("every = \"3000 ms\""),
        "{}",
        json.text
    );
    assert_eq!(json.made[0].0, "a.json.csv");
    let deliveries = path("a.down", "1700000000000\n1700000000010\n").unwrap();
    assert_eq!(deliveries.made, [("a.down".to_owned(), "0\n10\n".to_owned())]);
    let notes = &deliveries.notes[0];
    assert!(notes.contains("since 1970") && notes.contains("at its mean rate (2.4 Mb/s)"), "{notes}");
    let tc = path("a.txt", "tc qdisc add dev eth0 root netem delay 5ms rate 2mbit\n").unwrap();
    assert!(tc.text.starts_with("# tc qdisc") && tc.notes.last().unwrap().contains("eth0 is up"), "{tc:?}");
    assert_eq!(path("a.bin", "0 1\n").unwrap_err().split(':').next(), Some("a.bin"));
}

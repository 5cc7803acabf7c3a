//! Run directories and files that somebody else made: what the commands read, write and send then.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Bench, SHORT, Seen, Served, read_json, wait_until};
use crate::quiet::undisturbed;

/// A bench with a whole run of a short call, and the run.
fn a_run() -> (Bench, String) {
    let bench = Bench::new();
    bench.file("call.toml", SHORT);
    bench.run(&["run", "call.toml", "--records", "all"]).succeeds();
    let run = bench.only_run().to_string_lossy().into_owned();
    (bench, run)
}

#[test]
fn a_record_file_that_the_library_would_read_for_ever_is_an_error_within_seconds_that_names_it() {
    let (bench, run) = a_run();
    let endless = include_bytes!("../../../../fuzz/corpus/record_files/series-endless-header");
    fs::write(Path::new(&run).join("series.parquet"), endless).unwrap();
    let begun = Instant::now();
    bench.run(&["report", &run]).fails(2, &["series.parquet", "a page header that cannot be"]);
    // Milliseconds; the bound is for a machine that does other things as well.
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    bench.run(&["export", &run, "--format", "csv"]).succeeds();
    bench.run(&["play", &run]).succeeds();
}

#[test]
fn no_command_writes_through_the_links_of_a_run_directory() {
    let (bench, run) = a_run();
    let victim = bench.file("victim", "mine");
    let link = |name: &str| {
        let path = Path::new(&run).join(name);
        let _ = fs::remove_file(&path);
        symlink(&victim, &path).unwrap();
    };
    link(".report.html.draft");
    link(".play.html.draft");
    let page = |name: &str| format!("{run}/{name}");
    for arguments in [
        vec!["report", run.as_str()],
        vec!["play", run.as_str()],
        vec!["report", run.as_str(), "-o", &page("report.html")],
        vec!["play", run.as_str(), "-o", &page("play.html")],
    ] {
        let written = format!("{}.html", arguments[0]);
        link(&written);
        bench.run(&arguments).succeeds();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine", "{arguments:?}");
        let is_file = fs::symlink_metadata(Path::new(&run).join(&written)).unwrap().is_file();
        assert!(is_file, "the link is replaced: {arguments:?}");
    }
    // One that the user names is followed.
    symlink(&victim, bench.path("link.csv")).unwrap();
    bench.run(&["export", &run, "--format", "csv", "-o", "link.csv"]).succeeds();
    assert!(fs::read_to_string(&victim).unwrap().starts_with("cell,repetition"));
    assert!(fs::symlink_metadata(bench.path("link.csv")).unwrap().is_symlink());
}

#[test]
fn what_a_foreign_summary_says_moves_no_cursor_and_is_no_formula() {
    let (bench, run) = a_run();
    let path = Path::new(&run).join("summary.json");
    let mut summary = read_json(&path);
    summary["talkpath"] = "\u{1b}[2J\u{9b}1A".into();
    summary["runs"][0]["flows"]["call"]["cc"] = "=HYPERLINK(\"http://x\",1)".into();
    summary["runs"][0]["flows"]["call"]["transport"] = "a\u{1b}[2Jb\u{202e}".into();
    fs::write(&path, summary.to_string()).unwrap();
    let steers = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
    let seen = bench.run(&["play", &run]);
    assert!(seen.err.contains("\\u{1b}[2J") && !seen.err.contains(steers), "{:?}", seen.err);
    let seen = bench.run(&["export", &run, "--table", "repetitions", "--format", "csv"]);
    seen.succeeds();
    assert!(seen.out.contains("\"'=HYPERLINK(\"\"http://x\"\",1)\""), "{}", seen.out);
    assert!(!seen.out.contains(steers), "{:?}", seen.out);
    summary["comparisons"] = serde_json::json!([{ "flow": "call", "answer": { "outcome": "\u{1b}[2J" } }]);
    fs::write(&path, summary.to_string()).unwrap();
    let seen = bench.run(&["report", &run]);
    seen.fails(2, &["summary.json", "not what talkpath writes there"]);
    assert!(!seen.err.contains(steers), "{:?}", seen.err);
}

#[test]
fn a_run_that_sends_a_file_is_resumed_to_no_host_but_one_that_the_user_names() {
    undisturbed(|| {
        let bench = Bench::new();
        let served = Served::start(&bench, &["--open"]);
        bench.file("secret.txt", "a secret");
        let file =
            "[flow.file]\ntransport = \"tcp\"\nworkload = { kind = \"file\", source = \"secret.txt\" }\n";
        bench.file("call.toml", format!("{}\n{file}", SHORT.replace("\"2 s\"", "\"30 s\"")));
        let child = bench.start(&["run", "call.toml", "--to", &served.address]);
        wait_until("a run directory", || !bench.runs().is_empty());
        thread::sleep(Duration::from_millis(500));
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        Seen::of_child(child);
        // Somebody has made the directory theirs: another host stands in it.
        let run = bench.only_run();
        let plan = run.join("parts/plan.json");
        let text = fs::read_to_string(&plan).unwrap();
        fs::write(&plan, text.replace(&served.address, "127.0.0.1:9")).unwrap();
        let run = run.to_string_lossy();
        let help = format!("run --resume {run} --to 127.0.0.1:9");
        let says = ["runs to 127.0.0.1:9", "secret.txt", help.as_str()];
        bench.run(&["run", "--resume", &run]).fails(2, &says);
        // The user's own host is not the directory's.
        bench.run(&["run", "--resume", &run, "--to", &served.address]).fails(2, &["not to"]);
        bench.run(&["run", "--resume", &run, "--to", "127.0.0.1:9"]).fails(4, &[]);
    });
}

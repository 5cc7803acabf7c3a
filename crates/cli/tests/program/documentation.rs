//! What the documentation shows is what the program takes.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use crate::campaign::KEY;
use crate::harness::{Bench, Seen, Served, entries};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_example_scenario_is_valid() {
    let bench = Bench::new();
    let examples: Vec<_> =
        entries(&root().join("scenarios")).into_iter().filter(|path| path.is_file()).collect();
    assert!(!examples.is_empty());
    for example in examples {
        bench.run(&["check", example.to_str().unwrap()]).succeeds();
    }
}

#[test]
fn every_example_campaign_is_valid() {
    let bench = Bench::new();
    let files = entries(&root().join("scenarios/campaigns")).into_iter().filter(|path| path.is_file());
    let mut checked = 0;
    bench.file("sites.key", KEY);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        // Its key is beside the file, and not in the repository.
        let file = if text.contains("sites.key") { bench.file("sites.toml", text) } else { file };
        bench.run(&["campaign", "check", file.to_str().unwrap()]).succeeds();
        checked += 1;
    }
    assert!(checked >= 3, "{checked} campaigns");
}

#[test]
fn every_scenario_in_the_documentation_is_valid() {
    let bench = Bench::new();
    let mut checked = 0;
    for page in ["README.md", "docs/reference/interface.md", "docs/reference/scenario.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        for block in text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
            // A whole scenario says how long it takes; the rest are fragments.
            if block.lines().any(|line| line.starts_with("duration")) {
                bench.file("example.toml", block);
                let seen = bench.run(&["check", "example.toml"]);
                assert_eq!(seen.code, Some(0), "{page}: {}", seen.err);
                checked += 1;
            }
        }
    }
    assert!(checked >= 2, "{checked} scenarios found");
}

/// The pages of the documentation: their names and texts.
fn pages() -> Vec<(String, String)> {
    let of = |folder: &str| entries(&root().join(folder));
    let studies = of("studies").into_iter().map(|study| study.join("README.md"));
    let folders =
        ["docs", "docs/guide", "docs/reference", "docs/models", "docs/notes", "docs/studies"].map(of);
    let folders = folders.into_iter().chain([vec![root().join("README.md")]]);
    let pages = folders.flatten().chain(studies).filter(|path| path.is_file());
    let pages = pages.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    pages.map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap())).collect()
}

/// The commands of a page that begin with `program`, in blocks and within lines, without what is said about
/// them.
fn commands(page: &str, program: &str) -> Vec<String> {
    let blocks = page.split("```").skip(1).step_by(2).flat_map(str::lines);
    let prose: String = page.split("```").step_by(2).collect();
    let inline: Vec<String> =
        prose.split('`').skip(1).step_by(2).map(|code| code.replace('\n', " ")).collect();
    let all =
        blocks.map(|line| line.trim_start().trim_start_matches("far host$").trim_start_matches("this host$"));
    let all = all.map(|line| line.trim().to_owned()).chain(inline);
    let said = |line: String| line.split(['#']).next().unwrap().split("  ").next().unwrap().trim().to_owned();
    // What leaves a choice open is no command yet.
    let is_whole =
        |line: &String| !line.contains(['[', '|', '<']) && line.starts_with(&format!("{program} "));
    all.map(said).filter(is_whole).collect()
}

/// `--help` keeps a command from being carried out, and what stands before it from being misspelt.
#[test]
fn every_command_in_the_documentation_is_one() {
    let bench = Bench::new();
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for (page, text) in pages() {
        for command in commands(&text, "talkpath") {
            if !seen.insert(command.clone()) {
                continue;
            }
            let arguments = command["talkpath ".len()..].replace("SHELL", "bash");
            // What follows `--` is another program's.
            let (ours, theirs) = arguments.split_once(" -- ").unwrap_or((&arguments, ""));
            let script = format!("exec '{}' {ours} --help -- {theirs}", env!("CARGO_BIN_EXE_talkpath"));
            let mut shell = Command::new("sh");
            let told = Seen::of(shell.args(["-c", &script]).current_dir(bench.path("")).output().unwrap());
            if told.code != Some(0) {
                wrong.push(format!("{page}: {command}: {}", told.err));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen.len() > 20, "{seen:?}");
}

/// What `--test`, `--bench` and `--example` name is there, and so is the package.
#[test]
fn every_cargo_command_in_the_documentation_names_what_there_is() {
    let crates: Vec<_> = entries(&root().join("crates"));
    let exists = |folder: &str, name: &str| {
        let is_in = |path: &PathBuf| {
            let at = path.join(folder).join(name);
            // A crate's one test program is tests/main.rs under a name of its own.
            let manifest = fs::read_to_string(path.join("Cargo.toml")).unwrap_or_default();
            let is_named = folder == "tests" && manifest.contains(&format!("[[test]]\nname = \"{name}\"\n"));
            at.with_extension("rs").is_file() || at.join("main.rs").is_file() || is_named
        };
        crates.iter().any(is_in)
    };
    let mut checked = 0;
    for (page, text) in pages() {
        for command in commands(&text, "cargo") {
            let words: Vec<&str> = command.split_whitespace().collect();
            for pair in words.windows(2) {
                let is_there = match pair[0] {
                    "--test" => exists("tests", pair[1]),
                    "--bench" => exists("benches", pair[1]),
                    "--example" => exists("examples", pair[1]),
                    "-p" => root().join("crates").join(pair[1].trim_start_matches("talkpath-")).is_dir(),
                    _ => continue,
                };
                assert!(is_there || pair[1] == "talkpath", "{page}: {command}: {}", pair[1]);
                checked += 1;
            }
        }
    }
    assert!(checked > 5, "{checked} names found");
}

/// A call that somebody captured, which the guides rate.
const CAPTURED_CALL: &[u8] = include_bytes!("../../../../fuzz/corpus/capture_file/pcap-sll");

/// Runs every line of the `sh` blocks of a guide in turn, in one folder. That folder has the project's
/// scenarios, a captured call, and each TOML block whose first line is `# NAME.toml` as a file. A test of its
/// own for each guide: they run beside each other.
fn try_guide(name: &str, expected: usize) {
    let bench = Bench::new();
    let page = fs::read_to_string(root().join("docs/guide").join(name)).unwrap();
    fs::create_dir_all(bench.path("bin")).unwrap();
    symlink(env!("CARGO_BIN_EXE_talkpath"), bench.path("bin/talkpath")).unwrap();
    symlink(root().join("scenarios").canonicalize().unwrap(), bench.path("scenarios")).unwrap();
    for block in page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
        if let Some(file) = block.lines().next().and_then(|line| line.strip_prefix("# ")) {
            bench.file(file, block);
        }
    }
    bench.file("call.pcapng", CAPTURED_CALL);
    let mut served = None;
    let mut tried = 0;
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    for line in blocks.flat_map(str::lines) {
        let line = line.trim_start_matches("far host$").trim_start_matches("this host$").trim();
        tried += 1;
        if line.starts_with("talkpath serve") {
            let arguments: Vec<&str> = line.split_whitespace().skip(2).collect();
            served = Some(Served::start(&bench, &arguments));
            continue;
        }
        let seen = Seen::of(shell(&bench, line, served.as_ref()).output().unwrap());
        if line.contains("--arena emu") && seen.code == Some(3) {
            eprintln!("SKIP: {line}: the emulated arena is not available here: {}", seen.err);
            continue;
        }
        assert_eq!(seen.code, Some(0), "{name}: {line}: {}", seen.err);
    }
    assert_eq!(tried, expected, "commands on {name}: say here how many there are, so that none is lost");
}

/// `line` as a shell runs it, with `talkpath` on its path, the server's address for HOST and a run directory
/// for `...`.
fn shell(bench: &Bench, line: &str, served: Option<&Served>) -> Command {
    let mut line = line.to_owned();
    if let Some(run) = bench.runs().last() {
        line = line.replace("talkpath-runs/…", &run.to_string_lossy());
    }
    if let Some(served) = served {
        line = line.replace("HOST", &served.address);
    }
    // A campaign takes days, and its hosts are somebody's: its file is checked.
    line = line.replace("campaign run", "campaign check");
    let is_of_records =
        [" status", " push", " report"].iter().any(|what| line.contains(&format!("campaign{what}")));
    if is_of_records || line.contains(" --hosts") {
        line += " --help";
    }
    // Real time is dear: two seconds of a run, and less of each transport in each round of a comparison. Some
    // flows begin after one second.
    if line.starts_with("talkpath run") && line.contains(" --to ") || line.contains("--arena emu") {
        line += " --set duration='2 s' --set drain='200 ms'";
    }
    if line.starts_with("talkpath compare") && line.contains(" --to ") {
        line += " --duration 1.5s";
    }
    let mut command = bench.prepared(Command::new("sh"), &["-c", &line]);
    let path = std::env::var("PATH").unwrap_or_default();
    command
        .env("PATH", format!("{}:{path}", bench.path("bin").display()))
        .env("TALKPATH_TRANSPORTS", "udp,tcp");
    command
}

#[test]
fn every_command_of_the_guide_to_measuring_a_line_works() {
    try_guide("measure-a-line.md", 11);
}

#[test]
fn every_command_of_the_guide_to_hearing_a_call_works() {
    try_guide("hear-a-call.md", 8);
}

#[test]
fn every_command_of_the_guide_to_campaigns_works() {
    try_guide("measure-your-sites.md", 7);
}

#[test]
fn every_command_of_the_guide_to_scenarios_works() {
    try_guide("write-a-scenario.md", 14);
}

#[test]
fn every_command_of_the_guide_to_sweeps_works() {
    try_guide("sweep-and-compare.md", 10);
}

#[test]
fn every_command_of_the_guide_to_sweeps_on_several_machines_works() {
    try_guide("sweep-on-several-machines.md", 4);
}

#[test]
fn every_command_of_the_guide_to_studies_works() {
    try_guide("run-a-study.md", 9);
}

#[test]
fn every_command_of_the_guide_to_using_the_data_works() {
    try_guide("use-the-data.md", 7);
}

#[test]
fn every_command_for_those_who_come_from_other_tools_works() {
    try_guide("coming-from.md", 14);
}

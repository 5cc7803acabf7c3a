//! What the documentation shows is what the program takes.

use std::fs;
use std::path::PathBuf;

use crate::harness::{Bench, entries};

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
fn every_scenario_in_the_documentation_is_valid() {
    let bench = Bench::new();
    let mut checked = 0;
    for page in ["README.md", "docs/interface.md", "docs/scenario.md"] {
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

#[test]
fn every_flag_and_command_is_on_the_interface_page() {
    let bench = Bench::new();
    let page = fs::read_to_string(root().join("docs/interface.md")).unwrap();
    for command in
        ["compare", "run", "check", "serve", "report", "export", "replay", "doctor", "completions", "man"]
    {
        assert!(page.contains(&format!("talkpath {command}")), "{command}");
        let help = bench.run(&[command, "--help"]);
        let words = help.succeeds().out.split([' ', '\n', ',', '[', '`', '.', ')', ';']);
        for flag in words.filter(|word| word.starts_with("--") && word.len() > 2) {
            let known = ["--help", "--version", "--verbose"].contains(&flag) || page.contains(flag);
            assert!(known, "{flag} of {command} is not on the page");
        }
    }
}

/// `TALKPATH_UPDATE=1 cargo test -p talkpath` writes the page anew where the figures moved on purpose.
#[test]
fn the_readme_shows_what_compare_prints() {
    let bench = Bench::new();
    let seen = bench.run(&["compare"]);
    let run = bench.only_run();
    let printed = seen
        .succeeds()
        .out
        .replace(env!("CARGO_BIN_EXE_talkpath"), "target/release/talkpath")
        .replace(&run.file_name().unwrap().to_string_lossy()[..STARTED.len()], STARTED);
    let path = root().join("README.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEFORE).unwrap();
    let (shown, after) = rest.split_once("\n```\n").unwrap();
    if shown != printed.trim_end() && std::env::var_os("TALKPATH_UPDATE").is_some() {
        fs::write(&path, format!("{before}{BEFORE}{}\n```\n{after}", printed.trim_end())).unwrap();
        return;
    }
    assert!(
        shown == printed.trim_end(),
        "set TALKPATH_UPDATE=1 to write the README anew; it prints:\n{printed}"
    );
}

/// What stands in the README before the output.
const BEFORE: &str = "## What they print\n\n```\n";
/// When the README's run was.
const STARTED: &str = "2026-11-21T19-05-07Z";

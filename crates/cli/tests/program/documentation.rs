//! What the documentation shows is what the program takes.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::harness::{Bench, Seen, entries};

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

/// The pages of the documentation: their names and texts.
fn pages() -> Vec<(String, String)> {
    let of = |folder: &str| entries(&root().join(folder));
    let studies = of("studies").into_iter().map(|study| study.join("README.md"));
    let folders = [of("docs"), of("docs/studies"), vec![root().join("README.md")]];
    let pages = folders.into_iter().flatten().chain(studies).filter(|path| path.is_file());
    let pages = pages.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    pages.map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap())).collect()
}

/// The commands of a page that begin with `program`, in blocks and within lines, without what is said about them.
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

/// `--help` at the end keeps a command from being carried out, and what stands before it from being misspelt.
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
            let script = format!("exec '{}' {arguments} --help", env!("CARGO_BIN_EXE_talkpath"));
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
            at.with_extension("rs").is_file() || at.join("main.rs").is_file()
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

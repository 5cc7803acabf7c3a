//! Writes into the pages what a command prints, or checks that they show it.
//!
//! A page marks such a place with two comments, and between them is the command's output:
//!
//! ```text
//! <!-- cargo xtask docs: talkpath compare -->
//! ...
//! <!-- end -->
//! ```
//!
//! The first word is what the output calls the program. `! talkpath ...` is a command that fails, and shows
//! its errors. Commands run in a folder for their page: it has the project's `scenarios`, and each TOML block
//! of the page whose first line is `# NAME.toml` as a file of that name. Only the simulator's output repeats,
//! so only that is written here. The version in CITATION.cff is written, too, and the figures of
//! studies' pages ([`crate::study_pages`]).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::debug_program;
use crate::tree::{Source, sources};

/// Writes all pages anew, or with `--check` names the places that differ.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<String, String> {
    let is_check = match arguments {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => return Err("usage: cargo xtask docs [--check]".to_owned()),
    };
    let program = debug_program(root)?;
    let tree = sources(root)?;
    let quoted = crate::study_pages::run(root, &program, &tree, is_check)?;
    let pages: Vec<Source> =
        tree.into_iter().filter(|source| source.has_extension("md") && source.text.contains(BEGIN)).collect();
    let mut shown = Vec::new();
    let mut findings = Vec::new();
    let mut written = 0;
    for page in &pages {
        let folder = prepare(root, page)?;
        let mut text = page.text.clone();
        for block in blocks(page)? {
            let printed = match block.command.as_str() {
                COUNTS => crate::citations::run(root, &["--counts".to_owned()])?,
                FIGURES => figures(root)?,
                command => output(&program, &folder, command)?,
            };
            let wanted = body(&block.command, &printed);
            shown.push(block.command.clone());
            if block.body == wanted {
                continue;
            }
            findings.push(difference(page, &block, &wanted));
            let (begin, end) = (marker(&block.command), END);
            text = text
                .replace(&format!("{begin}\n{}{end}\n", block.body), &format!("{begin}\n{wanted}{end}\n"));
        }
        if !is_check && text != page.text {
            fs::write(root.join(&page.path), text).map_err(|error| format!("{}: {error}", page.path))?;
            written += 1;
        }
    }
    match citation(root)? {
        Some(_) if is_check => findings.push("CITATION.cff: its version is not the workspace's".to_owned()),
        Some(text) => {
            fs::write(root.join(CITATION), text).map_err(|error| format!("{CITATION}: {error}"))?;
        }
        None => {}
    }
    let hidden = hidden_commands(&output(&program, root, "talkpath --help")?, &shown);
    if !hidden.is_empty() {
        return Err(format!("docs: no page has the marker {}", hidden.join(", nor ")));
    }
    if is_check && !findings.is_empty() {
        return Err(findings.join("\n"));
    }
    let count = shown.len();
    Ok(if is_check {
        format!("docs: {count} outputs on {} pages, as printed; {quoted}", pages.len())
    } else {
        format!("docs: {count} outputs on {} pages, {written} pages written; {quoted}", pages.len())
    })
}

/// How others cite the program: its version is the workspace's.
const CITATION: &str = "CITATION.cff";

/// CITATION.cff with the workspace's version; `None` if it has that already.
fn citation(root: &Path) -> Result<Option<String>, String> {
    let text = fs::read_to_string(root.join(CITATION)).map_err(|error| format!("{CITATION}: {error}"))?;
    let line = format!("version: {}", crate::dist::version(root)?);
    let is_version = |line: &&str| line.starts_with("version: ");
    let old = text.lines().find(is_version).ok_or_else(|| format!("{CITATION}: it has no version"))?;
    Ok((old != line).then(|| text.replacen(&format!("\n{old}\n"), &format!("\n{line}\n"), 1)))
}

/// Links of pages that lead nowhere, and pages named in any file that are not there, as `PATH:LINE: what`.
#[cfg(test)]
fn dead_links(root: &Path, tree: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in tree {
        let folder = root.join(&source.path).parent().map(Path::to_path_buf).unwrap_or_default();
        for (index, line) in source.text.lines().enumerate() {
            let links = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
            let links = links.filter(|_| source.has_extension("md"));
            for link in links.filter(|link| !link.contains("://") && !link.starts_with('#')) {
                let target = link.split('#').next().unwrap_or_default();
                if !folder.join(target).exists() {
                    found.push(format!("{}:{}: the link {link} leads nowhere", source.path, index + 1));
                }
            }
            for rest in line.split("docs/").skip(1) {
                let name = rest
                    .split(|c: char| !c.is_alphanumeric() && !"/-_.".contains(c))
                    .next()
                    .unwrap_or_default();
                let name = name.trim_end_matches('.');
                if name.ends_with(".md") && !root.join("docs").join(name).exists() {
                    found.push(format!("{}:{}: there is no docs/{name}", source.path, index + 1));
                }
            }
        }
    }
    found
}

/// The words of a page that somebody wrote: those outside of marked places.
#[cfg(test)]
fn words_by_hand(text: &str) -> usize {
    let mut words = 0;
    let mut rest = text;
    while let Some(marked) = [BEGIN, "<!-- study "].iter().filter_map(|marker| rest.find(marker)).min() {
        words += rest[..marked].split_whitespace().count();
        rest = rest[marked..].split_once(END).map_or("", |(_, after)| after);
    }
    words + rest.split_whitespace().count()
}

/// A place of a page that shows a command's output.
#[derive(Debug, PartialEq)]
struct Block {
    /// The marker's line, from 1.
    line: usize,
    command: String,
    /// The lines between the markers.
    body: String,
}

fn blocks(page: &Source) -> Result<Vec<Block>, String> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in page.text.lines().enumerate() {
        let number = index + 1;
        let command = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(" -->"));
        match (command, open.take()) {
            (Some(command), None) => {
                open = Some(Block { line: number, command: command.to_owned(), body: String::new() });
            }
            (None, Some(block)) if line == END => found.push(block),
            (None, Some(mut block)) => {
                block.body.push_str(line);
                block.body.push('\n');
                open = Some(block);
            }
            (Some(_), Some(block)) => open = Some(block),
            (None, None) => {}
        }
    }
    match open {
        Some(block) => Err(format!("{}:{}: no `{END}` ends `{}`", page.path, block.line, block.command)),
        None => Ok(found),
    }
}

fn marker(command: &str) -> String {
    format!("{BEGIN}{command} -->")
}

/// The text between the markers: the output as a block of code, or unchanged if it is Markdown.
fn body(command: &str, printed: &str) -> String {
    let printed = printed.trim_end();
    if MARKDOWN.contains(&command) { format!("\n{printed}\n\n") } else { format!("```\n{printed}\n```\n") }
}

/// The first difference in `block`, and what to do about it.
fn difference(page: &Source, block: &Block, wanted: &str) -> String {
    let (mut shown, mut printed) = (block.body.lines(), wanted.lines());
    let mut line = block.line;
    loop {
        line += 1;
        let (shown, printed) = (shown.next(), printed.next());
        if shown != printed || shown.is_none() {
            let quoted =
                |line: Option<&str>| line.map_or_else(|| "no line".to_owned(), |line| format!("`{line}`"));
            return format!(
                "{}:{line}: shows {} where `{}` prints {}; `cargo xtask docs` writes it",
                page.path,
                quoted(shown),
                block.command,
                quoted(printed)
            );
        }
    }
}

/// The commands in the list of `help` whose own help no page shows.
fn hidden_commands(help: &str, shown: &[String]) -> Vec<String> {
    let list = help.split_once("Commands:\n").map_or("", |(_, rest)| rest);
    let list = list.split("\n\n").next().unwrap_or_default();
    let names = list.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names = names.filter(|name| !name.is_empty() && *name != "help");
    let wanted = names.map(|name| format!("talkpath {name} -h"));
    wanted.filter(|command| !shown.contains(command)).collect()
}

/// An empty folder for the commands of `page`, with the scenarios and the files that the page shows.
fn prepare(root: &Path, page: &Source) -> Result<PathBuf, String> {
    let folder = root.join("target").join("docs").join(page.path.replace('/', "-"));
    let failed = |error: io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(failed)?;
    }
    copy_folder(&root.join("scenarios"), &folder.join("scenarios")).map_err(failed)?;
    for block in page.text.split("```toml\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        let name = block.lines().next().and_then(|line| line.strip_prefix("# "));
        if let Some(name) = name.filter(|name| name.ends_with(".toml") && !name.contains(['/', ' '])) {
            fs::write(folder.join(name), block).map_err(failed)?;
        }
    }
    Ok(folder)
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// The table of figures.
fn figures(root: &Path) -> Result<String, String> {
    let mut words = FIGURES.split(' ');
    let mut cargo = Command::new(words.next().unwrap_or_default());
    let output =
        cargo.args(words).current_dir(root).output().map_err(|error| format!("{FIGURES}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{FIGURES}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// What `command` prints in `folder`, without what differs from run to run: the program's path and the time.
fn output(program: &Path, folder: &Path, command: &str) -> Result<String, String> {
    let (fails, words) = match command.strip_prefix("! ") {
        Some(rest) => (true, rest),
        None => (false, command),
    };
    let mut words = words.split_whitespace();
    let name = words.next().unwrap_or_default();
    let mut process = Command::new(program);
    for (variable, _) in std::env::vars().filter(|(variable, _)| variable.starts_with("TALKPATH_")) {
        process.env_remove(variable);
    }
    process.env("NO_COLOR", "1").env("COLUMNS", COLUMNS).current_dir(folder).args(words);
    let output = process.output().map_err(|error| format!("{command}: {error}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.success() == fails {
        return Err(format!("{command}: {}\n{errors}", output.status));
    }
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    if fails {
        text.push_str(&errors);
    }
    let text: String = text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect();
    Ok(without_times(&text.replace(&*program.to_string_lossy(), name)))
}

/// `text` with [`STARTED`] for the time in the name of each run directory.
fn without_times(text: &str) -> String {
    let is_time = |text: &str| {
        text.len() == STARTED.len()
            && text.bytes().zip(STARTED.bytes()).all(|(found, shape)| {
                if shape.is_ascii_digit() { found.is_ascii_digit() } else { found == shape }
            })
    };
    let mut result = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let (taken, put) = match rest.get(..STARTED.len()) {
            Some(time) if is_time(time) => (STARTED.len(), STARTED),
            _ => (next.len_utf8(), &rest[..next.len_utf8()]),
        };
        result.push_str(put);
        rest = &rest[taken..];
    }
    result
}

const BEGIN: &str = "<!-- cargo xtask docs: ";
const END: &str = "<!-- end -->";
/// Our own command that a page may show.
const COUNTS: &str = "cargo xtask citations --counts";
/// Prints the table of figures; a test of `measure` holds the page against it, too.
const FIGURES: &str = "cargo run -p talkpath-measure --example figure_table markdown";
/// Commands that print Markdown.
const MARKDOWN: [&str; 4] = ["talkpath check --keys", "talkpath campaign check --keys", COUNTS, FIGURES];
/// How wide `--help` may be: as wide as a page's lines.
const COLUMNS: &str = "110";
/// The time that pages show in the names of run directories.
const STARTED: &str = "2026-11-21T19-05-07Z";

#[cfg(test)]
mod tests {
    use super::*;

    /// Chosen, so that somebody who looks for one thing finds one page.
    const MAX_WORDS: usize = 110_000;

    fn page(text: &str) -> Source {
        Source { path: "docs/README.md".to_owned(), text: text.to_owned(), is_test_module: false }
    }

    #[test]
    fn the_answer_on_the_first_screen_is_the_one_that_compare_prints() {
        let readme = fs::read_to_string(crate::tree::workspace_root().join("README.md")).unwrap();
        let quoted = readme.lines().find_map(|line| line.strip_prefix("> ")).unwrap();
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let printed = readme.split(BEGIN).nth(1).unwrap();
        assert!(quoted.contains("MOS") && words(printed).contains(&words(quoted)), "{quoted}");
    }

    #[test]
    fn every_link_leads_somewhere() {
        let root = crate::tree::workspace_root();
        let found = dead_links(&root, &sources(&root).unwrap());
        assert!(found.is_empty(), "{}", found.join("\n"));
    }

    /// A path within a crate, such as `queue/mod.rs`, is the end of a file's path, or leads through a folder.
    #[test]
    fn every_file_that_the_architecture_names_is_there() {
        let root = crate::tree::workspace_root();
        let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
        let tree = sources(&root).unwrap();
        let is_path = |code: &&str| code.ends_with(".rs") || (code.ends_with('/') && !code.contains(' '));
        let mut named = 0;
        for path in codes(&text).filter(is_path) {
            let inner = format!("/{path}");
            let is_there = |source: &Source| {
                let file = format!("/{}", source.path);
                file.ends_with(&inner) || (path.ends_with('/') && file.contains(&inner))
            };
            assert!(tree.iter().any(is_there), "ARCHITECTURE.md names {path}, which is not there");
            named += 1;
        }
        assert!(named > 60, "{named}");
    }

    /// Types, traits and constants, some with their crate or module in front: `talkpath_scenario::load`.
    #[test]
    fn every_item_that_the_architecture_names_is_defined() {
        let root = crate::tree::workspace_root();
        let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
        let tree = sources(&root).unwrap();
        let code: Vec<&Source> =
            tree.iter().filter(|source| source.has_extension("rs") || source.has_extension("py")).collect();
        let is_item = |code: &&str| {
            let is_word = code.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':');
            let is_ours = !code.starts_with("std::") && *code != "None";
            is_word && is_ours && (code.starts_with(char::is_uppercase) || code.contains("::"))
        };
        let mut named = 0;
        for item in codes(&text).filter(is_item) {
            let name = item.rsplit("::").next().unwrap();
            let is_defined = |source: &Source| {
                ["struct", "enum", "trait", "type", "const", "static", "fn", "class"].iter().any(|keyword| {
                    let defined = format!("{keyword} {name}");
                    source.text.match_indices(&defined).any(|(at, _)| {
                        let next = source.text[at + defined.len()..].chars().next();
                        next.is_none_or(|c| !c.is_alphanumeric() && c != '_')
                    })
                })
            };
            assert!(
                code.iter().any(|source| is_defined(source)),
                "ARCHITECTURE.md names {item}, and nothing defines {name}"
            );
            named += 1;
        }
        assert!(named > 40, "{named}");
    }

    /// What a page shows as code within its lines.
    fn codes(text: &str) -> impl Iterator<Item = &str> {
        text.split('`').skip(1).step_by(2)
    }

    #[test]
    fn the_pages_written_by_hand_keep_their_budget_of_words() {
        let tree = sources(&crate::tree::workspace_root()).unwrap();
        let pages: Vec<&Source> = tree.iter().filter(|source| source.has_extension("md")).collect();
        let words: usize = pages.iter().map(|page| words_by_hand(&page.text)).sum();
        assert!(pages.len() > 40, "{} pages", pages.len());
        assert!(
            words <= MAX_WORDS,
            "{words} words in Markdown, of {MAX_WORDS}: which page does a new one replace?"
        );
    }

    #[test]
    fn words_in_marked_places_are_not_written_by_hand() {
        let text = format!(
            "one two\n{BEGIN}talkpath man -->\nx y z\n{END}\nthree <!-- study x tables -->4 5{END} four\n"
        );
        assert_eq!(words_by_hand(&text), 4);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let root = crate::tree::workspace_root();
        // In pieces, so that this file passes its own check.
        let missing = concat!("do", "cs/no.md");
        let text =
            format!("[a](../README.md#x) [b](no.md) [c](https://example.org/x) {missing}, docs/README.md.\n");
        let found = dead_links(&root, &[page(&text)]);
        let wanted = format!("docs/README.md:1: there is no {missing}");
        assert_eq!(found, ["docs/README.md:1: the link no.md leads nowhere", &wanted]);
    }

    #[test]
    fn a_block_has_its_line_its_command_and_its_body() {
        let found =
            blocks(&page("a\n<!-- cargo xtask docs: talkpath man -->\n```\nx\n```\n<!-- end -->\nb\n"));
        let block = Block { line: 2, command: "talkpath man".to_owned(), body: "```\nx\n```\n".to_owned() };
        assert_eq!(found, Ok(vec![block]));
        assert!(blocks(&page("<!-- cargo xtask docs: talkpath man -->\nx\n")).is_err());
    }

    #[test]
    fn a_difference_names_page_line_and_command() {
        let page = page("<!-- cargo xtask docs: talkpath man -->\n```\nsame\nold\n```\n<!-- end -->\n");
        let block = blocks(&page).unwrap().remove(0);
        assert_eq!(
            difference(&page, &block, &body("talkpath man", "same\nnew\n")),
            "docs/README.md:4: shows `old` where `talkpath man` prints `new`; `cargo xtask docs` writes it"
        );
        assert_eq!(block.body, body("talkpath man", "same\nold\n"));
    }

    #[test]
    fn a_command_without_its_help_on_a_page_is_found() {
        let help = "Usage: talkpath\n\nCommands:\n  run   Run it\n        and more\n  man   Print\n  help  Help\n\nOptions:\n  -v\n";
        let shown = ["talkpath man -h".to_owned()];
        assert_eq!(hidden_commands(help, &shown), ["talkpath run -h"]);
    }

    #[test]
    fn the_time_of_a_run_is_always_the_same() {
        assert_eq!(
            without_times("é runs/2031-01-02T03-04-05Z-x/report.html 2031-01"),
            format!("é runs/{STARTED}-x/report.html 2031-01")
        );
    }
}

//! The pages of studies: their marked figures are written from the committed runs in `studies/NAME/results/`,
//! and where they say what came out, every figure is one that is written.
//!
//! A run in full is taken if it is committed, else the short one; beside it the one over real sockets,
//! `emu.json.gz`, and what was judged by a campaign, `campaign.json.gz`, if there are such. A study without a
//! committed run is left out.

use std::path::Path;
use std::process::Command;

use crate::tree::Source;

/// Writes the pages, or with `is_check` says which places differ.
pub(crate) fn run(root: &Path, program: &Path, tree: &[Source], is_check: bool) -> Result<String, String> {
    let pages = pages(root, tree);
    let found: Vec<String> = pages.iter().flat_map(|page| by_hand(page)).collect();
    if !found.is_empty() {
        return Err(found.join("\n"));
    }
    let mut command = Command::new(program);
    command.current_dir(root).env("NO_COLOR", "1").args(["study", "fill", "--quiet"]);
    if is_check {
        command.arg("--check");
    }
    let mut runs = 0;
    for path in studies(tree).into_iter().flat_map(|name| runs_of(root, name)) {
        command.args(["--from", &path]);
        runs += 1;
    }
    command.args(pages.iter().map(|page| &page.path));
    let output = command.output().map_err(|error| format!("study fill: {error}"))?;
    if output.status.success() {
        Ok(format!("{} pages of studies from {runs} runs", pages.len()))
    } else {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(format!("{}\n`cargo xtask docs` writes what differs", why.trim_end()))
    }
}

/// The pages of the studies that have a committed run.
fn pages<'a>(root: &Path, tree: &'a [Source]) -> Vec<&'a Source> {
    let with_run = studies(tree).into_iter().filter(|name| !runs_of(root, name).is_empty());
    let paths: Vec<String> = with_run.map(|name| format!("docs/studies/{name}.md")).collect();
    tree.iter().filter(|source| paths.contains(&source.path)).collect()
}

/// The committed runs of a study: in the simulator the whole one, else the short one, one over real sockets,
/// and one by a campaign.
fn runs_of(root: &Path, name: &str) -> Vec<String> {
    let path = |file: &str| {
        Some(format!("studies/{name}/results/{file}.json.gz")).filter(|it| root.join(it).is_file())
    };
    let simulated = path("full").or_else(|| path("quick"));
    simulated.into_iter().chain(path("emu")).chain(path("campaign")).collect()
}

/// The folders under `studies`.
fn studies<'a>(tree: &'a [Source]) -> Vec<&'a str> {
    let name = |source: &'a Source| source.path.strip_prefix("studies/")?.strip_suffix("/study.toml");
    tree.iter().filter_map(name).collect()
}

/// Figures that were written by hand where a page says what came out, as `PATH:LINE: what`. Exempt are marked
/// places, code, links, what was `(printed: ...)`, and names that have a number in them.
fn by_hand(page: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_result = false;
    let mut is_marked = false;
    for (index, line) in page.text.lines().enumerate() {
        if line.starts_with("**") || line.starts_with("## ") {
            let head = line.trim_start_matches(['*', '#', ' ']);
            is_result = RESULTS.iter().any(|word| head.starts_with(word));
        }
        let words = without_marked(line, &mut is_marked);
        let words = without(&without(&words, "`", "`"), "](", ")");
        let words = without(&words, "(printed: ", ")");
        let mut before = "";
        for word in words.split_whitespace() {
            let is_name = NAMED.contains(&before.trim_start_matches(['(', '*']));
            if is_result && is_figure(word) && !is_name {
                let place = format!("{}:{}", page.path, index + 1);
                let advice = "mark it, or give it as `code` or (printed: ...)";
                found.push(format!("{place}: `{word}` was written by hand; {advice}"));
            }
            before = word;
        }
    }
    found
}

/// What begins a part of a page that says what came out.
const RESULTS: [&str; 3] = ["What came out", "What was found", "Every path"];
/// Words after which a number is a name.
const NAMED: [&str; 6] = ["RFC", "CCID", "figure", "figures", "table", "tables"];

/// Whether a word is a number, and not a name with digits in it such as `F7` or `ns-2`.
fn is_figure(word: &str) -> bool {
    let word = word.trim_start_matches(['(', '-', '+', '≤', '≥', '*']);
    word.starts_with(|c: char| c.is_ascii_digit()) && !word.contains("BSD") && !word.ends_with("th")
}

/// `line` without its marked places; such a place may go on over lines.
fn without_marked(line: &str, is_marked: &mut bool) -> String {
    let mut kept = String::new();
    let mut rest = line;
    loop {
        if *is_marked {
            let Some((_, after)) = rest.split_once("<!-- end -->") else { return kept };
            (*is_marked, rest) = (false, after);
        }
        let Some((before, after)) = rest.split_once("<!-- study ") else {
            kept.push_str(rest);
            return kept;
        };
        kept.push_str(before);
        kept.push(' ');
        (*is_marked, rest) = (true, after);
    }
}

/// `text` without what is between `begin` and the next `end`.
fn without(text: &str, begin: &str, end: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(begin) {
        kept.push_str(before);
        rest = after.split_once(end).map_or("", |(_, rest)| rest);
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Source {
        Source { path: "docs/README.md".to_owned(), text: text.to_owned(), is_test_module: false }
    }

    #[test]
    fn a_figure_by_hand_is_found_where_a_page_says_what_came_out() {
        let text = "**The set-up.** 12 hosts.\n\n**What came out.** It lost 7.5 % (printed: 8), see F7, RFC 5348 and\n\
                    <!-- study x claim F7: loss -->7.4 %<!-- end --> at `3 ms`.\n<!-- study x tables -->\n| 9 |\n<!-- end -->\n\
                    - 4.3BSD, ns-2: 1.9 s.\n\n**What to try next**\n\n    run 9\n";
        let found = by_hand(&page(text));
        let named: Vec<_> = found.iter().filter_map(|it| it.split(" was").next()).collect();
        assert_eq!(named, ["docs/README.md:3: `7.5`", "docs/README.md:8: `1.9`"]);
    }

    #[test]
    fn the_run_over_real_sockets_stands_behind_the_whole_one_in_the_simulator() {
        let root = crate::tree::workspace_root();
        let wanted = ["full", "emu"].map(|file| format!("studies/foderaro-1995/results/{file}.json.gz"));
        assert_eq!(runs_of(&root, "foderaro-1995"), wanted);
        assert!(runs_of(&root, "conformance").is_empty());
    }

    #[test]
    fn every_study_has_one_page_and_its_readme_points_there() {
        let root = crate::tree::workspace_root();
        let tree = crate::tree::sources(&root).unwrap();
        for name in studies(&tree).into_iter().filter(|name| *name != "conformance") {
            let readme = std::fs::read_to_string(root.join(format!("studies/{name}/README.md"))).unwrap();
            assert!(readme.contains(&format!("](../../docs/studies/{name}.md)")), "{name}");
            assert!(readme.lines().count() <= 30 && !readme.contains("<!-- study "), "{name}: a second page");
            assert!(root.join(format!("docs/studies/{name}.md")).is_file(), "{name}");
        }
    }

    #[test]
    fn no_page_of_a_study_has_a_figure_by_hand() {
        let root = crate::tree::workspace_root();
        let tree = crate::tree::sources(&root).unwrap();
        let pages = pages(&root, &tree);
        assert!(pages.len() >= 6, "{}", pages.len());
        let found: Vec<String> = pages.iter().flat_map(|page| by_hand(page)).collect();
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}

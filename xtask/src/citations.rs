//! Prints rule, code and test: the RFCs' rules for TCP by the rows of docs/models/rules (see `rules`), and
//! for every document the sections that code and tests name by a tag such as `RFC 5681 §3.1 eq. 3`.
//!
//! A tag is `RFC`, a space, the number, and then ` §` with a section (`3.1`, `A.8`), all on one line.
//! `RFC 768` alone names a document and is not a rule. Anything that looks like a tag and is not one fails,
//! since nobody would find it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::rules;
use crate::tree::{Source, sources};

/// Prints the rules, the tags and the counts, or with `--counts` the counts alone. The error lists every row
/// that is incomplete or names what is not there, and every malformed tag.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<String, String> {
    let tree = sources(root)?;
    match arguments {
        [flag] if flag == "--counts" => return Ok(rules::counts(&rules::read(&tree)?)),
        [] => {}
        _ => return Err("usage: cargo xtask citations [--counts]".to_owned()),
    }
    let documents = rules::read(&tree)?;
    let (rules, malformed) = collect(&tree);
    if !malformed.is_empty() {
        return Err(format!("{}\ncitations: {} malformed tags", malformed.join("\n"), malformed.len()));
    }
    Ok(format!("{}\n{}\n{}", rules::table(&documents), table(&rules), rules::counts(&documents)))
}

/// A section of an RFC, sorted by number, then by section as it is written.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rule {
    rfc: u32,
    section: String,
}

#[derive(Debug, Default)]
struct Places {
    code: Vec<String>,
    tests: Vec<String>,
}

fn collect(tree: &[Source]) -> (BTreeMap<Rule, Places>, Vec<String>) {
    let mut rules: BTreeMap<Rule, Places> = BTreeMap::new();
    let mut malformed = Vec::new();
    let cites = |source: &&Source| {
        source.has_extension("rs") || (source.has_extension("txt") && source.is_test_file())
    };
    for source in tree.iter().filter(cites).filter(|source| !source.path.starts_with("xtask/")) {
        let first_test_line = source.first_test_line();
        for (index, line) in source.text.lines().enumerate() {
            let place = format!("{}:{}", source.path, index + 1);
            for tag in tags(line) {
                match tag {
                    Tag::Rule(rule) => {
                        let places = rules.entry(rule).or_default();
                        if index + 1 < first_test_line { &mut places.code } else { &mut places.tests }
                            .push(place.clone());
                    }
                    Tag::Document => {}
                    Tag::Malformed(why) => malformed.push(format!("{place}: {why}: {}", line.trim())),
                }
            }
        }
    }
    (rules, malformed)
}

#[derive(Debug, PartialEq, Eq)]
enum Tag {
    Rule(Rule),
    Document,
    Malformed(&'static str),
}

/// Every tag of a line. `RFC 5681 §3.1, §4.2` carries two rules.
fn tags(line: &str) -> Vec<Tag> {
    let mut found = Vec::new();
    for (start, _) in line.match_indices("RFC") {
        let before = line[..start].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &line[start + 3..];
        if rest.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '_') {
            found.push(Tag::Malformed("write `RFC nnnn`"));
        } else if let Some(rest) = rest.strip_prefix(' ')
            && rest.starts_with(|c: char| c.is_ascii_digit())
        {
            found.extend(tags_of_document(rest));
        }
    }
    found
}

/// `rest` begins with the document's number.
fn tags_of_document(rest: &str) -> Vec<Tag> {
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let Ok(rfc) = rest[..digits].parse() else { return vec![Tag::Malformed("no such RFC")] };
    let mut rest = &rest[digits..];
    let looks_like_section = |text: &str| {
        let mut characters = text.chars();
        let first = characters.next().is_some_and(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
        first && characters.next() == Some('.') && characters.next().is_some_and(|c| c.is_ascii_digit())
    };
    if rest.strip_prefix(' ').is_some_and(|next| looks_like_section(next) || next.starts_with("section ")) {
        return vec![Tag::Malformed("write the section as `§3.1`")];
    }
    if rest.starts_with('§') {
        return vec![Tag::Malformed("a space goes before `§`")];
    }
    let mut found = Vec::new();
    while let Some(after) = SEPARATORS.iter().find_map(|separator| rest.strip_prefix(separator)) {
        let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(after.len());
        let section = after[..end].trim_end_matches('.');
        if section.is_empty() {
            return vec![Tag::Malformed("`§` without a section")];
        }
        found.push(Tag::Rule(Rule { rfc, section: section.to_owned() }));
        rest = &after[end..];
    }
    if found.is_empty() { vec![Tag::Document] } else { found }
}

fn table(rules: &BTreeMap<Rule, Places>) -> String {
    let mut text = String::new();
    for (rule, places) in rules {
        let _ = writeln!(text, "RFC {} §{}", rule.rfc, rule.section);
        let _ = writeln!(text, "    code {}", list(&places.code));
        let _ = writeln!(text, "    test {}", list(&places.tests));
    }
    let tested = rules.values().filter(|places| !places.tests.is_empty()).count();
    let _ = writeln!(text, "citations: {} sections named, {tested} of them by a test", rules.len());
    text
}

fn list(places: &[String]) -> String {
    if places.is_empty() { "-".to_owned() } else { places.join(", ") }
}

const SEPARATORS: [&str; 3] = [" §", ", §", " and §"];

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(rfc: u32, section: &str) -> Tag {
        Tag::Rule(Rule { rfc, section: section.to_owned() })
    }

    #[test]
    fn a_tag_names_its_document_and_section() {
        assert_eq!(tags("// RFC 5681 §3.1 eq. 3: at most one SMSS"), [rule(5681, "3.1")]);
        assert_eq!(tags("// (RFC 3550 §A.8)."), [rule(3550, "A.8")]);
        assert_eq!(tags("RFC 9293 §3.8.6.3, RFC 5681 §4.2"), [rule(9293, "3.8.6.3"), rule(5681, "4.2")]);
        assert_eq!(
            tags("RFC 6298 §2, §5.4 and §5.5"),
            [rule(6298, "2"), rule(6298, "5.4"), rule(6298, "5.5")]
        );
        assert_eq!(tags("RFC 768 has no sections"), [Tag::Document]);
    }

    #[test]
    fn what_looks_like_a_tag_and_is_none_is_malformed() {
        let malformed =
            ["RFC5681", "RFC-5681 §3", "RFC 3550 A.8", "RFC 5681 3.1", "RFC 5681 § 3", "RFC 5681§3"];
        for line in malformed {
            assert!(matches!(tags(line)[..], [Tag::Malformed(_)]), "{line}: {:?}", tags(line));
        }
    }

    #[test]
    fn every_row_is_whole_and_every_tag_well_formed() {
        if let Err(report) = run(&crate::tree::workspace_root(), &[]) {
            panic!("{report}");
        }
    }

    #[test]
    fn code_and_its_tests_are_told_apart() {
        let text = "//! RFC 896 §1\n#[cfg(test)]\nmod tests {\n    // RFC 896 §1\n}\n".to_owned();
        let tree = [Source { path: "crates/transport/src/nagle.rs".to_owned(), text, is_test_module: false }];
        let (rules, malformed) = collect(&tree);
        assert!(malformed.is_empty());
        let places = &rules[&Rule { rfc: 896, section: "1".to_owned() }];
        assert_eq!(places.code, ["crates/transport/src/nagle.rs:1"]);
        assert_eq!(places.tests, ["crates/transport/src/nagle.rs:4"]);
    }
}

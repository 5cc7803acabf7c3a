//! The RFCs' rules for TCP, one row each: the code that follows the rule and the test that shows it, or why
//! it is left out.
//!
//! docs/models/rules holds a file for each RFC, in a small part of TOML: `key = "text"` or `key = 2`, and a
//! `[[rule]]` above each row. docs/models/rules.md says what the keys mean. This file checks that each row is
//! complete, that what it names exists, and that the rows are as many as the RFC's text demands.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::tree::Source;

/// The rows of one RFC.
#[derive(Debug)]
pub(crate) struct Document {
    path: String,
    rfc: u32,
    title: String,
    /// How often the text has one of the words MUST, SHOULD, REQUIRED, RECOMMENDED or SHALL. `None` if the
    /// text labels its rules.
    keywords: Option<usize>,
    /// The text's own labels, such as `MUST-1` to `MUST-69`.
    labels: Vec<String>,
    rules: Vec<Rule>,
}

/// One row.
#[derive(Debug)]
struct Rule {
    line: usize,
    id: String,
    section: String,
    level: String,
    /// How many of the text's key words it covers.
    times: usize,
    /// The labels that it covers, if they are several.
    covers: Vec<String>,
    rule: String,
    fate: Fate,
}

/// What became of a rule.
#[derive(Debug)]
enum Fate {
    /// `except` names the part of it, if any, that is not followed.
    Followed {
        code: Vec<String>,
        tests: Vec<String>,
        except: Option<String>,
    },
    LeftOut(String),
}

/// Reads and checks all rows. The error lists everything that is wrong, as `PATH:LINE: what`.
pub(crate) fn read(tree: &[Source]) -> Result<Vec<Document>, String> {
    let mut findings = Vec::new();
    let mut documents = Vec::new();
    let facts = Facts::new(tree);
    for source in tree.iter().filter(|source| source.path.starts_with(FOLDER) && source.has_extension("toml"))
    {
        let document = parse(source, &mut findings);
        check(&document, &facts, &mut findings);
        documents.push(document);
    }
    for rfc in DOCUMENTS {
        if !documents.iter().any(|document| document.rfc == rfc) {
            findings.push(format!("{FOLDER}rfc{rfc}.toml: RFC {rfc} has no rows"));
        }
    }
    documents.sort_by_key(|document| document.rfc);
    if findings.is_empty() { Ok(documents) } else { Err(findings.join("\n")) }
}

/// Rule, code and test.
pub(crate) fn table(documents: &[Document]) -> String {
    let mut text = String::new();
    for document in documents {
        for rule in &document.rules {
            let own =
                if rule.id.starts_with(&rule.section) { String::new() } else { format!(" {}", rule.id) };
            let _ =
                writeln!(text, "RFC {} §{}{own} {}: {}", document.rfc, rule.section, rule.level, rule.rule);
            match &rule.fate {
                Fate::Followed { code, tests, except } => {
                    let _ = writeln!(text, "    code {}", code.join(", "));
                    let _ = writeln!(text, "    test {}", tests.join(", "));
                    if let Some(except) = except {
                        let _ = writeln!(text, "    except {except}");
                    }
                }
                Fate::LeftOut(why) => {
                    let _ = writeln!(text, "    left out: {why}");
                }
            }
        }
    }
    text
}

/// How many rows each RFC has, and what became of them, as a table in Markdown.
pub(crate) fn counts(documents: &[Document]) -> String {
    let mut text = "| RFC | title | rows | followed and tested | of these in part | left out |\n".to_owned();
    text.push_str("| --- | --- | --: | --: | --: | --: |\n");
    let mut total = [0; 4];
    for document in documents {
        let followed = document.rules.iter().filter(|rule| rule.is_followed()).count();
        let partly = document.rules.iter().filter(|rule| rule.is_followed_in_part()).count();
        let rows = document.rules.len();
        let counts = [rows, followed, partly, rows - followed];
        for (sum, count) in total.iter_mut().zip(counts) {
            *sum += count;
        }
        let link = document.path.rsplit('/').next().unwrap_or_default();
        let [rows, followed, partly, left] = counts;
        let _ = writeln!(
            text,
            "| [{}](rules/{link}) | {} | {rows} | {followed} | {partly} | {left} |",
            document.rfc, document.title
        );
    }
    let [rows, followed, partly, left] = total;
    let _ = write!(text, "| all | | {rows} | {followed} | {partly} | {left} |");
    text
}

impl Rule {
    const fn is_followed(&self) -> bool {
        matches!(self.fate, Fate::Followed { .. })
    }

    const fn is_followed_in_part(&self) -> bool {
        matches!(self.fate, Fate::Followed { except: Some(_), .. })
    }
}

/// One `[[rule]]`, or the head of the file: keys with their values and lines.
type Entries = BTreeMap<String, (String, usize)>;

/// Takes `key` out of `entries`. Empty if it is not there, or blank.
fn take(entries: &mut Entries, key: &str) -> String {
    entries.remove(key).map(|(value, _)| value.trim().to_owned()).unwrap_or_default()
}

fn parse(source: &Source, findings: &mut Vec<String>) -> Document {
    let mut head = Entries::new();
    let mut rows: Vec<(usize, Entries)> = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let number = index + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line == "[[rule]]" {
            rows.push((number, Entries::new()));
            continue;
        }
        let Some((key, value)) = entry(line) else {
            findings
                .push(format!("{}:{number}: neither `[[rule]]` nor `key = \"text\"`: {line}", source.path));
            continue;
        };
        let entries = rows.last_mut().map_or(&mut head, |(_, entries)| entries);
        if entries.insert(key.to_owned(), (value.to_owned(), number)).is_some() {
            findings.push(format!("{}:{number}: {key} is there twice", source.path));
        }
    }
    let mut number = |key: &str, default: &str| {
        let value = take(&mut head, key);
        let value = if value.is_empty() { default.to_owned() } else { value };
        value.parse().ok()
    };
    let (rfc, keywords) = (number("rfc", "").unwrap_or_default(), number("keywords", ""));
    let labels = take(&mut head, "labels");
    let document = Document {
        path: source.path.clone(),
        rfc: rfc as u32,
        title: take(&mut head, "title"),
        keywords,
        labels: list(&labels).iter().flat_map(|range| expand(range)).collect(),
        rules: rows.into_iter().map(|(line, entries)| row(source, line, entries, findings)).collect(),
    };
    unknown(source, &head, findings);
    document
}

/// `key = "text"` or `key = 2`.
fn entry(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(" = ")?;
    let text = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let is_key = key.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let is_number = value.chars().all(|c| c.is_ascii_digit());
    match text {
        Some(text) if is_key && !text.contains(['"', '\\']) => Some((key, text)),
        None if is_key && is_number => Some((key, value)),
        _ => None,
    }
}

fn row(source: &Source, line: usize, mut entries: Entries, findings: &mut Vec<String>) -> Rule {
    let id = take(&mut entries, "id");
    let section = match take(&mut entries, "section") {
        section if section.is_empty() => id.rsplit_once('-').map_or("", |(section, _)| section).to_owned(),
        section => section,
    };
    let (level, times) = (take(&mut entries, "level"), take(&mut entries, "times"));
    let default = if level == STEP { 0 } else { 1 };
    let (code, tests) = (list(&take(&mut entries, "code")), list(&take(&mut entries, "test")));
    let (left_out, except) = (take(&mut entries, "left_out"), take(&mut entries, "except"));
    let mut wrong = |what: &str| findings.push(format!("{}:{line}: {what}", source.path));
    let fate = if left_out.is_empty() {
        if code.is_empty() || tests.is_empty() {
            wrong("wants `code` and `test`, or `left_out`");
        }
        Fate::Followed { code, tests, except: Some(except).filter(|except| !except.is_empty()) }
    } else {
        if !code.is_empty() || !tests.is_empty() || !except.is_empty() {
            wrong("has `left_out` and also `code`, `test` or `except`");
        }
        Fate::LeftOut(left_out)
    };
    let rule = Rule {
        line,
        id,
        section,
        times: times.parse().unwrap_or(default),
        covers: list(&take(&mut entries, "covers")),
        rule: take(&mut entries, "rule"),
        level,
        fate,
    };
    if rule.id.is_empty() || rule.section.is_empty() || rule.rule.is_empty() {
        wrong("wants `id`, a section (`section`, or the id up to its last `-`) and `rule`");
    }
    if list(&rule.level).is_empty() || !list(&rule.level).iter().all(|level| LEVELS.contains(&level.as_str()))
    {
        wrong(&format!("`level` is {:?}; wanted is one or more of {}", rule.level, LEVELS.join(", ")));
    }
    unknown(source, &entries, findings);
    rule
}

/// What is left of `entries` is no key.
fn unknown(source: &Source, entries: &Entries, findings: &mut Vec<String>) {
    for (key, (_, line)) in entries {
        findings.push(format!("{}:{line}: there is no key `{key}` here", source.path));
    }
}

/// The words between commas.
fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// `MUST-1..3` is `MUST-1`, `MUST-2` and `MUST-3`.
fn expand(range: &str) -> Vec<String> {
    let parts = || {
        let (word, numbers) = range.rsplit_once('-')?;
        let (first, last) = numbers.split_once("..")?;
        Some((word, first.parse::<u32>().ok()?, last.parse::<u32>().ok()?))
    };
    match parts() {
        Some((word, first, last)) => (first..=last).map(|number| format!("{word}-{number}")).collect(),
        None => vec![range.to_owned()],
    }
}

fn check(document: &Document, facts: &Facts<'_>, findings: &mut Vec<String>) {
    let path = &document.path;
    let mut seen = BTreeSet::new();
    let mut labels = BTreeMap::<&str, usize>::new();
    for rule in &document.rules {
        let mut wrong = |what: String| findings.push(format!("{path}:{}: {what}", rule.line));
        if !seen.insert(&rule.id) {
            wrong(format!("{} is there twice", rule.id));
        }
        for label in std::iter::once(&rule.id).chain(&rule.covers) {
            *labels.entry(label).or_default() += 1;
        }
        if let Fate::Followed { code, tests, .. } = &rule.fate {
            for place in code.iter().filter(|place| !facts.has_item(place)) {
                wrong(format!("{place}: there is no such item; wanted is `path/of/file.rs::item`"));
            }
            for test in tests.iter().filter(|test| !facts.has_test(test)) {
                wrong(format!("{test}: there is no such test; wanted is `crate::name_of_the_test`"));
            }
        }
    }
    for label in &document.labels {
        let count = labels.get(label.as_str()).copied().unwrap_or_default();
        if count != 1 {
            findings.push(format!("{path}:1: {label} is in {count} rows; wanted is one"));
        }
    }
    let times: usize = document.rules.iter().map(|rule| rule.times).sum();
    match document.keywords {
        Some(keywords) if keywords != times => findings.push(format!(
            "{path}:1: the rows stand for {times} of the text's key words; `keywords` says {keywords}"
        )),
        None if document.labels.is_empty() => {
            findings.push(format!("{path}:1: wants `keywords` or `labels`"));
        }
        _ => {}
    }
    if document.rfc == 0 || document.title.is_empty() {
        findings.push(format!("{path}:1: wants `rfc` and `title`"));
    }
}

/// What the rows may name.
struct Facts<'a> {
    files: BTreeMap<&'a str, &'a Source>,
    /// Crate and name of each test.
    tests: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> Facts<'a> {
    fn new(tree: &'a [Source]) -> Self {
        let files = tree.iter().map(|source| (source.path.as_str(), source)).collect();
        let mut tests = BTreeSet::new();
        for source in tree {
            let Some(name) = source.crate_name() else { continue };
            if source.has_extension("rs") {
                tests.extend(tests_of(&source.text).map(|test| (name, test)));
            }
            // An exchange script is the test of its name (`exchanges!` in its crate's tests).
            if let Some((folder, file)) = source.path.rsplit_once('/')
                && folder.ends_with("/tests/exchange")
                && let Some(test) = file.strip_suffix(".txt")
            {
                tests.insert((name, test));
            }
        }
        Self { files, tests }
    }

    /// `path/of/file.rs::item`: the file defines the item outside of its tests.
    fn has_item(&self, place: &str) -> bool {
        let Some((path, item)) = place.rsplit_once("::") else { return false };
        self.files.get(path).is_some_and(|source| {
            let lines = source.text.lines().take(source.first_test_line().saturating_sub(1));
            lines.map(str::trim).any(|line| defines(line, item))
        })
    }

    /// `crate::name`.
    fn has_test(&self, test: &str) -> bool {
        test.split_once("::").is_some_and(|test| self.tests.contains(&test))
    }
}

/// The functions of `text` that follow a `#[test]`.
fn tests_of(text: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    text.lines().map(str::trim).filter_map(move |line| {
        if line == "#[test]" {
            is_test = true;
            return None;
        }
        let name = line.strip_prefix("fn ")?;
        let end = name.find(|c: char| !is_word(c)).unwrap_or(name.len());
        std::mem::take(&mut is_test).then_some(&name[..end])
    })
}

/// True if `line` defines `item`: a function, a type, a constant, or a variant without fields of its own.
fn defines(line: &str, item: &str) -> bool {
    let is_definition = KINDS.iter().any(|kind| {
        line.match_indices(kind).any(|(at, _)| {
            let begins = at == 0 || line[..at].ends_with(' ');
            let rest = &line[at + kind.len()..];
            begins
                && rest
                    .strip_prefix(item)
                    .is_some_and(|rest| !rest.starts_with(is_word) && !line.starts_with("//"))
        })
    });
    let is_variant = item.starts_with(|c: char| c.is_ascii_uppercase())
        && line.strip_prefix(item).is_some_and(|rest| rest == "," || rest.starts_with(" {"));
    is_definition || is_variant
}

const fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

const FOLDER: &str = "docs/models/rules/";
const DOCUMENTS: [u32; 13] = [2018, 3042, 3168, 5681, 6298, 6582, 6675, 7323, 8985, 9293, 9406, 9438, 9937];
const STEP: &str = "step";
/// RFC 2119, and the steps of an algorithm whose text avoids the key words.
const LEVELS: [&str; 9] = [
    "MUST",
    "MUST NOT",
    "SHOULD",
    "SHOULD NOT",
    "REQUIRED",
    "NOT REQUIRED",
    "RECOMMENDED",
    "NOT RECOMMENDED",
    STEP,
];
const KINDS: [&str; 8] = ["fn ", "struct ", "enum ", "const ", "static ", "trait ", "type ", "mod "];

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned(), is_test_module: false }
    }

    /// What is wrong with `rows` of an RFC with `head`, beside the RFCs that are not there.
    fn findings(head: &str, rows: &str) -> Vec<String> {
        let code = "impl Rto {\n    const fn back_off(&mut self) {}\n}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn it_doubles() {}\n    fn helper() {}\n}\n";
        let text = format!("rfc = 6298\ntitle = \"RTO\"\n{head}\n{rows}");
        let tree =
            [source("crates/transport/src/rtt.rs", code), source("docs/models/rules/rfc6298.toml", &text)];
        let found = read(&tree).expect_err("most RFCs have no rows");
        found.lines().filter(|line| !line.ends_with("has no rows")).map(str::to_owned).collect()
    }

    const GOOD: &str = "[[rule]]\nid = \"5-1\"\nlevel = \"MUST\"\nrule = \"the RTO doubles\"\n\
                        code = \"crates/transport/src/rtt.rs::back_off\"\ntest = \"transport::it_doubles\"\n";

    #[test]
    fn a_whole_row_passes() {
        assert_eq!(findings("keywords = 1", GOOD), [""; 0]);
    }

    #[test]
    fn no_row_is_blank() {
        for (from, to, wanted) in [
            ("test = \"transport::it_doubles\"", "test = \" \"", "wants `code` and `test`"),
            ("code = \"crates/transport/src/rtt.rs::back_off\"", "", "wants `code` and `test`"),
            ("rule = \"the RTO doubles\"", "", "wants `id`, a section"),
            ("level = \"MUST\"", "level = \"OUGHT\"", "`level` is \"OUGHT\""),
            ("level = \"MUST\"", "level = \"MUST\"\nwhy = \"x\"", "no key `why`"),
            ("level = \"MUST\"", "level = MUST", "neither `[[rule]]` nor"),
            ("level = \"MUST\"", "level = \"MUST\"\nleft_out = \"no need\"", "has `left_out` and also"),
        ] {
            let found = findings("keywords = 1", &GOOD.replace(from, to));
            assert!(found.iter().any(|line| line.contains(wanted)), "{wanted}: {found:?}");
        }
    }

    #[test]
    fn what_a_row_names_exists() {
        for (from, to) in [
            ("rtt.rs::back_off", "rtt.rs::back"),
            ("rtt.rs::back_off", "rto.rs::back_off"),
            ("rtt.rs::back_off", "rtt.rs::it_doubles"),
            ("transport::it_doubles", "transport::helper"),
            ("transport::it_doubles", "path::it_doubles"),
        ] {
            let found = findings("keywords = 1", &GOOD.replace(from, to));
            assert!(found.len() == 1 && found[0].contains("there is no such"), "{to}: {found:?}");
        }
    }

    #[test]
    fn the_rows_are_as_many_as_the_text_demands() {
        assert!(findings("keywords = 2", GOOD)[0].contains("stand for 1"));
        assert_eq!(findings("keywords = 2", &GOOD.replace("level", "times = 2\nlevel")), [""; 0]);
        assert_eq!(findings("keywords = 0", &GOOD.replace("MUST", "step")), [""; 0]);
        assert!(
            findings("labels = \"MUST-1..2\"", &GOOD.replace("5-1", "MUST-1"))[0].contains("wanted is one")
        );
        let twice = format!("{GOOD}{GOOD}");
        assert!(findings("keywords = 2", &twice)[0].contains("5-1 is there twice"));
    }

    #[test]
    fn an_exchange_script_is_a_test() {
        let tree = [source("crates/transport/tests/exchange/it_ends.txt", "stack rfc")];
        assert!(Facts::new(&tree).has_test("transport::it_ends"));
    }
}

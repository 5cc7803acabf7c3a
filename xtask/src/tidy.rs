//! What neither the compiler nor clippy holds: borders between crates, words, file lengths, module docs,
//! circles of files, unsafe code.
//!
//! The borders are those of ARCHITECTURE.md's picture; this file turns the picture into a check.

use std::fmt::Write as _;
use std::path::Path;

use crate::circles::circles;
use crate::rust::{product_tokens, unsafe_lines};
use crate::tree::{Source, sources};

/// Checks the tree; the error lists every finding.
pub(crate) fn run(root: &Path) -> Result<String, String> {
    let tree = sources(root)?;
    let findings = findings(&tree);
    if findings.is_empty() {
        return Ok(format!("tidy: {} files, nothing to say", tree.len()));
    }
    let mut report = String::new();
    for finding in &findings {
        let _ = writeln!(report, "{finding}");
    }
    let _ = write!(report, "tidy: {} findings", findings.len());
    Err(report)
}

/// Everything that is wrong with `tree`, as `PATH:LINE: what`.
fn findings(tree: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in tree {
        white_space(source, &mut found);
        words(source, &mut found);
        length(source, &mut found);
        comment_width(source, &mut found);
        module_docs(source, &mut found);
        os_access(source, &mut found);
        manifest(source, &mut found);
        doc_tests(source, &mut found);
    }
    every_test_file_is_built(tree, &mut found);
    every_crate_has_its_borders(tree, &mut found);
    circles(tree, &mut found);
    unsafe_code(tree, &mut found);
    promised_tests(tree, &mut found);
    found
}

fn white_space(source: &Source, found: &mut Vec<String>) {
    for (number, line) in numbered(source) {
        if line.contains('\t') {
            found.push(format!("{}:{number}: a tab", source.path));
        }
        if line.ends_with(' ') || line.ends_with('\r') {
            found.push(format!("{}:{number}: white space at the end of the line", source.path));
        }
    }
    if !source.text.is_empty() && !source.text.ends_with('\n') {
        found.push(format!("{}: no newline at the end", source.path));
    }
}

fn words(source: &Source, found: &mut Vec<String>) {
    for (number, line) in numbered(source) {
        for word in FORBIDDEN_WORDS.iter().filter(|word| contains_word(line, word)) {
            found.push(format!(
                "{}:{number}: `{word}`: do it, or write it down where work is planned",
                source.path
            ));
        }
        for path in MACHINE_PATHS.iter().filter(|path| contains_word(line, path)) {
            found.push(format!("{}:{number}: `{path}` is a path of one machine", source.path));
        }
    }
}

fn length(source: &Source, found: &mut Vec<String>) {
    let lines = source.text.lines().count();
    let listed = LONG_FILES.iter().any(|(path, _)| *path == source.path);
    if source.has_extension("rs") && lines > MAX_LINES && !listed {
        found.push(format!("{}: {lines} lines, more than {MAX_LINES}: is it still one room?", source.path));
    }
}

/// rustfmt keeps code to the width, but not comments. What a fence holds is drawn: it may be wider.
fn comment_width(source: &Source, found: &mut Vec<String>) {
    if !source.has_extension("rs") {
        return;
    }
    let mut is_drawn = false;
    for (number, line) in numbered(source) {
        let comment = line.trim_start();
        if !comment.starts_with("//") {
            is_drawn = false;
        } else if comment.trim_start_matches(['/', '!', ' ']).starts_with("```") {
            is_drawn = !is_drawn;
        } else if !is_drawn && line.chars().count() > MAX_WIDTH {
            found.push(format!("{}:{number}: a comment wider than {MAX_WIDTH} columns", source.path));
        }
    }
}

fn module_docs(source: &Source, found: &mut Vec<String>) {
    let in_source = source.path.contains("/src/") && source.has_extension("rs") && !source.is_test_file();
    if in_source && !source.text.starts_with("//!") {
        found.push(format!("{}:1: no module docs: what does it model, after which document?", source.path));
    }
}

/// Invariant 1: only [`OS_CRATES`] touch a clock, a socket, a file or the environment.
fn os_access(source: &Source, found: &mut Vec<String>) {
    let Some(name) = source.crate_name() else { return };
    if OS_CRATES.contains(&name) || !source.path.contains("/src/") || !source.has_extension("rs") {
        return;
    }
    let first_test_line = source.first_test_line();
    for (number, line) in numbered(source).filter(|&(number, _)| number < first_test_line) {
        if line.trim_start().starts_with("//") {
            continue;
        }
        let is_engine = |module: &&&str| name == ENGINE_CRATE && ENGINE_TYPES.contains(*module);
        for module in OS_MODULES.iter().filter(|module| line.contains(*module)).filter(|it| !is_engine(it)) {
            found.push(format!(
                "{}:{number}: `{module}`: only {} touch the OS",
                source.path,
                OS_CRATES.join(", ")
            ));
        }
    }
}

/// The picture's borders: a crate's manifest names only crates below it.
fn manifest(source: &Source, found: &mut Vec<String>) {
    let Some(name) = source.crate_name() else { return };
    let Some((_, below)) = BORDERS.iter().find(|(of, _)| *of == name) else { return };
    if source.path != format!("crates/{name}/Cargo.toml") {
        return;
    }
    let mut in_dependencies = false;
    for (number, line) in numbered(source) {
        if line.starts_with('[') {
            in_dependencies = line.trim() == "[dependencies]";
            if line.trim_start_matches('[').starts_with("dependencies.talkpath") {
                found.push(format!("{}:{number}: write it as one line under [dependencies]", source.path));
            }
        } else if in_dependencies
            && let Some(other) = line.strip_prefix("talkpath-").and_then(dependency_name)
            && !below.contains(&other)
        {
            found.push(format!("{}:{number}: {name} must not know {other} (ARCHITECTURE.md)", source.path));
        }
    }
}

fn every_crate_has_its_borders(tree: &[Source], found: &mut Vec<String>) {
    for source in tree.iter().filter(|source| source.path.ends_with("/Cargo.toml")) {
        if let Some(name) = source.crate_name()
            && source.path == format!("crates/{name}/Cargo.toml")
            && !BORDERS.iter().any(|(of, _)| *of == name)
        {
            found.push(format!("{}: a new crate: give it its borders in xtask/src/tidy.rs", source.path));
        }
    }
}

/// With `autotests = false` cargo builds only the test files that a manifest or tests/main.rs names.
fn every_test_file_is_built(tree: &[Source], found: &mut Vec<String>) {
    let text_of = |path: String| tree.iter().find(|source| source.path == path).map(|it| it.text.as_str());
    for source in tree.iter().filter(|source| source.has_extension("rs")) {
        let Some((folder, file)) = source.path.rsplit_once("/tests/") else { continue };
        let manifest = text_of(format!("{folder}/Cargo.toml")).unwrap_or_default();
        if file.contains('/') || !manifest.contains("autotests = false") {
            continue;
        }
        let module = format!("mod {};", file.trim_end_matches(".rs"));
        let main = text_of(format!("{folder}/tests/main.rs")).unwrap_or_default();
        if !manifest.contains(&format!("\"tests/{file}\"")) && !main.lines().any(|line| line == module) {
            let path = &source.path;
            found.push(format!("{path}:1: never built: write `{module}` into {folder}/tests/main.rs"));
        }
    }
}

/// The manifests switch examples in comments off as tests: rustdoc would read each crate to find none.
fn doc_tests(source: &Source, found: &mut Vec<String>) {
    if !source.has_extension("rs") || !source.path.contains("/src/") {
        return;
    }
    let mut is_open = false;
    for (number, line) in numbered(source) {
        let comment = line.trim_start();
        let Some(text) = comment.strip_prefix("///").or_else(|| comment.strip_prefix("//!")) else {
            is_open = false;
            continue;
        };
        let Some(language) = text.trim().strip_prefix("```") else { continue };
        is_open = !is_open;
        if is_open && language != "text" {
            let path = &source.path;
            found
                .push(format!("{path}:{number}: no such example is compiled: write ```text, or a unit test"));
        }
    }
}

/// The tests that the page of promises names, as `module::test`, are there.
fn promised_tests(tree: &[Source], found: &mut Vec<String>) {
    let code = || tree.iter().filter(|source| source.has_extension("rs"));
    for source in tree.iter().filter(|source| source.path == PROMISES) {
        for (number, line) in numbered(source) {
            let spans = line.split('`').skip(1).step_by(2);
            let tests = spans.filter_map(|span| Some(span.rsplit_once("::")?.1));
            for test in tests.filter(|test| test.contains('_')) {
                let head = format!("fn {test}()");
                if !code().any(|source| source.text.contains(&head)) {
                    found.push(format!("{PROMISES}:{number}: there is no test `{test}`"));
                }
            }
        }
    }
}

/// Unsafe code is in two crates, and little: a reader can go through every place.
fn unsafe_code(tree: &[Source], found: &mut Vec<String>) {
    let mut places = Vec::new();
    for source in tree.iter().filter(|source| source.has_extension("rs") && source.path.contains("src/")) {
        if source.is_test_file() || source.path.ends_with("_tests.rs") {
            continue;
        }
        for line in unsafe_lines(&product_tokens(&source.text)) {
            let place = format!("{}:{line}", source.path);
            if !source.crate_name().is_some_and(|name| UNSAFE_CRATES.contains(&name)) {
                let only = UNSAFE_CRATES.join(" and ");
                found.push(format!("{place}: unsafe code: only {only} may have it"));
            }
            places.push(place);
        }
    }
    if let Some(place) = places.get(MAX_UNSAFE) {
        let count = places.len();
        found.push(format!("{place}: {count} unsafe blocks outside of tests, more than {MAX_UNSAFE}"));
    }
}

fn dependency_name(rest: &str) -> Option<&str> {
    rest.split(['.', ' ', '=']).next()
}

fn numbered(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    source.text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

/// Whether `line` has `word` with no letter or digit before it (nor after it, if it ends in one).
fn contains_word(line: &str, word: &str) -> bool {
    let is_part = |character: Option<char>| character.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(start, _)| {
        let after = line[start + word.len()..].chars().next();
        let open_ended = !word.ends_with(char::is_alphanumeric);
        !is_part(line[..start].chars().next_back()) && (open_ended || !is_part(after))
    })
}

/// What strangers, guests and others cannot do, each with its test.
const PROMISES: &str = "docs/reference/security.md";
/// Files aim under 500 lines; past this one is two.
const MAX_LINES: usize = 700;
/// As rustfmt.toml has it for code.
const MAX_WIDTH: usize = 110;

/// Longer files, each with its reason.
const LONG_FILES: [(&str, &str); 0] = [];

/// Crates that may use the operating system.
const OS_CRATES: [&str; 8] = ["system", "kernel", "emu", "live", "experiment", "commands", "ui", "cli"];

/// The crates that may have unsafe code.
const UNSAFE_CRATES: [&str; 2] = ["system", "kernel"];
/// Unsafe blocks, functions and implementations outside of tests (chosen: an hour's reading).
const MAX_UNSAFE: usize = 25;

const OS_MODULES: [&str; 6] =
    ["std::net", "std::fs", "std::env::", "std::process", "std::time::", "std::thread::sleep"];

/// The crate whose library counts time and names hosts in std's types, which are values.
const ENGINE_CRATE: &str = "quic";
const ENGINE_TYPES: [&str; 2] = ["std::net", "std::time::"];

/// Split, so that this file passes its own check.
const FORBIDDEN_WORDS: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
];

const MACHINE_PATHS: [&str; 4] =
    [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/Us", "ers/")];

/// A crate, and the crates that it may depend on.
const BORDERS: &[(&str, &[&str])] = &[
    ("testing", &[]),
    ("units", &[]),
    ("config", &["units"]),
    ("path", &["units"]),
    ("wire", &["units", "config"]),
    ("transport", &["units", "config", "wire"]),
    ("quic", &["units", "config", "wire"]),
    ("model", &["units", "path", "config"]),
    ("scenario", &["units", "path", "config", "model"]),
    ("measure", &["units", "config"]),
    ("fixtures", &["units", "measure"]),
    ("capture", &["units", "config", "measure"]),
    ("sound", &["measure"]),
    ("flow", &["units", "config", "wire", "model", "measure"]),
    ("arena", &["units", "path", "config", "model", "measure"]),
    ("sim", &["units", "path", "config", "wire", "transport", "quic", "model", "measure", "flow", "arena"]),
    ("system", &["units", "model"]),
    ("kernel", &["units", "config", "wire", "quic", "model", "measure", "flow", "system"]),
    ("emu", &["units", "path", "config", "wire", "model", "measure", "flow", "arena", "kernel"]),
    ("live", &["units", "wire", "model", "measure", "flow", "arena", "kernel"]),
    ("study", &["units", "path", "config", "model", "scenario", "measure"]),
    ("campaign", &["units", "path", "config", "scenario", "measure", "study"]),
    ("report", &["units", "measure", "study", "campaign"]),
    ("experiment", &["units", "path", "scenario", "measure", "arena", "system"]),
    (
        "commands",
        &[
            "units",
            "path",
            "scenario",
            "measure",
            "arena",
            "system",
            "study",
            "campaign",
            "report",
            "experiment",
            "capture",
            "sound",
        ],
    ),
    ("ui", &["experiment"]),
    (
        "cli",
        &[
            "ui",
            "units",
            "wire",
            "transport",
            "model",
            "scenario",
            "measure",
            "arena",
            "system",
            "report",
            "experiment",
            "commands",
            "sim",
            "kernel",
            "emu",
            "live",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn found_in(path: &str, text: &str) -> Vec<String> {
        findings(&[Source { path: path.to_owned(), text: text.to_owned(), is_test_module: false }])
    }

    #[test]
    fn the_tree_is_tidy() {
        if let Err(report) = run(&crate::tree::workspace_root()) {
            panic!("{report}");
        }
    }

    #[test]
    fn a_dependency_that_crosses_a_border_is_found() {
        let manifest =
            "[dependencies]\ntalkpath-units.workspace = true\ntalkpath-scenario.workspace = true\n";
        let found = found_in("crates/measure/Cargo.toml", manifest);
        assert_eq!(found, ["crates/measure/Cargo.toml:3: measure must not know scenario (ARCHITECTURE.md)"],);
    }

    #[test]
    fn a_dependency_of_tests_may_cross() {
        let manifest = "[dependencies]\n\n[dev-dependencies]\ntalkpath-scenario.workspace = true\n";
        assert!(found_in("crates/measure/Cargo.toml", manifest).is_empty());
    }

    #[test]
    fn a_clock_in_a_model_is_found_but_not_in_its_tests() {
        let text = "//! Doc.\nuse std::time::Instant;\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
        let found = found_in("crates/path/src/link.rs", text);
        assert_eq!(
            found,
            [
                "crates/path/src/link.rs:2: `std::time::`: only system, kernel, emu, live, experiment, commands, ui, cli touch the OS"
            ]
        );
    }

    #[test]
    fn unsafe_code_is_found_outside_of_the_system_crate_and_above_the_limit() {
        let block = concat!("    un", "safe { f() }\n");
        let file = |count: usize| {
            format!("//! Doc.\n{}#[cfg(test)]\nmod tests {{ {block} }}\n", block.repeat(count))
        };
        let found = found_in("crates/path/src/link.rs", &file(1));
        assert_eq!(found, ["crates/path/src/link.rs:2: unsafe code: only system and kernel may have it"]);
        assert!(found_in("crates/system/src/sys.rs", &file(MAX_UNSAFE)).is_empty());
        let found = found_in("crates/system/src/sys.rs", &file(MAX_UNSAFE + 1));
        assert_eq!(found, ["crates/system/src/sys.rs:27: 26 unsafe blocks outside of tests, more than 25"]);
    }

    #[test]
    fn a_test_file_that_is_never_built_is_found() {
        let file = |path: &str, text: &str| Source {
            path: format!("crates/path/{path}"),
            text: text.to_owned(),
            is_test_module: false,
        };
        let tree = |manifest: &str| {
            findings(&[
                file("Cargo.toml", manifest),
                file("tests/main.rs", "mod closed;\nmod common;\n"),
                file("tests/closed.rs", ""),
                file("tests/common/mod.rs", ""),
                file("tests/own.rs", ""),
                file("tests/forgotten.rs", ""),
            ])
        };
        let manifest =
            "autotests = false\n[[test]]\npath = \"tests/main.rs\"\n[[test]]\npath = \"tests/own.rs\"\n";
        let forgotten = "crates/path/tests/forgotten.rs:1: never built: write `mod forgotten;` into crates/path/tests/main.rs";
        assert_eq!(tree(manifest), [forgotten]);
        assert!(tree("name = \"x\"\n").is_empty());
    }

    #[test]
    fn a_promise_whose_test_is_gone_is_found() {
        let file = |path: &str, text: &str| Source {
            path: path.to_owned(),
            text: text.to_owned(),
            is_test_module: false,
        };
        let tree = [
            file(PROMISES, "| a | `door::it_holds`, `program live::it_went` |\n"),
            file("crates/live/tests/door.rs", "#[test]\nfn it_holds() {}\n"),
        ];
        assert_eq!(findings(&tree), ["docs/reference/security.md:1: there is no test `it_went`"]);
    }

    #[test]
    fn an_example_that_nothing_compiles_is_found() {
        let text = "//! Doc.\n//! ```text\n//! a\n//! ```\n\n/// ```\n/// f();\n/// ```\nfn f() {}\n";
        let found = found_in("crates/path/src/link.rs", text);
        assert_eq!(
            found,
            ["crates/path/src/link.rs:6: no such example is compiled: write ```text, or a unit test"]
        );
    }

    #[test]
    fn a_word_is_found_only_where_it_stands_alone() {
        assert_eq!(found_in("a.md", concat!("x TO", "DO: this\n")).len(), 1);
        assert!(found_in("a.md", concat!("x TO", "DOS\n")).is_empty());
        assert_eq!(found_in("a.md", concat!("see /ho", "me/me\n")).len(), 1);
        assert!(found_in("a.md", concat!("the net/wo", "rk/x\n")).is_empty());
    }

    #[test]
    fn white_space_missing_docs_and_length_are_found() {
        assert_eq!(found_in("a.toml", "a = 1 \n\tb\n").len(), 2);
        assert_eq!(found_in("crates/path/src/x.rs", "fn f() {}\n").len(), 1);
        let long = format!("//! Doc.\n{}", "// x\n".repeat(MAX_LINES));
        assert_eq!(found_in("crates/path/src/x.rs", &long).len(), 1);
    }
    #[test]
    fn a_wide_comment_is_found_but_not_in_a_fence() {
        let wide = "x".repeat(MAX_WIDTH);
        assert_eq!(found_in("crates/path/src/x.rs", &format!("//! {wide}\n")).len(), 1);
        assert!(found_in("crates/path/src/x.rs", &format!("//! ```text\n//! {wide}\n//! ```\n")).is_empty());
        assert!(found_in("crates/path/src/x.rs", &format!("//! Doc.\nlet x = {wide};\n")).is_empty());
    }
}

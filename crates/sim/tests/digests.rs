//! The records of whole runs are what they were: the net under changes that must not change a figure.
//!
//! Each scenario in `digests/` has a line in `digests/digests.txt`: its name, the digest of its records with
//! every row and series, and the digest without. A change that means to change a record writes the lines anew
//! with `TALKPATH_UPDATE=1 cargo test -p talkpath-sim --test digests` and says in its commit why they move.

mod common;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

#[test]
#[expect(clippy::disallowed_methods, reason = "the scenarios and their digests are files")]
fn records_are_what_they_were() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("digests");
    let found = lines(&scenarios(&folder));
    let file = folder.join("digests.txt");
    if std::env::var_os("TALKPATH_UPDATE").is_some() {
        fs::write(&file, found.concat()).unwrap();
    }
    let expected = fs::read_to_string(&file).unwrap();
    let moved: Vec<_> = found.iter().filter(|line| !expected.contains(line.as_str())).collect();
    assert!(moved.is_empty(), "not in {}: {moved:#?}", file.display());
    assert_eq!(expected.lines().count(), found.len(), "a line without a scenario in {}", file.display());
}

fn scenarios(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).expect("the folder is there").map(|entry| entry.expect("a file").path());
    let mut scenarios: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|it| it == "toml")).collect();
    scenarios.sort();
    assert!(scenarios.len() >= 24, "{} scenarios", scenarios.len());
    scenarios
}

/// A line for each scenario, in their order. They are run on all processors.
#[expect(clippy::disallowed_methods, reason = "the scenarios are files")]
fn lines(scenarios: &[PathBuf]) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(vec![String::new(); scenarios.len()]);
    let work = || {
        while let index = next.fetch_add(1, Ordering::Relaxed)
            && let Some(path) = scenarios.get(index)
        {
            let text = fs::read_to_string(path).expect("a scenario");
            let [with, without] = common::digests(&text);
            let mut line = String::new();
            let name = path.file_stem().expect("a name").display();
            writeln!(line, "{name} {with:016x} with rows, {without:016x} without").expect("text takes all");
            found.lock().expect("no thread panicked")[index] = line;
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    found.into_inner().expect("no thread panicked")
}

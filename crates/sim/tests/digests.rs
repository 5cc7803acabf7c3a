//! The records of whole runs are what they were: the net under changes that must not change a figure.
//!
//! Each scenario in `digests/` has a line in `digests/digests.txt`: its name, the digest of its records with
//! every row and series, and the digest of the figures that `digests/figures.txt` names, of a run without
//! rows. A change that means to change a record writes the lines anew with `TALKPATH_UPDATE=1 cargo test -p
//! talkpath-sim --test digests` and says in its commit why they move.
//! `digests/links.txt` has a line each for what the links record beyond that: delays of queues, drops, marks.

mod common;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

#[test]
fn records_are_what_they_were() {
    compare("digests.txt", |text| {
        let (with, without) = (common::digest_with_rows(text), common::digest_without_rows(text));
        format!("{with:016x} with rows, {without:016x} without")
    });
}

#[test]
fn what_links_record_is_what_it_was() {
    compare("links.txt", |text| format!("{:016x}", common::link_digest(text)));
}

/// Holds what `digest` makes of each scenario against the file of this name.
#[expect(clippy::disallowed_methods, reason = "the scenarios and their digests are files")]
fn compare(file: &str, digest: impl Fn(&str) -> String + Sync) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("digests");
    let found = lines(&scenarios(&folder), digest);
    let file = folder.join(file);
    if std::env::var_os("TALKPATH_UPDATE").is_some() {
        fs::write(&file, found.concat()).expect("the file can be written");
    }
    let expected = fs::read_to_string(&file).expect("the file is there");
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
fn lines(scenarios: &[PathBuf], digest: impl Fn(&str) -> String + Sync) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(vec![String::new(); scenarios.len()]);
    let work = || {
        while let index = next.fetch_add(1, Ordering::Relaxed)
            && let Some(path) = scenarios.get(index)
        {
            let text = fs::read_to_string(path).expect("a scenario");
            let name = path.file_stem().expect("a name").display();
            let line = format!("{name} {}\n", digest(&text));
            found.lock().expect("no thread panicked")[index] = line;
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    found.into_inner().expect("no thread panicked")
}

//! Names runs that are shown side by side, so that each name is short and no two names are the same.

use std::collections::BTreeSet;
use std::path::{self, PathBuf};

use talkpath_experiment::run_dir::RunDir;
use talkpath_measure::summary::Summary;

/// Names each run by what distinguishes it from the others: the arena, the name of the scenario, or both. If
/// these are the same for some runs, the labels come from the names of the directories.
pub(super) fn labels(summaries: &[&Summary], dirs: &[RunDir]) -> Vec<String> {
    let arenas = summaries.iter().map(|summary| summary.arena.clone()).collect();
    let names = summaries.iter().map(|summary| summary.name.clone()).collect();
    let names_with_arenas =
        summaries.iter().map(|summary| format!("{}, {}", summary.name, summary.arena)).collect();
    let candidates: [Vec<String>; 3] = [arenas, names, names_with_arenas];
    if let Some(labels) = candidates.into_iter().find(|labels| are_distinct(labels)) {
        return labels;
    }
    let paths = dirs.iter().map(|dir| path::absolute(dir.path()).unwrap_or_else(|_| dir.path().to_owned()));
    directory_labels(&paths.collect::<Vec<_>>())
}

fn are_distinct(labels: &[String]) -> bool {
    labels.iter().collect::<BTreeSet<_>>().len() == labels.len()
}

/// Names each directory by what distinguishes its path from the others.
///
/// If the names of the directories differ, a label is the part of the name that the others do not share. If
/// some names are the same, the label also has as many of the folders above as are needed.
fn directory_labels(paths: &[PathBuf]) -> Vec<String> {
    let paths: Vec<Vec<String>> = paths
        .iter()
        .map(|path| path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect())
        .collect();
    let last_parts = |depth: usize| -> Vec<String> {
        paths.iter().map(|parts| parts[parts.len().saturating_sub(depth)..].join("/")).collect()
    };
    let deepest = paths.iter().map(Vec::len).max().unwrap_or(0);
    match (1..=deepest).find(|depth| are_distinct(&last_parts(*depth))) {
        Some(depth @ 2..) => last_parts(depth),
        _ => without_shared_words(&last_parts(1)),
    }
}

/// Removes the words with which all names begin, and those with which all names end. Words are separated by
/// hyphens. Each name keeps at least one word.
fn without_shared_words(names: &[String]) -> Vec<String> {
    let names: Vec<Vec<&str>> = names.iter().map(|name| name.split('-').collect()).collect();
    let Some(example) = names.first() else { return Vec::new() };
    let shortest = names.iter().map(Vec::len).min().unwrap_or(0);
    let mut at_front = 0;
    while at_front + 1 < shortest && names.iter().all(|words| words[at_front] == example[at_front]) {
        at_front += 1;
    }
    let from_end = |words: &[&str], at: usize| words[words.len() - 1 - at].to_owned();
    let mut at_end = 0;
    while at_front + at_end + 1 < shortest
        && names.iter().all(|words| from_end(words, at_end) == from_end(example, at_end))
    {
        at_end += 1;
    }
    names.iter().map(|words| words[at_front..words.len() - at_end].join("-")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_labels_of_directories_with_the_same_name_have_the_folder_above() {
        let labels_of =
            |paths: &[&str]| directory_labels(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(labels_of(&["/runs/a/x", "/runs/b/x"]), ["a/x", "b/x"]);
        assert_eq!(labels_of(&["/a/runs/x", "/b/runs/x", "/b/runs/y"]), ["a/runs/x", "b/runs/x", "b/runs/y"]);
        assert_eq!(labels_of(&["/runs/x-monday", "/runs/x-tuesday"]), ["monday", "tuesday"]);
    }

    #[test]
    fn the_label_of_a_directory_is_the_part_of_its_name_that_the_others_do_not_share() {
        let labels_of = |names: &[&str]| {
            without_shared_words(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        let two = ["2026-11-23T06-17-42Z-voice-over-lte", "2026-11-23T06-18-05Z-voice-over-lte"];
        assert_eq!(labels_of(&two), ["17-42Z", "18-05Z"]);
        assert_eq!(labels_of(&["monday", "tuesday"]), ["monday", "tuesday"]);
        assert_eq!(labels_of(&["same", "same"]), ["same", "same"]);
        assert_eq!(labels_of(&["run", "run-2"]), ["run", "run-2"]);
    }
}

//! Finds and loads a study: a built-in one, or one in a folder of the user.

use std::fs;
use std::path::{Path, PathBuf};

use talkpath_scenario::Source;
use talkpath_study::{Changes, Embedded, Study, embedded, load_with};

use super::STUDY_FILE;
use crate::failure::Failure;
use crate::scenario_file;
use crate::terminal::program;

/// Returns the path of the file of a study that is in a folder of the user. Returns `None` for a built-in
/// study.
pub(super) fn path_of(name: &str) -> Option<PathBuf> {
    if embedded().iter().any(|entry| entry.name == name) {
        return None;
    }
    let path = Path::new(name);
    Some(if path.is_dir() { path.join(STUDY_FILE) } else { path.to_owned() })
}

/// Finds a study by the name of a built-in study, by its folder or by its file.
pub(super) fn find(name: &str, changes: &Changes) -> Result<Study, Failure> {
    if let Some(entry) = embedded().iter().find(|entry| entry.name == name) {
        return load_embedded(entry, changes);
    }
    let path = Path::new(name);
    if path.is_dir() {
        return load_file(&path.join(STUDY_FILE), changes);
    }
    if name.ends_with(".toml") || path.exists() {
        return load_file(path, changes);
    }
    let known: Vec<&str> = embedded().iter().map(|entry| entry.name).collect();
    Err(Failure::Usage(format!(
        "no study \"{name}\"; there are {}\nhelp: `{} study list`, or give the folder of a study",
        known.join(", "),
        program()
    )))
}

pub(super) fn load_embedded(entry: &Embedded, changes: &Changes) -> Result<Study, Failure> {
    load_texts(entry.name, &entry.source(), &entry.files(), changes)
}

/// Reads a study file, with the scenarios, tables and texts in its folder.
fn load_file(path: &Path, changes: &Changes) -> Result<Study, Failure> {
    let source = Source::new(path.display().to_string(), scenario_file::read_text(path)?);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| Failure::read(folder, &error))? {
        let file = entry.map_err(|error| Failure::read(folder, &error))?.path();
        let extension = file.extension().and_then(|extension| extension.to_str());
        if file.file_name() == path.file_name() || !matches!(extension, Some("toml" | "csv" | "txt")) {
            continue;
        }
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match scenario_file::read_text(&file) {
            Ok(text) => files.push(Source::new(name, text)),
            // Which files the study names is known only after it has been loaded. A file whose name is
            // nowhere in the text of the study does not belong to it, so the error does not matter. If
            // only a comment has the name, the study is refused without need, but nothing goes wrong.
            Err(_) if !source.text.contains(&name) => {}
            Err(failure) => return Err(failure),
        }
    }
    // A study has the name of its folder. The folder `.` has a name only after its path is resolved.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let name = folder.file_name().map_or_else(|| "study".into(), |name| name.to_string_lossy());
    load_texts(&name, &source, &files, changes)
}

fn load_texts(name: &str, source: &Source, files: &[Source], changes: &Changes) -> Result<Study, Failure> {
    load_with(name, source, files, changes).map_err(|diagnostics| Failure::Scenario {
        file: source.name.clone(),
        mistakes: diagnostics
            .iter()
            .map(|mistake| scenario_file::format_diagnostic(source, mistake))
            .collect(),
    })
}

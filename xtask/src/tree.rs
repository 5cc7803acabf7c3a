//! The files of the work tree that belong to the project.

use std::fs;
use std::path::{Path, PathBuf};

/// A text file: its path from the workspace's root, with `/` between, and what it holds.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }

    /// The crate's folder name, for files under `crates/NAME/`.
    pub(crate) fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// Whether the whole file is tests or benchmarks.
    pub(crate) fn is_test_file(&self) -> bool {
        self.path.contains("/tests/") || self.path.contains("/benches/") || self.path.ends_with("/tests.rs")
    }

    /// The line (from 1) from which on the file holds its unit tests; past the end where it has none.
    pub(crate) fn first_test_line(&self) -> usize {
        if self.is_test_file() {
            return 1;
        }
        let position = self.text.lines().position(|line| line.trim() == "#[cfg(test)]");
        position.map_or(usize::MAX, |index| index + 1)
    }
}

/// The folder that holds the root manifest.
pub(crate) fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Every text file of the project, in order of path.
pub(crate) fn sources(root: &Path) -> Result<Vec<Source>, String> {
    let mut found = Vec::new();
    walk(root, root, &mut found)?;
    found.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(found)
}

fn walk(root: &Path, folder: &Path, found: &mut Vec<Source>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !SKIPPED_FOLDERS.contains(&name.as_str()) {
                walk(root, &path, found)?;
            }
        } else if is_text(&name, &path) {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            found.push(Source { path: relative, text });
        }
    }
    Ok(())
}

fn is_text(name: &str, path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    TEXT_EXTENSIONS.contains(&extension) || name == "run"
}

const SKIPPED_FOLDERS: [&str; 3] = ["target", ".git", "talkpath-runs"];
const TEXT_EXTENSIONS: [&str; 6] = ["rs", "toml", "md", "txt", "sh", "css"];

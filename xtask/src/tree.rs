//! The files of the work tree that belong to the project.

use std::fs;
use std::path::{Path, PathBuf};

/// A text file: its path from the workspace's root, with `/` between, and what it holds.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    /// Whether its parent declares it under `#[cfg(test)]`.
    pub(crate) is_test_module: bool,
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
        self.is_test_module
            || self.path.contains("/tests/")
            || self.path.contains("/benches/")
            || self.path.ends_with("/tests.rs")
    }

    /// The line (from 1) from which on the file holds its unit tests; past the end if it has none.
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
    let test_modules: Vec<String> = found.iter().flat_map(test_modules).collect();
    for source in &mut found {
        let name = source.path.strip_suffix("/mod.rs").or_else(|| source.path.strip_suffix(".rs"));
        source.is_test_module = name.is_some_and(|name| test_modules.iter().any(|module| module == name));
    }
    Ok(found)
}

/// What `source` declares as `#[cfg(test)] mod NAME;`, as paths without `.rs` or `/mod.rs`.
fn test_modules(source: &Source) -> Vec<String> {
    let folder = match source.path.rsplit_once('/') {
        Some((folder, "lib.rs" | "main.rs" | "mod.rs")) => folder,
        _ => source.path.strip_suffix(".rs").unwrap_or_default(),
    };
    let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
    let declared = lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]");
    let names = declared.filter_map(|pair| pair[1].strip_prefix("mod ")?.strip_suffix(';'));
    names.map(|name| format!("{folder}/{name}")).collect()
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
            found.push(Source { path: relative, text, is_test_module: false });
        }
    }
    Ok(())
}

fn is_text(name: &str, path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    TEXT_EXTENSIONS.contains(&extension) || name == "run"
}

/// What is built, kept or comes from elsewhere (vendor/README.md).
const SKIPPED_FOLDERS: [&str; 4] = ["target", ".git", "talkpath-runs", "vendor"];
const TEXT_EXTENSIONS: [&str; 6] = ["rs", "toml", "md", "txt", "sh", "css"];

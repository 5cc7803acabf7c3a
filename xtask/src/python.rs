//! The Python package: a smoke test that needs nothing but Python's own library, for CI; and the wheel with
//! all its tests, its types and the notebooks, for the night.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::command::{debug_program, exit_code_until};
use crate::judges::Judged;
use crate::{namespaces, venv};

/// The tests without packages, against the debug build that the tests have made.
pub(crate) fn smoke(root: &Path) -> Result<(), String> {
    let new_enough = "import sys, tomllib; sys.exit(sys.version_info < (3, 11))";
    let found = Command::new("python3").args(["-c", new_enough]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        println!("ci: SKIP: the Python package: there is no python3 of 3.11 or later");
        return Ok(());
    }
    let mut test = Command::new("python3");
    test.current_dir(root.join("python")).env("PYTHONPATH", ".").env("PYTHONDONTWRITEBYTECODE", "1");
    test.env("TALKPATH_PROGRAM", debug_program(root)?);
    test.args(["-W", "error", "-m", "unittest", "tests/test_without_packages.py"]);
    let status = test.status().map_err(|error| format!("python3: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("the Python package: {status}")) }
}

/// Builds the wheel and installs it; then every test, ruff, pyright, and the notebooks.
pub(crate) fn nightly(root: &Path, deadline: Instant) -> Judged {
    let folder = root.join("target").join("python");
    let python = match venv::environment(&folder.join("venv"), READY, (&[], &[&PACKAGES[..]]), deadline) {
        Ok(python) => python,
        Err(why) => return Judged::Missing(why),
    };
    match checks(root, &folder, &python, deadline) {
        Ok(notebooks) => Judged::Agrees(format!("tests, ruff, pyright, and {notebooks} notebooks")),
        Err(why) => Judged::Differs(why),
    }
}

fn checks(root: &Path, folder: &Path, python: &Path, deadline: Instant) -> Result<usize, String> {
    let wheels = folder.join("wheel");
    let _ = fs::remove_dir_all(&wheels);
    let must = |arguments: &[&str]| {
        let mut command = Command::new(python);
        command.current_dir(root).args(["-m"]).args(arguments);
        match exit_code_until(&mut command, deadline)? {
            Some(0) => Ok(()),
            Some(code) => Err(format!("{}: exit code {code}", arguments.join(" "))),
            None => Err(format!("{}: it did not end in time", arguments.join(" "))),
        }
    };
    let wheels_named = wheels.display().to_string();
    must(&["maturin", "build", "--release", "--out", &wheels_named])?;
    let wheel = crate::dist::only(&wheels, "whl")?.display().to_string();
    must(&["pip", "install", "--quiet", "--no-index", "--no-deps", "--force-reinstall", &wheel])?;
    must(&["pytest", "--quiet", "-p", "no:cacheprovider"])?;
    must(&["ruff", "check", "python"])?;
    must(&["ruff", "format", "--check", "python"])?;
    must(&["pyright", "--pythonpath", &python.display().to_string()])?;
    let mut notebooks = notebooks(root)?;
    if let Err(why) = namespaces::are_allowed() {
        println!("nightly: SKIP: {EMULATED}: {why}");
        notebooks.retain(|notebook| !notebook.ends_with(EMULATED));
    }
    let executed = folder.join("notebooks");
    fs::create_dir_all(&executed).map_err(|error| format!("{}: {error}", executed.display()))?;
    for notebook in &notebooks {
        // A notebook runs in its own folder, and leaves its runs there.
        let copy = executed.join(notebook.file_name().unwrap_or_default());
        fs::copy(notebook, &copy).map_err(|error| format!("{}: {error}", notebook.display()))?;
        let copy = copy.display().to_string();
        must(&["jupyter", "nbconvert", "--to", "notebook", "--execute", "--inplace", &copy])?;
    }
    Ok(notebooks.len())
}

/// The notebooks, in order of name.
fn notebooks(root: &Path) -> Result<Vec<PathBuf>, String> {
    let folder = root.join("docs").join("notebooks");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| path.extension().is_some_and(|it| it == "ipynb"));
    found.sort();
    if found.is_empty() { Err(format!("{}: no notebooks", folder.display())) } else { Ok(found) }
}

/// The notebook that runs a campaign over emulated paths.
const EMULATED: &str = "a-campaigns-tables.ipynb";
/// Marks an environment that is whole; another name when a package changes.
const READY: &str = "ready-1";
/// What the extras `notebook` and `pandas` need, and what builds, tests and checks.
const PACKAGES: [&str; 13] = [
    "maturin>=1.10,<2",
    "polars>=1",
    "matplotlib>=3.8",
    "tqdm",
    "pandas>=2",
    "pyarrow>=14",
    "pytest",
    "ruff>=0.9",
    "pyright",
    "jupyter-core",
    "nbconvert",
    "nbclient",
    "ipykernel",
];
